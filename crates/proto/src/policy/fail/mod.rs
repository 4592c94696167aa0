//! The state of a path: when it has failed, and when it may carry data.

mod mtcp;
mod pf;
mod pmr;

pub use mtcp::Silence;
pub use pf::PotentiallyFailed;
pub use pmr::Pmr;

use std::time::Duration;

use super::registry;
use crate::path::{PathId, PathState, PathView};

/// Decides the state of paths from timeouts and heartbeat acks.
pub trait FailurePolicy: std::fmt::Debug + Send {
    /// The state of a path after a timeout on it; `path.error_count` counts it already.
    fn after_timeout(&mut self, path: &PathView) -> PathState;

    /// The cwnd, in MTU, with which a path resumes when a heartbeat ack shows that it works again;
    /// `None` leaves cwnd as it is.
    fn recovery_cwnd(&self, left: PathState) -> Option<u32>;

    /// The paths that may carry data now, given all of them.
    fn is_usable(&self, path: &PathView, all: &[PathView]) -> bool;

    /// How long nothing of what was sent on a path may be acknowledged before the path is potentially failed,
    /// given its RTO when the last was; `None` if only timeouts tell.
    fn silence_max(&self, _rto: Duration) -> Option<Duration> {
        None
    }

    /// Timeouts in a row beyond which a path is potentially failed; `None` if they do not decide it.
    fn pf_max_retrans(&self) -> Option<u32> {
        None
    }
}

registry!(FailurePolicy {
    "pmr" => |c| Box::new(Pmr::new(c)),
    "pf" => |c| Box::new(PotentiallyFailed::new(c)),
    "mtcp" => |c| Box::new(Silence::new(c)),
});

/// Where data goes when no path is active: to the one with the fewest timeouts in a row, a tie to the one
/// that was active last (CMT-PF paper, section III-A; RFC 7829 §5.3; RFC 9260 §6.4 calls it dormant).
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
