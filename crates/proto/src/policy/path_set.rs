//! A path set decides which working paths carry data (mTCP paper, sections 3.3 and 3.4).
//!
//! The engine tells it what happens to the paths, and carries out its [`Decision`]s: to set a
//! working path aside, to use it again, or to use half of its window for a moment. The detectors of
//! [shared bottlenecks](shared) are part of this family.

mod all;
mod hops;
mod members;
mod mtcp;
pub mod shared;

pub use all::All;
pub use mtcp::Mtcp;

use super::{Needs, PolicyCx};
use crate::overlay::Route;
use crate::params::Params;
use crate::time::Instant;
pub use crate::view::Standing;
use crate::view::{PathId, RestoreReason, SuppressReason};
use shared::SharedEvidence;

/// The paths of an association at one moment.
#[derive(Copy, Clone, Debug)]
pub struct Standings<'a> {
    /// The moment.
    pub now: Instant,
    /// All paths, in the order of their ids.
    pub paths: &'a [Standing],
}

impl<'a> Standings<'a> {
    /// The path with this id.
    pub fn path(&self, id: PathId) -> Option<&'a Standing> {
        self.paths.iter().find(|p| p.id == id)
    }
}

/// The reason for setting a path aside, with its evidence.
#[derive(Copy, Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum SetAside {
    /// It shares a bottleneck with a faster path.
    SharedBottleneck(SharedEvidence),
    /// It is much slower than the fastest path. What is outstanding there is sent on other paths.
    Slow,
    /// Enough others have better scores.
    Spare,
    /// It shares its hops with a better path.
    SharesHops {
        /// That path.
        with: PathId,
        /// Their [disjointness](crate::overlay::disjoint), 0 to 1.
        disjoint: f64,
    },
}

impl SetAside {
    /// The reason in one word.
    pub fn reason(&self) -> SuppressReason {
        match self {
            SetAside::SharedBottleneck(_) => SuppressReason::SharedBottleneck,
            SetAside::Slow => SuppressReason::Slow,
            SetAside::Spare => SuppressReason::Spare,
            SetAside::SharesHops { .. } => SuppressReason::SharesHops,
        }
    }
}

/// A decision about a path, which the engine carries out.
#[derive(Copy, Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Decision {
    /// It works, and carries no data from now on.
    Suppress {
        /// The path.
        path: PathId,
        /// Why.
        why: SetAside,
    },
    /// It carries data again.
    Restore {
        /// The path.
        path: PathId,
        /// Why.
        why: RestoreReason,
    },
    /// For a trial this path uses half of its window, and every other path its whole window.
    Throttle(Option<PathId>),
    /// A heartbeat shall measure it.
    Probe(PathId),
    /// Two paths are now known to share a bottleneck, and both stay in use.
    Tell(SharedEvidence),
}

/// Decides which of the paths that work carry data.
pub trait PathSet: std::fmt::Debug + Send {
    /// The needs of the path set: it decides `bottlenecks`, `delays` and `review` of [`Needs`].
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// A path was added.
    fn added(&mut self, now: Instant, path: PathId);

    /// A path was removed. Another may get its id.
    fn removed(&mut self, path: PathId);

    /// The first DATA goes to a path.
    fn began(&mut self, now: Instant, path: &Standing);

    /// The hops of a path, as far as the application knows them; none if it does not.
    fn set_route(&mut self, path: PathId, route: Route);

    /// Paths have come or gone, changed their state, or their routes are known better.
    fn settle(&mut self, now: Standings<'_>) -> Vec<Decision>;

    /// The time between reviews has passed.
    fn review(&mut self, _now: Standings<'_>) -> Vec<Decision> {
        Vec::new()
    }

    /// A path enters fast retransmit.
    fn on_fast_retransmit(
        &mut self,
        _cx: &PolicyCx<'_>,
        _now: Standings<'_>,
        _path: PathId,
    ) -> Vec<Decision> {
        Vec::new()
    }

    /// A SACK shows how many packets of a path have arrived, and how many are lost.
    fn on_fates(&mut self, _path: PathId, _arrived: usize, _lost: usize) {}

    /// DATA sent once on a path, at `sent_at`, is acknowledged. True if
    /// [`review_delays`](Self::review_delays) must follow.
    fn on_delay(&mut self, _now: Instant, _path: PathId, _sent_at: Instant) -> bool {
        false
    }

    /// Decides by new evidence from delays.
    fn review_delays(&mut self, _cx: &mut PolicyCx<'_>, _now: Standings<'_>) -> Vec<Decision> {
        Vec::new()
    }

    /// Evidence on pairs of paths that may share a bottleneck, as of their latest signs of
    /// congestion.
    fn evidence(&self) -> &[SharedEvidence] {
        &[]
    }
}

/// The path set that a configuration asks for: [`All`] paths, unless a detector or a limit may set
/// one of them aside.
pub fn build(config: &Params, detector: Box<dyn shared::SharedPolicy>) -> Box<dyn PathSet> {
    let is_limited = config.paths_max.is_some()
        || config.suppress_below.is_some()
        || config.path_review_interval.is_some();
    if is_limited || detector.is_on() {
        Box::new(Mtcp::new(config, detector))
    } else {
        Box::new(All::new(config))
    }
}

#[cfg(test)]
mod tests;
