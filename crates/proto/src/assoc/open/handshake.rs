//! Opening an association (RFC 9260 §5.1): INIT, INIT ACK, COOKIE ECHO, COOKIE ACK.

use std::net::SocketAddr;
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
                self.own_authentication().as_ref(),
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
        let authentication = match self.authentication {
            Some(_) => peer.authentication.read(),
            None => Ok(None),
        };
        let Ok(authentication) = authentication.map_err(|cause| {
            self.abort_with(cause, "a random number of a length that RFC 4895 does not have");
        }) else {
            return;
        };
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
        self.agree_on_authentication(authentication.as_ref());
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
    pub(super) fn set_initial_rwnd(&mut self, a_rwnd: u32) {
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
        self.tell_authentication();
        self.begin_address_requests(now);
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
        self.forget_authentication();
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
}
