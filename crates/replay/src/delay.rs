//! Round-trip times without queues, and what queues add to them.

use std::collections::BTreeMap;

use crate::curve::Step;

/// The number of shortest times that do not count, where there are at least the second number.
const DOUBTFUL: usize = 2;
const DOUBTFUL_OF: usize = 20;

/// The shortest round-trip times of all paths.
#[derive(Clone, Debug)]
pub(crate) struct Floors {
    /// Of each path: both ways on it.
    base: Vec<Option<f64>>,
    /// By path and the path on which the SACK came.
    by_via: BTreeMap<(usize, usize), f64>,
}

impl Floors {
    /// The floors of paths with these steps and numbers.
    ///
    /// A round-trip time has the delay there of the path that carried the data, and the delay back
    /// of the path that carried the SACK, which may be another. Delays are taken as equal both
    /// ways, as nothing at the sender tells them apart.
    pub(crate) fn of(paths: &[(u16, &[Step])]) -> Floors {
        let index = |number: u16| paths.iter().rposition(|(other, _)| *other == number);
        let mut by_via: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        let mut base = vec![None; paths.len()];
        let lower = |floor: &mut Option<f64>, rtt: f64| {
            *floor = Some(floor.map_or(rtt, |floor: f64| floor.min(rtt)));
        };
        for (path, (_, steps)) in paths.iter().enumerate() {
            for step in *steps {
                if let Some(rtt) = step.heartbeat_rtt {
                    lower(&mut base[path], rtt);
                }
                let Some((rtt, via)) = step.rtt else { continue };
                by_via.entry((path, via.and_then(index).unwrap_or(path))).or_default().push(rtt);
            }
        }
        let by_via: BTreeMap<(usize, usize), f64> =
            by_via.into_iter().map(|(ways, rtts)| (ways, shortest(rtts))).collect();
        for (&(path, via), &rtt) in &by_via {
            if path == via {
                lower(&mut base[path], rtt);
            }
        }
        // A path whose SACKs all came on others.
        for path in 0..base.len() {
            if base[path].is_some() {
                continue;
            }
            let known = by_via.iter().filter(|((p, _), _)| *p == path);
            base[path] = known
                .map(|((_, via), rtt)| 2.0 * rtt - base[*via].unwrap_or(*rtt))
                .filter(|base| *base > 0.0)
                .reduce(f64::min);
        }
        Floors { base, by_via }
    }

    /// The round-trip time of a path without queues, in seconds.
    pub(crate) fn base(&self, path: usize) -> Option<f64> {
        self.base[path]
    }

    /// The part of a round-trip time that queues added.
    pub(crate) fn queueing(&self, path: usize, via: Option<usize>, rtt: f64) -> f64 {
        let via = via.unwrap_or(path);
        let measured = self.by_via.get(&(path, via)).copied();
        let modelled = self.base[path].zip(self.base[via]).map(|(a, b)| a.midpoint(b));
        let floor = measured.into_iter().chain(modelled).fold(rtt, f64::min);
        rtt - floor
    }
}

/// The shortest of some times, without the few that cannot be: after a timeout, a SACK may be for
/// a copy that took another path.
fn shortest(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let doubtful = if times.len() < DOUBTFUL_OF { 0 } else { DOUBTFUL };
    times.get(doubtful).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(rtt: f64, via: u16) -> Step {
        Step { rtt: Some((rtt, Some(via))), ..Step::default() }
    }

    #[test]
    fn sacks_on_another_path_do_not_hide_the_delay_of_a_slow_one() {
        // 10 ms there and back on the first, 50 ms on the second.
        let fast = [step(0.020, 1), step(0.060, 2)];
        let slow = [step(0.060, 1), step(0.075, 1)];
        let floors = Floors::of(&[(1, &fast), (2, &slow)]);
        assert_eq!(floors.base(0), Some(0.020));
        assert!((floors.base(1).unwrap() - 0.100).abs() < 1e-9);
        assert!((floors.queueing(1, Some(0), 0.075) - 0.015).abs() < 1e-9);
        assert!(floors.queueing(0, Some(1), 0.060).abs() < 1e-9);
    }

    #[test]
    fn a_heartbeat_sees_the_path_both_ways() {
        let slow = [Step { heartbeat_rtt: Some(0.1), ..Step::default() }, step(0.060, 1)];
        let floors = Floors::of(&[(1, &[step(0.020, 1)]), (2, &slow)]);
        assert_eq!(floors.base(1), Some(0.1));
    }
}
