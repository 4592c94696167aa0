//! Arguments that several commands take.

use std::path::PathBuf;

use clap::Args;

/// UDP port that receivers listen on unless told otherwise (RFC 6951 §5.1).
pub(crate) const DEFAULT_PORT: u16 = 9899;

/// The UDP port of TURN (RFC 8656 §18).
pub(crate) const TURN_PORT: u16 = 3478;

/// The transport's configuration.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Transport")]
pub(crate) struct TransportArgs {
    /// Whole system to use: see `manypath presets` [default: cmt-pf; with --via: mtcp]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Set of constants to use: see `manypath presets` [default: fast]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Sets one parameter, such as rto_min=100ms; repeatable; see `manypath config show`
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Reads preset, profile and parameters from the [transport] table of a TOML file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Local addresses.
#[derive(Clone, Debug, Args)]
pub(crate) struct BindArgs {
    /// Local addresses or interface names, one path each [default: all]
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub bind: Vec<String>,
}

/// Relays.
#[derive(Clone, Debug, Args)]
pub(crate) struct ViaArgs {
    /// Also uses a path through each of these TURN relays
    ///
    /// The preset is then mtcp, unless --preset names another: at most five paths carry data at a time (paths_max), and
    /// of those that turn out to share a bottleneck only one, so that other flows get their share.
    ///
    /// RELAY is turn:USER:PASSWORD@HOST[:PORT] (port 3478 unless said), or @FILE with one a line. On
    /// systems with several users others can see a command line: use a file, or leave :PASSWORD out
    /// and set MANYPATH_RELAY_PASSWORD. In names and passwords write %40 for @, %2C for a comma.
    #[arg(long, value_name = "RELAY,..", value_delimiter = ',')]
    pub via: Vec<String>,
}

/// Looking for the hops of paths.
#[derive(Clone, Debug, Args)]
pub(crate) struct TraceArgs {
    /// How often the hops of paths through relays are looked for; off: never [default: 60 s with paths_max]
    ///
    /// With --via. The routers on the way are looked for as `manypath paths` does: when paths come, and after each
    /// of these times. A path that is not disjoint from a better one carries no data as long as that one works. Done
    /// unasked where the number of paths is limited (paths_max), as the preset mtcp has it. On Linux.
    #[arg(long, value_name = "TIME")]
    pub trace_interval: Option<String>,
}

/// How results are reported.
#[derive(Copy, Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ReportArgs {
    /// Prints results as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Prints nothing but results and errors
    #[arg(long, short)]
    pub quiet: bool,
    /// Prints more; repeatable
    #[arg(long, short, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// Where a server listens.
#[derive(Clone, Debug, Args)]
pub(crate) struct ListenArgs {
    /// Local addresses or interface names to listen on [default: all]
    #[arg(long, visible_alias = "bind", value_name = "A,B", value_delimiter = ',')]
    pub listen: Vec<String>,
    /// UDP port to listen on; 0 takes a free one
    #[arg(long, default_value_t = DEFAULT_PORT)]
    pub port: u16,
}
