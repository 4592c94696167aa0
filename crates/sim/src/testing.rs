//! Random operations on a pair: find what nobody thought of.
//!
//! A [`Plan`] is a setting and a list of operations, all from one seed: sends, read pauses, faults
//! of every kind, restarts, shutdowns. [`Plan::run`] carries it out, checks the engine's invariants
//! on the way, then ends all faults and demands that everything arrives exactly once and, per
//! stream, in order. A plan that fails is shrunk to few operations with [`Plan::shrink`]; its
//! `Debug` form is the test to keep.
//!
//! ```
//! use manypath_sim::testing::Plan;
//!
//! let outcome = Plan::from_seed(1).run()?;
//! assert!(outcome.steps > 0);
//! # Ok::<(), manypath_sim::testing::Failure>(())
//! ```

mod generate;
pub mod hostile;
pub mod many;
mod run;
pub mod tamper;

use std::time::Duration;

use manypath_proto::PathRank;

use crate::traffic::Limits;
pub use run::{Failure, Outcome, catch_panics};

/// A whole run, as data.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Where all randomness of the run comes from.
    pub seed: u64,
    /// The engines and the network.
    pub setting: Setting,
    /// The operations, each followed by that much time.
    pub steps: Vec<(Op, Duration)>,
    /// How the association ends, after everything is delivered.
    pub ending: Ending,
}

/// Plans that try the same operations under different settings.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Family {
    /// As drawn from the seed.
    Plain,
    /// With NR-SACK, and little memory on both sides: what a receiver discards to make room for a
    /// lower TSN must still be with the sender.
    NrSack,
    /// With paths that duplicate others.
    Redundant,
    /// All combinations of the policies for several paths, by the seed: 160 of them in a row.
    Combined,
    /// With losses found by time, congestion control by a model, and copies of what is late, in all
    /// combinations by the seed.
    Adaptive,
    /// With paths of different ranks, which change.
    Ranked,
    /// With addresses of `z` that nobody can reach, tried before and after those that work.
    Candidates,
    /// With paths that become slow, and little time until a silent peer is given up.
    Slow,
    /// With messages that may be given up among others, in all combinations of the policies for
    /// several paths.
    Limited,
    /// With protected packets, new keys every 10 to 1000 of them, and a man in the middle who
    /// disturbs some paths. Of each four plans one has no operation that can end the association:
    /// he must not either.
    Protected,
    /// With streams that are reset and added (RFC 6525), some of them with protected packets.
    Reconfigured,
    /// With all extensions: messages that may be given up, streams that are reset, NR-SACK,
    /// interleaving and the I bit, over several paths.
    Extended,
}

impl Family {
    /// All families, by name.
    pub const ALL: [(&'static str, Family); 12] = [
        ("plain", Family::Plain),
        ("nr-sack", Family::NrSack),
        ("redundant", Family::Redundant),
        ("combined", Family::Combined),
        ("adaptive", Family::Adaptive),
        ("ranked", Family::Ranked),
        ("candidates", Family::Candidates),
        ("slow", Family::Slow),
        ("limited", Family::Limited),
        ("protected", Family::Protected),
        ("reconfigured", Family::Reconfigured),
        ("extended", Family::Extended),
    ];
}

/// The engines and the network of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The profile's name.
    pub profile: &'static str,
    /// The preset's name.
    pub preset: &'static str,
    /// Parameters by name.
    pub overrides: Vec<(&'static str, &'static str)>,
    /// The paths.
    pub paths: Vec<PathSetting>,
    /// True if `z` has one address for all of them.
    pub has_one_far_address: bool,
    /// Addresses of `z` that cannot be reached, which `a` tries as well.
    pub dead_addresses: usize,
    /// Most packets that the engine hands over at once.
    pub max_segments: usize,
    /// Packets are protected, with a key that both ends share.
    pub is_protected: bool,
}

/// One path of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PathSetting {
    /// Rate in Mbit/s.
    pub rate_mbps: u32,
    /// One-way delay in milliseconds.
    pub delay_ms: u32,
    /// Loss in percent, both ways.
    pub loss_percent: u32,
    /// Queue in packets.
    pub queue: usize,
}

/// One of the two hosts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Side {
    /// The one that associates.
    A,
    /// The one that waits.
    Z,
}

/// One operation. Paths are counted modulo their number, so that a plan stays valid when it
/// shrinks.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Op {
    /// Sends messages of `length` bytes each.
    Send {
        /// Who sends.
        side: Side,
        /// On which stream.
        stream: u16,
        /// True if they do not wait for their stream's order.
        unordered: bool,
        /// Bytes of each.
        length: usize,
        /// How many.
        count: usize,
    },
    /// Sends messages of `length` bytes each that may be given up.
    SendLimited {
        /// The side that sends.
        side: Side,
        /// On which stream.
        stream: u16,
        /// True if they do not wait for their stream's order.
        unordered: bool,
        /// Bytes of each.
        length: usize,
        /// How many.
        count: usize,
        /// When they are given up.
        limits: Limits,
    },
    /// Stops to read: a zero window in time.
    PauseReading(Side),
    /// Reads again.
    ResumeReading(Side),
    /// Cuts a path, both ways.
    Cut(usize),
    /// Cuts a path away from `a` only.
    CutForward(usize),
    /// Cuts a path towards `a` only.
    CutReverse(usize),
    /// Cuts all paths.
    CutAll,
    /// Restores a path.
    Restore(usize),
    /// Restores all paths.
    RestoreAll,
    /// Sets a path's loss in percent.
    Loss(usize, u32),
    /// Sets the percentage of packets that arrive twice.
    Duplicate(usize, u32),
    /// Sets the percentage of packets that are held back, and by how many milliseconds.
    Reorder(usize, u32, u32),
    /// Sets the bound of the random extra delay, in milliseconds.
    Jitter(usize, u32),
    /// Sets a path's rate, in kbit/s.
    Rate(usize, u32),
    /// Sets a path's one-way delay, in milliseconds.
    Delay(usize, u32),
    /// Gives a path a new source port in the eyes of `z`, as a NAT does.
    Rebind(usize, u16),
    /// Gives `a` another address on a path after some milliseconds without one. Not `z`: a new
    /// association would not find it.
    Renumber(usize, u32),
    /// Lets a man in the middle disturb that percentage of a path's packets while both ends are
    /// authenticated: see [`tamper`].
    Tamper(usize, u32),
    /// Makes a path the primary of a side.
    SetPrimary(Side, usize),
    /// The paths from an address get a rank.
    Rank(Side, usize, PathRank),
    /// A side resets a stream that it sends on, or all of them.
    ResetStreams(Side, Option<u16>),
    /// A side asks its peer to reset a stream, or all of them.
    RequestReset(Side, Option<u16>),
    /// A side adds streams, outgoing and incoming ones.
    AddStreams(Side, u16, u16),
    /// `a` takes the path at that place of its table out of the association, unless it is the
    /// last one that is verified.
    RemovePath(usize),
    /// `a` puts a path back into the association.
    AddPath(usize),
    /// A side ends the association at once; `a` associates again.
    Abort(Side),
    /// A side loses all state and comes back.
    Restart(Side),
    /// A side shuts the association down once it has sent everything.
    Shutdown(Side),
}

/// How an association ends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By shutdown from `a`.
    ByA,
    /// By shutdown from `z`.
    ByZ,
    /// By shutdown from both sides at once.
    ByBoth,
}
