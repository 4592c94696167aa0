//! A path as a path set sees it.

use std::time::Duration;

use super::{Path, PathId, PathState};

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

impl Path {
    /// The path as a path set sees it.
    pub(crate) fn standing(&self) -> Standing {
        Standing {
            id: self.id,
            state: self.state,
            is_away: self.is_away,
            is_probed: self.probe.is_some(),
            srtt: self.rto.srtt(),
            loss_rate: self.loss_rate(),
            is_loss_certain: self.loss_oracle.is_some(),
            acked_bytes: self.counters.acked_bytes,
            chunks_sent: self.counters.data_chunks_sent,
            chunks_lost: self.counters.chunks_lost,
        }
    }
}
