//! Paths that have too many of their hops in common with better ones (mTCP paper, section 3.3).

use super::Association;
use crate::event::Event;
use crate::overlay::{BETA, Candidate, Choice, Route, disjoint, select};
use crate::path::{Path, PathId, PathState, RestoreReason, SuppressReason};
use crate::time::Instant;

/// What the score of a path that is set aside counts, so that it is behind those that carry data.
const AFTER_ALL_IN_USE: f64 = 1e-30;

impl Association {
    /// Takes note of the hops of paths, as far as they are known. Of paths that are not disjoint from each other
    /// (Disjoint at most [`BETA`]) the one with the best score carries data from now on, and the others only when
    /// it fails, when a later route says otherwise, or if fewer than `paths_min` were left. None that is set aside takes
    /// the place of one that works: what is known of it is old.
    ///
    /// Paths that are not named keep the route that is known of them. An empty route takes it back.
    pub fn set_routes(&mut self, now: Instant, routes: impl IntoIterator<Item = (PathId, Route)>) {
        for (id, route) in routes {
            if let Some(p) = self.paths.get_mut(id) {
                p.route = route;
            }
        }
        self.refresh_usable(now);
    }

    /// Sets paths aside that share their hops with a better one which works, and brings those back that do not.
    /// [`refresh_usable`](Self::refresh_usable) calls this.
    pub(super) fn keep_disjoint(&mut self, now: Instant) {
        if self.paths.iter().all(|p| p.route.hops.is_empty() && !shares_hops(p)) {
            return;
        }
        let works = self.paths.iter().filter(|p| p.state == PathState::Active);
        let (ids, candidates): (Vec<PathId>, Vec<Candidate>) = works
            .filter(|p| p.suppressed.is_none() || shares_hops(p))
            .map(|p| {
                let weight = if p.suppressed.is_none() { 1.0 } else { AFTER_ALL_IN_USE };
                (p.id, Candidate { score: p.score() * weight, route: p.route.clone() })
            })
            .unzip();
        let choices = select(&candidates, BETA, usize::MAX);
        let kept = self.kept_all_the_same(&candidates, &choices);
        for (index, &id) in ids.iter().enumerate() {
            let is_aside = self.paths.get(id).is_some_and(shares_hops);
            let overlap = match choices[index] {
                Choice::Overlaps { with, disjoint } if !kept.contains(&index) => {
                    Some((ids[with], disjoint))
                }
                _ => None,
            };
            match (overlap, is_aside) {
                (Some((with, disjoint)), false) => {
                    self.events.push_back(Event::SharedHops { path: id, with, disjoint });
                    self.set_aside(now, id, SuppressReason::SharesHops);
                }
                (None, true) => self.restore(now, id, RestoreReason::Disjoint),
                _ => {}
            }
        }
    }

    /// Candidates that overlap with others and are used nevertheless, the best first: so that `paths_min` are used.
    fn kept_all_the_same(&self, candidates: &[Candidate], choices: &[Choice]) -> Vec<usize> {
        let overlaps = |index: &usize| matches!(choices[*index], Choice::Overlaps { .. });
        let mut over: Vec<usize> = (0..choices.len()).filter(overlaps).collect();
        over.sort_by(|&a, &b| candidates[b].score.total_cmp(&candidates[a].score));
        over.truncate((self.config.paths_min as usize).saturating_sub(choices.len() - over.len()));
        over
    }

    /// It has not too many hops in common with any path that may carry data.
    pub(super) fn is_disjoint_from_used(&self, path: &Path) -> bool {
        let mut others = self.may_carry_data().filter(|p| p.id != path.id);
        path.route.hops.is_empty() || others.all(|p| disjoint(&p.route, &path.route) > BETA)
    }
}

/// It is set aside for its hops.
fn shares_hops(path: &Path) -> bool {
    path.suppressed.is_some_and(|s| s.reason == SuppressReason::SharesHops)
}
