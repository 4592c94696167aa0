//! Shared congestion from the times of fast retransmits (mTCP paper, section 3.2).

use super::sequential::Sequential;
use super::together::{FastRetransmits, Together};
use super::{SharedEvidence, SharedPolicy};
use crate::config::{Config, SharedVerdict};
use crate::path::PathId;
use crate::policy::PolicyCx;
use crate::time::Instant;

/// Two paths share congestion if more than the share `delta` of the fast retransmits of one are at most
/// `interval` from one of the other: ratio = match / min(m, n).
///
/// It is judged by the rule `shared_verdict` says: after a wait, as here, or [one by one](Sequential).
///
/// The wait is for m = -ln(zeta) / D(delta || p) events, where D is the Kullback-Leibler divergence and
/// p = 2 interval / min(mean time between events): then chance alone makes paths that are independent look
/// correlated with probability zeta at most (Chernoff). The search for the lag makes chance matches likelier than the
/// bound says.
#[derive(Debug)]
pub struct MtcpMatch {
    events: FastRetransmits,
    rule: Rule,
}

/// How the matches are judged.
#[derive(Copy, Clone, Debug)]
enum Rule {
    Wait(Wait),
    Sequential(Sequential),
}

/// The rule of the paper.
#[derive(Copy, Clone, Debug)]
struct Wait {
    interval_s: f64,
    delta: f64,
    zeta: f64,
}

impl MtcpMatch {
    /// With the parameters of a configuration.
    pub fn new(config: &Config) -> MtcpMatch {
        let interval_s = config.shared_interval.as_secs_f64();
        let (delta, zeta) = (config.shared_delta, config.shared_zeta);
        MtcpMatch {
            events: FastRetransmits::new(config.shared_interval, config.shared_lag_step),
            rule: match config.shared_verdict {
                SharedVerdict::Wait => Rule::Wait(Wait { interval_s, delta, zeta }),
                SharedVerdict::Sequential => Rule::Sequential(Sequential::new(config)),
            },
        }
    }
}

impl Wait {
    /// What the fast retransmits of two paths say.
    fn judge(&self, pair: &Together) -> SharedEvidence {
        let p = 2.0 * self.interval_s * pair.rate();
        let needed = events_needed(self.zeta, self.delta, p);
        let mut evidence = pair.evidence(self.delta, needed);
        let ratio = evidence.ratio();
        if ratio > p {
            evidence.chance = (-f64::from(pair.fewer()) * divergence(ratio, p)).exp();
        }
        let may_judge = needed.is_some_and(|needed| pair.fewer() >= needed);
        evidence.is_shared = may_judge && ratio > self.delta;
        evidence
    }
}

/// m = -ln(zeta) / D(delta || p), rounded up, at least one; `None` if p is not below delta, where the ratio says
/// nothing.
fn events_needed(zeta: f64, delta: f64, p: f64) -> Option<u32> {
    if p >= delta {
        return None;
    }
    let needed = (-zeta.ln() / divergence(delta, p)).ceil();
    (needed < f64::from(u32::MAX)).then_some((needed as u32).max(1))
}

/// The Kullback-Leibler divergence D(a || p) of two probabilities, 0 < a, 0 < p < 1.
fn divergence(a: f64, p: f64) -> f64 {
    let rest = if a < 1.0 { (1.0 - a) * ((1.0 - a) / (1.0 - p)).ln() } else { 0.0 };
    a * (a / p).ln() + rest
}

impl SharedPolicy for MtcpMatch {
    fn begin(&mut self, now: Instant, path: PathId) {
        self.events.begin(now, path);
    }

    fn end(&mut self, path: PathId) {
        self.events.end(path);
    }

    fn on_fast_retransmit(&mut self, cx: &PolicyCx<'_>, path: PathId) -> Vec<SharedEvidence> {
        if let Rule::Sequential(rule) = &self.rule
            && !rule.counts(&mut self.events, cx, path)
        {
            return Vec::new();
        }
        if !self.events.note(cx.now, path) {
            return Vec::new();
        }
        let pairs = self.events.pairs(cx, path).into_iter();
        match &self.rule {
            Rule::Wait(rule) => pairs.map(|pair| rule.judge(&pair)).collect(),
            Rule::Sequential(rule) => pairs.map(|pair| rule.judge(&pair)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
            "path 1 and path 2 share a bottleneck: 8 of 8 fast retransmits came on both together (100 %; more than 50 % of \
             6 or more were needed; by chance with a probability below 0.1 %)"
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
}
