//! The client's end of one allocation: when it is asked for, refreshed, and asked for again.

mod channels;
mod error;
mod overlay;
mod request;
mod transmissions;

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use manypath_proto::Instant;
use turn_types::AddressFamily;
use turn_types::attribute::{Lifetime, XorRelayedAddress};
use turn_types::stun::attribute::MessageIntegrity;
use turn_types::stun::message::{Message, MessageClass};
use turn_types::stun::prelude::*;

use crate::RelayRoute;
use crate::credentials::Credentials;
use crate::mesh::{Listed, listed};
use crate::message::{canonical, channel_header, read_channel, read_indication};
use channels::Channels;
pub use error::ClientError;
use overlay::Overlay;
use request::Request;
use transmissions::{Overdue, Transmissions};

/// The transmission of an allocation request at which the client reports that the relay does not
/// answer, after 3.5 s.
const SAID_AT: u32 = 4;
/// An allocation is refreshed this long before it ends, or at half of its lifetime if that is
/// sooner.
const REFRESH_BEFORE: Duration = Duration::from_secs(60);
/// If the relay is silent for this time after we sent something through it, the client asks if it
/// still knows us: it may have restarted.
const SILENCE: Duration = Duration::from_secs(5);
/// First and longest wait before a failed allocation is tried again; it doubles.
const RETRY_FIRST: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Wait before a relay that is tracing a route is asked again, and how often it is asked.
const TRACE_PAUSE: Duration = Duration::from_secs(1);
const TRACE_ASKED_MAX: u32 = 30;

/// An event of the allocation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientEvent {
    /// The relay gave us this transport address.
    Allocated(SocketAddr),
    /// Packets go to this peer and come from it.
    PeerReady(SocketAddr),
    /// The relay does not forward to this peer.
    PeerRefused(SocketAddr, ClientError),
    /// There is no allocation, not yet, or no longer. It is tried again unless the error is final.
    Failed(ClientError),
    /// The route from the relay to this peer; `None` if the relay does not tell.
    Traced(SocketAddr, Option<RelayRoute>),
}

/// The kind of a datagram from the relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Received {
    /// The part `payload` of it came from `peer`.
    Data {
        /// The sender.
        peer: SocketAddr,
        /// Where in the datagram its payload is.
        payload: Range<usize>,
    },
    /// An answer, or nothing of use.
    Other,
}

/// One allocation on a relay, asked for, kept alive, and asked for again when the relay has lost
/// it.
pub struct Client {
    credentials: Credentials,
    family: AddressFamily,
    state: State,
    channels: Channels,
    transmissions: Transmissions,
    events: VecDeque<ClientEvent>,
    retry: Duration,
    /// Since when nothing has come back for what we send.
    unanswered: Option<Instant>,
    /// Routes that the relay is still tracing.
    traces: Vec<Tracing>,
    overlay: Overlay,
}

/// A route that the relay is tracing.
struct Tracing {
    peer: SocketAddr,
    /// How often the relay was asked.
    asked: u32,
    /// When it is asked again; `None` while a request is under way.
    ask_at: Option<Instant>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (user, state) = (self.credentials.user(), &self.state);
        f.debug_struct("Client").field("user", &user).field("state", state).finish_non_exhaustive()
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    Allocating,
    Allocated {
        relayed: SocketAddr,
        refresh_at: Instant,
    },
    /// Until the time to try again, if it is tried again.
    Failed(Option<Instant>),
    Closing,
    Closed,
}

impl Client {
    /// Begins to allocate an address of the relay's family (IPv4, or IPv6 if `v6`).
    pub fn new(now: Instant, user: &str, password: &str, v6: bool) -> Client {
        let mut client = Client {
            credentials: Credentials::new(user, password),
            family: if v6 { AddressFamily::IPV6 } else { AddressFamily::IPV4 },
            state: State::Allocating,
            channels: Channels::default(),
            transmissions: Transmissions::default(),
            events: VecDeque::new(),
            retry: RETRY_FIRST,
            unanswered: None,
            traces: Vec::new(),
            overlay: Overlay::default(),
        };
        client.start(now, Request::Allocate);
        client
    }

    /// Restarts with the same peers, as from another address of ours: the relay knows an
    /// allocation by that.
    pub fn restart(&mut self, now: Instant) {
        self.channels.reset();
        self.transmissions.clear();
        self.traces.clear();
        self.credentials.reset();
        (self.retry, self.unanswered) = (RETRY_FIRST, None);
        self.state = State::Allocating;
        self.start(now, Request::Allocate);
    }

    /// The address that the relay gave us, while it is ours.
    pub fn relayed(&self) -> Option<SocketAddr> {
        match self.state {
            State::Allocated { relayed, .. } => Some(relayed),
            _ => None,
        }
    }

    /// Requests a channel to `peer`; [`ClientEvent::PeerReady`] reports when it is there. Ignores
    /// peers of another address family than the relay's, and those beyond the limit.
    pub fn add_peer(&mut self, now: Instant, peer: SocketAddr) {
        if peer.is_ipv6() != (self.family == AddressFamily::IPV6) {
            return;
        }
        if let Some(channel) = self.channels.add(peer)
            && self.relayed().is_some()
        {
            self.start(now, Request::Bind(channel));
        }
    }

    /// The header that makes `len` bytes a packet to `peer`; `None` if there is no channel to it
    /// (yet).
    pub fn header(&mut self, now: Instant, peer: SocketAddr, len: usize) -> Option<[u8; 4]> {
        self.relayed()?;
        let channel = self.channels.send(now, peer)?;
        self.unanswered.get_or_insert(now);
        Some(channel_header(channel.number, len))
    }

    /// Asks for the route from the relay to a peer that there is a way to. The answer is an event,
    /// after some seconds.
    pub fn trace(&mut self, now: Instant, peer: SocketAddr) {
        if self.relayed().is_none() || self.traces.iter().any(|t| t.peer == peer) {
            return;
        }
        self.traces.push(Tracing { peer, asked: 1, ask_at: None });
        self.start(now, Request::Trace(peer));
    }

    /// Asks the relay for the other ones that it knows, from the next allocation on, every two
    /// seconds.
    pub fn follow_relays(&mut self) {
        self.overlay.follow();
    }

    /// The relays that the relay listed, if it answered since this was asked last.
    pub fn take_listed(&mut self) -> Option<Vec<Listed>> {
        self.overlay.take_listed()
    }

    /// Gives the allocation back. What there is to send is the last.
    pub fn close(&mut self, now: Instant) {
        if self.relayed().is_none() {
            self.state = State::Closed;
            self.transmissions.give_up();
            return;
        }
        self.state = State::Closing;
        self.transmissions.give_up();
        self.start(now, Request::Delete);
    }

    /// Takes a datagram that came from the relay.
    pub fn handle(&mut self, now: Instant, datagram: &[u8]) -> Received {
        if let Some((channel, payload)) = read_channel(datagram) {
            let allocated = self.relayed().is_some();
            let peer = allocated.then(|| self.channels.receive(channel)).flatten();
            let Some(peer) = peer else { return Received::Other };
            self.unanswered = None;
            return Received::Data { peer, payload };
        }
        let Ok(message) = Message::from_bytes(datagram) else { return Received::Other };
        if message.is_response() {
            self.on_answer(now, &message);
        } else if let Some((peer, payload)) = read_indication(&message) {
            return self.on_indication(now, peer, payload);
        }
        Received::Other
    }

    /// Takes a packet of `peer` that came outside of a channel (RFC 8656 §11.6). It is as good as
    /// one that came through its channel, but the relay has lost that.
    fn on_indication(&mut self, now: Instant, peer: SocketAddr, payload: Range<usize>) -> Received {
        if self.relayed().is_none() || !self.channels.receive_outside(now, peer) {
            return Received::Other;
        }
        self.unanswered = None;
        self.bind_due(now);
        Received::Data { peer, payload }
    }

    /// The next datagram for the relay.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.transmissions.poll_transmit()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = match self.state {
            State::Allocated { refresh_at, .. }
                if !self.transmissions.is_pending(Request::Refresh) =>
            {
                let silent = self.unanswered.map(|since| since + SILENCE);
                Some(silent.map_or(refresh_at, |at| at.min(refresh_at)))
            }
            State::Failed(retry_at) => retry_at,
            _ => None,
        };
        let (channels, overlay) = if self.relayed().is_some() {
            (self.channels.poll_timeout(), self.overlay.poll_timeout())
        } else {
            (None, None)
        };
        let traces = self.traces.iter().filter_map(|trace| trace.ask_at);
        let requests = self.transmissions.poll_timeout().into_iter().chain(channels);
        requests.chain(traces).chain(overlay).chain(own).min()
    }

    /// Sends again, refreshes, gives up, as is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(overdue) = self.transmissions.handle_timeout(now) {
            match overdue {
                // Not given up yet, but somebody may be waiting to hear what is wrong.
                Overdue::Repeated(Request::Allocate, SAID_AT) => {
                    self.events.push_back(ClientEvent::Failed(ClientError::NoAnswer));
                }
                Overdue::Repeated(..) => {}
                Overdue::GivenUp(request) => self.on_error(now, request, ClientError::NoAnswer),
            }
        }
        match self.state {
            State::Failed(Some(at)) if at <= now => {
                self.state = State::Allocating;
                self.start(now, Request::Allocate);
            }
            State::Allocated { refresh_at, .. }
                if !self.transmissions.is_pending(Request::Refresh) =>
            {
                let silent = self.unanswered.is_some_and(|since| since + SILENCE <= now);
                if silent || refresh_at <= now {
                    self.unanswered = None;
                    self.start(now, Request::Refresh);
                }
            }
            _ => {}
        }
        if self.relayed().is_some() {
            self.bind_due(now);
            self.trace_due(now);
            if self.overlay.take_due(now) {
                self.start(now, Request::Overlay);
            }
        }
    }

    fn trace_due(&mut self, now: Instant) {
        let due = |trace: &&mut Tracing| trace.ask_at.is_some_and(|at| at <= now);
        while let Some(trace) = self.traces.iter_mut().find(due) {
            trace.ask_at = None;
            trace.asked += 1;
            let request = Request::Trace(trace.peer);
            self.start(now, request);
        }
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

    fn bind_due(&mut self, now: Instant) {
        while let Some(channel) = self.channels.due(now) {
            self.start(now, Request::Bind(channel));
        }
    }

    /// Sends a request, and again until it is answered.
    fn start(&mut self, now: Instant, request: Request) {
        if let Request::Bind(channel) = request {
            self.channels.binding(now, channel);
        }
        let message = request.message(self.family);
        let id = message.transaction_id();
        let (bytes, signed) = self.credentials.finish(message);
        self.transmissions.start(now, request, id, bytes, signed);
    }

    fn on_answer(&mut self, now: Instant, message: &Message<'_>) {
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
                self.state = State::Allocated { relayed, refresh_at };
                self.retry = RETRY_FIRST;
                self.overlay.begin(now);
                self.events.push_back(ClientEvent::Allocated(relayed));
                let channels: Vec<_> = self.channels.iter().collect();
                channels.into_iter().for_each(|c| self.start(now, Request::Bind(c)));
            }
            Request::Refresh => {
                if let State::Allocated { relayed, .. } = self.state {
                    self.state = State::Allocated { relayed, refresh_at };
                }
            }
            Request::Delete => self.deleted(now),
            Request::Bind(channel) => {
                if self.channels.bound(now, channel) {
                    self.events.push_back(ClientEvent::PeerReady(channel.peer));
                }
            }
            Request::Trace(peer) => self.on_trace(now, peer, message),
            Request::Overlay => self.overlay.answered(now, listed(message)),
        }
    }

    fn on_error(&mut self, now: Instant, request: Request, error: ClientError) {
        match request {
            // Something of an earlier life with our address: give it back, then ask again.
            Request::Allocate
                if error == ClientError::Mismatch
                    && !self.transmissions.is_pending(Request::Delete) =>
            {
                self.start(now, Request::Delete);
                self.events.push_back(ClientEvent::Failed(error));
            }
            Request::Allocate | Request::Refresh => self.fail(now, error),
            Request::Delete => self.deleted(now),
            Request::Bind(_) if error == ClientError::Mismatch => self.fail(now, error),
            Request::Trace(peer) => self.traced(peer, None),
            Request::Overlay => self.overlay.failed(now, &error),
            Request::Bind(channel)
                if error == ClientError::NoAnswer && self.channels.keep(now, channel) => {}
            Request::Bind(channel) => {
                let retry = (error != ClientError::Forbidden).then_some(now + RETRY_MAX);
                self.channels.refused(channel, retry);
                self.events.push_back(ClientEvent::PeerRefused(channel.peer, error));
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
        // A relay that was restarted gives a new address at once.
        let lost = self.relayed().is_some() && error == ClientError::Mismatch;
        self.state = if error.is_final() {
            State::Failed(None)
        } else if lost {
            State::Failed(Some(now))
        } else {
            self.retry_later(now)
        };
        self.transmissions.give_up();
        self.traces.clear();
        self.channels.reset();
        self.events.push_back(ClientEvent::Failed(error));
    }

    fn retry_later(&mut self, now: Instant) -> State {
        let at = now + self.retry;
        self.retry = (self.retry * 2).min(RETRY_MAX);
        State::Failed(Some(at))
    }
}

#[cfg(test)]
mod tests;
