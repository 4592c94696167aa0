//! Arguments of `manypath path`.

use clap::{Args, Subcommand};
use manypath::PathRank;

use super::ReportArgs;

/// `manypath path`.
#[derive(Debug, Subcommand)]
pub(crate) enum PathCommand {
    /// Lists the paths of the running processes of this user
    List(PathListArgs),
    /// Sets the rank of paths by their interface or address, while they are in use
    ///
    /// Applies to every running process of this user that has such paths, and to their paths of
    /// later. An interface keeps its rank when its address changes. An address of the peer stands
    /// for the present paths to there.
    #[command(after_help = "Examples:
  manypath path set wlan0 backup                  (only if nothing else works)
  manypath path set lte0 cost=3                   (if cheaper paths do not suffice)
  manypath path set 192.0.2.7 normal --pid 4711
  manypath path set 203.0.113.9 backup            (the peer's metered uplink)")]
    Set(PathSetArgs),
}

/// `manypath path list`.
#[derive(Debug, Args)]
pub(crate) struct PathListArgs {
    /// The process [default: all of this user]
    pub pid: Option<u32>,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath path set`.
#[derive(Debug, Args)]
pub(crate) struct PathSetArgs {
    /// The interface or the local address of the paths, or the peer's address
    pub place: String,
    /// normal, cost=N (N from 0 to 255; dearer paths have a higher one) or backup
    pub rank: PathRank,
    /// The process [default: all of this user]
    #[arg(long)]
    pub pid: Option<u32>,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}
