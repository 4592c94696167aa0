//! Relays that speak TURN.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::Range;

use manypath_proto::Instant;
use manypath_turn::{
    Access, CHANNEL_HEADER, Client as Turn, ClientEvent as TurnEvent, ClientOptions, Received,
    RelayRoute, RouteHop, SEND_HEADER_V4, SEND_HEADER_V6, WantedNumber,
};

use crate::address::unmapped;
use crate::relays::{
    Client, ClientEvent, Link, RELAY_OVERHEAD, RELAY_OVERHEAD_MAX, Relay, Relays, SEND_OVERHEAD_V4,
    source,
};
use crate::sockets::BoundAddresses;
use crate::traceroute::{Trace, TraceHop};

const _: () = assert!(RELAY_OVERHEAD == CHANNEL_HEADER);
const _: () = assert!(SEND_OVERHEAD_V4 == SEND_HEADER_V4 && RELAY_OVERHEAD_MAX == SEND_HEADER_V6);

impl Relays {
    /// Begins to ask each of `relays` for an address, from the source that the kernel prefers for
    /// it, or else from the first bound address of its family. Gives a note for each that cannot be
    /// asked, and for those that are named twice.
    pub fn new(now: Instant, relays: &[Relay], bound: &BoundAddresses) -> (Relays, Vec<String>) {
        Relays::wanting(now, relays, bound, ClientOptions::default())
    }

    /// Begins to ask for an endpoint that peers come to: each relay is asked for an address that
    /// lets in all peers that its rules allow. Relays of other programs do not know that; of such a
    /// relay, other users come through.
    pub fn accepting(
        now: Instant,
        relays: &[Relay],
        bound: &BoundAddresses,
    ) -> (Relays, Vec<String>) {
        let access = Access::Open;
        Relays::wanting(now, relays, bound, ClientOptions { access, ..ClientOptions::default() })
    }

    /// As [`accepting`](Self::accepting), and each relay is asked for a number, by which others
    /// find the endpoint. Relays of other programs give none.
    pub fn numbered(
        now: Instant,
        relays: &[Relay],
        bound: &BoundAddresses,
    ) -> (Relays, Vec<String>) {
        let (access, number) = (Access::Open, WantedNumber::Any);
        let wanted = ClientOptions { access, number, ..ClientOptions::default() };
        Relays::wanting(now, relays, bound, wanted)
    }

    fn wanting(
        now: Instant,
        relays: &[Relay],
        bound: &BoundAddresses,
        wanted: ClientOptions,
    ) -> (Relays, Vec<String>) {
        let (mut links, mut notes) = (BTreeMap::new(), Vec::new());
        let mut order = Vec::new();
        for relay in relays {
            let mut relay = relay.clone();
            relay.address = unmapped(relay.address);
            let Some(local) = source(relay.address, bound) else {
                notes.push(format!(
                    "cannot use the relay {}: no local address can reach {}",
                    relay.name, relay.address
                ));
                continue;
            };
            if links.contains_key(&relay.address) {
                notes.push(format!("the relay {} is named twice", relay.name));
                continue;
            }
            let address = relay.address;
            let link = Link::new(now, relay, local, wanted);
            order.push(address);
            links.insert(address, link);
        }
        let links = order.iter().filter_map(|address| links.remove(address)).collect();
        (Relays { links, wanted, ..Relays::default() }, notes)
    }
}

impl Link {
    /// Begins to ask a relay of the user for an address.
    pub(crate) fn new(
        now: Instant,
        relay: Relay,
        local: SocketAddr,
        wanted: ClientOptions,
    ) -> Link {
        let options = ClientOptions { v6: relay.address.is_ipv6(), ..wanted };
        Link {
            client: Box::new(Turn::new(now, &relay.user, &relay.password, options)),
            relay,
            local,
            relayed: None,
            accepts: wanted.access == Access::Open,
            is_open: false,
            number: None,
            error: None,
            routes: BTreeMap::new(),
            is_lost: false,
            led_by: None,
            is_left: false,
            listed: Vec::new(),
            listed_at: None,
        }
    }
}

/// A route that a relay told.
fn trace(route: RelayRoute) -> Trace {
    let hop = |hop: Option<RouteHop>| TraceHop { answer: hop.map(|h| (h.address, h.rtt)) };
    Trace { hops: route.hops.into_iter().map(hop).collect(), reached: route.reached }
}

/// A route that we tell the users of our relay.
pub(crate) fn told(trace: &Trace) -> RelayRoute {
    let hop = |hop: &TraceHop| hop.answer.map(|(address, rtt)| RouteHop { address, rtt });
    RelayRoute { hops: trace.hops.iter().map(hop).collect(), reached: trace.reached }
}

impl Client for Turn {
    fn add_peer(&mut self, now: Instant, peer: SocketAddr) {
        Turn::add_peer(self, now, peer);
    }

    fn add_stranger(&mut self, now: Instant, peer: SocketAddr) {
        Turn::add_stranger(self, now, peer);
    }

    fn remove_peer(&mut self, peer: SocketAddr) {
        Turn::remove_peer(self, peer);
    }

    fn trace(&mut self, now: Instant, peer: SocketAddr) {
        Turn::trace(self, now, peer);
    }

    fn relayed(&self) -> Option<SocketAddr> {
        Turn::relayed(self)
    }

    fn wrap(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        packet: &[u8],
        wrapped: &mut Vec<u8>,
    ) -> Option<usize> {
        let header = self.header(now, peer, packet.len())?;
        wrapped.extend_from_slice(&header);
        wrapped.extend_from_slice(packet);
        wrapped.resize(wrapped.len() + header.padding(), 0);
        Some(header.len())
    }

    fn handle(&mut self, now: Instant, datagram: &[u8]) -> Option<(SocketAddr, Range<usize>)> {
        match Turn::handle(self, now, datagram) {
            Received::Data { peer, payload } => Some((peer, payload)),
            Received::Other => None,
        }
    }

    fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        Turn::poll_transmit(self)
    }

    fn poll_event(&mut self) -> Option<ClientEvent> {
        Some(match Turn::poll_event(self)? {
            TurnEvent::Allocated { relayed, access, number } => {
                ClientEvent::Allocated { relayed, is_open: access == Access::Open, number }
            }
            TurnEvent::PeerReady(peer) => ClientEvent::PeerReady(peer),
            TurnEvent::PeerRefused(peer, error) => {
                ClientEvent::Failed(format!("no way to {peer}: {error}"))
            }
            TurnEvent::Traced(peer, route) => ClientEvent::Traced(peer.ip(), route.map(trace)),
            TurnEvent::Failed(error) => ClientEvent::Failed(error.to_string()),
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        Turn::poll_timeout(self)
    }

    fn handle_timeout(&mut self, now: Instant) {
        Turn::handle_timeout(self, now);
    }

    fn follow_relays(&mut self) {
        Turn::follow_relays(self);
    }

    fn take_listed(&mut self) -> Option<Vec<SocketAddr>> {
        let listed = Turn::take_listed(self)?;
        Some(listed.into_iter().map(|relay| unmapped(relay.address)).collect())
    }

    fn doubt(&mut self, now: Instant) {
        Turn::doubt(self, now);
    }

    fn restart(&mut self, now: Instant) {
        Turn::restart(self, now);
    }

    fn close(&mut self, now: Instant) {
        Turn::close(self, now);
    }
}
