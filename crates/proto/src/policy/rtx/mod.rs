//! The path of a retransmission (CMT paper, section IV-B).

mod asap;
mod csl;
mod cwnd;
mod lossrate;
mod same;
mod ssthresh;

pub use asap::RtxAsap;
pub use csl::RtxCsl;
pub use cwnd::RtxCwnd;
pub use lossrate::RtxLossrate;
pub use same::RtxSame;
pub use ssthresh::RtxSsthresh;

use super::{PolicyCx, registry};
use crate::path::PathId;

/// Why a chunk is retransmitted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// Enough missing reports (RFC 9260 §7.2.4).
    FastRetransmit,
    /// T3-rtx expired (RFC 9260 §6.3.3).
    Timeout,
}

/// A chunk to retransmit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RtxCandidate {
    /// The path it was last sent on.
    pub last_path: PathId,
    /// Why it is taken for lost.
    pub cause: LossCause,
    /// How often it was sent.
    pub transmissions: u16,
}

/// Chooses where a lost chunk is sent again.
pub trait RtxPolicy: std::fmt::Debug + Send {
    /// A usable path with room in its congestion window, or `None` to wait for one.
    fn choose(&mut self, cx: &mut PolicyCx<'_>, lost: &RtxCandidate) -> Option<PathId>;
}

registry!(RtxPolicy {
    "same" => |_| Box::new(RtxSame),
    "asap" => |_| Box::new(RtxAsap),
    "cwnd" => |_| Box::new(RtxCwnd),
    "ssthresh" => |_| Box::new(RtxSsthresh),
    "lossrate" => |_| Box::new(RtxLossrate),
    "csl" => |_| Box::new(RtxCsl),
});

/// The chosen path if a retransmission may go there now.
///
/// The policies that rank paths rank all usable ones first and then wait for the winner's window: a
/// retransmission that spilled onto the second best would be RTX-ASAP.
fn if_room(cx: &PolicyCx<'_>, chosen: Option<PathId>) -> Option<PathId> {
    chosen.filter(|&id| cx.path(id).is_some_and(|p| p.cwnd_space > 0))
}

#[cfg(test)]
mod tests;
