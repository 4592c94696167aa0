//! The client's end of one allocation: when it is asked for, refreshed, and asked for again.

mod answers;
mod channels;
mod error;
mod keep;
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
use turn_types::stun::message::Message;
use turn_types::stun::prelude::*;

use crate::RelayRoute;
use crate::credentials::Credentials;
use crate::header::Header;
use crate::mesh::Listed;
use crate::message::{Access, read_channel, read_indication};
use channels::Channels;
pub use error::ClientError;
use keep::Keep;
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
    /// The relay gave us a transport address.
    Allocated {
        /// The address.
        relayed: SocketAddr,
        /// The peers whose packets the relay lets in, which may be fewer than the client asked for.
        access: Access,
        /// The number under which others find the address, from 1 to 999,999, if the client asked
        /// for one and the relay gave it.
        number: Option<u32>,
    },
    /// Packets go to this peer and come from it.
    PeerReady(SocketAddr),
    /// The relay does not forward to this peer.
    PeerRefused(SocketAddr, ClientError),
    /// There is no allocation, not yet, or no longer. It is tried again unless the error is final.
    Failed(ClientError),
    /// The route from the relay to this peer; `None` if the relay does not tell.
    Traced(SocketAddr, Option<RelayRoute>),
}

/// The allocation that a client asks a relay for.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientOptions {
    /// An IPv6 address instead of an IPv4 one.
    pub v6: bool,
    /// The peers whose packets the relay is to let in. With [`Access::Open`] the client gives out
    /// packets of all that come, and can send to peers that have no channel. If the relay does not
    /// grant it, the client asks for a permission for the relay's own address: peers that use the
    /// same relay get through.
    pub access: Access,
    /// The number that the client asks for, with [`Access::Open`] only.
    pub number: WantedNumber,
}

/// The number that a client wants its allocation to have, under which everybody can [look
/// up](crate::Lookup) its address. From then on the client wishes the number that it had last.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum WantedNumber {
    /// None.
    #[default]
    None,
    /// Any that is free.
    Any,
    /// This one, from 1 to 999,999, or another one if it is not free.
    Wish(u32),
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
    /// The access that the client wants.
    access: Access,
    /// The number that the client wants; the last one that it had.
    number: WantedNumber,
    keep: Keep,
    /// The ticket by which the relay lets the allocation follow us to another address (RFC 8016).
    ticket: Option<Vec<u8>>,
    /// True unless the relay has said that it gives no tickets.
    may_ask_for_ticket: bool,
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

/// The address that the relay gave us.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Given {
    relayed: SocketAddr,
    access: Access,
    number: Option<u32>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    Allocating,
    Allocated {
        given: Given,
        refresh_at: Instant,
    },
    /// The relay knows us at another address, and is shown the ticket.
    Moving(Given),
    /// Until the time to try again, if it is tried again.
    Failed(Option<Instant>),
    Closing,
    Closed,
}

impl Client {
    /// Begins to allocate an address.
    pub fn new(now: Instant, user: &str, password: &str, options: ClientOptions) -> Client {
        let mut client = Client {
            credentials: Credentials::new(user, password),
            family: if options.v6 { AddressFamily::IPV6 } else { AddressFamily::IPV4 },
            access: options.access,
            number: options.number,
            keep: Keep::new(now),
            ticket: None,
            may_ask_for_ticket: true,
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
    /// allocation by that. If the relay lets the allocation follow us, it stays.
    pub fn restart(&mut self, now: Instant) {
        self.transmissions.clear();
        self.traces.clear();
        self.credentials.reset();
        if let Some(given) = self.movable() {
            return self.move_here(now, given);
        }
        self.channels.reset();
        self.keep.reset();
        (self.retry, self.unanswered) = (RETRY_FIRST, None);
        self.state = State::Allocating;
        self.start(now, Request::Allocate);
    }

    /// The address that may follow us to another address of ours.
    fn movable(&self) -> Option<Given> {
        let given = match self.state {
            State::Allocated { given, .. } | State::Moving(given) => given,
            _ => return None,
        };
        self.ticket.is_some().then_some(given)
    }

    /// Shows the relay the ticket from where we are now.
    fn move_here(&mut self, now: Instant, given: Given) {
        self.state = State::Moving(given);
        self.unanswered = None;
        self.start(now, Request::Move);
    }

    /// The address that the relay gave us, while it is ours.
    pub fn relayed(&self) -> Option<SocketAddr> {
        match self.state {
            State::Allocated { given, .. } => Some(given.relayed),
            _ => None,
        }
    }

    /// Requests a channel to `peer`; [`ClientEvent::PeerReady`] reports when it is there. Ignores
    /// peers of another address family than the relay's, and those beyond the limit.
    pub fn add_peer(&mut self, now: Instant, peer: SocketAddr) {
        if !self.is_of_family(peer) {
            return;
        }
        if let Some(channel) = self.channels.add(now, peer)
            && self.relayed().is_some()
        {
            self.start(now, Request::Bind(channel));
        }
    }

    /// Does the same for a peer that nobody knows, unless half of the channels are in use, so that
    /// strangers leave the other half to known peers.
    pub fn add_stranger(&mut self, now: Instant, peer: SocketAddr) {
        if self.channels.has_room_for_strangers(now) {
            self.add_peer(now, peer);
        }
    }

    /// Gives up the channel to `peer`. Its place can be used again. Its number cannot, for 16
    /// minutes: the relay may keep the channel for ten, and RFC 8656 §12 asks for five more.
    pub fn remove_peer(&mut self, peer: SocketAddr) {
        self.channels.remove(peer);
    }

    /// The header that makes `len` bytes a packet to `peer`. `None` if there is no channel to it
    /// (yet), unless the client wants an [open](Access::Open) allocation: then it is the header of
    /// a Send indication.
    pub fn header(&mut self, now: Instant, peer: SocketAddr, len: usize) -> Option<Header> {
        self.relayed()?;
        let header = match self.channels.send(now, peer) {
            Some(channel) => Header::of_channel(channel.number, len),
            None if self.access == Access::Open && self.is_of_family(peer) => {
                Header::of_send(peer, len)?
            }
            None => return None,
        };
        self.unanswered.get_or_insert(now);
        self.keep.spoke(now);
        Some(header)
    }

    fn is_of_family(&self, peer: SocketAddr) -> bool {
        peer.is_ipv6() == (self.family == AddressFamily::IPV6)
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

    /// A NAT may have forgotten us: the relay is asked at once if it still knows us, where peers
    /// come through it.
    pub fn doubt(&mut self, now: Instant) {
        self.keep.doubt(now);
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
            self.keep.heard(now);
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

    /// Takes a packet of `peer` that came outside of a channel (RFC 8656 §11.6). If there is one,
    /// it is as good as one that came through it, but the relay has lost the channel.
    fn on_indication(&mut self, now: Instant, peer: SocketAddr, payload: Range<usize>) -> Received {
        let has_channel = self.channels.receive_outside(now, peer);
        let is_wanted = has_channel || self.access == Access::Open;
        if self.relayed().is_none() || !is_wanted {
            return Received::Other;
        }
        self.unanswered = None;
        self.keep.heard(now);
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
                silent.into_iter().chain(self.keep_alive_at()).chain([refresh_at]).min()
            }
            State::Failed(retry_at) => retry_at,
            _ => None,
        };
        let traces = self.traces.iter().filter_map(|trace| trace.ask_at);
        let requests = self.transmissions.poll_timeout().into_iter().chain(traces).chain(own);
        if self.relayed().is_none() {
            return requests.min();
        }
        let (channels, overlay) = (self.channels.poll_timeout(), self.overlay.poll_timeout());
        requests.chain(channels).chain(overlay).chain(self.keep.permit_at()).min()
    }

    /// When to ask the relay if it still knows us, so that it and a NAT on the way hear of us.
    fn keep_alive_at(&self) -> Option<Instant> {
        (self.access == Access::Open).then(|| self.keep.ask_at())
    }

    /// Sends again, refreshes, gives up, as is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(overdue) = self.transmissions.handle_timeout(now) {
            match overdue {
                // Not given up yet, but somebody may be waiting to hear what is wrong.
                Overdue::Repeated(Request::Allocate, SAID_AT) => {
                    self.events.push_back(ClientEvent::Failed(ClientError::NoAnswer));
                }
                Overdue::Repeated(..) => self.keep.spoke(now),
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
                let is_quiet = self.keep_alive_at().is_some_and(|at| at <= now);
                if silent || is_quiet || refresh_at <= now {
                    self.unanswered = None;
                    self.keep.asked();
                    self.start(now, Request::Refresh);
                }
            }
            _ => {}
        }
        if self.relayed().is_some() {
            self.bind_due(now);
            self.trace_due(now);
            if let Some(relayed) = self.relayed()
                && self.keep.take_due(now)
            {
                self.start(now, Request::Permit(relayed));
            }
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
        let message = request.message(self);
        let id = message.transaction_id();
        self.keep.spoke(now);
        let (bytes, signed) = self.credentials.finish(message);
        self.transmissions.start(now, request, id, bytes, signed);
    }
}

#[cfg(test)]
mod tests;
