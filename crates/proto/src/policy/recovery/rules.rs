//! What a recovery answers once and for all: plain data, read for every chunk and packet.

use crate::config::{Config, Cuc};

/// The rules of an association. [`standard`](Self::standard) are those of RFC 9260.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How SACKs are read.
    pub sacks: SackRules,
    /// What T3-rtx watches.
    pub t3: T3Rules,
    /// What takes room in the peer's receive buffer.
    pub room: RoomRules,
    /// When heartbeats are sent.
    pub heartbeats: HeartbeatRules,
    /// Chunks that wait for retransmission keep new data from the path they were last sent on, as
    /// if they were in flight there.
    pub waiting_takes_cwnd: bool,
    /// Congestion avoidance counts acknowledged bytes only from the pseudo-cumack on, and those of
    /// the cumulative ack only while cwnd was used up. With CUC only.
    pub growth_needs_used_window: bool,
    /// cwnd decays while data is in flight, too: [`decayed`](super::LossRecovery::decayed) is
    /// asked.
    pub decays_in_silence: bool,
    /// New data may be held back: [`holds_new_data`](super::LossRecovery::holds_new_data) is asked.
    pub holds_data: bool,
    /// The side that associates probes every path, that of the handshake too, and sends no new DATA
    /// while one of them has not answered.
    pub verifies_first: bool,
    /// A packet of duplicates only, which is acknowledged at once, also counts as the first of
    /// those that the next delayed SACK waits for. Without DAC only.
    pub duplicates_count: bool,
}

/// How a SACK is read.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SackRules {
    /// Which chunks a newly acknowledged one reports missing.
    pub scope: ReportScope,
    /// By path: what it compares.
    pub compares: SfrCompares,
    /// Multiple fast retransmit (retransmission policies paper, section 4.3).
    pub mfr: bool,
    /// cwnd update for CMT (CMT paper, Figs. 3 and 8).
    pub cuc: Cuc,
    /// Delayed ack for CMT: a SACK may count for several packets (CMT paper, Fig. 4).
    pub dac: bool,
    /// Missing reports that make a chunk lost (RFC 9260 §7.2.4).
    pub missing_reports: u8,
    /// Missing reports may make a chunk lost that was sent again after a timeout.
    pub reports_after_timeout: bool,
    /// Over all paths: a SACK reports everything missing below the highest TSN acknowledged so far,
    /// rather than below the highest that it newly acknowledges.
    pub highest_stays: bool,
    /// Missing reports count for chunks, too, that wait for retransmission.
    pub waiting_is_reported: bool,
    /// A SACK that does not move the cumulative TSN ack takes back what it does not report.
    pub overtaken_revokes: bool,
    /// Chunks acknowledged while they wait for retransmission count as in flight before the SACK.
    pub waiting_used_cwnd: bool,
}

/// The chunks that a newly acknowledged one reports missing.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ReportScope {
    /// All below it, whatever path they were sent on (RFC 9260 §7.2.4).
    Association,
    /// Those sent before it on its own path: split fast retransmit (CMT paper, Fig. 2).
    Path,
}

/// What split fast retransmit compares.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SfrCompares {
    /// The order of transmission: a chunk is reported missing if one is acknowledged that was sent
    /// later on the same path, and once only.
    Order,
    /// TSNs, as the CMT paper's Fig. 2: a chunk is reported missing if one of the same path with a
    /// higher TSN is gap-acknowledged for the first time. For DAC a SACK concerns the paths of such
    /// chunks only.
    Tsn,
}

/// What T3-rtx of a path watches.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct T3Rules {
    /// The chunk whose acknowledgement starts the timer anew.
    pub watches: T3Watches,
    /// It runs, and expires, also while chunks last sent there only wait for retransmission.
    pub covers_waiting: bool,
}

/// The chunk of a path that T3-rtx watches (RFC 9260 §6.3.2, R3).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum T3Watches {
    /// The one that was sent first of those in flight.
    EarliestSent,
    /// The one with the lowest TSN that is not acknowledged, whenever it was sent; and its
    /// retransmission starts the timer anew. So does every cumulative ack of a chunk that was sent
    /// on the path.
    LowestTsn,
}

/// What takes room in the peer's receive buffer.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct RoomRules {
    /// The headers of DATA chunks do, as seen from both ends, which must agree. User data always
    /// does.
    pub of_headers: bool,
    /// Chunks that wait for retransmission keep theirs.
    pub of_waiting: bool,
}

/// When heartbeats are sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct HeartbeatRules {
    /// HB.interval and the RTO added to it count from when a HEARTBEAT is sent, with the RTO that
    /// the path has then, rather than from its answer; and a lost one that had to be repeated takes
    /// the place of the next.
    pub from_sending: bool,
    /// A path that fails is probed at once and then each RTO, without HB.interval between.
    pub failed_at_once: bool,
}

impl Rules {
    /// Those of RFC 9260, and of the CMT paper with `sfr`.
    pub fn standard(config: &Config) -> Rules {
        Rules {
            sacks: SackRules {
                scope: if config.sfr { ReportScope::Path } else { ReportScope::Association },
                // The order of transmission is that of TSNs for chunks sent once, and right for the
                // others, too.
                compares: SfrCompares::Order,
                mfr: config.mfr,
                cuc: config.cuc,
                dac: config.dac,
                missing_reports: u8::try_from(config.missing_reports).unwrap_or(u8::MAX),
                reports_after_timeout: true,
                highest_stays: false,
                waiting_is_reported: false,
                overtaken_revokes: false,
                waiting_used_cwnd: false,
            },
            t3: T3Rules { watches: T3Watches::EarliestSent, covers_waiting: false },
            room: RoomRules { of_headers: false, of_waiting: false },
            heartbeats: HeartbeatRules { from_sending: false, failed_at_once: false },
            waiting_takes_cwnd: false,
            growth_needs_used_window: false,
            decays_in_silence: false,
            holds_data: false,
            verifies_first: config.verify_all_paths_first,
            duplicates_count: false,
        }
    }
}
