//! What is outstanding, as a recovery may see it.

use manypath_wire::Tsn;

use super::fast::Exit;
use crate::path::PathId;

/// The chunks that are in flight or wait for retransmission.
pub trait Flight {
    /// Up to it everything is acknowledged.
    fn cum_tsn_ack_point(&self) -> Tsn;

    /// Where a fast recovery ends that begins now.
    fn exit(&self) -> Exit;

    /// The earliest transmission in flight on a path, in the order of all transmissions of the
    /// association.
    fn earliest_order(&self, path: PathId) -> Option<u64>;

    /// The path of the lowest TSN that waits for retransmission, of those above `after` if that is
    /// given.
    fn lowest_waiting_beyond(&self, after: Option<Tsn>) -> Option<PathId>;

    /// The highest TSN last sent on a path of those that wait for retransmission, and of those that
    /// do not, acknowledged ones included.
    fn highest_sent_on(&self, path: PathId) -> (Option<Tsn>, Option<Tsn>);
}
