//! Arguments of `manypath relay`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::Args;
use manypath_trust::Erased;

use super::{MetricsArgs, ReportArgs, TURN_PORT};

/// `manypath relay`.
#[derive(Debug, Args)]
pub(crate) struct RelayArgs {
    /// Adds a user; repeatable. Other users of this system can see the password: prefer --users
    #[arg(long, value_name = "NAME:PASSWORD")]
    pub user: Vec<Erased<String>>,
    /// File of users, one NAME:PASSWORD a line; # begins a comment
    #[arg(long, value_name = "FILE")]
    pub users: Option<PathBuf>,
    /// Local addresses or interface names to listen on [default: all]
    #[arg(long, visible_alias = "bind", value_name = "A,B", value_delimiter = ',')]
    pub listen: Vec<String>,
    /// UDP port to listen on; 0 takes a free one
    #[arg(long, default_value_t = TURN_PORT)]
    pub port: u16,
    /// Second UDP port, by which `doctor` finds out how a NAT behaves; 0: none [default: the next]
    ///
    /// It answers STUN Binding requests only (RFC 5780), within the limits for strangers. Open it
    /// in the firewall, too. The relay works without it.
    #[arg(long, value_name = "PORT")]
    pub stun_port: Option<u16>,
    /// UDP ports for allocations; open them in the firewall
    #[arg(long, value_name = "FIRST-LAST", default_value = "49152-65535")]
    pub ports: String,
    /// Public address of this host, if it is behind a NAT
    #[arg(long, value_name = "IP")]
    pub external: Option<IpAddr>,
    /// Also forwards to these ranges although they are not public, such as 10.0.0.0/8
    #[arg(long, value_name = "RANGE,..", value_delimiter = ',')]
    pub allow_peer: Vec<String>,
    /// Lets no user have an address that lets everybody in, as `recv --via` asks for
    ///
    /// Otherwise whoever knows such an address can use up the rate of its user.
    #[arg(long)]
    pub no_open: bool,
    /// Other relays, which list each other to their users
    ///
    /// Each asks the others every 10 s, measures the round-trip time and the losses, and leaves one
    /// that does not answer within 15 s. It learns of further relays from those it asks, and of one
    /// that joins by being asked: one name is enough. `send` and others with --via then use the
    /// relays that join, too. All need the same first user. Names are looked up again each minute.
    #[arg(long, value_name = "HOST[:PORT],..", value_delimiter = ',')]
    pub peers: Vec<String>,
    /// Maximum number of allocations of one user
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub allocations_per_user: u32,
    /// Maximum number of allocations in total
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub allocations: usize,
    /// Maximum rate of one user over all allocations and both directions; 0: no limit
    #[arg(long, value_name = "RATE", default_value = "100 Mbit/s")]
    pub rate_per_user: String,
    /// Maximum rate of all users together; 0: no limit
    #[arg(long, value_name = "RATE", default_value = "0")]
    pub rate: String,
    /// Time after which an allocation expires unless its user refreshes it
    #[arg(long, value_name = "TIME", default_value = "10 min")]
    pub lifetime: String,
    /// TURN realm of the passwords; clients learn it from the relay
    #[arg(long, default_value = "manypath")]
    pub realm: String,
    /// Also shows the first argument for --via as a QR code, on standard error
    #[arg(long, conflicts_with_all = ["quiet", "user", "users"])]
    pub qr: bool,
    /// Metrics.
    #[command(flatten)]
    pub metrics: MetricsArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}
