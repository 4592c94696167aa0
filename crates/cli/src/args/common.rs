//! Arguments that several commands take.

use std::path::PathBuf;

use clap::Args;
use manypath::RelayUse;
use manypath_trust::Erased;

use crate::connect::bind::Bind;

/// UDP port that receivers listen on unless told otherwise (RFC 6951 §5.1).
pub(crate) const DEFAULT_PORT: u16 = 9899;

/// The UDP port of TURN (RFC 8656 §18).
pub(crate) const TURN_PORT: u16 = 3478;

/// The transport's configuration.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Transport")]
pub(crate) struct TransportArgs {
    /// Policies of a whole system: see `manypath presets` [default: adaptive]
    #[arg(long, value_name = "NAME")]
    pub preset: Option<String>,
    /// Set of constants: see `manypath presets` [default: fast]
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
    /// Local addresses or interface names, one path each, with their ranks [default: auto]
    ///
    /// auto: every interface with a route to the destination, whichever of them the system prefers.
    /// If the system's route leaves through a VPN, that one alone. What NetworkManager calls
    /// metered is a backup. *: every address, the system's routes choose.
    ///
    /// Others as in `eth0,wlan0:backup,lte0:cost=3` or `[fd00::1]:backup`. A path with a cost
    /// carries data when no cheaper path works, or when the cheaper ones cannot carry what is to be
    /// sent; a backup path only when no other path works. `manypath path set` changes ranks later.
    #[arg(long, value_name = "A[:RANK],B", value_delimiter = ',')]
    pub bind: Vec<Bind>,
}

/// SCTP over IP itself.
#[derive(Copy, Clone, Debug, Default, Args)]
pub(crate) struct IpArgs {
    /// Sends SCTP over IP itself (protocol 132), not in UDP, to SCTP port PORT [default: 9899]
    ///
    /// As in `perf client --ip 192.0.2.7` or `send --ip=5001 FILE TICKET`. The other end needs --ip
    /// with the same PORT, or is another SCTP stack. The UDP port of a ticket is not used. Packets
    /// have 8 bytes more for data, and pass few NATs. Needs Linux and the capability CAP_NET_RAW:
    /// run `sudo setcap cap_net_raw+ep` on the program once, or run it with sudo.
    #[arg(
        long,
        value_name = "PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "9899",
        value_parser = clap::value_parser!(u16).range(1..),
        conflicts_with_all = ["via", "relay_only", "direct_only"]
    )]
    pub ip: Option<u16>,
}

/// Relays.
#[derive(Clone, Debug, Args)]
pub(crate) struct ViaArgs {
    /// Also uses a path through each of these TURN relays
    ///
    /// All paths carry data at once. Of paths that turn out to share a bottleneck only one carries
    /// data, so that other flows get their share.
    ///
    /// RELAY is turn:USER:PASSWORD@HOST[:PORT] (default port 3478), or @FILE with one RELAY a line.
    /// Other users of this system can see the command line: use a file, or omit :PASSWORD and set
    /// MANYPATH_RELAY_PASSWORD. In names and passwords write %40 for @, %2C for a comma.
    ///
    /// Without --via the environment variable MANYPATH_RELAY names relays, or else the file
    /// ~/.config/manypath/relays, one RELAY a line; `none` uses none.
    #[arg(long, value_name = "RELAY,..", value_delimiter = ',')]
    pub via: Vec<Erased<String>>,
}

/// Relays of a command that listens.
#[derive(Clone, Debug, Args)]
pub(crate) struct ListenViaArgs {
    /// Is also reached through each of these TURN relays, from everywhere
    ///
    /// Each gives this host an address, which is in the ticket; the other end needs no --via. If a
    /// relay is not one of manypath's, it does, with the same relay.
    ///
    /// RELAY is turn:USER:PASSWORD@HOST[:PORT] (default port 3478), or @FILE with one RELAY a line.
    /// Other users of this system can see the command line: use a file, or omit :PASSWORD and set
    /// MANYPATH_RELAY_PASSWORD. In names and passwords write %40 for @, %2C for a comma.
    ///
    /// Without --via the environment variable MANYPATH_RELAY names relays, or else the file
    /// ~/.config/manypath/relays, one RELAY a line; `none` uses none.
    #[arg(long, value_name = "RELAY,..", value_delimiter = ',')]
    pub via: Vec<Erased<String>>,
    /// The part that they play.
    #[command(flatten)]
    pub relay_use: RelayUseArgs,
}

/// The part that relays play.
#[derive(Copy, Clone, Debug, Default, Args)]
pub(crate) struct RelayUseArgs {
    /// Sends and takes everything through relays, and tells the peer no address of this host
    ///
    /// Needs a relay of this end (--via), or at a sender a ticket with relayed addresses. No direct
    /// path is looked for. Without a relay of its own a sender sends from its own address to that
    /// on the receiver's relay, and the receiver sees which. docs/direct.md says who learns what.
    #[arg(long, conflicts_with = "direct_only")]
    pub relay_only: bool,
    /// Uses relays to meet only: they carry no content
    ///
    /// Content waits for a direct path, 10 s at most, whichever end has this option. If the direct
    /// path fails later, no relay takes over: the transfer waits for another one.
    #[arg(long)]
    pub direct_only: bool,
}

impl RelayUseArgs {
    /// The part that the user wants.
    pub(crate) fn wanted(self) -> RelayUse {
        if self.relay_only {
            RelayUse::Only
        } else if self.direct_only {
            RelayUse::ToMeet
        } else {
            RelayUse::Beside
        }
    }
}

/// Relays that other relays know of.
#[derive(Clone, Debug, Args)]
pub(crate) struct RelayPeersArgs {
    /// Uses the relays of --via alone, not those that they know of
    ///
    /// Relays with --peers know each other. Those that the relays of --via list are used, too, also
    /// when they join later, with the same user and password: up to 8 in all. One that is dead and
    /// that no other relay lists is left.
    #[arg(long)]
    pub no_relay_peers: bool,
}

impl RelayPeersArgs {
    /// True if relays are used that other relays know of.
    pub(crate) fn are_wanted(&self) -> bool {
        !self.no_relay_peers
    }
}

/// Tracing the hops of paths.
#[derive(Clone, Debug, Args)]
pub(crate) struct TraceArgs {
    /// How often to trace the hops of relayed paths; off: never [default: 60 s]
    ///
    /// Needs --via and Linux. Traces routers as `manypath paths` does, when a path is added and
    /// after each interval. A path that is not disjoint from a better one carries no data while
    /// that one works. Off by default with presets that use all paths whatever they share, such as
    /// cmt-pf.
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
    /// Local addresses or interface names to listen on, with their ranks [default: all]
    ///
    /// By default peers are told the addresses that lead outside, and those of no bridge or tunnel.
    ///
    /// As in `eth0,wlan0:backup,lte0:cost=3` or `[fd00::1]:backup`. Ranks say which paths carry
    /// what this side sends, acknowledgements included; the peer decides on its own.
    #[arg(long, visible_alias = "bind", value_name = "A[:RANK],B", value_delimiter = ',')]
    pub listen: Vec<Bind>,
    /// Also takes SCTP over IP itself (protocol 132), at SCTP port PORT [default: 9899]
    ///
    /// For senders with --ip and other SCTP stacks, as in `recv --ip` or `perf server --ip=5001`.
    /// UDP goes on as before. The SCTP port is inside the packets; a second program with --ip on
    /// this host needs another one, and then so do all its senders. Needs Linux and the capability
    /// CAP_NET_RAW: run `sudo setcap cap_net_raw+ep` on the program once, or run it with sudo.
    #[arg(
        long,
        value_name = "PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "9899",
        value_parser = clap::value_parser!(u16).range(1..),
        conflicts_with = "relay_only"
    )]
    pub ip: Option<u16>,
    /// UDP port to listen on; 0 takes a free one [default: 9899; `recv` takes a free one if another
    /// program has that]
    #[arg(long)]
    pub port: Option<u16>,
}
