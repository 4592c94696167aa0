//! What a path counts, and what it tells of itself.

use std::net::SocketAddr;
use std::time::Duration;

use super::{PathId, PathState, SuppressReason};
use crate::time::Instant;

/// Runs of T3-rtx expirations that are told apart, by their length.
pub const T3_IN_A_ROW: usize = 8;

/// Counters of a path, and a snapshot of its variables.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PathStats {
    /// The path.
    pub id: PathId,
    /// Our transport address.
    pub local: SocketAddr,
    /// The peer's transport address.
    pub remote: SocketAddr,
    /// Its state.
    pub state: PathState,
    /// SCTP packets sent.
    pub packets_sent: u64,
    /// SCTP packets received.
    pub packets_received: u64,
    /// DATA chunks sent, retransmissions and redundant ones included.
    pub data_chunks_sent: u64,
    /// Bytes of SCTP packets sent, without IP and UDP headers.
    pub bytes_sent: u64,
    /// Bytes of SCTP packets received.
    pub bytes_received: u64,
    /// DATA chunks sent here that were in flight on another path: redundant ones.
    pub redundant_chunks_sent: u64,
    /// DATA chunks sent again here.
    pub retransmissions: u64,
    /// Chunks last sent here that missing reports made lost.
    pub fast_retransmits: u64,
    /// Expirations of T3-rtx.
    pub t3_expirations: u64,
    /// Of these, by how many of them in a row, from 1, each was the last, with nothing between that
    /// proved that the path works; the last entry counts all beyond too.
    pub t3_in_a_row: [u64; T3_IN_A_ROW],
    /// Tail-loss probes sent.
    pub tail_loss_probes: u64,
    /// Heartbeats sent.
    pub heartbeats_sent: u64,
    /// Probes of the size of its packets (RFC 8899); they do not count as heartbeats.
    pub size_probes_sent: u64,
    /// Measurements of the round-trip time.
    pub rtt_samples: u64,
    /// User bytes that were last sent here and are acknowledged.
    pub acked_bytes: u64,
    /// Smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// The shortest round-trip time that was measured.
    pub rtt_min: Option<Duration>,
    /// Round-trip time variation.
    pub rttvar: Duration,
    /// Retransmission timeout, with its back-off.
    pub rto: Duration,
    /// Congestion window in bytes.
    pub cwnd: usize,
    /// Slow-start threshold in bytes.
    pub ssthresh: usize,
    /// Bytes of DATA chunks in flight.
    pub flight_size: usize,
    /// Timeouts in a row.
    pub error_count: u32,
    /// Why it carries no data although it works; `None` if it may.
    pub suppressed: Option<SuppressReason>,
    /// The largest IP packet that is sent on it, in bytes, headers included.
    pub mtu: usize,
}

/// Counters that a path keeps; the rest of [`PathStats`] is read when asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) packets_sent: u64,
    pub(crate) packets_received: u64,
    pub(crate) data_chunks_sent: u64,
    pub(crate) bytes_sent: u64,
    pub(crate) bytes_received: u64,
    pub(crate) redundant_chunks_sent: u64,
    pub(crate) retransmissions: u64,
    pub(crate) fast_retransmits: u64,
    pub(crate) t3_expirations: u64,
    pub(super) t3_in_a_row: [u64; T3_IN_A_ROW],
    /// When the last of them was, and its index there.
    t3_last: Option<(Instant, usize)>,
    pub(crate) tail_loss_probes: u64,
    pub(crate) heartbeats_sent: u64,
    pub(crate) size_probes_sent: u64,
    pub(crate) acked_bytes: u64,
    pub(crate) chunks_lost: u64,
}

impl Counters {
    /// T3-rtx expired on a path that last proved to work at `last_active`.
    pub(crate) fn t3_expired(&mut self, now: Instant, last_active: Instant) {
        let follows = self.t3_last.filter(|(at, _)| last_active < *at);
        let index = follows.map_or(0, |(_, index)| (index + 1).min(T3_IN_A_ROW - 1));
        self.t3_in_a_row[index] += 1;
        self.t3_last = Some((now, index));
        self.t3_expirations += 1;
    }
}
