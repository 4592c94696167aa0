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
    /// DATA chunks sent that are not acknowledged cumulatively yet.
    pub chunks_outstanding: usize,
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
    /// SACKs whose missing reports made chunks lost. Each is one fast retransmit, however many
    /// chunks are lost.
    pub fast_retransmit_events: u64,
    /// Messages given up before anything of them was sent (RFC 7496 §4.3).
    pub messages_dropped: u64,
    /// Messages given up after something of them was sent (RFC 7496 §4.3).
    pub messages_abandoned: u64,
    /// FORWARD TSN and I-FORWARD-TSN chunks sent.
    pub forward_tsns_sent: u64,
    /// FORWARD TSN and I-FORWARD-TSN chunks received.
    pub forward_tsns_received: u64,
    /// Packets with DATA received whose IP header said that they met congestion (CE), if both ends
    /// use ECN.
    pub ecn_marks_received: u64,
    /// ECNE chunks received: marks that the peer echoed.
    pub ecn_echoes_received: u64,
    /// SACKs sent.
    pub sacks_sent: u64,
    /// SACKs received.
    pub sacks_received: u64,
    /// Of these, NR-SACKs.
    pub nr_sacks_received: u64,
    /// Total time during which only the peer's receive buffer held data back, while congestion
    /// windows had room.
    pub receive_buffer_blocked: Duration,
    /// Start of such a time that still lasts, which `receive_buffer_blocked` does not contain yet.
    pub receive_buffer_blocked_since: Option<Instant>,
    /// When the first DATA chunk was sent.
    pub first_data_sent: Option<Instant>,
    /// Packets dropped as malformed, or as not belonging to the association.
    pub packets_dropped: u64,
    /// Protected packets that could not be opened: forged, damaged, repeated, or with unknown keys.
    pub records_refused: u64,
    /// Times that the keys which protect our packets were replaced.
    pub keys_replaced: u64,
    /// Packets dropped because they were not protected as they must be.
    pub unprotected_dropped: u64,
    /// AUTH chunks discarded with all that followed them: forged, damaged, or with unknown keys or
    /// algorithms (RFC 4895 §6.3).
    pub auth_failures: u64,
    /// Chunks discarded because they were not authenticated as they must be.
    pub unauthenticated_dropped: u64,
    /// Heartbeats sent to candidates of the peer that are on no path.
    pub checks_sent: u64,
    /// Paths that such heartbeats opened.
    pub direct_paths: u64,
}
