//! The report about the candidate paths.

use serde::Serialize;

/// The report about the candidates. The keys are a public contract.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Report {
    /// The destination's transport addresses.
    pub(super) destination: Vec<String>,
    /// A path is used only if its disjointness from every better one that is used is above this.
    pub(super) beta: f64,
    /// Paths that are used, at most.
    pub(super) max_paths: usize,
    /// The candidates: direct ones, then those through relays.
    pub(super) paths: Vec<PathLine>,
    /// Missing measurements and errors.
    pub(super) notes: Vec<String>,
}

/// A candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct PathLine {
    /// Its number, from 1.
    pub(super) path: usize,
    /// Our transport address.
    pub(super) local: String,
    /// The destination's.
    pub(super) remote: String,
    /// The relay's name; null for a direct path.
    pub(super) relay: Option<String>,
    /// Mean round-trip time.
    pub(super) rtt_s: Option<f64>,
    /// Shortest round-trip time.
    pub(super) rtt_min_s: Option<f64>,
    /// Probes sent.
    pub(super) probes: u32,
    /// Share of them that was not answered.
    pub(super) loss: f64,
    /// Packets a second: sqrt(1.5) / (rtt sqrt(p)), with p = (lost + 1/2) / (probes + 1).
    pub(super) score: f64,
    /// The routers from here on that were seen, then the relay if there is one, and the
    /// destination.
    pub(super) hops: Vec<HopLine>,
    /// The parts shared with each other candidate.
    pub(super) shares: Vec<Share>,
    /// It is to be used.
    pub(super) selected: bool,
    /// Why, or why not, in words.
    pub(super) why: String,
}

/// A router, a relay or the destination.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct HopLine {
    /// The address it answered from; null if it did not.
    pub(super) address: Option<String>,
    /// Round-trip time to it.
    pub(super) rtt_s: Option<f64>,
    /// Number of the router: the same for all of its addresses that are known to be its.
    pub(super) router: Option<u32>,
}

/// The links that two candidates share.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Share {
    /// The number of the other one.
    pub(super) with: usize,
    /// 1 - latency of the shared links / latency of the shorter path.
    pub(super) disjoint: f64,
    /// The shared links.
    pub(super) links: Vec<SharedLine>,
}

/// A link of two paths.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct SharedLine {
    /// An address of where it begins.
    pub(super) from: String,
    /// An address of where it ends.
    pub(super) to: String,
    /// One-way latency, from round-trip times.
    pub(super) latency_s: f64,
}
