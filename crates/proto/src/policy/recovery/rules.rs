//! The answers of a recovery that never change: plain data, read for every chunk and packet.

use crate::params::{Cuc, Params};

/// The rules of an association. [`standard`](Self::standard) has those of RFC 9260.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rules {
    /// How to read SACKs.
    pub sacks: SackRules,
    /// The chunks that T3-rtx watches.
    pub t3: T3Rules,
    /// The data that takes room in the peer's receive buffer.
    pub room: RoomRules,
    /// When to send heartbeats.
    pub heartbeats: HeartbeatRules,
    /// Chunks that wait for retransmission take room in the window of the path they were last sent
    /// on, so that new data waits.
    pub waiting_takes_cwnd: bool,
    /// Congestion avoidance counts acknowledged bytes only from the pseudo-cumack on. It counts
    /// those of the cumulative ack only if cwnd was used up. With CUC only.
    pub growth_needs_used_window: bool,
    /// cwnd decays even while data is in flight. The engine then asks
    /// [`decayed`](super::LossRecovery::decayed).
    pub decays_in_silence: bool,
    /// New data may have to wait. The engine then asks
    /// [`holds_new_data`](super::LossRecovery::holds_new_data).
    pub holds_data: bool,
    /// The side that opens the association probes every path, even that of the handshake. It sends
    /// no new DATA until all have answered.
    pub verifies_first: bool,
    /// A packet with nothing but duplicates is acknowledged at once, and also counts towards the
    /// next delayed SACK. Without DAC only.
    pub duplicates_count: bool,
}

/// How to read a SACK.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SackRules {
    /// The chunks that a newly acknowledged one reports missing.
    pub scope: ReportScope,
    /// How [`ReportScope::Path`] compares chunks.
    pub compares: SfrCompares,
    /// Multiple fast retransmit (retransmission policies paper, section 4.3).
    pub mfr: bool,
    /// With `mfr` only what was sent later on the same path reports a retransmission missing. Ours:
    /// the paper's sender has its data on one path.
    pub mfr_on_one_path: bool,
    /// cwnd update for CMT (CMT paper, Figs. 3 and 8).
    pub cuc: Cuc,
    /// Missing reports that make a chunk lost (RFC 9260 §7.2.4).
    pub missing_reports: u8,
    /// Missing reports may make a chunk lost after its retransmission at a timeout.
    pub reports_after_timeout: bool,
    /// A SACK reports all gaps below the highest TSN acknowledged so far as missing, not only those
    /// below the highest that it newly acknowledges. With [`ReportScope::Association`] only.
    pub highest_stays: bool,
    /// Missing reports count even for chunks that wait for retransmission.
    pub waiting_is_reported: bool,
    /// A SACK revokes all chunks that it does not report, even if the cumulative TSN ack stays.
    pub overtaken_revokes: bool,
    /// Chunks acknowledged while they wait for retransmission count as in flight before the SACK.
    pub waiting_used_cwnd: bool,
    /// Each advance of the cumulative TSN ack clears the error count of the path that its first
    /// chunk was last sent on.
    pub cum_ack_clears_errors: bool,
}

/// The chunks that a newly acknowledged one reports missing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReportScope {
    /// All chunks below it, on any path (RFC 9260 §7.2.4).
    Association,
    /// The chunks sent before it on its own path: split fast retransmit (CMT paper, Fig. 2).
    Path,
    /// The chunks sent before it on its own path, once they are late: RACK (RFC 8985). Missing
    /// reports count only on a path where nothing has arrived out of order.
    Time,
}

/// How split fast retransmit compares chunks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SfrCompares {
    /// By the order of transmission. A chunk is missing if another is acknowledged that was sent
    /// later on the same path, and only once.
    Order,
    /// By TSN, as in Fig. 2 of the CMT paper. A chunk is missing if a higher TSN of the same path
    /// is gap-acknowledged for the first time. DAC counts only the paths of such TSNs.
    Tsn,
}

/// The chunks of a path that T3-rtx watches.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct T3Rules {
    /// The chunk whose acknowledgement restarts the timer.
    pub watches: T3Watches,
    /// The timer also runs while chunks last sent on the path only wait for retransmission.
    pub covers_waiting: bool,
    /// A retransmission that becomes the lowest TSN of the path restarts the timer. With
    /// [`T3Watches::LowestTsn`] only.
    pub restarts_for_lower: bool,
}

/// The chunk of a path that T3-rtx watches (RFC 9260 §6.3.2, R3).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum T3Watches {
    /// The chunk in flight that was sent first.
    EarliestSent,
    /// The unacknowledged chunk with the lowest TSN. Its retransmission also restarts the timer, as
    /// does every cumulative ack of a chunk that was sent on the path.
    LowestTsn,
}

/// The data that takes room in the peer's receive buffer. User data in flight always does.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoomRules {
    /// Headers of DATA chunks take room. Both ends must agree on this.
    pub of_headers: bool,
    /// Chunks that wait for retransmission take room.
    pub of_waiting: bool,
}

/// When to send heartbeats.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HeartbeatRules {
    /// HB.interval and the RTO added to it count from the sending of a HEARTBEAT, not from its
    /// answer. The repetition of a lost HEARTBEAT replaces the next one.
    pub from_sending: bool,
    /// A path that fails is probed at once and then every RTO, without HB.interval.
    pub failed_at_once: bool,
    /// No HEARTBEAT verifies paths when the association opens. All are active at once, and each is
    /// first probed after HB.interval, as in RFC 2960.
    pub none_at_start: bool,
    /// The time between HEARTBEATs is half of HB.interval and the RTO, without jitter.
    pub halved: bool,
    /// A lost HEARTBEAT is repeated at once, not after HB.interval.
    pub repeated_at_once: bool,
    /// HB.interval is one for all paths: when it is over, the path is probed that has been idle for
    /// longest.
    pub one_at_a_time: bool,
}

impl Rules {
    /// The rules of RFC 9260, and with `sfr` those of the CMT paper.
    pub fn standard(config: &Params) -> Rules {
        Rules {
            sacks: SackRules {
                scope: if config.sfr { ReportScope::Path } else { ReportScope::Association },
                // The order of transmission equals that of TSNs for chunks sent once, and is right
                // for retransmissions too.
                compares: SfrCompares::Order,
                mfr: config.mfr,
                mfr_on_one_path: true,
                cuc: config.cuc,
                missing_reports: u8::try_from(config.missing_reports).unwrap_or(u8::MAX),
                reports_after_timeout: true,
                highest_stays: false,
                waiting_is_reported: false,
                overtaken_revokes: false,
                waiting_used_cwnd: false,
                cum_ack_clears_errors: false,
            },
            t3: T3Rules {
                watches: T3Watches::EarliestSent,
                covers_waiting: false,
                restarts_for_lower: false,
            },
            room: RoomRules { of_headers: false, of_waiting: false },
            heartbeats: HeartbeatRules {
                from_sending: false,
                failed_at_once: false,
                none_at_start: false,
                halved: false,
                repeated_at_once: true,
                one_at_a_time: false,
            },
            waiting_takes_cwnd: false,
            growth_needs_used_window: false,
            decays_in_silence: false,
            holds_data: false,
            verifies_first: config.verify_all_paths_first,
            duplicates_count: false,
        }
    }
}
