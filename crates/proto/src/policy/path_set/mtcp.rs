//! mTCP's path set (mTCP paper, sections 3.3 and 3.4): it uses the best paths, and only one of
//! those that share a bottleneck.

use std::time::Duration;

use super::members::Members;
use super::shared::{SharedEvidence, SharedPolicy};
use super::{Decision, PathSet, SetAside, Standing, Standings};
use crate::overlay::Route;
use crate::params::Params;
use crate::policy::{Needs, PolicyCx};
use crate::time::Instant;
use crate::view::{PathId, PathState, RestoreReason, SuppressReason};

/// Sets paths aside that share a bottleneck with a faster one, that are much slower than the
/// fastest, or that are more than the best `paths_max`.
///
/// A [detector](super::shared) says which paths share a bottleneck. `paths_min` paths stay in use
/// whatever they share. Every `path_review_interval` slow paths go, and one that was set aside
/// comes back if it promises `path_addition_gain` times as much as the worst in use. A path that
/// fails makes room for the best spare at once.
#[derive(Debug)]
pub struct Mtcp {
    members: Members,
    detector: Box<dyn SharedPolicy>,
    evidence: Vec<SharedEvidence>,
    most: Option<usize>,
    /// The omega of section 3.4.1.
    suppress_below: Option<f64>,
    review: Option<Duration>,
    gain: f64,
    /// The time after which a path that shared a bottleneck is first tried again.
    retry: Option<Duration>,
}

impl Mtcp {
    /// With the limits of a configuration.
    pub fn new(config: &Params, detector: Box<dyn SharedPolicy>) -> Mtcp {
        Mtcp {
            members: Members::new(config.paths_min, config.path_review_interval),
            detector,
            evidence: Vec::new(),
            most: config.paths_max.map(|most| most as usize),
            suppress_below: config.suppress_below.map(f64::from),
            review: config.path_review_interval,
            gain: f64::from(config.path_addition_gain),
            retry: config.shared_retry,
        }
    }

    /// Tells the detector which paths carry data now, by the decisions from this one on.
    fn follow(&mut self, now: Instant, made: &[Decision]) {
        for decision in made {
            match *decision {
                Decision::Suppress { path, .. } => self.detector.end(path),
                Decision::Restore { path, .. } => {
                    self.forget_pairs(path);
                    self.detector.begin(now, path);
                }
                _ => {}
            }
        }
    }

    /// Forgets the evidence on pairs with this path.
    fn forget_pairs(&mut self, path: PathId) {
        self.evidence.retain(|known| known.paths.0 != path && known.paths.1 != path);
    }

    fn settle_into(&mut self, now: Standings<'_>, made: &mut Vec<Decision>) {
        let before = made.len();
        self.members.keep_disjoint(now, made);
        self.members.restore_if_few(now, made);
        self.keep_best(now, made);
        self.follow(now.now, &made[before..]);
    }

    /// Sets a path aside, and lets the path set settle again.
    fn suppress(
        &mut self,
        now: Standings<'_>,
        path: PathId,
        why: SetAside,
        made: &mut Vec<Decision>,
    ) {
        let before = made.len();
        self.members.set_aside(now, path, why, made);
        self.follow(now.now, &made[before..]);
        self.settle_into(now, made);
    }

    /// Lets at most `paths_max` working paths carry data: those with the best scores (mTCP paper,
    /// section 3.3). When one of them fails, the best spare takes its place at once.
    fn keep_best(&mut self, now: Standings<'_>, made: &mut Vec<Decision>) {
        let Some(most) = self.most else { return };
        self.leave_at_most(now, most, made);
        while self.members.may_carry_data(now.paths).count() < most {
            let members = &self.members;
            let works = now.paths.iter().filter(|p| p.state == PathState::Active);
            let spares = works.filter(|p| members.is_aside_for(p.id, SuppressReason::Spare));
            let spares = spares.filter(|p| members.is_disjoint_from_used(now, p.id));
            let Some((best, _)) = members.best_of(spares) else { return };
            self.members.restore(now, best, RestoreReason::TooFew, made);
        }
    }

    /// Sets paths aside as spares, the worst first, until no more than `most` are left.
    fn leave_at_most(&mut self, now: Standings<'_>, most: usize, made: &mut Vec<Decision>) {
        while self.members.may_carry_data(now.paths).count() > most {
            let carries = self.members.may_carry_data(now.paths);
            let Some((worst, _)) = self.members.worst_of(carries) else { return };
            self.members.set_aside(now, worst, SetAside::Spare, made);
        }
    }

    /// Stores what a detector found. If two paths share a bottleneck, the slower one is set aside.
    pub(super) fn judge(
        &mut self,
        now: Standings<'_>,
        found: Vec<SharedEvidence>,
    ) -> Vec<Decision> {
        let mut made = Vec::new();
        for evidence in found {
            let known = self.evidence.iter_mut().find(|known| known.paths == evidence.paths);
            let was_shared = known.as_ref().is_some_and(|known| known.is_shared);
            match known {
                Some(known) => *known = evidence,
                None => self.evidence.push(evidence),
            }
            if !evidence.is_shared {
                continue;
            }
            match self.slower_of(now, evidence.paths.0, evidence.paths.1) {
                Some(path) => {
                    self.suppress(now, path, SetAside::SharedBottleneck(evidence), &mut made);
                }
                None if !was_shared => made.push(Decision::Tell(evidence)),
                None => {}
            }
        }
        made
    }

    /// The slower of two paths, if it can be spared.
    fn slower_of(&self, now: Standings<'_>, a: PathId, b: PathId) -> Option<PathId> {
        let members = &self.members;
        let in_use = |id: PathId| now.path(id).is_some_and(|p| members.is_in_use(p));
        // MP_d: as many paths as were asked for are kept, whatever they share.
        let used = now.paths.iter().filter(|p| members.is_in_use(p)).count();
        let may_suppress = used > members.least() && in_use(a) && in_use(b);
        let is_slower = members.throughput(now, a) < members.throughput(now, b);
        may_suppress.then_some(if is_slower { a } else { b })
    }

    /// Suppresses paths that were in use since the last review and slower than the best by
    /// `suppress_below`.
    fn suppress_slow(&mut self, now: Standings<'_>, made: &mut Vec<Decision>) {
        let Some(omega) = self.suppress_below else { return };
        let used = now.paths.iter();
        let rates: smallvec::SmallVec<[(PathId, f64); 8]> =
            used.filter_map(|p| Some((p.id, self.members.throughput_of_used(now, p)?))).collect();
        let best = rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
        for (id, rate) in rates {
            if rate < best / omega {
                self.suppress(now, id, SetAside::Slow, made);
            }
        }
    }

    /// Restores paths that shared a bottleneck long ago, and forgets the evidence on them.
    fn try_again(&mut self, now: Standings<'_>, made: &mut Vec<Decision>) {
        let Some(retry) = self.retry else { return };
        let before = made.len();
        for p in now.paths {
            if self.members.is_due_again(now, p, retry) {
                self.members.restore(now, p.id, RestoreReason::Again, made);
            }
        }
        self.follow(now.now, &made[before..]);
        if made.len() > before {
            self.settle_into(now, made);
        }
    }

    /// Restores a path that promises much more than the worst in use.
    fn add_better(&mut self, now: Standings<'_>, made: &mut Vec<Decision>) {
        let used = now.paths.iter().filter(|p| self.members.is_in_use(p));
        let worst = used.map(|p| self.members.score(p)).reduce(f64::min);
        if let (Some((best, promised)), Some(worst)) = (self.members.best_aside(now, false), worst)
            && promised > self.gain * worst
        {
            let before = made.len();
            if let Some(most) = self.most {
                // Make room for it first, because its promise is not yet a measurement.
                self.leave_at_most(now, most - 1, made);
            }
            self.members.restore(now, best, RestoreReason::Better, made);
            self.follow(now.now, &made[before..]);
            self.settle_into(now, made);
        }
    }
}

impl PathSet for Mtcp {
    fn needs(&self) -> Needs {
        Needs {
            bottlenecks: self.detector.is_on(),
            delays: self.detector.watches_delays(),
            review: self.review.or(self.retry),
            ..Needs::default()
        }
    }

    fn added(&mut self, now: Instant, path: PathId) {
        self.members.add(now, path);
    }

    fn removed(&mut self, path: PathId) {
        self.members.remove(path);
        self.detector.end(path);
        self.forget_pairs(path);
    }

    fn began(&mut self, now: Instant, path: &Standing) {
        self.detector.begin(now, path.id);
        self.members.begin_use(now, path);
    }

    fn set_route(&mut self, path: PathId, route: Route) {
        self.members.set_route(path, route);
    }

    fn settle(&mut self, now: Standings<'_>) -> Vec<Decision> {
        let mut made = Vec::new();
        self.settle_into(now, &mut made);
        made
    }

    /// Sets aside paths that are too slow, and restores unused ones that promise more.
    fn review(&mut self, now: Standings<'_>) -> Vec<Decision> {
        let mut made = Vec::new();
        self.try_again(now, &mut made);
        if self.review.is_some() {
            self.suppress_slow(now, &mut made);
            self.add_better(now, &mut made);
        }
        self.members.end_review(now);
        // Probes keep the figures of unused paths up to date.
        let unused = now.paths.iter().filter(|p| self.members.is_aside(p.id) && !p.is_probed);
        made.extend(unused.map(|p| Decision::Probe(p.id)));
        made
    }

    fn on_fast_retransmit(
        &mut self,
        cx: &PolicyCx<'_>,
        now: Standings<'_>,
        path: PathId,
    ) -> Vec<Decision> {
        let found = self.detector.on_fast_retransmit(cx, path);
        self.judge(now, found)
    }

    fn on_fates(&mut self, path: PathId, arrived: usize, lost: usize) {
        self.detector.on_fates(path, arrived, lost);
    }

    fn on_delay(&mut self, now: Instant, path: PathId, sent_at: Instant) -> bool {
        self.detector.on_delay(now, path, sent_at)
    }

    fn review_delays(&mut self, cx: &mut PolicyCx<'_>, now: Standings<'_>) -> Vec<Decision> {
        let found = self.detector.review(cx);
        let mut made = self.judge(now, found);
        made.push(Decision::Throttle(self.detector.tried()));
        made
    }

    fn evidence(&self) -> &[SharedEvidence] {
        &self.evidence
    }
}
