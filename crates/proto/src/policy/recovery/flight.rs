//! The view that a recovery has of outstanding data.

use manypath_wire::Tsn;

use crate::view::PathId;

/// The end of a fast recovery: the latest data that was outstanding when it began.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The highest TSN.
    pub tsn: Tsn,
    /// The latest transmission. A path that recovers on its own ends by it, whatever other paths
    /// have lost.
    pub order: u64,
}

/// The chunks that are in flight or wait for retransmission.
pub trait Flight {
    /// All TSNs up to this one are acknowledged.
    fn cum_tsn_ack_point(&self) -> Tsn;

    /// The end of a fast recovery that begins now.
    fn exit(&self) -> Exit;

    /// The earliest transmission in flight on a path, in the order of all transmissions of the
    /// association.
    fn earliest_order(&self, path: PathId) -> Option<u64>;

    /// The path of the lowest TSN that waits for retransmission, or of the lowest above `after`.
    fn lowest_waiting_beyond(&self, after: Option<Tsn>) -> Option<PathId>;

    /// The highest TSN last sent on a path among those that wait for retransmission, and among all
    /// others, which includes acknowledged ones.
    fn highest_sent_on(&self, path: PathId) -> (Option<Tsn>, Option<Tsn>);
}
