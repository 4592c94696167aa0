//! Retransmissions go where they arrive soonest.

use super::{RtxCandidate, RtxPolicy};
use crate::policy::PolicyCx;
use crate::policy::sched::one_way;
use crate::view::{PathId, PathView};

/// The path that delivers a packet soonest among those with room, estimated as the scheduler
/// `soonest` does: everything behind a lost packet waits for it. A faster path without room is
/// worth waiting for if a round trip, after which it has some, is not too long.
///
/// Each lost retransmission adds a round trip to the estimate of its path. Where a queue is always
/// full, another one would be lost again.
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
