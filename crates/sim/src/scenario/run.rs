//! From a compiled scenario to its result: builds the network and runs it.

use std::any::Any;
use std::fmt;
use std::io;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use manypath_proto::Instant;
use manypath_proto::sizes::{IPV4_HEADER, UDP_IPV4_HEADERS};
use serde::{Serialize, Serializer};

use super::groups::{GroupResult, Groups};
use super::model::{
    After, CompiledScenario, Flow as FlowModel, PlannedChange, PlannedMove, PlannedRank,
    PlannedReboot,
};
use super::nats::PlacedNats;
use super::wiring::Wiring;
use crate::host::Host;
use crate::ids::End;
use crate::link::loss_range::LossRange;
use crate::nat::NatStats;
use crate::protection::{RunKeys, shared_key};
use crate::result::TransferResult;
use crate::samples::{Samples, Sampling};
use crate::tracer::TraceTo;
use crate::world::{FirstUnsettled, Flow, FlowSpec, HostId, World};

/// Options of a run.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Checks the engine's invariants after every step; slow.
    pub check_invariants: bool,
    /// Leaves out what costs time and memory: the count of spurious retransmissions.
    pub is_lean: bool,
    /// Takes samples of the first flow over time.
    pub samples: Option<Sampling>,
    /// Writes what happens in the run as typed events and pcapng captures.
    pub trace: Option<TraceTo>,
    /// Ends the run without a result once it is true.
    pub cancel: Option<Arc<AtomicBool>>,
}

/// Output of a run.
#[derive(Clone, Debug)]
pub struct RunOutput {
    /// The figures.
    pub result: RunResult,
    /// The samples, if they were asked for.
    pub samples: Option<Samples>,
    /// For each link, forward and back in the order of the scenario, the loss rates that give the
    /// same run.
    pub loss_ranges: Vec<LossRange>,
}

/// The object that is printed for each run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunResult {
    /// The swept parameters and their values.
    #[serde(serialize_with = "as_map")]
    pub parameters: Vec<(String, String)>,
    /// The transfer; of several flows the first, or all stripes of a split file.
    #[serde(flatten)]
    pub transfer: TransferResult,
    /// The other flows, by name.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<(String, TransferResult)>,
    /// The flows that have copies, by their name.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<(String, GroupResult)>,
    /// The counters of the NATs, by their name.
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    pub nats: Vec<(String, NatStats)>,
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
    /// Its trace could not be written: which file, and why.
    Trace(String),
    /// [`RunOptions::cancel`] became true.
    Cancelled,
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Panicked(message) => write!(f, "the run failed a check: {message}"),
            RunError::Trace(message) => write!(f, "{message}"),
            RunError::Cancelled => f.write_str("the run was cancelled"),
        }
    }
}

impl std::error::Error for RunError {}

impl CompiledScenario {
    /// Runs it. The result is a function of the scenario and the seed.
    pub fn run(&self, seed: u64, options: &RunOptions) -> Result<RunOutput, RunError> {
        let run = || {
            let mut run = Run::new(self, seed, options);
            run.trace(options.trace.as_ref())?;
            run.run(options.cancel.as_deref())
        };
        let result = catch_unwind(AssertUnwindSafe(run));
        result.unwrap_or_else(|panic| Err(RunError::Panicked(message_of(&*panic))))
    }
}

fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".to_owned())
}

/// A flow under way.
struct Running {
    /// The number of its model.
    model: usize,
    flow: Flow,
    /// Nobody waits for the end of a flow that has none.
    is_endless: bool,
    /// When its endless transfers end, if they do.
    until: Option<Instant>,
    is_reverse: bool,
}

impl Running {
    /// The sender and the receiver.
    fn ends(&self) -> (HostId, HostId) {
        let Flow { from, to, .. } = self.flow;
        if self.is_reverse { (to, from) } else { (from, to) }
    }
}

/// A run under way.
struct Run<'s> {
    scenario: &'s CompiledScenario,
    seed: u64,
    world: World,
    limit: Instant,
    wiring: Wiring,
    nats: PlacedNats,
    flows: Vec<Running>,
    /// The first flow of each model.
    first_of: Vec<usize>,
    groups: Groups,
    /// Those whose end the run waits for.
    finite: Vec<usize>,
    unsettled: FirstUnsettled,
    /// The keys of protected packets, where a trace shows them opened.
    keys: Option<RunKeys>,
    /// Changes of links whose time counts from the first DATA chunk, until it leaves.
    waiting: Vec<&'s PlannedChange>,
    /// Changes of addresses, as in `waiting`.
    waiting_moves: Vec<PlannedMove>,
    /// Changes of ranks, as in `waiting`.
    waiting_ranks: Vec<PlannedRank>,
    /// Reboots of NATs, as in `waiting`.
    waiting_reboots: Vec<PlannedReboot>,
}

impl<'s> Run<'s> {
    fn new(scenario: &'s CompiledScenario, seed: u64, options: &RunOptions) -> Run<'s> {
        let is_ip = scenario.config().is_some_and(|config| !config.udp_encapsulation);
        let mut world =
            World::new(seed, (if is_ip { IPV4_HEADER } else { UDP_IPV4_HEADERS }) as u32);
        world.check_invariants(options.check_invariants);
        let limit = Instant::ZERO + scenario.time_limit;
        let wiring = Wiring::add(scenario, &mut world.net);
        let nats = scenario.nats.place(&mut world.net);
        let mut run = Run {
            scenario,
            seed,
            world,
            limit,
            wiring,
            nats,
            flows: Vec::new(),
            first_of: Vec::new(),
            groups: Groups::default(),
            finite: Vec::new(),
            unsettled: FirstUnsettled::default(),
            keys: options.trace.as_ref().filter(|to| to.opened).map(|_| RunKeys::default()),
            waiting: Vec::new(),
            waiting_moves: Vec::new(),
            waiting_ranks: Vec::new(),
            waiting_reboots: Vec::new(),
        };
        for (number, flow) in scenario.flows.iter().enumerate() {
            run.first_of.push(run.flows.len());
            for copy in 1..=flow.copies {
                run.add_flow(number, copy, flow, options);
            }
        }
        run.groups = Groups::of(scenario, &run.first_of);
        if let (Some(wanted), Some(first)) = (options.samples, run.flows.first()) {
            let (from, to) = first.ends();
            run.world.watch(from, to, wanted);
        }
        run.plan_from_start();
        if scenario.changes.is_empty() && scenario.moves.is_empty() {
            run.world.net.fix_links();
        }
        run
    }

    /// Plans the changes whose times count from the start, and keeps the others.
    fn plan_from_start(&mut self) {
        for change in &self.scenario.changes {
            match change.after {
                After::Start => self.plan(change, Instant::ZERO),
                After::FirstData => self.waiting.push(change),
            }
        }
        for planned in &self.scenario.moves {
            match planned.after {
                After::Start => self.plan_move(planned, Instant::ZERO),
                After::FirstData => self.waiting_moves.push(*planned),
            }
        }
        for planned in &self.scenario.ranks {
            match planned.after {
                After::Start => self.plan_rank(planned, Instant::ZERO),
                After::FirstData => self.waiting_ranks.push(*planned),
            }
        }
        for planned in &self.scenario.reboots {
            match planned.after {
                After::Start => self.plan_reboot(*planned, Instant::ZERO),
                After::FirstData => self.waiting_reboots.push(*planned),
            }
        }
    }

    fn add_flow(&mut self, model: usize, copy: usize, flow: &FlowModel, options: &RunOptions) {
        let paths = flow.paths.iter().map(|path| self.wiring.path(&path.crossings));
        let name = flow.name_of(copy);
        let delay = if flow.spread.is_zero() {
            Duration::ZERO
        } else {
            flow.spread.mul_f64(self.world.rng(&format!("start of {name}")).unit())
        };
        let start = flow.transfers.iter().map(|transfer| transfer.start).min().unwrap_or_default();
        let start = start + delay;
        let spec = FlowSpec {
            name,
            sender: Arc::clone(&flow.config_a),
            receiver: Arc::clone(&flow.config_z),
            paths: paths.collect(),
            start: Instant::ZERO + start,
            keys: self.scenario.is_protected.then(|| match &self.keys {
                Some(keys) => keys.shared_key(),
                None => shared_key(),
            }),
            has_ledger: !options.is_lean,
        };
        let relayed = flow.paths.iter().enumerate().filter(|(_, path)| path.is_relayed);
        let relayed = relayed.map(|(number, _)| number).collect();
        let nats = self.scenario.nats.of_flow(&self.nats, relayed);
        let ends = self.world.add_flow_behind(spec, &nats);
        for transfer in &flow.transfers {
            let at = Instant::ZERO + transfer.start + delay;
            let host = self.world.host_mut(if transfer.is_reverse { ends.to } else { ends.from });
            match transfer.bytes {
                Some(bytes) => host.send_messages_at(at, bytes, transfer.kind, transfer.every),
                None => {
                    let until = transfer.until.map_or(self.limit, |t| Instant::ZERO + t);
                    host.send_between(at, until, transfer.kind);
                }
            }
            if transfer.kind.limits.has_any() {
                let taker = if transfer.is_reverse { ends.from } else { ends.to };
                self.world.host_mut(taker).expect_gaps();
            }
        }
        let running = Running {
            model,
            flow: ends,
            is_endless: flow.transfers.iter().any(|transfer| transfer.is_endless()),
            until: flow.transfers.iter().filter_map(|t| t.until).max().map(|t| Instant::ZERO + t),
            is_reverse: flow.transfers.iter().all(|transfer| transfer.is_reverse),
        };
        // The messages of a split file are not the application's, so their latency says nothing.
        if self.scenario.stripe.is_none() && flow.transfers.iter().any(|t| t.latency) {
            let (from, to) = running.ends();
            self.world.measure_latency(from, to);
        }
        if !running.is_endless {
            self.finite.push(self.flows.len());
        }
        self.flows.push(running);
    }

    /// Traces the hosts: `a` and `z`, or `FLOW-a` and `FLOW-z` of several flows.
    fn trace(&mut self, to: Option<&TraceTo>) -> Result<(), RunError> {
        let Some(to) = to else { return Ok(()) };
        let failed = |error: io::Error| RunError::Trace(error.to_string());
        let scenario = self.scenario;
        let open = to.open(&scenario.name, &scenario.parameters, self.seed);
        let mut tracer = open.map_err(failed)?;
        if let Some(keys) = &self.keys {
            tracer = tracer.opened_with(keys.clone());
        }
        for (number, running) in self.flows.iter().enumerate() {
            let copy = number - self.first_of[running.model] + 1;
            let flow = scenario.flows[running.model].name_of(copy);
            for (id, end) in [(running.flow.from, "a"), (running.flow.to, "z")] {
                let host = self.world.host(id);
                let name = match self.flows.len() {
                    1 => end.to_owned(),
                    _ => format!("{flow}-{end}"),
                };
                tracer.host(host.node(), &name, host.config()).map_err(failed)?;
            }
        }
        if let (Some(model), Some(running)) = (scenario.flows.first(), self.flows.first()) {
            let host = self.world.host(running.ends().0);
            // What comes before the most is a greeting.
            let content = model.transfers.iter().max_by_key(|transfer| transfer.bytes);
            let begin = content.map(|transfer| transfer.start).unwrap_or_default();
            let bytes = content.and_then(|transfer| transfer.bytes);
            let (config, is_protected) = (host.config(), scenario.is_protected);
            tracer.record_sender(host.node(), config, is_protected, Instant::ZERO + begin, bytes);
        }
        self.world.net.set_observer(Box::new(tracer));
        Ok(())
    }

    fn run(mut self, cancel: Option<&AtomicBool>) -> Result<RunOutput, RunError> {
        while !self.is_over() && self.step() {
            if cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
                return Err(RunError::Cancelled);
            }
            if self.has_waiting_plans() {
                self.plan_after_first_data();
            }
        }
        // A run may end with an event of the instant at which a part of it is over.
        while self.groups.next().is_some_and(|at| at <= self.world.net.now()) {
            self.end_tenth();
        }
        if let Some(mut observer) = self.world.net.take_observer() {
            observer.finish().map_err(|error| RunError::Trace(error.to_string()))?;
        }
        let ends = self.flows.first().map(Running::ends);
        let samples = ends.and_then(|(from, to)| self.world.take_samples(from, to));
        let links = self.wiring.links().iter().flatten();
        let loss_ranges = links.map(|&link| self.world.net.loss_range(link)).collect();
        Ok(RunOutput { result: self.result(), samples, loss_ranges })
    }

    /// Does what happens next; false if nothing is left to do.
    fn step(&mut self) -> bool {
        let Some(at) = self.groups.next() else { return self.world.step(self.limit) };
        if self.world.step(at) {
            return true;
        }
        self.end_tenth();
        true
    }

    fn end_tenth(&mut self) {
        let received = |flow: usize| self.world.host(self.flows[flow].ends().1).received_bytes();
        self.groups.take(received);
    }

    fn is_over(&mut self) -> bool {
        if let Some(bytes) = self.scenario.stripe {
            let is_lost = |running: &Running| self.is_lost(running);
            return self.stripe_bytes() >= bytes || self.flows.iter().all(is_lost);
        }
        let mut unsettled = std::mem::take(&mut self.unsettled);
        let is_settled = |flow: usize| self.is_settled(&self.flows[self.finite[flow]]);
        let is_over = unsettled.find(self.finite.len(), is_settled).is_none();
        self.unsettled = unsettled;
        is_over && !self.finite.is_empty()
    }

    fn stripe_bytes(&self) -> u64 {
        self.flows.iter().map(|running| self.world.host(running.flow.to).received_bytes()).sum()
    }

    fn is_lost(&self, running: &Running) -> bool {
        let Flow { from, to, .. } = running.flow;
        self.world.host(from).closed().is_some() && self.world.host(to).closed().is_some()
    }

    /// An endless transfer has come to its `until`; what the association still holds is of no
    /// interest.
    fn has_had_its_time(&self, running: &Running) -> bool {
        running.until.is_some_and(|until| self.world.net.now() >= until)
    }

    fn is_settled(&self, running: &Running) -> bool {
        let Flow { from, to, .. } = running.flow;
        let is_done = |host: &Host| host.has_been_acked_all();
        (is_done(self.world.host(from)) && is_done(self.world.host(to)))
            || self.has_had_its_time(running)
            || self.is_lost(running)
    }

    fn has_waiting_plans(&self) -> bool {
        let waits = !self.waiting.is_empty() || !self.waiting_moves.is_empty();
        waits || !self.waiting_ranks.is_empty() || !self.waiting_reboots.is_empty()
    }

    fn plan_after_first_data(&mut self) {
        let first = |id| self.world.host(id).stats().and_then(|stats| stats.first_data_sent);
        let ends = self.flows.iter().flat_map(|r| [first(r.flow.from), first(r.flow.to)]);
        if let Some(first) = ends.flatten().min() {
            for change in std::mem::take(&mut self.waiting) {
                self.plan(change, first);
            }
            for planned in std::mem::take(&mut self.waiting_moves) {
                self.plan_move(&planned, first);
            }
            for planned in std::mem::take(&mut self.waiting_ranks) {
                self.plan_rank(&planned, first);
            }
            for planned in std::mem::take(&mut self.waiting_reboots) {
                self.plan_reboot(planned, first);
            }
        }
    }

    fn plan(&mut self, change: &PlannedChange, from: Instant) {
        self.wiring.plan(&mut self.world.net, change, from);
    }

    fn plan_move(&mut self, planned: &PlannedMove, from: Instant) {
        let (flow, path) = planned.path;
        for running in self.copies_of(flow) {
            let path = self.world.net.path(self.flows[running].flow.paths[path]);
            path.at(from + planned.at).renumber(planned.end, planned.away, None);
        }
    }

    /// The flows of a model.
    fn copies_of(&self, model: usize) -> Range<usize> {
        let first = self.first_of[model];
        first..first + self.scenario.flows[model].copies
    }

    fn plan_rank(&mut self, planned: &PlannedRank, from: Instant) {
        let (flow, path) = planned.path;
        for running in self.copies_of(flow) {
            let Flow { from: near, to: far, .. } = self.flows[running].flow;
            let number = self.flows[running].flow.paths[path];
            for (id, end) in [(near, End::Near), (far, End::Far)] {
                let (_, local) = self.world.net.path_end(number, end);
                let host = self.world.host_mut(id);
                host.set_rank_at(from + planned.at, local.ip(), planned.rank);
            }
        }
    }

    fn plan_reboot(&mut self, planned: PlannedReboot, from: Instant) {
        self.world.net.reboot_nat_at(from + planned.at, self.nats.ids[planned.nat]);
    }

    fn result(&self) -> RunResult {
        // The first copy stands for itself if it is the first of all; the others count in groups.
        let models = self.scenario.flows.iter().zip(&self.first_of).enumerate();
        let singles = models.filter(|(number, (model, _))| *number == 0 || model.copies == 1);
        let mut all = singles
            .map(|(_, (model, first))| (model.name.clone(), self.transfer(&self.flows[*first])));
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
        debug_assert_eq!(transfer.seed, self.seed);
        let groups = self.groups.results(|flow| self.transfer(&self.flows[flow]));
        let parameters = self.scenario.parameters.clone();
        RunResult { parameters, transfer, flows, groups, nats: self.nat_stats() }
    }

    fn nat_stats(&self) -> Vec<(String, NatStats)> {
        let nats = self.scenario.nats.all.iter().zip(&self.nats.ids);
        nats.map(|(model, id)| (model.name.clone(), self.world.net.nat_stats(*id))).collect()
    }

    fn transfer(&self, running: &Running) -> TransferResult {
        let (from, to) = running.ends();
        let mut result = self.world.result(from, to);
        result.scenario.clone_from(&self.scenario.name);
        result.preset.clone_from(&self.scenario.flows[running.model].preset);
        result.completed |= self.has_had_its_time(running) && !self.is_lost(running);
        result
    }

    /// A split file is complete when its stripes together have delivered its size.
    fn finish_stripes(&self, result: &mut TransferResult, bytes: u64) {
        let now = self.world.net.now();
        let senders =
            || self.flows.iter().map(|running| &self.world.host(running.flow.from).sender);
        let since = |at: Option<Instant>| at.map(|at| now.saturating_since(at).as_secs_f64());
        let time = since(senders().filter_map(|sender| sender.first).min()).unwrap_or(0.0);
        result.completed = result.bytes >= bytes;
        result.bytes = result.bytes.min(bytes);
        result.transfer_time_s = time;
        let called = since(senders().filter_map(|sender| sender.called).min());
        result.ack_time_s = if result.completed { called } else { None };
        result.goodput_bps = if time > 0.0 { result.bytes as f64 * 8.0 / time } else { 0.0 };
    }
}

/// Adds what another stripe of the same file did.
fn join_stripe(result: &mut TransferResult, other: TransferResult) {
    let least = |a: Option<f64>, b: Option<f64>| a.into_iter().chain(b).reduce(f64::min);
    result.bytes += other.bytes;
    result.receive_buffer_blocked_s += other.receive_buffer_blocked_s;
    result.timeouts += other.timeouts;
    result.fast_retransmit_events += other.fast_retransmit_events;
    result.duplicates_received += other.duplicates_received;
    result.max_delivery_gap_s = result.max_delivery_gap_s.max(other.max_delivery_gap_s);
    result.first_byte_s = least(result.first_byte_s, other.first_byte_s);
    result.data_start_s = least(result.data_start_s, other.data_start_s);
    result.paths.extend(other.paths);
}
