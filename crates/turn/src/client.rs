//! The client's end of one allocation.

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use manypath_proto::Instant;
use turn_types::AddressFamily;
use turn_types::attribute::{
    ChannelNumber, Lifetime, RequestedAddressFamily, RequestedTransport, XorPeerAddress,
    XorRelayedAddress,
};
use turn_types::message::{ALLOCATE, CHANNEL_BIND, REFRESH};
use turn_types::stun::attribute::{ErrorCode, MessageIntegrity, Nonce, Realm, Username};
use turn_types::stun::message::{
    IntegrityKey, Message, MessageClass, MessageWriteVec, TransactionId,
};
use turn_types::stun::prelude::*;

use crate::message::{
    CHANNELS, UDP, add, canonical, challenge, channel_header, long_term_key, read_channel, sign,
};

/// Wait for an answer after the first transmission of a request; it doubles with each (RFC 8489
/// §6.2.1).
const RTO: Duration = Duration::from_millis(500);
/// Transmissions of a request. The wait after the last is as long as all before together.
const TRANSMISSIONS: u32 = 6;
/// The transmission of an allocation request at which the client reports that the relay does not
/// answer, after 3.5 s.
const SAID_AT: u32 = 4;
/// Maximum number of consecutive answers 438 (Stale Nonce) that are followed.
const STALE_MAX: u32 = 3;
/// Interval at which a channel is bound again. This also renews its permission, which lasts 300 s
/// (RFC 8656 §9).
const REBIND: Duration = Duration::from_secs(240);
/// An allocation is refreshed this long before it ends, or at half of its lifetime if that is
/// sooner.
const REFRESH_BEFORE: Duration = Duration::from_secs(60);
/// If the relay is silent for this time after we sent something through it, the client asks if it
/// still knows us: it may have restarted.
const SILENCE: Duration = Duration::from_secs(5);
/// First and longest wait before a failed allocation is tried again; it doubles.
const RETRY_FIRST: Duration = Duration::from_secs(2);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// Peers at most: as many paths as an association may have.
const PEERS_MAX: usize = 32;

/// Why a relay cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// 401, or 441: the user or the password is wrong.
    #[error("the relay does not accept this user and password (error 401)")]
    NotAuthorised,
    /// 403: a rule of the relay forbids it.
    #[error(
        "the relay refuses to forward to this peer (error 403); its operator decides which \
         addresses it forwards to"
    )]
    Forbidden,
    /// 437: the relay knows no allocation of ours, or one that it does not give back.
    #[error("the relay and we disagree about what is allocated (error 437)")]
    Mismatch,
    /// 440: no address of this family.
    #[error("the relay has no address of this family to give (error 440)")]
    AddressFamily,
    /// 486: the user has as many allocations as allowed.
    #[error(
        "this user has as many allocations on the relay as it allows (error 486); end other \
         programs that use it, or wait until theirs expire"
    )]
    Quota,
    /// 508: the relay is full.
    #[error("the relay has no room left (error 508); try again later")]
    Full,
    /// Another error.
    #[error("the relay refuses with error {code}: {reason}")]
    Other {
        /// The error code of STUN.
        code: u16,
        /// The relay's words.
        reason: String,
    },
    /// Nothing came back.
    #[error("the relay does not answer; check that it runs, its address, and that UDP reaches it")]
    NoAnswer,
}

impl ClientError {
    fn of(message: &Message<'_>) -> ClientError {
        let Ok(error) = message.attribute::<ErrorCode>() else {
            return ClientError::Other { code: 0, reason: "no error code".to_owned() };
        };
        match error.code() {
            ErrorCode::UNAUTHORIZED | ErrorCode::WRONG_CREDENTIALS => ClientError::NotAuthorised,
            ErrorCode::FORBIDDEN => ClientError::Forbidden,
            ErrorCode::ALLOCATION_MISMATCH => ClientError::Mismatch,
            ErrorCode::ADDRESS_FAMILY_NOT_SUPPORTED => ClientError::AddressFamily,
            ErrorCode::ALLOCATION_QUOTA_REACHED => ClientError::Quota,
            ErrorCode::INSUFFICIENT_CAPACITY => ClientError::Full,
            code => {
                // What a stranger says may end up on a terminal.
                let words = error.reason().chars().filter(|c| !c.is_control()).take(80);
                ClientError::Other { code, reason: words.collect() }
            }
        }
    }

    /// True if trying again cannot help.
    pub fn is_final(&self) -> bool {
        matches!(self, ClientError::NotAuthorised)
    }
}

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
    user: String,
    password: String,
    family: AddressFamily,
    auth: Option<Auth>,
    state: State,
    peers: Vec<Peer>,
    pending: Vec<Pending>,
    out: VecDeque<Vec<u8>>,
    events: VecDeque<ClientEvent>,
    stale_nonces: u32,
    retry: Duration,
    /// Since when nothing has come back for what we send.
    unanswered: Option<Instant>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (user, state) = (&self.user, &self.state);
        f.debug_struct("Client").field("user", user).field("state", state).finish_non_exhaustive()
    }
}

struct Auth {
    realm: String,
    nonce: String,
    key: IntegrityKey,
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

struct Peer {
    address: SocketAddr,
    channel: u16,
    /// Packets may go.
    ready: bool,
    /// When to bind the channel next; `None` while it is being bound, or forbidden.
    bind_at: Option<Instant>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Request {
    Allocate,
    Refresh,
    /// Refresh with a lifetime of 0.
    Delete,
    /// The channel of this peer.
    Bind(usize),
}

struct Pending {
    request: Request,
    id: TransactionId,
    bytes: Vec<u8>,
    signed: bool,
    sent: u32,
    next_at: Instant,
}

impl Client {
    /// Begins to allocate an address of the relay's family (IPv4, or IPv6 if `v6`).
    pub fn new(now: Instant, user: &str, password: &str, v6: bool) -> Client {
        let mut client = Client {
            user: user.to_owned(),
            password: password.to_owned(),
            family: if v6 { AddressFamily::IPV6 } else { AddressFamily::IPV4 },
            auth: None,
            state: State::Allocating,
            peers: Vec::new(),
            pending: Vec::new(),
            out: VecDeque::new(),
            events: VecDeque::new(),
            stale_nonces: 0,
            retry: RETRY_FIRST,
            unanswered: None,
        };
        client.start(now, Request::Allocate);
        client
    }

    /// Restarts with the same peers, as from another address of ours: the relay knows an
    /// allocation by that.
    pub fn restart(&mut self, now: Instant) {
        for peer in &mut self.peers {
            (peer.ready, peer.bind_at) = (false, None);
        }
        self.pending.clear();
        self.out.clear();
        self.auth = None;
        (self.stale_nonces, self.retry, self.unanswered) = (0, RETRY_FIRST, None);
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
        let wrong_family = peer.is_ipv6() != (self.family == AddressFamily::IPV6);
        if wrong_family
            || self.peers.len() >= PEERS_MAX
            || self.peers.iter().any(|p| p.address == peer)
        {
            return;
        }
        let index = self.peers.len();
        let channel = CHANNELS.start() + index as u16;
        self.peers.push(Peer { address: peer, channel, ready: false, bind_at: None });
        if self.relayed().is_some() {
            self.start(now, Request::Bind(index));
        }
    }

    /// The header that makes `len` bytes a packet to `peer`; `None` if there is no channel to it
    /// (yet).
    pub fn header(&mut self, now: Instant, peer: SocketAddr, len: usize) -> Option<[u8; 4]> {
        self.relayed()?;
        let peer = self.peers.iter().find(|p| p.address == peer && p.ready)?;
        self.unanswered.get_or_insert(now);
        Some(channel_header(peer.channel, len))
    }

    /// Gives the allocation back. What there is to send is the last.
    pub fn close(&mut self, now: Instant) {
        if self.relayed().is_none() {
            self.state = State::Closed;
            self.pending.clear();
            return;
        }
        self.state = State::Closing;
        self.pending.clear();
        self.start(now, Request::Delete);
    }

    /// Takes a datagram that came from the relay.
    pub fn handle(&mut self, now: Instant, datagram: &[u8]) -> Received {
        if let Some((channel, payload)) = read_channel(datagram) {
            let peer = self.peers.iter().find(|p| p.channel == channel);
            let Some(peer) = peer.filter(|_| self.relayed().is_some()) else {
                return Received::Other;
            };
            self.unanswered = None;
            return Received::Data { peer: peer.address, payload };
        }
        if let Ok(message) = Message::from_bytes(datagram)
            && message.is_response()
        {
            self.on_answer(now, &message);
        }
        Received::Other
    }

    /// The next datagram for the relay.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.out.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<ClientEvent> {
        self.events.pop_front()
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = match self.state {
            State::Allocated { refresh_at, .. } if !self.is_pending(Request::Refresh) => {
                let silent = self.unanswered.map(|since| since + SILENCE);
                Some(silent.map_or(refresh_at, |at| at.min(refresh_at)))
            }
            State::Failed(retry_at) => retry_at,
            _ => None,
        };
        let peers = self.peers.iter().filter_map(|p| p.bind_at);
        let peers = peers.filter(|_| self.relayed().is_some());
        self.pending.iter().map(|p| p.next_at).chain(peers).chain(own).min()
    }

    /// Sends again, refreshes, gives up, as is due.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(index) = self.pending.iter().position(|p| p.next_at <= now) {
            let pending = &mut self.pending[index];
            if pending.sent < TRANSMISSIONS {
                pending.next_at = now + RTO * (1 << pending.sent.min(TRANSMISSIONS - 2));
                pending.sent += 1;
                self.out.push_back(pending.bytes.clone());
                // Not given up yet, but somebody may be waiting to hear what is wrong.
                if pending.request == Request::Allocate && pending.sent == SAID_AT {
                    self.events.push_back(ClientEvent::Failed(ClientError::NoAnswer));
                }
            } else {
                let request = self.pending.swap_remove(index).request;
                self.on_error(now, request, ClientError::NoAnswer);
            }
        }
        match self.state {
            State::Failed(Some(at)) if at <= now => {
                self.state = State::Allocating;
                self.start(now, Request::Allocate);
            }
            State::Allocated { refresh_at, .. } if !self.is_pending(Request::Refresh) => {
                let silent = self.unanswered.is_some_and(|since| since + SILENCE <= now);
                if silent || refresh_at <= now {
                    self.unanswered = None;
                    self.start(now, Request::Refresh);
                }
            }
            _ => {}
        }
        if self.relayed().is_some() {
            for index in 0..self.peers.len() {
                if self.peers[index].bind_at.is_some_and(|at| at <= now) {
                    self.start(now, Request::Bind(index));
                }
            }
        }
    }

    fn is_pending(&self, request: Request) -> bool {
        self.pending.iter().any(|p| p.request == request)
    }

    /// Sends a request, and again until it is answered.
    fn start(&mut self, now: Instant, request: Request) {
        let method = match request {
            Request::Allocate => ALLOCATE,
            Request::Refresh | Request::Delete => REFRESH,
            Request::Bind(index) => {
                self.peers[index].bind_at = None;
                CHANNEL_BIND
            }
        };
        let mut message = Message::builder_request(method, MessageWriteVec::new());
        let id = message.transaction_id();
        match request {
            Request::Allocate => {
                add(&mut message, &RequestedTransport::new(UDP));
                if self.family == AddressFamily::IPV6 {
                    add(&mut message, &RequestedAddressFamily::new(self.family));
                }
            }
            Request::Refresh => {}
            Request::Delete => add(&mut message, &Lifetime::new(0)),
            Request::Bind(index) => {
                let peer = &self.peers[index];
                add(&mut message, &ChannelNumber::new(peer.channel));
                add(&mut message, &XorPeerAddress::new(peer.address, id));
            }
        }
        let bytes = match &self.auth {
            Some(auth) => {
                // Too long a name is left out, and refused by the relay.
                Username::new(&self.user).iter().for_each(|a| add(&mut message, a));
                Realm::new(&auth.realm).iter().for_each(|a| add(&mut message, a));
                Nonce::new(&auth.nonce).iter().for_each(|a| add(&mut message, a));
                sign(message, &auth.key)
            }
            None => message.finish(),
        };
        self.out.push_back(bytes.clone());
        let signed = self.auth.is_some();
        self.pending.push(Pending { request, id, bytes, signed, sent: 1, next_at: now + RTO });
    }

    fn on_answer(&mut self, now: Instant, message: &Message<'_>) {
        let id = message.transaction_id();
        let Some(index) = self.pending.iter().position(|p| p.id == id) else { return };
        let signed = self.pending[index].signed;
        let success = message.has_class(MessageClass::Success);
        let proves = |auth: &Auth| message.validate_integrity_with_key(&auth.key).is_ok();
        let proven = self.auth.as_ref().is_some_and(proves);
        // An answer whose signature is wrong is not the relay's; errors need not be signed.
        let forged = message.has_attribute(MessageIntegrity::TYPE) && signed && !proven;
        if forged || (success && !proven) {
            return;
        }
        let request = self.pending.swap_remove(index).request;
        self.unanswered = None;
        if success {
            self.stale_nonces = 0;
            return self.on_success(now, request, message);
        }
        let code = message.attribute::<ErrorCode>().map_or(0, |e| e.code());
        let renew = match code {
            ErrorCode::UNAUTHORIZED => !signed,
            ErrorCode::STALE_NONCE => self.stale_nonces < STALE_MAX,
            _ => false,
        };
        match challenge(message).filter(|_| renew) {
            Some((realm, nonce)) => {
                self.stale_nonces += 1;
                let key = long_term_key(&self.user, &self.password, &realm);
                self.auth = Some(Auth { realm, nonce, key });
                self.start(now, request);
            }
            None => self.on_error(now, request, ClientError::of(message)),
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
                self.events.push_back(ClientEvent::Allocated(relayed));
                (0..self.peers.len()).for_each(|i| self.start(now, Request::Bind(i)));
            }
            Request::Refresh => {
                if let State::Allocated { relayed, .. } = self.state {
                    self.state = State::Allocated { relayed, refresh_at };
                }
            }
            Request::Delete => self.deleted(now),
            Request::Bind(index) => {
                let peer = &mut self.peers[index];
                peer.bind_at = Some(now + REBIND);
                if !std::mem::replace(&mut peer.ready, true) {
                    self.events.push_back(ClientEvent::PeerReady(peer.address));
                }
            }
        }
    }

    fn on_error(&mut self, now: Instant, request: Request, error: ClientError) {
        match request {
            // Something of an earlier life with our address: give it back, then ask again.
            Request::Allocate
                if error == ClientError::Mismatch && !self.is_pending(Request::Delete) =>
            {
                self.start(now, Request::Delete);
                self.events.push_back(ClientEvent::Failed(error));
            }
            Request::Allocate | Request::Refresh => self.fail(now, error),
            Request::Delete => self.deleted(now),
            Request::Bind(_) if error == ClientError::Mismatch => self.fail(now, error),
            Request::Bind(index) => {
                let peer = &mut self.peers[index];
                peer.ready = false;
                peer.bind_at = (error != ClientError::Forbidden).then_some(now + RETRY_MAX);
                self.events.push_back(ClientEvent::PeerRefused(peer.address, error));
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
        self.pending.clear();
        for peer in &mut self.peers {
            (peer.ready, peer.bind_at) = (false, None);
        }
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
