//! The view that a redundancy policy has of the paths and of what is in flight on them.

use std::iter;
use std::time::Duration;

use manypath_wire::Tsn;

use crate::time::Instant;
use crate::view::{Estimate, PathId};

/// A DATA chunk that was sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentChunk {
    /// TSN of the chunk.
    pub tsn: Tsn,
    /// The path of its last transmission. A copy is not counted as one.
    pub path: PathId,
    /// Time of that transmission.
    pub sent_at: Instant,
    /// Bytes of the chunk with its header and padding, which count against cwnd.
    pub size: usize,
    /// True if it was sent once, apart from copies.
    pub is_first: bool,
}

/// The speed of a path, and its use.
#[derive(Copy, Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FlightPath {
    /// The path.
    pub id: PathId,
    /// It may carry data now: by the failure policy, the path set and its rank.
    pub usable: bool,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// By how much a round-trip time may exceed the smoothed one: four times RTTVAR, or more where
    /// SACKs are delayed.
    pub rtt_variation: Duration,
    /// Rate of the path, where congestion control measures it.
    pub estimate: Option<Estimate>,
    /// When the path last proved to work.
    pub last_active: Instant,
}

/// The paths, and the chunks in flight on each.
///
/// A fact is read when a policy asks for it, because policies that copy are asked for every packet.
pub trait Flights {
    /// All TSNs up to this one are acknowledged.
    fn cum_tsn_ack_point(&self) -> Tsn;

    /// When a SACK last moved that point.
    fn last_progress(&self) -> Instant;

    /// The chunk that the receiver waits for: the one after the cumulative TSN ack point. It is in
    /// flight or waits for retransmission.
    fn awaited(&self) -> Option<SentChunk>;

    /// The first chunk in flight on a path that `accepts` returns true for. It is asked in order of
    /// transmission, and not of copies.
    fn find_on(
        &self,
        path: PathId,
        accepts: &mut dyn FnMut(&SentChunk) -> bool,
    ) -> Option<SentChunk>;

    /// True if a chunk is in flight on its path and on no other. Only such a chunk can be copied.
    fn is_alone(&self, chunk: &SentChunk) -> bool;

    /// The path with this id.
    fn path(&self, id: PathId) -> Option<FlightPath>;

    /// The path with the least id above `after`, or with the least of all.
    fn path_after(&self, after: Option<PathId>) -> Option<FlightPath>;

    /// True if the congestion window of a path, Max.Burst and pacing have room for a chunk now.
    fn has_room(&self, path: PathId) -> bool;

    /// User bytes that were acknowledged.
    fn bytes_acked(&self) -> u64;

    /// Bytes of all chunks that were copied, headers included.
    fn bytes_copied(&self) -> u64;
}

impl dyn Flights + '_ {
    /// All paths, in the order of ids.
    pub fn paths(&self) -> impl Iterator<Item = FlightPath> {
        iter::successors(self.path_after(None), |path| self.path_after(Some(path.id)))
    }
}
