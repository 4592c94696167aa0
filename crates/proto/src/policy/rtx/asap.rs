//! RTX-ASAP (CMT paper, section IV-B).

use super::{RtxCandidate, RtxPolicy};
use crate::policy::PolicyCx;
use crate::view::PathId;

/// Any path with room in its congestion window, at random.
#[derive(Debug, Default)]
pub struct RtxAsap;

impl RtxPolicy for RtxAsap {
    fn choose(&mut self, cx: &mut PolicyCx<'_>, _lost: &RtxCandidate) -> Option<PathId> {
        cx.argmax(|p| p.usable && p.cwnd_space > 0, |_| ())
    }
}
