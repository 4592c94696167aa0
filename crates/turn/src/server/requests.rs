//! Requests: authentication and handling.

use std::net::SocketAddr;

use manypath_proto::Instant;
use turn_types::AddressFamily;
use turn_types::attribute::{
    ChannelNumber, EvenPort, Lifetime, RequestedAddressFamily, RequestedTransport, XorPeerAddress,
    XorRelayedAddress,
};
use turn_types::message::{ALLOCATE, CHANNEL_BIND, CREATE_PERMISSION, REFRESH};
use turn_types::stun::attribute::{
    AttributeType, ErrorCode, Fingerprint, MessageIntegrity, MessageIntegritySha256, Nonce, Realm,
    UnknownAttributes, Username, XorMappedAddress,
};
use turn_types::stun::message::{Message, MessageWriteVec};
use turn_types::stun::prelude::*;

use super::allocation::NotGiven;
use super::traces::Asked;
use super::{Allocation, AllocationId, Reply, Server, Sockets, Wanted, granted};
use crate::mesh::{OVERLAY, is_of_relay};
use crate::message::{
    Access, CHANNELS, MOBILITY_TICKET, UDP, add, add_rendezvous_number, canonical, error_answer,
    sign,
};
use crate::route::TRACE;

/// The attributes that are understood, of those that must be (RFC 8489 §5).
const UNDERSTOOD: [AttributeType; 12] = [
    Username::TYPE,
    Realm::TYPE,
    Nonce::TYPE,
    MessageIntegrity::TYPE,
    MessageIntegritySha256::TYPE,
    Fingerprint::TYPE,
    ChannelNumber::TYPE,
    Lifetime::TYPE,
    XorPeerAddress::TYPE,
    RequestedTransport::TYPE,
    RequestedAddressFamily::TYPE,
    EvenPort::TYPE,
];

/// The account of the overlay: a relay that knows another user's password alone is not of it.
const FIRST: usize = 0;

/// An error code, as the answer to a request.
pub(super) type Refusal = u16;

impl Server {
    /// Any other request: it must prove whose it is.
    pub(super) fn on_request(
        &mut self,
        now: Instant,
        client: SocketAddr,
        message: &Message<'_>,
        sockets: &mut dyn Sockets,
    ) -> Reply {
        let account = match self.authenticate(now, client, message) {
            Ok(account) => account,
            Err(Some(code)) => return self.refuse_stranger(now, client, message, code),
            Err(None) => {
                self.stats.over_rate += 1;
                return Reply::None;
            }
        };
        let done = match unknown(message) {
            Some(unknown) => {
                let mut answer = error_answer(message, ErrorCode::UNKNOWN_ATTRIBUTE);
                add(&mut answer, &unknown);
                Ok(answer)
            }
            None => match message.method() {
                ALLOCATE => self.allocate(now, client, account, message, sockets),
                REFRESH => self.refresh(now, client, account, message, sockets),
                CREATE_PERMISSION => self.create_permission(now, client, account, message),
                CHANNEL_BIND => self.channel_bind(now, client, account, message),
                TRACE => self.trace(now, client, account, message),
                OVERLAY => Ok(self.overlay(now, client, account, message)),
                _ => Err(ErrorCode::BAD_REQUEST),
            },
        };
        let answer = done.unwrap_or_else(|code| {
            self.stats.refused += 1;
            error_answer(message, code)
        });
        Reply::Answer(sign(answer, &self.accounts[account].key))
    }

    /// The account of a request that is signed with its password and a nonce of ours. `Err(None)`
    /// is one that is not even looked at.
    ///
    /// Answers and work are the same for names that are users' and for others.
    fn authenticate(
        &mut self,
        now: Instant,
        client: SocketAddr,
        message: &Message<'_>,
    ) -> Result<usize, Option<Refusal>> {
        if !message.has_attribute(MessageIntegrity::TYPE) {
            return Err(Some(ErrorCode::UNAUTHORIZED));
        }
        let (Ok(user), Ok(nonce), Ok(_)) = (
            message.attribute::<Username>(),
            message.attribute::<Nonce>(),
            message.attribute::<Realm>(),
        ) else {
            return Err(Some(ErrorCode::BAD_REQUEST));
        };
        // First of all: a client with a nonce of ours can receive at its address.
        if !self.nonces.is_valid(now, client, nonce.nonce()) {
            return Err(Some(ErrorCode::STALE_NONCE));
        }
        let named = self.accounts.iter().position(|a| a.name == user.username());
        let allocation = self.allocations.get(&client);
        let is_known = allocation.is_some_and(|a| named == Some(a.account));
        // An active user does not suffer from others that guess behind the same NAT.
        if !is_known && !self.guesses.has(now, client) {
            return Err(None);
        }
        let key = named.map_or(&self.nobody, |account| &self.accounts[account].key);
        let is_signed = message.validate_integrity_with_key(key).is_ok();
        match named {
            Some(account) if is_signed => Ok(account),
            _ => {
                self.guesses.take(now, client);
                Err(Some(ErrorCode::UNAUTHORIZED))
            }
        }
    }

    /// An error to somebody unknown, with the challenge.
    fn refuse_stranger(
        &mut self,
        now: Instant,
        client: SocketAddr,
        message: &Message<'_>,
        code: Refusal,
    ) -> Reply {
        // The first request of everybody comes without credentials; that is no refusal.
        self.stats.refused += u64::from(message.has_attribute(MessageIntegrity::TYPE));
        let mut answer = error_answer(message, code);
        if code != ErrorCode::BAD_REQUEST {
            Realm::new(&self.realm).iter().for_each(|a| add(&mut answer, a));
            Nonce::new(&self.nonces.make(now, client)).iter().for_each(|a| add(&mut answer, a));
        }
        self.answer_stranger(now, client, answer.finish())
    }

    pub(super) fn answer_stranger(
        &mut self,
        now: Instant,
        client: SocketAddr,
        answer: Vec<u8>,
    ) -> Reply {
        if !self.strangers.has(now, client) {
            self.stats.over_rate += 1;
            return Reply::None;
        }
        self.strangers.take(now, client);
        Reply::Answer(answer)
    }

    /// Allocate (RFC 8656 §7.2).
    fn allocate(
        &mut self,
        now: Instant,
        client: SocketAddr,
        account: usize,
        message: &Message<'_>,
        sockets: &mut dyn Sockets,
    ) -> Result<MessageWriteVec, Refusal> {
        let id = message.transaction_id();
        if let Some(allocation) = self.allocations.get(&client) {
            let repeated = allocation.made_by == id && allocation.account == account;
            let lifetime = allocation.ends.saturating_since(now);
            return if repeated && !lifetime.is_zero() {
                Ok(self.allocated(message, client, allocation, lifetime.as_secs()))
            } else {
                Err(ErrorCode::ALLOCATION_MISMATCH)
            };
        }
        let transport = message.attribute::<RequestedTransport>();
        match transport.map(|t| t.protocol()) {
            Ok(UDP) => {}
            Ok(_) => return Err(ErrorCode::UNSUPPORTED_TRANSPORT_PROTOCOL),
            Err(_) => return Err(ErrorCode::BAD_REQUEST),
        }
        let family = message.attribute::<RequestedAddressFamily>();
        let v6 = family.is_ok_and(|f| f.family() == AddressFamily::IPV6);
        let even = message.attribute::<EvenPort>();
        if even.as_ref().is_ok_and(EvenPort::requested) {
            // No second port is reserved: RFC 8656 §7.2 defines this error for it.
            return Err(ErrorCode::INSUFFICIENT_CAPACITY);
        }
        let wanted = Wanted { v6, even: even.is_ok() };
        if self.accounts[account].allocations >= self.limits.allocations_per_user {
            return Err(ErrorCode::ALLOCATION_QUOTA_REACHED);
        }
        if self.allocations.len() >= self.limits.allocations_total {
            return Err(ErrorCode::INSUFFICIENT_CAPACITY);
        }
        let asked = message.attribute::<Lifetime>().ok().map(|l| l.seconds());
        // RFC 8656 §7.2: no shorter than the default; ours is the limit that the operator set.
        let lifetime =
            granted(asked, &self.limits).max(self.limits.lifetime_max.min(super::DEFAULT));
        self.next_id += 1;
        let made = AllocationId(self.next_id);
        let relayed = sockets.open(made, wanted).map_err(|e| match e.kind() {
            std::io::ErrorKind::Unsupported => ErrorCode::ADDRESS_FAMILY_NOT_SUPPORTED,
            _ => ErrorCode::INSUFFICIENT_CAPACITY,
        })?;
        let ends = now + lifetime;
        let access = if self.grants_open { Access::of(message) } else { Access::Permitted };
        let mut allocation = Allocation::new(made, account, relayed, access, ends, id);
        allocation.moves = message.has_attribute(MOBILITY_TICKET).then_some(0);
        allocation.number = self.give_number(made, access, message);
        let answer = self.allocated(message, client, &allocation, lifetime.as_secs());
        self.allocations.insert(client, allocation);
        self.by_id.insert(made, client);
        self.ends.insert((ends, client));
        self.accounts[account].allocations += 1;
        self.stats.allocated += 1;
        Ok(answer)
    }

    /// The client's allocation, if this user made it (RFC 8656 §5).
    pub(super) fn own(
        &mut self,
        now: Instant,
        client: SocketAddr,
        account: usize,
    ) -> Result<&mut Allocation, Refusal> {
        let allocation = self.allocations.get_mut(&client).filter(|a| a.ends > now);
        match allocation {
            None => Err(ErrorCode::ALLOCATION_MISMATCH),
            Some(a) if a.account != account => Err(ErrorCode::WRONG_CREDENTIALS),
            Some(a) => Ok(a),
        }
    }

    /// Refresh (RFC 8656 §8.2); a lifetime of 0 ends the allocation.
    fn refresh(
        &mut self,
        now: Instant,
        client: SocketAddr,
        account: usize,
        message: &Message<'_>,
        sockets: &mut dyn Sockets,
    ) -> Result<MessageWriteVec, Refusal> {
        let asked = message.attribute::<Lifetime>().ok().map(|l| l.seconds());
        let lifetime = granted(asked, &self.limits);
        self.follow_client(now, client, account, message)?;
        let allocation = self.own(now, client, account)?;
        if let Ok(family) = message.attribute::<RequestedAddressFamily>()
            && (family.family() == AddressFamily::IPV6) != allocation.relayed.is_ipv6()
        {
            return Err(ErrorCode::PEER_ADDRESS_FAMILY_MISMATCH);
        }
        allocation.ends = now + lifetime;
        let ends = allocation.ends;
        if lifetime.is_zero() {
            self.remove(client, sockets);
        } else if self.ends.iter().any(|&(at, c)| c == client && at > ends) {
            // Entries may be early, never late.
            self.ends.retain(|&(_, c)| c != client);
            self.ends.insert((ends, client));
        }
        let mut answer = Message::builder_success(message, MessageWriteVec::new());
        add(&mut answer, &Lifetime::new(lifetime.as_secs() as u32));
        if message.has_attribute(MOBILITY_TICKET)
            && let Some(allocation) = self.allocations.get(&client)
        {
            self.add_ticket(allocation, &mut answer);
        }
        Ok(answer)
    }

    /// CreatePermission (RFC 8656 §10.2): all of its peers, or none.
    fn create_permission(
        &mut self,
        now: Instant,
        client: SocketAddr,
        account: usize,
        message: &Message<'_>,
    ) -> Result<MessageWriteVec, Refusal> {
        let max = self.limits.peers_per_allocation;
        let mut peers = Vec::new();
        while let Ok(peer) = message.nth_attribute::<XorPeerAddress>(peers.len()) {
            if peers.len() >= max {
                return Err(ErrorCode::INSUFFICIENT_CAPACITY);
            }
            peers.push(canonical(peer.addr(message.transaction_id())));
        }
        self.own(now, client, account)?;
        if peers.is_empty() {
            return Err(ErrorCode::BAD_REQUEST);
        }
        for &peer in &peers {
            self.check_peer(client, peer)?;
        }
        let allocation = self.own(now, client, account)?;
        for peer in peers {
            allocation.permit(now, peer.ip(), max).map_err(refusal)?;
        }
        Ok(Message::builder_success(message, MessageWriteVec::new()))
    }

    /// ChannelBind (RFC 8656 §12.2).
    fn channel_bind(
        &mut self,
        now: Instant,
        client: SocketAddr,
        account: usize,
        message: &Message<'_>,
    ) -> Result<MessageWriteVec, Refusal> {
        self.own(now, client, account)?;
        let (Ok(number), Ok(peer)) =
            (message.attribute::<ChannelNumber>(), message.attribute::<XorPeerAddress>())
        else {
            return Err(ErrorCode::BAD_REQUEST);
        };
        let peer = canonical(peer.addr(message.transaction_id()));
        if !CHANNELS.contains(&number.channel()) {
            return Err(ErrorCode::BAD_REQUEST);
        }
        self.check_peer(client, peer)?;
        let max = self.limits.peers_per_allocation;
        self.own(now, client, account)?.bind(now, number.channel(), peer, max).map_err(refusal)?;
        Ok(Message::builder_success(message, MessageWriteVec::new()))
    }

    /// TRACE: the route to a peer that the allocation has a permission for.
    fn trace(
        &mut self,
        now: Instant,
        client: SocketAddr,
        account: usize,
        message: &Message<'_>,
    ) -> Result<MessageWriteVec, Refusal> {
        let allocation = self.own(now, client, account)?;
        let (id, relayed) = (allocation.id, allocation.relayed.ip());
        let peer = message.attribute::<XorPeerAddress>();
        let peer = peer.map_err(|_| ErrorCode::BAD_REQUEST)?.addr(message.transaction_id());
        let peer = canonical(peer).ip();
        if !allocation.permits(now, peer) {
            return Err(ErrorCode::FORBIDDEN);
        }
        let mut answer = Message::builder_success(message, MessageWriteVec::new());
        match self.traces.ask(now, id, relayed, peer) {
            Asked::Known(route) => add(&mut answer, &route.attribute()),
            Asked::Later => {}
            Asked::Full => return Err(ErrorCode::INSUFFICIENT_CAPACITY),
        }
        Ok(answer)
    }

    /// OVERLAY: the relays that the first user may use, too. Another relay asks as that user, and
    /// is asked in turn.
    fn overlay(
        &mut self,
        now: Instant,
        client: SocketAddr,
        account: usize,
        message: &Message<'_>,
    ) -> MessageWriteVec {
        let mut answer = Message::builder_success(message, MessageWriteVec::new());
        if account == FIRST {
            if is_of_relay(message) && self.rules.permits(client.ip()) {
                self.mesh.learn(now, client);
            }
            add(&mut answer, &self.mesh.attribute());
        }
        answer
    }

    /// The answer to a request that made an allocation.
    fn allocated(
        &self,
        message: &Message<'_>,
        client: SocketAddr,
        allocation: &Allocation,
        seconds: u64,
    ) -> MessageWriteVec {
        let id = message.transaction_id();
        let mut answer = Message::builder_success(message, MessageWriteVec::new());
        add(&mut answer, &XorRelayedAddress::new(allocation.relayed, id));
        add(&mut answer, &Lifetime::new(u32::try_from(seconds).unwrap_or(u32::MAX)));
        add(&mut answer, &XorMappedAddress::new(client, id));
        allocation.access.add_to(&mut answer);
        if let Some(number) = allocation.number {
            add_rendezvous_number(&mut answer, number);
        }
        self.add_ticket(allocation, &mut answer);
        answer
    }

    /// The rules of the operator, and the family of the allocation.
    fn check_peer(&self, client: SocketAddr, peer: SocketAddr) -> Result<(), Refusal> {
        let relayed = self.allocations.get(&client).map(|a| a.relayed);
        if relayed.is_some_and(|r| r.is_ipv6() != peer.is_ipv6()) {
            return Err(ErrorCode::PEER_ADDRESS_FAMILY_MISMATCH);
        }
        if self.rules.permits(peer.ip()) { Ok(()) } else { Err(ErrorCode::FORBIDDEN) }
    }
}

fn refusal(why: NotGiven) -> Refusal {
    match why {
        NotGiven::Full => ErrorCode::INSUFFICIENT_CAPACITY,
        NotGiven::Taken => ErrorCode::BAD_REQUEST,
    }
}

/// The attributes that must be understood and are not.
fn unknown(message: &Message<'_>) -> Option<UnknownAttributes> {
    let types: Vec<AttributeType> = message
        .iter_attributes()
        .map(|(_, attribute)| attribute.get_type())
        .filter(|t| t.comprehension_required() && !UNDERSTOOD.contains(t))
        .take(16)
        .collect();
    (!types.is_empty()).then(|| UnknownAttributes::new(&types))
}
