//! Paths that share a bottleneck: beside other flows, an association would take several shares of it.

mod mtcp;
mod off;

pub use mtcp::MtcpMatch;
pub use off::Off;

use std::fmt;

use super::{PolicyCx, registry};
use crate::path::PathId;
use crate::time::Instant;

/// What is known of two paths that may share a bottleneck.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct SharedEvidence {
    /// The two paths, the lower id first.
    pub paths: (PathId, PathId),
    /// Signs of congestion seen on each of them, in that order: with `mtcp` fast retransmits.
    pub events: (u32, u32),
    /// How many of them came on both paths together, each counted once.
    pub matched: u32,
    /// By how many seconds those of the second path come later, as that many match.
    pub lag_s: f64,
    /// Above which ratio the bottleneck counts as shared (delta).
    pub threshold: f64,
    /// Events that the path with fewer of them must have before that is judged; `None` if there are too many to
    /// tell coincidence from cause.
    pub needed: Option<u32>,
    /// The verdict.
    pub is_shared: bool,
}

/// Ratio, lag and threshold are finite numbers.
impl Eq for SharedEvidence {}

impl SharedEvidence {
    /// The fraction of the events that came together, of the path with fewer of them: 0 to 1.
    pub fn ratio(&self) -> f64 {
        let (a, b) = self.events;
        f64::from(self.matched) / f64::from(a.min(b).max(1))
    }
}

/// A sentence such as "path 1 and path 2 share a bottleneck: 6 of 7 losses came on both together (above 50 % is enough)".
impl fmt::Display for SharedEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = self.paths;
        let (verb, least) =
            (if self.is_shared { "share" } else { "may share" }, self.events.0.min(self.events.1));
        let percent = self.threshold * 100.0;
        write!(
            f,
            "{a} and {b} {verb} a bottleneck: {} of {least} losses came on both together (above {percent:.0} % is enough)",
            self.matched
        )
    }
}

/// Finds paths that share a bottleneck.
pub trait SharedPolicy: std::fmt::Debug + Send {
    /// A path carries data from now on: what was seen of it before counts no longer.
    fn begin(&mut self, now: Instant, path: PathId);

    /// A path carries no data any more.
    fn end(&mut self, path: PathId);

    /// A path enters fast retransmit. Returns what is now known of the pairs that it is in.
    fn on_fast_retransmit(&mut self, cx: &PolicyCx<'_>, path: PathId) -> Vec<SharedEvidence>;
}

registry!(SharedPolicy {
    "off" => |_| Box::new(Off),
    "mtcp" => |c| Box::new(MtcpMatch::new(c)),
});
