//! Where it arrives soonest.

use super::{RtxCandidate, RtxPolicy};
use crate::path::{PathId, PathView};
use crate::policy::PolicyCx;
use crate::policy::sched::one_way;

/// Of the paths with room, the one that delivers a packet soonest, as the scheduler `soonest` has
/// it: everything behind a lost packet waits for it. A faster path without room is waited for if a
/// round trip there, after which it has some, is not too long.
#[derive(Debug, Default)]
pub struct RtxSoonest;

impl RtxPolicy for RtxSoonest {
    fn choose(&mut self, cx: &mut PolicyCx<'_>, _lost: &RtxCandidate) -> Option<PathId> {
        let usable = || cx.paths.iter().filter(|p| p.usable);
        let best = usable().filter(|p| p.cwnd_space > 0).min_by_key(|p| one_way(p))?;
        let is_worth_waiting_for = |p: &PathView| {
            p.cwnd_space == 0 && p.srtt.is_some_and(|srtt| one_way(p) + srtt < one_way(best))
        };
        (!usable().any(is_worth_waiting_for)).then_some(best.id)
    }
}
