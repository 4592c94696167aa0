//! Counters of an association.

use std::time::Duration;

use crate::time::Instant;

/// Counters of an association; those of its paths are in [`PathStats`](crate::PathStats).
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct AssocStats {
    /// Messages taken from the application.
    pub messages_sent: u64,
    /// User bytes taken from the application.
    pub bytes_queued: u64,
    /// User bytes acknowledged for good: cumulatively, or by a non-renegable block.
    pub bytes_acked: u64,
    /// Whole messages delivered to the application.
    pub messages_received: u64,
    /// User bytes delivered to the application.
    pub bytes_received: u64,
    /// User bytes in the receive buffer now.
    pub receive_buffered: usize,
    /// Free receive buffer of the peer, in bytes, as its last SACK or its INIT or INIT ACK said.
    pub peer_window: usize,
    /// DATA chunks that arrived more than once.
    pub duplicates_received: u64,
    /// DATA chunks that had arrived and were discarded again for want of room (reneging, RFC 9260
    /// §6.2).
    pub chunks_reneged: u64,
    /// SACKs whose missing reports made chunks lost: fast retransmits, however many chunks each is
    /// of.
    pub fast_retransmit_events: u64,
    /// SACKs sent.
    pub sacks_sent: u64,
    /// SACKs received.
    pub sacks_received: u64,
    /// Of these, NR-SACKs.
    pub nr_sacks_received: u64,
    /// Time during which data and congestion windows were there, and only the peer's receive buffer
    /// held the sender back.
    pub receive_buffer_blocked: Duration,
    /// Since when that has been so without a break, if it is so now; not yet part of the time
    /// above.
    pub receive_buffer_blocked_since: Option<Instant>,
    /// When the first DATA chunk was sent.
    pub first_data_sent: Option<Instant>,
    /// Packets dropped as malformed, or as not belonging here.
    pub packets_dropped: u64,
    /// Protected packets that could not be opened: forged, damaged, repeated, or of keys that are
    /// not there.
    pub records_refused: u64,
    /// Times that the keys which protect our packets were replaced.
    pub keys_replaced: u64,
    /// Packets that were not protected as they should have been.
    pub unprotected_dropped: u64,
}
