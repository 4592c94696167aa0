//! A verdict as soon as the evidence suffices, without a fixed wait.

use super::SharedEvidence;
use super::chance::{inverse_ratio, log_likelihood, needed};
use super::coincidence::{Coincidence, FastRetransmits};
use crate::params::Params;
use crate::policy::PolicyCx;
use crate::view::PathId;

/// Time after a path's first DATA during which its fast retransmits do not count, in RTTs.
pub(super) const START_RTTS: u32 = 10;

/// The matches of mTCP's section 3.2.1, tested after each fast retransmit.
///
/// The paper waits for enough events that a ratio just above delta could not be chance. Most
/// shared bottlenecks show a ratio far above delta, which takes fewer events. With k matches of n
/// events, and p the probability that an event matches by chance, the statistic
///
/// 1 / ((n + 1) · C(n, k) · p^k · (1 - p)^(n - k))
///
/// is the likelihood of k matches if every probability of a match is equally likely, over that with
/// p. For independent paths it *ever* reaches 1 / zeta with a probability of at most zeta (Ville's
/// inequality), so it may be tested after each event. The paths share a bottleneck if it reaches
/// that, and k / n is above delta and above p.
///
/// - Events of one path less than `interval` apart count as one, because they are of one
///   congestion.
/// - p = 1 - exp(-2 · interval · events per second), for the path with more events.
/// - zeta is divided by 1 + RTT / interval, the number of lags tried that do not overlap.
/// - Slow start ends with losses, and paths that start together have them together, shared or not.
///   So the first 10 RTTs do not count.
///
/// Paths with the same rate, RTT and queue and without other flows lose at the same times for ever,
/// if they began at the same time. No rule that knows only these times can tell them from paths
/// with one bottleneck.
#[derive(Copy, Clone, Debug)]
pub struct Sequential {
    interval_s: f64,
    delta: f64,
    zeta: f64,
}

impl Sequential {
    /// With the parameters of a configuration.
    pub fn new(config: &Params) -> Sequential {
        Sequential {
            interval_s: config.shared_interval.as_secs_f64(),
            delta: config.shared_delta,
            zeta: config.shared_zeta,
        }
    }

    /// True if a fast retransmit of a path counts as another congestion.
    pub(super) fn counts(
        &self,
        events: &mut FastRetransmits,
        cx: &PolicyCx<'_>,
        path: PathId,
    ) -> bool {
        let Some((begun, latest)) = events.latest(path) else { return false };
        let srtt = cx.path(path).and_then(|p| p.srtt).unwrap_or_default();
        match latest {
            Some(latest) => (cx.now - latest).as_secs_f64() >= self.interval_s,
            None if cx.now - begun < srtt * START_RTTS => {
                events.count_from(cx.now, path);
                false
            }
            None => true,
        }
    }

    /// Judges two paths by their fast retransmits.
    pub(super) fn judge(&self, pair: &Coincidence) -> SharedEvidence {
        let p = 1.0 - (-2.0 * self.interval_s * pair.rate()).exp();
        let lags = 1.0 + pair.rtt_s / self.interval_s;
        let needed = needed(p, self.zeta / lags);
        let mut evidence = pair.evidence(self.delta, needed);
        let ratio = evidence.ratio();
        if ratio > p {
            let (n, k) = (pair.fewer(), pair.matched);
            let ratio = inverse_ratio(n, k, log_likelihood(n, k, p));
            evidence.chance = (ratio * lags).min(1.0);
        }
        evidence.is_shared = ratio > self.delta && evidence.chance <= self.zeta;
        evidence
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::Config;
    use crate::policy::path_set::shared::{MtcpMatch, SharedPolicy};
    use crate::policy::tests::{cx, view};
    use crate::view::PathView;
    use crate::{Instant, Rng};

    /// The first verdict on two paths with an RTT of 50 ms that enter fast retransmit at these
    /// milliseconds.
    fn first_verdict(s: &[u64], t: &[u64]) -> Option<(u64, SharedEvidence)> {
        let config = Config::build("fast", "mtcp", &[]).expect("valid");
        let mut policy = MtcpMatch::new(&config);
        let srtt = Some(Duration::from_millis(50));
        let paths = [0, 1].map(|id| PathView { srtt, ..view(id) });
        let mut rng = Rng::from_number(1);
        for id in [PathId(0), PathId(1)] {
            policy.begin(Instant::ZERO, id);
        }
        let of = |times: &[u64], id| times.iter().map(|&ms| (ms, PathId(id))).collect::<Vec<_>>();
        let mut events = [of(s, 0), of(t, 1)].concat();
        events.sort_unstable();
        events.into_iter().find_map(|(ms, path)| {
            let mut at = cx(&paths, 0, &mut rng);
            at.now = Instant::from_millis(ms);
            let found = policy.on_fast_retransmit(&at, path).into_iter().find(|e| e.is_shared);
            found.map(|evidence| (ms, evidence))
        })
    }

    #[test]
    fn a_clear_case_does_not_wait_for_what_a_close_one_needs() {
        // Every 1.5 s on both: p = 0.125; 1.5 · (n + 1) · 0.125^n is below 0.05 from n = 3 on. The
        // paper's rule with an interval of 200 ms would wait for 31 events, 46 s.
        let s: Vec<u64> = (1..=40).map(|n| n * 1500).collect();
        let t: Vec<u64> = s.iter().map(|at| at + 30).collect();
        let (at, evidence) = first_verdict(&s, &t).expect("found");
        assert_eq!((at, evidence.events, evidence.matched), (4530, (3, 3), 3));
        assert_eq!(evidence.needed, Some(3));
        assert!(evidence.chance < 0.05, "{evidence:?}");
        // Half of those of one path have nobody near: later, and on more evidence.
        let u: Vec<u64> = s.iter().map(|at| at + if at % 4500 == 0 { 700 } else { 30 }).collect();
        let (later, evidence) = first_verdict(&s, &u).expect("found");
        assert!(later > at && evidence.ratio() < 1.0 && evidence.ratio() > 0.5, "{evidence:?}");
        let apart: Vec<u64> = s.iter().map(|at| at + 700).collect();
        assert_eq!(first_verdict(&s, &apart), None);
    }

    #[test]
    fn one_congestion_counts_once_and_slow_start_not_at_all() {
        // Five in a row on each path, 20 ms apart, are one congestion; and the first 500 ms are
        // slow start.
        let burst: Vec<u64> = (0..5).map(|n| 9000 + 20 * n).collect();
        assert_eq!(first_verdict(&burst, &burst), None, "one congestion");
        let early = [100, 210, 320, 430, 9000];
        assert_eq!(first_verdict(&early, &early), None, "the start, and one");
        let late: Vec<u64> = early.iter().map(|at| at + 5000).collect();
        let (at, evidence) = first_verdict(&late, &late).expect("found");
        assert!(at <= 5430 && evidence.matched >= 2, "{at} {evidence:?}");
    }

    #[test]
    fn independent_paths_are_told_apart_as_often_as_promised() {
        // Poisson processes with a mean of 1.5 s between events, a minute each; what is found at
        // any time counts.
        let mut rng = Rng::from_number(7);
        let mut minute = || {
            let (mut at, mut times) = (1000.0, Vec::new());
            while at < 60_000.0 {
                at += -1500.0 * (1.0 - rng.unit()).ln();
                times.push(at as u64);
            }
            times
        };
        let runs = 400;
        let wrong = (0..runs).filter(|_| first_verdict(&minute(), &minute()).is_some()).count();
        assert!(wrong <= runs / 20, "{wrong} of {runs} with zeta = 0.05");
    }
}
