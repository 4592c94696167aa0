//! From a compiled scenario to its result: builds the network and runs it.

use std::any::Any;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use manypath_proto::{Instant, Rng};
use serde::{Serialize, Serializer};

use super::model::{After, CompiledScenario, Flow, PlannedChange, Way};
use crate::host::{Host, HostConfig};
use crate::network::{Happening, LinkId, Network, NodeId};
use crate::paths::PathEnds;
use crate::result::TransferResult;
use crate::spec::QueueLimit;

/// What to do beside running.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Checks the engine's invariants after every step; slow.
    pub check_invariants: bool,
    /// Leaves out what costs time and memory: the count of spurious retransmissions.
    pub is_lean: bool,
}

/// What a run gives.
#[derive(Clone, Debug)]
pub struct RunOutput {
    /// The figures.
    pub result: RunResult,
}

/// The object that is printed for each run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// The scenario's name.
    pub scenario: String,
    /// The swept parameters and their values.
    #[serde(serialize_with = "as_map")]
    pub parameters: Vec<(String, String)>,
    /// The transfer; of several flows the first, or all stripes of a split file.
    #[serde(flatten)]
    pub transfer: TransferResult,
    /// The other flows, by name.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<(String, TransferResult)>,
}

fn as_map<S: Serializer, T: Serialize>(
    entries: &[(String, T)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(entries.iter().map(|(name, value)| (name, value)))
}

/// A run that gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunError {
    /// The engine or the simulator failed a check of its own: a bug.
    Panicked(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Panicked(message) => write!(f, "the run failed a check: {message}"),
        }
    }
}

impl std::error::Error for RunError {}

impl CompiledScenario {
    /// Runs it. The result is a function of the scenario and the seed.
    pub fn run(&self, seed: u64, options: &RunOptions) -> Result<RunOutput, RunError> {
        catch_unwind(AssertUnwindSafe(|| Run::new(self, seed, options).run()))
            .map_err(|panic| RunError::Panicked(message_of(&*panic)))
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".to_owned())
}

/// The two hosts of a flow.
struct Ends {
    a: Host,
    z: Host,
    start: Instant,
    /// Has an endless transfer: nobody waits for its end.
    is_endless: bool,
}

impl Ends {
    fn has_delivered_all(&self) -> bool {
        let is_done = |from: &Host, to: &Host| {
            from.has_sent_all() && from.sent_bytes() == to.received_bytes()
        };
        is_done(&self.a, &self.z) && is_done(&self.z, &self.a)
    }

    fn is_lost(&self) -> bool {
        self.a.closed().is_some() && self.z.closed().is_some()
    }
}

/// A run under way.
struct Run<'s> {
    scenario: &'s CompiledScenario,
    options: &'s RunOptions,
    seed: u64,
    net: Network,
    /// The two directions of each cable.
    links: Vec<[LinkId; 2]>,
    ends: Vec<Ends>,
    /// What is still to be sent: when, by which flow, in reverse, how much. The latest first.
    sends: Vec<(Instant, usize, bool, u64)>,
    /// Changes that count from the first DATA, until it leaves.
    waiting: Vec<&'s PlannedChange>,
    striped_at: Option<Instant>,
}

/// Bytes of an endless transfer: more than any run sends.
const ENDLESS: u64 = 1 << 62;

impl<'s> Run<'s> {
    fn new(scenario: &'s CompiledScenario, seed: u64, options: &'s RunOptions) -> Run<'s> {
        let rng = Rng::from_number(seed);
        let is_ip = scenario.config().is_some_and(|config| !config.udp_encapsulation);
        let header_bytes = if is_ip { 20 } else { 28 };
        let mut run = Run {
            scenario,
            options,
            seed,
            net: Network::new(rng.fork("network"), header_bytes),
            links: Vec::new(),
            ends: Vec::new(),
            sends: Vec::new(),
            waiting: Vec::new(),
            striped_at: None,
        };
        let nodes: Vec<_> =
            scenario.flows.iter().map(|_| (run.net.add_node(), run.net.add_node())).collect();
        for cable in &scenario.cables {
            let link = |net: &mut Network, spec| net.add_link(spec, QueueLimit::Unlimited);
            let forward = link(&mut run.net, cable.forward.clone());
            run.links.push([forward, link(&mut run.net, cable.reverse.clone())]);
        }
        for (number, (flow, nodes)) in scenario.flows.iter().zip(nodes).enumerate() {
            run.add_flow(number, flow, nodes, &rng);
        }
        run.sends.sort_by_key(|&(at, flow, ..)| (at, flow));
        run.sends.reverse();
        for change in &scenario.changes {
            match change.after {
                After::Start => run.plan(change, Instant::ZERO),
                After::FirstData => run.waiting.push(change),
            }
        }
        run
    }

    fn add_flow(&mut self, number: usize, flow: &Flow, nodes: (NodeId, NodeId), rng: &Rng) {
        let (mut near, mut far, mut connect) = (Vec::new(), Vec::new(), Vec::new());
        for (i, path) in flow.paths.iter().enumerate() {
            let (local, remote) = addresses(number, i);
            near.push(local);
            far.push(remote);
            connect.push((local, remote));
            let pick = |is_back: bool| {
                let link = |crossing: &super::model::Crossing| {
                    self.links[crossing.cable][usize::from(crossing.is_reversed != is_back)]
                };
                path.crossings.iter().map(link).collect::<Vec<LinkId>>()
            };
            let (forward, reverse) = (pick(false), pick(true));
            let ends = PathEnds { near: (nodes.0, local), far: (nodes.1, remote) };
            self.net.add_path_over(ends, forward, reverse);
        }
        let suffix = if number == 0 { String::new() } else { format!(" {number}") };
        let host = |node, config: &Arc<_>, addresses, connect, name: &str| {
            let setup = HostConfig {
                config: Arc::clone(config),
                addresses,
                connect,
                max_segments: 1,
                has_ledger: !self.options.is_lean,
                rng: rng.fork(&format!("{name}{suffix}")),
            };
            Host::new(node, setup)
        };
        let start = flow.transfers.iter().map(|transfer| transfer.start).min().unwrap_or_default();
        self.ends.push(Ends {
            a: host(nodes.0, &flow.config_a, near, connect, "host a"),
            z: host(nodes.1, &flow.config_z, far, Vec::new(), "host z"),
            start: Instant::ZERO + start,
            is_endless: flow.transfers.iter().any(|transfer| transfer.bytes.is_none()),
        });
        for transfer in &flow.transfers {
            let at = Instant::ZERO + transfer.start;
            let bytes = transfer.bytes.unwrap_or(ENDLESS);
            self.sends.push((at, number, transfer.is_reverse, bytes));
        }
    }

    fn run(mut self) -> RunOutput {
        let limit = Instant::ZERO + self.scenario.time_limit;
        while !self.is_over() && self.step(limit) {}
        RunOutput { result: self.result() }
    }

    fn is_over(&mut self) -> bool {
        if let Some(bytes) = self.scenario.stripe {
            return self.is_stripe_complete(bytes);
        }
        let is_settled = |ends: &Ends| ends.is_lost() || ends.has_delivered_all();
        let has_finite = self.ends.iter().any(|ends| !ends.is_endless);
        let waited_for = |ends: &&Ends| !ends.is_endless || !has_finite;
        self.sends.is_empty() && self.ends.iter().filter(waited_for).all(is_settled)
    }

    fn is_stripe_complete(&mut self, bytes: u64) -> bool {
        let sum: u64 = self.ends.iter().map(|ends| ends.z.received_bytes()).sum();
        if sum >= bytes && self.striped_at.is_none() {
            self.striped_at = Some(self.net.now());
        }
        self.striped_at.is_some() || (self.sends.is_empty() && self.ends.iter().all(Ends::is_lost))
    }

    /// Does what happens next. False if nothing is left to do until `limit`.
    fn step(&mut self, limit: Instant) -> bool {
        let next_send = self.sends.last().map(|&(at, ..)| at).filter(|at| *at <= limit);
        let now = self.net.now();
        if next_send.is_some_and(|at| at <= now) {
            if let Some((_, flow, is_reverse, bytes)) = self.sends.pop() {
                let ends = &mut self.ends[flow];
                let host = if is_reverse { &mut ends.z } else { &mut ends.a };
                host.send_file(bytes);
            }
            return true;
        }
        for ends in self.ends.iter_mut().filter(|ends| ends.start <= now) {
            for host in [&mut ends.a, &mut ends.z] {
                if host.has_commands() {
                    host.drive(&mut self.net);
                }
            }
        }
        match self.net.poll(next_send.unwrap_or(limit)) {
            None => return next_send.is_some(),
            Some(Happening::Packet(packet)) => {
                let number = flow_of(packet.node);
                let Ends { a, z, .. } = &mut self.ends[number];
                let (to, from) = if packet.node == a.node() { (a, z) } else { (z, a) };
                if let Some(ledger) = &mut from.ledger {
                    ledger.arrived(&packet.payload);
                }
                to.handle_packet(packet, &mut self.net);
                self.after_step(number);
            }
            Some(Happening::Timer(node)) => {
                let number = flow_of(node);
                let Ends { a, z, .. } = &mut self.ends[number];
                let host = if node == a.node() { a } else { z };
                host.handle_timer(&mut self.net);
                self.after_step(number);
            }
        }
        true
    }

    fn after_step(&mut self, flow: usize) {
        if self.options.check_invariants {
            self.ends[flow].a.check_invariants();
            self.ends[flow].z.check_invariants();
        }
        if self.waiting.is_empty() {
            return;
        }
        let has_sent = |host: &Host| host.paths().iter().any(|path| path.data_chunks_sent > 0);
        if self.ends.iter().any(|ends| has_sent(&ends.a) || has_sent(&ends.z)) {
            for change in std::mem::take(&mut self.waiting) {
                self.plan(change, self.net.now());
            }
        }
    }

    fn plan(&mut self, change: &PlannedChange, from: Instant) {
        let [forward, reverse] = self.links[change.cable];
        for (link, other) in [(forward, Way::Reverse), (reverse, Way::Forward)] {
            if change.way != other {
                self.net.change_at(from + change.at, link, change.change.clone());
            }
        }
    }

    fn result(&self) -> RunResult {
        let mut all = self.scenario.flows.iter().zip(&self.ends).map(|(flow, ends)| {
            let is_reverse = flow.transfers.iter().all(|transfer| transfer.is_reverse);
            let (from, to) = if is_reverse { (&ends.z, &ends.a) } else { (&ends.a, &ends.z) };
            let result = TransferResult::of(from, to, &self.net, &flow.preset, self.seed);
            (flow.name.clone(), result)
        });
        // A scenario has at least one flow: the parser sees to it.
        let first = all.next().map(|(_, result)| result);
        let mut transfer = first.unwrap_or_else(|| unreachable!("no flow"));
        let mut flows: Vec<(String, TransferResult)> = all.collect();
        if let Some(bytes) = self.scenario.stripe {
            for (_, stripe) in std::mem::take(&mut flows) {
                join_stripe(&mut transfer, stripe);
            }
            self.finish_stripes(&mut transfer, bytes);
        }
        RunResult {
            scenario: self.scenario.name.clone(),
            parameters: self.scenario.parameters.clone(),
            transfer,
            flows,
        }
    }

    /// The time of a split file is when the sums of what the stripes delivered reach its size.
    fn finish_stripes(&self, result: &mut TransferResult, bytes: u64) {
        let first = self.ends.iter().filter_map(|ends| ends.a.sender.first).min();
        let end = self.striped_at.unwrap_or(self.net.now());
        let time = first.map_or(0.0, |first| end.saturating_since(first).as_secs_f64());
        result.completed = self.striped_at.is_some();
        result.bytes = result.bytes.min(bytes);
        result.transfer_time_s = time;
        result.goodput_bps = if time > 0.0 { result.bytes as f64 * 8.0 / time } else { 0.0 };
    }
}

/// Adds what another stripe of the same file did.
fn join_stripe(result: &mut TransferResult, other: TransferResult) {
    result.bytes += other.bytes;
    result.receive_buffer_blocked_s += other.receive_buffer_blocked_s;
    result.max_delivery_gap_s = result.max_delivery_gap_s.max(other.max_delivery_gap_s);
    result.first_byte_s = match (result.first_byte_s, other.first_byte_s) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
    result.paths.extend(other.paths);
}

/// The flow of a host: hosts are the first nodes, two for each flow.
fn flow_of(node: NodeId) -> usize {
    node.0 as usize / 2
}

/// The addresses of a path: 10.F.N.1 and 10.F.N.2, F the flow from 0, N the path from 1.
fn addresses(flow: usize, path: usize) -> (SocketAddr, SocketAddr) {
    let at = |host| IpAddr::V4(Ipv4Addr::new(10, flow as u8, path as u8 + 1, host));
    (SocketAddr::new(at(1), 9899), SocketAddr::new(at(2), 9899))
}
