//! Opening endpoints and associations, and what to say when it does not work.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use manypath::config::Config;
use manypath::{
    AssocClosed, Association, BindError, BindTo, ConnectError, ConnectTarget, Endpoint,
    EndpointOptions, Security, SendError, SendOptions, SocketError, StrangerLimits,
    is_link_local_v6, sizes,
};
use tokio::time::Instant;

use crate::connect::bind::Bind;
use crate::connect::reach::Reach;
use crate::failure::{Failure, Result};
use crate::signals::next_interrupt;

/// Longest wait for the end of an association once everything is acknowledged.
pub(crate) const CLOSE_TIME_MAX: Duration = Duration::from_secs(3);
/// How long a client may take to show its token. Longer than `key_timeout`, 15 s: a peer that has
/// other keys cannot read a refusal, and is to learn the real reason.
pub(crate) const HELLO_TIME_MAX: Duration = Duration::from_secs(20);
/// Associations that wait to be accepted; more than there are strangers, who make room for each
/// other.
const ACCEPT_BACKLOG: usize = 128;
/// Associations at a time, of peers with and without the right to be served. Strangers are bounded
/// by [`StrangerLimits`] as soon as a batch of packets is handled; within one, this many may come.
const ASSOCIATIONS_MAX: usize = 1024;
/// DATA chunks that a message of bulk content fills.
pub(crate) const CHUNKS_PER_MESSAGE: usize = 32;

/// Opens an endpoint that accepts, on `bind`; none is all of the host's. Peers are strangers until
/// they are admitted.
pub(crate) fn open(
    config: Config,
    bind: &[Bind],
    port: u16,
    security: Security,
) -> Result<Endpoint> {
    try_open(config, bind, port, security).map_err(bind_failure)
}

/// Like [`open`], with the error for programs.
pub(crate) fn try_open(
    config: Config,
    bind: &[Bind],
    port: u16,
    security: Security,
) -> std::result::Result<Endpoint, BindError> {
    let strangers = Some(StrangerLimits::default());
    let client = EndpointOptions::client(security);
    let options = EndpointOptions { udp_port: port, accept: true, strangers, ..client };
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
        e => Failure::failed(e.to_string()),
    }
}

/// Time between two questions to a peer that is busy; doubles with each answer, to the second.
const BUSY_PAUSE: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(2));
/// The cause of the engine's ABORT when it has as many associations as it may (RFC 9260 §3.3.10.4).
const OUT_OF_RESOURCE: u16 = 4;

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

/// The peer has no room now, and may have later.
fn is_busy(closed: &AssocClosed) -> bool {
    let AssocClosed::PeerAborted { cause, reason } = closed else { return false };
    *cause == OUT_OF_RESOURCE || reason.starts_with(b"busy")
}

/// A failure for who has tried these addresses.
fn no_answer_from(remotes: &[SocketAddr]) -> Failure {
    let mut hint = "check that the receiver is running, its address and port, and any firewall \
                    between (UDP must pass)"
        .to_owned();
    let reach = Reach::of(&remotes.iter().map(SocketAddr::ip).collect::<Vec<_>>());
    if let Some(doubt) = reach.doubt() {
        hint += "; ";
        hint += doubt;
    }
    Failure::no_path(format!("no answer from {}", addresses(remotes))).hint(hint)
}

/// Opens an association with any of `remotes`, and hears what the peer says to `hello`, a first
/// message that need not wait for the association, or to what `answer` tells it. A peer that is
/// busy is asked again until `limit` is over.
pub(crate) async fn connect(
    endpoint: &Endpoint,
    remotes: Vec<SocketAddr>,
    limit: Duration,
    hello: Option<(SendOptions, Bytes)>,
    mut answer: impl AsyncFnMut(&Association) -> Answer,
) -> Result<Association> {
    let shown = addresses(&remotes);
    let until = Instant::now() + limit;
    let (mut pause, pause_max) = BUSY_PAUSE;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let target = ConnectTarget::new(remotes.clone()).within(left);
        let connecting = async {
            match &hello {
                Some((options, hello)) => {
                    endpoint.connect_with(target, *options, hello.clone()).await
                }
                None => endpoint.connect(target).await,
            }
        };
        let (closed, failure) = match connecting.await {
            Ok(association) => match answer(&association).await {
                Answer::Welcome => return Ok(association),
                Answer::Ended(closed, failure) => (closed, failure),
                Answer::Failed(failure) => return Err(failure),
            },
            Err(ConnectError::Failed(
                AssocClosed::HandshakeTimedOut | AssocClosed::PathsFailed,
            )) => return Err(no_answer_from(&remotes)),
            Err(ConnectError::Failed(closed)) => {
                let failure = closed_failure(&closed, &shown);
                (closed, failure)
            }
            Err(e @ (ConnectError::NoPath { .. } | ConnectError::NoRemote)) => {
                let failure = Failure::no_path(e.to_string());
                let by_link = remotes.iter().any(|remote| is_link_local_v6(remote.ip()));
                return Err(if by_link { failure.hint(LINK_LOCAL_NEEDS_ALL) } else { failure });
            }
            Err(e) => return Err(Failure::failed(e.to_string())),
        };
        if !is_busy(&closed) {
            return Err(failure);
        }
        if Instant::now() + pause >= until {
            return Err(Failure::failed(format!("{shown} is busy with others"))
                .hint("try again later, or wait longer with --connect-timeout"));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(pause_max);
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
        AssocClosed::Shutdown => Failure::failed(format!("{peer} ended the association early"))
            .hint("see the messages of the other side"),
        AssocClosed::Aborted => Failure::failed("interrupted"),
        AssocClosed::NotProtected { .. } => {
            Failure::not_authorised(format!("{peer}: {closed}")).hint(NOT_PROTECTED)
        }
        AssocClosed::PeerAborted { reason, .. } if reason.starts_with(b"not protected") => {
            let reason = crate::transfer::relative::printable(&String::from_utf8_lossy(reason));
            Failure::not_authorised(format!("{peer} refused: {reason}")).hint(NOT_PROTECTED)
        }
        AssocClosed::PeerAborted { reason, .. } if !reason.is_empty() => {
            let reason = crate::transfer::relative::printable(&String::from_utf8_lossy(reason));
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

/// Bytes of a message of bulk content that fills its packets, over any of `remotes`, through relays
/// or not.
pub(crate) fn bulk_message_size(
    config: &Config,
    remotes: &[SocketAddr],
    relays: bool,
    is_protected: bool,
) -> usize {
    let is_ipv6 = remotes.iter().any(SocketAddr::is_ipv6);
    sizes::bulk_chunk(config, is_ipv6, relays, is_protected) * CHUNKS_PER_MESSAGE
}

/// The IP addresses that a server can be reached at, most useful first: those it is bound to
/// without loopback and link-local ones, or these if there are no others.
pub(crate) fn reachable(endpoint: &Endpoint) -> Vec<IpAddr> {
    let mut all: Vec<IpAddr> = Vec::new();
    for address in endpoint.local_addresses() {
        if !all.contains(&address.ip()) {
            all.push(address.ip());
        }
    }
    let useful: Vec<_> = all.iter().copied().filter(|ip| is_global(*ip)).collect();
    let mut addresses = if useful.is_empty() { all } else { useful };
    addresses.sort_by_key(IpAddr::is_ipv6); // stable: IPv4 first
    addresses
}

fn is_global(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !ip.is_loopback() && !ip.is_link_local() && !ip.is_unspecified(),
        IpAddr::V6(ip) => !ip.is_loopback() && !ip.is_unicast_link_local() && !ip.is_unspecified(),
    }
}

/// Addresses as a person reads them.
pub(crate) fn addresses(list: &[SocketAddr]) -> String {
    list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Ends an association after all was said, without waiting for a peer that is gone.
pub(crate) async fn finish(association: &Association) {
    // Either way the work is done; only the good-bye may be missing.
    let _ = tokio::time::timeout(CLOSE_TIME_MAX, association.shutdown()).await;
}

/// Waits until the peer has everything that was said and ends the association, or is found to be
/// gone.
///
/// The last words may leave on a path that has died meanwhile; they are sent again on another when
/// its timer expires, after seconds or a minute. Only then does it count how long a peer takes to
/// say good-bye.
pub(crate) async fn let_peer_finish(association: &Association) {
    let finishing = async {
        if association.acknowledged().await.is_ok() {
            let _ = tokio::time::timeout(CLOSE_TIME_MAX, association.closed()).await;
        }
    };
    tokio::select! {
        () = finishing => {}
        () = next_interrupt() => {}
    }
}

/// Breaks an association off and lets the ABORT leave.
pub(crate) async fn abort(association: &Association, reason: &str) {
    association.abort(reason.as_bytes());
    tokio::time::sleep(Duration::from_millis(20)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_with_different_keys_find_that_out_before_a_hello_is_late() {
        assert!(HELLO_TIME_MAX > Config::default().key_timeout);
    }
}
