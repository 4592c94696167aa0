//! Shared congestion from the times of fast retransmits (mTCP paper, section 3.2).

use super::coincidence::{Coincidence, FastRetransmits};
use super::sequential::Sequential;
use super::{SharedEvidence, SharedPolicy};
use crate::params::{Params, SharedVerdict};
use crate::policy::PolicyCx;
use crate::time::Instant;
use crate::view::PathId;

/// Two paths share congestion if more than the share `delta` of the fast retransmits of one are at
/// most `interval` from one of the other: ratio = match / min(m, n).
///
/// The rule that `shared_verdict` names decides. Two rules are those of section 3.2.2; the third is
/// [another test](Sequential). Let n be the events of the path with fewer of them, D the
/// Kullback-Leibler divergence, and p = 2 interval / min(mean time between events) the probability
/// that an event matches by chance. Then chance brings a ratio of at least r > p with a probability
/// of at most exp(-n D(r || p)) (Chernoff).
///
/// - `measured`: the verdict needs a bound of at most zeta at the measured ratio.
/// - `wait`, the letter of the section: the verdict needs m = -ln(zeta) / D(delta || p) events, for
///   which the bound at delta is zeta, whatever the ratio. That takes at least 23 s with an
///   interval of 200 ms, delta = 0.5 and zeta = 0.05; the section's own Table 5 begins at 3.2 s.
///
/// The search for the lag makes chance matches more likely than this bound.
#[derive(Debug)]
pub struct MtcpMatch {
    events: FastRetransmits,
    rule: Rule,
}

/// The rule for a verdict.
#[derive(Copy, Clone, Debug)]
enum Rule {
    Measured(Chernoff),
    Wait(Chernoff),
    Sequential(Sequential),
}

/// The two rules by the Chernoff bound.
#[derive(Copy, Clone, Debug)]
struct Chernoff {
    interval_s: f64,
    delta: f64,
    zeta: f64,
}

impl MtcpMatch {
    /// With the parameters of a configuration.
    pub fn new(config: &Params) -> MtcpMatch {
        let interval_s = config.shared_interval.as_secs_f64();
        let (delta, zeta) = (config.shared_delta, config.shared_zeta);
        let bound = Chernoff { interval_s, delta, zeta };
        MtcpMatch {
            events: FastRetransmits::new(config.shared_interval, config.shared_lag_step),
            rule: match config.shared_verdict {
                SharedVerdict::Measured => Rule::Measured(bound),
                SharedVerdict::Wait => Rule::Wait(bound),
                SharedVerdict::Sequential => Rule::Sequential(Sequential::new(config)),
            },
        }
    }
}

impl Chernoff {
    /// The evidence on two paths by the bound at the measured ratio.
    fn measured(&self, pair: &Coincidence) -> SharedEvidence {
        let p = self.by_chance(pair);
        // The fewest events suffice if all of them match.
        let mut evidence = self.evidence(pair, events_needed(self.zeta, 1.0, p));
        let is_likely = evidence.ratio() > self.delta && evidence.chance <= self.zeta;
        evidence.is_shared = is_likely;
        evidence
    }

    /// The evidence on two paths by the bound at delta, after the wait.
    fn after_wait(&self, pair: &Coincidence) -> SharedEvidence {
        let needed = events_needed(self.zeta, self.delta, self.by_chance(pair));
        let mut evidence = self.evidence(pair, needed);
        let may_judge = needed.is_some_and(|needed| pair.fewer() >= needed);
        evidence.is_shared = may_judge && evidence.ratio() > self.delta;
        evidence
    }

    /// p: the approximate probability that an event matches by chance; above 1 if events are very
    /// frequent.
    fn by_chance(&self, pair: &Coincidence) -> f64 {
        2.0 * self.interval_s * pair.rate()
    }

    fn evidence(&self, pair: &Coincidence, needed: Option<u32>) -> SharedEvidence {
        let p = self.by_chance(pair);
        let mut evidence = pair.evidence(self.delta, needed);
        let ratio = evidence.ratio();
        if ratio > p {
            evidence.chance = (-f64::from(pair.fewer()) * divergence(ratio, p)).exp();
        }
        evidence
    }
}

/// m = -ln(zeta) / D(ratio || p), rounded up, at least 1; `None` if p is at least the ratio, which
/// then proves nothing.
fn events_needed(zeta: f64, ratio: f64, p: f64) -> Option<u32> {
    if p >= ratio {
        return None;
    }
    let needed = (-zeta.ln() / divergence(ratio, p)).ceil();
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
            Rule::Measured(rule) => pairs.map(|pair| rule.measured(&pair)).collect(),
            Rule::Wait(rule) => pairs.map(|pair| rule.after_wait(&pair)).collect(),
            Rule::Sequential(rule) => pairs.map(|pair| rule.judge(&pair)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::Config;
    use crate::policy::tests::{cx, view};
    use crate::view::PathView;

    fn policy(overrides: &[(&str, &str)]) -> MtcpMatch {
        let owned: Vec<_> =
            overrides.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        MtcpMatch::new(&Config::build("rfc9260", "mtcp", &owned).expect("valid"))
    }

    /// The policy's verdict after fast retransmits of two paths at these milliseconds.
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
    fn after_the_wait_paths_that_lose_together_share_a_bottleneck() {
        let wait = || policy(&[("shared_verdict", "wait"), ("shared_zeta", "0.05")]);
        let s: Vec<u64> = (1..=8).map(|n| n * 4000).collect();
        let t: Vec<u64> = s.iter().map(|at| at + 50).collect();
        let few = verdict(&mut wait(), 100, &s[..4], &t[..4]).expect("events");
        assert!(!few.is_shared && few.ratio() == 1.0, "{few:?}");
        let enough = verdict(&mut wait(), 100, &s, &t).expect("events");
        assert!(enough.is_shared, "{enough:?}");
        assert_eq!((enough.events, enough.matched, enough.needed), ((8, 8), 8, Some(6)));
        assert_eq!(
            enough.to_string(),
            "path 1 and path 2 share a bottleneck: 8 of 8 fast retransmits came on both together (100 %; more than 50 % of \
             6 or more were needed; by chance with a probability below 0.1 %)"
        );
        let apart: Vec<u64> = s.iter().map(|at| at + 2000).collect();
        let independent = verdict(&mut wait(), 100, &s, &apart).expect("events");
        assert!(!independent.is_shared && independent.matched == 0, "{independent:?}");
    }

    #[test]
    fn at_the_measured_ratio_the_bound_decides() {
        // One event in 2 s: p = 0.2 of two in 4.05 s; of n events that all match the bound is p^n.
        let s: Vec<u64> = (1..=8).map(|n| n * 2000).collect();
        let t: Vec<u64> = s.iter().map(|at| at + 50).collect();
        let of = |n: usize| verdict(&mut policy(&[]), 100, &s[..n], &t[..n]).expect("events");
        let (two, three) = (of(2), of(3));
        assert!(!two.is_shared && (0.035..0.04).contains(&two.chance), "0.1975^2: {two:?}");
        assert!(three.is_shared && three.chance < 0.02, "0.198^3: {three:?}");
        assert_eq!((three.events, three.needed), ((3, 3), Some(3)));
        let stricter = verdict(&mut policy(&[("shared_zeta", "0.001")]), 100, &s[..3], &t[..3]);
        assert!(!stricter.expect("events").is_shared, "zeta counts");
    }

    #[test]
    fn a_ratio_just_above_delta_takes_more_events_than_one_far_above() {
        // Of six events, one in 4 s, four match: D(0.667 || 0.1) = 0.934, exp(-5.6) = 0.004. Of
        // three, two: exp(-2.8) = 0.06.
        let s: Vec<u64> = (1..=6).map(|n| n * 4000).collect();
        let t: Vec<u64> =
            s.iter().map(|at| if at % 12_000 == 0 { at + 900 } else { *at }).collect();
        let of = |n: usize| verdict(&mut policy(&[]), 100, &s[..n], &t[..n]).expect("events");
        let (few, enough) = (of(3), of(6));
        assert_eq!((few.matched, few.is_shared), (2, false), "{few:?}");
        assert_eq!((enough.matched, enough.is_shared), (4, true), "{enough:?}");
        // However unlikely, half is not more than delta.
        let half: Vec<u64> = s.iter().map(|at| at + 900 * (at / 4000 % 2)).collect();
        let half = verdict(&mut policy(&[("shared_zeta", "0.9")]), 100, &s, &half).expect("events");
        assert_eq!((half.matched, half.is_shared), (3, false), "{half:?}");
        assert!(half.chance < 0.9);
    }

    #[test]
    fn events_so_frequent_that_chance_would_do_prove_nothing() {
        let s: Vec<u64> = (1..=100).map(|n| n * 390).collect();
        let all = verdict(&mut policy(&[]), 100, &s, &s).expect("events");
        assert_eq!((all.matched, all.is_shared, all.needed), (100, false, None), "{all:?}");
        assert!((all.chance - 1.0).abs() < 1e-12);
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
