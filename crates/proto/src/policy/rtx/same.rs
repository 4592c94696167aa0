//! RTX-SAME (CMT paper, section IV-B).

use super::{RtxCandidate, RtxPolicy, if_room};
use crate::path::PathId;
use crate::policy::PolicyCx;

/// A retransmission takes the path of the transmission before it, until that path is unusable; then the
/// next usable one.
#[derive(Debug, Default)]
pub struct RtxSame;

impl RtxPolicy for RtxSame {
    fn choose(&mut self, cx: &mut PolicyCx<'_>, lost: &RtxCandidate) -> Option<PathId> {
        let at = cx.paths.iter().position(|p| p.id == lost.last_path).unwrap_or(0);
        let (before, from) = cx.paths.split_at(at);
        let chosen = from.iter().chain(before).find(|p| p.usable).map(|p| p.id);
        if_room(cx, chosen)
    }
}
