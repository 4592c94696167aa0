//! INIT and COOKIE ECHO for an association that exists: collisions and restarts (RFC 9260 §5.2).

use std::net::{IpAddr, SocketAddr};

use manypath_wire::ErrorCause;

use super::cookie::Cookie;
use crate::assoc::Association;
use crate::assoc::send::control::Control;
use crate::assoc::state::State;
use crate::datagram::AddressPair;
use crate::path::Path;
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

impl Association {
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
                cookie.authentication = self.own_offers(cookie.authentication.take());
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
            self.agree_by_cookie(cookie.authentication.as_ref());
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
        self.succeed_authentication(old.authentication);
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
