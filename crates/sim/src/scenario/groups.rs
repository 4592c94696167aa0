//! Results of flows with copies: the shares of all of them in a few numbers.

use std::ops::Range;
use std::time::Duration;

use manypath_proto::Instant;
use serde::Serialize;

use super::model::CompiledScenario;
use crate::result::TransferResult;

/// Parts of the run in which shares are compared.
const PARTS: u32 = 10;

/// A flow that gets less of the mean than this is starved.
const STARVED: f64 = 0.1;

/// The shares that the copies of a flow got.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupResult {
    /// How many flows.
    pub flows: usize,
    /// How many of them completed.
    pub completed: usize,
    /// User bytes delivered, all together.
    pub bytes: u64,
    /// Jain's index of the flows' goodputs, each over its own transfer time: 1 if all are equal,
    /// 1 / `flows` if one gets everything. 0 if nothing was delivered.
    pub jain_index: f64,
    /// Jain's index of the bytes delivered in each tenth of `time_limit` that the run reached the
    /// end of.
    pub jain_by_tenth: Vec<f64>,
    /// Jain's index of the bytes delivered in the second half of `time_limit`; `None` if the run
    /// ended before.
    pub jain_second_half: Option<f64>,
    /// User bits per second delivered in that half, all flows together.
    pub second_half_bps: Option<f64>,
    /// Flows that got less than a tenth of the mean in that half.
    pub starved: Option<usize>,
    /// The end of the first tenth in which Jain's index was at least 0.95 of that of the second
    /// half, and in all tenths after it, in seconds since the run began.
    pub converged_s: Option<f64>,
    /// Goodputs of flows, in bits per second: the least, that below which a tenth is, the median,
    /// and the most.
    pub goodput_min_bps: f64,
    /// A tenth of the flows has less.
    pub goodput_p10_bps: f64,
    /// Half of the flows has less.
    pub goodput_median_bps: f64,
    /// The most.
    pub goodput_max_bps: f64,
    /// T3-rtx expirations of all.
    pub timeouts: u64,
    /// DATA chunks that all sent beyond the first time.
    pub retransmissions: u64,
    /// DATA chunks that all sent.
    pub data_chunks_sent: u64,
}

/// A group under way.
#[derive(Debug)]
struct Group {
    name: String,
    flows: Range<usize>,
    /// Bytes received by each flow at the latest mark.
    at_mark: Vec<u64>,
    /// Bytes received by each flow when half of the time was over, and by its end.
    half: Option<Vec<u64>>,
    end: Option<Vec<u64>>,
    jain_by_tenth: Vec<f64>,
}

/// All groups of a run.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: Vec<Group>,
    time_limit: Duration,
    /// Tenths that are over.
    over: u32,
}

impl Groups {
    /// The groups of a scenario; the first flow of each model has this number.
    pub(super) fn of(scenario: &CompiledScenario, first_of: &[usize]) -> Groups {
        let models = scenario.flows.iter().zip(first_of).filter(|(model, _)| model.copies > 1);
        let groups = models.map(|(model, &first)| Group {
            name: model.name.clone(),
            flows: first..first + model.copies,
            at_mark: vec![0; model.copies],
            half: None,
            end: None,
            jain_by_tenth: Vec::new(),
        });
        Groups { groups: groups.collect(), time_limit: scenario.time_limit, over: 0 }
    }

    /// When the next tenth is over, if there are groups.
    pub(super) fn next(&self) -> Option<Instant> {
        let has_next = !self.groups.is_empty() && self.over < PARTS;
        has_next.then(|| Instant::ZERO + self.time_limit / PARTS * (self.over + 1))
    }

    /// Takes what every flow has received by the end of a tenth.
    pub(super) fn take(&mut self, received: impl Fn(usize) -> u64) {
        self.over += 1;
        for group in &mut self.groups {
            let now: Vec<u64> = group.flows.clone().map(&received).collect();
            group.jain_by_tenth.push(jain(differences(&now, &group.at_mark)));
            group.at_mark.clone_from(&now);
            if self.over == PARTS / 2 {
                group.half = Some(now);
            } else if self.over == PARTS {
                group.end = Some(now);
            }
        }
    }

    /// The results of all groups by name, given those of flows by number.
    pub(super) fn results(
        &self,
        result: impl Fn(usize) -> TransferResult,
    ) -> Vec<(String, GroupResult)> {
        let of = |group: &Group| (group.name.clone(), self.result(group, &result));
        self.groups.iter().map(of).collect()
    }

    fn result(&self, group: &Group, result: impl Fn(usize) -> TransferResult) -> GroupResult {
        let (mut completed, mut bytes, mut timeouts) = (0, 0, 0);
        let (mut retransmissions, mut data_chunks_sent) = (0, 0);
        let mut goodputs = Vec::with_capacity(group.flows.len());
        // One by one: with their paths they take more room than the associations.
        for flow in group.flows.clone() {
            let own = result(flow);
            completed += usize::from(own.completed);
            bytes += own.bytes;
            timeouts += own.timeouts;
            retransmissions += own.retransmissions();
            data_chunks_sent +=
                own.paths.iter().map(|path| path.stats.counters.data_chunks_sent).sum::<u64>();
            goodputs.push(own.goodput_bps);
        }
        goodputs.sort_by(f64::total_cmp);
        let at = |share: f64| goodputs[((goodputs.len() - 1) as f64 * share).round() as usize];
        let half = group.half.as_ref().zip(group.end.as_ref());
        let shares: Option<Vec<f64>> = half.map(|(half, end)| differences(end, half).collect());
        let jain_second_half = shares.as_ref().map(|shares| jain(shares.iter().copied()));
        let total = shares.as_ref().map(|shares| shares.iter().sum::<f64>());
        let half_s = self.time_limit.as_secs_f64() / 2.0;
        GroupResult {
            flows: group.flows.len(),
            completed,
            bytes,
            jain_index: jain(goodputs.iter().copied()),
            jain_by_tenth: group.jain_by_tenth.clone(),
            jain_second_half,
            second_half_bps: total.map(|bytes| bytes * 8.0 / half_s),
            starved: shares.as_ref().map(|shares| {
                let mean = shares.iter().sum::<f64>() / shares.len() as f64;
                shares.iter().filter(|share| **share < mean * STARVED).count()
            }),
            converged_s: jain_second_half.and_then(|least| self.converged_s(group, 0.95 * least)),
            goodput_min_bps: at(0.0),
            goodput_p10_bps: at(0.1),
            goodput_median_bps: at(0.5),
            goodput_max_bps: at(1.0),
            timeouts,
            retransmissions,
            data_chunks_sent,
        }
    }

    /// The end of the first tenth from which on Jain's index stays at `least` or above.
    fn converged_s(&self, group: &Group, least: f64) -> Option<f64> {
        let before = group.jain_by_tenth.iter().rposition(|jain| *jain < least);
        let first = before.map_or(0, |last| last + 1);
        let part = self.time_limit.as_secs_f64() / f64::from(PARTS);
        (first < group.jain_by_tenth.len()).then_some(part * (first + 1) as f64)
    }
}

fn differences(now: &[u64], before: &[u64]) -> impl Iterator<Item = f64> + Clone {
    now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before) as f64)
}

/// Jain's index of fairness (Jain, Chiu, Hawe, 1984): 0 if all are 0.
fn jain(shares: impl Iterator<Item = f64> + Clone) -> f64 {
    let sum = shares.clone().sum::<f64>();
    let squares = shares.clone().map(|share| share * share).sum::<f64>();
    if squares > 0.0 { sum * sum / (shares.count() as f64 * squares) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::jain;

    #[test]
    fn jains_index_is_one_for_equal_shares_and_one_nth_for_a_single_winner() {
        assert_eq!(jain([3.0; 8].into_iter()), 1.0);
        assert_eq!(jain([0.0, 0.0, 5.0, 0.0].into_iter()), 0.25);
        assert_eq!(jain([1.0, 3.0].into_iter()), 0.8);
        assert_eq!(jain([0.0; 3].into_iter()), 0.0, "nothing is no fair share");
    }
}
