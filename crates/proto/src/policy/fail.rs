//! The state of a path: when it has failed, and when it may carry data.

mod mtcp;
mod pf;
mod pmr;

pub use mtcp::Silence;
pub use pf::PotentiallyFailed;
pub use pmr::Pmr;

use std::time::Duration;

use super::{Needs, PolicyCx, registry};
use crate::params::Params;
use crate::view::{PathId, PathState, PathView};

/// A path that was without an acknowledgement for longer than a working path may be.
#[derive(Copy, Clone, Debug)]
pub struct Silent {
    /// The path.
    pub path: PathId,
    /// The time without an acknowledgement.
    pub waited: Duration,
    /// The path that all of the peer's SACKs take, if the peer has said so.
    pub sack_path: Option<PathId>,
}

/// A consequence of the silence of a path, which the engine carries out.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Silenced {
    /// This path is potentially failed; its outstanding data is sent on others.
    Fail(PathId),
    /// The peer's SACKs do not arrive. Until they arrive on another path, silence means nothing.
    AwaitSacks,
    /// This path only seemed failed, and is active again.
    TakeBack(PathId),
    /// Outstanding data of this path is sent again, one packet at first. The peer is told on this
    /// path that its SACKs do not arrive.
    StartOver(PathId),
}

/// How to treat paths in doubt: those that have failed, or have timed out since they last proved to
/// work.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct InDoubt {
    /// Probes them quickly even if they carry data. An answer retransmits outstanding data at once.
    /// A lost probe does not count as a timeout, because T3-rtx counts.
    pub probed_with_data: bool,
    /// Sends SACKs and answers to heartbeats on a working path instead: the peer may not hear us on
    /// a path on which we hear it.
    pub answered_elsewhere: bool,
    /// Lets a path that answers while no other works carry outstanding data at once. Packets of a
    /// returning peer draw a heartbeat, whatever the back-off of probes.
    pub carry_when_answered: bool,
}

impl InDoubt {
    /// As configured.
    pub fn new(config: &Params) -> InDoubt {
        InDoubt {
            probed_with_data: config.probe_with_data,
            answered_elsewhere: config.one_way_paths,
            carry_when_answered: config.rtx_when_path_answers,
        }
    }
}

/// Decides the state of paths from timeouts, heartbeat acks and silence.
pub trait FailurePolicy: std::fmt::Debug + Send {
    /// The needs of the policy: it decides `silence` and `sack_path_chunks` of [`Needs`]. A policy
    /// by which paths fail by silence must know the path of the peer's SACKs.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// How to treat paths in doubt. The engine asks once.
    fn in_doubt(&self) -> InDoubt {
        InDoubt::default()
    }

    /// The state of a path after a timeout on it; `path.error_count` counts it already.
    fn after_timeout(&mut self, path: &PathView) -> PathState;

    /// The cwnd, in MTU, with which a path resumes when a heartbeat ack shows that it works again;
    /// `None` leaves cwnd as it is.
    fn recovery_cwnd(&self, left: PathState) -> Option<u32>;

    /// True if the path may carry data now, given all paths.
    fn is_usable(&self, path: &PathView, all: &[PathView]) -> bool;

    /// How long a path may be without an acknowledgement before [`on_silence`](Self::on_silence) is
    /// called, given its RTO at the last one. `None` if only timeouts count.
    fn silence_max(&self, _rto: Duration) -> Option<Duration> {
        None
    }

    /// Timeouts in a row beyond which a path is potentially failed. `None` if they do not decide.
    fn pf_max_retrans(&self) -> Option<u32> {
        None
    }

    /// An active path was without an acknowledgement for that long. The engine carries out the
    /// answers in their order.
    fn on_silence(&mut self, _cx: &PolicyCx<'_>, _silent: &Silent) -> Vec<Silenced> {
        Vec::new()
    }

    /// A path was removed. Another may get its id.
    fn forget(&mut self, _path: PathId) {}
}

registry!(FailurePolicy {
    "pmr" => |c| Box::new(Pmr::new(c)),
    "pf" => |c| Box::new(PotentiallyFailed::new(c)),
    "mtcp" => |c| Box::new(Silence::new(c)),
});

/// The path for data when no path is active: the one with the fewest timeouts in a row; of equal
/// ones, the one that was active last (CMT-PF paper, section III-A; RFC 7829 §5.3; RFC 9260 §6.4
/// calls such paths dormant).
fn last_resort(all: &[PathView]) -> Option<PathId> {
    let none_active = all.iter().all(|p| p.state != PathState::Active);
    let verified = all.iter().filter(|p| none_active && p.state != PathState::Unconfirmed);
    let rank = |p: &&PathView| {
        (p.state == PathState::Inactive, p.error_count, std::cmp::Reverse(p.last_active))
    };
    verified.min_by_key(rank).map(|p| p.id)
}

#[cfg(test)]
mod tests;
