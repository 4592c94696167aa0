//! Loss recovery: which chunks a SACK makes lost, when the window is cut, what T3-rtx watches, and
//! what may be sent meanwhile.
//!
//! A member of the family answers in two ways. [`Rules`] are plain data, asked for once per
//! association: the engine reads them for every chunk and packet. [`LossRecovery`] is asked once
//! per SACK and path, or when a timer expires, with facts that the engine has gathered once; it
//! answers, and the engine acts.
//!
//! | `recovery` | without `sfr` | with `sfr` |
//! | --- | --- | --- |
//! | `standard` | [`Rfc9260`]: one fast recovery for the association | [`Sfr`]: one for each path (CMT paper) |
//! | `ns2` | [`Ns2Single`]: ns-2's agents for one path | [`Ns2Cmt`]: ns-2's agent for CMT |

mod burst;
mod fast;
mod flight;
mod ns2;
mod past_cwnd;
mod rfc9260;
mod rules;
mod sfr;

pub(crate) use burst::{Burst, Bursts};
pub use fast::Exit;
pub use flight::Flight;
pub use ns2::{Ns2Cmt, Ns2Single, Rule, RuleSet};
pub(crate) use past_cwnd::PastCwnd;
pub use rfc9260::Rfc9260;
pub use rules::{
    HeartbeatRules, ReportScope, RoomRules, Rules, SackRules, SfrCompares, T3Rules, T3Watches,
};
pub use sfr::Sfr;

use std::time::Duration;

use manypath_wire::Tsn;

use super::cc::{Limits, Window};
use super::registry;
use crate::config::Config;
use crate::path::PathId;
use crate::time::Instant;

/// What a SACK says of one path.
#[derive(Copy, Clone, Debug)]
pub struct PathFacts {
    /// The path.
    pub path: PathId,
    /// The left edge of the path moved: its window may grow.
    pub grows: bool,
    /// Transmissions that the SACK made lost.
    pub lost: usize,
    /// The latest of them, in the order of all transmissions of the association.
    pub latest_lost: Option<u64>,
    /// The highest TSN among them.
    pub highest_lost: Option<Tsn>,
}

/// What a SACK means for the window of one path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PathVerdict {
    /// The path was in fast recovery when the SACK came, and stays so.
    pub recovers: bool,
    /// The window is cut now, and a fast recovery begins.
    pub cuts: bool,
    /// One packet of retransmissions may pass cwnd (RFC 9260 §7.2.4, point 3).
    pub passes_cwnd: bool,
}

/// The window of a path that may have been silent.
#[derive(Copy, Clone, Debug)]
pub struct Silence {
    /// Now.
    pub now: Instant,
    /// RTO of the path.
    pub rto: Duration,
    /// The window as it is.
    pub window: Window,
    /// Lower bound of cwnd as it decays, in bytes.
    pub floor: usize,
    /// Two packets, in bytes.
    pub two_packets: usize,
    /// T3-rtx of the path expires now.
    pub times_out: bool,
}

/// Recovers lost chunks.
///
/// Most methods have a default: what RFC 9260 does, or nothing.
pub trait LossRecovery: std::fmt::Debug + Send {
    /// The rules that hold for the whole association. The engine asks once.
    fn rules(&self) -> Rules;

    /// A path is new, or gone: nothing is known of it.
    fn reset_path(&mut self, path: PathId);

    /// One window counts for all paths: what is known of `from` holds for `to`, too.
    fn share(&mut self, from: PathId, to: PathId);

    /// The path is in fast recovery.
    fn recovers(&self, path: PathId) -> bool;

    /// Any path is.
    fn recovers_anywhere(&self) -> bool;

    /// A SACK came. Asked for every path, in the order of ids.
    fn on_path_sack(&mut self, facts: &PathFacts, flight: &dyn Flight) -> PathVerdict;

    /// After that, if the SACK made a chunk lost: the paths whose windows are cut for what waits
    /// for retransmission, of all `paths`.
    fn cuts_for_waiting(&mut self, _paths: &[PathId], _flight: &dyn Flight) -> Vec<PathId> {
        Vec::new()
    }

    /// After that. True if one packet of retransmissions may pass cwnd.
    fn after_sack(&mut self, _is_fast_retransmit: bool) -> bool {
        false
    }

    /// The bounds by which a timeout cuts the window; `None` leaves it as it is.
    fn timeout_limits(&self, _window: &Window, limits: Limits) -> Option<Limits> {
        Some(limits)
    }

    /// T3-rtx of a path expired, and something was lost by it.
    fn on_path_timeout(&mut self, path: PathId);

    /// T3-rtx expired; `has_lost` is false if nothing was lost by it.
    fn after_timeout(&mut self, _has_lost: bool) {}

    /// A heartbeat was answered.
    fn on_heartbeat_ack(&mut self) {}

    /// A path works again after none did: nothing waits for SACKs that may never come.
    fn on_path_back(&mut self) {}

    /// With [`Rules::holds_data`]: new data waits, though a window has room. `any_waits` if chunks
    /// wait for retransmission.
    fn holds_new_data(&self, _any_waits: bool) -> bool {
        false
    }

    /// Retransmissions wait, except one packet that passes cwnd.
    fn holds_retransmissions(&self) -> bool {
        false
    }

    /// With [`Rules::decays_in_silence`]: DATA was sent on a path, whose RTO ends at `rto_ends`.
    fn on_data_sent(&mut self, _path: PathId, _rto_ends: Instant) {}

    /// With [`Rules::decays_in_silence`]: the window of a path as it is by now.
    fn decayed(&mut self, _path: PathId, silence: &Silence) -> Window {
        silence.window
    }
}

registry!(LossRecovery {
    "standard" => |c| match c.sfr {
        true => Box::new(Sfr::new(c)),
        false => Box::new(Rfc9260::new(c)),
    },
    "ns2" => |c| match c.sfr {
        true => Box::new(Ns2Cmt::new(c)),
        false => Box::new(Ns2Single::new(c)),
    },
});

/// Loss recovery of one association: the member of the family, its rules, and the state that all
/// members share.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) rules: Rules,
    /// Who may ignore cwnd for one packet.
    pub(crate) past_cwnd: PastCwnd,
    pub(crate) bursts: Bursts,
    pub(crate) policy: Box<dyn LossRecovery>,
}

impl Recovery {
    /// What a configuration names. It accepts no other names, so the fallback is never used.
    pub(crate) fn new(config: &Config) -> Recovery {
        let policy =
            build(&config.recovery, config).unwrap_or_else(|| Box::new(Rfc9260::new(config)));
        Recovery {
            rules: policy.rules(),
            past_cwnd: PastCwnd::new(config),
            bursts: Bursts::new(config),
            policy,
        }
    }

    /// A path is new, or gone.
    pub(crate) fn reset_path(&mut self, path: PathId) {
        self.past_cwnd.reset_path(path);
        self.policy.reset_path(path);
    }

    /// New data waits, though a window has room.
    #[inline]
    pub(crate) fn holds_new_data(&self, any_waits: bool) -> bool {
        self.rules.holds_data && self.policy.holds_new_data(any_waits)
    }
}

#[cfg(test)]
mod tests;
