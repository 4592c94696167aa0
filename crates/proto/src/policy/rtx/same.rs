//! RTX-SAME (CMT paper, section IV-B), which is AllRtxSame (retransmission policies paper, section
//! 2).

use super::{RtxCandidate, RtxPolicy, if_room, same};
use crate::policy::PolicyCx;
use crate::view::PathId;

/// A retransmission takes the path of the transmission before it, until that path is unusable; then
/// the next usable one.
#[derive(Debug, Default)]
pub struct RtxSame;

impl RtxPolicy for RtxSame {
    fn choose(&mut self, cx: &mut PolicyCx<'_>, lost: &RtxCandidate) -> Option<PathId> {
        let chosen = same(cx, lost.last_path);
        if_room(cx, chosen)
    }

    fn stays_after_timeout(&self) -> bool {
        true
    }
}
