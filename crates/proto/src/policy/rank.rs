//! Decides when a path of a dearer [rank](PathRank) carries data.
//!
//! The working paths of the least rank carry data. A rank policy decides if dearer ones do, too. It
//! decides before the scheduler, which then chooses among the remaining paths. It is called only
//! while the paths of an association have different ranks.

mod failover;
mod overflow;

pub use failover::Failover;
pub use overflow::Overflow;

use super::registry;
use crate::time::Instant;
use crate::view::{PathRank, PathView};

/// The input of a rank policy.
#[derive(Debug)]
pub struct RankCx<'a> {
    /// The time of the decision.
    pub now: Instant,
    /// All paths. Here `usable` means that a path works and is not set aside, whatever its rank.
    pub paths: &'a [PathView],
    /// The least rank of the usable paths.
    pub base: PathRank,
    /// Since when the next data has waited for room on a path, and for nothing else, such as the
    /// peer's receive buffer. `None` if nothing waits.
    pub waits_since: Option<Instant>,
}

/// The answer of a rank policy. Ranks below [`RankCx::base`] count as `base`.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Ceiling {
    /// The dearest rank in use: its paths may carry retransmissions and copies.
    pub open: PathRank,
    /// The dearest rank for the next packet of new data; at most `open`.
    pub next: PathRank,
    /// When to ask again if nothing happens until then.
    pub again: Option<Instant>,
}

/// Decides how dear the paths that carry data may be; each association has its own.
pub trait RankPolicy: std::fmt::Debug + Send {
    /// Called for each packet of new data, even if no path has room for it.
    fn ceiling(&mut self, cx: &RankCx<'_>) -> Ceiling;

    /// A packet with data left on a path of this rank.
    fn sent(&mut self, _now: Instant, _rank: PathRank) {}
}

registry!(RankPolicy {
    "overflow" => |c| Box::new(Overflow::new(c)),
    "failover" => |_| Box::new(Failover),
});
