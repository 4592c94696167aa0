//! Retransmissions go where new data would (mTCP paper, section 3.1.4).

use super::{RtxCandidate, RtxPolicy};
use crate::policy::PolicyCx;
use crate::view::PathId;

/// The path with the least pipe / cwnd among those with room, whichever path lost the chunk. So it
/// need not wait for the window of the path that lost it.
#[derive(Debug, Default)]
pub struct RtxPipeCwnd;

impl RtxPolicy for RtxPipeCwnd {
    fn choose(&mut self, cx: &mut PolicyCx<'_>, _lost: &RtxCandidate) -> Option<PathId> {
        cx.least_used()
    }
}
