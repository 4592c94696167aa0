//! From a ticket to a receiver, and from a receiver to the addresses in its ticket.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use manypath::keys::{Identity, PeerKeys, TlsKeys};
use manypath::{BindTo, Config, ConnectTarget, Endpoint, EndpointOptions, RelayedAddress};
use manypath_files::ticket::Ticket;

use crate::event::Event;
use crate::options::Options;
use crate::over::{complete, plan_of};
use crate::send::{Offer, SendError, Sent, Showing};

/// The time for which a sender asks a receiver that does not answer, or is busy.
const CONNECT_LIMIT: Duration = Duration::from_secs(15);
/// The time that a finished endpoint gets for its last packets.
pub(crate) const CLOSE_TIME: Duration = Duration::from_millis(100);

/// The near end's sockets, and its transport parameters.
#[derive(Clone, Debug)]
pub struct Route {
    /// Addresses and interfaces to bind to, with a path each; empty: every uplink.
    pub bind: Vec<BindTo>,
    /// Transport parameters: those of the command by default.
    pub config: Config,
    /// A sender asks a receiver for this time at most. 15 s by default.
    pub connect_limit: Duration,
}

impl Default for Route {
    fn default() -> Route {
        Route { bind: Vec::new(), config: Config::default(), connect_limit: CONNECT_LIMIT }
    }
}

/// Sends files and directories to the receiver with this ticket, over all paths. The transfer is
/// encrypted, and only the owner of the ticket's key gets it.
///
/// # Errors
/// It was not completed, or not every entry was stored. What was stored stays, and the same call
/// sends the rest.
pub async fn send_to<P: Into<PathBuf>>(
    ticket: &Ticket,
    paths: impl IntoIterator<Item = P>,
    route: &Route,
    options: &Options,
    events: impl FnMut(Event<'_>) + Send,
) -> Result<Sent, SendError> {
    let key = ticket.key(false)?;
    let plan = plan_of(paths).await?;
    let identity = Identity::generate().map_err(|e| SendError::Key(e.to_string()))?;
    let keys = TlsKeys::raw_public_keys(&identity, PeerKeys::Pinned(key.into_iter().collect()));
    let endpoint = Endpoint::bind(EndpointOptions {
        config: Arc::new(route.config.clone()),
        bind: route.bind.clone(),
        ..EndpointOptions::client(keys)
    })?;
    let offer = Offer::new(plan, Showing::Open(ticket.token.clone()));
    let opening = offer.open(&endpoint, target_of(ticket), route.connect_limit);
    let sending = tokio::select! {
        sending = opening => sending?,
        () = options.stop.stopped() => return Err(SendError::Stopped),
    };
    let sent = sending.run(options, events).await;
    let _ = tokio::time::timeout(CLOSE_TIME, endpoint.close()).await;
    complete(sent?)
}

/// Where the receiver with this ticket is.
#[must_use]
pub fn target_of(ticket: &Ticket) -> ConnectTarget {
    let relayed = ticket.relayed.iter();
    let relayed = relayed.map(|r| RelayedAddress { address: r.address, relay: r.relay() });
    ConnectTarget::new(ticket.socket_addresses()).through(relayed)
}

/// The IP addresses that an endpoint can be reached at, most useful first: those it is bound to
/// without loopback and link-local ones, or these if there are no others.
#[must_use]
pub fn reachable(endpoint: &Endpoint) -> Vec<IpAddr> {
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
