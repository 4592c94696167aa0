//! Opening an association (RFC 9260 §5): INIT, INIT ACK, COOKIE ECHO, COOKIE ACK, collisions,
//! restarts.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use manypath_dtls::manage::KeyManagement;
use manypath_wire::{ErrorCause, Init, Params, parameter_type};
use smallvec::SmallVec;

use super::cookie::Cookie;
use super::init::{Announced, PeerInit, a_rwnd, parameters};
use crate::assoc::protect::keys::config_with;
use crate::assoc::send::control::Control;
use crate::assoc::state::{Opening, State};
use crate::assoc::{AssocTimer, Association, Identity, Timer};
use crate::config::Config;
use crate::datagram::AddressPair;
use crate::endpoint::ConnectTo;
use crate::event::{AssocClosed, Event};
use crate::path::{Origin, Path};
use crate::rng::Rng;
use crate::sizes;
use crate::time::Instant;

/// Action on a COOKIE ECHO for an association that exists (RFC 9260 §5.2.4, Table 12).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum CookieAction {
    /// A: the peer restarted.
    Restart,
    /// B: both sides opened at once.
    Collision,
    /// B, but the peer's tag in the cookie may be older than the one in use. A peer that still
    /// waits with that tag asks for a new cookie.
    Outdated,
    /// C, and the cases without an action: a late cookie of an attempt that was given up.
    Discard,
    /// D: a duplicate, or our COOKIE ACK was lost.
    Duplicate,
}

/// Length of the SCTP packet of a padded INIT, in bytes: as much as every host accepts over IPv4
/// (RFC 791 §3.1), and more than an INIT ACK needs.
const PADDED_INIT: usize = 576 - sizes::UDP_IPV4_HEADERS;

impl Association {
    /// A new association that is to [`connect`](Self::connect).
    pub(crate) fn to_connect(
        config: Arc<Config>,
        id: Identity,
        local_addresses: Vec<SocketAddr>,
        keys: Option<Arc<dyn KeyManagement>>,
        rng: Rng,
    ) -> Association {
        let config = config_with(config, keys.is_some());
        let mut a = Association::new(config, id, local_addresses, rng);
        if let Some(keys) = keys {
            a.protect(keys, None);
        }
        a
    }

    /// Sends INIT on the first path, or the first of the least rank.
    pub(crate) fn connect(&mut self, now: Instant, to: &ConnectTo) {
        self.begun = now;
        self.open_until = to.limit.map(|limit| now + limit);
        for &(local, remote) in &to.paths {
            let pair = AddressPair { local, remote };
            self.create_path(now, pair, Origin::Named);
        }
        for &(local, remote) in &to.candidates {
            self.add_candidate(now, local, remote);
        }
        if let Some(cheapest) = self.paths.iter().min_by_key(|p| (p.role.rank, p.id)) {
            self.primary = cheapest.id;
        }
        self.send_init(now);
    }

    /// The association a valid COOKIE ECHO establishes (RFC 9260 §5.1.5).
    pub(crate) fn from_cookie(
        config: Arc<Config>,
        cookie: &Cookie,
        local_addresses: Vec<SocketAddr>,
        keys: Option<Arc<dyn KeyManagement>>,
        rng: Rng,
        now: Instant,
    ) -> Association {
        let id = Identity {
            local_tag: cookie.local_tag,
            peer_tag: cookie.peer_tag,
            local_port: cookie.local_port,
            peer_port: cookie.peer_port,
            initial_tsn: cookie.local_tsn,
        };
        let config = config_with(config, keys.is_some());
        let mut a = Association::new(config, id, local_addresses, rng);
        a.begun = cookie.created;
        a.opened_by = Some(cookie.created);
        a.buffers.note_handshake(now.saturating_since(cookie.created));
        if let (Some(keys), Some(both)) = (keys, &cookie.key_management) {
            a.protect(keys, Some(both.own.clone()));
            a.begin_key_management(Some(&both.peers));
        }
        a.peer_window.begin(cookie.peer_rwnd);
        a.agreed.streams_out = cookie.streams_out;
        a.start_receiver(cookie.peer_tsn, cookie.streams_in, now);
        a.grant_sack_path(cookie.extensions.sack_path);
        a.agree(cookie.extensions);
        let first = a.create_path(now, cookie.pair(), Origin::Listed);
        a.add_peer_addresses(now, &cookie.addresses, cookie.remote.port());
        if let Some(first) = first {
            // RFC 9260 §5.4: the cookie came back from there, so the address is the peer's.
            a.confirm_path(now, first);
        }
        a
    }

    fn send_init(&mut self, now: Instant) {
        self.push_init(now);
        if let Some(opening) = self.state.opening_mut() {
            opening.init_sent = now;
        }
        let rto = self.handshake_rto(0);
        self.start_t1(now, rto);
    }

    /// Queues INIT, on the primary path or on all of them.
    fn push_init(&mut self, now: Instant) {
        let on_all = self.config.handshake_on_all_paths;
        let primary = self.primary;
        let paths =
            self.paths.iter().filter(|p| p.id == primary || (on_all && p.origin.is_named()));
        let ids: SmallVec<[_; 8]> = paths.map(|p| p.id).collect();
        for on in ids {
            self.control.push_back(Control::Init { on });
            self.begin_first_trial(now, on);
        }
    }

    /// The timeout of INIT or COOKIE ECHO after this number of unanswered attempts.
    fn handshake_rto(&self, attempts: u32) -> Duration {
        match self.config.handshake_rto {
            Some(first) => {
                first.saturating_mul(1 << attempts.min(16)).min(self.config.handshake_rto_max)
            }
            None => self.paths.get(self.primary).map_or(self.config.rto_initial, |p| p.rto.rto()),
        }
    }

    /// Starts T1-init or T1-cookie, to expire no later than the application's limit for opening.
    fn start_t1(&mut self, now: Instant, after: Duration) {
        let at = self.open_until.map_or(now + after, |until| until.min(now + after));
        self.timers.set(Timer::Assoc(AssocTimer::T1), at);
    }

    /// Makes our INIT. A repeated INIT may be padded, to an SCTP packet of at most `room` bytes.
    pub(crate) fn init_chunk(&self, room: usize) -> Init {
        let is_repeated = matches!(&self.state, State::CookieWait(opening) if opening.attempts > 0);
        let init = Init {
            initiate_tag: self.ends.id.local_tag,
            a_rwnd: a_rwnd(self.rx.buffer),
            outbound_streams: self.config.outbound_streams,
            inbound_streams: self.config.inbound_streams,
            initial_tsn: self.ends.id.initial_tsn,
            params: parameters(
                &self.config,
                &self.listed_addresses(),
                None,
                self.key_management().cloned(),
                self.announced(),
            )
            .into_iter()
            .collect::<Params>(),
        };
        if is_repeated && self.config.pad_repeated_init {
            init.padded_to(PADDED_INIT.min(room))
        } else {
            init
        }
    }

    fn announced(&self) -> Announced {
        Announced {
            sack_path: self.policies.needs.sack_path_chunks,
            candidates: self.direct.is_some(),
        }
    }

    /// Handles INIT ACK: the answer to our INIT (RFC 9260 §5.1, C).
    pub(crate) fn on_init_ack(&mut self, now: Instant, from: AddressPair, init: &Init) {
        let State::CookieWait(opening) = self.state else {
            return; // §5.2.3: a late or duplicate one
        };
        let mut peer = match PeerInit::read(init) {
            Ok(peer) => peer,
            Err(cause) => {
                self.ends.id.peer_tag = init.initiate_tag;
                self.abort_with(cause, "an INIT ACK with invalid values");
                return;
            }
        };
        peer.keep_addresses_in_scope_of(from.remote.ip());
        let Some(cookie) = peer.cookie.clone() else {
            self.ends.id.peer_tag = peer.tag;
            let missing = ErrorCause::MissingMandatoryParameter(vec![parameter_type::STATE_COOKIE]);
            self.abort_with(missing, "an INIT ACK without a state cookie");
            return;
        };
        self.ends.id.peer_tag = peer.tag;
        if !self.begin_key_management(peer.key_management.as_ref()) {
            return;
        }
        self.set_initial_rwnd(peer.a_rwnd);
        self.agreed.streams_out = self.config.outbound_streams.min(peer.streams_in);
        if !self.queue.fits_streams(self.agreed.streams_out) {
            self.push_abort(None);
            self.close(AssocClosed::TooFewStreams { allowed: self.agreed.streams_out });
            return;
        }
        let streams_in = self.config.inbound_streams.min(peer.streams_out);
        self.start_receiver(peer.initial_tsn, streams_in, now);
        self.agree(peer.extensions);
        self.prefer(from);
        self.add_peer_addresses(now, &peer.addresses, from.remote.port());
        if !peer.unrecognized.is_empty() {
            let mut raw = Vec::new();
            for parameter in &peer.unrecognized {
                raw.resize(crate::sizes::padded(raw.len()), 0);
                raw.extend_from_slice(parameter);
            }
            // §3.2.2: the error report travels with COOKIE ECHO.
            let cause = ErrorCause::UnrecognizedParameters(raw.into());
            self.control.push_front(Control::Error(cause));
        }
        if opening.attempts == 0 {
            self.buffers.note_handshake(now - opening.init_sent);
        }
        let opening = Opening { attempts: 0, ..opening };
        self.state = State::CookieEchoed { cookie, opening };
        // The first message of the key management travels with COOKIE ECHO.
        self.run_key_management(now);
        self.control.push_front(Control::CookieEcho);
        let rto = self.handshake_rto(0);
        self.start_t1(now, rto);
    }

    /// Takes the a_rwnd of the peer's INIT or INIT ACK.
    fn set_initial_rwnd(&mut self, a_rwnd: u32) {
        self.peer_window.begin(a_rwnd);
        let ssthresh = self.config.initial_ssthresh.bytes(a_rwnd);
        for p in self.paths.iter_mut() {
            p.flow.window.ssthresh = usize::try_from(ssthresh).unwrap_or(usize::MAX);
        }
    }

    /// T1-init or T1-cookie expired (RFC 9260 §5.1, rules A and C; §4, note 2).
    pub(crate) fn on_t1(&mut self, now: Instant) {
        let limit = self.config.max_init_retransmits;
        let Some(opening) = self.state.opening_mut() else { return };
        opening.attempts += 1;
        let attempts = opening.attempts;
        if attempts > limit || self.open_until.is_some_and(|until| until <= now) {
            self.close(match self.state {
                State::CookieEchoed { .. } => AssocClosed::HandshakeUnfinished,
                _ => AssocClosed::HandshakeTimedOut,
            });
            return;
        }
        // The next attempt takes the next path, so that a path that is down does not prevent the
        // association.
        let ids: Vec<_> = self.paths.iter().filter(|p| p.origin.is_named()).map(|p| p.id).collect();
        let rto = self.handshake_rto(attempts);
        let own_rto = self.config.handshake_rto.is_some();
        let moves = self.config.handshake_moves_primary;
        let at = ids.iter().position(|&id| id == self.primary);
        if !own_rto && (!moves || at.is_some()) {
            let failed = self.primary;
            let backs_off = |p: &&mut Path| moves || p.id == failed;
            self.paths.iter_mut().filter(backs_off).for_each(|p| p.rto.back_off());
        }
        if moves && let Some(at) = at {
            self.primary = ids[(at + 1) % ids.len()];
        }
        if matches!(self.state, State::CookieWait(_)) {
            self.push_init(now);
        } else {
            // Data sent with COOKIE ECHO is sent again with it.
            for id in self.paths.ids() {
                self.out.mark_path(id, None);
            }
            self.control.push_back(Control::CookieEcho);
        }
        let next = if own_rto { rto } else { (rto * 2).min(self.config.rto_max) };
        self.start_t1(now, next);
    }

    /// Handles COOKIE ACK: established (RFC 9260 §5.1, E).
    pub(crate) fn on_cookie_ack(&mut self, now: Instant, from: AddressPair) {
        if matches!(self.state, State::CookieEchoed { .. }) {
            self.prefer(from);
            self.establish(now, false);
        }
    }

    /// Makes the path that answered the handshake the primary, if the application named it. An
    /// address that only the peer listed must be verified first.
    fn prefer(&mut self, pair: AddressPair) {
        if !self.config.handshake_moves_primary {
            return;
        }
        let p = self.paths.find(&pair).and_then(|id| self.paths.get(id));
        if let Some(p) = p.filter(|p| p.origin.is_named()) {
            self.primary = p.id;
        }
    }

    pub(crate) fn establish(&mut self, now: Instant, incoming: bool) {
        self.timers.stop(Timer::Assoc(AssocTimer::T1));
        self.state = State::Established;
        self.suspend_trials();
        self.error_count = 0;
        match &mut self.protection {
            None => self.open_for_data(now, incoming),
            Some(protection) => {
                protection.is_incoming = incoming;
                let primary = self.primary;
                self.confirm_path(now, primary);
                self.start_key_timer(now);
                self.run_key_management(now);
            }
        }
        // From now on T3-rtx watches what left with COOKIE ECHO.
        for id in self.paths.ids() {
            self.renew_t3(now, id, false);
        }
    }

    /// Lets the application's data flow.
    pub(crate) fn open_for_data(&mut self, now: Instant, incoming: bool) {
        self.events.push(Event::Connected { incoming });
        self.tell_sack_path_agreed();
        if !self.recovery.rules.verifies_first {
            let primary = self.primary;
            self.confirm_path(now, primary);
        }
        self.start_size_searches(now);
        self.verify_paths(now);
        self.tell_candidates(now);
    }

    /// Sends INIT again, because our cookie was too old (RFC 9260 §5.2.6). The attempts are limited
    /// like those of an unanswered INIT.
    ///
    /// The new INIT has a new tag. COOKIE ACK does not say which cookie it confirms, and copies of
    /// the last COOKIE ECHO may draw further errors. Both carry our tag, so answers to the last
    /// cookie cannot be taken for answers to the next one.
    pub(crate) fn on_stale_cookie(&mut self, now: Instant) {
        let State::CookieEchoed { opening, .. } = self.state else { return };
        self.rx.receiver = None;
        self.ends.id.peer_tag = 0;
        self.forget_key_management();
        self.control.clear();
        let stale_cookies = opening.stale_cookies + 1;
        self.state = State::CookieWait(Opening { attempts: 0, stale_cookies, ..opening });
        if stale_cookies > self.config.max_init_retransmits {
            self.close(AssocClosed::HandshakeTimedOut);
        } else {
            self.events.want_tag();
            // Cookies for crossing INITs have the old tag, and must not pass for a restart.
            self.ends.renew_tie_tags(&mut self.rng);
            self.send_init(now);
        }
    }

    /// Where the answer to an INIT from these addresses goes: back to them. In COOKIE-WAIT it goes
    /// only to an address that the application gave (RFC 9260 §5.2.1), since it has our tag. A host
    /// that claims to be the peer could otherwise learn the tag, and send in the peer's name. The
    /// answer then goes to an address of both, or nowhere.
    pub(crate) fn init_ack_goes_to(
        &self,
        from: AddressPair,
        listed: &[IpAddr],
    ) -> Option<AddressPair> {
        let given = || self.paths.iter().filter(|p| p.origin.is_named());
        let is_given = given().any(|p| p.remote == from.remote);
        if !matches!(self.state, State::CookieWait(_))
            || is_given
            || self.candidates.is_waiting_for(from.remote)
        {
            return Some(from);
        }
        let is_reported =
            |p: &&Path| listed.contains(&p.remote.ip()) && p.remote.port() == from.remote.port();
        given().find(is_reported).map(|p| AddressPair { local: p.local, remote: p.remote })
    }

    /// The cookie for an INIT that arrives for this existing association (RFC 9260 §5.2.1, §5.2.2).
    /// `None`: no INIT ACK is sent.
    pub(crate) fn cookie_for_existing(&mut self, fresh: Cookie) -> Option<Cookie> {
        match self.state {
            State::CookieWait(_) | State::CookieEchoed { .. } => {
                let own = self.key_management().cloned();
                let mut cookie = self.ends.cookie_while_opening(fresh);
                if matches!(self.state, State::CookieEchoed { .. }) {
                    cookie = self.ends.tied(cookie);
                }
                if let (Some(both), Some(own)) = (&mut cookie.key_management, own) {
                    both.own = own;
                }
                Some(cookie)
            }
            State::ShutdownAckSent { .. } => {
                // §9.2: INIT is discarded, and SHUTDOWN ACK sent again.
                self.control.push_back(Control::ShutdownAck { on: self.control_path() });
                None
            }
            _ => Some(self.ends.tied(fresh)),
        }
    }

    /// The addresses of an INIT that are new to the association. Accepting them would let anyone
    /// who can reach us take it over (RFC 9260 §5.2.1, §5.2.2).
    pub(crate) fn new_addresses(&self, source: IpAddr, listed: &[IpAddr]) -> Vec<IpAddr> {
        if matches!(self.state, State::CookieWait(_)) {
            return Vec::new(); // The peer's addresses are not known yet.
        }
        let all = std::iter::once(source).chain(listed.iter().copied().filter(|&ip| ip != source));
        all.filter(|&ip| !self.knows(ip)).collect()
    }

    /// The action on a valid cookie (RFC 9260 §5.2.4).
    pub(crate) fn classify_cookie(&self, cookie: &Cookie) -> CookieAction {
        match self.ends.classify(cookie) {
            CookieAction::Collision if !self.is_at(cookie.remote) => CookieAction::Discard,
            CookieAction::Collision if !self.may_change_peer(cookie) => CookieAction::Outdated,
            CookieAction::Discard if self.is_succeeded_by_cookie(cookie) => CookieAction::Restart,
            action => action,
        }
    }

    /// True if the peer is known to have this transport address.
    fn is_at(&self, remote: SocketAddr) -> bool {
        self.known_remotes().any(|known| known == remote)
    }

    /// True if the peer's tag in a cookie with our tag is newer than the one that we know.
    ///
    /// A peer that answers our INIT and then sends its own INIT may have two tags. Our answer to
    /// that INIT has our tie tags, because the peer's answer was here before (RFC 9260 §5.2.1). A
    /// cookie without them may be of a peer that has restarted since. An association that is open
    /// keeps its tags (§5.3.1): it may have delivered data under them, and a peer that begins again
    /// is one that restarted (§5.2.2).
    ///
    /// Deviation: by §5.2.4, action B, each cookie with our tag changes the peer's, also in
    /// ESTABLISHED.
    fn may_change_peer(&self, cookie: &Cookie) -> bool {
        match self.state {
            State::CookieWait(_) => true,
            State::CookieEchoed { .. } => self.ends.ties(cookie),
            _ => false,
        }
    }

    /// True if the peer restarted before its first COOKIE ECHO arrived, so that this cookie, of its
    /// second INIT, has no tie tags of this association. Otherwise the peer would repeat it until
    /// it gives up.
    ///
    /// The cookie is newer than the one that opened the association, and came back from an address
    /// at which the peer is verified. That proves as much as tie tags do: this INIT was the later
    /// one of a host with that address. It may add no addresses either (RFC 9260 §5.2.2).
    ///
    /// Deviation: by §5.2.4 such a cookie has no action.
    fn is_succeeded_by_cookie(&self, cookie: &Cookie) -> bool {
        self.state.is_open()
            && cookie.local_tag != self.ends.id.local_tag
            && self.opened_by.is_some_and(|opened_by| cookie.created > opened_by)
            && self.is_at(cookie.remote)
            && self.new_addresses(cookie.remote.ip(), &cookie.addresses).is_empty()
    }

    /// Acts on a valid cookie for this association; for `Restart` the endpoint has already replaced
    /// the association.
    pub(crate) fn on_cookie_echo(
        &mut self,
        now: Instant,
        action: CookieAction,
        cookie: &Cookie,
        from: AddressPair,
    ) {
        match action {
            CookieAction::Restart | CookieAction::Outdated | CookieAction::Discard => return,
            CookieAction::Collision => {
                self.ends.id.peer_tag = cookie.peer_tag;
                self.set_initial_rwnd(cookie.peer_rwnd);
                self.agreed.streams_out = cookie.streams_out;
                self.start_receiver(cookie.peer_tsn, cookie.streams_in, now);
            }
            CookieAction::Duplicate => {}
        }
        if !self.state.is_open() {
            self.opened_by = Some(cookie.created);
            let offer = cookie.key_management.as_ref().map(|both| &both.peers);
            if !self.has_begun_with(offer) && !self.begin_key_management(offer) {
                return;
            }
            self.agree(cookie.extensions);
            if self.rx.receiver.is_none() {
                self.start_receiver(cookie.peer_tsn, cookie.streams_in, now);
            }
            if let Some(path) = self.path_of(now, cookie.pair()) {
                self.primary = path;
            }
            self.add_peer_addresses(now, &cookie.addresses, cookie.remote.port());
            self.establish(now, false);
        }
        self.acknowledge_cookie(from);
    }

    /// Answers a cookie that made this association.
    pub(crate) fn acknowledge_cookie(&mut self, to: AddressPair) {
        self.control.push_front(Control::CookieAck { to });
    }

    /// Takes over from an association that its peer restarted. The application sees one association
    /// that has lost everything unacknowledged (RFC 9260 §5.2.4, action A).
    pub(crate) fn succeed(&mut self, now: Instant, mut old: Association) {
        self.events.succeed(old.events);
        self.stats = old.stats;
        // The application knows of one association, which it has admitted or not.
        self.buffers.take_over(&mut old.buffers);
        self.queue.take_priorities(&mut old.queue);
        self.set_receive_buffer(now, old.rx.buffer);
    }

    /// Handles COOKIE ECHO in SHUTDOWN-ACK-SENT (RFC 9260 §5.2.4, exception to action A).
    pub(crate) fn refuse_cookie_while_shutting_down(&mut self) -> bool {
        if !matches!(self.state, State::ShutdownAckSent { .. }) {
            return false;
        }
        self.control.push_back(Control::ShutdownAck { on: self.control_path() });
        self.report(ErrorCause::CookieReceivedWhileShuttingDown);
        true
    }
}
