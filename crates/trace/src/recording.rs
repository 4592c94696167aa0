//! The lines of a record: a transfer as its sender saw it, sampled.

use std::collections::BTreeMap;

use manypath_proto::{AssocStats, PathStats};
use serde::{Deserialize, Serialize};

use crate::event::path_number;

/// The host in the lines of a record: the end that sends.
pub const RECORD_HOST: &str = "sender";

/// The transfer that a record is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Recording {
    /// The version of the trace's schema.
    pub schema: u32,
    /// The version of the program that records.
    pub version: String,
    /// When it began, in seconds since 1970 (UTC).
    pub started_s: f64,
    /// The profile of the sender's engine.
    pub profile: String,
    /// Its preset.
    pub preset: String,
    /// Its parameters that differ from profile and preset, with their values.
    pub parameters: BTreeMap<String, String>,
    /// Packets are encrypted and authenticated.
    pub is_protected: bool,
    /// Bytes of IP and UDP headers that `bytes_sent` does not have, for each packet.
    pub header_bytes: u64,
    /// Bits per second that the application offers; absent if as many as the network takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
}

/// A path at one time. Counts are since the path was added.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PathSample {
    /// The path.
    pub path: u16,
    /// When it was last looked at before: whatever changed did so since.
    pub since_s: f64,
    /// Its state: `unconfirmed`, `active`, `potentially_failed` or `inactive`.
    pub state: String,
    /// Why it carries no data although it works; absent if it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suppressed: Option<String>,
    /// Packets sent.
    pub packets_sent: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bytes of SCTP packets sent, without IP and UDP headers.
    pub bytes_sent: u64,
    /// DATA chunks sent, retransmissions and copies included.
    pub data_chunks_sent: u64,
    /// DATA chunks sent here again.
    pub retransmissions: u64,
    /// DATA chunks sent here that were in flight on another path.
    pub redundant_chunks_sent: u64,
    /// Chunks last sent here that were found lost.
    pub chunks_lost: u64,
    /// Expirations of T3-rtx.
    pub t3_expirations: u64,
    /// User bytes that were last sent here and are acknowledged.
    pub acked_bytes: u64,
    /// Measurements of the round-trip time.
    pub rtt_samples: u64,
    /// The round-trip time that the latest SACK showed; absent until there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_s: Option<f64>,
    /// The path on which that SACK came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_via: Option<u16>,
    /// The round-trip time of the latest heartbeat; absent until one is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_heartbeat_s: Option<f64>,
    /// Congestion window.
    pub cwnd_bytes: u64,
    /// DATA chunks in flight, headers included.
    pub flight_size_bytes: u64,
    /// The largest IP packet that is sent.
    pub mtu_bytes: u64,
}

impl PathSample {
    /// A path as it is. It was looked at before at `since_s`.
    pub fn of(path: &PathStats, since_s: f64) -> PathSample {
        let counters = &path.counters;
        let (rtt, via) = path.rtt_latest.map_or((None, None), |(rtt, via)| (Some(rtt), via));
        PathSample {
            path: path_number(path.id),
            since_s,
            state: path.state.name().to_owned(),
            suppressed: path.suppressed.map(|reason| reason.name().to_owned()),
            packets_sent: counters.packets_sent,
            packets_received: counters.packets_received,
            bytes_sent: counters.bytes_sent,
            data_chunks_sent: counters.data_chunks_sent,
            retransmissions: counters.retransmissions,
            redundant_chunks_sent: counters.redundant_chunks_sent,
            chunks_lost: counters.chunks_lost,
            t3_expirations: counters.t3_expirations,
            acked_bytes: counters.acked_bytes,
            rtt_samples: path.rtt_samples,
            rtt_s: rtt.map(|rtt| rtt.as_secs_f64()),
            rtt_via: via.map(path_number),
            rtt_heartbeat_s: path.rtt_heartbeat.map(|rtt| rtt.as_secs_f64()),
            cwnd_bytes: path.cwnd as u64,
            flight_size_bytes: path.flight_size as u64,
            mtu_bytes: path.mtu as u64,
        }
    }

    /// True if something beside the time differs.
    pub(crate) fn differs(&self, other: &PathSample) -> bool {
        PathSample { since_s: self.since_s, ..other.clone() } != *self
    }
}

/// The association at one time. Counts are since it began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TransferSample {
    /// When it was last looked at before.
    pub since_s: f64,
    /// User bytes taken from the application.
    pub queued_bytes: u64,
    /// User bytes acknowledged for good.
    pub acked_bytes: u64,
    /// Free receive buffer of the peer, as its last SACK said.
    pub peer_window_bytes: u64,
    /// How long only that buffer held the sender back so far, in seconds.
    pub receive_buffer_blocked_s: f64,
}

impl TransferSample {
    /// The association as it is. It was looked at before at `since_s`.
    pub fn of(stats: &AssocStats, since_s: f64) -> TransferSample {
        TransferSample {
            since_s,
            queued_bytes: stats.bytes_queued,
            acked_bytes: stats.bytes_acked,
            peer_window_bytes: stats.peer_window as u64,
            receive_buffer_blocked_s: stats.receive_buffer_blocked.as_secs_f64(),
        }
    }

    /// True if something beside the time differs.
    pub(crate) fn differs(&self, other: &TransferSample) -> bool {
        TransferSample { since_s: self.since_s, ..other.clone() } != *self
    }
}

/// The end of a transfer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Recorded {
    /// Everything was delivered.
    pub completed: bool,
    /// Bytes of content that were to be delivered; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_bytes: Option<u64>,
    /// The time of the transfer as its result says; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfer_time_s: Option<f64>,
}
