//! The key management of a protected association: negotiation, its messages, rekeying, and its
//! time limits.

use std::sync::Arc;

use bytes::Bytes;
use manypath_dtls::FIRST_EPOCH;
use manypath_dtls::manage::{Agreement, KeyAction, KeyFailure, KeyManagement, Role};
use manypath_wire::{DtlsKeyManagement, DtlsKeyManagementFlags, ErrorCause, Tsn};

use super::protection::{KEY_MANAGEMENT_PPID, Protection, agree};
use crate::assoc::{AssocTimer, Association, Timer};
use crate::config::Config;
use crate::event::AssocClosed;
use crate::time::Instant;
use crate::tx::SendOptions;

/// Longest message of the peer's key management, in bytes.
const MAX_KEY_MESSAGE: usize = 1 << 17;

/// The DTLS Key Management parameter of an end that begins an association, or that answers.
pub(crate) fn own_parameter(
    management: &dyn KeyManagement,
    begins: bool,
    tie_breaker: u32,
) -> Option<DtlsKeyManagement> {
    let roles = management.roles(begins);
    let mut flags = DtlsKeyManagementFlags::default();
    if roles.client {
        flags = flags | DtlsKeyManagementFlags::CLIENT;
    }
    if roles.server {
        flags = flags | DtlsKeyManagementFlags::SERVER;
    }
    DtlsKeyManagement::new(tie_breaker, flags, management.methods())
}

/// The configuration of an association. A protected one sends no data to unverified addresses:
/// those of a handshake, and those that packets come from, may be an attacker's.
pub(crate) fn config_with(mut config: Arc<Config>, is_protected: bool) -> Arc<Config> {
    if is_protected && config.data_before_verification {
        Arc::make_mut(&mut config).data_before_verification = false;
    }
    config
}

impl Association {
    /// Makes the association a protected one, with this parameter of ours or a new one.
    pub(crate) fn protect(
        &mut self,
        management: Arc<dyn KeyManagement>,
        own: Option<DtlsKeyManagement>,
    ) {
        let tie_breaker = self.rng.fork("tie breaker").next_u32();
        let own = own.or_else(|| own_parameter(&*management, true, tie_breaker));
        let Some(own) = own else { return };
        self.protection = Some(Box::new(Protection::new(management, own)));
        // Only key messages leave until the peer is authenticated.
        self.queue.hold(true);
    }

    /// Our parameter, for INIT and INIT ACK.
    pub(crate) fn key_management(&self) -> Option<&DtlsKeyManagement> {
        self.protection.as_ref().map(|p| &p.own)
    }

    /// Begins the key management with the peer's parameter, or `None` if the peer has none. Returns
    /// false if that ends the association.
    pub(crate) fn begin_key_management(&mut self, peers: Option<&DtlsKeyManagement>) -> bool {
        let tags = (self.ends.id.local_tag, self.ends.id.peer_tag);
        let Some(p) = &mut self.protection else { return true };
        let (role, method) = match agree(&p.own, peers) {
            Ok(agreed) => agreed,
            Err(cause) => {
                let reason = refusal(&cause).unwrap_or_default().to_owned();
                self.push_abort(Some(cause));
                self.close(AssocClosed::NotProtected { reason, by_peer: false });
                return false;
            }
        };
        let Some(peers) = peers else { return true };
        let own = p.own.raw().clone();
        // Received bytes are a slice of their datagram, so copy them.
        let theirs = Bytes::copy_from_slice(peers.raw());
        p.peers = DtlsKeyManagement::from_raw(theirs.clone());
        let (parameters, tags) = match role {
            Role::Client => ((own, theirs), tags),
            Role::Server => ((theirs, own), (tags.1, tags.0)),
        };
        p.forget_keys();
        p.session = Some(p.management.begin(Agreement::new(role, method, parameters, tags)));
        true
    }

    /// True if the key management has begun with this parameter of the peer, or needs none.
    pub(crate) fn has_begun_with(&self, peers: Option<&DtlsKeyManagement>) -> bool {
        self.protection.as_ref().is_none_or(|p| p.session.is_some() && p.peers.as_ref() == peers)
    }

    /// Forgets the key management, because the handshake begins again.
    pub(crate) fn forget_key_management(&mut self) {
        let Some(p) = self.protection.take() else { return };
        self.protect(p.management, Some(p.own));
    }

    /// Carries out the actions that the key management asks for.
    #[inline]
    pub(crate) fn run_key_management(&mut self, now: Instant) {
        if self.protection.is_some() {
            self.take_key_messages(now);
            self.run_key_actions(now);
        }
    }

    #[inline(never)]
    fn run_key_actions(&mut self, now: Instant) {
        while let Some(p) = self.protection.as_mut()
            && let Some(action) = p.session.as_mut().and_then(|session| session.poll())
        {
            match action {
                KeyAction::Send(message) => {
                    let ppid = KEY_MANAGEMENT_PPID;
                    let options = SendOptions { ppid, ..SendOptions::default() };
                    self.queue.push_urgent(options, message, p.sealing.is_none());
                }
                KeyAction::OpenWith(keys) => p.opening().install(keys),
                KeyAction::SealWith(keys) => {
                    let is_first = p.sealing.is_none();
                    p.sealing = Some(keys);
                    self.stats.keys_replaced += u64::from(!is_first);
                    if is_first && self.is_disturbed() {
                        let reason = "unprotected data came that is none of the key management";
                        return self.fail_key_management(KeyFailure::new(reason));
                    }
                    self.renew_deadlines(now);
                }
                KeyAction::Authenticated(peer) => p.peer = Some(peer),
                KeyAction::Fail(failure) => return self.fail_key_management(failure),
                _ => {}
            }
        }
        self.show_keys(now);
        self.release_data(now);
    }

    /// Sends a protected packet as soon as there are keys, even without data: it shows the peer
    /// that this end has them, and the answer shows that the peer has them.
    fn show_keys(&mut self, now: Instant) {
        let is_open = self.state.is_open();
        let Some(p) = self.protection.as_mut().filter(|p| is_open && p.sealing.is_some()) else {
            return;
        };
        if !std::mem::replace(&mut p.has_shown_keys, true) {
            self.probe_now(now, self.primary);
        }
    }

    /// Passes received messages to the key management.
    pub(super) fn take_key_messages(&mut self, now: Instant) {
        while let Some(r) = self.rx.receiver.as_mut()
            && let Some(part) = r.inbound.pop_aside()
        {
            let Some(p) = &mut self.protection else { return };
            let whole = part.end_of_message;
            for chunk in part.payload {
                p.message.extend_from_slice(&chunk);
            }
            if p.message.len() > MAX_KEY_MESSAGE {
                let reason = "the peer sent a message of key management that is too long";
                return self.fail_key_management(KeyFailure::new(reason));
            }
            if whole {
                let message = std::mem::take(&mut p.message);
                if let Some(session) = &mut p.session {
                    session.handle_message(message.into());
                }
                // Act on each message by itself: once the first keys are in use, no unprotected one
                // may wait.
                self.run_key_actions(now);
            }
        }
    }

    /// True if more data came unprotected than the key management has taken. Somebody between the
    /// ends has then used up TSNs of the peer's data, which would be missing.
    fn is_disturbed(&self) -> bool {
        self.rx.receiver.as_ref().is_some_and(|r| r.tracker.has_gaps() || !r.inbound.is_clear())
    }

    /// Lets the application's data flow once the association is open and its peer authenticated.
    fn release_data(&mut self, now: Instant) {
        let is_open = self.state.is_open();
        let Some(p) = self.protection.as_mut().filter(|p| is_open && !p.is_released) else {
            return;
        };
        if p.peer.is_none() || p.sealing.is_none() {
            return;
        }
        p.is_released = true;
        let incoming = p.is_incoming;
        self.queue.hold(false);
        self.open_for_data(now, incoming);
        self.continue_shutdown(now);
    }

    /// True if the application's data may flow.
    pub(crate) fn is_released(&self) -> bool {
        self.protection.as_ref().is_none_or(|p| p.is_released)
    }

    /// Begins to replace the keys if it is time.
    pub(crate) fn rekey_if_due(&mut self, now: Instant) {
        let Some(p) = self.protection.as_mut() else { return };
        let limit = u64::from(self.config.rekey_packets);
        if p.sealing.as_ref().is_some_and(|keys| keys.sealed() >= limit)
            && let Some(session) = &mut p.session
        {
            session.rekey();
            self.run_key_actions(now);
        }
    }

    // ---- Time limits ----

    /// Starts the time within which the peer must show its keys. It is no longer than the
    /// application's own limit, so that an application that waits less also learns the reason.
    pub(crate) fn start_key_timer(&mut self, now: Instant) {
        if let Some(p) = &mut self.protection {
            let at = now + self.config.key_timeout;
            p.deadlines.confirm = Some(self.open_until.map_or(at, |until| until.min(at)));
        }
        self.set_key_timer();
    }

    /// Notes that the peer has shown its keys. Paths are probed again if the peer may have had no
    /// keys to open the first probes.
    pub(super) fn confirm_keys(&mut self, now: Instant) {
        let Some(p) = &mut self.protection else { return };
        p.deadlines.confirm = None;
        if p.repeated_in_plain {
            self.verify_paths(now);
        }
        self.set_key_timer();
    }

    /// Renews the time limits, because new keys are in use.
    fn renew_deadlines(&mut self, now: Instant) {
        let Some(p) = &mut self.protection else { return };
        let has_old = p.sealing.as_ref().is_some_and(|keys| keys.epoch() > FIRST_EPOCH);
        p.deadlines.drop_old = has_old.then(|| now + self.config.old_keys_kept);
        p.deadlines.renew = self.config.rekey_interval.map(|after| now + after);
        self.set_key_timer();
    }

    /// Sets the timer to the earliest of the time limits.
    pub(super) fn set_key_timer(&mut self) {
        let timer = Timer::Assoc(AssocTimer::Keys);
        if self.closed().is_some() {
            return;
        }
        let Some(p) = self.protection.as_ref() else { return };
        match p.deadlines.next() {
            Some(at) => self.timers.set(timer, at),
            None => self.timers.stop(timer),
        }
    }

    /// Acts on the time limits that have passed.
    pub(crate) fn on_key_timer(&mut self, now: Instant) {
        let Some(p) = self.protection.as_mut() else { return };
        let is_due = |at: &mut Instant| *at <= now;
        if p.deadlines.confirm.take_if(is_due).is_some() {
            let reason = match (p.sealing.is_some(), self.stats.records_refused > 0) {
                (true, true) => "nothing that the peer sends can be opened: it has other keys",
                (true, false) => "the peer sent nothing protected in time",
                (false, _) => "the peer did not complete the key management in time",
            };
            return self.fail_key_management(KeyFailure::new(reason));
        }
        if p.deadlines.drop_old.take_if(is_due).is_some() {
            p.drop_old_keys();
        }
        if p.deadlines.renew.take_if(is_due).is_some() {
            p.deadlines.renew = self.config.rekey_interval.map(|after| now + after);
            if let Some(session) = &mut p.session {
                session.rekey();
            }
        }
        if p.deadlines.ask.take_if(is_due).is_some() {
            self.ask_peer(now);
        }
        self.run_key_actions(now);
        self.set_key_timer();
    }

    fn fail_key_management(&mut self, failure: KeyFailure) {
        let KeyFailure { reason, by_peer } = failure;
        // The peer's user reads this text.
        let text = format!("not protected: {reason}");
        let text = Bytes::copy_from_slice(&text.as_bytes()[..text.len().min(256)]);
        self.push_abort(Some(ErrorCause::UserInitiatedAbort(text)));
        self.close(AssocClosed::NotProtected { reason, by_peer });
    }

    /// Notes that a chunk is sent again which may carry a message of the key management.
    pub(crate) fn note_repeated(&mut self, tsn: Tsn) {
        let was_in_plain = self.was_in_plain(tsn);
        if let Some(p) = self.protection.as_mut().filter(|p| p.sealing.is_some()) {
            p.repeated_in_plain |= was_in_plain;
        }
    }

    /// Notes that a message of the key management was sent before there were keys; `tsn` is its
    /// last TSN so far.
    pub(crate) fn note_in_plain(&mut self, tsn: Tsn) {
        if let Some(p) = &mut self.protection {
            p.last_in_plain = Some(tsn);
        }
    }
}

/// An error cause of the negotiation, in words for a user; `None` for any other cause.
pub(crate) fn refusal(cause: &ErrorCause) -> Option<&'static str> {
    match cause {
        ErrorCause::MissingDtlsChunkSupport => Some("one end does not protect associations"),
        ErrorCause::NoCommonDtlsKeyManagementMethod => {
            Some("the ends have no way of agreeing on keys in common")
        }
        ErrorCause::DtlsKeyManagementTieBreakerCollision => {
            Some("both ends drew the same number; try again")
        }
        ErrorCause::IncompatibleDtlsKeyManagementRoles => {
            Some("both ends want to be the client of the key management, or both its server")
        }
        _ => None,
    }
}
