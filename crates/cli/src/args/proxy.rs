//! Arguments of `manypath proxy`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use manypath_trust::Erased;

use super::{
    BindArgs, ClientSecurityArgs, IpArgs, ListenArgs, ListenViaArgs, LiveArgs, QrArgs,
    RelayPeersArgs, RelayUseArgs, ReportArgs, ServerSecurityArgs, TransportArgs, ViaArgs,
};
use crate::commands::proxy::forward::{Forward, ListenAt};
use manypath_proxy::rules::Rule;

/// `manypath proxy`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProxyCommand {
    /// Connects to targets for `proxy connect`; prints a ticket for it
    ///
    /// Whoever has the ticket or the token may connect to any host and port that this host can
    /// reach, its own included, as with SSH. --allow-target and --deny-target narrow that. With
    /// --identity and --token-file the ticket stays the same after a restart, and clients come back
    /// on their own. SIGTERM ends it in order.
    #[command(after_help = "Examples:
  manypath proxy listen --identity proxy.key --token-file secret
  manypath proxy listen --allow-target db:5432 --allow-target '10.0.0.0/8:22'
  manypath proxy listen --deny-target 'this-host:*' --deny-target '10.0.0.0/8:*'
  manypath proxy listen --deny-private --connections 500
  manypath proxy listen --relay-only --via turn:ann:PASSWORD@relay.example
  manypath proxy listen --allow-remote-forwards --json")]
    Listen(Box<ProxyListenArgs>),
    /// Forwards local ports and serves SOCKS5, through `proxy listen` at DEST
    ///
    /// Local ports listen on loopback unless an address is named. If the association is lost, local
    /// connections are reset, and new ones work as soon as DEST is back. SIGTERM ends it in order.
    #[command(after_help = "Examples:
  manypath proxy connect manypath2:ae... -L 8080:intranet:80      (the ticket that listen printed)
  manypath proxy connect manypath2:ae... -L 2222:localhost:22     (then: ssh -p 2222 localhost)
  manypath proxy connect manypath2:ae... -D 1080                  (then: curl -x socks5h://localhost:1080 ...)
  manypath proxy connect server.example --token-file secret -L 0.0.0.0:5432:db:5432
  manypath proxy connect manypath2:ae... -R 8000:localhost:8000   (needs listen --allow-remote-forwards)
  manypath proxy connect manypath2:ae... --tproxy 1081            (all of this host; see examples/tproxy.nft)
  manypath proxy connect --direct-only manypath2:ae... -D 1080    (relays carry nothing of it)
  manypath proxy connect --bind eth0,wlan0,lte0:backup manypath2:ae... -D 1080")]
    Connect(Box<ProxyConnectArgs>),
}

/// `manypath proxy listen`.
#[derive(Debug, Args)]
pub(crate) struct ProxyListenArgs {
    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Relays to be reached through.
    #[command(flatten)]
    pub via: ListenViaArgs,
    /// Its ticket as a QR code.
    #[command(flatten)]
    pub qr: QrArgs,
    /// Connects to these targets only; repeatable
    ///
    /// HOST:PORT, ADDRESS/BITS:PORT, this-host:PORT or *:PORT; PORT may be *. A rule with an
    /// address counts for names that lead there, too. this-host is loopback and every address of
    /// this host's interfaces.
    #[arg(long, value_name = "HOST:PORT")]
    pub allow_target: Vec<Rule>,
    /// Never connects to these targets; wins over --allow-target; repeatable
    #[arg(long, value_name = "HOST:PORT")]
    pub deny_target: Vec<Rule>,
    /// Never connects to this host, to private, link-local and multicast addresses, or to a cloud's
    /// metadata; wins over --allow-target
    #[arg(long)]
    pub deny_private: bool,
    /// Lets clients have ports listened on here (-R)
    #[arg(long)]
    pub allow_remote_forwards: bool,
    /// Connections that a client may have open
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u16).range(1..=32_000))]
    pub connections: u16,
    /// Memory for data that targets and clients have not taken yet
    #[arg(long, value_name = "SIZE", default_value = "256 MiB")]
    pub memory: String,
    /// Uses this token of at least 6 characters (8 with --insecure) instead of a random one. Other
    /// users of this host can see it here
    ///
    /// Without --token and --token-file it is taken from the environment variable MANYPATH_TOKEN,
    /// if that is set.
    #[arg(long)]
    pub token: Option<Erased<String>>,
    /// File with the token on its only line, made with a random one if it is missing; -: asks for
    /// it at the terminal
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,
    /// Encryption and keys.
    #[command(flatten)]
    pub security: ServerSecurityArgs,
    /// Live views.
    #[command(flatten)]
    pub live: LiveArgs,
    /// The transport's configuration.
    #[command(flatten)]
    pub transport: TransportArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath proxy connect`.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("forwards").required(true).multiple(true))]
pub(crate) struct ProxyConnectArgs {
    /// A ticket, HOST[:PORT][,HOST[:PORT]...], or @FILE with one of them
    #[arg(value_name = "DEST")]
    pub dest: String,
    /// Forwards a local port to a target of the far host, which looks its name up; repeatable
    #[arg(short = 'L', long, value_name = "[BIND:]PORT:HOST:PORT", group = "forwards")]
    pub local: Vec<Forward>,
    /// Serves SOCKS5 on a local port: TCP and UDP; repeatable
    #[arg(short = 'D', long, value_name = "[BIND:]PORT", group = "forwards")]
    pub socks: Vec<ListenAt>,
    /// Takes all TCP connections of this host, or of its network, that the system redirects to a
    /// local port, and connects to where they were meant to go; repeatable. Linux; needs
    /// CAP_NET_ADMIN
    ///
    /// examples/tproxy.nft has the rules that redirect connections.
    #[arg(long, value_name = "[BIND:]PORT", group = "forwards")]
    pub tproxy: Vec<ListenAt>,
    /// Forwards a port of the far host to a target of this one; repeatable
    #[arg(short = 'R', long, value_name = "[BIND:]PORT:HOST:PORT", group = "forwards")]
    pub remote: Vec<Forward>,
    /// The far side's token, if DEST is not a ticket. Other users of this host can see it here
    ///
    /// Without --token and --token-file it is taken from the environment variable MANYPATH_TOKEN,
    /// or asked for at the terminal.
    #[arg(long)]
    pub token: Option<Erased<String>>,
    /// File with the far side's token on its only line; -: asks for it at the terminal
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,
    /// Gives up if the far side does not answer within this time at the start; later it never does
    #[arg(long, value_name = "TIME", default_value = "15 s")]
    pub connect_timeout: String,
    /// Memory for data that local programs have not taken yet
    #[arg(long, value_name = "SIZE", default_value = "256 MiB")]
    pub memory: String,
    /// Local addresses.
    #[command(flatten)]
    pub bind: BindArgs,
    /// Relays.
    #[command(flatten)]
    pub via: ViaArgs,
    /// SCTP over IP itself.
    #[command(flatten)]
    pub ip: IpArgs,
    /// Relays that those know of.
    #[command(flatten)]
    pub relay_peers: RelayPeersArgs,
    /// The part that relays play.
    #[command(flatten)]
    pub relay_use: RelayUseArgs,
    /// Encryption and keys.
    #[command(flatten)]
    pub security: ClientSecurityArgs,
    /// Live views.
    #[command(flatten)]
    pub live: LiveArgs,
    /// The transport's configuration.
    #[command(flatten)]
    pub transport: TransportArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}
