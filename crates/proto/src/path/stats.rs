//! Counters of a path, and the snapshot of its variables that results contain.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::time::Instant;
use crate::view::{PathId, PathRank, PathState, SuppressReason};

/// Longest run of T3-rtx expirations that has an entry of its own.
pub const T3_IN_A_ROW: usize = 8;

/// Counters of a path, and a snapshot of its variables.
///
/// This type is the only place that declares the figures of a path, in the form that results have.
/// The results of the simulator, of transfers in real time, of `send` and of `perf` flatten it. A
/// new counter needs a field of [`PathCounters`] and a line where it is counted. Fields with `skip`
/// are left out because some results have fields of their own for them, and some appear in traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PathStats {
    /// The path.
    #[serde(skip)]
    pub id: PathId,
    /// Our transport address.
    pub local: SocketAddr,
    /// The peer's transport address.
    pub remote: SocketAddr,
    /// Its state.
    pub state: PathState,
    /// The rank: paths of lesser ranks carry data first.
    #[serde(skip)]
    pub rank: PathRank,
    /// Its counters since it was added.
    #[serde(flatten)]
    pub counters: PathCounters,
    /// Measurements of the round-trip time.
    #[serde(skip)]
    pub rtt_samples: u64,
    /// Smoothed round-trip time, once measured.
    #[serde(rename = "srtt_s", serialize_with = "seconds")]
    pub srtt: Option<Duration>,
    /// The shortest round-trip time that was measured.
    #[serde(skip)]
    pub rtt_min: Option<Duration>,
    /// The round-trip time of the latest chunk that the latest SACK acknowledged, and the path on
    /// which that SACK came.
    #[serde(skip)]
    pub rtt_latest: Option<(Duration, Option<PathId>)>,
    /// The round-trip time of the latest heartbeat that was answered on the path itself.
    #[serde(skip)]
    pub rtt_heartbeat: Option<Duration>,
    /// Round-trip time variation.
    #[serde(skip)]
    pub rttvar: Duration,
    /// Retransmission timeout, with its back-off.
    #[serde(skip)]
    pub rto: Duration,
    /// Congestion window in bytes.
    #[serde(rename = "cwnd_bytes")]
    pub cwnd: usize,
    /// Slow-start threshold in bytes.
    #[serde(skip)]
    pub ssthresh: usize,
    /// Bytes of DATA chunks in flight.
    #[serde(skip)]
    pub flight_size: usize,
    /// Timeouts in a row.
    #[serde(skip)]
    pub error_count: u32,
    /// Why it carries no data although it works; `None` if it may.
    #[serde(skip)]
    pub suppressed: Option<SuppressReason>,
    /// The largest IP packet that is sent on it, in bytes, headers included.
    #[serde(rename = "mtu_bytes")]
    pub mtu: usize,
}

/// Counters of a path since it was added. Results write them as part of [`PathStats`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PathCounters {
    /// SCTP packets sent.
    pub packets_sent: u64,
    /// SCTP packets received.
    #[serde(skip)]
    pub packets_received: u64,
    /// DATA chunks sent, retransmissions and redundant ones included.
    pub data_chunks_sent: u64,
    /// DATA chunks sent here as copies, while they were in flight on another path.
    pub redundant_chunks_sent: u64,
    /// Bytes of SCTP packets sent, without IP and UDP headers.
    pub bytes_sent: u64,
    /// Bytes of SCTP packets received.
    #[serde(skip)]
    pub bytes_received: u64,
    /// User bytes that arrived here first. Duplicates do not count.
    #[serde(skip)]
    pub data_bytes_received: u64,
    /// DATA chunks retransmitted here, whichever path they were sent on before.
    pub retransmissions: u64,
    /// Chunks last sent here that missing reports made lost.
    pub fast_retransmits: u64,
    /// Times that marks of congestion cut the window (ECN). Results have it unless it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub ecn_cuts: u64,
    /// Expirations of T3-rtx.
    pub t3_expirations: u64,
    /// T3-rtx expirations by their place in a row of expirations without proof between them that
    /// the path works. The last entry also counts all later places.
    #[serde(skip)]
    pub t3_in_a_row: [u64; T3_IN_A_ROW],
    /// Time of the latest expiration, and its index in `t3_in_a_row`.
    #[serde(skip)]
    t3_last: Option<(Instant, usize)>,
    /// Tail-loss probes sent.
    #[serde(skip)]
    pub tail_loss_probes: u64,
    /// Heartbeats sent.
    pub heartbeats_sent: u64,
    /// Probes of the size of its packets (RFC 8899); they do not count as heartbeats.
    #[serde(skip)]
    pub size_probes_sent: u64,
    /// User bytes acknowledged of chunks last sent here.
    #[serde(skip)]
    pub acked_bytes: u64,
    /// Chunks last sent here that were taken for lost, for any reason.
    #[serde(skip)]
    pub chunks_lost: u64,
}

impl PathCounters {
    /// T3-rtx expired on a path that last proved to work at `last_active`.
    pub(crate) fn t3_expired(&mut self, now: Instant, last_active: Instant) {
        let follows = self.t3_last.filter(|(at, _)| last_active < *at);
        let index = follows.map_or(0, |(_, index)| (index + 1).min(T3_IN_A_ROW - 1));
        self.t3_in_a_row[index] += 1;
        self.t3_last = Some((now, index));
        self.t3_expirations += 1;
    }
}

fn seconds<S: Serializer>(duration: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    duration.map(|duration| duration.as_secs_f64()).serialize(to)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
