//! The relay.

mod allocation;
mod behaviour;
mod limits;
mod mobility;
mod nonce;
mod numbers;
mod peers;
mod requests;
mod traces;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::time::Duration;

use manypath_proto::Instant;
use manypath_proto::sizes::UDP_IPV4_HEADERS;
use turn_types::attribute::{Data, XorPeerAddress};
use turn_types::message::{DATA, SEND};
use turn_types::stun::message::{
    BINDING, IntegrityKey, Message, MessageClass, MessageWriteVec, TransactionId,
};
use turn_types::stun::prelude::*;
use zeroize::Zeroize;

use crate::RelayRoute;
use crate::lookup::LOOKUP;
use crate::mesh::{Mesh, MeshRelay, MeshTransmit, OVERLAY};
use crate::message::{
    Access, CHANNEL_HEADER, add, canonical, channel_header, data, long_term_key, read_channel,
};
use allocation::Allocation;
pub use allocation::AllocationId;
use behaviour::{At, StunPorts};
pub use limits::Limits;
use limits::{Bucket, Crowd, Rates};
use mobility::Tickets;
use nonce::Nonces;
use numbers::{LOOKUPS, Numbers};
pub use peers::{PeerRules, may_lead_to};
pub use traces::TraceWanted;
use traces::Traces;

/// Answers to requests without valid credentials, a second. They are at most about 2.5 times as
/// long as what they answer. The first two rates bound what a forged source address can be made to
/// receive, and keep what one network sends from using up what others need; the last one bounds the
/// work.
const STRANGERS: Rates = Rates { address: 25, network: 100, all: 20_000 };

/// Wrong names and passwords that are rejected in a second. Requests beyond that are not checked,
/// right or wrong, so guessing faster gains nothing.
const GUESSES: Rates = Rates { address: 5, network: 20, all: 1000 };

/// The lifetime that an allocation gets at least, unless the operator's limit is shorter (RFC 8656
/// §3.2).
const DEFAULT: Duration = Duration::from_secs(600);

/// A user of the relay.
#[derive(Clone)]
pub struct User {
    /// The name, 1 to 128 bytes.
    pub name: String,
    /// The password, which is erased from memory when this is dropped.
    pub password: String,
}

impl Drop for User {
    fn drop(&mut self) {
        self.password.zeroize();
    }
}

/// The configuration of a relay.
#[derive(Clone)]
pub struct ServerConfig {
    /// The realm that passwords belong to; clients take it from the relay.
    pub realm: String,
    /// The users; others are not served.
    pub users: Vec<User>,
    /// The limits for all and for each user.
    pub limits: Limits,
    /// Where it forwards to.
    pub peers: PeerRules,
    /// Lets users have [open](Access::Open) allocations. Whoever knows the address of one can use
    /// up the rate of its user.
    pub grants_open: bool,
    /// A random key for the nonces.
    pub secret: [u8; 32],
}

/// The socket that an allocation needs.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// IPv6 instead of IPv4.
    pub v6: bool,
    /// An even port (EVEN-PORT).
    pub even: bool,
}

/// Opens and closes the sockets of allocations.
pub trait Sockets {
    /// Opens a UDP socket; its transport address as peers reach it.
    fn open(&mut self, id: AllocationId, wanted: Wanted) -> io::Result<SocketAddr>;
    /// Closes it.
    fn close(&mut self, id: AllocationId);
    /// The address of the relay that the client in question has spoken to, as it sees it; `None`
    /// if that is not known.
    fn spoken_to(&self) -> Option<IpAddr> {
        None
    }
}

/// The action for a datagram of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing.
    None,
    /// Send this back.
    Answer(Vec<u8>),
    /// Send this to another port of the client's address.
    AnswerAt(SocketAddr, Vec<u8>),
    /// Send this there from the other one of the relay's two ports.
    AnswerFromOther(SocketAddr, Vec<u8>),
    /// Send the part `payload` of it from the socket of `allocation` to `peer`.
    ToPeer {
        /// From whose socket.
        allocation: AllocationId,
        /// To whom.
        peer: SocketAddr,
        /// Where in the datagram the payload is.
        payload: Range<usize>,
    },
}

/// Where a datagram of a peer goes: to `client`, with `prefix` before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The owner of the allocation.
    pub client: SocketAddr,
    /// The prefix of the payload.
    pub prefix: Prefix,
}

/// The information for the client about the sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// The header of ChannelData.
    Channel([u8; CHANNEL_HEADER]),
    /// There is no channel: a whole Data indication, payload included.
    Indication(Vec<u8>),
}

/// Counters of a relay since it began.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// Allocations made.
    pub allocated: u64,
    /// Of these, those that expired without a refresh.
    pub expired: u64,
    /// Requests that were refused for their user, password, or a limit of the user.
    pub refused: u64,
    /// Datagrams that are no valid message, or from clients without an allocation.
    pub garbage: u64,
    /// Payload bytes forwarded, both directions.
    pub bytes: u64,
    /// Payloads that were dropped because the user or the relay was above its rate, and requests of
    /// strangers that were not answered because too many came.
    pub over_rate: u64,
}

struct Account {
    name: String,
    key: IntegrityKey,
    allocations: u32,
    rate: Bucket,
}

/// A TURN server without sockets. It keeps no state for clients that have not authenticated, and
/// for others no more than [`Limits`] allows.
pub struct Server {
    realm: String,
    accounts: Vec<Account>,
    limits: Limits,
    rules: PeerRules,
    grants_open: bool,
    nonces: Nonces,
    tickets: Tickets,
    /// By the client's transport address.
    allocations: BTreeMap<SocketAddr, Allocation>,
    by_id: BTreeMap<AllocationId, SocketAddr>,
    /// When allocations may end, soonest first. An entry may be early: it is moved when it comes
    /// up.
    ends: BTreeSet<(Instant, SocketAddr)>,
    next_id: u64,
    total: Bucket,
    strangers: Crowd,
    guesses: Crowd,
    lookups: Crowd,
    numbers: Numbers,
    traces: Traces,
    /// Other relays, which the first user may use too.
    mesh: Mesh,
    mesh_has_changed: bool,
    /// Checked when a request names no user of ours, so that it takes as long.
    nobody: IntegrityKey,
    stun_ports: Option<StunPorts>,
    stats: ServerStats,
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let allocations = self.allocations.len();
        f.debug_struct("Server").field("allocations", &allocations).finish_non_exhaustive()
    }
}

impl Server {
    /// A relay with nothing allocated.
    pub fn new(now: Instant, config: ServerConfig) -> Server {
        let limits = config.limits;
        let account = |user: &User| Account {
            name: user.name.clone(),
            key: long_term_key(&user.name, &user.password, &config.realm),
            allocations: 0,
            rate: Bucket::new(now, limits.user_bytes_per_s),
        };
        let (first, password) =
            config.users.first().map_or(Default::default(), |u| (&*u.name, &*u.password));
        let mesh = Mesh::new(first, password);
        let nobody = long_term_key("nobody", &format!("{:02x?}", config.secret), &config.realm);
        Server {
            accounts: config.users.iter().map(account).collect(),
            realm: config.realm,
            limits,
            rules: config.peers,
            grants_open: config.grants_open,
            nonces: Nonces::new(config.secret),
            tickets: Tickets::new(config.secret),
            allocations: BTreeMap::new(),
            by_id: BTreeMap::new(),
            ends: BTreeSet::new(),
            next_id: 0,
            total: Bucket::new(now, limits.total_bytes_per_s),
            strangers: Crowd::new(now, config.secret, STRANGERS),
            guesses: Crowd::new(now, config.secret, GUESSES),
            lookups: Crowd::new(now, config.secret, LOOKUPS),
            numbers: Numbers::new(config.secret),
            traces: Traces::default(),
            mesh,
            mesh_has_changed: false,
            nobody,
            stun_ports: None,
            stats: ServerStats::default(),
        }
    }

    /// Takes a datagram that came to the relay's own address.
    pub fn handle_client(
        &mut self,
        now: Instant,
        client: SocketAddr,
        datagram: &[u8],
        sockets: &mut dyn Sockets,
    ) -> Reply {
        let client = canonical(client);
        if let Some((channel, payload)) = read_channel(datagram) {
            let allocation = self.allocations.get(&client).filter(|a| a.ends > now);
            let peer = allocation.and_then(|a| a.peer_of_channel(now, channel));
            return self.forward(now, client, peer, payload);
        }
        let Ok(message) = Message::from_bytes(datagram) else {
            self.stats.garbage += 1;
            return Reply::None;
        };
        match (message.class(), message.method()) {
            (MessageClass::Indication, SEND) => self.on_send(now, client, &message),
            (MessageClass::Request, BINDING) => {
                self.on_binding(now, client, &message, At::Main, sockets.spoken_to())
            }
            (MessageClass::Request, LOOKUP) => self.on_lookup(now, client, &message),
            (MessageClass::Request, _) => self.on_request(now, client, &message, sockets),
            (MessageClass::Success | MessageClass::Error, OVERLAY) => {
                self.on_relay(now, client, &message);
                Reply::None
            }
            _ => {
                self.stats.garbage += 1;
                Reply::None
            }
        }
    }

    /// Another relay answers.
    fn on_relay(&mut self, now: Instant, relay: SocketAddr, message: &Message<'_>) {
        let rules = &self.rules;
        let may_be_asked = |address: SocketAddr| rules.permits(address.ip());
        match self.mesh.handle(now, relay, message, may_be_asked) {
            Some(has_changed) => self.mesh_has_changed |= has_changed,
            None => self.stats.garbage += 1,
        }
    }

    /// Send indication (RFC 8656 §11.2).
    fn on_send(&mut self, now: Instant, client: SocketAddr, message: &Message<'_>) -> Reply {
        let id = message.transaction_id();
        let peer = message.attribute::<XorPeerAddress>().ok().map(|a| canonical(a.addr(id)));
        let allocation = self.allocations.get(&client).filter(|a| a.ends > now);
        let peer = peer.filter(|p| allocation.is_some_and(|a| self.lets_pass(now, a, *p)));
        let Some(payload) = data(message) else { return self.forward(now, client, None, 0..0) };
        self.forward(now, client, peer, payload)
    }

    fn forward(
        &mut self,
        now: Instant,
        client: SocketAddr,
        peer: Option<SocketAddr>,
        payload: Range<usize>,
    ) -> Reply {
        let (Some(allocation), Some(peer)) = (self.allocations.get(&client), peer) else {
            self.stats.garbage += 1;
            return Reply::None;
        };
        let (id, account) = (allocation.id, allocation.account);
        if !self.may_forward(now, account, payload.len()) {
            return Reply::None;
        }
        Reply::ToPeer { allocation: id, peer, payload }
    }

    /// Takes a datagram that came to the socket of an allocation; `None` drops it.
    pub fn handle_peer(
        &mut self,
        now: Instant,
        id: AllocationId,
        peer: SocketAddr,
        datagram: &[u8],
    ) -> Option<Forward> {
        let peer = canonical(peer);
        let client = *self.by_id.get(&id)?;
        let allocation = self.allocations.get(&client).filter(|a| a.ends > now)?;
        if !self.lets_pass(now, allocation, peer) {
            self.stats.garbage += 1;
            return None;
        }
        let prefix = match allocation.channel_of_peer(now, peer) {
            Some(channel) => Prefix::Channel(channel_header(channel, datagram.len())),
            None => Prefix::Indication(data_indication(peer, datagram)?),
        };
        let account = allocation.account;
        self.may_forward(now, account, datagram.len()).then_some(Forward { client, prefix })
    }

    /// Packets may pass between an allocation and this peer.
    fn lets_pass(&self, now: Instant, allocation: &Allocation, peer: SocketAddr) -> bool {
        let is_open = allocation.access == Access::Open
            && allocation.relayed.is_ipv6() == peer.is_ipv6()
            && self.rules.permits(peer.ip());
        is_open || allocation.permits(now, peer.ip())
    }

    fn may_forward(&mut self, now: Instant, account: usize, bytes: usize) -> bool {
        // Headers count: otherwise empty packets would be free.
        let cost = (bytes + UDP_IPV4_HEADERS) as u64;
        let within = self.accounts[account].rate.has(now, cost) && self.total.has(now, cost);
        if within {
            self.accounts[account].rate.take(cost);
            self.total.take(cost);
            self.stats.bytes += bytes as u64;
        } else {
            self.stats.over_rate += 1;
        }
        within
    }

    /// The next route to trace for a user. Its result, also if there is none, goes to
    /// [`handle_trace`](Self::handle_trace).
    pub fn poll_trace(&mut self) -> Option<TraceWanted> {
        self.traces.poll()
    }

    /// Takes note of a route.
    pub fn handle_trace(&mut self, now: Instant, wanted: TraceWanted, route: RelayRoute) {
        self.traces.found(now, wanted, route);
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let ends = self.ends.first().map(|&(at, _)| at);
        ends.into_iter().chain(self.mesh.poll_timeout()).min()
    }

    /// Ends what has expired, and asks other relays.
    pub fn handle_timeout(&mut self, now: Instant, sockets: &mut dyn Sockets) {
        self.mesh_has_changed |= self.mesh.handle_timeout(now);
        while let Some(&(at, client)) = self.ends.first()
            && at <= now
        {
            self.ends.pop_first();
            let Some(allocation) = self.allocations.get(&client) else { continue };
            if allocation.ends > now {
                self.ends.insert((allocation.ends, client));
            } else {
                self.stats.expired += 1;
                self.remove(client, sockets);
            }
        }
    }

    fn remove(&mut self, client: SocketAddr, sockets: &mut dyn Sockets) {
        if let Some(allocation) = self.allocations.remove(&client) {
            self.by_id.remove(&allocation.id);
            allocation.number.into_iter().for_each(|number| self.numbers.free(number));
            self.ends.retain(|&(_, c)| c != client);
            self.accounts[allocation.account].allocations -= 1;
            sockets.close(allocation.id);
        }
    }

    /// The next datagram for another relay, to leave from the address that clients reach.
    pub fn poll_transmit(&mut self) -> Option<MeshTransmit> {
        self.mesh.poll_transmit()
    }

    /// Takes note of the relay's own addresses: those that others know it by.
    pub fn set_own_addresses(&mut self, own: &[SocketAddr]) {
        self.mesh.set_own(own);
    }

    /// Takes the relays that the operator names, in place of those named before: they are asked, as
    /// the first user, and never forgotten.
    pub fn name_relays(&mut self, now: Instant, named: &[SocketAddr]) {
        self.mesh.name(now, named);
    }

    /// The other relays that it knows, by address.
    pub fn relays(&self) -> Vec<MeshRelay> {
        self.mesh.relays().collect()
    }

    /// True if a relay came, died or came back since this was asked last.
    pub fn take_relays_changed(&mut self) -> bool {
        std::mem::take(&mut self.mesh_has_changed)
    }

    /// The counters so far.
    pub fn stats(&self) -> ServerStats {
        self.stats
    }

    /// Allocations at present.
    pub fn allocations(&self) -> usize {
        self.allocations.len()
    }
}

/// A Data indication (RFC 8656 §11.3); `None` for a payload that no message can hold.
pub(crate) fn data_indication(peer: SocketAddr, payload: &[u8]) -> Option<Vec<u8>> {
    let mut message = Message::builder_indication(DATA, MessageWriteVec::new());
    let id: TransactionId = message.transaction_id();
    add(&mut message, &XorPeerAddress::new(peer, id));
    message.add_attribute(&Data::new(payload)).ok()?;
    Some(message.finish())
}

/// The time that an allocation gets: what was asked for, within the limit.
fn granted(asked: Option<u32>, limits: &Limits) -> Duration {
    let asked = asked.map(|s| Duration::from_secs(u64::from(s)));
    asked.unwrap_or(limits.lifetime_max).min(limits.lifetime_max)
}

#[cfg(test)]
mod tests;
