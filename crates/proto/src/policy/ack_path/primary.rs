//! One path for all SACKs (mTCP paper, sections 3.1.5 and 3.5.2).

use super::AckPathPolicy;
use crate::config::Config;
use crate::path::{PathId, PathState, PathView};
use crate::policy::PolicyCx;
use crate::time::Instant;

/// All SACKs take the primary path, so that they keep their order. When that path has failed, as far as this side
/// or the peer knows, or has brought no DATA for `silence_rtos` RTO while other paths have, another becomes the primary: of the active paths that bring
/// DATA the one with the best score.
#[derive(Debug)]
pub struct Primary {
    silence_rtos: u32,
    /// Since when DATA comes on other paths only, as far as SACKs have shown.
    others_since: Option<Instant>,
    /// The peer says that SACKs do not arrive.
    is_reported: bool,
}

impl Primary {
    /// With the thresholds of a configuration.
    pub fn new(config: &Config) -> Primary {
        Primary { silence_rtos: config.silence_rtos, others_since: None, is_reported: false }
    }

    /// The primary is not to be relied on any more.
    fn has_failed(&mut self, now: Instant, primary: &PathView, last_data: Option<PathId>) -> bool {
        let broken = self.is_reported
            || matches!(primary.state, PathState::PotentiallyFailed | PathState::Inactive);
        let speaks = last_data.is_none_or(|id| id == primary.id)
            || self.others_since.is_some_and(|since| primary.last_data_received >= Some(since));
        if speaks {
            self.others_since = None;
            return broken;
        }
        let since = *self.others_since.get_or_insert(now);
        broken || now - since > primary.rto * self.silence_rtos
    }
}

impl AckPathPolicy for Primary {
    fn choose(&mut self, cx: &mut PolicyCx<'_>, last_data: Option<PathId>) -> Option<PathId> {
        let primary = cx.path(cx.primary)?.clone();
        if !self.has_failed(cx.now, &primary, last_data) {
            return Some(primary.id);
        }
        let since = self.others_since;
        let brings_data = |p: &PathView| match since {
            Some(since) => p.last_data_received >= Some(since),
            None => Some(p.id) == last_data,
        };
        let may_be = |p: &PathView| p.id != primary.id && p.state == PathState::Active;
        let mut elected = cx.argmax(|p| may_be(p) && brings_data(p), PathView::score);
        if self.is_reported {
            elected = elected.or_else(|| cx.argmax(may_be, PathView::score));
        }
        if elected.is_some() {
            (self.others_since, self.is_reported) = (None, false);
        }
        elected.or(Some(primary.id))
    }

    fn primary_failed(&mut self) {
        self.is_reported = true;
    }

    fn elects(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::tests::{cx, view};

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Three paths; the last DATA came on each at these milliseconds. RTO is 1 s.
    fn paths(heard: [u64; 3]) -> Vec<PathView> {
        let srtt = Some(Duration::from_millis(100));
        let heard = heard.iter().enumerate();
        heard
            .map(|(id, &ms)| PathView { last_data_received: Some(at(ms)), srtt, ..view(id as u8) })
            .collect()
    }

    fn choose(p: &mut Primary, paths: &[PathView], ms: u64, last: u8) -> Option<PathId> {
        let mut rng = crate::Rng::from_number(1);
        let mut cx = cx(paths, 0, &mut rng);
        cx.now = at(ms);
        p.choose(&mut cx, Some(PathId(last)))
    }

    fn policy() -> Primary {
        Primary::new(&Config::build("rfc9260", "mtcp", &[]).expect("valid"))
    }

    #[test]
    fn sacks_stay_on_the_primary_wherever_data_comes_from() {
        let mut p = policy();
        for ms in 0..100 {
            let paths = paths([ms * 100, ms * 100, ms * 100]);
            assert_eq!(choose(&mut p, &paths, ms * 100, (ms % 3) as u8), Some(PathId(0)));
        }
    }

    #[test]
    fn a_silent_primary_is_replaced_by_the_best_path_that_brings_data() {
        let mut p = policy();
        let mut three = paths([1000, 1100, 1100]);
        three[2].srtt = Some(Duration::from_millis(50));
        assert_eq!(choose(&mut p, &three, 1100, 1), Some(PathId(0)));
        three[1].last_data_received = Some(at(3050));
        three[2].last_data_received = Some(at(3050));
        assert_eq!(choose(&mut p, &three, 3050, 1), Some(PathId(0)), "not yet 2 RTO");
        three[1].last_data_received = Some(at(3150));
        assert_eq!(choose(&mut p, &three, 3150, 1), Some(PathId(2)), "half the RTT");
    }

    #[test]
    fn data_on_the_primary_between_two_sacks_counts() {
        let mut p = policy();
        assert_eq!(choose(&mut p, &paths([0, 1000, 0]), 1000, 1), Some(PathId(0)));
        assert_eq!(choose(&mut p, &paths([3900, 4000, 0]), 4000, 1), Some(PathId(0)));
    }

    #[test]
    fn an_idle_association_elects_nobody_when_data_comes_again() {
        let mut p = policy();
        assert_eq!(choose(&mut p, &paths([0, 900_000, 0]), 900_000, 1), Some(PathId(0)));
    }

    #[test]
    fn the_peer_may_know_first() {
        let mut p = policy();
        let three = paths([1000, 0, 0]);
        p.primary_failed();
        assert_ne!(choose(&mut p, &three, 1100, 0), Some(PathId(0)));
        assert_eq!(choose(&mut p, &three, 1100, 0), Some(PathId(0)), "once for each report");
    }

    #[test]
    fn a_primary_that_has_failed_is_replaced_at_once() {
        let mut p = policy();
        let mut three = paths([1000, 1100, 900]);
        three[0].state = PathState::PotentiallyFailed;
        assert_eq!(choose(&mut p, &three, 1100, 1), Some(PathId(1)));
    }
}
