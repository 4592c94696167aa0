//! Packets that belong to no association: those that open one, which leave no state before a valid
//! COOKIE ECHO, and those out of the blue.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;

use manypath_wire::{
    Auth, COMMON_HEADER_LEN, Chunk, CommonHeader, DtlsKeyManagement, ErrorCause, Init, Packet,
    PacketBuilder, Parameter, Tsn, chunk_type,
};

use super::limits::Answer;
use super::{AssocId, Endpoint, Reply};
use crate::assoc::cookie::{AuthOffers, Cookie, Offers};
use crate::assoc::{
    Association, CookieAction, Direct, Extensions, PeerEnd, PeerInit, PeerTrust, TagAndPort, agree,
    draw, init_ack, own_parameter,
};
use crate::auth::{Agreement, AuthParameters, Verdict};
use crate::datagram::AddressPair;
use crate::sizes;
use crate::time::Instant;

/// Most answers without an association that wait to be sent. More are dropped, so that a flood
/// takes no memory.
const MAX_REPLIES: usize = 256;
/// The reason for a peer that lost its place to newer ones while it agreed on keys. Programs look
/// for "busy".
const CROWDED_OUT: &[u8] = b"busy: others came before the keys were agreed on; try again later";
/// Most bytes of an answer to an unverified address, as a multiple of the bytes that it answers.
const AMPLIFICATION: usize = 3;

/// Length of an INIT's packet from which it is answered whatever the limit on answers. The answer
/// is no longer, so forging the source gains nothing.
const PADDED: usize = 512;

/// The COOKIE ECHO of a packet.
pub(super) struct Echo {
    cookie: Bytes,
    /// The AUTH chunk before it, and all that follows that one.
    auth: Option<(Auth, Bytes)>,
}

/// True if a packet begins with COOKIE ECHO, or with AUTH and then COOKIE ECHO (RFC 4895 §6.3).
#[inline]
pub(super) fn has_cookie_echo(packet: &[u8]) -> bool {
    match packet.get(COMMON_HEADER_LEN) {
        Some(&chunk_type::COOKIE_ECHO) => true,
        Some(&chunk_type::AUTH) => {
            let length = packet.get(COMMON_HEADER_LEN + 2..).and_then(<[u8]>::first_chunk);
            let length = length.map_or(0, |length| u16::from_be_bytes(*length));
            let second = COMMON_HEADER_LEN + sizes::padded(length.into());
            packet.get(second) == Some(&chunk_type::COOKIE_ECHO)
        }
        _ => false,
    }
}

impl Endpoint {
    /// The COOKIE ECHO of a packet that has one at its beginning. Behind an AUTH chunk it counts
    /// only where that chunk is known.
    pub(super) fn echo_of(&self, packet: &Packet) -> Option<Echo> {
        let mut chunks = packet.clone().into_chunks();
        match chunks.next() {
            Some(Ok(Chunk::CookieEcho(cookie))) => Some(Echo { cookie, auth: None }),
            Some(Ok(Chunk::Auth(auth))) if self.config.config.authenticates() => {
                let auth = Some((auth, chunks.rest()));
                match chunks.next() {
                    Some(Ok(Chunk::CookieEcho(cookie))) => Some(Echo { cookie, auth }),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Handles a packet with verification tag 0, which must be an INIT alone (RFC 9260 §8.5.1, A).
    #[cold]
    pub(super) fn on_init(&mut self, now: Instant, from: AddressPair, packet: &Packet) {
        let mut chunks = packet.chunks();
        let (Some(Ok(Chunk::Init(init))), None) = (chunks.next(), chunks.next()) else { return };
        if init.initiate_tag == 0 {
            return; // §3.3.2
        }
        if let Err(cause) = self.answer_init(now, from, packet, &init) {
            self.reply(now, Answer::Abort, from, packet, init.initiate_tag, |p| {
                p.push_abort(false, &[cause])
            });
        }
    }

    /// Answers with INIT ACK (RFC 9260 §5.1, B), or fails with the reason for an ABORT.
    fn answer_init(
        &mut self,
        now: Instant,
        from: AddressPair,
        packet: &Packet,
        init: &Init,
    ) -> Result<(), ErrorCause> {
        let mut peer = PeerInit::read(init)?;
        peer.keep_addresses_in_scope_of(from.remote.ip());
        let existing = self.association_of_init(from.remote, packet.header.source_port, &peer);
        if existing.is_none() && !self.config.accept {
            self.reply(now, Answer::Abort, from, packet, peer.tag, |p| p.push_abort(false, &[]));
            return Ok(());
        }
        if existing.is_none() && self.assocs.registered() >= self.config.max_associations {
            return Err(ErrorCause::OutOfResource);
        }
        let Some(to) = self.init_ack_goes_to(existing, from, &peer) else { return Ok(()) };
        let key_management = self.offers(existing, peer.key_management.as_ref())?;
        let authentication = self.authentication_with(&peer, key_management.is_some())?;
        // Checked before any work on the answer.
        let len = packet.bytes().len();
        let is_limited = !self.may_answer(now, Answer::InitAck, from.remote, peer.tag);
        if is_limited && len < PADDED {
            return Ok(());
        }
        let mut cookie = self.fresh_cookie(now, to, packet, &peer, key_management);
        if let Some(peers) = authentication {
            cookie.authentication = Some(AuthOffers { own: draw(&mut self.rng), peers });
        }
        let mut receive_buffer = self.incoming_window();
        if let Some(index) = existing {
            let Some(assoc) = self.assocs.get_mut(index) else { return Ok(()) };
            refuse_new_addresses(assoc, from.remote.ip(), &peer)?;
            receive_buffer = assoc.receive_buffer();
            let for_existing = assoc.cookie_for_existing(cookie);
            self.dirty.add(index);
            let Some(for_existing) = for_existing else { return Ok(()) };
            cookie = for_existing;
        }
        let sealed = self.keys.seal(&cookie, now);
        let budget = self.init_ack_budget(len, is_limited);
        let (config, local) = (&self.config.config, &self.config.local_addresses);
        let unrecognized = &peer.unrecognized;
        let answer = init_ack(config, local, &cookie, sealed, unrecognized, receive_buffer, budget);
        // The cookie alone may be too long, even without the list of addresses.
        if !is_limited || answer.params.as_bytes().len() <= budget {
            self.push_reply(to, packet, peer.tag, |p| p.push_init_ack(&answer));
        }
        Ok(())
    }

    /// Where INIT ACK goes; `None` for nowhere.
    fn init_ack_goes_to(
        &self,
        existing: Option<u32>,
        from: AddressPair,
        peer: &PeerInit,
    ) -> Option<AddressPair> {
        match existing.and_then(|index| self.assocs.get(index)) {
            Some(assoc) => assoc.init_ack_goes_to(from, &peer.addresses),
            None => Some(from),
        }
    }

    /// The association that an INIT belongs to: one with any of the peer's addresses (RFC 9260
    /// §5.1.2).
    fn association_of_init(&self, from: SocketAddr, port: u16, peer: &PeerInit) -> Option<u32> {
        let listed = peer.addresses.iter().map(|&ip| SocketAddr::new(ip, from.port()));
        std::iter::once(from)
            .chain(listed)
            .find_map(|remote| self.assocs.by_peer(remote, port))
            .filter(|&index| !self.opens_beside(index))
    }

    /// The cookie of an association that does not exist yet, for INIT ACK to this address.
    fn fresh_cookie(
        &mut self,
        now: Instant,
        to: AddressPair,
        packet: &Packet,
        peer: &PeerInit,
        key_management: Option<Offers>,
    ) -> Cookie {
        let config = &self.config.config;
        let (life, streams_out) = (config.valid_cookie_life, config.outbound_streams);
        let streams_in = config.inbound_streams;
        Cookie {
            created: now,
            life,
            local_tag: self.unused_tag(),
            peer_tag: peer.tag,
            local_tsn: Tsn(self.rng.next_u32()),
            peer_tsn: peer.initial_tsn,
            peer_rwnd: peer.a_rwnd,
            streams_out: streams_out.min(peer.streams_in),
            streams_in: streams_in.min(peer.streams_out),
            extensions: Extensions {
                candidates: peer.extensions.candidates && self.candidates.is_some(),
                ..peer.extensions
            },
            tie_local: 0,
            tie_peer: 0,
            local_port: packet.header.destination_port,
            peer_port: packet.header.source_port,
            local: to.local,
            remote: to.remote,
            addresses: peer.addresses.clone(),
            key_management,
            authentication: None,
        }
    }

    /// The peer's parameters of authentication, if an association with it is to have it.
    fn authentication_with(
        &self,
        peer: &PeerInit,
        is_protected: bool,
    ) -> Result<Option<AuthParameters>, ErrorCause> {
        if self.config.config.authenticates() && !is_protected {
            peer.authentication.read()
        } else {
            Ok(None)
        }
    }

    /// Bytes that the parameters of INIT ACK may have, if the packet of the INIT has `len`.
    fn init_ack_budget(&self, len: usize, is_limited: bool) -> usize {
        let udp = sizes::UDP_IPV4_HEADERS;
        let fits = if is_limited { len } else { AMPLIFICATION * (len + udp) - udp };
        let fits = fits.min(self.config.config.mtu - sizes::UDP_IPV6_HEADERS);
        fits.saturating_sub(COMMON_HEADER_LEN + 20)
    }

    /// True if a peer that begins again opens an association beside this one, as it could from
    /// another port. Where packets are protected, an address proves nothing, so the new association
    /// takes over nothing.
    ///
    /// Deviation: RFC 9260 §5.2.4.1 restarts the association.
    fn opens_beside(&self, index: u32) -> bool {
        let is_protected = |assoc: &Association| assoc.is_protected() && assoc.is_established();
        self.config.accept
            && self.assocs.registered() < self.config.max_associations
            && self.assocs.get(index).is_some_and(is_protected)
    }

    /// The association that a COOKIE ECHO from this address is about. `None` if the peer opens
    /// another one beside it: the old one may have lost its peer, which is asked.
    fn of_peer(&mut self, now: Instant, remote: SocketAddr, port: u16) -> Option<u32> {
        let index = self.assocs.by_peer(remote, port)?;
        if !self.opens_beside(index) {
            return Some(index);
        }
        if let Some(old) = self.assocs.get_mut(index) {
            old.doubt_peer(now);
            self.dirty.add(index);
        }
        None
    }

    /// The parameters of both ends for an association that is to be protected.
    fn offers(
        &mut self,
        existing: Option<u32>,
        peers: Option<&DtlsKeyManagement>,
    ) -> Result<Option<Offers>, ErrorCause> {
        // If this end opens the association at the same time, it has a parameter already.
        let known =
            existing.and_then(|index| self.assocs.get(index)).filter(|a| !a.is_established());
        let own = match (known, &self.key_management) {
            (Some(assoc), _) => assoc.key_management().cloned(),
            (None, Some(keys)) => own_parameter(&**keys, false, self.rng.next_u32()),
            (None, None) => None,
        };
        let Some(own) = own else { return Ok(None) };
        agree(&own, peers)?;
        let peers = peers.cloned();
        Ok(peers.map(|peers| Offers { own, peers }))
    }

    /// Handles a packet that begins with COOKIE ECHO (RFC 9260 §5.1.5, §5.2.4).
    #[cold]
    pub(super) fn on_cookie_echo(
        &mut self,
        now: Instant,
        from: AddressPair,
        echo: Echo,
        packet: Packet,
    ) {
        let Ok(cookie) = self.keys.open(echo.cookie) else { return };
        if cookie.key_management.is_some() && self.key_management.is_none() {
            return; // The application has changed its mind since.
        }
        let h = &packet.header;
        if h.verification_tag != cookie.local_tag
            || h.source_port != cookie.peer_port
            || h.destination_port != cookie.local_port
        {
            return;
        }
        let existing = self
            .assocs
            .by_tag(cookie.local_tag)
            .filter(|&index| self.is_with(index, cookie.remote))
            .or_else(|| self.of_peer(now, from.remote, cookie.peer_port));
        if !self.is_authentic(existing, &cookie, echo.auth.as_ref()) {
            return;
        }
        let known = existing.and_then(|index| self.assocs.get(index));
        // §5.2.4, step 3: a cookie with both tags of an association is valid at any age.
        let is_duplicate =
            known.is_some_and(|a| a.classify_cookie(&cookie) == CookieAction::Duplicate);
        if !is_duplicate && let Some(over) = cookie.stale_by(now) {
            let micros = u32::try_from(over.as_micros()).unwrap_or(u32::MAX);
            return self.refuse_stale(now, from, &packet, &cookie, micros);
        }
        let opened = match existing {
            Some(index) => {
                self.cookie_for_existing(now, index, &cookie, from, &packet).then_some(index)
            }
            None => self.associate_by_cookie(now, from, &packet, &cookie),
        };
        if let Some(index) = opened {
            self.deliver(index, |assoc| assoc.handle_packet(now, from, false, packet));
        }
    }

    /// True if a COOKIE ECHO counts as far as its authentication goes (RFC 4895 §6.3). An
    /// association that is open has keys to check it with. Otherwise these come from the cookie.
    /// They do so also for a peer that has restarted, unless it must show the keys of before.
    fn is_authentic(
        &mut self,
        existing: Option<u32>,
        cookie: &Cookie,
        auth: Option<&(Auth, Bytes)>,
    ) -> bool {
        let config = &self.config.config;
        let must = config.authenticates()
            && cookie.key_management.is_none()
            && config.required_authentication().contains(chunk_type::COOKIE_ECHO);
        let Some((auth, rest)) = auth else { return !must };
        let own = cookie.authentication.as_ref().map(|both| {
            let own = AuthParameters::own(both.own, config.required_authentication());
            Agreement::new(&own, &both.peers)
        });
        let mut keys = &self.auth_keys;
        if let Some(assoc) = existing.and_then(|index| self.assocs.get_mut(index)) {
            let is_open = assoc.is_established() && assoc.authenticates();
            if is_open && assoc.verify(auth, rest) == Verdict::Right {
                return true;
            }
            if is_open && must {
                return false;
            }
            keys = assoc.auth_keys().unwrap_or(keys);
        }
        let verdict = own.flatten().map(|mut agreement| agreement.verify(keys, auth, rest));
        verdict == Some(Verdict::Right)
    }

    /// Makes the association of a cookie, or refuses it.
    fn associate_by_cookie(
        &mut self,
        now: Instant,
        from: AddressPair,
        packet: &Packet,
        cookie: &Cookie,
    ) -> Option<u32> {
        let lives = self.assocs.by_tag(cookie.local_tag).is_some(); // at another address by now
        if lives {
            return None;
        }
        if self.past.is_cookie_used(cookie.local_tag) {
            self.refuse_used_cookie(now, from, cookie, packet);
            return None;
        }
        // A superseded cookie belongs to an attempt before the successful one, for instance of a
        // peer that has restarted since. An association from it would have no peer. A peer that
        // still wants one sends another INIT.
        //
        // A flood of associations must not make this end forget which cookies are used. A second
        // association from one cookie would have the tags of the first, and so its keys. An honest
        // peer begins again.
        let is_superseded = self.is_superseded(cookie, from.remote);
        if is_superseded || self.past.is_cookie_forgotten(cookie.created) {
            self.refuse_stale(now, from, packet, cookie, 0);
            return None;
        }
        if !self.config.accept || self.assocs.registered() >= self.config.max_associations {
            let cause = [ErrorCause::OutOfResource];
            self.reply(now, Answer::Abort, from, packet, cookie.peer_tag, |p| {
                p.push_abort(false, &cause)
            });
            return None;
        }
        if let Some(limits) = &mut self.limits {
            limits.cookie_returned();
        }
        let assoc = self.associate(now, cookie, from);
        let index = self.insert(assoc);
        self.limit_key_managements(now, index, cookie.remote.ip());
        Some(index)
    }

    /// Answers with ERROR "Stale Cookie" (RFC 9260 §5.1.5); `over` is how many microseconds the
    /// cookie has been out of date.
    fn refuse_stale(
        &mut self,
        now: Instant,
        from: AddressPair,
        packet: &Packet,
        cookie: &Cookie,
        over: u32,
    ) {
        self.reply(now, Answer::StaleCookie, from, packet, cookie.peer_tag, |p| {
            p.push_error(&[ErrorCause::StaleCookie(over)])
        });
    }

    /// Limits the associations that wait for keys: if a new one is too many, another one makes room
    /// for it. `ip` is the address that the cookie was sent to, because a COOKIE ECHO may have a
    /// forged source.
    fn limit_key_managements(&mut self, now: Instant, index: u32, ip: IpAddr) {
        if self.assocs.get(index).is_none_or(Association::is_announced) {
            return;
        }
        let waits = |id: &AssocId| {
            let assoc = self.assocs.index(*id).and_then(|index| self.assocs.get(index));
            assoc.is_some_and(|assoc| !assoc.is_announced() && assoc.closed().is_none())
        };
        // Associations that have keys by now neither count nor may be ended.
        if !self.unauthenticated.has_room(ip) {
            self.unauthenticated.retain(waits);
        }
        let goes = self.unauthenticated.add(self.assocs.id(index), ip);
        if let Some(assoc) = goes.and_then(|id| self.assoc_mut(id)) {
            assoc.abort(now, CROWDED_OUT);
        }
    }

    /// Ends earlier attempts of a host whose newer association has shown its keys, because the host
    /// has restarted since. Otherwise the late last message of an earlier key agreement would open
    /// an association without a peer.
    pub(super) fn end_earlier_attempts(&mut self, index: u32) {
        let Some(newer) = self.assocs.get(index) else { return };
        let is_over = |id: &AssocId| {
            let assoc = self.assocs.index(*id).and_then(|index| self.assocs.get(index));
            assoc.is_some_and(|older| !older.is_announced() && older.is_succeeded_by(newer))
        };
        let over: Vec<AssocId> = self.unauthenticated.ids().filter(is_over).collect();
        for id in over {
            self.forget(id);
        }
    }

    /// Refuses a copy of a cookie whose association is over: a second association would deliver its
    /// data twice. A peer that still waits for COOKIE ACK has missed an ABORT, and gets another.
    /// After a shutdown no peer waits, and an ABORT could overtake SHUTDOWN COMPLETE.
    ///
    /// Deviation: by RFC 9260 §5.1.5 each valid cookie opens an association.
    fn refuse_used_cookie(
        &mut self,
        now: Instant,
        from: AddressPair,
        cookie: &Cookie,
        packet: &Packet,
    ) {
        let ends = TagAndPort { local_tag: cookie.local_tag, peer_port: cookie.peer_port };
        if !self.past.was_shut_down(ends) {
            self.reply(now, Answer::Abort, from, packet, cookie.peer_tag, |p| {
                p.push_abort(false, &[])
            });
        }
    }

    /// True if the peer has or had an association from a newer cookie, at any address of this
    /// cookie: that of its INIT, of its echo, or a listed one. The association may not have
    /// verified that address yet.
    ///
    /// Deviation: the same as for used cookies.
    fn is_superseded(&self, cookie: &Cookie, from: SocketAddr) -> bool {
        let is_over = |address| {
            let peer = PeerEnd { address, port: cookie.peer_port };
            self.past.is_superseded(peer, cookie.created)
        };
        let listed = cookie.addresses.iter().map(|ip| SocketAddr::new(*ip, cookie.remote.port()));
        [cookie.remote, from].into_iter().chain(listed).any(is_over)
    }

    /// True if the association is with the peer at this address.
    fn is_with(&self, index: u32, remote: SocketAddr) -> bool {
        self.assocs.get(index).is_some_and(|a| a.known_remotes().any(|known| known == remote))
    }

    fn associate(&mut self, now: Instant, cookie: &Cookie, from: AddressPair) -> Association {
        let peer = PeerEnd { address: cookie.remote, port: cookie.peer_port };
        self.past.note_cookie(cookie.local_tag, peer, cookie.created);
        let config = Arc::clone(&self.config.config);
        let local = self.config.local_addresses.clone();
        let rng = self.assoc_rng(cookie.local_tag);
        let keys = self.key_management.clone();
        let mut assoc = Association::from_cookie(config, cookie, local, keys, rng, now);
        assoc.offer_authentication(&self.auth_keys);
        assoc.agree_by_cookie(cookie.authentication.as_ref());
        if self.incoming_window() < assoc.receive_buffer() {
            assoc.set_receive_buffer(now, self.incoming_window());
        }
        assoc.set_link_mtus(now, Arc::clone(&self.link_mtus));
        if let Some(reserve) = &self.reserve {
            assoc.set_buffer_reserve(Arc::clone(reserve));
        }
        assoc.set_local_ranks(now, Arc::clone(&self.local_ranks));
        if let Some(own) = &self.candidates {
            let direct = Direct::new(Arc::clone(own), Vec::new(), PeerTrust::Stranger);
            assoc.offer_direct_paths(now, direct.only(self.direct_only));
        }
        assoc.establish(now, true);
        assoc.acknowledge_cookie(from);
        assoc
    }

    /// Takes the cookie of an existing association. Returns false if the packet must be ignored.
    fn cookie_for_existing(
        &mut self,
        now: Instant,
        index: u32,
        cookie: &Cookie,
        from: AddressPair,
        packet: &Packet,
    ) -> bool {
        let Some(assoc) = self.assocs.get_mut(index) else { return false };
        let action = assoc.classify_cookie(cookie);
        // Protected associations support no restart, and ignore unprotected chunks.
        let is_restart = action == CookieAction::Restart && assoc.is_protected();
        if is_restart || assoc.refuses_plain() {
            if action == CookieAction::Restart {
                assoc.doubt_peer(now);
            }
            return false;
        }
        self.dirty.add(index);
        match action {
            CookieAction::Discard => return false,
            CookieAction::Outdated => {
                self.refuse_stale(now, from, packet, cookie, 0);
                return false;
            }
            // The cookie's association is over.
            CookieAction::Restart if self.past.is_cookie_used(cookie.local_tag) => return false,
            CookieAction::Restart if assoc.refuse_cookie_while_shutting_down() => return false,
            CookieAction::Restart => {
                let mut new = self.associate(now, cookie, from);
                if let Some(old) = self.assocs.take(index) {
                    let tag = old.identity().local_tag;
                    self.past.note_over(tag, old.verified_ends(), cookie.created);
                    new.succeed(now, *old);
                }
                self.assocs.put(index, new);
                self.collect(index);
                self.assocs.update_peers(index);
            }
            CookieAction::Collision | CookieAction::Duplicate => {
                assoc.on_cookie_echo(now, action, cookie, from);
            }
        }
        true
    }

    /// Answers a packet out of the blue (RFC 9260 §8.4).
    #[cold]
    pub(super) fn out_of_the_blue(&mut self, now: Instant, from: AddressPair, packet: &Packet) {
        let (mut init, mut shutdown_ack) = (None, false);
        for chunk in packet.chunks() {
            match chunk {
                // Rules 2, 6 and 7: these are never answered; otherwise two hosts could answer each
                // other forever.
                Ok(Chunk::Abort(_) | Chunk::ShutdownComplete { .. } | Chunk::CookieAck)
                | Err(_) => {
                    return;
                }
                Ok(Chunk::Error(e)) => {
                    let stale = |c| matches!(c, Ok(ErrorCause::StaleCookie(_)));
                    if e.causes.iter().any(stale) {
                        return;
                    }
                }
                Ok(Chunk::Init(chunk)) => init = Some(chunk),
                Ok(Chunk::ShutdownAck) => shutdown_ack = true,
                Ok(_) => {}
            }
        }
        let tag = packet.header.verification_tag;
        let opening = if tag == 0 { init } else { None };
        match opening {
            // Rule 3: an INIT for a port without a listener. Without a tag it cannot be answered.
            Some(init) if init.initiate_tag == 0 => {}
            Some(init) => {
                self.reply(now, Answer::Abort, from, packet, init.initiate_tag, |p| {
                    p.push_abort(false, &[])
                });
            }
            // Rule 5: our SHUTDOWN COMPLETE was lost.
            None if shutdown_ack => {
                self.reply(now, Answer::ShutdownComplete, from, packet, tag, |p| {
                    p.push_shutdown_complete(true)
                });
            }
            // Rule 8: the tag is reflected, so that the sender knows it as its own.
            None => {
                self.reply(now, Answer::Abort, from, packet, tag, |p| p.push_abort(true, &[]));
            }
        }
    }

    /// True if a packet belongs to an association that was shut down, and does not ask for SHUTDOWN
    /// COMPLETE again.
    ///
    /// Deviation: RFC 9260 §8.4, rule 8 answers such a packet with ABORT. But a SACK and SHUTDOWN
    /// ACK may overtake each other on different paths, and the ABORT may then overtake SHUTDOWN
    /// COMPLETE. The peer would take an association for failed that has delivered everything.
    pub(super) fn is_late(&self, packet: &Packet) -> bool {
        self.past.was_shut_down(ends_of(packet))
            && !packet.chunks().any(|c| matches!(c, Ok(Chunk::ShutdownAck)))
    }

    /// Answers a protected packet of an association that is over with the packet that ended it,
    /// which the sender has missed. False if the packet is none such.
    pub(super) fn repeat_last_words(
        &mut self,
        now: Instant,
        to: AddressPair,
        packet: &Packet,
    ) -> bool {
        if packet.bytes().get(COMMON_HEADER_LEN) != Some(&chunk_type::DTLS) {
            return false;
        }
        let Some(words) = self.past.last_words(ends_of(packet)) else { return false };
        let tag = packet.header.verification_tag;
        if self.replies.len() < MAX_REPLIES
            && self.may_answer(now, Answer::ShutdownComplete, to.remote, tag)
        {
            self.replies.push_back(Reply { to, packet: words.to_vec() });
        }
        true
    }

    /// True if a stranger is answered now.
    fn may_answer(&mut self, now: Instant, answer: Answer, from: SocketAddr, tag: u32) -> bool {
        self.limits.as_mut().is_none_or(|limits| limits.allows(now, answer, from, tag))
    }

    /// Queues a packet that answers `question`, within the limit on such answers.
    fn reply(
        &mut self,
        now: Instant,
        answer: Answer,
        from: AddressPair,
        question: &Packet,
        tag: u32,
        write: impl FnOnce(&mut PacketBuilder<'_>) -> bool,
    ) {
        if self.may_answer(now, answer, from.remote, tag) {
            self.push_reply(from, question, tag, write);
        }
    }

    fn push_reply(
        &mut self,
        to: AddressPair,
        question: &Packet,
        tag: u32,
        write: impl FnOnce(&mut PacketBuilder<'_>) -> bool,
    ) {
        if self.replies.len() >= MAX_REPLIES {
            return;
        }
        let header = CommonHeader {
            source_port: question.header.destination_port,
            destination_port: question.header.source_port,
            verification_tag: tag,
        };
        let most = self.config.config.mtu - sizes::UDP_IPV6_HEADERS;
        let mut packet = Vec::new();
        let mut builder = PacketBuilder::new(&mut packet, header, most);
        if write(&mut builder) {
            builder.finish(self.config.config.checksum);
            self.replies.push_back(Reply { to, packet });
        }
    }
}

/// A restart must not add addresses to an association (RFC 9260 §5.2.2).
fn refuse_new_addresses(
    assoc: &Association,
    from: IpAddr,
    peer: &PeerInit,
) -> Result<(), ErrorCause> {
    let new = assoc.new_addresses(from, &peer.addresses);
    if new.is_empty() {
        return Ok(());
    }
    let mut raw = Vec::new();
    new.into_iter().for_each(|ip| Parameter::from(ip).encode(&mut raw));
    Err(ErrorCause::RestartWithNewAddresses(raw.into()))
}

/// The tag and port by which a packet names its association.
fn ends_of(packet: &Packet) -> TagAndPort {
    let header = &packet.header;
    TagAndPort { local_tag: header.verification_tag, peer_port: header.source_port }
}
