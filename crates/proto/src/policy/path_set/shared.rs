//! Paths that share a bottleneck. On them an association would take several shares of it, to the
//! cost of other flows.

mod chance;
mod coincidence;
mod delay_events;
mod delay_stats;
mod delays;
mod mtcp;
mod off;
mod rfc8382;
mod sequential;
mod trial;

pub use mtcp::MtcpMatch;
pub use off::Off;
pub use rfc8382::Rfc8382;
pub use sequential::Sequential;
pub use trial::Trial;

use std::fmt;

use crate::policy::{PolicyCx, registry};
use crate::time::Instant;
use crate::view::PathId;

/// The sign by which a policy finds shared bottlenecks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedSign {
    /// Fast retransmits of two paths that come together (mTCP paper, section 3.2).
    FastRetransmits,
    /// Changes of delay that two paths have at the same times.
    Delays,
    /// Similar statistics of the delays and losses of two paths (RFC 8382).
    DelayStatistics,
}

impl SharedSign {
    /// Its name in traces and results.
    pub fn name(self) -> &'static str {
        match self {
            SharedSign::FastRetransmits => "fast_retransmits",
            SharedSign::Delays => "delays",
            SharedSign::DelayStatistics => "delay_statistics",
        }
    }
}

/// Evidence on two paths that may share a bottleneck.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct SharedEvidence {
    /// The two paths, the lower id first.
    pub paths: (PathId, PathId),
    /// The sign that was judged.
    pub sign: SharedSign,
    /// Number of these signs on each of the two paths.
    pub events: (u32, u32),
    /// Number of signs that came on both paths together; each counts once.
    pub matched: u32,
    /// The lag of the second path's signs in seconds, at which that many match.
    pub lag_s: f64,
    /// The ratio above which the bottleneck counts as shared (delta). For delay statistics,
    /// equality is enough.
    pub threshold: f64,
    /// Signs that the path with fewer of them must have for a verdict. With `shared_verdict = wait`
    /// this holds in any case, otherwise if all of them came together. `None` if chance explains
    /// any number.
    pub needed: Option<u32>,
    /// A bound on the probability that this many come together by chance, 0 to 1.
    pub chance: f64,
    /// The verdict.
    pub is_shared: bool,
}

/// Ratio, lag, threshold and chance are finite numbers.
impl Eq for SharedEvidence {}

impl SharedEvidence {
    /// The share of the signs that came together, on the path with fewer of them: 0 to 1.
    pub fn ratio(&self) -> f64 {
        f64::from(self.matched) / f64::from(self.fewer().max(1))
    }

    /// The events of the path that has fewer of them.
    fn fewer(&self) -> u32 {
        self.events.0.min(self.events.1)
    }

    /// The grounds of the verdict in words: the part after the colon of the sentence that
    /// [`SharedEvidence`] displays.
    pub fn grounds(&self) -> String {
        let (percent, enough) = (self.ratio() * 100.0, self.threshold * 100.0);
        let wait = match self.needed {
            Some(needed) => format!("more than {enough:.0} % of {needed} or more were needed"),
            None => "too many to tell that from chance".to_owned(),
        };
        // Rounded up, so that "below" is true.
        let chance = ((self.chance * 1e3).floor() + 1.0).min(1e3) / 10.0;
        let lag = match (self.lag_s * 1e3).round() {
            0.0 => String::new(),
            ms if ms > 0.0 => format!(", on {} {ms} ms later", self.paths.1),
            ms => format!(", on {} {} ms later", self.paths.0, -ms),
        };
        let (matched, fewer) = (self.matched, self.fewer());
        let what = match self.sign {
            SharedSign::FastRetransmits => "fast retransmits came on both together",
            SharedSign::Delays => "times the delays of both changed together",
            SharedSign::DelayStatistics => {
                return format!(
                    "in {matched} of the latest {fewer} intervals the delays of both had the same statistics \
                     ({percent:.0} %; at least {enough:.0} % of {} were needed)",
                    self.needed.unwrap_or_default()
                );
            }
        };
        format!(
            "{matched} of {fewer} {what} ({percent:.0} %; {wait}; by chance with a probability below {chance} %){lag}"
        )
    }
}

/// A sentence such as "path 1 and path 2 share a bottleneck: 6 of 7 fast retransmits came on both
/// together (86 %; more than 50 % of 5 or more were needed; by chance with a probability below 0.8
/// %), on path 2 20 ms later".
impl fmt::Display for SharedEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (a, b) = self.paths;
        let verb = if self.is_shared { "share" } else { "may share" };
        write!(f, "{a} and {b} {verb} a bottleneck: {}", self.grounds())
    }
}

/// Finds paths that share a bottleneck.
pub trait SharedPolicy: std::fmt::Debug + Send {
    /// A path begins to carry data. Earlier signs on it no longer count.
    fn begin(&mut self, now: Instant, path: PathId);

    /// A path carries no data any more.
    fn end(&mut self, path: PathId);

    /// A path enters fast retransmit. Returns what is now known of the pairs with this path.
    fn on_fast_retransmit(&mut self, cx: &PolicyCx<'_>, path: PathId) -> Vec<SharedEvidence>;

    /// False for a policy that looks for no shared bottlenecks.
    fn is_on(&self) -> bool {
        true
    }

    /// True if the policy needs [`on_delay`](Self::on_delay). The engine asks once.
    fn watches_delays(&self) -> bool {
        false
    }

    /// DATA sent once on a path, at `sent_at`, is acknowledged. True if [`review`](Self::review)
    /// must follow.
    fn on_delay(&mut self, _now: Instant, _path: PathId, _sent_at: Instant) -> bool {
        false
    }

    /// A SACK shows how many packets of a path have arrived, and how many are lost. Called for
    /// policies that watch delays only.
    fn on_fates(&mut self, _path: PathId, _arrived: usize, _lost: usize) {}

    /// New evidence from the delays, for each pair of paths that has some.
    fn review(&mut self, _cx: &mut PolicyCx<'_>) -> Vec<SharedEvidence> {
        Vec::new()
    }

    /// The path that must use only half of its cwnd now, to show the effect on other paths.
    fn tried(&self) -> Option<PathId> {
        None
    }
}

registry!(SharedPolicy {
    "off" => |_| Box::new(Off),
    "mtcp" => |c| Box::new(MtcpMatch::new(c)),
    "rfc8382" => |_| Box::new(Rfc8382::new()),
    "trial" => |c| Box::new(Trial::new(c)),
    "trial_of_alike" => |c| Box::new(Trial::of_alike(c)),
});
