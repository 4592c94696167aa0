//! The paths of a path set: their routes, their counters at reviews, and which are set aside.

use std::time::Duration;

use super::{Decision, SetAside, Standing, Standings};
use crate::overlay::Route;
use crate::time::Instant;
use crate::view::{PathId, PathState, RestoreReason, SuppressReason, score};

/// Most doublings of the time after which a path is tried again.
const RETRY_DOUBLINGS: u32 = 4;
/// Fewest chunks that give a loss rate.
const SENT_MIN: u64 = 100;

/// The counters of a path at a review.
#[derive(Copy, Clone, Debug)]
struct Mark {
    at: Instant,
    acked_bytes: u64,
    sent: u64,
    lost: u64,
}

impl Mark {
    fn of(now: Instant, p: &Standing) -> Mark {
        Mark { at: now, acked_bytes: p.acked_bytes, sent: p.chunks_sent, lost: p.chunks_lost }
    }
}

/// A path that is set aside.
#[derive(Copy, Clone, Debug)]
struct Aside {
    reason: SuppressReason,
    since: Instant,
    /// The last known loss rate. A spare's falls with time, so that it is tried again.
    loss_rate: f64,
}

#[derive(Debug)]
struct Member {
    aside: Option<Aside>,
    route: Route,
    /// How often the path was found to share a bottleneck.
    shared: u32,
    /// When the path last began to carry data.
    in_use_since: Instant,
    /// The counters at the review before the last, and at the last.
    reviewed: [Mark; 2],
}

/// The paths by id, and the number of them that must carry data.
#[derive(Debug)]
pub(super) struct Members {
    of: Vec<Option<Member>>,
    /// The number of paths that carry data in any case, if they work (`paths_min`).
    least: usize,
    /// Shortest time for which a path stays set aside while others carry data.
    rest: Duration,
}

impl Members {
    pub(super) fn new(least: u32, rest: Option<Duration>) -> Members {
        Members { of: Vec::new(), least: least as usize, rest: rest.unwrap_or_default() }
    }

    pub(super) fn add(&mut self, now: Instant, path: PathId) {
        if self.of.len() <= path.index() {
            self.of.resize_with(path.index() + 1, || None);
        }
        let begin = Mark { at: now, acked_bytes: 0, sent: 0, lost: 0 };
        self.of[path.index()] = Some(Member {
            aside: None,
            route: Route::default(),
            shared: 0,
            in_use_since: now,
            reviewed: [begin; 2],
        });
    }

    pub(super) fn remove(&mut self, path: PathId) {
        if let Some(member) = self.of.get_mut(path.index()) {
            *member = None;
        }
    }

    fn get(&self, path: PathId) -> Option<&Member> {
        self.of.get(path.index())?.as_ref()
    }

    fn get_mut(&mut self, path: PathId) -> Option<&mut Member> {
        self.of.get_mut(path.index())?.as_mut()
    }

    pub(super) fn set_route(&mut self, path: PathId, route: Route) {
        if let Some(member) = self.get_mut(path) {
            member.route = route;
        }
    }

    pub(super) fn route(&self, path: PathId) -> Option<&Route> {
        self.get(path).map(|member| &member.route)
    }

    /// True if no route is known, and no path is set aside for its hops.
    pub(super) fn knows_no_hops(&self) -> bool {
        let mut members = self.of.iter().flatten();
        let is_for_hops = |aside: Aside| aside.reason == SuppressReason::SharesHops;
        members.all(|m| m.route.hops.is_empty() && !m.aside.is_some_and(is_for_hops))
    }

    pub(super) fn begin_use(&mut self, now: Instant, p: &Standing) {
        if let Some(member) = self.get_mut(p.id) {
            member.in_use_since = now;
            member.reviewed = [Mark::of(now, p); 2];
        }
    }

    pub(super) fn least(&self) -> usize {
        self.least
    }

    pub(super) fn is_aside(&self, path: PathId) -> bool {
        self.get(path).is_some_and(|member| member.aside.is_some())
    }

    pub(super) fn is_aside_for(&self, path: PathId, reason: SuppressReason) -> bool {
        self.get(path).and_then(|m| m.aside).is_some_and(|aside| aside.reason == reason)
    }

    fn is_any_aside(&self) -> bool {
        self.of.iter().flatten().any(|member| member.aside.is_some())
    }

    /// The paths that work and are not set aside.
    pub(super) fn may_carry_data<'a>(
        &self,
        paths: &'a [Standing],
    ) -> impl Iterator<Item = &'a Standing> {
        paths.iter().filter(move |p| p.state == PathState::Active && !self.is_aside(p.id))
    }

    /// True if the path may carry data now.
    pub(super) fn is_in_use(&self, p: &Standing) -> bool {
        p.state == PathState::Active && !p.is_away && !self.is_aside(p.id)
    }

    /// The loss rate of a path. It is measured since the review before the last, or if too few
    /// chunks were sent since then, over the life of the path. For a path that is set aside it is
    /// the rate known when that began.
    fn loss_rate(&self, p: &Standing) -> f64 {
        let Some(member) = self.get(p.id) else { return p.loss_rate };
        let before = member.reviewed[0];
        let sent = p.chunks_sent - before.sent;
        match member.aside {
            Some(aside) => aside.loss_rate,
            None if sent < SENT_MIN || p.is_loss_certain => p.loss_rate,
            None => (p.chunks_lost - before.lost) as f64 / sent as f64,
        }
    }

    /// The expected rate of the path in packets per second, by its loss rate.
    pub(super) fn score(&self, p: &Standing) -> f64 {
        score(p.srtt, self.loss_rate(p))
    }

    /// User bytes acknowledged per second on a path since the review before the last.
    pub(super) fn throughput(&self, now: Standings<'_>, path: PathId) -> f64 {
        self.rate_since(now, path, 0)
    }

    /// User bytes acknowledged per second since the last review; `None` unless the path was in use
    /// for all that time.
    pub(super) fn throughput_of_used(&self, now: Standings<'_>, p: &Standing) -> Option<f64> {
        let member = self.get(p.id)?;
        let was_used = self.is_in_use(p) && member.in_use_since <= member.reviewed[1].at;
        was_used.then(|| self.rate_since(now, p.id, 1))
    }

    fn rate_since(&self, now: Standings<'_>, path: PathId, review: usize) -> f64 {
        let (Some(p), Some(member)) = (now.path(path), self.get(path)) else { return 0.0 };
        let since = member.reviewed[review];
        let elapsed = (now.now - since.at).as_secs_f64();
        if elapsed > 0.0 { (p.acked_bytes - since.acked_bytes) as f64 / elapsed } else { 0.0 }
    }

    /// Sets a path aside: it carries no more data.
    pub(super) fn set_aside(
        &mut self,
        now: Standings<'_>,
        path: PathId,
        why: SetAside,
        made: &mut Vec<Decision>,
    ) {
        let Some(loss_rate) = now.path(path).map(|p| self.loss_rate(p)) else { return };
        let Some(member) = self.get_mut(path) else { return };
        let reason = why.reason();
        member.shared += u32::from(reason == SuppressReason::SharedBottleneck);
        member.aside = Some(Aside { reason, since: now.now, loss_rate });
        made.push(Decision::Suppress { path, why });
    }

    /// True if a path that shared a bottleneck may be tried again: after `retry` the first time,
    /// and twice as long each further time.
    pub(super) fn is_due_again(&self, now: Standings<'_>, p: &Standing, retry: Duration) -> bool {
        let Some(member) = self.get(p.id) else { return false };
        let wait = retry * (1 << member.shared.saturating_sub(1).min(RETRY_DOUBLINGS));
        p.state == PathState::Active
            && member.aside.is_some_and(|aside| {
                aside.reason == SuppressReason::SharedBottleneck && now.now - aside.since >= wait
            })
    }

    /// Lets a path carry data again.
    pub(super) fn restore(
        &mut self,
        now: Standings<'_>,
        path: PathId,
        why: RestoreReason,
        made: &mut Vec<Decision>,
    ) {
        let (Some(p), Some(member)) = (now.path(path), self.get_mut(path)) else { return };
        member.aside = None;
        self.begin_use(now.now, p);
        made.push(Decision::Restore { path, why });
    }

    /// Restores paths while fewer than `paths_min` carry data, the best first. While others carry
    /// data, a path that was just set aside rests for one review interval.
    pub(super) fn restore_if_few(&mut self, now: Standings<'_>, made: &mut Vec<Decision>) {
        if !self.is_any_aside() {
            return;
        }
        loop {
            let count = self.may_carry_data(now.paths).count();
            if count >= self.least {
                return;
            }
            let Some((best, _)) = self.best_aside(now, count == 0) else { return };
            self.restore(now, best, RestoreReason::TooFew, made);
        }
    }

    /// The working path with the best score among those set aside. Unless `is_urgent`, a path that
    /// shares its hops with a path in use does not count.
    pub(super) fn best_aside(&self, now: Standings<'_>, is_urgent: bool) -> Option<(PathId, f64)> {
        let may_return = |p: &&Standing| {
            let aside = self.get(p.id).and_then(|member| member.aside);
            aside.is_some_and(|aside| is_urgent || now.now - aside.since >= self.rest)
        };
        let candidates = now.paths.iter().filter(|p| p.state == PathState::Active);
        let candidates = candidates.filter(may_return);
        let disjoint = candidates.filter(|p| is_urgent || self.is_disjoint_from_used(now, p.id));
        self.best_of(disjoint)
    }

    /// The path with the best score; the earlier of equal ones.
    pub(super) fn best_of<'a>(
        &self,
        paths: impl Iterator<Item = &'a Standing>,
    ) -> Option<(PathId, f64)> {
        paths.map(|p| (p.id, self.score(p))).max_by(|a, b| worse_first(*a, *b))
    }

    /// The path with the worst score; the later of equal ones.
    pub(super) fn worst_of<'a>(
        &self,
        paths: impl Iterator<Item = &'a Standing>,
    ) -> Option<(PathId, f64)> {
        paths.map(|p| (p.id, self.score(p))).min_by(|a, b| worse_first(*a, *b))
    }

    /// Ends a review: notes the counters, and lowers the loss rates known of spares.
    pub(super) fn end_review(&mut self, now: Standings<'_>) {
        for p in now.paths {
            let Some(member) = self.get_mut(p.id) else { continue };
            member.reviewed = [member.reviewed[1], Mark::of(now.now, p)];
            let aside = member.aside.as_mut();
            if let Some(spare) = aside.filter(|aside| aside.reason == SuppressReason::Spare) {
                spare.loss_rate /= 2.0;
            }
        }
    }
}

/// Orders by score, the worst first; of equal ones the later path is worse.
fn worse_first(a: (PathId, f64), b: (PathId, f64)) -> std::cmp::Ordering {
    a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))
}
