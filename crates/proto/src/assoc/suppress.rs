//! Which of the paths that work carry data (mTCP paper, section 3.4).

use super::{AssocTimer, Association, PathTimer, Timer};
use crate::event::Event;
use crate::path::{Path, PathId, PathState, RestoreReason, Review, SuppressReason, Suppression};
use crate::policy::shared::SharedEvidence;
use crate::time::Instant;

impl Association {
    /// What is known of pairs of paths that may share a bottleneck, as of their latest signs of congestion.
    pub fn shared_pairs(&self) -> &[SharedEvidence] {
        &self.shared_pairs
    }

    /// The first DATA goes to a path.
    pub(super) fn begin_use(&mut self, now: Instant, id: PathId) {
        self.policies.shared.begin(now, id);
        if let Some(p) = self.paths.get_mut(id) {
            p.in_use_since = now;
            p.reviewed = [p.review(now); 2];
        }
    }

    /// A path is gone, or carries data no longer.
    pub(super) fn end_use(&mut self, id: PathId) {
        self.policies.shared.end(id);
    }

    /// Forgets what was found of a path together with others.
    pub(super) fn forget_pairs(&mut self, id: PathId) {
        self.shared_pairs.retain(|known| known.paths.0 != id && known.paths.1 != id);
    }

    /// A path enters fast retransmit: does it share a bottleneck with another?
    pub(super) fn look_for_shared_bottleneck(&mut self, now: Instant, id: PathId) {
        let found = self.decide(now, |policies, cx| policies.shared.on_fast_retransmit(cx, id));
        for evidence in found {
            self.note_pair(now, evidence);
        }
    }

    /// Data sent once on a path, at `sent_at`, is acknowledged: what does its delay say of paths with one bottleneck?
    #[inline(never)] // of the presets, `mtcp` alone asks
    pub(super) fn note_delay(&mut self, now: Instant, id: PathId, sent_at: Instant) {
        if !self.policies.shared.on_delay(now, id, sent_at) {
            return;
        }
        let found = self.decide(now, |policies, cx| policies.shared.review(cx));
        for evidence in found {
            self.note_pair(now, evidence);
        }
        let tried = self.policies.shared.tried();
        for p in self.paths.iter_mut() {
            p.is_tried = tried == Some(p.id);
        }
    }

    fn note_pair(&mut self, now: Instant, evidence: SharedEvidence) {
        let known = self.shared_pairs.iter_mut().find(|known| known.paths == evidence.paths);
        let was_shared = known.as_ref().is_some_and(|known| known.is_shared);
        match known {
            Some(known) => *known = evidence,
            None => self.shared_pairs.push(evidence),
        }
        if !evidence.is_shared {
            return;
        }
        // MP_d: as many paths as were asked for are kept, whatever they share.
        let (a, b) = evidence.paths;
        let may_suppress = self.paths_in_use() > self.config.paths_min as usize;
        let is_pair = [a, b].iter().all(|id| self.paths.get(*id).is_some_and(is_in_use));
        let suppressed = match self.throughput(now, a) < self.throughput(now, b) {
            true => a,
            false => b,
        };
        let suppressed = (may_suppress && is_pair).then_some(suppressed);
        if suppressed.is_some() || !was_shared {
            self.events.push_back(Event::SharedBottleneck { evidence, suppressed });
        }
        if let Some(path) = suppressed {
            self.suppress(now, path, SuppressReason::SharedBottleneck);
        }
    }

    fn paths_in_use(&self) -> usize {
        self.paths.iter().filter(|p| is_in_use(p)).count()
    }

    /// User bytes acknowledged per second on a path, over one to two intervals between reviews.
    fn throughput(&self, now: Instant, id: PathId) -> f64 {
        self.paths.get(id).map_or(0.0, |p| rate(now, p.reviewed[0], p))
    }

    fn suppress(&mut self, now: Instant, id: PathId, reason: SuppressReason) {
        self.set_aside(now, id, reason);
        if reason == SuppressReason::Slow {
            // It could hold the receiver's buffer for long. What is on its way over a shared bottleneck arrives.
            self.move_outstanding(id);
        }
        self.refresh_usable(now);
    }

    /// A path may carry no more data; [`refresh_usable`](Self::refresh_usable) must follow.
    pub(super) fn set_aside(&mut self, now: Instant, id: PathId, reason: SuppressReason) {
        let Some(p) = self.paths.get_mut(id) else { return };
        let loss_rate = p.known_loss_rate();
        p.suppressed = Some(Suppression { reason, since: now, loss_rate });
        self.end_use(id);
        self.events.push_back(Event::PathSuppressed { path: id, reason });
        self.timers.stop(Timer::Path(id, PathTimer::Silence));
    }

    /// Of the paths that work, at most `paths_max` may carry data: those with the best scores (mTCP paper, section
    /// 3.3). When one of them fails, the best spare takes its place at once.
    pub(super) fn keep_best(&mut self, now: Instant) {
        let Some(most) = self.config.paths_max else { return };
        self.leave_at_most(now, most as usize);
        while self.may_carry_data().count() < most as usize {
            let works = self.paths.iter().filter(|p| p.state == PathState::Active);
            let spares =
                works.filter(|p| p.suppressed.is_some_and(|s| s.reason == SuppressReason::Spare));
            let spares = spares.filter(|p| self.is_disjoint_from_used(p));
            let best = spares.map(|p| (p.id, p.score())).max_by(|a, b| worse_first(*a, *b));
            let Some((best, _)) = best else { return };
            self.restore(now, best, RestoreReason::TooFew);
        }
    }

    /// Sets paths aside as spares, the worst first, until at most so many are left.
    fn leave_at_most(&mut self, now: Instant, most: usize) {
        while self.may_carry_data().count() > most {
            let scored = self.may_carry_data().map(|p| (p.id, p.score()));
            let Some((worst, _)) = scored.min_by(|a, b| worse_first(*a, *b)) else { return };
            self.set_aside(now, worst, SuppressReason::Spare);
        }
    }

    /// The paths that work and are not set aside.
    pub(super) fn may_carry_data(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().filter(|p| p.state == PathState::Active && p.suppressed.is_none())
    }

    pub(super) fn restore(&mut self, now: Instant, id: PathId, reason: RestoreReason) {
        let Some(p) = self.paths.get_mut(id) else { return };
        p.suppressed = None;
        self.forget_pairs(id);
        self.begin_use(now, id);
        self.events.push_back(Event::PathRestored { path: id, reason });
    }

    /// Brings suppressed paths back while fewer than `paths_min` carry data: the best first. If others do, a path is
    /// left alone for one review interval.
    pub(super) fn restore_if_few(&mut self, now: Instant) {
        loop {
            let works = |p: &&Path| p.state == PathState::Active && p.suppressed.is_none();
            let count = self.paths.iter().filter(works).count();
            if count >= self.config.paths_min as usize {
                return;
            }
            let Some((best, _)) = self.best_suppressed(now, count == 0) else { return };
            self.restore(now, best, RestoreReason::TooFew);
        }
    }

    /// Of the suppressed paths that work the one with the best score. Unless it is urgent, one that shares its hops
    /// with a path in use is none of them.
    fn best_suppressed(&self, now: Instant, is_urgent: bool) -> Option<(PathId, f64)> {
        let interval = self.config.path_review_interval.unwrap_or_default();
        let may_return =
            |p: &&Path| p.suppressed.is_some_and(|s| is_urgent || now - s.since >= interval);
        let candidates = self.paths.iter().filter(|p| p.state == PathState::Active);
        let candidates = candidates.filter(may_return);
        let disjoint = candidates.filter(|p| is_urgent || self.is_disjoint_from_used(p));
        let scored = disjoint.map(|p| (p.id, p.score()));
        scored.max_by(|a, b| worse_first(*a, *b))
    }

    /// Data is sent: paths are to be reviewed after some time.
    pub(super) fn start_review(&mut self, now: Instant) {
        if let Some(interval) = self.config.path_review_interval {
            self.timers.start(Timer::Assoc(AssocTimer::Review), now + interval);
        }
    }

    /// The periodic review: paths that are too slow go, unused ones that promise more come.
    pub(super) fn review_paths(&mut self, now: Instant) {
        let (Some(interval), true) = (self.config.path_review_interval, self.state.is_open())
        else {
            return;
        };
        self.suppress_slow(now);
        let worst = self.paths.iter().filter(|p| is_in_use(p)).map(Path::score).reduce(f64::min);
        let gain = f64::from(self.config.path_addition_gain);
        if let (Some((best, promised)), Some(worst)) = (self.best_suppressed(now, false), worst)
            && promised > gain * worst
        {
            if let Some(most) = self.config.paths_max {
                // Its place: what it promises is not yet what it does.
                self.leave_at_most(now, most as usize - 1);
            }
            self.restore(now, best, RestoreReason::Better);
            self.refresh_usable(now);
        }
        for p in self.paths.iter_mut() {
            p.reviewed = [p.reviewed[1], p.review(now)];
            if let Some(s) = p.suppressed.as_mut().filter(|s| s.reason == SuppressReason::Spare) {
                s.loss_rate /= 2.0;
            }
        }
        // What is known of an unused path is kept up to date by probes.
        let unused = self.paths.iter().filter(|p| p.suppressed.is_some() && p.probe.is_none());
        let unused: smallvec::SmallVec<[PathId; 8]> = unused.map(|p| p.id).collect();
        for id in unused {
            self.probe_now(now, id);
        }
        if !self.out.is_empty() {
            self.timers.set(Timer::Assoc(AssocTimer::Review), now + interval);
        }
    }

    /// Suppresses paths that were in use since the last review and slower than the best by `suppress_below`.
    fn suppress_slow(&mut self, now: Instant) {
        let Some(omega) = self.config.suppress_below else { return };
        let was_used = |p: &&Path| is_in_use(p) && p.in_use_since <= p.reviewed[1].at;
        let rates: smallvec::SmallVec<[(PathId, f64); 8]> = self
            .paths
            .iter()
            .filter(was_used)
            .map(|p| (p.id, rate(now, p.reviewed[1], p)))
            .collect();
        let best = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        for (id, rate) in rates {
            if rate < best / f64::from(omega) {
                self.suppress(now, id, SuppressReason::Slow);
            }
        }
    }
}

/// It may carry data now.
fn is_in_use(p: &Path) -> bool {
    p.usable && p.state == PathState::Active && p.suppressed.is_none()
}

/// User bytes acknowledged per second since a mark.
fn rate(now: Instant, since: Review, p: &Path) -> f64 {
    let elapsed = (now - since.at).as_secs_f64();
    if elapsed > 0.0 { (p.counters.acked_bytes - since.acked_bytes) as f64 / elapsed } else { 0.0 }
}

/// By score; of equal ones the later path is worse.
fn worse_first(a: (PathId, f64), b: (PathId, f64)) -> std::cmp::Ordering {
    a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))
}
