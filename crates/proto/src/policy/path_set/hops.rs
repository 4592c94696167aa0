//! Paths that have too many of their hops in common with better ones (mTCP paper, section 3.3).

use super::members::Members;
use super::{Decision, SetAside, Standings};
use crate::overlay::{BETA, Candidate, Choice, Route, disjoint, select};
use crate::view::{PathId, PathState, RestoreReason, SuppressReason};

/// Factor of the score of a path that is set aside. It ranks such paths behind all paths in use.
const AFTER_ALL_IN_USE: f64 = 1e-30;

impl Members {
    /// Sets aside working paths that share their hops with a better one, and restores those that no
    /// longer do.
    pub(super) fn keep_disjoint(&mut self, now: Standings<'_>, made: &mut Vec<Decision>) {
        if self.knows_no_hops() {
            return;
        }
        let shares_hops = |this: &Members, id| this.is_aside_for(id, SuppressReason::SharesHops);
        let works = now.paths.iter().filter(|p| p.state == PathState::Active);
        let (ids, candidates): (Vec<PathId>, Vec<Candidate>) = works
            .filter(|p| !self.is_aside(p.id) || shares_hops(self, p.id))
            .map(|p| {
                let weight = if self.is_aside(p.id) { AFTER_ALL_IN_USE } else { 1.0 };
                let route = self.route(p.id).cloned().unwrap_or_default();
                (p.id, Candidate { score: self.score(p) * weight, route })
            })
            .unzip();
        let choices = select(&candidates, BETA, usize::MAX);
        let kept = self.kept_all_the_same(&candidates, &choices);
        for (index, &id) in ids.iter().enumerate() {
            let overlap = match choices[index] {
                Choice::Overlaps { with, disjoint } if !kept.contains(&index) => {
                    Some(SetAside::SharesHops { with: ids[with], disjoint })
                }
                _ => None,
            };
            match (overlap, shares_hops(self, id)) {
                (Some(why), false) => self.set_aside(now, id, why, made),
                (None, true) => self.restore(now, id, RestoreReason::Disjoint, made),
                _ => {}
            }
        }
    }

    /// Candidates to use although they overlap with others, the best first, so that `paths_min`
    /// paths are used.
    fn kept_all_the_same(&self, candidates: &[Candidate], choices: &[Choice]) -> Vec<usize> {
        let overlaps = |index: &usize| matches!(choices[*index], Choice::Overlaps { .. });
        let mut over: Vec<usize> = (0..choices.len()).filter(overlaps).collect();
        over.sort_by(|&a, &b| candidates[b].score.total_cmp(&candidates[a].score));
        over.truncate(self.least().saturating_sub(choices.len() - over.len()));
        over
    }

    /// True if the path shares few enough hops with every path that may carry data.
    pub(super) fn is_disjoint_from_used(&self, now: Standings<'_>, path: PathId) -> bool {
        let Some(route) = self.route(path).filter(|route| !route.hops.is_empty()) else {
            return true;
        };
        let is_apart = |other: Option<&Route>| other.is_none_or(|r| disjoint(r, route) > BETA);
        let mut others = self.may_carry_data(now.paths).filter(|p| p.id != path);
        others.all(|p| is_apart(self.route(p.id)))
    }
}
