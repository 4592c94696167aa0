//! RTX-CSL (MSACMT paper, section II).

use super::{RtxCandidate, RtxPolicy, if_room};
use crate::policy::PolicyCx;
use crate::view::PathId;

/// The path with the largest cwnd, then the largest ssthresh, then the lowest loss rate.
#[derive(Debug, Default)]
pub struct RtxCsl;

impl RtxPolicy for RtxCsl {
    fn choose(&mut self, cx: &mut PolicyCx<'_>, _lost: &RtxCandidate) -> Option<PathId> {
        let chosen = cx.argmax(|p| p.usable, |p| (p.cwnd, p.ssthresh, -p.loss_rate));
        if_room(cx, chosen)
    }
}
