//! Where it arrives soonest.

use super::{RtxCandidate, RtxPolicy};
use crate::policy::PolicyCx;
use crate::policy::sched::one_way;
use crate::view::{PathId, PathView};

/// Of the paths with room, the one that delivers a packet soonest, as the scheduler `soonest` has
/// it: everything behind a lost packet waits for it. A faster path without room is waited for if a
/// round trip there, after which it has some, is not too long.
///
/// If a retransmission was lost, its path counts as slower, by a round trip for each one so far.
/// Where a queue is always full, it would be lost there again.
#[derive(Debug, Default)]
pub struct RtxSoonest;

impl RtxPolicy for RtxSoonest {
    fn choose(&mut self, cx: &mut PolicyCx<'_>, lost: &RtxCandidate) -> Option<PathId> {
        let again = u32::from(lost.transmissions.saturating_sub(1));
        let takes = |p: &PathView| {
            if p.id == lost.last_path {
                one_way(p) + p.srtt.unwrap_or_default() * again
            } else {
                one_way(p)
            }
        };
        let usable = || cx.paths.iter().filter(|p| p.usable);
        let best = usable().filter(|p| p.cwnd_space > 0).min_by_key(|p| takes(p))?;
        let is_worth_waiting_for = |p: &PathView| {
            p.cwnd_space == 0 && p.srtt.is_some_and(|srtt| takes(p) + srtt < takes(best))
        };
        (!usable().any(is_worth_waiting_for)).then_some(best.id)
    }
}
