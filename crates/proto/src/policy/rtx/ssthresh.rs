//! RTX-SSTHRESH (CMT paper, section IV-B).

use super::{RtxCandidate, RtxPolicy, if_room};
use crate::policy::PolicyCx;
use crate::view::PathId;

/// The path with the largest ssthresh, in bytes. ssthresh changes more slowly than cwnd, so it
/// shows more of the path's loss. The papers recommend it.
#[derive(Debug, Default)]
pub struct RtxSsthresh;

impl RtxPolicy for RtxSsthresh {
    fn choose(&mut self, cx: &mut PolicyCx<'_>, _lost: &RtxCandidate) -> Option<PathId> {
        let chosen = cx.argmax(|p| p.usable, |p| p.ssthresh);
        if_room(cx, chosen)
    }
}
