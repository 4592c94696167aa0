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

/// A path on which nothing was acknowledged for as long as one that works may be silent.
#[derive(Copy, Clone, Debug)]
pub struct Silent {
    /// The path.
    pub path: PathId,
    /// For how long.
    pub waited: Duration,
    /// The path that all of the peer's SACKs take, if it said so.
    pub sack_path: Option<PathId>,
}

/// A consequence of the silence of a path, which the engine carries out.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Silenced {
    /// This path is potentially failed; what is outstanding there is sent on others.
    Fail(PathId),
    /// The peer's SACKs do not arrive: until they do on another path, silence means nothing.
    AwaitSacks,
    /// This path only seemed to have failed, and is active again.
    TakeBack(PathId),
    /// Outstanding data of this path is sent again, a packet at first, and the peer is told
    /// there that its SACKs do not arrive.
    StartOver(PathId),
}

/// The treatment of paths in doubt: those that have failed, or have timed out since they last
/// proved to work.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct InDoubt {
    /// They are probed quickly although they carry data. The answer has outstanding data sent again
    /// at once, and a lost probe counts as no timeout, because T3-rtx counts.
    pub probed_with_data: bool,
    /// SACKs and answers to heartbeats take a path that works instead: the peer may not be heard
    /// on one where it hears us.
    pub answered_elsewhere: bool,
    /// A path that answers while no other works carries outstanding data at once, and packets of a
    /// peer that returns are answered by a heartbeat whatever the back-off of probes.
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
    /// Of [`Needs`], `silence` and `sack_path_chunks` are its own: paths fail by silence, and the
    /// path of the peer's SACKs has to be known to tell which.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The treatment of paths in doubt. Asked once.
    fn in_doubt(&self) -> InDoubt {
        InDoubt::default()
    }

    /// The state of a path after a timeout on it; `path.error_count` counts it already.
    fn after_timeout(&mut self, path: &PathView) -> PathState;

    /// The cwnd, in MTU, with which a path resumes when a heartbeat ack shows that it works again;
    /// `None` leaves cwnd as it is.
    fn recovery_cwnd(&self, left: PathState) -> Option<u32>;

    /// The paths that may carry data now, given all of them.
    fn is_usable(&self, path: &PathView, all: &[PathView]) -> bool;

    /// How long nothing of what was sent on a path may be acknowledged before
    /// [`on_silence`](Self::on_silence) is asked, given its RTO when the last was; `None` if only
    /// timeouts tell.
    fn silence_max(&self, _rto: Duration) -> Option<Duration> {
        None
    }

    /// Timeouts in a row beyond which a path is potentially failed. `None` if they do not decide.
    fn pf_max_retrans(&self) -> Option<u32> {
        None
    }

    /// Nothing was acknowledged on an active path for that long. The answers are carried out in
    /// their order.
    fn on_silence(&mut self, _cx: &PolicyCx<'_>, _silent: &Silent) -> Vec<Silenced> {
        Vec::new()
    }

    /// A path is gone; another may get its number.
    fn forget(&mut self, _path: PathId) {}
}

registry!(FailurePolicy {
    "pmr" => |c| Box::new(Pmr::new(c)),
    "pf" => |c| Box::new(PotentiallyFailed::new(c)),
    "mtcp" => |c| Box::new(Silence::new(c)),
});

/// Where data goes when no path is active: to the one with the fewest timeouts in a row, a tie to
/// the one that was active last (CMT-PF paper, section III-A; RFC 7829 §5.3; RFC 9260 §6.4 calls it
/// dormant).
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
