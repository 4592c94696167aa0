//! Paths through relays: between the sockets and the engine.
//!
//! A relayed transport address (RFC 8656) is one more local address to the engine. What leaves from
//! it goes to its relay from one of the sockets: in ChannelData messages, or in Send indications to
//! peers without a channel. What the relay brings is unpacked and comes to it. Batches stay
//! batches: every packet of one gets a header of the same length.

#[cfg(feature = "relay")]
mod overlay;

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use bytes::Buf;
use manypath_proto::sizes::ip_header;
use manypath_proto::{Datagram, Instant, Transmit};
use zeroize::Zeroize;

use crate::interfaces::preferred_source;
use crate::send::Outgoing;
use crate::sockets::BoundAddresses;
use crate::traceroute::Trace;

/// Bytes that a packet through a relay is longer than a direct one: the header of ChannelData.
pub const RELAY_OVERHEAD: usize = 4;
/// Bytes that a packet to a peer without a channel is longer at most: the header of a Send
/// indication (RFC 8656 §11.1) to an IPv6 address.
pub const RELAY_OVERHEAD_MAX: usize = 48;
/// Bytes of that header to an IPv4 address.
pub(crate) const SEND_OVERHEAD_V4: usize = 36;

/// A TURN server and who we are to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Relay {
    /// The user's name for it, in messages and results.
    pub name: String,
    /// Its UDP address.
    pub address: SocketAddr,
    /// The user.
    pub user: String,
    /// The user's password, which is erased from memory when this is dropped.
    pub password: String,
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.password.zeroize();
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Relay({} at {} as {})", self.name, self.address, self.user)
    }
}

/// How a relay is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RelayStatus {
    /// Its name.
    pub name: String,
    /// Its UDP address.
    pub address: SocketAddr,
    /// The transport address it gave us, while it is ours.
    pub relayed: Option<SocketAddr>,
    /// The relay lets in packets of all peers that its rules allow, known to us or not.
    pub is_open: bool,
    /// The number under which others find `relayed` by `look_up_number`, while it is ours, if the
    /// endpoint wants one and the relay gave it. It stays when the relay is restarted, unless
    /// another one was given it meanwhile.
    pub number: Option<u32>,
    /// The error, in words; `None` if there is none, or nothing is known yet.
    pub error: Option<String>,
    /// The route from it to each peer that it was asked for; `None` if it does not tell.
    pub routes: BTreeMap<IpAddr, Option<Trace>>,
}

impl RelayStatus {
    /// A relay that has not answered yet.
    pub fn new(name: String, address: SocketAddr) -> RelayStatus {
        RelayStatus {
            name,
            address,
            relayed: None,
            is_open: false,
            number: None,
            error: None,
            routes: BTreeMap::new(),
        }
    }
}

/// A way through a relay: from our relayed address to a peer.
pub type Way = (SocketAddr, SocketAddr);

/// A change of a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayChange {
    /// Packets can go this way.
    Open(Way),
    /// This relayed address is not ours any more.
    Gone(SocketAddr),
    /// A relay that peers come through gave us another address in place of this one.
    Moved {
        /// The address that was ours.
        from: SocketAddr,
        /// The new address.
        to: SocketAddr,
    },
    /// A relay that another one named has this number, and is asked for an address.
    Joined(usize),
    /// A relay's status is another one.
    Status,
}

/// A client of one relay. It holds one address there, and a way to each peer.
pub(crate) trait Client: fmt::Debug + Send {
    /// Asks for a way to `peer`.
    fn add_peer(&mut self, now: Instant, peer: SocketAddr);
    /// Asks for a way to a peer that nobody knows, if there is room.
    fn add_stranger(&mut self, now: Instant, peer: SocketAddr);
    /// Keeps no way to `peer` any more.
    fn remove_peer(&mut self, peer: SocketAddr);
    /// Asks for the route from the relay to a peer that there is a way to.
    fn trace(&mut self, now: Instant, peer: SocketAddr);
    /// The transport address that the relay gave us, while it is ours.
    fn relayed(&self) -> Option<SocketAddr>;
    /// Appends a packet to `peer` to `wrapped`, as the relay wants it; the length of its header.
    /// `None` if there is no way to the peer.
    fn wrap(
        &mut self,
        now: Instant,
        peer: SocketAddr,
        packet: &[u8],
        wrapped: &mut Vec<u8>,
    ) -> Option<usize>;
    /// Takes a datagram of the relay. If it brings a packet: the sender, and the packet's place.
    fn handle(&mut self, now: Instant, datagram: &[u8]) -> Option<(SocketAddr, Range<usize>)>;
    /// The next message for the relay.
    fn poll_transmit(&mut self) -> Option<Vec<u8>>;
    /// The next event.
    fn poll_event(&mut self) -> Option<ClientEvent>;
    /// When `handle_timeout` is to be called.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Does what is due.
    fn handle_timeout(&mut self, now: Instant);
    /// Asks the relay for the others that it knows, now and then.
    #[cfg(feature = "relay")]
    fn follow_relays(&mut self);
    /// The relays that it listed, if it did since this was asked last.
    #[cfg(feature = "relay")]
    fn take_listed(&mut self) -> Option<Vec<SocketAddr>>;
    /// A NAT may have forgotten us.
    fn doubt(&mut self, now: Instant);
    /// Begins again, from another address of ours.
    fn restart(&mut self, now: Instant);
    /// Gives the address back.
    fn close(&mut self, now: Instant);
}

/// Events of the address on a relay.
#[cfg_attr(not(feature = "relay"), expect(dead_code, reason = "only relays construct them"))]
pub(crate) enum ClientEvent {
    /// The relay gave us this one.
    Allocated {
        relayed: SocketAddr,
        /// It lets in every peer that its rules allow.
        is_open: bool,
        /// The number under which others find it.
        number: Option<u32>,
    },
    /// There is a way to this peer.
    PeerReady(SocketAddr),
    /// The route from the relay to this peer; `None` if it does not tell.
    Traced(IpAddr, Option<Trace>),
    /// Something does not work, in words.
    Failed(String),
}

/// The relays of an endpoint.
#[derive(Debug, Default)]
pub struct Relays {
    pub(crate) links: Vec<Link>,
    pub(crate) changes: Vec<RelayChange>,
    /// The allocation that each relay is asked for.
    #[cfg(feature = "relay")]
    pub(crate) wanted: manypath_turn::ClientOptions,
    #[cfg(feature = "relay")]
    pub(crate) overlay: overlay::Overlay,
}

#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) relay: Relay,
    /// The address of ours that talks to it.
    pub(crate) local: SocketAddr,
    pub(crate) client: Box<dyn Client>,
    /// The last address it gave us, perhaps no longer ours.
    pub(crate) relayed: Option<SocketAddr>,
    /// Peers come through it that we have not named.
    pub(crate) accepts: bool,
    /// It lets all of them in.
    pub(crate) is_open: bool,
    /// The number under which others find the address.
    pub(crate) number: Option<u32>,
    pub(crate) error: Option<String>,
    /// The routes from it, see [`RelayStatus::routes`].
    pub(crate) routes: BTreeMap<IpAddr, Option<Trace>>,
    /// `local` is not ours any more.
    pub(crate) is_lost: bool,
    /// The relay of the user, by number, that led to it, if the user did not name it: it has that
    /// one's user and password.
    pub(crate) led_by: Option<usize>,
    /// It is of no use any more; its number may become another one's.
    pub(crate) is_left: bool,
    /// The relays that it listed last.
    #[cfg(feature = "relay")]
    pub(crate) listed: Vec<SocketAddr>,
    /// When it did.
    #[cfg(feature = "relay")]
    pub(crate) listed_at: Option<Instant>,
}

impl Relays {
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
            Some((relayed, link.local, link.overhead() + header))
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

    /// Asks the relay of a way for a channel, so that packets that go this way are shorter.
    pub fn keep_peer(&mut self, now: Instant, way: Way) {
        let (relayed, peer) = way;
        if let Some(link) = self.link_of(relayed) {
            link.client.add_peer(now, peer);
        }
    }

    /// Asks for a channel to a peer that nobody knows. Strangers get no more than half of the
    /// channels.
    pub fn keep_stranger(&mut self, now: Instant, way: Way) {
        let (relayed, peer) = way;
        if let Some(link) = self.link_of(relayed) {
            link.client.add_stranger(now, peer);
        }
    }

    /// Gives the channel of a way up.
    pub fn drop_peer(&mut self, way: Way) {
        let (relayed, peer) = way;
        if let Some(link) = self.link_of(relayed) {
            link.client.remove_peer(peer);
        }
    }

    fn link_of(&mut self, relayed: SocketAddr) -> Option<&mut Link> {
        self.links.iter_mut().find(|link| link.relayed == Some(relayed))
    }

    /// Asks a relay for the route of a way from it to the peer. It is in the relay's status some
    /// seconds later.
    pub fn trace(&mut self, now: Instant, relayed: SocketAddr, peer: SocketAddr) {
        if let Some(link) = self.link_of(relayed) {
            link.client.trace(now, peer);
        }
    }

    /// Unpacks what relays brought and takes out what they say to us.
    pub fn unwrap(&mut self, now: Instant, datagrams: &mut Vec<Datagram>) {
        if self.links.is_empty() {
            return;
        }
        datagrams.retain_mut(|datagram| {
            let speaks = |link: &&mut Link| {
                link.relay.address == datagram.remote && link.may_speak(&datagram.payload)
            };
            let speakers = self.links.iter_mut().filter(speaks);
            // Of one that was left and came back, the latter.
            let Some(link) = speakers.min_by_key(|link| link.is_left) else { return true };
            let received = link.client.handle(now, &datagram.payload);
            let (Some((peer, payload)), Some(relayed)) = (received, link.relayed) else {
                return false;
            };
            datagram.payload.truncate(payload.end);
            datagram.payload.advance(payload.start);
            (datagram.local, datagram.remote) = (relayed, peer);
            true
        });
    }

    /// Wraps a batch whose local address is a relayed one, and leaves any other as it is. False if
    /// the relay has no way to the peer: the batch is lost.
    pub fn wrap(&mut self, now: Instant, batch: &mut Outgoing) -> bool {
        let local = batch.transmit.local;
        let Some(link) = self.link_of(local) else { return true };
        let (peer, segment) = (batch.transmit.remote, batch.transmit.segment_size.max(1));
        let packets = batch.bytes.len().div_ceil(segment);
        let mut wrapped = Vec::with_capacity(batch.bytes.len() + packets * link.overhead());
        let (mut overhead, mut first) = (0, None);
        for packet in batch.bytes.chunks(segment) {
            let header = link.client.wrap(now, peer, packet, &mut wrapped);
            let Some(header) = header else { return false };
            overhead = header;
            // With the zeros that fill its last word; no other one of the batch is longer.
            first.get_or_insert(wrapped.len());
        }
        batch.bytes = wrapped;
        batch.overhead = overhead;
        batch.transmit.local = link.local;
        batch.transmit.remote = link.relay.address;
        batch.transmit.segment_size = first.unwrap_or(segment);
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
        #[cfg(feature = "relay")]
        self.run_overlay(now);
    }

    /// Takes note of local addresses that are gone, and of those there are now. A relay that was
    /// reached from one that is gone is asked for an address again, from another.
    pub fn follow(&mut self, now: Instant, bound: &BoundAddresses, gone: &[SocketAddr]) {
        #[cfg(feature = "relay")]
        self.overlay.set_bound(bound);
        for link in self.links.iter_mut().filter(|link| !link.is_left) {
            link.is_lost |= gone.contains(&link.local);
            if !link.is_lost {
                continue;
            }
            let Some(local) = source(link.relay.address, bound) else { continue };
            (link.local, link.is_lost) = (local, false);
            link.client.restart(now);
        }
    }

    /// The local addresses that relays are spoken to from.
    pub fn locals(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.links.iter().map(|link| link.local)
    }

    /// The next change, in order.
    pub fn poll_change(&mut self) -> Option<RelayChange> {
        if self.changes.is_empty() {
            for link in &mut self.links {
                link.note_events(&mut self.changes);
            }
            self.changes.reverse();
        }
        self.changes.pop()
    }

    /// How each is doing: those of the user, then those that joined.
    pub fn status(&self) -> Vec<RelayStatus> {
        let status = |link: &Link| RelayStatus {
            relayed: link.client.relayed(),
            is_open: link.is_open && link.client.relayed().is_some(),
            number: link.client.relayed().and(link.number),
            error: link.error.clone(),
            routes: link.routes.clone(),
            ..RelayStatus::new(link.relay.name.clone(), link.relay.address)
        };
        let is_shown = |link: &&Link| link.led_by.is_none() || link.has_joined();
        self.links.iter().filter(is_shown).map(status).collect()
    }

    /// A NAT may have forgotten this host. Relays that peers come through are asked at once if they
    /// still know it.
    pub fn doubt(&mut self, now: Instant) {
        self.links.iter_mut().for_each(|link| link.client.doubt(now));
    }

    /// Gives all addresses back; what there is to send then is the last.
    pub fn close(&mut self, now: Instant) {
        self.links.iter_mut().for_each(|link| link.client.close(now));
    }
}

impl Link {
    /// It was named by another relay, and is one of ours.
    fn has_joined(&self) -> bool {
        self.led_by.is_some() && !self.is_left && self.relayed.is_some()
    }

    /// Bytes that packets are longer at most on their way to it.
    fn overhead(&self) -> usize {
        let is_ipv4 = self.relayed.is_some_and(|relayed| relayed.is_ipv4());
        if !self.accepts {
            RELAY_OVERHEAD
        } else if is_ipv4 {
            SEND_OVERHEAD_V4
        } else {
            RELAY_OVERHEAD_MAX
        }
    }

    /// A datagram from its address may be of the relay. Somebody else's address may have been named
    /// as one: only answers to our request are taken from there.
    fn may_speak(&self, datagram: &[u8]) -> bool {
        let is_ours = self.led_by.is_none() || self.has_joined();
        is_ours || is_stun(datagram)
    }

    fn note_events(&mut self, changes: &mut Vec<RelayChange>) {
        while let Some(event) = self.client.poll_event() {
            match event {
                ClientEvent::Allocated { relayed, is_open, number } => {
                    if let Some(old) = self.relayed.replace(relayed).filter(|&old| old != relayed) {
                        changes.push(if self.accepts {
                            RelayChange::Moved { from: old, to: relayed }
                        } else {
                            RelayChange::Gone(old)
                        });
                    }
                    (self.error, self.is_open, self.number) = (None, is_open, number);
                }
                ClientEvent::PeerReady(peer) => {
                    self.error = None;
                    changes.extend(self.relayed.map(|from| RelayChange::Open((from, peer))));
                }
                ClientEvent::Traced(peer, route) => {
                    self.routes.insert(peer, route);
                }
                ClientEvent::Failed(error) => self.error = Some(error),
            }
            changes.push(RelayChange::Status);
        }
    }
}

/// True for a message of STUN (RFC 8489 §5), which no packet of SCTP looks like: its ports would be
/// below 1024, and its verification tag this number.
fn is_stun(datagram: &[u8]) -> bool {
    const COOKIE: [u8; 4] = 0x2112_a442_u32.to_be_bytes();
    datagram.first().is_some_and(|first| *first < 4) && datagram.get(4..8) == Some(&COOKIE)
}

/// The address to speak to a relay from.
pub(crate) fn source(relay: SocketAddr, bound: &BoundAddresses) -> Option<SocketAddr> {
    let all = bound.sources_for(&[relay]);
    let usable = || all.iter().copied().filter(|a| a.is_ipv6() == relay.is_ipv6());
    let preferred = preferred_source(relay).ok();
    usable().find(|a| Some(a.ip()) == preferred).or_else(|| usable().next())
}

#[cfg(all(test, feature = "relay"))]
mod tests;
