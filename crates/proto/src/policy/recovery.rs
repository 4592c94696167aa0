//! Loss recovery decides which chunks a SACK makes lost, when the window is cut, which chunk T3-rtx
//! watches, and which data may be sent during a recovery.
//!
//! A member of the family answers in two ways. [`Rules`] are plain data for decisions on every
//! chunk and packet; the engine asks for them once per association. The methods of [`LossRecovery`]
//! answer once per SACK and path, or when a timer expires. They get facts that the engine has
//! gathered from the SACK. The engine acts on the answers.
//!
//! | `recovery` | without `sfr` | with `sfr` |
//! | --- | --- | --- |
//! | `standard` | [`Rfc9260`]: one fast recovery | [`Sfr`]: one for each path (CMT paper) |
//! | `rack` | [`Rack`]: losses by time, one recovery for each path | the same |
//! | `ns2` | [`Ns2Single`]: ns-2's agents for one path | [`Ns2Cmt`]: ns-2's agent for CMT |

mod burst;
mod fast;
mod flight;
mod ns2;
mod past_cwnd;
mod rack;
mod rfc9260;
mod rules;
mod sfr;

pub(crate) use burst::{Burst, Bursts};
pub use flight::{Exit, Flight};
pub use ns2::{Ns2Cmt, Ns2Single, Rule, RuleSet};
pub(crate) use past_cwnd::PastCwnd;
pub use rack::Rack;
pub use rfc9260::Rfc9260;
pub use rules::{
    HeartbeatRules, ReportScope, RoomRules, Rules, SackRules, SfrCompares, T3Rules, T3Watches,
};
pub use sfr::Sfr;

use std::time::Duration;

use manypath_wire::Tsn;

use super::cc::{Limits, Window};
use super::registry;
use crate::params::Params;
use crate::time::Instant;
use crate::view::PathId;

/// The facts of a SACK about one path.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct PathFacts {
    /// The path.
    pub path: PathId,
    /// The left edge of the path moved: its window may grow.
    pub grows: bool,
    /// Number of transmissions that the SACK made lost.
    pub lost: usize,
    /// The latest of them, in the order of all transmissions of the association.
    pub latest_lost: Option<u64>,
    /// The highest TSN among them.
    pub highest_lost: Option<Tsn>,
    /// The latest transmission, in the same order, before the last timeout that cut the window.
    pub timed_out: Option<u64>,
}

/// The consequences of a SACK for the window of one path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct PathVerdict {
    /// The path was in fast recovery before the SACK and still is.
    pub recovers: bool,
    /// The window is cut now and a fast recovery begins.
    pub cuts: bool,
    /// One packet of retransmissions may pass cwnd (RFC 9260 §7.2.4, point 3).
    pub passes_cwnd: bool,
}

/// The window of a path that may have sent nothing for a while.
#[derive(Copy, Clone, Debug)]
#[non_exhaustive]
pub struct Silence {
    /// The current time.
    pub now: Instant,
    /// RTO of the path.
    pub rto: Duration,
    /// The window before the decay.
    pub window: Window,
    /// Lower bound of a decaying cwnd, in bytes.
    pub floor: usize,
    /// Two packets, in bytes.
    pub two_packets: usize,
    /// T3-rtx of the path expires now, so the decay starts again with the next data.
    pub times_out: bool,
}

/// Recovers lost chunks.
///
/// The defaults of the methods do what RFC 9260 says.
pub trait LossRecovery: std::fmt::Debug + Send {
    /// The rules for the whole association. The engine asks once.
    fn rules(&self) -> Rules;

    /// True if it has rules that `recovery_without` may leave out.
    fn has_optional_rules(&self) -> bool {
        false
    }

    /// A path was added or removed. Forgets its state.
    fn reset_path(&mut self, path: PathId);

    /// All paths share one window. Copies the state of `from` to `to`.
    fn share(&mut self, from: PathId, to: PathId);

    /// True if the path is in fast recovery.
    fn recovers(&self, path: PathId) -> bool;

    /// True if any path is in fast recovery.
    fn recovers_anywhere(&self) -> bool;

    /// A SACK arrived. The engine asks for every path in the order of ids.
    fn on_path_sack(&mut self, facts: &PathFacts, flight: &dyn Flight) -> PathVerdict;

    /// The SACK made a chunk lost, and all paths have been asked. Returns those of `paths` whose
    /// windows are cut because chunks wait for retransmission.
    fn cuts_for_waiting(&mut self, _paths: &[PathId], _flight: &dyn Flight) -> Vec<PathId> {
        Vec::new()
    }

    /// The SACK has been processed. Returns true if one packet of retransmissions may pass cwnd.
    fn after_sack(&mut self, _is_fast_retransmit: bool) -> bool {
        false
    }

    /// The limits for cutting the window at a timeout. `None` leaves the window unchanged.
    fn timeout_limits(&self, _window: &Window, limits: Limits) -> Option<Limits> {
        Some(limits)
    }

    /// T3-rtx of a path expired and made chunks lost.
    fn on_path_timeout(&mut self, path: PathId);

    /// T3-rtx of some path expired. `has_lost` is true if that made chunks lost.
    fn after_timeout(&mut self, _has_lost: bool) {}

    /// A mark of congestion has cut the window of a path. Losses of what is in flight should not
    /// cut it again (RFC 3168 §6.1.2).
    fn on_congestion_mark(&mut self, _path: PathId, _flight: &dyn Flight) {}

    /// All losses with which the latest recovery of a path began turned out spurious.
    fn on_spurious_losses(&mut self, _path: PathId) {}

    /// A HEARTBEAT ACK arrived.
    fn on_heartbeat_ack(&mut self) {}

    /// A path works again after all had failed. SACKs for earlier data may never come, so nothing
    /// may wait for them.
    fn on_path_back(&mut self) {}

    /// True if new data must wait although a window has room. `any_waits` is true if chunks wait
    /// for retransmission. Asked with [`Rules::holds_data`] only.
    fn holds_new_data(&self, _any_waits: bool) -> bool {
        false
    }

    /// True if retransmissions must wait, except for one packet that passes cwnd.
    fn holds_retransmissions(&self) -> bool {
        false
    }

    /// DATA was sent on a path, and one RTO from now is `rto_ends`. Told with
    /// [`Rules::decays_in_silence`] only.
    fn on_data_sent(&mut self, _path: PathId, _rto_ends: Instant) {}

    /// The window of a path after its decay. Asked with [`Rules::decays_in_silence`] only.
    fn decayed(&mut self, _path: PathId, silence: &Silence) -> Window {
        silence.window
    }
}

registry!(LossRecovery {
    "standard" => |c| if c.sfr { Box::new(Sfr::new(c)) } else { Box::new(Rfc9260::new(c)) },
    "rack" => |c| Box::new(Rack::new(c)),
    "ns2" => |c| if c.sfr { Box::new(Ns2Cmt::new(c)) } else { Box::new(Ns2Single::new(c)) },
});

/// Loss recovery of one association: a member of the family, its rules, and the state that all
/// members share.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) rules: Rules,
    /// The exemption from cwnd for one packet.
    pub(crate) past_cwnd: PastCwnd,
    pub(crate) bursts: Bursts,
    pub(crate) policy: Box<dyn LossRecovery>,
}

impl Recovery {
    /// Recovery by a policy.
    pub(crate) fn new(policy: Box<dyn LossRecovery>, config: &Params) -> Recovery {
        Recovery {
            rules: policy.rules(),
            past_cwnd: PastCwnd::new(config),
            bursts: Bursts::new(config),
            policy,
        }
    }

    /// A path was added or removed. Forgets its state.
    pub(crate) fn reset_path(&mut self, path: PathId) {
        self.past_cwnd.reset_path(path);
        self.policy.reset_path(path);
    }

    /// True if new data must wait although a window has room.
    #[inline]
    pub(crate) fn holds_new_data(&self, any_waits: bool) -> bool {
        self.rules.holds_data && self.policy.holds_new_data(any_waits)
    }
}

#[cfg(test)]
mod tests;
