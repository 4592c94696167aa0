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
    /// Our address on it is ours no longer, so that nothing is sent there.
    pub is_away: bool,
    /// A heartbeat was sent and not answered yet.
    pub is_probed: bool,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// Fraction of chunks lost since the path exists, or what a simulation's oracle says.
    pub loss_rate: f64,
    /// The loss rate is the oracle's.
    pub is_loss_certain: bool,
    /// User bytes acknowledged since the path exists.
    pub acked_bytes: u64,
    /// DATA chunks sent since then.
    pub chunks_sent: u64,
    /// Of these, chunks taken for lost.
    pub chunks_lost: u64,
}
