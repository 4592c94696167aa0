//! Reasons of decisions about paths, as events and results name them.

use serde::Serialize;

/// Why a path that works carries no data (mTCP paper, section 3.4.1).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SuppressReason {
    /// It shares a bottleneck with a faster path.
    SharedBottleneck,
    /// It is slower than the fastest path by the factor `suppress_below` or more.
    Slow,
    /// `paths_max` others have better scores.
    Spare,
    /// It has too many of its hops in common with a path of a better score (mTCP paper, section
    /// 3.3).
    SharesHops,
    /// The [rank](super::PathRank) is dearer than that of working paths which carry all that the
    /// application offers.
    Dearer,
}

impl SuppressReason {
    /// The name used in JSON results: `shared_bottleneck`, `slow`, `spare`, `shares_hops` or
    /// `dearer`.
    pub const fn name(self) -> &'static str {
        match self {
            SuppressReason::SharedBottleneck => "shared_bottleneck",
            SuppressReason::Slow => "slow",
            SuppressReason::Spare => "spare",
            SuppressReason::SharesHops => "shares_hops",
            SuppressReason::Dearer => "dearer",
        }
    }
}

/// Why a path that was suppressed carries data again (mTCP paper, section 3.4.2).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RestoreReason {
    /// Its score is `path_addition_gain` times that of the worst path in use, or more.
    Better,
    /// Fewer than `paths_min` others work; or the path was a spare, and fewer than `paths_max`
    /// work.
    TooFew,
    /// The paths that share its hops do not work, or its hops turned out to be others.
    Disjoint,
    /// It shared a bottleneck some time ago (`shared_retry`), and may have a separate one now.
    Again,
    /// No cheaper path works.
    Failover,
    /// Cheaper paths cannot carry what the application offers.
    Overflow,
    /// Its rank, or that of others, was changed.
    Ranked,
}

impl RestoreReason {
    /// The name used in JSON results: `better`, `too_few`, `disjoint`, `again`, `failover`,
    /// `overflow` or `ranked`.
    pub const fn name(self) -> &'static str {
        match self {
            RestoreReason::Better => "better",
            RestoreReason::TooFew => "too_few",
            RestoreReason::Disjoint => "disjoint",
            RestoreReason::Again => "again",
            RestoreReason::Failover => "failover",
            RestoreReason::Overflow => "overflow",
            RestoreReason::Ranked => "ranked",
        }
    }
}

/// Why SACKs take another path than before.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ElectReason {
    /// Their old path has failed, as far as this side knows.
    Failed,
    /// This side has set their old path aside, so that it brings the peer no data.
    SetAside,
    /// Their old path works, as far as this side knows, but brings no data while others do. It
    /// failed on the peer's side, or the peer has set it aside.
    Silent,
    /// Their old path works, as far as this side knows; the new one has a better score.
    Better,
}

impl ElectReason {
    /// The name used in JSON results: `failed`, `set_aside`, `silent` or `better`.
    pub const fn name(self) -> &'static str {
        match self {
            ElectReason::Failed => "failed",
            ElectReason::SetAside => "set_aside",
            ElectReason::Silent => "silent",
            ElectReason::Better => "better",
        }
    }
}
