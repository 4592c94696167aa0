//! A man in the middle: he sees every packet of a [`Pair`] and may change, drop, delay, repeat and
//! forge what he likes.
//!
//! [`PairBuilder::with_middle`](crate::PairBuilder::with_middle) puts a [`Middle`] between the
//! hosts of a pair, and [`Pair::middle`](crate::Pair::middle) gives orders to him:
//!
//! - [`rewrite`](Middle::rewrite): a rule for every packet on its way;
//! - [`forge`](Middle::forge): a packet of his own, with the right ports and verification tag;
//! - [`disturb`](Middle::disturb): all of it at random, on one path.
//!
//! He also owns an address, [`ATTACKER`], which the hosts can reach. What arrives there he counts.
//!
//! ```
//! use manypath_proto::AssocClosed;
//! use manypath_sim::testing::Side;
//! use manypath_sim::testing::tamper::Forgery;
//! use manypath_sim::{Pair, secs};
//!
//! let mut t = Pair::one_path("sctp").with_middle().connect();
//! t.middle().forge(Side::Z, Forgery::Abort);
//! t.run_until(secs(5));
//! assert!(matches!(t.z.closed(), Some(AssocClosed::PeerAborted { .. })), "nothing protects it");
//! ```
//!
//! [`Pair`]: crate::Pair

mod forge;
mod random;
mod seen;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use manypath_proto::{Instant, Rng};
use manypath_wire::{Checksum, Chunk, CommonHeader, Packet, PacketBuilder};

use super::Side;
use crate::host::Host;
use crate::ids::NodeId;
use crate::network::{Happening, Network, RouteSpec};
use crate::packet::Delivery;
use crate::spec::{LinkSpec, QueueLimit, Rate};
pub use forge::Forgery;
pub use random::Disturbance;
use seen::Seen;

/// The address of the man in the middle.
pub const ATTACKER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 66)), PORT);

/// The SCTP port of both ends.
const PORT: u16 = 9899;
/// Longest packet that he makes, in bytes.
const PACKET_MAX: usize = 1472;

/// A packet on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passing {
    /// The host that it is for.
    pub to: Side,
    /// The number of its path; `None` behind a NAT's new mapping.
    pub path: Option<usize>,
    /// The address it was sent to, as its receiver knows it.
    pub local: SocketAddr,
    /// The address it seems to come from.
    pub remote: SocketAddr,
    /// The SCTP packet.
    pub payload: Bytes,
}

impl Passing {
    /// Its first chunk.
    pub fn first_chunk(&self) -> Option<Chunk> {
        let packet = Packet::parse(self.payload.clone(), Checksum::Ignore).ok()?;
        packet.chunks().next()?.ok()
    }

    /// Puts other chunks in its place.
    ///
    /// # Panics
    ///
    /// If it has no common header, or the chunks do not fit a packet.
    pub fn replace(&mut self, write: impl FnOnce(&mut PacketBuilder<'_>) -> bool) {
        let packet = Packet::parse(self.payload.clone(), Checksum::Ignore).expect("a packet");
        self.payload = built(packet.header, write);
    }
}

/// The fate of a packet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It arrives, with the changes that were made to it.
    Pass,
    /// It does not arrive.
    Drop,
    /// It arrives after that time.
    Hold(Duration),
}

type Rule = Box<dyn FnMut(&mut Passing) -> Verdict + Send>;

/// A man in the middle. See the [module](self).
pub struct Middle {
    node: NodeId,
    hosts: [NodeId; 2],
    rng: Rng,
    rule: Option<Rule>,
    /// The packets to `a` and to `z`, as far as he remembers them.
    seen: [Seen; 2],
    /// Packets that arrive later, in order. Those that he made or repeated are marked.
    late: BTreeMap<(Instant, u64), (Passing, bool)>,
    made: u64,
    /// Orders that wait for the run to go on.
    orders: Vec<(Side, Forgery)>,
    disturbs: BTreeMap<usize, Disturbance>,
    /// Addresses of hosts that have a route to his own.
    reached_from: BTreeSet<(NodeId, SocketAddr)>,
    answers_heartbeats: bool,
    /// Packets that reached his own address, by the type of their first chunk.
    got: BTreeMap<u8, u64>,
    longest_got: usize,
    forged: u64,
}

impl fmt::Debug for Middle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Middle")
            .field("disturbs", &self.disturbs)
            .field("forged", &self.forged)
            .field("got", &self.got)
            .finish_non_exhaustive()
    }
}

impl Middle {
    pub(crate) fn new(net: &mut Network, a: &Host, z: &Host, rng: Rng) -> Middle {
        Middle {
            node: net.add_node(),
            hosts: [a.node(), z.node()],
            rng,
            rule: None,
            seen: [Seen::default(), Seen::default()],
            late: BTreeMap::new(),
            made: 0,
            orders: Vec::new(),
            disturbs: BTreeMap::new(),
            reached_from: BTreeSet::new(),
            answers_heartbeats: false,
            got: BTreeMap::new(),
            longest_got: 0,
            forged: 0,
        }
    }

    // ---- Orders ----

    /// Asks `rule` about every packet from now on; it may change the packet.
    pub fn rewrite(&mut self, rule: impl FnMut(&mut Passing) -> Verdict + Send + 'static) {
        self.rule = Some(Box::new(rule));
    }

    /// Lets packets pass as they are again.
    pub fn stop_rewriting(&mut self) {
        self.rule = None;
    }

    /// Sends a host a forged packet as soon as the run goes on, on every path of which a packet to
    /// it was seen.
    pub fn forge(&mut self, to: Side, forgery: Forgery) {
        self.orders.push((to, forgery));
    }

    /// Repeats every packet to a host that he has kept, as they were, from their own addresses or
    /// from his.
    pub fn replay_all(&mut self, now: Instant, to: Side, from_attacker: bool) {
        for mut passing in self.seen[index(to)].kept().to_vec() {
            if from_attacker {
                passing.remote = ATTACKER;
            }
            self.put(now, passing, true);
        }
    }

    /// Does all of it at random to the packets of a path from now on.
    pub fn disturb(&mut self, path: usize, how: Disturbance) {
        match how.percent {
            0 => self.disturbs.remove(&path),
            _ => self.disturbs.insert(path, how),
        };
    }

    /// Drops and holds back no packet any more, and goes on with everything else.
    pub fn stop_dropping(&mut self) {
        self.disturbs.values_mut().for_each(|how| how.drops = false);
    }

    /// Answers heartbeats that come to his own address, as a host would that is the peer.
    pub fn answer_heartbeats(&mut self) {
        self.answers_heartbeats = true;
    }

    /// Packets that reached his own address and begin with a chunk of this type.
    pub fn got(&self, chunk: u8) -> u64 {
        self.got.get(&chunk).copied().unwrap_or(0)
    }

    /// Length of the longest packet that reached his own address, in bytes.
    pub fn longest_got(&self) -> usize {
        self.longest_got
    }

    /// Packets that he made or repeated.
    pub fn forged(&self) -> u64 {
        self.forged
    }

    /// The verification tag of packets to a host, as last seen.
    pub fn tag(&self, to: Side) -> u32 {
        self.seen[index(to)].tag
    }

    // ---- The run ----

    /// Lets what is due happen, then what happens next in the network. False if nothing does before
    /// `limit`. `is_active` says that random disturbance may go on.
    pub(crate) fn next(
        &mut self,
        net: &mut Network,
        limit: Instant,
        is_active: bool,
    ) -> Option<Next> {
        for (to, forgery) in std::mem::take(&mut self.orders) {
            self.carry_out(net.now(), to, forgery);
        }
        while let Some(first) = self.late.first_entry().filter(|e| e.key().0 <= net.now()) {
            let (passing, is_forged) = first.remove();
            if !is_forged || is_active || self.disturbs.is_empty() {
                return Some(Next::Arrives(passing));
            }
        }
        net.set_timer(self.node, self.late.keys().next().map(|(at, _)| *at));
        match net.poll(limit)? {
            Happening::Timer(node) if node == self.node => Some(Next::Nothing),
            Happening::Packet(delivery) if delivery.node == self.node => {
                self.on_own(net, &delivery);
                Some(Next::Nothing)
            }
            Happening::Packet(delivery) => Some(match self.on_way(net, delivery, is_active) {
                Some(passing) => Next::Arrives(passing),
                None => Next::Nothing,
            }),
            other => Some(Next::Other(other)),
        }
    }

    /// A packet passes. Returns it if it arrives now.
    fn on_way(&mut self, net: &mut Network, packet: Delivery, is_active: bool) -> Option<Passing> {
        let to = if packet.node == self.hosts[0] { Side::A } else { Side::Z };
        let (local, remote) = net.seen_ends(packet.route);
        self.reach(net, packet.node, local);
        let path = net.route_path(packet.route);
        let mut passing = Passing { to, path, local, remote, payload: packet.payload };
        let is_answer = self.note(net.now(), &passing);
        if is_answer {
            return None;
        }
        let verdict = self.rule.as_mut().map_or(Verdict::Pass, |rule| rule(&mut passing));
        let how = path.and_then(|path| self.disturbs.get(&path).copied());
        let verdict = match how {
            Some(how) if is_active => self.disturb_one(net.now(), &mut passing, how),
            _ => verdict,
        };
        match verdict {
            Verdict::Pass => return Some(passing),
            Verdict::Drop => {}
            Verdict::Hold(time) => self.put(net.now() + time, passing, false),
        }
        None
    }

    /// Lets a host reach his address from one of its own.
    fn reach(&mut self, net: &mut Network, host: NodeId, local: SocketAddr) {
        if !self.reached_from.insert((host, local)) {
            return;
        }
        let spec = || LinkSpec::new(Rate::INFINITE, Duration::from_millis(1));
        let link = net.add_link(spec(), QueueLimit::Unlimited);
        net.add_route(RouteSpec {
            from: host,
            source: local,
            destination: ATTACKER,
            links: vec![link],
            to: self.node,
        });
    }

    /// A packet came to his own address.
    fn on_own(&mut self, net: &mut Network, delivery: &Delivery) {
        let (_, remote) = net.seen_ends(delivery.route);
        let Ok(packet) = Packet::parse(delivery.payload.clone(), Checksum::Ignore) else { return };
        self.longest_got = self.longest_got.max(delivery.payload.len());
        let ty = delivery.payload.get(12).copied().unwrap_or(u8::MAX);
        *self.got.entry(ty).or_default() += 1;
        let node = net.route_source(delivery.route);
        let to = if node == self.hosts[0] { Side::A } else { Side::Z };
        if let (true, Some(Ok(Chunk::Heartbeat(info)))) =
            (self.answers_heartbeats, packet.chunks().next())
        {
            let payload = self.packet(to, |p| p.push_heartbeat_ack(&info.0));
            let passing = Passing { to, path: None, local: remote, remote: ATTACKER, payload };
            self.put(net.now(), passing, true);
        }
    }

    fn put(&mut self, at: Instant, passing: Passing, is_forged: bool) {
        self.made += 1;
        self.forged += u64::from(is_forged);
        self.late.insert((at, self.made), (passing, is_forged));
    }

    /// A packet to a host, under the tag that it expects.
    fn packet(&self, to: Side, write: impl FnOnce(&mut PacketBuilder<'_>) -> bool) -> Bytes {
        built(header(self.tag(to)), write)
    }
}

/// The next thing that happens.
pub(crate) enum Next {
    /// A packet arrives at a host.
    Arrives(Passing),
    /// Something that concerns hosts.
    Other(Happening),
    /// Something that concerns nobody.
    Nothing,
}

const fn index(side: Side) -> usize {
    match side {
        Side::A => 0,
        Side::Z => 1,
    }
}

const fn other(side: Side) -> Side {
    match side {
        Side::A => Side::Z,
        Side::Z => Side::A,
    }
}

fn header(tag: u32) -> CommonHeader {
    CommonHeader { source_port: PORT, destination_port: PORT, verification_tag: tag }
}

fn built(header: CommonHeader, write: impl FnOnce(&mut PacketBuilder<'_>) -> bool) -> Bytes {
    let mut packet = Vec::new();
    let mut builder = PacketBuilder::new(&mut packet, header, PACKET_MAX);
    assert!(write(&mut builder), "the chunks do not fit a packet");
    builder.finish(false);
    packet.into()
}
