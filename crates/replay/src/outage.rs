//! Outages: times in which nothing that was sent on a path was answered.

use serde::Serialize;

use crate::curve::Step;

/// A shorter silence is none, in seconds.
const SHORTEST_S: f64 = 0.1;
/// The least number of round-trip times that it lasts.
const ROUND_TRIPS: f64 = 2.0;

/// A time in which a path carried nothing.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Outage {
    /// Its begin, in seconds since the transfer began.
    pub from_s: f64,
    /// Its end; `None` if the path did not return.
    pub to_s: Option<f64>,
}

impl Outage {
    /// True if some time from `from` to `to` is in it, or less than `margin` after it.
    pub(crate) fn touches(&self, from: f64, to: f64, margin: f64) -> bool {
        self.from_s < to && self.to_s.is_none_or(|end| end + margin > from)
    }
}

/// The outages of a path.
///
/// Silence alone is none: there must be a sign of the sender's own that the path failed (T3-rtx, or
/// its state), and packets that got no answer. What was answered last was sent before the outage;
/// what was answered first afterwards was sent after it, and what was sent just before that, in it.
pub(crate) fn outages(steps: &[Step], base: f64) -> Vec<Outage> {
    let answered: Vec<usize> = (0..steps.len()).filter(|i| steps[*i].is_progress).collect();
    let mut found = Vec::new();
    for (n, &last) in answered.iter().enumerate() {
        let next = answered.get(n + 1).copied();
        let rtt = steps[last].rtt.map_or(base, |(rtt, _)| rtt);
        let silent = &steps[last + 1..next.unwrap_or(steps.len())];
        let Some(end) = next.map(|i| steps[i].to).or(silent.last().map(|step| step.to)) else {
            continue;
        };
        let has_sign = silent.iter().any(|step| step.timeouts > 0 || step.has_failed);
        let sent: u64 = silent.iter().map(|step| step.packets_sent).sum();
        let length = end - steps[last].to;
        if !has_sign || sent == 0 || length < SHORTEST_S.max(ROUND_TRIPS * rtt) {
            continue;
        }
        let from_s = (steps[last].at() - rtt).max(0.0);
        let to_s = next.map(|next| {
            let step = &steps[next];
            let rtt = step.heartbeat_rtt.or(step.rtt.map(|(rtt, _)| rtt)).unwrap_or(base);
            // A late answer, as of a packet that waited, was sent before the silence.
            let sent_at = step.at() - rtt.min(step.at() - from_s);
            let before =
                silent.iter().rev().find(|step| step.packets_sent > 0 && step.to < sent_at - 0.01);
            before.map_or(from_s, Step::at).midpoint(sent_at)
        });
        found.push(Outage { from_s, to_s });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step of 10 ms that ends at `to` milliseconds.
    fn step(to: u64) -> Step {
        let to = to as f64 / 1e3;
        Step { from: to - 0.01, to, packets_sent: 1, ..Step::default() }
    }

    fn answered(to: u64) -> Step {
        Step { is_progress: true, acked: 1000, rtt: Some((0.04, None)), ..step(to) }
    }

    #[test]
    fn silence_with_a_timeout_is_an_outage() {
        let mut steps: Vec<Step> = (1..=100).map(|n| answered(n * 10)).collect();
        steps.extend((101..=110).map(|n| step(n * 10)));
        steps.push(Step { timeouts: 1, ..step(1200) });
        steps.extend([step(1400), step(1500), step(1600), step(1700), answered(1740)]);
        let found = outages(&steps, 0.04);
        assert_eq!(found.len(), 1);
        // Answered at 995 ms, sent 40 ms earlier; back between 1600 and 1700 ms.
        assert!((found[0].from_s - 0.955).abs() < 0.01, "{found:?}");
        let back = found[0].to_s.unwrap();
        assert!((1.60..1.70).contains(&back), "{found:?}");
    }

    #[test]
    fn silence_without_a_sign_is_none() {
        let steps = [answered(10), step(300), step(600), answered(900)];
        assert!(outages(&steps, 0.04).is_empty(), "nothing was to be sent");
    }

    #[test]
    fn a_path_that_stays_silent_is_gone_for_good() {
        let mut steps: Vec<Step> = (1..=10).map(|n| answered(n * 10)).collect();
        steps.extend((1..=9).map(|n| Step { has_failed: true, ..step(100 + 100 * n) }));
        let found = outages(&steps, 0.04);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].to_s, None);
    }
}
