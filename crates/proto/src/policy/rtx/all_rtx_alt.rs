//! AllRtxAlt (retransmission policies paper, section 1; RFC 2960 §6.4.1).

use super::{RtxCandidate, RtxPolicy, alternate, if_room};
use crate::policy::PolicyCx;
use crate::view::PathId;

/// Every retransmission takes the next usable path after that of the previous transmission, in
/// round-robin; the same path only if there is no other.
#[derive(Debug, Default)]
pub struct AllRtxAlt;

impl RtxPolicy for AllRtxAlt {
    fn choose(&mut self, cx: &mut PolicyCx<'_>, lost: &RtxCandidate) -> Option<PathId> {
        let chosen = alternate(cx, lost.last_path);
        if_room(cx, chosen)
    }

    fn leaves_after_fast_retransmit(&self) -> bool {
        true
    }
}
