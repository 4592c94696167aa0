//! A path as a path set sees it.

use std::time::Duration;

use super::path::PathId;
use super::state::PathState;

/// Where a path stands, and what it has done so far.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Standing {
    /// The path.
    pub id: PathId,
    /// Its state.
    pub state: PathState,
    /// True if this host no longer has the path's local address, so that nothing is sent there.
    pub is_away: bool,
    /// A heartbeat was sent and not answered yet.
    pub is_probed: bool,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Fraction of chunks lost over the life of the path, or from a simulation's oracle.
    pub loss_rate: f64,
    /// True if the loss rate is the oracle's.
    pub is_loss_certain: bool,
    /// User bytes acknowledged over the life of the path.
    pub acked_bytes: u64,
    /// DATA chunks sent over the life of the path.
    pub chunks_sent: u64,
    /// Chunks of these taken for lost.
    pub chunks_lost: u64,
}
