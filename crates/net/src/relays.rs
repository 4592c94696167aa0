//! Paths through relays: between the sockets and the engine.
//!
//! A relayed transport address (RFC 8656) is one more local address to the engine. What leaves from it goes
//! to its relay in ChannelData messages from one of the sockets; what the relay brings is unpacked and comes
//! to it. Batches stay batches: every packet of one gets a header of the same length.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;

use manypath_proto::sizes::ip_header;
use manypath_proto::{Datagram, Instant, Transmit};
use manypath_turn::{CHANNEL_HEADER, Client, ClientEvent, Received};

use crate::interfaces::preferred_source;
use crate::send::Outgoing;
use crate::sockets::BoundAddresses;

/// Bytes that a packet through a relay is longer than a direct one.
pub const RELAY_OVERHEAD: usize = CHANNEL_HEADER;

/// A TURN server and who we are to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Relay {
    /// What the user calls it, for messages and results.
    pub name: String,
    /// Its UDP address.
    pub address: SocketAddr,
    /// The user.
    pub user: String,
    /// The user's password.
    pub password: String,
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Relay({} at {} as {})", self.name, self.address, self.user)
    }
}

/// How a relay is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RelayStatus {
    /// Its name.
    pub name: String,
    /// Its UDP address.
    pub address: SocketAddr,
    /// The transport address it gave us, while it is ours.
    pub relayed: Option<SocketAddr>,
    /// What is wrong, in words; `None` if nothing is, or nothing is known yet.
    pub error: Option<String>,
}

/// A way through a relay: from our relayed address to a peer.
pub type Way = (SocketAddr, SocketAddr);

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayChange {
    /// Packets can go this way.
    Open(Way),
    /// This relayed address is not ours any more.
    Gone(SocketAddr),
    /// A relay's status is another one.
    Status,
}

/// The relays of an endpoint.
#[derive(Debug, Default)]
pub struct Relays {
    links: Vec<Link>,
    changes: Vec<RelayChange>,
}

#[derive(Debug)]
struct Link {
    relay: Relay,
    /// The address of ours that talks to it.
    local: SocketAddr,
    client: Client,
    /// The last address it gave us, perhaps no longer ours.
    relayed: Option<SocketAddr>,
    error: Option<String>,
    /// `local` is not ours any more.
    is_lost: bool,
}

impl Relays {
    /// Begins to ask each of `relays` for an address, from the source that the kernel prefers for it, or else
    /// from the first bound address of its family. Gives a note for each that cannot be asked, and for those
    /// that are named twice.
    pub fn new(now: Instant, relays: &[Relay], bound: &BoundAddresses) -> (Relays, Vec<String>) {
        let (mut links, mut notes) = (BTreeMap::new(), Vec::new());
        let mut order = Vec::new();
        for relay in relays {
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
            let client = Client::new(now, &relay.user, &relay.password, relay.address.is_ipv6());
            let link = Link {
                relay: relay.clone(),
                local,
                client,
                relayed: None,
                error: None,
                is_lost: false,
            };
            order.push(relay.address);
            links.insert(relay.address, link);
        }
        let links = order.iter().filter_map(|address| links.remove(address)).collect();
        (Relays { links, changes: Vec::new() }, notes)
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The addresses that relays gave us, each with the address of ours that talks to its relay and
    /// how many bytes less than from there a packet from it may have.
    pub fn links(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr, usize)> + '_ {
        self.links.iter().filter_map(|link| {
            let relayed = link.relayed?;
            // The engine counts the header of the peer's family, which is the relayed address's.
            let header = ip_header(link.local).saturating_sub(ip_header(relayed));
            Some((relayed, link.local, RELAY_OVERHEAD + header))
        })
    }

    /// How many there are; they are numbered from 0.
    pub fn count(&self) -> usize {
        self.links.len()
    }

    /// Asks relay `index` for a way to `peer`.
    pub fn add_peer(&mut self, now: Instant, index: usize, peer: SocketAddr) {
        if let Some(link) = self.links.get_mut(index) {
            link.client.add_peer(now, peer);
        }
    }

    /// Unpacks what relays brought and takes out what they say to us.
    pub fn unwrap(&mut self, now: Instant, datagrams: &mut Vec<Datagram>) {
        if self.links.is_empty() {
            return;
        }
        datagrams.retain_mut(|datagram| {
            let from = |link: &&mut Link| link.relay.address == datagram.remote;
            let Some(link) = self.links.iter_mut().find(from) else { return true };
            let received = link.client.handle(now, &datagram.payload);
            let (Received::Data { peer, payload }, Some(relayed)) = (received, link.relayed) else {
                return false;
            };
            datagram.payload = datagram.payload.slice(payload);
            (datagram.local, datagram.remote) = (relayed, peer);
            true
        });
    }

    /// Wraps a batch whose local address is a relayed one, and leaves any other as it is. False if the
    /// relay has no way to the peer: the batch is lost.
    pub fn wrap(&mut self, now: Instant, batch: &mut Outgoing) -> bool {
        let local = batch.transmit.local;
        let Some(link) = self.links.iter_mut().find(|link| link.relayed == Some(local)) else {
            return true;
        };
        let (peer, segment) = (batch.transmit.remote, batch.transmit.segment_size.max(1));
        let packets = batch.bytes.len().div_ceil(segment);
        let mut wrapped = Vec::with_capacity(batch.bytes.len() + packets * RELAY_OVERHEAD);
        for packet in batch.bytes.chunks(segment) {
            let Some(header) = link.client.header(now, peer, packet.len()) else { return false };
            wrapped.extend_from_slice(&header);
            wrapped.extend_from_slice(packet);
        }
        batch.bytes = wrapped;
        batch.overhead = RELAY_OVERHEAD;
        batch.transmit = Transmit {
            local: link.local,
            remote: link.relay.address,
            segment_size: segment + RELAY_OVERHEAD,
            ..batch.transmit
        };
        true
    }

    /// The next message for a relay.
    pub fn poll_transmit(&mut self) -> Option<Outgoing> {
        self.links.iter_mut().find_map(|link| {
            let bytes = link.client.poll_transmit()?;
            let (local, remote) = (link.local, link.relay.address);
            let transmit = Transmit::new(local, remote, bytes.len());
            Some(Outgoing::new(transmit, bytes))
        })
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.links.iter().filter_map(|link| link.client.poll_timeout()).min()
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        for link in &mut self.links {
            if link.client.poll_timeout().is_some_and(|at| at <= now) {
                link.client.handle_timeout(now);
            }
        }
    }

    /// Takes note that local addresses are gone, and of those there are now: a relay that was
    /// spoken to from one that is gone is asked for an address anew, from another.
    pub fn follow(&mut self, now: Instant, bound: &BoundAddresses, gone: &[SocketAddr]) {
        for link in &mut self.links {
            link.is_lost |= gone.contains(&link.local);
            let Some(local) = source(link.relay.address, bound).filter(|_| link.is_lost) else {
                continue;
            };
            (link.local, link.is_lost) = (local, false);
            link.client.restart(now);
        }
    }

    /// The local addresses that relays are spoken to from.
    pub fn locals(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.links.iter().map(|link| link.local)
    }

    /// What has changed, in order.
    pub fn poll_change(&mut self) -> Option<RelayChange> {
        if self.changes.is_empty() {
            for link in &mut self.links {
                link.note_events(&mut self.changes);
            }
            self.changes.reverse();
        }
        self.changes.pop()
    }

    /// How each is doing.
    pub fn status(&self) -> Vec<RelayStatus> {
        let status = |link: &Link| RelayStatus {
            name: link.relay.name.clone(),
            address: link.relay.address,
            relayed: link.client.relayed(),
            error: link.error.clone(),
        };
        self.links.iter().map(status).collect()
    }

    /// Gives all addresses back; what there is to send then is the last.
    pub fn close(&mut self, now: Instant) {
        self.links.iter_mut().for_each(|link| link.client.close(now));
    }
}

impl Link {
    fn note_events(&mut self, changes: &mut Vec<RelayChange>) {
        while let Some(event) = self.client.poll_event() {
            match event {
                ClientEvent::Allocated(relayed) => {
                    if let Some(old) = self.relayed.replace(relayed).filter(|&old| old != relayed) {
                        changes.push(RelayChange::Gone(old));
                    }
                    self.error = None;
                }
                ClientEvent::PeerReady(peer) => {
                    self.error = None;
                    changes.extend(self.relayed.map(|from| RelayChange::Open((from, peer))));
                }
                ClientEvent::PeerRefused(peer, error) => {
                    self.error = Some(format!("no way to {peer}: {error}"));
                }
                ClientEvent::Failed(error) => self.error = Some(error.to_string()),
            }
            changes.push(RelayChange::Status);
        }
    }
}

/// The address to speak to a relay from.
fn source(relay: SocketAddr, bound: &BoundAddresses) -> Option<SocketAddr> {
    let all = bound.sources_for(&[relay]);
    let usable = || all.iter().copied().filter(|a| a.is_ipv6() == relay.is_ipv6());
    let preferred = preferred_source(relay).ok();
    usable().find(|a| Some(a.ip()) == preferred).or_else(|| usable().next())
}

#[cfg(test)]
mod tests;
