//! The path of a retransmission (CMT paper, section IV-B; retransmission policies paper).

mod all_rtx_alt;
mod asap;
mod csl;
mod cwnd;
mod fr_same_rto_alt;
mod lossrate;
mod pipe_cwnd;
mod same;
mod soonest;
mod ssthresh;

pub use all_rtx_alt::AllRtxAlt;
pub use asap::RtxAsap;
pub use csl::RtxCsl;
pub use cwnd::RtxCwnd;
pub use fr_same_rto_alt::FrSameRtoAlt;
pub use lossrate::RtxLossrate;
pub use pipe_cwnd::RtxPipeCwnd;
pub use same::RtxSame;
pub use soonest::RtxSoonest;
pub use ssthresh::RtxSsthresh;

use super::{PolicyCx, registry};
use crate::view::PathId;

/// Why a chunk is retransmitted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossCause {
    /// Enough missing reports (RFC 9260 §7.2.4).
    FastRetransmit,
    /// T3-rtx expired (RFC 9260 §6.3.3).
    Timeout,
}

/// A chunk to retransmit.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RtxCandidate {
    /// The path it was last sent on.
    pub last_path: PathId,
    /// Why the chunk was taken for lost.
    pub cause: LossCause,
    /// Number of transmissions so far.
    pub transmissions: u16,
}

/// Chooses the path on which a lost chunk is sent again; each association has its own.
pub trait RtxPolicy: std::fmt::Debug + Send {
    /// A usable path with room in its congestion window, or `None` to wait for one. Called for the
    /// lowest lost TSN of each path, whenever something may be sent.
    fn choose(&mut self, cx: &mut PolicyCx<'_>, lost: &RtxCandidate) -> Option<PathId>;

    /// True if retransmissions after a timeout go back to the path that timed out, while it is
    /// usable. `har`, which measures that path again while retransmissions use others, is then
    /// refused.
    fn stays_after_timeout(&self) -> bool {
        false
    }

    /// True if every fast retransmit leaves the path that lost the chunk. The chunk then arrives
    /// out of order with later data of that path, so `mfr` would take it for lost again, and is
    /// refused.
    fn leaves_after_fast_retransmit(&self) -> bool {
        false
    }

    /// True if the policy uses the loss rates of paths, and the paper's simulation knew the true
    /// ones. A simulator then provides them; elsewhere they are measured.
    fn needs_true_loss(&self) -> bool {
        false
    }
}

registry!(RtxPolicy {
    "same" => |_| Box::new(RtxSame),
    "asap" => |_| Box::new(RtxAsap),
    "cwnd" => |_| Box::new(RtxCwnd),
    "ssthresh" => |_| Box::new(RtxSsthresh),
    "lossrate" => |_| Box::new(RtxLossrate),
    "soonest" => |_| Box::new(RtxSoonest),
    "csl" => |_| Box::new(RtxCsl),
    "all_rtx_alt" => |_| Box::new(AllRtxAlt),
    "all_rtx_same" => |_| Box::new(RtxSame),
    "fr_same_rto_alt" => |_| Box::new(FrSameRtoAlt),
    "pipe_cwnd" => |_| Box::new(RtxPipeCwnd),
});

/// The chosen path if a retransmission may go there now.
///
/// Policies that rank paths rank all usable ones first and then wait for the winner's window. A
/// retransmission that took the second best instead would be RTX-ASAP.
fn if_room(cx: &PolicyCx<'_>, chosen: Option<PathId>) -> Option<PathId> {
    chosen.filter(|&id| cx.path(id).is_some_and(|p| p.cwnd_space > 0))
}

/// The path itself, or the next usable one in the order of ids, round-robin.
fn same(cx: &PolicyCx<'_>, path: PathId) -> Option<PathId> {
    let at = cx.paths.iter().position(|p| p.id == path).unwrap_or(0);
    let (before, from) = cx.paths.split_at(at);
    from.iter().chain(before).find(|p| p.usable).map(|p| p.id)
}

/// The next usable path after this one, round-robin; this one if it is the only one.
fn alternate(cx: &PolicyCx<'_>, path: PathId) -> Option<PathId> {
    let after = cx.paths.iter().position(|p| p.id == path).map_or(0, |at| at + 1);
    let (before, from) = cx.paths.split_at(after);
    from.iter().chain(before).find(|p| p.usable).map(|p| p.id)
}

#[cfg(test)]
mod tests;
