//! One path for all SACKs (mTCP paper, sections 3.1.5, 3.3 and 3.5.2).

use std::time::Duration;

use smallvec::SmallVec;

use super::AckPathPolicy;
use crate::params::Params;
use crate::policy::PolicyCx;
use crate::time::Instant;
use crate::view::{PathId, PathState, PathView};

/// All SACKs take the primary path, which keeps them in order. The primary is the path with the
/// best [score](PathView::score) among active paths that bring DATA. An election takes place
///
/// - as soon as a path's RTT and that of the path of the handshake are known (section 3.3: "the
///   reverse path will always be the RON path"). Each path joins once, so these elections end;
/// - when the primary has failed, as far as this side or the peer knows, or has brought no DATA for
///   `silence_rtos` RTO while other paths have (section 3.5.2);
/// - when another path has a much higher score, as section 3.4.2 has it for paths with data. The
///   score must be `path_addition_gain` times that of the primary, and is compared every
///   `path_review_interval`. That also holds for a path that comes back, so that a path that fails
///   often does not take the SACKs each time.
///
/// A host that sends no DATA knows no loss rates, so its scores depend on RTTs alone.
#[derive(Debug)]
pub struct Primary {
    silence_rtos: u32,
    /// Factor by which a path must be better for SACKs to leave a working one.
    gain: f64,
    review: Option<Duration>,
    reviewed: Instant,
    /// The paths that took part in an election.
    compared: SmallVec<[PathId; 8]>,
    /// Since when DATA comes only on other paths, as seen when SACKs were sent.
    others_since: Option<Instant>,
    /// True if the peer has reported that SACKs do not arrive.
    is_reported: bool,
}

impl Primary {
    /// With the thresholds of a configuration.
    pub fn new(config: &Params) -> Primary {
        Primary {
            silence_rtos: config.silence_rtos,
            gain: f64::from(config.path_addition_gain),
            review: config.path_review_interval,
            reviewed: Instant::ZERO,
            compared: SmallVec::new(),
            others_since: None,
            is_reported: false,
        }
    }

    /// True if the primary can no longer carry SACKs.
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

    /// Elects a path in place of a failed one. If no path is active, a potentially failed path that
    /// brings DATA is better than one that brings none. The repeated DATA comes with a heartbeat
    /// each time, before the answer that makes its path active.
    fn elect(
        &mut self,
        cx: &mut PolicyCx<'_>,
        failed: &PathView,
        last_data: Option<PathId>,
    ) -> Option<PathId> {
        let (primary, since) = (cx.primary, self.others_since);
        let brings_data = |p: &PathView| match since {
            Some(since) => p.last_data_received >= Some(since),
            None => Some(p.id) == last_data,
        };
        let may_be = |p: &PathView| p.id != primary && p.state == PathState::Active;
        let mut elected = cx.argmax(|p| may_be(p) && brings_data(p), PathView::score);
        if self.is_reported {
            elected = elected.or_else(|| cx.argmax(may_be, PathView::score));
        }
        if failed.state == PathState::Inactive || self.is_silent(cx.now, failed) {
            let is_doubtful = |p: &PathView| p.state == PathState::PotentiallyFailed;
            let brings_data = |p: &PathView| is_doubtful(p) && brings_data(p);
            elected = elected.or_else(|| cx.argmax(brings_data, PathView::score));
        }
        if elected.is_some() {
            (self.others_since, self.is_reported) = (None, false);
        }
        elected
    }

    /// A path that is much better than a working primary.
    fn better(&mut self, cx: &mut PolicyCx<'_>, primary: &PathView) -> Option<PathId> {
        let (now, rtos) = (cx.now, self.silence_rtos);
        let brings_data =
            |p: &PathView| p.last_data_received.is_some_and(|at| now - at <= p.rto * rtos);
        let may_be =
            |p: &PathView| p.state == PathState::Active && p.srtt.is_some() && brings_data(p);
        let joins = |p: &PathView| may_be(p) && !self.compared.contains(&p.id);
        let has_new = cx.paths.iter().any(joins);
        let is_due = self.review.is_some_and(|interval| now - self.reviewed >= interval);
        if primary.srtt.is_none() || !has_new && !is_due {
            return None;
        }
        let new: SmallVec<[PathId; 8]> =
            cx.paths.iter().filter(|p| joins(p)).map(|p| p.id).collect();
        self.compared.extend(new);
        let gain = if has_new { 1.0 } else { self.gain };
        let is_better = |p: &PathView| p.score() > gain * primary.score();
        let best = cx.argmax(|p| may_be(p) && is_better(p), PathView::score);
        self.reviewed = now;
        best
    }
}

impl AckPathPolicy for Primary {
    fn choose(&mut self, cx: &mut PolicyCx<'_>, last_data: Option<PathId>) -> Option<PathId> {
        let primary = cx.path(cx.primary)?.clone();
        let elected = if self.has_failed(cx.now, &primary, last_data) {
            self.elect(cx, &primary, last_data)
        } else {
            self.better(cx, &primary)
        };
        elected.or(Some(primary.id))
    }

    fn primary_failed(&mut self) {
        self.is_reported = true;
    }

    fn is_silent(&self, now: Instant, path: &PathView) -> bool {
        let max = path.rto * self.silence_rtos;
        path.last_data_received.is_none_or(|at| now - at > max)
    }

    fn forget(&mut self, path: PathId) {
        self.compared.retain(|id| *id != path);
    }

    fn elects(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::Config;
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

    /// Both ends repeated DATA and a heartbeat each minute, and answered on dead paths for ever.
    #[test]
    fn a_path_in_doubt_that_brings_data_is_better_than_a_dead_primary() {
        let mut p = policy();
        let mut all = paths([0, 0, 0]);
        assert_eq!(choose(&mut p, &all, 0, 0), Some(PathId(0)));
        (all[0].state, all[1].state) = (PathState::Inactive, PathState::PotentiallyFailed);
        all[1].last_data_received = Some(at(60_000));
        all[2].state = PathState::Inactive;
        assert_eq!(choose(&mut p, &all, 60_000, 1), Some(PathId(1)));
        all[0].state = PathState::PotentiallyFailed;
        assert_eq!(choose(&mut policy(), &all, 60_000, 1), Some(PathId(1)), "silent as well");
        all[0].last_data_received = Some(at(59_900));
        assert_eq!(choose(&mut policy(), &all, 60_000, 1), Some(PathId(0)), "no worse");
    }

    #[test]
    fn sacks_stay_on_the_primary_wherever_data_comes_from() {
        let mut p = policy();
        for ms in 0..100 {
            let paths = paths([ms * 100, ms * 100, ms * 100]);
            assert_eq!(choose(&mut p, &paths, ms * 100, (ms % 3) as u8), Some(PathId(0)));
        }
    }

    /// The round-trip times of three paths, in ms; all bring DATA now.
    fn measured(srtt: [Option<u64>; 3], now: u64) -> Vec<PathView> {
        let measured = paths([now; 3]).into_iter().zip(srtt);
        measured.map(|(p, ms)| PathView { srtt: ms.map(Duration::from_millis), ..p }).collect()
    }

    #[test]
    fn the_best_path_is_the_primary_once_the_round_trip_times_are_known() {
        let mut p = policy();
        let unknown = measured([None, Some(20), None], 100);
        assert_eq!(choose(&mut p, &unknown, 100, 1), Some(PathId(0)), "not compared yet");
        let known = measured([Some(400), Some(20), None], 400);
        assert_eq!(choose(&mut p, &known, 400, 1), Some(PathId(1)));
    }

    #[test]
    fn each_path_joins_once_and_must_be_much_better_later() {
        let mut p = policy();
        let mut at_primary = |srtt: Option<u64>, third: Option<u64>, now: u64| {
            let paths = measured([Some(100), srtt, third], now);
            choose(&mut p, &paths, now, 0)
        };
        assert_eq!(at_primary(Some(101), None, 100), Some(PathId(0)));
        assert_eq!(at_primary(Some(60), None, 200), Some(PathId(0)), "took part before");
        assert_eq!(at_primary(Some(95), Some(90), 300), Some(PathId(2)), "is new");
        assert_eq!(at_primary(Some(60), Some(90), 400), Some(PathId(0)));
        assert_eq!(at_primary(Some(40), Some(90), 10_299), Some(PathId(0)), "not every moment");
        assert_eq!(at_primary(Some(51), Some(90), 10_400), Some(PathId(0)), "not twice as good");
        assert_eq!(at_primary(Some(40), Some(90), 20_300), Some(PathId(0)));
        assert_eq!(at_primary(Some(40), Some(90), 20_400), Some(PathId(1)), "2.5 times");
    }

    #[test]
    fn a_path_that_brings_no_data_is_not_elected() {
        let mut p = policy();
        let mut known = measured([Some(400), Some(20), Some(50)], 5000);
        known[1].last_data_received = None; // a spare of the peer's
        known[2].last_data_received = Some(at(2900)); // set aside
        assert_eq!(choose(&mut p, &known, 5000, 0), Some(PathId(0)));
        known[2].last_data_received = Some(at(3100));
        assert_eq!(choose(&mut p, &known, 5000, 0), Some(PathId(2)));
    }

    #[test]
    fn a_silent_primary_is_replaced_by_the_best_path_that_brings_data() {
        let mut p = policy();
        let mut three = paths([1000, 1100, 1100]);
        assert_eq!(choose(&mut p, &three, 1100, 1), Some(PathId(0)));
        three[2].srtt = Some(Duration::from_millis(50));
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
