//! Nodes, links, routes, and the run of time.

use std::net::SocketAddr;

use manypath_proto::sizes::ETHERNET_MTU;
use manypath_proto::{Association, Event, Instant, Rng};

use crate::ids::{LinkId, NodeId, RouteId, SourceId};
use crate::link::loss_range::LossRange;
use crate::link::{Link, LinkStats};
use crate::observe::Observer;
use crate::packet::{Delivery, PacketPool, Packets, TooLong};
use crate::packet_log::PacketLog;
use crate::queue::{Due, Slot, SlotQueue};
use crate::schedule::{Change, Schedule};
use crate::spec::{LinkChange, LinkSpec, QueueLimit};
use crate::trace_hash::TraceHash;

mod addresses;
mod ahead;
mod facts;
mod feed;
mod fixed;
mod moments;
mod nats;
mod passage;
mod path;
mod route;
mod routes;
mod sources;
#[cfg(test)]
mod tests;
mod translation;

pub use addresses::AddressChange;
pub(crate) use ahead::AHEAD;
use feed::{Feed, SourceState};
use moments::Moments;
pub(crate) use moments::{Concerned, Moment};
use nats::Nats;
pub(crate) use passage::Header;
pub(crate) use path::Path;
pub use path::PathDrops;
pub(crate) use route::PathDirection;
use route::Route;
pub use route::RouteSpec;

#[derive(Debug)]
struct Node {
    timer: Slot,
    /// When the timer runs out; its slot may be earlier.
    deadline: Option<Due>,
    /// Searched in order; the newest first, so that a new mapping hides an old one.
    routes: Vec<(SocketAddr, SocketAddr, RouteId)>,
}

#[derive(Debug)]
struct LinkState {
    link: Link,
    slot: Slot,
    feed: Feed,
}

#[derive(Copy, Clone, Debug)]
enum Owner {
    Schedule,
    Link(LinkId),
    Timer(NodeId),
    Source(SourceId),
}

/// Event that the driver of the nodes has to act on.
#[derive(Debug)]
pub enum Happening {
    /// A packet reached a node.
    Packet(Delivery),
    /// A node's timer ran out; it is unset now.
    Timer(NodeId),
    /// A node lost an address, or got one.
    Address(AddressChange),
    /// A link's message reached a node: a packet of it was too long.
    TooLong(TooLong),
}

/// A network in virtual time.
///
/// Like the engine it owns no clock and calls nobody: a driver sends packets in, and asks
/// [`Network::poll`] for what happens next. Between calls, time stands still.
///
/// ```
/// use bytes::Bytes;
/// use manypath_proto::{Instant, Rng};
/// use manypath_sim::{Happening, LinkSpec, Network, QueueLimit, RouteSpec};
///
/// let mut net = Network::new(Rng::from_number(1), 28);
/// let (a, z) = (net.add_node(), net.add_node());
/// let link = net.add_link(LinkSpec::mbps_ms(8.0, 5.0), QueueLimit::Unlimited);
/// let (source, destination) = ("10.0.0.1:9899".parse()?, "10.0.0.2:9899".parse()?);
/// net.add_route(RouteSpec { from: a, source, destination, links: vec![link], to: z });
///
/// net.send(a, source, destination, Bytes::from_static(&[0; 972]));
/// let Some(Happening::Packet(packet)) = net.poll(Instant::from_millis(100)) else { panic!() };
/// assert_eq!(packet.node, z);
/// assert_eq!(net.now(), Instant::from_millis(6)); // 1000 bytes at 8 Mbit/s, then 5 ms
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Debug)]
pub struct Network {
    queue: SlotQueue,
    owners: Vec<Owner>,
    links: Vec<LinkState>,
    packets: Packets,
    /// The buffers of all hosts' packets.
    pub(crate) pool: PacketPool,
    nodes: Vec<Node>,
    routes: Vec<Route>,
    sources: Vec<SourceState>,
    /// The links on which cross-traffic ends.
    fed: Vec<LinkId>,
    pub(crate) paths: Vec<Path>,
    schedule: Schedule,
    schedule_slot: Slot,
    /// Bytes of IP and UDP headers on each packet.
    header_bytes: u32,
    packets_sent: u64,
    events: u64,
    unroutable: u64,
    trace: TraceHash,
    log: Option<PacketLog>,
    observer: Option<Box<dyn Observer>>,
    rng: Rng,
    /// Links that went down or up, and when.
    outages: Vec<(Instant, LinkId, bool)>,
    moments: Moments,
    /// Changes of what links lose.
    loss_changes: u64,
    /// Addresses that nodes had.
    gone: Vec<(NodeId, SocketAddr)>,
    nats: Nats,
    /// No link changes, and each but the first of a route gets packets from one other link alone.
    has_fixed_links: bool,
    ahead: ahead::Ahead,
}

impl Network {
    /// An empty network. `header_bytes` is added to each packet's length on the wire: 28 for IPv4
    /// and UDP.
    pub fn new(rng: Rng, header_bytes: u32) -> Network {
        let mut queue = SlotQueue::new();
        let schedule_slot = queue.add_slot();
        Network {
            queue,
            owners: vec![Owner::Schedule],
            links: Vec::new(),
            packets: Packets::default(),
            pool: PacketPool::default(),
            nodes: Vec::new(),
            routes: Vec::new(),
            sources: Vec::new(),
            fed: Vec::new(),
            paths: Vec::new(),
            schedule: Schedule::default(),
            schedule_slot,
            header_bytes,
            packets_sent: 0,
            events: 0,
            unroutable: 0,
            trace: TraceHash::new(),
            log: None,
            observer: None,
            rng,
            outages: Vec::new(),
            moments: Moments::default(),
            loss_changes: 0,
            gone: Vec::new(),
            nats: Nats::default(),
            has_fixed_links: false,
            ahead: ahead::Ahead::default(),
        }
    }

    /// Adds a node without routes.
    pub fn add_node(&mut self) -> NodeId {
        let id = NodeId(self.nodes.len() as u32);
        let timer = self.queue.add_slot();
        self.owners.push(Owner::Timer(id));
        self.nodes.push(Node { timer, deadline: None, routes: Vec::new() });
        id
    }

    /// Adds one direction of a link and plans its changes. `default_queue` applies if the link
    /// names no queue of its own.
    pub fn add_link(&mut self, mut spec: LinkSpec, default_queue: QueueLimit) -> LinkId {
        let changes = std::mem::take(&mut spec.changes);
        let id = LinkId(self.links.len() as u32);
        let slot = self.queue.add_slot();
        self.owners.push(Owner::Link(id));
        let rng = self.rng.fork(&format!("link {}", id.0));
        let link = Link::new(spec, default_queue, rng);
        self.links.push(LinkState { link, slot, feed: Feed::default() });
        for (at, change) in changes {
            self.change_at(at, id, change);
        }
        id
    }

    /// The present.
    pub fn now(&self) -> Instant {
        self.queue.now()
    }

    /// Sets or unsets the node's timer.
    pub fn set_timer(&mut self, node: NodeId, at: Option<Instant>) {
        let node = &mut self.nodes[node.0 as usize];
        let at = at.map(|at| at.max(self.queue.now()));
        if node.deadline.map(Due::at) == at {
            return;
        }
        node.deadline = at.map(|at| self.queue.plan(at));
        // Timers mostly move back: then the slot stays and is set right when its time has come.
        let is_later = |due| self.queue.get(node.timer).is_some_and(|set| set < due);
        if !node.deadline.is_some_and(is_later) {
            self.queue.set(node.timer, node.deadline);
        }
    }

    /// Lets time run until something happens that a node must know, but not beyond `limit`. `None`
    /// if nothing does until then; it is `limit` now.
    pub fn poll(&mut self, limit: Instant) -> Option<Happening> {
        loop {
            let next = self.queue.next().filter(|&(at, _)| at <= limit);
            let Some((at, slot)) = next else {
                self.queue.rest_until(limit);
                self.catch_up();
                return None;
            };
            self.queue.begin(slot);
            self.events += 1;
            match self.owners[slot.index()] {
                Owner::Link(link) => {
                    if let Some(delivery) = self.leave(link) {
                        self.catch_up();
                        return Some(Happening::Packet(delivery));
                    }
                }
                Owner::Timer(id) => {
                    let node = &mut self.nodes[id.0 as usize];
                    let is_due = node.deadline.is_some_and(|due| due.at() <= at);
                    if is_due {
                        node.deadline = None;
                    }
                    self.queue.set(slot, node.deadline);
                    if is_due {
                        self.catch_up();
                        return Some(Happening::Timer(id));
                    }
                }
                Owner::Source(source) => self.run_source(source),
                Owner::Schedule => {
                    if let Some(happening) = self.run_schedule() {
                        self.catch_up();
                        return Some(happening);
                    }
                }
            }
        }
    }

    /// When something happens next, in the network or by a node's timer.
    pub fn next_event(&self) -> Option<Instant> {
        let fed = self.fed.iter().filter_map(|link| self.links[link.0 as usize].feed.first());
        let others = self.queue.next().map(|(at, _)| at);
        fed.map(Due::at).chain(others).min()
    }

    /// Changes a link now.
    ///
    /// # Panics
    ///
    /// If [`fix_links`](Self::fix_links) said that none changes, and packets are under way.
    pub fn change(&mut self, link: LinkId, change: &LinkChange) {
        self.release_links();
        self.catch_up_on(link);
        let state = &mut self.links[link.0 as usize];
        let was_down = state.link.is_down();
        state.link.change(self.queue.now(), change);
        self.queue.set(state.slot, state.link.next_arrival());
        let is_down = state.link.is_down();
        if is_down != was_down {
            self.outages.push((self.queue.now(), link, is_down));
            self.moments.of_all(self.queue.now());
        }
        self.loss_changes += u64::from(matches!(change, LinkChange::Loss(_)));
    }

    /// Plans a change. Of several at one instant, the first planned comes first; all come before
    /// the packets of that instant that enter later.
    pub(crate) fn plan(&mut self, at: Instant, change: Change) {
        self.release_links();
        let due = self.queue.plan(at.max(self.queue.now()));
        self.schedule.add(due, change);
        self.queue.set(self.schedule_slot, self.schedule.next());
    }

    /// Plans a change of a link.
    pub fn change_at(&mut self, at: Instant, link: LinkId, change: LinkChange) {
        self.plan(at, Change::Link(link, change));
    }

    /// The link as it is now, without its planned changes.
    pub fn link_spec(&self, link: LinkId) -> &LinkSpec {
        self.links[link.0 as usize].link.spec()
    }

    /// MTU of the interface over which a node sends from an address: 1500 bytes, or more if its
    /// first link takes longer packets.
    pub(crate) fn interface_mtu(&self, node: NodeId, local: SocketAddr) -> usize {
        let routes = self.nodes[node.0 as usize].routes.iter();
        let own = routes.filter(|(source, ..)| *source == local).map(|(.., route)| route);
        let firsts = own.chain(self.nats.ways_from(node, local)).filter_map(|route| {
            let first = self.routes[route.0 as usize].spec.links.first()?;
            self.link_spec(*first).mtu
        });
        firsts.fold(ETHERNET_MTU, |most, mtu| most.max(mtu as usize))
    }

    /// True if the link is down now.
    pub(crate) fn is_link_down(&self, link: LinkId) -> bool {
        self.links[link.0 as usize].link.is_down()
    }

    /// Counters of the link so far.
    pub fn link_stats(&self, link: LinkId) -> LinkStats {
        self.links[link.0 as usize].link.stats()
    }

    /// The loss rates of the link that would have lost the same packets so far.
    pub fn loss_range(&self, link: LinkId) -> LossRange {
        self.links[link.0 as usize].link.loss_range()
    }

    /// Bytes of the packets that are under way now, without IP and UDP headers.
    pub fn bytes_under_way(&self) -> usize {
        self.packets.bytes()
    }

    /// Packets sent so far by all nodes.
    pub fn packets_sent(&self) -> u64 {
        self.packets_sent
    }

    /// Packets that had no route.
    pub fn unroutable(&self) -> u64 {
        self.unroutable
    }

    /// Events so far: packets of cross-traffic, arrivals at the end of a link, timers, planned
    /// changes. With [`fix_links`](Self::fix_links) a packet's arrivals count when its way ends.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The hash over everything that happened so far.
    pub fn trace_hash(&self) -> u64 {
        self.trace.value()
    }

    /// Adds an event of a node to the hash.
    pub fn trace_event(&mut self, node: NodeId, text: &[u8]) {
        self.trace.event(self.queue.now(), node.0, text);
    }

    /// Shows everything from now on to an observer, instead of to the one before.
    pub fn set_observer(&mut self, observer: Box<dyn Observer>) {
        self.observer = Some(observer);
    }

    /// Takes the observer away: to finish it.
    pub fn take_observer(&mut self) -> Option<Box<dyn Observer>> {
        self.observer.take()
    }

    /// Shows the observer, if there is one, an event of a node's engine.
    #[inline]
    pub(crate) fn show_event(&mut self, node: NodeId, event: &Event) {
        if let Some(observer) = &mut self.observer {
            observer.event(self.queue.now(), node, event);
        }
    }

    /// Shows the observer, if there is one, an association of a node.
    #[inline]
    pub(crate) fn show_association<'a>(
        &mut self,
        node: NodeId,
        association: impl FnOnce() -> Option<&'a Association>,
    ) {
        if let Some(observer) = &mut self.observer
            && let Some(association) = association()
        {
            observer.association(self.queue.now(), node, association);
        }
    }

    /// Starts to keep all packets.
    pub fn keep_packet_log(&mut self) {
        self.log.get_or_insert_with(|| PacketLog::new(self.packets_sent));
    }

    /// The packets kept.
    pub fn packet_log(&self) -> Option<&PacketLog> {
        self.log.as_ref()
    }

    #[inline(never)]
    fn run_schedule(&mut self) -> Option<Happening> {
        let change = self.schedule.pop();
        self.queue.set(self.schedule_slot, self.schedule.next());
        match change? {
            Change::Link(link, change) => self.change(link, &change),
            Change::Rebind(path, public) => self.rebind_path(path, public),
            Change::RebootNat(nat) => self.reboot_nat(nat),
            Change::TakeAddress(path, end) => {
                let (node, address) = self.path_end(path, end);
                return Some(Happening::Address(self.take_address(node, address)));
            }
            Change::GiveAddress(path, end, address) => {
                let (node, old) = self.path_end(path, end);
                let address = address.unwrap_or_else(|| self.fresh_address(old));
                return Some(Happening::Address(self.give_address(node, old, address)));
            }
            Change::Tell(message) => {
                self.trace.event(self.queue.now(), message.node.0, b"packet too long");
                return Some(Happening::TooLong(message));
            }
        }
        None
    }
}
