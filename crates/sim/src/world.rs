//! Any number of hosts on one network.

use std::borrow::BorrowMut;
use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use manypath_proto::config::Config;
use manypath_proto::{Instant, Rng};

use crate::host::{Host, HostConfig, ReflexiveAddress};
use crate::ids::{NatId, NodeId};
use crate::latency::LatencyMeter;
use crate::network::{AHEAD, Concerned, Happening, Moment, Network};
use crate::paths::{PathEnds, PathLinks};
use crate::protection::Keys;
use crate::result::TransferResult;
use crate::samples::{Samples, Sampling};

#[cfg(test)]
mod tests;

/// Names a host of a [`World`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(u32);

/// Two hosts that a [`World`] was given together, and the paths between them.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The host that associates and sends.
    pub from: HostId,
    /// The host that waits and receives.
    pub to: HostId,
    /// The numbers of its paths in the network, primary first; path `i` of the association is
    /// `paths[i]`, unless NATs keep some paths from being there at first.
    pub paths: Vec<usize>,
}

/// Where the hosts of a flow are: behind NATs, or on the Internet.
#[derive(Clone, Debug, Default)]
pub struct FlowNats {
    /// The innermost NAT that the host which associates is behind, if any.
    pub near: Option<NatId>,
    /// The innermost NAT that the host which waits is behind, if any.
    pub far: Option<NatId>,
    /// Paths that are a relay's, by their numbers in the flow, counted from 0. Each leads to an
    /// address on the Internet that a relay lends to the waiting host, past the NATs of that one.
    /// At the near end it starts from the address of the first path that is no relay's, if there is
    /// one: with a relay a host talks from the socket that it has.
    pub relayed: Vec<usize>,
}

/// The addresses that a relay lends: 192.0.2.9 (RFC 5737), with a port from TURN's range (RFC 8656
/// §7.2) for each.
const RELAY: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
const RELAYED_PORTS: std::ops::RangeInclusive<u16> = 49_152..=65_535;

/// Parameters of [`World::add_flow`].
#[derive(Clone, Debug)]
pub struct FlowSpec {
    /// Names its hosts' random numbers: another flow more or less changes none of this one's.
    pub name: String,
    /// The engine's configuration at the sender.
    pub sender: Arc<Config>,
    /// The engine's configuration at the receiver.
    pub receiver: Arc<Config>,
    /// The links of its paths, primary first.
    pub paths: Vec<PathLinks>,
    /// When it associates.
    pub start: Instant,
    /// Protects its packets, if there is one: the keys of both ends.
    pub keys: Option<Keys>,
    /// Counts spurious retransmissions.
    pub has_ledger: bool,
}

/// Flows of a world at most: each has a network of addresses of its own, between 10.0.0.0/8 and
/// the loopback addresses.
pub const MOST_FLOWS: usize = (127 - 10) * 256 - 1;

/// A network in virtual time and the hosts on it.
///
/// ```
/// use std::sync::Arc;
///
/// use manypath_proto::config::Config;
/// use manypath_sim::{FlowSpec, LinkSpec, PathLinks, QueueLimit, World, secs};
///
/// // Two flows share a link of 10 Mbit/s; the second comes three seconds later.
/// let mut world = World::new(7, 28);
/// let link = LinkSpec::mbps_ms(10.0, 20.0);
/// let there = world.net.add_link(link.clone(), QueueLimit::Packets(50));
/// let back = world.net.add_link(link, QueueLimit::Packets(50));
/// let config = Arc::new(Config::build("rfc9260", "sctp", &[])?);
/// let flows = [("early", 0), ("late", 3)].map(|(name, start)| {
///     world.add_flow(FlowSpec {
///         name: name.to_owned(),
///         sender: Arc::clone(&config),
///         receiver: Arc::clone(&config),
///         paths: vec![PathLinks { forward: vec![there], reverse: vec![back] }],
///         start: secs(start),
///         keys: None,
///         has_ledger: false,
///     })
/// });
/// world.host_mut(flows[0].from).send_file_at(secs(0), 5_000_000);
/// world.host_mut(flows[1].from).send_file_at(secs(3), 1_000_000);
/// assert!(world.run_to_end(secs(60)));
/// let late = world.result(flows[1].from, flows[1].to);
/// assert!(late.completed && late.transfer_time_s > 1.0, "it had not the link to itself");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct World {
    /// Everything between the hosts.
    pub net: Network,
    /// In the order of their nodes.
    /// Each by itself: a list that grows holds room for as many again.
    #[expect(clippy::vec_box, reason = "a host is large, and the list grows")]
    hosts: Vec<Box<Host>>,
    /// Hosts that may have commands that wait.
    waiting: Vec<HostId>,
    flows: u32,
    /// Addresses that relays have lent.
    relayed: usize,
    seed: u64,
    rng: Rng,
    checks_invariants: bool,
    watched: Vec<Watched>,
    timed: Vec<Timed>,
    /// The configurations of hosts, and what engines make of each: one for all hosts that share it.
    configs: Vec<(Arc<Config>, Arc<Config>)>,
}

/// The addresses of a path of a flow.
#[derive(Copy, Clone, Debug)]
struct FlowEnds {
    near: SocketAddr,
    far: SocketAddr,
    /// A relay has lent the far one.
    is_relayed: bool,
}

/// The addresses, each once, in their order.
fn distinct(addresses: impl Iterator<Item = SocketAddr>) -> Vec<SocketAddr> {
    let mut all = Vec::new();
    for address in addresses {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    all
}

/// A transfer of which samples are taken.
#[derive(Debug)]
struct Watched {
    from: HostId,
    to: HostId,
    samples: Samples,
}

/// A transfer whose messages' latencies are measured.
#[derive(Debug)]
struct Timed {
    from: HostId,
    to: HostId,
    meter: LatencyMeter,
}

impl World {
    /// A world without hosts. `header_bytes` is added to each packet's length on the wire: 28 for
    /// IPv4 and UDP, 20 for IPv4 alone, as in the papers.
    pub fn new(seed: u64, header_bytes: u32) -> World {
        let rng = Rng::from_number(seed);
        World {
            net: Network::new(rng.fork("network"), header_bytes),
            hosts: Vec::new(),
            waiting: Vec::new(),
            flows: 0,
            relayed: 0,
            seed,
            rng,
            checks_invariants: false,
            watched: Vec::new(),
            timed: Vec::new(),
            configs: Vec::new(),
        }
    }

    /// Sets whether the engines' invariants are checked after every step; by default they are not.
    pub fn check_invariants(&mut self, checks: bool) {
        self.checks_invariants = checks;
    }

    /// The random numbers of this name, the same for the same seed.
    pub fn rng(&self, name: &str) -> Rng {
        self.rng.fork(name)
    }

    /// Adds a host, at a node of its own.
    pub fn add_host(&mut self, setup: HostConfig) -> HostId {
        let id = HostId(self.hosts.len() as u32);
        let node = self.net.add_node();
        let engine = self.engine_config(&setup.config);
        self.hosts.push(Box::new(Host::with_engine_config(node, setup, engine)));
        self.waiting.push(id);
        id
    }

    /// The configuration of the engine of a host that has this one.
    fn engine_config(&mut self, config: &Arc<Config>) -> Arc<Config> {
        // Hosts mostly come in the order of their configurations.
        let latest = self.configs.iter().rev().take(8);
        if let Some((_, engine)) = latest.into_iter().find(|(own, _)| Arc::ptr_eq(own, config)) {
            return Arc::clone(engine);
        }
        let engine = Arc::new(config.for_simulation());
        self.configs.push((Arc::clone(config), Arc::clone(&engine)));
        engine
    }

    /// Adds two hosts and their paths. Path `p` of flow `f`, counted from 0, leads from
    /// 10.f+1.p+1.1 to 10.f+1.p+1.2; from flow 255 on from 11.0.p+1.1, and so on.
    ///
    /// # Panics
    ///
    /// If the world has [`MOST_FLOWS`] already, or the flow has no path or more than 200.
    pub fn add_flow(&mut self, spec: FlowSpec) -> Flow {
        self.add_flow_behind(spec, &FlowNats::default())
    }

    /// Adds two hosts that may be behind NATs, and their paths, which have the addresses of
    /// [`add_flow`](Self::add_flow) but for those that relays lend. The near host associates over
    /// the paths whose far address it can know: a relay's, and all if the far host is not behind
    /// NATs, or behind those of the near host alone.
    ///
    /// # Panics
    ///
    /// As [`add_flow`](Self::add_flow), if there is no path over which the near host can associate,
    /// or if relays have lent 16,384 addresses.
    pub fn add_flow_behind(&mut self, spec: FlowSpec, nats: &FlowNats) -> Flow {
        let count = spec.paths.len();
        assert!((1..=200).contains(&count), "flow {:?} has {count} paths", spec.name);
        assert!((self.flows as usize) < MOST_FLOWS, "at most {MOST_FLOWS} flows");
        self.flows += 1;
        let ends = self.ends_of_flow(count, nats);
        let is_known =
            nats.relayed.iter().any(|path| *path < count) || self.net.sees(nats.near, nats.far);
        assert!(is_known, "flow {:?} has no path to an address that is known", spec.name);
        let lent = ends.iter().filter(|ends| ends.is_relayed).map(|ends| ends.far);
        let relayed: Vec<_> = lent.collect();
        let setup = |config: &Arc<Config>, addresses, connect, role| HostConfig {
            config: Arc::clone(config),
            addresses,
            connect,
            candidates: Vec::new(),
            relayed: relayed.clone(),
            max_segments: 1,
            keys: spec.keys.clone(),
            has_ledger: spec.has_ledger,
            rng: self.rng(&format!("flow {} {role}", spec.name)),
        };
        let known = |ends: &&FlowEnds| ends.is_relayed || self.net.sees(nats.near, nats.far);
        let pairs = ends.iter().filter(known).map(|ends| (ends.near, ends.far)).collect();
        let near_addresses = distinct(ends.iter().map(|ends| ends.near));
        let far_addresses = distinct(ends.iter().map(|ends| ends.far));
        let sender = setup(&spec.sender, near_addresses, pairs, "sender");
        let receiver = setup(&spec.receiver, far_addresses, Vec::new(), "receiver");
        let (from, to) = (self.add_host(sender), self.add_host(receiver));
        let (near, far) = (self.host(from).node(), self.host(to).node());
        let has_nats = nats.near.is_some() || nats.far.is_some() || !nats.relayed.is_empty();
        let mut paths = Vec::new();
        for (own, links) in ends.iter().zip(spec.paths) {
            let ends = PathEnds { near: (near, own.near), far: (far, own.far) };
            if !has_nats {
                paths.push(self.net.add_path_over(ends, links));
                continue;
            }
            if let Some(nat) = nats.near {
                self.net.put_behind(near, own.near, nat);
            }
            match nats.far {
                Some(nat) if !own.is_relayed => self.net.put_behind(far, own.far, nat),
                _ => {}
            }
            paths.push(self.net.add_way(ends, links));
        }
        self.host_mut(from).start_at(spec.start);
        Flow { from, to, paths }
    }

    /// The addresses of the paths of a new flow.
    fn ends_of_flow(&mut self, count: usize, nats: &FlowNats) -> Vec<FlowEnds> {
        let [.., block, net] = (self.flows + 10 * 256).to_be_bytes();
        let address = |path: usize, end| {
            let ip = Ipv4Addr::new(block, net, path as u8 + 1, end);
            SocketAddr::new(IpAddr::V4(ip), 9899)
        };
        let is_relayed = |path: &usize| nats.relayed.contains(path);
        let direct = (0..count).find(|path| !is_relayed(path));
        let mut ends = Vec::with_capacity(count);
        for path in 0..count {
            let (mut near, mut far) = (address(path, 1), address(path, 2));
            if is_relayed(&path) {
                near = address(direct.unwrap_or(path), 1);
                let port = RELAYED_PORTS.clone().nth(self.relayed);
                let port = port.expect("at most 16,384 relayed addresses");
                far = SocketAddr::new(IpAddr::V4(RELAY), port);
                self.relayed += 1;
            }
            ends.push(FlowEnds { near, far, is_relayed: is_relayed(&path) });
        }
        ends
    }

    /// A host.
    pub fn host(&self, id: HostId) -> &Host {
        &self.hosts[id.0 as usize]
    }

    /// A host, to give it commands.
    pub fn host_mut(&mut self, id: HostId) -> &mut Host {
        if self.waiting.last() != Some(&id) {
            self.waiting.push(id);
        }
        &mut self.hosts[id.0 as usize]
    }

    /// Asks a STUN server how it sees each address of a host now; see
    /// [`Host::reflexive_addresses`].
    pub fn reflexive_addresses(&mut self, id: HostId) -> Vec<ReflexiveAddress> {
        self.hosts[id.0 as usize].reflexive_addresses(&mut self.net)
    }

    /// Does what happens next, if that is not beyond `limit`. False if nothing is left to do until
    /// then.
    pub fn step(&mut self, limit: Instant) -> bool {
        if !self.waiting.is_empty() {
            self.drive_waiting();
        }
        self.read_ahead();
        let has_acted = if self.watched.is_empty() {
            advance(&mut self.hosts, &mut self.net, limit, self.checks_invariants)
        } else {
            self.watched_step(limit)
        };
        if !self.timed.is_empty() {
            self.note_latencies();
        }
        has_acted
    }

    /// Reads what the next events will need, if there are many hosts: see
    /// [`network::ahead`](crate::network).
    #[inline]
    fn read_ahead(&mut self) {
        let mut nodes = [NodeId(0); AHEAD];
        let count = self.net.look_ahead(&mut nodes);
        if count > 0 {
            self.touch_hosts(&nodes[..count]);
        }
    }

    #[inline(never)]
    fn touch_hosts(&self, nodes: &[NodeId]) {
        let mut sum = 0_usize;
        for depth in 0..4 {
            for node in nodes {
                let host = self.hosts.get(node.0 as usize);
                sum = sum.wrapping_add(host.map_or(0, |host| host.touch(depth)));
            }
        }
        black_box(sum);
    }

    /// Lets the hosts that were given commands carry them out, in the order of their nodes.
    fn drive_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.sort_unstable();
        waiting.dedup();
        for id in &waiting {
            let host = &mut self.hosts[id.0 as usize];
            if host.has_commands() {
                host.drive(&mut self.net);
            }
        }
        waiting.clear();
        self.waiting = waiting; // its memory is used again
    }

    fn note_latencies(&mut self) {
        let now = self.net.now();
        for Timed { from, to, meter } in &mut self.timed {
            let (from, to) = (&self.hosts[from.0 as usize], &self.hosts[to.0 as usize]);
            meter.note(from.sent_messages(), to.received_messages(), now);
        }
    }

    /// Measures the latencies of the messages from one host to another from now on; for messages of
    /// one stream, in order. It changes nothing in the run.
    pub fn measure_latency(&mut self, from: HostId, to: HostId) {
        self.timed.push(Timed { from, to, meter: LatencyMeter::default() });
    }

    /// [`step`](Self::step) with samples: takes those due now, then goes on at most to the next
    /// one.
    fn watched_step(&mut self, limit: Instant) -> bool {
        let next = self.watched.iter().filter_map(|watched| watched.samples.next()).min();
        let next = next.filter(|next| *next <= limit);
        let has_acted =
            advance(&mut self.hosts, &mut self.net, next.unwrap_or(limit), self.checks_invariants);
        let now = self.net.now();
        for Watched { from, to, samples } in &mut self.watched {
            let (from, to) = (&self.hosts[from.0 as usize], &self.hosts[to.0 as usize]);
            if has_acted {
                samples.on_change(from, to, now);
            } else {
                samples.on_time(from, to, now);
            }
        }
        has_acted || next.is_some()
    }

    /// Takes samples of the transfer from one host to another from now on. They change nothing in
    /// the run.
    pub fn watch(&mut self, from: HostId, to: HostId, wanted: Sampling) {
        let samples = Samples::new(wanted, self.net.now());
        self.watched.push(Watched { from, to, samples });
    }

    /// Ends the taking of samples of a transfer and returns them; `None` if none were to be taken.
    pub fn take_samples(&mut self, from: HostId, to: HostId) -> Option<Samples> {
        let index = self.watched.iter().position(|w| (w.from, w.to) == (from, to))?;
        Some(self.watched.remove(index).samples)
    }

    /// Runs to that time.
    pub fn run_until(&mut self, limit: Instant) {
        while self.step(limit) {}
    }

    /// Runs until `is_true`, at most to `limit`. Returns whether it became true.
    pub fn run_until_true(
        &mut self,
        limit: Instant,
        mut is_true: impl FnMut(&World) -> bool,
    ) -> bool {
        loop {
            if is_true(self) {
                return true;
            }
            if !self.step(limit) {
                return is_true(self);
            }
        }
    }

    /// Runs until everything that any host sends is acknowledged, at most to `limit`. Returns
    /// whether it is.
    pub fn run_to_end(&mut self, limit: Instant) -> bool {
        let mut first = FirstUnsettled::default();
        self.run_until_true(limit, |world| {
            let hosts = &world.hosts;
            first.find(hosts.len(), |host| hosts[host].has_been_acked_all()).is_none()
        })
    }

    /// Result so far of the transfer from one host to another.
    pub fn result(&self, from: HostId, to: HostId) -> TransferResult {
        let mut result = TransferResult::of(self.host(from), self.host(to), &self.net, self.seed);
        let timed = self.timed.iter().find(|timed| (timed.from, timed.to) == (from, to));
        result.message_latency_p99_s = timed.and_then(|timed| timed.meter.p99_s());
        result
    }
}

/// Looks for one that is not settled among many, of which hardly any unsettles again: it goes on
/// where it was, so that all questions together cost little more than one walk over all.
#[derive(Debug, Default)]
pub(crate) struct FirstUnsettled(usize);

impl FirstUnsettled {
    /// One of `count` that is not settled; `None` if all are.
    #[inline]
    pub(crate) fn find(
        &mut self,
        count: usize,
        is_settled: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        if self.0 < count && !is_settled(self.0) {
            return Some(self.0);
        }
        self.0 = (self.0..count).chain(0..self.0.min(count)).find(|at| !is_settled(*at))?;
        Some(self.0)
    }
}

/// Lets the hosts that were given commands carry them out.
pub(crate) fn drive_waiting<H: BorrowMut<Host>>(hosts: &mut [H], net: &mut Network) {
    for host in hosts.iter_mut().map(BorrowMut::borrow_mut).filter(|host| host.has_commands()) {
        host.drive(net);
    }
}

/// Does what happens next, if that is not beyond `limit`. False if nothing does. The hosts are in
/// the order of their nodes.
pub(crate) fn advance<H: BorrowMut<Host>>(
    hosts: &mut [H],
    net: &mut Network,
    limit: Instant,
    checks_invariants: bool,
) -> bool {
    let happening = net.poll(limit);
    // Nothing was received since the moments up to now, which may be earlier.
    note_received(hosts, net);
    let Some(happening) = happening else { return false };
    handle(hosts, net, happening);
    note_received(hosts, net);
    if checks_invariants {
        hosts.iter().for_each(|host| host.borrow().check_invariants());
    }
    true
}

/// Tells the hosts what happened.
#[inline]
pub(crate) fn handle<H: BorrowMut<Host>>(hosts: &mut [H], net: &mut Network, happening: Happening) {
    match happening {
        Happening::Packet(packet) => {
            if let Some(from) = host_at(hosts, net.route_source(packet.route))
                && let Some(ledger) = &mut from.ledger
            {
                ledger.arrived(&packet.payload);
            }
            if let Some(to) = host_at(hosts, packet.node) {
                to.handle_packet(packet, net);
            }
        }
        Happening::TooLong(message) => {
            if let Some(host) = host_at(hosts, message.node) {
                host.handle_too_long(&message, net);
            }
        }
        Happening::Timer(node) => {
            if let Some(host) = host_at(hosts, node) {
                host.handle_timer(net);
            }
        }
        Happening::Address(change) => {
            if let Some(host) = host_at(hosts, change.node()) {
                host.handle_address(&change, net);
            }
        }
    }
}

/// Has the hosts note what they have received by the network's new moments.
#[inline]
pub(crate) fn note_received<H: BorrowMut<Host>>(hosts: &mut [H], net: &mut Network) {
    for Moment { at, concerned } in net.new_moments().into_iter().flatten() {
        match concerned {
            Concerned::All => {
                hosts.iter_mut().for_each(|host| host.borrow_mut().note_received(at));
            }
            Concerned::These(nodes) => nodes.into_iter().for_each(|node| {
                if let Some(host) = host_at(hosts, node) {
                    host.note_received(at);
                }
            }),
        }
    }
}

fn host_at<H: BorrowMut<Host>>(hosts: &mut [H], node: NodeId) -> Option<&mut Host> {
    // In most networks all nodes are hosts, and a node and its host have one number.
    let number = node.0 as usize;
    let index = match hosts.get(number) {
        Some(host) if host.borrow().node() == node => number,
        _ => hosts.binary_search_by_key(&node, |host| host.borrow().node()).ok()?,
    };
    Some(hosts[index].borrow_mut())
}
