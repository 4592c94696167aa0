//! Shared congestion from the times of fast retransmits (mTCP paper, section 3.2).

use std::collections::VecDeque;
use std::time::Duration;

use super::{SharedEvidence, SharedPolicy};
use crate::config::Config;
use crate::path::PathId;
use crate::policy::PolicyCx;
use crate::time::Instant;

/// Fast retransmits that are remembered of a path. The paper sets no bound; its longest run has some hundred.
const MOST_EVENTS: usize = 1024;

/// Steps of the search for the lag, to each side, at most; a longer RTT makes longer steps.
const MOST_STEPS: u32 = 200;

/// Two paths share congestion if more than the share `delta` of the fast retransmits of one are at most
/// `interval` from one of the other: ratio = match / min(m, n).
///
/// - The matching is one to one and as large as can be.
/// - It is judged only after m = -ln(zeta) / D(delta || p) events, where D is the Kullback-Leibler divergence and
///   p = 2 interval / min(mean time between events): then chance alone makes paths that are independent look
///   correlated with probability zeta at most (Chernoff).
/// - Paths of different latency: of all shifts of one sequence within one RTT, in steps of `shared_lag_step`,
///   the one with the most matches counts. That makes chance matches likelier than the bound says.
#[derive(Debug)]
pub struct MtcpMatch {
    interval: Duration,
    delta: f64,
    zeta: f64,
    lag_step: Duration,
    /// By path; `None` for those that carry no data.
    seen: Vec<Option<Seen>>,
}

/// The fast retransmits of a path.
#[derive(Debug)]
struct Seen {
    /// From when on they are all here.
    since: Instant,
    times: VecDeque<Instant>,
}

impl Seen {
    /// Those from `since` on, in nanoseconds.
    fn from(&self, since: Instant) -> Vec<i128> {
        let times = self.times.iter().filter(|&&at| at >= since);
        times.map(|at| i128::from(at.as_nanos())).collect()
    }
}

impl MtcpMatch {
    /// With the parameters of a configuration.
    pub fn new(config: &Config) -> MtcpMatch {
        MtcpMatch {
            interval: config.shared_interval,
            delta: config.shared_delta,
            zeta: config.shared_zeta,
            lag_step: config.shared_lag_step,
            seen: Vec::new(),
        }
    }

    /// What the fast retransmits of two paths say at `now`; `None` while one of them has none.
    fn compare(
        &self,
        now: Instant,
        pair: (PathId, PathId),
        rtt: Duration,
    ) -> Option<SharedEvidence> {
        let seen = |id: PathId| self.seen.get(id.index())?.as_ref();
        let (a, b) = (seen(pair.0)?, seen(pair.1)?);
        let since = a.since.max(b.since);
        let (s, t) = (a.from(since), b.from(since));
        if s.is_empty() || t.is_empty() {
            return None;
        }
        let (matched, lag) = self.best_match(&s, &t, rtt);
        let most = s.len().max(t.len()) as f64;
        let elapsed = (now - since).as_secs_f64().max(self.interval.as_secs_f64());
        let p = 2.0 * self.interval.as_secs_f64() * most / elapsed;
        let needed = events_needed(self.zeta, self.delta, p);
        let count = |times: &[i128]| u32::try_from(times.len()).unwrap_or(u32::MAX);
        let mut evidence = SharedEvidence {
            paths: pair,
            events: (count(&s), count(&t)),
            matched,
            lag_s: lag as f64 / 1e9,
            threshold: self.delta,
            needed,
            is_shared: false,
        };
        let least = evidence.events.0.min(evidence.events.1);
        let may_judge = needed.is_some_and(|needed| least >= needed);
        evidence.is_shared = may_judge && evidence.ratio() > self.delta;
        Some(evidence)
    }

    /// The most matches at any lag of `t` behind `s` within one RTT, and that lag in nanoseconds; of several the
    /// one nearest to zero.
    fn best_match(&self, s: &[i128], t: &[i128], rtt: Duration) -> (u32, i128) {
        let step = self.lag_step.max(rtt / MOST_STEPS).as_nanos() as i128;
        let (rtt, interval) = (rtt.as_nanos() as i128, self.interval.as_nanos() as i128);
        let mut best = (matches(s, t, 0, interval), 0);
        let mut lag = step;
        while lag < rtt && best.0 < s.len().min(t.len()) {
            for lag in [lag, -lag] {
                let found = matches(s, t, lag, interval);
                if found > best.0 {
                    best = (found, lag);
                }
            }
            lag += step;
        }
        (best.0 as u32, best.1)
    }
}

/// The largest number of disjoint pairs (s, t) with |s - (t - lag)| < interval. For times in order, the earliest
/// that fit each other can always be paired.
fn matches(s: &[i128], t: &[i128], lag: i128, interval: i128) -> usize {
    let (mut i, mut j, mut found) = (0, 0, 0);
    while i < s.len() && j < t.len() {
        let apart = s[i] - (t[j] - lag);
        if apart.abs() < interval {
            (i, j, found) = (i + 1, j + 1, found + 1);
        } else if apart < 0 {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
}

/// m = -ln(zeta) / D(delta || p), rounded up, at least one; `None` if p is not below delta, where the ratio says
/// nothing.
fn events_needed(zeta: f64, delta: f64, p: f64) -> Option<u32> {
    if p >= delta {
        return None;
    }
    let rest = if delta < 1.0 { (1.0 - delta) * ((1.0 - delta) / (1.0 - p)).ln() } else { 0.0 };
    let divergence = delta * (delta / p).ln() + rest;
    let needed = (-zeta.ln() / divergence).ceil();
    (needed < f64::from(u32::MAX)).then_some((needed as u32).max(1))
}

impl SharedPolicy for MtcpMatch {
    fn begin(&mut self, now: Instant, path: PathId) {
        if self.seen.len() <= path.index() {
            self.seen.resize_with(path.index() + 1, || None);
        }
        self.seen[path.index()] = Some(Seen { since: now, times: VecDeque::new() });
    }

    fn end(&mut self, path: PathId) {
        if let Some(seen) = self.seen.get_mut(path.index()) {
            *seen = None;
        }
    }

    fn on_fast_retransmit(&mut self, cx: &PolicyCx<'_>, path: PathId) -> Vec<SharedEvidence> {
        let Some(Some(seen)) = self.seen.get_mut(path.index()) else { return Vec::new() };
        if seen.times.len() == MOST_EVENTS
            && let Some(oldest) = seen.times.pop_front()
        {
            seen.since = oldest + Duration::from_nanos(1);
        }
        seen.times.push_back(cx.now);
        let srtt = |id| cx.path(id).and_then(|p| p.srtt).unwrap_or_default();
        let others = cx.paths.iter().map(|p| p.id).filter(|&id| id != path);
        let pairs = others.map(|id| (id.min(path), id.max(path)));
        pairs.filter_map(|(a, b)| self.compare(cx.now, (a, b), srtt(a).max(srtt(b)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::PathView;
    use crate::policy::tests::{cx, view};

    fn policy(overrides: &[(&str, &str)]) -> MtcpMatch {
        let owned: Vec<_> =
            overrides.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        MtcpMatch::new(&Config::build("rfc9260", "mtcp", &owned).expect("valid"))
    }

    /// What the policy says after fast retransmits of two paths at these milliseconds.
    fn verdict(
        policy: &mut MtcpMatch,
        rtt_ms: u64,
        s: &[u64],
        t: &[u64],
    ) -> Option<SharedEvidence> {
        let srtt = Some(Duration::from_millis(rtt_ms));
        let paths = [0, 1].map(|id| PathView { srtt, ..view(id) });
        let mut rng = crate::Rng::from_number(1);
        for id in [PathId(0), PathId(1)] {
            policy.begin(Instant::ZERO, id);
        }
        let of = |times: &[u64], id| times.iter().map(|&ms| (ms, PathId(id))).collect::<Vec<_>>();
        let mut events = [of(s, 0), of(t, 1)].concat();
        events.sort_unstable();
        let mut last = None;
        for (ms, path) in events {
            let mut at = cx(&paths, 0, &mut rng);
            at.now = Instant::from_millis(ms);
            last = policy.on_fast_retransmit(&at, path).pop();
        }
        last
    }

    #[test]
    fn each_event_is_matched_once_and_as_many_as_can_be() {
        // Greedy from the left: 100 with 250, 300 with 350; 900 has nobody within 200 ms.
        assert_eq!(matches(&[100, 300, 900], &[250, 350], 0, 200), 2);
        assert_eq!(matches(&[100, 101, 102], &[100], 0, 200), 1, "one to one");
        assert_eq!(matches(&[0], &[200], 0, 200), 0, "less than the interval apart");
        assert_eq!(matches(&[0, 1000], &[300, 1300], 300, 10), 2, "shifted by the lag");
    }

    #[test]
    fn the_wait_is_that_of_the_chernoff_bound() {
        // Mean distance 4 s: p = 2 · 0.2 / 4 = 0.1, D(0.5 || 0.1) = 0.5108, 2.996 / 0.5108 = 5.86.
        assert_eq!(events_needed(0.05, 0.5, 0.1), Some(6));
        // 1 s: p = 0.4, D = 0.02041, 146.8.
        assert_eq!(events_needed(0.05, 0.5, 0.4), Some(147));
        assert_eq!(events_needed(0.05, 0.5, 0.5), None, "chance alone reaches delta");
        assert_eq!(events_needed(0.9, 0.5, 0.01), Some(1));
    }

    #[test]
    fn paths_that_lose_together_share_a_bottleneck_once_there_are_enough_events() {
        let s: Vec<u64> = (1..=8).map(|n| n * 4000).collect();
        let t: Vec<u64> = s.iter().map(|at| at + 50).collect();
        let few = verdict(&mut policy(&[]), 100, &s[..4], &t[..4]).expect("events");
        assert!(!few.is_shared && few.ratio() == 1.0, "{few:?}");
        let enough = verdict(&mut policy(&[]), 100, &s, &t).expect("events");
        assert!(enough.is_shared, "{enough:?}");
        assert_eq!((enough.events, enough.matched, enough.needed), ((8, 8), 8, Some(6)));
        assert_eq!(
            enough.to_string(),
            "path 1 and path 2 share a bottleneck: 8 of 8 fast retransmits came on both together (100 %, and more than \
             50 % of 6 are enough)"
        );
        let apart: Vec<u64> = s.iter().map(|at| at + 2000).collect();
        let independent = verdict(&mut policy(&[]), 100, &s, &apart).expect("events");
        assert!(!independent.is_shared && independent.matched == 0, "{independent:?}");
    }

    #[test]
    fn a_lag_of_less_than_one_rtt_is_found() {
        let s: Vec<u64> = (1..=8).map(|n| n * 4000).collect();
        let late: Vec<u64> = s.iter().map(|at| at + 380).collect();
        let found = verdict(&mut policy(&[]), 400, &s, &late).expect("events");
        assert_eq!((found.matched, found.is_shared), (8, true));
        assert!((0.18..0.4).contains(&found.lag_s), "{found:?}");
        let too_late = verdict(&mut policy(&[]), 100, &s, &late).expect("events");
        assert_eq!(too_late.matched, 0, "an RTT of 100 ms explains no lag of 380 ms");
    }

    #[test]
    fn a_path_that_begins_anew_is_judged_by_what_comes_after() {
        let mut p = policy(&[]);
        let s: Vec<u64> = (1..=8).map(|n| n * 4000).collect();
        assert!(verdict(&mut p, 100, &s, &s).expect("events").is_shared);
        p.end(PathId(1));
        let paths = [view(0), view(1)];
        let mut rng = crate::Rng::from_number(1);
        let mut at = cx(&paths, 0, &mut rng);
        at.now = Instant::from_millis(40_000);
        assert_eq!(p.on_fast_retransmit(&at, PathId(0)), [], "nothing to compare with");
        p.begin(Instant::from_millis(41_000), PathId(1));
        at.now = Instant::from_millis(42_000);
        assert_eq!(p.on_fast_retransmit(&at, PathId(1)), [], "path 0 had none since");
    }

    #[test]
    fn memory_is_bounded() {
        let mut p = policy(&[]);
        let s: Vec<u64> = (1..=3000).map(|n| n * 1000).collect();
        let found = verdict(&mut p, 100, &s, &s[..1]).or_else(|| verdict(&mut p, 100, &s, &s));
        assert!(found.is_some_and(|f| f.events.0 as usize <= MOST_EVENTS), "{found:?}");
    }
}
