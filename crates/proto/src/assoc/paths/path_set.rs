//! Carries out the decisions of the path set.

use crate::assoc::{AssocTimer, Association, PathTimer, Timer};
use crate::event::Event;
use crate::overlay::Route;
use crate::policy::PolicyCx;
use crate::policy::path_set::shared::SharedEvidence;
use crate::policy::path_set::{Decision, PathSet, SetAside, Standings};
use crate::time::Instant;
use crate::view::PathId;

impl Association {
    /// Evidence on pairs of paths that may share a bottleneck, as of their latest signs of
    /// congestion.
    pub fn shared_pairs(&self) -> &[SharedEvidence] {
        self.policies.path_set.evidence()
    }

    /// Takes note of the known hops of paths. Among paths that are not disjoint (disjointness at
    /// most [`BETA`](crate::overlay::BETA)) the one with the best score carries data from now on.
    /// The others carry data only when it fails, when a later route makes them disjoint, or if
    /// fewer than `paths_min` were left. A path that is set aside never displaces a working one,
    /// because its figures are old.
    ///
    /// Paths not named here keep their known route. An empty route removes the known one.
    pub fn set_routes(&mut self, now: Instant, routes: impl IntoIterator<Item = (PathId, Route)>) {
        for (id, route) in routes {
            self.policies.path_set.set_route(id, route);
        }
        self.refresh_usable(now);
    }

    /// Calls the path set with every path as it stands.
    fn ask_path_set<T>(
        &mut self,
        now: Instant,
        decision: impl FnOnce(&mut dyn PathSet, Standings<'_>) -> T,
    ) -> T {
        let paths: Vec<_> = self.paths.iter().map(|p| self.standing(p)).collect();
        decision(&mut *self.policies.path_set, Standings { now, paths: &paths })
    }

    /// Tells the path set that the first DATA is sent on a path.
    pub(crate) fn begin_use(&mut self, now: Instant, id: PathId) {
        if let Some(p) = self.paths.get(id) {
            self.policies.path_set.began(now, &p.standing());
        }
    }

    /// Lets the path set decide again after paths have come, gone or changed.
    pub(crate) fn settle_path_set(&mut self, now: Instant) {
        let made = self.ask_path_set(now, |set, paths| set.settle(paths));
        self.carry_out(now, &made);
    }

    /// A path enters fast retransmit: looks for another path with the same bottleneck.
    pub(crate) fn look_for_shared_bottleneck(&mut self, now: Instant, id: PathId) {
        if self.policies.needs.bottlenecks {
            self.ask_detector(now, |set, cx, paths| set.on_fast_retransmit(cx, paths, id));
        }
    }

    /// Tells the path set the delay of acknowledged data that was sent once, at `sent_at`. Delays
    /// may reveal a shared bottleneck.
    #[inline(never)] // of the presets, `mtcp` alone asks
    pub(crate) fn note_delay(&mut self, now: Instant, id: PathId, sent_at: Instant) {
        if self.policies.path_set.on_delay(now, id, sent_at) {
            self.ask_detector(now, |set, cx, paths| set.review_delays(cx, paths));
        }
    }

    fn ask_detector(
        &mut self,
        now: Instant,
        ask: impl FnOnce(&mut dyn PathSet, &mut PolicyCx<'_>, Standings<'_>) -> Vec<Decision>,
    ) {
        let paths: Vec<_> = self.paths.iter().map(|p| self.standing(p)).collect();
        let paths = Standings { now, paths: &paths };
        let made = self.decide(now, |policies, cx| ask(&mut *policies.path_set, cx, paths));
        if self.carry_out(now, &made) {
            self.renew_usable(now);
        }
    }

    /// Starts the timer for the next review of paths, because data is sent.
    pub(crate) fn start_review(&mut self, now: Instant) {
        if let Some(interval) = self.policies.needs.review {
            self.timers.start(Timer::Assoc(AssocTimer::Review), now + interval);
        }
    }

    /// Reviews the paths when the time between reviews has passed.
    pub(crate) fn review_paths(&mut self, now: Instant) {
        let (Some(interval), true) = (self.policies.needs.review, self.state.is_open()) else {
            return;
        };
        let made = self.ask_path_set(now, |set, paths| set.review(paths));
        if self.carry_out(now, &made) {
            self.renew_usable(now);
        }
        if !self.out.is_empty() {
            self.timers.set(Timer::Assoc(AssocTimer::Review), now + interval);
        }
    }

    /// Acts on decisions in their order. True if the set of paths that may carry data changed:
    /// [`renew_usable`](Self::renew_usable) must follow.
    fn carry_out(&mut self, now: Instant, made: &[Decision]) -> bool {
        let mut has_changed = false;
        for decision in made {
            match *decision {
                Decision::Suppress { path, why } => {
                    self.suppress(path, why);
                    has_changed = true;
                }
                Decision::Restore { path, why } => {
                    if let Some(p) = self.paths.get_mut(path) {
                        p.role.set_aside = None;
                    }
                    self.events.push(Event::PathRestored { path, reason: why });
                    has_changed = true;
                }
                Decision::Throttle(tried) => {
                    self.paths.iter_mut().for_each(|p| p.flow.is_throttled = tried == Some(p.id));
                }
                Decision::Probe(path) => self.probe_now(now, path),
                Decision::Tell(evidence) => {
                    self.events.push(Event::SharedBottleneck { evidence, suppressed: None });
                }
            }
        }
        has_changed
    }

    fn suppress(&mut self, path: PathId, why: SetAside) {
        match why {
            SetAside::SharedBottleneck(evidence) => {
                self.events.push(Event::SharedBottleneck { evidence, suppressed: Some(path) });
            }
            SetAside::SharesHops { with, disjoint } => {
                self.events.push(Event::SharedHops { path, with, disjoint });
            }
            SetAside::Slow | SetAside::Spare => {}
        }
        let reason = why.reason();
        if let Some(p) = self.paths.get_mut(path) {
            p.role.set_aside = Some(reason);
        }
        self.events.push(Event::PathSuppressed { path, reason });
        self.timers.stop(Timer::Path(path, PathTimer::Silence));
        if why == SetAside::Slow {
            // A slow path could hold up the receiver for long, so its data moves. Data in flight
            // over a shared bottleneck arrives, and stays.
            self.move_outstanding(path);
        }
    }
}
