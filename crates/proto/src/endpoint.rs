//! The interface of the engine: the commands, inputs and outputs of an endpoint.

mod candidates;
mod deadlines;
mod dirty;
mod icmp;
mod limits;
mod past;
mod ranks;
mod sizes;
mod stateless;
mod table;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use manypath_dtls::manage::KeyManagement;
use manypath_wire::{Checksum, Dtls, Packet, Tsn, has_zero_checksum};

use crate::assoc::cookie::CookieKeys;
use crate::assoc::{
    Association, Candidate, Direct, Identity, LinkMtus, LocalRanks, PeerTrust, Reserve,
};
use crate::auth::AuthKeys;
use crate::config::Config;
use crate::crowd::{Crowd, CrowdLimits};
use crate::datagram::{AddressPair, Datagram, Transmit, is_raw_ip};
use crate::event::{AssocClosed, Event};
use crate::rng::Rng;
use crate::time::Instant;
use deadlines::Deadlines;
use dirty::Dirty;
pub use icmp::{IcmpKind, IcmpMessage};
use limits::AnswerLimits;
use past::Past;
pub use sizes::PacketTooBig;
pub use table::AssocId;
use table::{AssocTable, Owner};

/// Settings of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// The configuration of its associations.
    pub config: Arc<Config>,
    /// Its SCTP port.
    pub sctp_port: u16,
    /// Lets peers open associations.
    pub accept: bool,
    /// Most associations; more are refused with "out of resource".
    pub max_associations: usize,
    /// The transport addresses it can be reached at and can send from, with concrete IP addresses.
    /// The port is that of UDP, or 0 for SCTP over [IP itself](crate::is_raw_ip).
    pub local_addresses: Vec<SocketAddr>,
}

/// The peer to connect to.
#[derive(Clone, Debug)]
pub struct ConnectTo {
    /// Pairs of a local and a remote transport address. INIT takes the first pair of the least
    /// rank, then the others in turn.
    pub paths: Vec<(SocketAddr, SocketAddr)>,
    /// Further pairs. If a path brings no answer within about a second, one of these pairs with the
    /// same local address replaces it, in this order.
    pub candidates: Vec<(SocketAddr, SocketAddr)>,
    /// The peer's SCTP port.
    pub sctp_port: u16,
    /// Time within which the association must be open, and the peer must have shown its keys if
    /// packets are to be protected. `None`: as long as the configuration allows
    /// (`max_init_retransmits`, `key_timeout`).
    pub limit: Option<Duration>,
    /// Addresses of the peer on relays, which are remote addresses of `paths`. Where the
    /// [endpoint](Endpoint::set_candidates) looks for direct paths, they are backups.
    pub relayed: Vec<SocketAddr>,
}

impl ConnectTo {
    /// Connects over these paths, without candidates and without a time limit.
    pub fn new(paths: Vec<(SocketAddr, SocketAddr)>, sctp_port: u16) -> ConnectTo {
        ConnectTo { paths, candidates: Vec::new(), sctp_port, limit: None, relayed: Vec::new() }
    }
}

/// The reason why an association could not be begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// No pair of addresses was given.
    #[error(
        "no path to connect over; give at least one local and one remote address of one family"
    )]
    NoPath,
    /// The peer's SCTP port is 0.
    #[error("SCTP port 0 cannot be connected to")]
    ZeroPort,
    /// The endpoint already has an association with that peer. A pair of ports can have only one; a
    /// second association needs an endpoint of its own.
    #[error("this endpoint has an association with that address and port already")]
    Exists,
    /// The endpoint has as many associations as it may.
    #[error("the endpoint has {limit} associations already (max_associations)")]
    TooMany {
        /// The limit.
        limit: usize,
    },
}

struct Reply {
    to: AddressPair,
    packet: Vec<u8>,
}

/// An SCTP endpoint: any number of associations behind one SCTP port.
///
/// It owns no socket, clock or thread. After any input or command, drain
/// [`poll_transmit`](Self::poll_transmit) and [`poll_event`](Self::poll_event); then wait until
/// [`poll_timeout`](Self::poll_timeout), or for the next input.
///
/// - Inputs: [`handle_datagram`](Self::handle_datagram), [`handle_timeout`](Self::handle_timeout),
///   [`handle_icmp`](Self::handle_icmp), [`packet_too_big`](Self::packet_too_big),
///   [`packet_refused`](Self::packet_refused).
/// - Commands: [`connect`](Self::connect), [`assoc_mut`](Self::assoc_mut),
///   [`forget`](Self::forget), [`set_local_addresses`](Self::set_local_addresses),
///   [`local_gone`](Self::local_gone), [`network_changed`](Self::network_changed),
///   [`set_link_mtu`](Self::set_link_mtu), [`set_local_rank`](Self::set_local_rank),
///   [`set_candidates`](Self::set_candidates), [`set_direct_only`](Self::set_direct_only),
///   [`set_auth_keys`](Self::set_auth_keys).
/// - Outputs: the three `poll_` methods.
pub struct Endpoint {
    config: EndpointConfig,
    /// Most bytes of the receive buffer of associations that peers open.
    incoming_window: usize,
    rng: Rng,
    keys: CookieKeys,
    /// Set if associations are to be protected.
    key_management: Option<Arc<dyn KeyManagement>>,
    /// Keys by which associations authenticate chunks.
    auth_keys: AuthKeys,
    assocs: AssocTable,
    past: Past,
    /// Associations that peers opened and that had no keys when last checked.
    unauthenticated: Crowd<AssocId>,
    dirty: Dirty,
    /// See [`owes_sack`](Self::owes_sack).
    owes_sack: bool,
    deadlines: Deadlines,
    events: VecDeque<(AssocId, Event)>,
    replies: VecDeque<Reply>,
    limits: Option<AnswerLimits>,
    /// MTUs of the interfaces of local addresses, in bytes of an IP packet, as the driver has
    /// reported them.
    link_mtus: Arc<LinkMtus>,
    /// Memory by which buffers may grow; `None`: no limit.
    reserve: Option<Arc<Reserve>>,
    /// Ranks of paths by local address; normal ranks are left out.
    local_ranks: Arc<LocalRanks>,
    /// Where peers may reach this host, if associations look for direct paths.
    candidates: Option<Arc<[Candidate]>>,
    /// Relays are there to meet only.
    direct_only: bool,
}

impl Endpoint {
    /// An endpoint that draws all its randomness from `rng`.
    pub fn new(config: EndpointConfig, rng: Rng) -> Endpoint {
        let limit = config.config.stateless_answers;
        let waiting = config.config.key_managements_max as usize;
        Endpoint {
            keys: CookieKeys::new(rng.fork("cookie keys")),
            rng: rng.fork("endpoint"),
            key_management: None,
            auth_keys: AuthKeys::default(),
            config,
            incoming_window: usize::MAX,
            assocs: AssocTable::default(),
            past: Past::default(),
            unauthenticated: Crowd::new(CrowdLimits::of(waiting)),
            dirty: Dirty::default(),
            owes_sack: false,
            deadlines: Deadlines::new(),
            events: VecDeque::new(),
            replies: VecDeque::new(),
            limits: limit.map(|limit| AnswerLimits::new(limit, rng.fork("answers to strangers"))),
            link_mtus: Arc::default(),
            reserve: None,
            local_ranks: Arc::default(),
            candidates: None,
            direct_only: false,
        }
    }

    // ---- Commands ----

    /// Begins an association.
    ///
    /// # Errors
    /// If something is wrong with the request. A peer that does not answer is reported by
    /// an event.
    pub fn connect(&mut self, now: Instant, to: ConnectTo) -> Result<AssocId, ConnectError> {
        let keys = self.key_management.clone();
        self.connect_with(now, to, keys)
    }

    /// Begins an association that is protected by this key management, or not protected at all.
    ///
    /// # Errors
    /// As for [`connect`](Self::connect).
    pub fn connect_with(
        &mut self,
        now: Instant,
        to: ConnectTo,
        keys: Option<Arc<dyn KeyManagement>>,
    ) -> Result<AssocId, ConnectError> {
        if to.paths.is_empty() {
            return Err(ConnectError::NoPath);
        }
        if to.sctp_port == 0 {
            return Err(ConnectError::ZeroPort);
        }
        if self.assocs.by_peer(to.paths[0].1, to.sctp_port).is_some() {
            return Err(ConnectError::Exists);
        }
        if self.assocs.registered() >= self.config.max_associations {
            return Err(ConnectError::TooMany { limit: self.config.max_associations });
        }
        let id = Identity {
            local_tag: self.unused_tag(),
            peer_tag: 0,
            local_port: self.config.sctp_port,
            peer_port: to.sctp_port,
            initial_tsn: Tsn(self.rng.next_u32()),
        };
        let rng = self.assoc_rng(id.local_tag);
        let local = self.config.local_addresses.clone();
        let config = Arc::clone(&self.config.config);
        let mut assoc = Association::to_connect(config, id, local, keys, rng);
        assoc.offer_authentication(&self.auth_keys);
        assoc.set_local_ranks(now, Arc::clone(&self.local_ranks));
        if let Some(own) = &self.candidates {
            let direct = Direct::new(Arc::clone(own), to.relayed.clone(), PeerTrust::Known);
            assoc.offer_direct_paths(now, direct.only(self.direct_only));
        }
        assoc.connect(now, &to);
        assoc.set_link_mtus(now, Arc::clone(&self.link_mtus));
        if let Some(reserve) = &self.reserve {
            assoc.set_buffer_reserve(Arc::clone(reserve));
        }
        let index = self.insert(assoc);
        Ok(self.assocs.id(index))
    }

    /// An association to command. Drain the outputs afterwards.
    #[inline]
    pub fn assoc_mut(&mut self, id: AssocId) -> Option<&mut Association> {
        let index = self.assocs.index(id)?;
        self.dirty.add(index);
        self.assocs.get_mut(index)
    }

    /// An association, to read from.
    #[inline]
    pub fn assoc(&self, id: AssocId) -> Option<&Association> {
        self.assocs.get(self.assocs.index(id)?)
    }

    /// Drops an association at once, without telling its peer. Meant for closed associations.
    pub fn forget(&mut self, id: AssocId) {
        if let Some(index) = self.assocs.index(id) {
            self.assocs.remove(index);
            self.deadlines.set(index, None);
        }
    }

    /// Sets the addresses for associations begun from now on.
    pub fn set_local_addresses(&mut self, addresses: Vec<SocketAddr>) {
        self.config.local_addresses = addresses;
    }

    /// Takes note that this host lost a local transport address: see [`Association::local_gone`].
    pub fn local_gone(&mut self, now: Instant, local: SocketAddr) {
        self.config.local_addresses.retain(|address| *address != local);
        self.each_open(|assoc| assoc.local_gone(now, local));
    }

    /// Takes note that this host has got a local transport address: see
    /// [`Association::local_added`].
    pub fn local_added(&mut self, now: Instant, local: SocketAddr) {
        if !self.config.local_addresses.contains(&local) {
            self.config.local_addresses.push(local);
        }
        self.each_open(|assoc| assoc.local_added(now, local));
    }

    /// Takes note that routes, interfaces or addresses have changed: see
    /// [`Association::network_changed`].
    pub fn network_changed(&mut self, now: Instant) {
        self.each_open(|assoc| assoc.network_changed(now));
    }

    fn each_open(&mut self, mut command: impl FnMut(&mut Association)) {
        let open: Vec<_> = self.assocs.registered_slots().collect();
        for index in open {
            if let Some(assoc) = self.assocs.get_mut(index) {
                command(assoc);
            }
            self.dirty.add(index);
        }
    }

    /// Lets peers open associations from now on, or no longer.
    pub fn set_accept(&mut self, accept: bool) {
        self.config.accept = accept;
    }

    /// Protects the associations that begin from now on (draft-ietf-tsvwg-sctp-dtls-chunk), or none
    /// with `None`. Peers that do not protect theirs are refused.
    pub fn set_key_management(&mut self, keys: Option<Arc<dyn KeyManagement>>) {
        self.key_management = keys;
    }

    /// Sets the keys by which associations that begin from now on authenticate chunks, if
    /// `authentication` is on. Each association then has keys of its own
    /// ([`Association::change_auth_keys`]).
    pub fn set_auth_keys(&mut self, keys: AuthKeys) {
        self.auth_keys = keys;
    }

    /// Sets the receive buffer, in bytes, of associations that peers open from now on, if that is
    /// less than the configured one. A stranger cannot make this end hold more, until
    /// [`Association::set_receive_buffer`] raises it.
    pub fn set_incoming_window(&mut self, bytes: usize) {
        self.incoming_window = bytes;
    }

    fn incoming_window(&self) -> usize {
        self.config.config.first_receive_buffer().min(self.incoming_window)
    }

    /// Sets the memory, in bytes, by which the buffers of all associations begun from now on may
    /// grow together. Without it each may grow up to its configuration.
    pub fn set_buffer_reserve(&mut self, bytes: usize) {
        self.reserve = Some(Reserve::new(bytes));
    }

    /// All associations that were not dropped by [`forget`](Self::forget).
    pub fn associations(&self) -> impl Iterator<Item = AssocId> + '_ {
        self.assocs.ids()
    }

    // ---- Inputs ----

    /// Handles one datagram. A faulty one is answered as RFC 9260 says, or dropped.
    pub fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        let check = self.checksum_of(&datagram.payload);
        let Ok(header) = Packet::check(&datagram.payload, check) else { return };
        let from = AddressPair { local: datagram.local, remote: datagram.remote };
        let is_for_us = header.destination_port == self.config.sctp_port;
        if from.is_mixed() || (is_for_us && !is_unicast(from.remote.ip())) {
            return; // RFC 9260 §8.4, rule 1; or UDP port 0, which cannot be answered
        }
        if is_for_us
            && let Some(record) = Dtls::alone_in(&datagram.payload)
            && let Some(index) = self.assocs.of_sealed(&header)
        {
            let handle = |assoc: &mut Association| {
                assoc.handle_sealed(now, from, datagram.has_ce, datagram.payload, record);
            };
            return self.deliver(index, handle);
        }
        let is_marked = datagram.has_ce;
        let packet = Packet::checked(header, datagram.payload.freeze());
        if !is_for_us {
            // Every stack of a host sees each packet over IP. Another one may have that port.
            if !is_raw_ip(from.local) {
                self.out_of_the_blue(now, from, &packet);
            }
            return;
        }
        if packet.header.verification_tag == 0 {
            return self.on_init(now, from, &packet);
        }
        // Only COOKIE ECHO is decoded here. All else is decoded where it is handled.
        if stateless::has_cookie_echo(packet.bytes())
            && let Some(echo) = self.echo_of(&packet)
        {
            return self.on_cookie_echo(now, from, echo, packet);
        }
        match self.assocs.find(from.remote, &packet) {
            Owner::Association(index) => {
                self.deliver(index, |assoc| assoc.handle_packet(now, from, is_marked, packet));
            }
            Owner::Nobody if self.repeat_last_words(now, from, &packet) => {}
            Owner::Nobody if self.is_late(&packet) => {}
            Owner::Nobody => self.out_of_the_blue(now, from, &packet),
            Owner::Other => {}
        }
    }

    /// The treatment of a packet's checksum.
    #[inline]
    fn checksum_of(&self, packet: &[u8]) -> Checksum {
        let config = &self.config.config;
        let is_free = config.zero_checksum && self.may_lack_checksum(packet);
        if config.checksum && !is_free { Checksum::Verify } else { Checksum::Ignore }
    }

    /// True for a packet of an association with checksum 0, except COOKIE ECHO (RFC 9653 §5.3). It
    /// comes after the handshake has told the peer that this end accepts it. INIT has no tag, so it
    /// is none either.
    #[inline(never)]
    fn may_lack_checksum(&self, packet: &[u8]) -> bool {
        let Ok(header) = Packet::check(packet, Checksum::Ignore) else { return false };
        let is_setup = stateless::has_cookie_echo(packet);
        let is_its = |index| {
            let assoc = self.assocs.get(index);
            assoc.is_some_and(|a| a.identity().peer_port == header.source_port)
        };
        has_zero_checksum(packet)
            && !is_setup
            && header.destination_port == self.config.sctp_port
            && self.assocs.by_tag(header.verification_tag).is_some_and(is_its)
    }

    /// Acts on every timer that has expired.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.settle_all();
        while let Some(index) = self.deadlines.pop_expired(now) {
            if let Some(assoc) = self.assocs.get_mut(index) {
                assoc.handle_timeout(now);
                self.dirty.add(index);
                self.collect(index);
            }
        }
    }

    // ---- Outputs ----

    /// True if the last datagram made a SACK due that its sender needs before more is handled. The
    /// sender may wait for every SACK (RFC 9260 §6.2: one for every second packet), and grow its
    /// congestion window by each (§7.2.1). A driver with several datagrams at hand calls
    /// [`poll_transmit`](Self::poll_transmit) before it passes the next one.
    #[inline]
    pub fn owes_sack(&self) -> bool {
        self.owes_sack
    }

    /// Clears `buf` and writes the next packets for one pair of addresses into it: at most
    /// `max_segments`, each of `segment_size` bytes except the last, which may be shorter.
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        max_segments: usize,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        buf.clear();
        self.owes_sack = false;
        while let Some(index) = self.dirty.first() {
            let assoc = self.assocs.get_mut(index);
            let transmit = assoc.and_then(|a| a.poll_transmit(now, max_segments, buf));
            if transmit.is_some() {
                // Associations take turns, a batch each.
                self.dirty.rotate();
                return transmit;
            }
            self.dirty.remove_first();
            self.settle(index);
        }
        // Answers come last. An association's own ABORT, which gives the reason, must not be
        // overtaken by the answer to what its peer has sent since.
        let reply = self.replies.pop_front()?;
        buf.extend_from_slice(&reply.packet);
        Some(Transmit::new(reply.to.local, reply.to.remote, buf.len()))
    }

    /// The next event.
    #[inline]
    pub fn poll_event(&mut self) -> Option<(AssocId, Event)> {
        if self.events.is_empty() && self.dirty.first().is_some() {
            self.collect_all();
        }
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called next, if nothing else happens.
    #[inline]
    pub fn poll_timeout(&mut self) -> Option<Instant> {
        self.settle_all();
        self.deadlines.next()
    }

    // ---- Bookkeeping ----

    fn unused_tag(&mut self) -> u32 {
        loop {
            let tag = self.rng.next_u32();
            if tag != 0 && self.assocs.by_tag(tag).is_none() {
                return tag;
            }
        }
    }

    fn assoc_rng(&self, tag: u32) -> Rng {
        self.rng.fork(&format!("association {tag}"))
    }

    fn insert(&mut self, assoc: Association) -> u32 {
        let index = self.assocs.insert(assoc);
        self.dirty.add(index);
        self.collect(index);
        index
    }

    /// Moves an association's events to the endpoint's, and keeps the tables up to date.
    #[inline]
    fn collect(&mut self, index: u32) {
        // Closing is an event too.
        if self.assocs.get(index).is_some_and(|assoc| assoc.has_events()) {
            self.collect_events(index);
        }
    }

    #[inline(never)] // what `collect` mostly does must stay small
    fn collect_events(&mut self, index: u32) {
        let id = self.assocs.id(index);
        let Some(assoc) = self.assocs.get_mut(index) else { return };
        let mut paths_changed = false;
        let mut is_accepted = false;
        let is_announced = assoc.is_announced();
        while is_announced && let Some(event) = assoc.poll_event() {
            is_accepted |= matches!(event, Event::Connected { incoming: true });
            paths_changed |= matches!(
                event,
                Event::PathAdded { .. } | Event::PathRemoved { .. } | Event::PathState { .. }
            );
            self.events.push_back((id, event));
        }
        let wants_tag = assoc.take_tag_wanted();
        if let Some(reason) = assoc.closed() {
            let is_shutdown = *reason == AssocClosed::Shutdown;
            self.note_over(index, is_shutdown);
            self.assocs.unregister(index);
        } else if paths_changed || !is_announced {
            self.assocs.update_peers(index);
        }
        if is_accepted {
            self.end_earlier_attempts(index);
        }
        if wants_tag {
            let tag = self.unused_tag();
            self.assocs.set_tag(index, tag);
        }
    }

    /// Remembers an association that is over, unless it is remembered already.
    fn note_over(&mut self, index: u32, is_shutdown: bool) {
        let is_registered = self.assocs.is_registered(index);
        if !is_registered {
            return;
        }
        let Some(assoc) = self.assocs.get(index) else { return };
        let ends = assoc.identity().tag_and_port();
        if is_shutdown {
            self.past.note_shut_down(ends);
        }
        if self.config.accept {
            self.past.note_over(ends.local_tag, assoc.verified_ends(), assoc.begun());
        }
    }

    /// Updates the deadline and the tables for an association.
    fn settle(&mut self, index: u32) {
        self.collect(index);
        let Some(assoc) = self.assocs.get_mut(index) else { return };
        if let Some(words) = assoc.take_last_words() {
            self.past.note_last_words(assoc.identity().tag_and_port(), words);
        }
        if assoc.is_over() && !assoc.is_announced() {
            // The application does not know of this association.
            self.assocs.remove(index);
            self.deadlines.set(index, None);
            return;
        }
        self.deadlines.set(index, assoc.poll_timeout());
    }

    fn collect_all(&mut self) {
        for i in 0..self.dirty.len() {
            self.collect(self.dirty.at(i));
        }
    }

    fn settle_all(&mut self) {
        for i in 0..self.dirty.len() {
            self.settle(self.dirty.at(i));
        }
    }

    /// Lets an association handle a packet.
    #[inline]
    fn deliver(&mut self, index: u32, handle: impl FnOnce(&mut Association)) {
        if let Some(assoc) = self.assocs.get_mut(index) {
            handle(assoc);
            self.owes_sack = assoc.owes_sack();
            self.dirty.add(index);
            self.collect(index);
        }
    }
}

/// True if a single host can have this address.
fn is_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => !(ip.is_multicast() || ip.is_broadcast() || ip.is_unspecified()),
        IpAddr::V6(ip) => !(ip.is_multicast() || ip.is_unspecified()),
    }
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("config", &self.config)
            .field("associations", &self.assocs.registered())
            .finish_non_exhaustive()
    }
}
