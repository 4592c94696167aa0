//! Opening endpoints and associations, and what to say when it does not work.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use manypath::config::Config;
use manypath::{
    AssocClosed, Association, BindError, BindTo, ConnectError, ConnectTarget, DirectPathError,
    Endpoint, EndpointOptions, Relay, RelayUse, Security, SendError, SendOptions, SocketError,
    StrangerLimits, is_link_local_v6, is_raw_ip,
};
use manypath_files::relative::printable;
use manypath_transfer::{Again, Opening, OpeningError, PeerReason};
pub(crate) use manypath_transfer::{
    CHUNKS_PER_MESSAGE, abort, bulk_message_size, finish, reachable,
};

use crate::args::{DEFAULT_PORT, IpArgs};
use crate::connect::bind::Bind;
use crate::connect::dest::Destination;
use crate::connect::reach::Reach;
use crate::failure::{Exit, Failure, Result};
use crate::screen::Screen;
use crate::signals;

/// Associations that wait to be accepted; more than there are strangers, who make room for each
/// other.
const ACCEPT_BACKLOG: usize = 128;
/// Associations at a time, of peers with and without the right to be served. Strangers are bounded
/// by [`StrangerLimits`] as soon as a batch of packets is handled; within one, this many may come.
const ASSOCIATIONS_MAX: usize = 1024;
/// Where an endpoint listens.
#[derive(Clone, Debug)]
pub(crate) struct Listening<'a> {
    /// Addresses and interfaces; none is all of the host's.
    pub(crate) bind: &'a [Bind],
    /// The UDP port; 0 takes a free one.
    pub(crate) port: u16,
    /// The SCTP port, if SCTP over IP itself is taken, too.
    pub(crate) ip: Option<u16>,
    /// Relays that it is reached through, too.
    pub(crate) relays: Vec<Relay>,
    /// The part that these play.
    pub(crate) relay_use: RelayUse,
    /// It wants a number of them, for a code.
    pub(crate) relay_numbers: bool,
}

/// Opens an endpoint that accepts. Peers are strangers until they are admitted.
pub(crate) fn open(
    config: Config,
    listening: Listening<'_>,
    security: Security,
) -> Result<Endpoint> {
    try_open(config, listening, security).map_err(bind_failure)
}

/// Like [`open`], with the error for programs.
pub(crate) fn try_open(
    config: Config,
    listening: Listening<'_>,
    security: Security,
) -> std::result::Result<Endpoint, BindError> {
    let Listening { bind, port, ip, relays, relay_use, relay_numbers } = listening;
    let options = EndpointOptions {
        udp_port: port,
        raw_ip: ip.is_some(),
        sctp_port: ip.unwrap_or(0),
        accept: true,
        strangers: Some(StrangerLimits::default()),
        relays,
        relay_use,
        relay_numbers,
        // Peers are told of the addresses that there are at the start.
        relay_peers: false,
        ..EndpointOptions::client(security)
    };
    open_with(options, config, bind)
}

/// The places of the values of `--bind`.
pub(crate) fn bind_to(bind: &[Bind]) -> Vec<BindTo> {
    bind.iter().map(|bind| bind.to.clone()).collect()
}

/// Opens an endpoint that has these options, and what commands have in common.
pub(super) fn open_with(
    options: EndpointOptions,
    config: Config,
    bind: &[Bind],
) -> std::result::Result<Endpoint, BindError> {
    let ranked = bind.iter().filter(|bind| !bind.rank.is_normal());
    let options = EndpointOptions {
        config: Arc::new(config),
        bind: bind_to(bind),
        ranks: ranked.map(|bind| (bind.to.clone(), bind.rank)).collect(),
        accept_backlog: ACCEPT_BACKLOG,
        max_associations: ASSOCIATIONS_MAX,
        ..options
    };
    Endpoint::bind(options)
}

/// The failure when an endpoint cannot be opened. The messages of most of these errors say what to
/// try.
pub(crate) fn bind_failure(error: BindError) -> Failure {
    match error {
        BindError::Config(e) => Failure::usage(e.to_string()),
        e @ BindError::Socket(SocketError::InUse(_)) => {
            Failure::failed(e.to_string()).hint("--port PORT here, and HOST:PORT at the other end")
        }
        e @ BindError::Socket(SocketError::SctpPortInUse(_)) => {
            Failure::failed(e.to_string()).hint("--ip=PORT here, and --ip=PORT at the other end")
        }
        BindError::Socket(SocketError::RawNotPermitted) => {
            let program = std::env::current_exe().map_or_else(
                |_| "$(command -v manypath)".to_owned(),
                |program| program.display().to_string(),
            );
            Failure::failed("--ip: not permitted to open raw sockets, which needs CAP_NET_RAW")
                .hint(format!("`sudo setcap cap_net_raw+ep {program}` once, or sudo"))
        }
        e => Failure::failed(e.to_string()),
    }
}

/// Tells the user of a command that listens what its endpoint has to say about its sockets.
pub(crate) fn say_sockets(endpoint: &Endpoint, screen: &Screen) {
    for note in endpoint.notes() {
        screen.line(note);
    }
    if let Some(port) = endpoint.raw_ip_port() {
        let option = if port == DEFAULT_PORT { "--ip".to_owned() } else { format!("--ip={port}") };
        screen.line(&format!(
            "Also over IP itself (protocol 132), SCTP port {port}: the other end needs {option}."
        ));
    }
}

/// The peer as `--ip` reaches it: at its IP addresses, without UDP ports and relays.
///
/// # Errors
/// DEST has a UDP port, which would mean nothing.
pub(crate) fn over_ip(
    args: IpArgs,
    dest: &Destination,
    target: ConnectTarget,
) -> Result<ConnectTarget> {
    let Some(sctp_port) = args.ip else { return Ok(target) };
    if let Destination::Hosts(hosts) = dest
        && let Some((host, port)) = hosts.iter().find(|(_, port)| *port != DEFAULT_PORT)
    {
        return Err(Failure::usage(format!("--ip: {host}:{port} names a UDP port"))
            .hint(format!("--ip={port} for the SCTP port {port}, and DEST without a port")));
    }
    let mut remotes = target.remotes;
    if remotes.is_empty() {
        return Err(Failure::usage(
            "--ip: DEST leads through relays alone, which forward UDP only",
        )
        .hint("leave out --ip, or name the host"));
    }
    remotes.iter_mut().for_each(|remote| remote.set_port(0));
    Ok(ConnectTarget { remotes, relayed: Vec::new(), sctp_port, ..target })
}

/// The addresses and the port that peers of a listener are told: none if it is reached through
/// relays alone, with the port that such tickets have in common.
pub(crate) fn told_place(endpoint: &Endpoint, relay_use: RelayUse) -> (Vec<IpAddr>, u16) {
    match relay_use {
        RelayUse::Only => (Vec::new(), DEFAULT_PORT),
        _ => (reachable(endpoint), endpoint.udp_port()),
    }
}

/// The remedy if no direct path was found.
const NO_DIRECT_PATH: &str = "leave out --direct-only, or see `manypath doctor`";

/// Waits until content may be sent to `peer`: with `--direct-only` at either end that is when a
/// direct path works.
pub(crate) async fn direct_path(association: &Association, peer: &str) -> Result<()> {
    manypath_transfer::direct_path(association).await.map_err(|error| match error {
        DirectPathError::Closed(closed) => closed_failure(&closed, peer),
        error => no_direct_path(&error, peer),
    })
}

/// The failure when content to `peer` may take a direct path alone, and there is none.
pub(crate) fn no_direct_path(error: &DirectPathError, peer: &str) -> Failure {
    Failure::no_path(format!("{peer}: {error}, and --direct-only lets no relay carry content"))
        .hint(NO_DIRECT_PATH)
}

/// The hint when an association cannot be protected.
const NOT_PROTECTED: &str = "use the newest ticket, and the same version of manypath on both sides; \
                             with --insecure on one side, use it on the other, too";

/// The peer's answer to a first message.
pub(crate) enum Answer {
    /// Go on.
    Welcome,
    /// It has ended the association, or something else is wrong.
    Ended(AssocClosed, Failure),
    /// Nothing that asking again would mend.
    Failed(Failure),
}

/// The remedy if no path leads to a link-local address of IPv6: sockets that are bound to an
/// address or an interface have none to send from.
const LINK_LOCAL_NEEDS_ALL: &str = "link-local addresses (fe80::…) are reached from every address \
                                    together: leave --bind out, or use another address of that \
                                    host";

/// The remedy if no relay leads to the peer.
const NO_RELAY: &str = "check the relays of --via and that they forward to these addresses (`manypath \
                        relay --allow-peer`), or leave out --relay-only";

/// A failure for who has tried these addresses.
fn no_answer_from(remotes: &[SocketAddr]) -> Failure {
    let mut hint = if remotes.iter().any(|remote| is_raw_ip(*remote)) {
        "check that the receiver is running with --ip, its address and SCTP port, and any firewall \
         between (IP protocol 132 must pass)"
    } else {
        "check that the receiver is running, its address and port, and any firewall between (UDP \
         must pass)"
    }
    .to_owned();
    let reach = Reach::of(&remotes.iter().map(SocketAddr::ip).collect::<Vec<_>>());
    if let Some(doubt) = reach.doubt() {
        hint += "; ";
        hint += doubt;
    }
    Failure::no_path(format!("no answer from {}", addresses(remotes))).hint(hint)
}

/// Every address of a peer, those of its relays first.
pub(crate) fn places(target: &ConnectTarget) -> Vec<SocketAddr> {
    let relayed = target.relayed.iter().map(|relayed| relayed.address);
    relayed.chain(target.remotes.iter().copied()).collect()
}

/// Opens an association with a peer, and hears what the peer says to `hello`, a first
/// message that need not wait for the association, or to what `answer` tells it. A peer that is
/// busy is asked again until `limit` is over.
pub(crate) async fn connect(
    endpoint: &Endpoint,
    target: ConnectTarget,
    limit: Duration,
    hello: Option<(SendOptions, Bytes)>,
    mut answer: impl AsyncFnMut(&Association) -> Answer,
) -> Result<Association> {
    let remotes = places(&target);
    let mut opening = Opening::new(endpoint, target, limit, hello);
    loop {
        let association = opening.next().await.map_err(|e| opening_failure(e, &remotes))?;
        let (closed, failure) = match answer(&association).await {
            Answer::Welcome => return Ok(association),
            Answer::Ended(closed, failure) => (closed, failure),
            Answer::Failed(failure) => return Err(failure),
        };
        match opening.again_after(&closed).await {
            Again::Yes => {}
            Again::No => return Err(failure),
            Again::TooLate => return Err(opening_failure(OpeningError::Busy, &remotes)),
        }
    }
}

/// The failure when no association with a peer at `remotes` was opened.
pub(crate) fn opening_failure(error: OpeningError, remotes: &[SocketAddr]) -> Failure {
    match error {
        OpeningError::NoAnswer => no_answer_from(remotes),
        OpeningError::Busy => {
            Failure::failed(format!("{} is busy with others", addresses(remotes)))
                .hint("try again later, or wait longer with --connect-timeout")
        }
        OpeningError::Failed(ConnectError::Failed(closed)) => {
            closed_failure(&closed, &addresses(remotes))
        }
        OpeningError::Failed(e @ ConnectError::NoRelay { .. }) => {
            Failure::no_path(e.to_string()).hint(NO_RELAY)
        }
        OpeningError::Failed(e @ (ConnectError::NoPath { .. } | ConnectError::NoRemote)) => {
            let failure = Failure::no_path(e.to_string());
            let by_link = remotes.iter().any(|remote| is_link_local_v6(remote.ip()));
            if by_link { failure.hint(LINK_LOCAL_NEEDS_ALL) } else { failure }
        }
        other => Failure::failed(other.to_string()),
    }
}

/// The failure when an association with `peer` ends before everything has come.
pub(crate) fn closed_failure(closed: &AssocClosed, peer: &str) -> Failure {
    match closed {
        AssocClosed::HandshakeTimedOut | AssocClosed::PathsFailed => {
            Failure::no_path(format!("lost {peer}: no path answers any more"))
                .hint("check that the other side still runs, and the network in between")
        }
        AssocClosed::HandshakeUnfinished => Failure::no_path(format!("{peer}: {closed}"))
            .hint("check that it still runs; the network between may lose longer packets"),
        AssocClosed::NoSuchProtocol => {
            Failure::no_path(format!("{peer} has no SCTP over IP (it says so by ICMP)"))
                .hint("start the other end with --ip, or leave out --ip here")
        }
        AssocClosed::Shutdown => Failure::failed(format!("{peer} ended the association early"))
            .hint("see the messages of the other side"),
        AssocClosed::Aborted => Failure::failed("interrupted"),
        AssocClosed::NotProtected { .. } => {
            Failure::not_authorised(format!("{peer}: {closed}")).hint(NOT_PROTECTED)
        }
        AssocClosed::PeerAborted { reason, .. } if reason.starts_with(b"not protected") => {
            let reason = printable(&String::from_utf8_lossy(reason));
            Failure::not_authorised(format!("{peer} refused: {reason}")).hint(NOT_PROTECTED)
        }
        closed if PeerReason::of(closed) == Some(PeerReason::NoDirectPath) => Failure::no_path(
            format!("{peer} found no direct path, and lets no relay carry content"),
        )
        .hint("there, leave out --direct-only; here, see `manypath doctor`"),
        AssocClosed::PeerAborted { reason, .. } if !reason.is_empty() => {
            let reason = printable(&String::from_utf8_lossy(reason));
            Failure::failed(format!("{peer} aborted: {reason}"))
        }
        AssocClosed::PeerAborted { .. } => Failure::failed(format!("{peer} broke off"))
            .hint("the program there has ended or was restarted; see its messages"),
        other => Failure::failed(format!("{peer}: {other}")),
    }
}

/// The failure that a failed send to `peer` means.
pub(crate) fn send_failure(error: &SendError, peer: &str) -> Failure {
    match error {
        SendError::Closed(closed) => closed_failure(closed, peer),
        SendError::ShutDown => closed_failure(&AssocClosed::Shutdown, peer),
        other => Failure::failed(other.to_string()),
    }
}

/// Addresses as a person reads them.
pub(crate) fn addresses(list: &[SocketAddr]) -> String {
    let name = |address: &SocketAddr| {
        if is_raw_ip(*address) { address.ip().to_string() } else { address.to_string() }
    };
    list.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Waits until the peer has everything that was said and ends the association, or is found to be
/// gone, or the user is impatient.
pub(crate) async fn let_peer_finish(association: &Association) {
    manypath_transfer::let_peer_finish(association, &signals::stop()).await;
}

/// The failure when the association ends during a transfer. The transfer can go on later, unless
/// one side does not trust or understand the other.
pub(crate) fn resumable(closed: &AssocClosed, failure: Failure, go_on: &str) -> Failure {
    match PeerReason::of(closed) {
        Some(PeerReason::Protocol | PeerReason::NoDirectPath) => failure,
        _ if failure.exit == Exit::NotAuthorised => failure,
        _ => Failure::interrupted(failure.message).hint(go_on),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(ip: Option<u16>, dest: &str) -> Result<ConnectTarget> {
        let dest = Destination::parse(dest).expect("a destination");
        let remotes = vec!["192.0.2.7:9899".parse().expect("an address")];
        over_ip(IpArgs { ip }, &dest, ConnectTarget::new(remotes))
    }

    #[test]
    fn over_ip_there_is_an_sctp_port_and_none_of_udp() {
        let in_udp = target(None, "192.0.2.7:4000").expect("as it is");
        assert_eq!((in_udp.remotes[0].port(), in_udp.sctp_port), (9899, DEFAULT_PORT));
        let over_ip = target(Some(5001), "192.0.2.7").expect("over IP");
        assert_eq!((over_ip.remotes[0].port(), over_ip.sctp_port), (0, 5001));
        assert_eq!(addresses(&over_ip.remotes), "192.0.2.7");
        let failure = target(Some(DEFAULT_PORT), "192.0.2.7:4000").expect_err("a UDP port");
        assert_eq!(failure.exit, Exit::Usage);
        assert!(failure.hint.is_some_and(|hint| hint.contains("--ip=4000")));
    }

    #[test]
    fn over_ip_relays_lead_nowhere() {
        let dest = Destination::parse("192.0.2.7").expect("a destination");
        let met = ConnectTarget::new([]);
        let failure = over_ip(IpArgs { ip: Some(1) }, &dest, met).expect_err("no address");
        assert!(failure.message.contains("relays"), "{failure}");
    }

    #[test]
    fn a_right_that_is_missing_is_named_with_the_command_that_gives_it() {
        let failure = bind_failure(BindError::Socket(SocketError::RawNotPermitted));
        assert_eq!(failure.exit, Exit::Failed);
        assert!(failure.message.contains("CAP_NET_RAW"), "{failure}");
        assert!(failure.hint.is_some_and(|hint| hint.contains("setcap cap_net_raw+ep /")));
    }
}
