//! RTX-CWND (CMT paper, section IV-B).

use super::{RtxCandidate, RtxPolicy, if_room};
use crate::policy::PolicyCx;
use crate::view::PathId;

/// The path with the largest cwnd, in bytes.
#[derive(Debug, Default)]
pub struct RtxCwnd;

impl RtxPolicy for RtxCwnd {
    fn choose(&mut self, cx: &mut PolicyCx<'_>, _lost: &RtxCandidate) -> Option<PathId> {
        let chosen = cx.argmax(|p| p.usable, |p| p.cwnd);
        if_room(cx, chosen)
    }
}
