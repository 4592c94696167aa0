//! The relay's answers to requests.

use std::net::SocketAddr;
use std::time::Duration;

use manypath_proto::Instant;
use turn_types::attribute::{Lifetime, XorRelayedAddress};
use turn_types::stun::attribute::MessageIntegrity;
use turn_types::stun::message::{Message, MessageClass};
use turn_types::stun::prelude::*;

use super::request::Request;
use super::{
    Client, ClientError, ClientEvent, Given, REFRESH_BEFORE, RETRY_FIRST, RETRY_MAX, State,
    TRACE_ASKED_MAX, TRACE_PAUSE, WantedNumber,
};
use crate::RelayRoute;
use crate::mesh::listed;
use crate::message::{Access, MOBILITY_TICKET, NUMBER_MAX, canonical, rendezvous_number};

/// The error 405, Mobility Forbidden (RFC 8016): the relay gives no tickets, as coturn by default.
const MOBILITY_FORBIDDEN: u16 = 405;
/// The longest ticket that is kept, in bytes.
const TICKET_MAX: usize = 512;

impl Client {
    pub(super) fn on_answer(&mut self, now: Instant, message: &Message<'_>) {
        let id = message.transaction_id();
        let Some(signed) = self.transmissions.is_signed(id) else { return };
        let success = message.has_class(MessageClass::Success);
        let proven = self.credentials.prove(message);
        // An answer whose signature is wrong is not the relay's; errors need not be signed.
        let forged = message.has_attribute(MessageIntegrity::TYPE) && signed && !proven;
        if forged || (success && !proven) {
            return;
        }
        let Some(request) = self.transmissions.take(id) else { return };
        // A relay that has lost the allocation still answers this one.
        if request != Request::Overlay {
            self.unanswered = None;
        }
        if success {
            self.credentials.accepted();
            self.on_success(now, request, message);
        } else if self.credentials.renew(message, signed) {
            self.start(now, request);
        } else {
            self.on_error(now, request, ClientError::of(message));
        }
    }

    fn on_success(&mut self, now: Instant, request: Request, message: &Message<'_>) {
        let lifetime = message.attribute::<Lifetime>().map_or(600, |l| l.seconds());
        let lifetime = Duration::from_secs(u64::from(lifetime.clamp(1, 86_400)));
        let refresh_at = now + lifetime.saturating_sub(REFRESH_BEFORE).max(lifetime / 2);
        match request {
            Request::Allocate => {
                let Ok(relayed) = message.attribute::<XorRelayedAddress>() else {
                    let reason = "no relayed address in its answer".to_owned();
                    return self.fail(now, ClientError::Other { code: 0, reason });
                };
                let relayed = canonical(relayed.addr(message.transaction_id()));
                self.ticket = ticket(message);
                self.overlay.begin(now);
                let number = self.number_given(message);
                let given = Given { relayed, access: Access::of(message), number };
                self.allocated(now, given, refresh_at);
            }
            Request::Move => {
                if let State::Moving(given) = self.state {
                    self.ticket = ticket(message);
                    self.allocated(now, given, refresh_at);
                }
            }
            Request::Refresh => {
                if let State::Allocated { given, .. } = self.state {
                    self.state = State::Allocated { given, refresh_at };
                }
            }
            Request::Delete => self.deleted(now),
            Request::Bind(channel) => {
                if self.channels.bound(now, channel) {
                    self.events.push_back(ClientEvent::PeerReady(channel.peer));
                }
            }
            Request::Permit(_) => self.keep.permitted(now),
            Request::Trace(peer) => self.on_trace(now, peer, message),
            Request::Overlay => self.overlay.answered(now, listed(message)),
        }
    }

    /// The number in an answer. The next request wishes it, as after a restart of the relay.
    fn number_given(&mut self, answer: &Message<'_>) -> Option<u32> {
        if self.number == WantedNumber::None {
            return None;
        }
        let number = rendezvous_number(answer).filter(|n| (1..=NUMBER_MAX).contains(n))?;
        self.number = WantedNumber::Wish(number);
        Some(number)
    }

    /// The relay knows us here.
    fn allocated(&mut self, now: Instant, given: Given, refresh_at: Instant) {
        self.state = State::Allocated { given, refresh_at };
        self.retry = RETRY_FIRST;
        let Given { relayed, access, number } = given;
        if self.access == Access::Open && access == Access::Permitted {
            self.keep.need_permission(now);
        }
        self.events.push_back(ClientEvent::Allocated { relayed, access, number });
        let channels: Vec<_> = self.channels.iter().collect();
        channels.into_iter().for_each(|c| self.start(now, Request::Bind(c)));
    }

    pub(super) fn on_error(&mut self, now: Instant, request: Request, error: ClientError) {
        match request {
            // Something of an earlier life with our address: give it back, then ask again.
            Request::Allocate
                if error == ClientError::Mismatch
                    && !self.transmissions.is_pending(Request::Delete) =>
            {
                self.start(now, Request::Delete);
                self.events.push_back(ClientEvent::Failed(error));
            }
            Request::Allocate if self.may_ask_for_ticket && forbids_mobility(&error) => {
                self.may_ask_for_ticket = false;
                self.start(now, request);
            }
            // It knows the ticket no more; what is silent is another matter.
            Request::Move => {
                self.ticket = None;
                let is_silent = error == ClientError::NoAnswer;
                self.fail(now, if is_silent { error } else { ClientError::Mismatch });
            }
            Request::Allocate | Request::Refresh => self.fail(now, error),
            Request::Delete => self.deleted(now),
            Request::Bind(_) | Request::Permit(_) if error == ClientError::Mismatch => {
                self.fail(now, error);
            }
            Request::Permit(peer) => {
                self.keep.refused(now);
                self.events.push_back(ClientEvent::PeerRefused(peer, error));
            }
            Request::Trace(peer) => self.traced(peer, None),
            Request::Overlay => self.overlay.failed(now, &error),
            Request::Bind(channel)
                if error == ClientError::NoAnswer && self.channels.keep(now, channel) => {}
            Request::Bind(channel) => {
                let retry = (error != ClientError::Forbidden).then_some(now + RETRY_MAX);
                self.channels.refused(channel, retry);
                // Packets go without a channel, too, if the relay forwards to this peer at all.
                if self.access == Access::Permitted || retry.is_none() {
                    self.events.push_back(ClientEvent::PeerRefused(channel.peer, error));
                }
            }
        }
    }

    /// The allocation is gone, for good or to be allocated again.
    fn deleted(&mut self, now: Instant) {
        self.state = match self.state {
            State::Closing | State::Closed => State::Closed,
            _ => self.retry_later(now),
        };
    }

    /// There is no allocation.
    fn fail(&mut self, now: Instant, error: ClientError) {
        if matches!(self.state, State::Closing | State::Closed) {
            return;
        }
        let lost = matches!(self.state, State::Allocated { .. } | State::Moving(_))
            && error == ClientError::Mismatch;
        self.transmissions.give_up();
        self.traces.clear();
        // A NAT may have given us another address, and the relay knows the old one.
        if let Some(given) = self.movable()
            && lost
        {
            return self.move_here(now, given);
        }
        // A relay that was restarted gives a new address at once.
        self.state = if error.is_final() {
            State::Failed(None)
        } else if lost {
            State::Failed(Some(now))
        } else {
            self.retry_later(now)
        };
        self.channels.reset();
        self.keep.reset();
        self.events.push_back(ClientEvent::Failed(error));
    }

    fn retry_later(&mut self, now: Instant) -> State {
        let at = now + self.retry;
        self.retry = (self.retry * 2).min(RETRY_MAX);
        State::Failed(Some(at))
    }

    /// The relay answered a request for a route.
    fn on_trace(&mut self, now: Instant, peer: SocketAddr, answer: &Message<'_>) {
        match (RelayRoute::of(answer), self.traces.iter_mut().find(|t| t.peer == peer)) {
            (None, Some(trace)) if trace.asked < TRACE_ASKED_MAX => {
                trace.ask_at = Some(now + TRACE_PAUSE);
            }
            (route, _) => self.traced(peer, route),
        }
    }

    fn traced(&mut self, peer: SocketAddr, route: Option<RelayRoute>) {
        self.traces.retain(|trace| trace.peer != peer);
        self.events.push_back(ClientEvent::Traced(peer, route));
    }
}

fn forbids_mobility(error: &ClientError) -> bool {
    matches!(error, ClientError::Other { code: MOBILITY_FORBIDDEN, .. })
}

/// The ticket in an answer, if the relay gave one.
fn ticket(answer: &Message<'_>) -> Option<Vec<u8>> {
    let attribute = answer.raw_attribute(MOBILITY_TICKET)?;
    let is_usable = (1..=TICKET_MAX).contains(&attribute.value.len());
    is_usable.then(|| attribute.value.to_vec())
}
