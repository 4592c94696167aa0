//! The command line, as clap reads it. The `--help` texts are the first documentation people see.

// What documents the arguments is their help text, where brackets mean "optional".
#![allow(rustdoc::broken_intra_doc_links)]

mod common;
mod decrypt;
mod doctor;
#[cfg(target_os = "linux")]
pub(crate) mod emulate;
pub(crate) mod lab;
mod live;
mod names;
#[cfg(test)]
mod pages;
#[cfg(unix)]
mod path;
mod proxy;
mod relay;
pub(crate) mod replay;
mod security;
pub(crate) mod sim;
mod words;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use manypath_trust::Erased;

pub(crate) use common::{
    BindArgs, DEFAULT_PORT, IpArgs, ListenArgs, ListenViaArgs, RelayPeersArgs, RelayUseArgs,
    ReportArgs, TURN_PORT, TraceArgs, TransportArgs, ViaArgs,
};
pub(crate) use decrypt::DecryptArgs;
pub(crate) use doctor::DoctorArgs;
use lab::LabCommand;
#[cfg(unix)]
pub(crate) use live::TopArgs;
pub(crate) use live::{LiveArgs, MetricsArgs};
pub(crate) use names::{CodeArgs, NameArgs, NamesArgs, QrArgs, ShowCodeArgs};
#[cfg(unix)]
pub(crate) use path::{PathCommand, PathListArgs, PathSetArgs};
pub(crate) use proxy::{ProxyCommand, ProxyConnectArgs, ProxyListenArgs};
pub(crate) use relay::RelayArgs;
pub(crate) use replay::RecordArgs;
use replay::ReplayArgs;
pub(crate) use security::{CertificateArgs, ClientSecurityArgs, ServerSecurityArgs};
use sim::SimCommand;
use words::Words;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  failed
  2  the command line is wrong
  3  a transfer was interrupted; the same command goes on from there
  4  no usable path to the peer
  5  not authorised
 10  doctor: the worst finding is a warning
 11  doctor: the worst finding is an error";

/// Sends files over several network paths at once.
///
/// A transfer uses all paths between two hosts at once (two uplinks, two addresses) and continues
/// when one of them fails. It uses SCTP (RFC 9260) over UDP and needs no privileges.
#[derive(Debug, Parser)]
#[command(name = "manypath", version, long_version = crate::version::long())]
#[command(propagate_version = true, max_term_width = 100)]
#[command(after_long_help = EXIT_CODES)]
#[command(arg_required_else_help = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Shows a transfer over two emulated paths, one of which fails and returns
    ///
    /// Starts a real sender and a real receiver on this machine, with two emulated paths of 20
    /// Mbit/s and 20 ms between them. The second path fails at 5 s and returns at 10 s.
    #[command(after_help = "Examples:
  manypath demo
  manypath demo --size 20MB --down 2s --for 2s
  manypath demo --preset sctp --json")]
    Demo(DemoArgs),
    /// Sends files and directories to a receiver
    ///
    /// Every packet is encrypted and authenticated. A ticket names the receiver's key, and no other
    /// receiver is accepted; to a CODE, NAME or HOST both ends prove the code or token without
    /// showing it. A CODE (`recv --code`) is looked up at a relay, a NAME in the local network
    /// (`recv --name`). If one file cannot be read,
    /// nothing is sent. The receiver verifies the SHA-256 of every file before it gets its name.
    /// Symbolic links inside directories are omitted, and hidden files unless the receiver takes
    /// them. Standard input (-) is sent until its end.
    #[command(after_help = "Examples:
  manypath send holiday.mp4 manypath2:ae...       (the ticket that recv printed)
  manypath send holiday.mp4 laptop                (asks for the code that `recv --name laptop` shows)
  manypath send holiday.mp4 7-cabana-anvil@relay.example   (the code that `recv --code` shows)
  manypath send photos/ notes.txt manypath2:ae...
  tar c photos | manypath send - manypath2:ae...  (there: manypath recv --stdout | tar x)
  pg_dump db | manypath send --as db.sql - manypath2:ae...
  manypath send --bind eth0,wlan0 big.iso manypath2:ae...
  manypath send --bind eth0,wlan0:backup,lte0:cost=3 big.iso manypath2:ae...
  manypath send --ip big.iso manypath2:ae...
  manypath send --via turn:ann:PASSWORD@relay.example big.iso manypath2:ae...
  manypath send --direct-only big.iso manypath2:ae...      (the relay in the ticket carries no content)
  manypath send --token-file secret big.iso server.example:9899
  manypath send --trace monday.jsonl big.iso manypath2:ae...      (for `manypath replay`)
  manypath send --tui big.iso manypath2:ae...     (b sets a path to backup)
  manypath send --web 8080 --metrics 9464 big.iso manypath2:ae...
  manypath send big.iso server.example:9899       (asks for the token)")]
    Send(SendArgs),
    /// Receives files; prints a ticket for the sender
    ///
    /// Existing files are replaced only with --overwrite, and hidden files (names that begin with a
    /// dot) accepted only with --hidden. A file gets its name only when it is complete and
    /// verified. What arrived of a file before an interruption is kept: the sender goes on from
    /// there when it sends the file again. Every packet is encrypted and authenticated; the ticket
    /// names this receiver's key, and its token keeps strangers out.
    #[command(after_help = "Examples:
  manypath recv --once
  manypath recv --name laptop                     (for `send FILE laptop` in the local network)
  manypath recv --qr                              (the ticket as a QR code, too)
  manypath recv --via turn:ann:PASSWORD@relay.example      (behind a NAT, or in another private network)
  manypath recv --code --via turn:ann:PASSWORD@relay.example   (a code instead of the ticket)
  manypath recv --relay-only --via turn:ann:PASSWORD@relay.example      (tells nobody where this host is)
  manypath recv --dir ~/Downloads --listen 192.0.2.7,198.51.100.7
  manypath recv --ip                              (SCTP over IP itself, too, for `send --ip`)
  manypath recv --stdout | tar x                  (there: tar c DIR | manypath send - TICKET)
  manypath recv --identity recv.key --allow senders
  manypath recv --web 127.0.0.1:8080              (prints the address of a page)
  manypath recv --token-file secret --json        (makes the file if it is missing)")]
    Recv(RecvArgs),
    /// Lists the receivers of the local network that have names
    ///
    /// Shows what `recv --name` announces: names, addresses, and the SHA-256 of keys. Anybody in
    /// the network can announce anything; the code or token of `send` shows whether it is right.
    #[command(after_help = "Examples:
  manypath names
  manypath names --wait 5s --json")]
    Names(NamesArgs),
    /// Measures the throughput between two hosts
    #[command(subcommand)]
    Perf(PerfCommand),
    /// Carries any TCP program over all paths: port forwards and a SOCKS5 proxy
    ///
    /// `proxy listen` runs on the far host, `proxy connect` here. Programs connect to a local port,
    /// and the far host connects to the target for them. A single connection uses the sum of the
    /// paths, and goes on when one of them fails. docs/proxy.md has more.
    #[command(subcommand)]
    Proxy(ProxyCommand),
    /// Lists the direct and relayed paths to a host: quality, shared hops, which to use
    ///
    /// Probes every path (round-trip time, loss) and traces its routers as traceroute does. Then
    /// selects as mTCP does: in order of score, each path that is disjoint enough from those
    /// selected before. Needs no privileges and no token; `recv` or `perf server` must run at DEST.
    /// Routers are traced on Linux only, those between a relay and DEST by the relay, if it is
    /// manypath's.
    #[command(after_help = "Examples:
  manypath paths server.example
  manypath paths --via @relays --svg paths.svg manypath2:ae...
  manypath paths --via turn:ann:PASSWORD@relay.example server.example --json")]
    Paths(PathsArgs),
    /// Finds what keeps this host from using all its paths, and says how to mend it
    ///
    /// Looks at addresses, routes, rules, kernel settings, firewall, clock, and probes DEST from
    /// every uplink. Each finding is one sentence with a severity and the commands that mend it.
    /// Changes nothing. Needs no privileges, but sees more with them, and says what it could not
    /// see. `recv`, `perf server`, `proxy listen` or `relay` must run at DEST. docs/doctor.md lists
    /// the findings.
    ///
    /// The exit code is 10 if the worst finding is a warning, 11 if it is an error, else 0.
    #[command(after_help = "Examples:
  manypath doctor server.example
  manypath doctor --bind eth0,wlan0 manypath2:ae...
  sudo manypath doctor server.example             (reads the firewall, too)
  manypath doctor --only mtu,nat --stun stun.example,relay.example server.example
  manypath doctor --long --stun relay.example server.example
  manypath doctor server.example --json
  manypath doctor                                 (this host only)
  manypath doctor --list")]
    Doctor(DoctorArgs),
    /// Shows the paths of running processes, and changes which ones carry data
    ///
    /// Speaks to the running `send`, `recv`, `perf` and `proxy` of the same user through their
    /// control sockets, in XDG_RUNTIME_DIR/manypath or in the directory of temporary files.
    #[cfg(unix)]
    #[command(subcommand)]
    Path(PathCommand),
    /// Shows running processes live: rates, round-trip times, losses, events
    ///
    /// Attaches to the running `send`, `recv`, `perf` and `proxy` of the same user through their
    /// control sockets, and shows each path with its rate over time. Keys set a path to backup or
    /// normal, effective at once. Ends with q; the processes go on.
    #[cfg(unix)]
    #[command(after_help = "Examples:
  manypath top                                    (all of them, to choose one)
  manypath top 4711
  manypath top --json                             (the figures once, for scripts)")]
    Top(TopArgs),
    /// Relays for authorised users, as a TURN server (RFC 8656): one more path for them
    ///
    /// Forwards packets between its users and their peers and reads none of them. Without --user or
    /// --users it creates a user with a random password and prints the argument for --via. By
    /// default it forwards to public addresses only, not to loopback, private, link-local or
    /// multicast ones, because services beside the relay may trust every host of their network.
    #[command(after_help = "Examples:
  manypath relay                                  (prints the argument for --via)
  manypath relay --users relay-users --rate-per-user 20Mbit/s
  manypath relay --allow-peer 10.0.0.0/8 --listen 10.0.0.7
  manypath relay --metrics 127.0.0.1:9464         (for Prometheus)
  manypath relay --users relay-users --peers relay1.example,relay2.example:3479
Then, elsewhere:
  manypath send --via turn:manypath:PASSWORD@relay.example big.iso manypath2:ae...")]
    Relay(RelayArgs),
    /// Decrypts a capture: shows Wireshark what was inside protected packets
    ///
    /// Copies a capture of tcpdump, dumpcap or Wireshark and opens its DTLS chunks with the keys of
    /// a log. The copy has the packets as they would have been without encryption, each with a
    /// comment. All else stays as it is: packets that cannot be opened, times, interfaces,
    /// comments. The key log is the file that SSLKEYLOGFILE named at either end.
    #[command(after_help = "Examples:
  SSLKEYLOGFILE=keys manypath send big.iso manypath2:ae...    (while tcpdump captures)
  manypath decrypt capture.pcap --keys keys --out opened.pcapng
  manypath decrypt capture.pcapng --keys keys --out opened.pcapng --json
  tcpdump -r capture.pcap -w - | manypath decrypt - --keys keys --out - | tshark -r -")]
    Decrypt(DecryptArgs),
    /// Runs scenario files in the simulator
    #[command(subcommand)]
    Sim(SimCommand),
    /// Runs any programs over the links of a scenario file, in real time (Linux)
    ///
    /// Makes a network namespace for each host of the file, with an interface for each of its
    /// paths. The links between them are the simulator's, run by the clock. In the namespaces, a
    /// host's name stands for all its addresses: z, and z-1, z-2 for one each. The variable
    /// MANYPATH_ADDRESSES_Z has them too. Packets leave through the interface that has their source
    /// address. The exit code is PROGRAM's. Nothing remains afterwards. Needs the command ip, and
    /// root or the right to make user namespaces. docs/emulate.md has more.
    #[cfg(target_os = "linux")]
    #[command(after_help = "Examples:
  manypath emulate uplinks.toml --at z 'iperf3 -s' -- iperf3 -c z
  manypath emulate uplinks.toml --mptcp --at z 'mptcpize run iperf3 -s' -- mptcpize run iperf3 -c z-1
  manypath emulate uplinks.toml --set path.2.loss=3% --at z 'manypath perf server' -- manypath perf client z
  manypath emulate routers.toml --host laptop --report report.json -- ping -c 5 server
  manypath emulate uplinks.toml -- bash")]
    Emulate(emulate::EmulateArgs),
    /// Runs the papers' experiments in the simulator
    #[command(subcommand)]
    Lab(LabCommand),
    /// Says how other presets would have done in a recorded transfer
    ///
    /// A record is what --trace of `send` and `perf client` wrote. From it this estimates the
    /// network: delays, rates over time, queues, losses, outages, shared bottlenecks. It runs the
    /// recorded transfer over that network in the simulator, and says by how much its time differs
    /// from the recorded one; more than 5 % draws a warning. Then it runs the presets of --preset.
    ///
    /// Unknown stays what the transfer never tried: the rate of a path that it did not fill is a
    /// lower bound. docs/replay.md has more.
    #[command(after_help = "Examples:
  manypath replay monday.jsonl
  manypath replay monday.jsonl --preset cmt,cmt-pf,adaptive
  manypath replay monday.jsonl --preset sctp --seeds 31 --json
  manypath replay monday.jsonl --out monday.toml
  manypath sim run monday.toml --set transport.rto_min=100ms")]
    Replay(ReplayArgs),
    /// Lists the presets (whole systems) and the profiles (sets of constants)
    Presets(ReportArgs),
    /// Shows the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Writes a shell completion script to standard output
    #[command(after_help = "Examples:
  manypath completions bash > ~/.local/share/bash-completion/completions/manypath
  manypath completions fish > ~/.config/fish/completions/manypath.fish")]
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Writes the manual page to standard output
    #[command(after_help = "Examples:
  manypath man | man -l -
  manypath man > ~/.local/share/man/man1/manypath.1")]
    Man,
}

/// `manypath perf`.
#[derive(Debug, Subcommand)]
pub(crate) enum PerfCommand {
    /// Serves measurements; needs no token and stores nothing
    #[command(after_help = "Examples:
  manypath perf server --listen 192.0.2.7,198.51.100.7
  manypath perf server --relay-only --via @relays (tells nobody where this host is)
  manypath perf server --metrics 127.0.0.1:9464   (for Prometheus)")]
    Server(Box<PerfServerArgs>),
    /// Measures against a server: by default ten seconds towards the server
    #[command(after_help = "Examples:
  manypath perf client server.example
  manypath perf client 192.0.2.7,198.51.100.7 -t 30 -R
  manypath perf client server.example --interval 0.1
  manypath perf client server.example -t 600 --tui
  manypath perf client server.example --rate 20Mbit/s --messages 1kB --json
  manypath perf client --via @relays server.example
  manypath perf client --direct-only 198.51.100.7:50001       (the address that perf server printed)
  manypath perf client server.example --trace monday.jsonl    (for `manypath replay`)
  manypath perf client 127.0.0.1 -n 1GB --json")]
    Client(Box<PerfClientArgs>),
}

/// `manypath config`.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Shows the parameters by subject: value, default, range, unit and source
    ///
    /// Without --all it shows the parameters that users set, and those that these options set.
    /// --all adds those that only repeat a paper, a simulator or an older RFC, and constants that
    /// are best left alone. --json always has all of them. -v explains each.
    #[command(after_help = "Examples:
  manypath config show
  manypath config show --all -v
  manypath config show --profile rfc9260 --preset sctp
  manypath config show --set rto_min=100ms --json")]
    Show(ShowArgs),
}

/// `manypath demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Size of the file, such as 20MB
    #[arg(long, default_value = "60 MB")]
    pub size: String,
    /// Rate of each path
    #[arg(long, default_value = "20 Mbit/s")]
    pub rate: String,
    /// One-way delay of each path
    #[arg(long, default_value = "20 ms")]
    pub delay: String,
    /// Random loss on each path, in each direction
    #[arg(long, default_value = "0 %")]
    pub loss: String,
    /// Time at which the second path fails
    #[arg(long, default_value = "5 s")]
    pub down: String,
    /// Length of the failure; 0 s: no failure
    #[arg(long = "for", value_name = "FOR", default_value = "5 s")]
    pub down_for: String,
    /// The transport's configuration.
    #[command(flatten)]
    pub transport: TransportArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath send`.
#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// Files and directories, and where they go.
    #[command(flatten)]
    pub words: Words,
    /// Name of the FILE at the receiver [default: its own; of standard input: stdin]
    #[arg(long = "as", value_name = "NAME")]
    pub name: Option<PathBuf>,
    /// The code of a receiver with a name.
    #[command(flatten)]
    pub code: CodeArgs,
    /// The receiver's token, if DEST is not a ticket. Other users of this host can see it here
    ///
    /// Without --token and --token-file it is taken from the environment variable MANYPATH_TOKEN,
    /// or asked for at the terminal.
    #[arg(long)]
    pub token: Option<Erased<String>>,
    /// File with the receiver's token on its only line; -: asks for it at the terminal
    #[arg(long, value_name = "FILE", conflicts_with = "token")]
    pub token_file: Option<PathBuf>,
    /// Gives up if the receiver does not answer within this time
    #[arg(long, value_name = "TIME", default_value = "15 s")]
    pub connect_timeout: String,
    /// Gives up if the transfer makes no progress for this time; off: never
    #[arg(long, value_name = "TIME", default_value = "10 min")]
    pub stall_timeout: String,
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
    /// Tracing the hops of paths.
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Recording for a replay.
    #[command(flatten)]
    pub record: RecordArgs,
    /// Encryption and keys.
    #[command(flatten)]
    pub security: ClientSecurityArgs,
    /// The transport's configuration.
    #[command(flatten)]
    pub transport: TransportArgs,
    /// Live views.
    #[command(flatten)]
    pub live: LiveArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath recv`.
#[derive(Debug, Args)]
pub(crate) struct RecvArgs {
    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Relays to be reached through.
    #[command(flatten)]
    pub via: ListenViaArgs,
    /// Directory for the files; created if it is missing
    #[arg(long, default_value = ".")]
    pub dir: PathBuf,
    /// Writes the only file of one transfer to standard output, as it arrives, and exits
    ///
    /// The ticket, and results as JSON, go to standard error. The exit code says whether all of the
    /// file arrived and was verified; what was written before cannot be taken back.
    #[arg(long, conflicts_with_all = ["dir", "overwrite", "hidden", "no_resume", "tui"])]
    pub stdout: bool,
    /// Its name in the local network.
    #[command(flatten)]
    pub name: NameArgs,
    /// A code in place of its ticket.
    #[command(flatten)]
    pub code: ShowCodeArgs,
    /// Its ticket as a QR code.
    #[command(flatten)]
    pub qr: QrArgs,
    /// Exits after one transfer, with its exit code
    #[arg(long)]
    pub once: bool,
    /// Replaces existing files
    #[arg(long)]
    pub overwrite: bool,
    /// Accepts hidden files and directories: names that begin with a dot
    ///
    /// Without it senders leave out those in directories.
    #[arg(long)]
    pub hidden: bool,
    /// Keeps nothing of a file whose transfer is interrupted, and removes what was kept
    ///
    /// Otherwise, what arrived of a file of 1 MiB or more is kept for a week, so that the sender
    /// goes on from there when it sends the file again.
    #[arg(long)]
    pub no_resume: bool,
    /// Refuses transfers larger than this, such as 10GB [default: the free space of the disk]
    #[arg(long, value_name = "SIZE")]
    pub max_size: Option<String>,
    /// Aborts a transfer that makes no progress for this time; off: never
    #[arg(long, value_name = "TIME", default_value = "10 min")]
    pub stall_timeout: String,
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
    /// Gives unfinished files names, as on file systems where they must have one
    #[arg(long, hide = true)]
    pub named_parts: bool,
    /// With --json, prints a progress record every 50 ms
    #[arg(long, requires = "json", hide = true)]
    pub progress: bool,
    /// Encryption and keys.
    #[command(flatten)]
    pub security: ServerSecurityArgs,
    /// The transport's configuration.
    #[command(flatten)]
    pub transport: TransportArgs,
    /// Live views.
    #[command(flatten)]
    pub live: LiveArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath perf server`.
#[derive(Debug, Args)]
pub(crate) struct PerfServerArgs {
    /// Where to listen.
    #[command(flatten)]
    pub listen: ListenArgs,
    /// Relays to be reached through.
    #[command(flatten)]
    pub via: ListenViaArgs,
    /// Exits after one measurement
    #[arg(long)]
    pub once: bool,
    /// Encryption and keys.
    #[command(flatten)]
    pub security: ServerSecurityArgs,
    /// The transport's configuration.
    #[command(flatten)]
    pub transport: TransportArgs,
    /// Live views.
    #[command(flatten)]
    pub live: LiveArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath perf client`.
#[derive(Debug, Args)]
pub(crate) struct PerfClientArgs {
    /// HOST[:PORT][,HOST[:PORT]...]
    #[arg(value_name = "DEST")]
    pub dest: String,
    /// Duration in seconds [default: 10]
    #[arg(short = 't', long, value_name = "SECONDS", conflicts_with = "bytes")]
    pub time: Option<f64>,
    /// Amount of data to send, such as 1GB
    #[arg(short = 'n', long, value_name = "BYTES")]
    pub bytes: Option<String>,
    /// The server sends, the client receives
    #[arg(short = 'R', long, conflicts_with = "bidir")]
    pub reverse: bool,
    /// Both send at the same time
    #[arg(long)]
    pub bidir: bool,
    /// Size of each message [default: 32 full packets]
    #[arg(long, value_name = "SIZE")]
    pub messages: Option<String>,
    /// Offers this much data in each second, evenly, such as 20Mbit/s [default: all that fits]
    ///
    /// If the network takes less, the data waits, and is sent as fast as possible afterwards. The
    /// message latency then counts from when a message was due. The default size of messages is
    /// then that of 10 ms, from 1 to 32 full packets.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Reports the traffic of each such interval, 0.1 to 60 s, and of each path; with --json as
    /// lines of JSON
    #[arg(short = 'i', long, value_name = "SECONDS")]
    pub interval: Option<f64>,
    /// Gives up if the server does not answer within this time
    #[arg(long, value_name = "TIME", default_value = "15 s")]
    pub connect_timeout: String,
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
    /// Tracing the hops of paths.
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Recording for a replay.
    #[command(flatten)]
    pub record: RecordArgs,
    /// Encryption and keys.
    #[command(flatten)]
    pub security: ClientSecurityArgs,
    /// The transport's configuration.
    #[command(flatten)]
    pub transport: TransportArgs,
    /// Live views.
    #[command(flatten)]
    pub live: LiveArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath paths`.
#[derive(Debug, Args)]
pub(crate) struct PathsArgs {
    /// A ticket, HOST[:PORT][,HOST[:PORT]...], or @FILE with one of them
    #[arg(value_name = "DEST")]
    pub dest: String,
    /// Probes on each path
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub probes: u32,
    /// Time between two probes on one path
    #[arg(long, value_name = "TIME", default_value = "100 ms")]
    pub interval: String,
    /// Selects a path only if its disjointness from those selected is above this
    #[arg(long, value_name = "RATIO", default_value = "0.5")]
    pub beta: String,
    /// Maximum number of paths to select
    #[arg(long, value_name = "K", default_value_t = 5)]
    pub max_paths: usize,
    /// Does not trace routers; all paths count as disjoint
    #[arg(long)]
    pub no_routes: bool,
    /// Draws the paths into an SVG file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Local addresses.
    #[command(flatten)]
    pub bind: BindArgs,
    /// Relays.
    #[command(flatten)]
    pub via: ViaArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath config show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Shows every parameter, also those that only repeat a paper or a simulator
    #[arg(long)]
    pub all: bool,
    /// The transport's configuration.
    #[command(flatten)]
    pub transport: TransportArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn secrets_of_the_command_line_are_not_printed() {
        for words in [
            "send f host --token topsecret --via turn:ann:topsecret@relay,turn:b:topsecret@relay",
            "send f laptop --code topsecret",
            "recv --token topsecret",
            "proxy listen --token topsecret",
            "proxy connect host -D 1080 --token topsecret",
            "relay --user ann:topsecret --user ben:topsecret",
        ] {
            let words = words.split(' ');
            let cli = Cli::try_parse_from(["manypath"].into_iter().chain(words)).unwrap();
            let printed = format!("{cli:?}");
            assert!(!printed.contains("topsecret"), "{printed}");
        }
    }

    #[test]
    fn the_last_word_of_send_is_the_destination() {
        let cli = Cli::try_parse_from(["manypath", "send", "a", "b", "host:1"]).unwrap();
        let Command::Send(send) = cli.command else { panic!("not send") };
        assert_eq!(send.words.files, [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(send.words.dest, "host:1");
        for between in [&["a", "--as", "x", "host:1"][..], &["a", "host:1", "--as", "x"]] {
            let words = ["manypath", "send"].iter().chain(between);
            let Command::Send(send) = Cli::try_parse_from(words).unwrap().command else {
                panic!("not send")
            };
            assert_eq!((send.words.files.len(), &*send.words.dest), (1, "host:1"));
        }
        assert!(
            Cli::try_parse_from(["manypath", "send", "a"]).is_err(),
            "a file and a destination"
        );
    }
}
