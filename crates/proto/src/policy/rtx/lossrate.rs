//! RTX-LOSSRATE (CMT paper, section IV-B).

use super::{RtxCandidate, RtxPolicy, if_room};
use crate::policy::PolicyCx;
use crate::view::PathId;

/// The path with the lowest loss rate. The paper's oracle exists in simulation only; elsewhere it
/// is the rate that this sender measures.
#[derive(Debug, Default)]
pub struct RtxLossrate;

impl RtxPolicy for RtxLossrate {
    fn choose(&mut self, cx: &mut PolicyCx<'_>, _lost: &RtxCandidate) -> Option<PathId> {
        let chosen = cx.argmax(|p| p.usable, |p| -p.loss_rate);
        if_room(cx, chosen)
    }

    fn needs_true_loss(&self) -> bool {
        true
    }
}
