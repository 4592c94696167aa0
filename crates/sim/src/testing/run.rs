//! Carrying out a plan.

use std::cell::RefCell;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use manypath_proto::{AssocClosed, ConnectTo, Event, Instant, PathId, PathState, StreamId};

use super::tamper::Disturbance;
use super::{Ending, Op, Plan, Side};
use crate::host::{Host, SCTP_PORT};
use crate::ids::End;
use crate::pair::{Pair, PairBuilder};
use crate::protection::shared_key;
use crate::spec::{PathSpec, QueueLimit};
use crate::traffic::Limits;
use crate::transitions::Transitions;

/// How long after the faults end everything must be delivered: the longest RTO, some times over.
const PATIENCE: Duration = Duration::from_secs(1800);

/// An end that gives its peer up has not heard it for so long, if `association_timeout` does not
/// say how long.
const SILENCE: Duration = Duration::from_secs(2);

/// Most steps of a run; more is taken for going round in circles.
const MAX_STEPS: u64 = 3_000_000;

/// Result of a run that went well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Packets delivered and timers run out.
    pub steps: u64,
    /// The hash over everything that happened.
    pub trace_hash: u64,
    /// Bytes delivered, both ways, since the last loss of state.
    pub bytes: u64,
    /// Times an association or its peer's state was lost, both sides together.
    pub losses: u32,
    /// Messages given up after something of them was sent, by both sides together.
    pub abandoned: usize,
    /// The transitions of all associations, both sides together.
    pub transitions: Transitions,
}

/// The error of a run, and how far the plan had got.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed of the plan.
    pub seed: u64,
    /// The error.
    pub message: String,
    /// Operations carried out.
    pub steps_done: usize,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, after {} operations: {}", self.seed, self.steps_done, self.message)
    }
}

impl std::error::Error for Failure {}

thread_local! {
    static LAST_PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Lets panics be kept for [`Failure::message`] and printed no more; call once, before running
/// plans that may fail.
pub fn catch_panics() {
    std::panic::set_hook(Box::new(|info| {
        LAST_PANIC.with(|last| *last.borrow_mut() = Some(info.to_string()));
    }));
}

impl Plan {
    /// Carries the plan out.
    ///
    /// # Errors
    ///
    /// If anything panicked, something was not delivered, or the association did not end well.
    pub fn run(&self) -> Result<Outcome, Failure> {
        let mut steps_done = 0;
        let result = catch_unwind(AssertUnwindSafe(|| Run::of(self).run(self, &mut steps_done)));
        let message = match result {
            Ok(Ok(outcome)) => return Ok(outcome),
            Ok(Err(message)) => message,
            Err(payload) => {
                let kept = LAST_PANIC.with(|last| last.borrow_mut().take());
                let text = payload.downcast_ref::<String>().cloned();
                let text = text.or(payload.downcast_ref::<&str>().map(ToString::to_string));
                kept.or(text).unwrap_or_default()
            }
        };
        Err(Failure { seed: self.seed, message, steps_done })
    }

    fn has(&self, is_it: impl Fn(&Op) -> bool) -> bool {
        self.steps.iter().any(|(op, _)| is_it(op))
    }

    /// The hosts and the network of the plan, before anything happens: to look at by hand.
    pub fn pair(&self) -> Pair {
        let setting = &self.setting;
        let paths = setting.paths.iter().map(|path| {
            PathSpec::new()
                .rate_mbps(f64::from(path.rate_mbps))
                .delay_ms(f64::from(path.delay_ms))
                .loss(f64::from(path.loss_percent) / 100.0)
                .queue(QueueLimit::Packets(path.queue))
        });
        let mut builder = Pair::paths(setting.preset, paths.collect())
            .profile(setting.profile)
            .seed(self.seed)
            .max_segments(setting.max_segments)
            .packet_log(false)
            .check_invariants(true);
        if setting.has_one_far_address {
            builder = builder.one_far_address();
        }
        if setting.dead_addresses > 0 {
            let to = self.tries(&builder);
            builder = builder.connect_over(to);
        }
        if setting.is_protected {
            builder = builder.keys(shared_key()).with_middle();
        }
        for (name, value) in &setting.overrides {
            builder = builder.set(name, value);
        }
        let mut pair = builder.start();
        if self.has(|op| matches!(op, Op::SendLimited { .. })) {
            pair.a.expect_gaps();
            pair.z.expect_gaps();
        }
        pair.a.reconnect_when_lost(true);
        pair
    }

    /// Each path begins with another of the addresses of `z`; the others are candidates.
    fn tries(&self, builder: &PairBuilder) -> ConnectTo {
        let mut to = ConnectTo::new(Vec::new(), SCTP_PORT);
        for number in 0..self.setting.paths.len() {
            let (local, works) = builder.addresses(number);
            let dead = |n| SocketAddr::from(([198, 51, 100, n as u8], local.port()));
            let mut remotes: Vec<_> = (0..self.setting.dead_addresses).map(dead).collect();
            remotes.push(works);
            let first = (self.seed as usize + number) % remotes.len();
            remotes.rotate_left(first);
            let mut pairs = remotes.into_iter().map(|remote| (local, remote));
            to.paths.extend(pairs.next());
            to.candidates.extend(pairs);
        }
        to
    }

    /// Neither an operation nor the network can end the association.
    fn keeps_association(&self) -> bool {
        let retrans = |(name, _): &(&str, &str)| *name == "path_max_retrans";
        !self.setting.overrides.iter().any(retrans)
            && self.setting.paths.iter().all(|path| path.loss_percent == 0)
            && !self.steps.iter().any(|(op, _)| op.may_end_association())
    }

    /// Leaves out what the failure does not need. Returns the plan unchanged if it does not fail.
    pub fn shrink(&self) -> Plan {
        let mut least = self.clone();
        let fails = |plan: &Plan| plan.run().is_err();
        if !fails(&least) {
            return least;
        }
        let mut block = least.steps.len().max(1);
        while block > 0 {
            let mut start = 0;
            while start < least.steps.len() {
                let mut fewer = least.clone();
                let end = (start + block).min(fewer.steps.len());
                fewer.steps.drain(start..end);
                if fails(&fewer) { least = fewer } else { start += block }
            }
            block /= 2;
        }
        for index in (0..least.setting.overrides.len()).rev() {
            let mut plainer = least.clone();
            plainer.setting.overrides.remove(index);
            if fails(&plainer) {
                least = plainer;
            }
        }
        for index in 0..least.setting.paths.len() {
            let mut plainer = least.clone();
            plainer.setting.paths[index].loss_percent = 0;
            if fails(&plainer) {
                least = plainer;
            }
        }
        least
    }
}

impl Op {
    /// The association may end by it, at least if it lasts, or the peer may.
    pub(super) fn may_end_association(self) -> bool {
        match self {
            Op::Cut(_) | Op::CutForward(_) | Op::CutReverse(_) | Op::CutAll => true,
            Op::Loss(_, percent) => percent > 5,
            Op::Rebind(..) | Op::Renumber(..) | Op::RemovePath(_) => true,
            Op::Rate(_, kbps) => kbps < 500,
            Op::Abort(_) | Op::Restart(_) | Op::Shutdown(_) => true,
            _ => false,
        }
    }
}

/// When a side last heard its peer, to tell that it gives no peer up whose packets arrive.
#[derive(Clone, Debug, Default)]
struct Hearing {
    at: Option<Instant>,
    /// Packets received on each path, by its number, verified or not: a path that becomes verified
    /// has brought nothing new by that.
    packets: Vec<u64>,
    /// Events that were looked at.
    events: usize,
    /// The shutdown was under way when it was last looked at: the step that ends it may forget.
    was_shutting_down: bool,
}

impl Hearing {
    /// Looks at a host after each step.
    ///
    /// # Errors
    ///
    /// If it gave up a peer that it had just heard.
    fn follow(&mut self, host: &Host, now: Instant) -> Result<(), String> {
        let new = host.events().get(self.events..).unwrap_or_default();
        let gave_up = |event: &Event| matches!(event, Event::Closed(AssocClosed::PathsFailed));
        let gave_up = new.iter().any(|(_, event)| gave_up(event));
        self.events = host.events().len();
        let silence = self.at.map_or(Duration::MAX, |at| now - at);
        // The guard of a shutdown (RFC 9260 §9.2) ends it as well if the application does not read.
        let was_shutting_down =
            std::mem::replace(&mut self.was_shutting_down, host.is_shutting_down());
        let is_ending = was_shutting_down || self.was_shutting_down;
        if gave_up && !is_ending && silence < least_silence(host) {
            return Err(format!("a peer was given up that was heard {silence:?} ago"));
        }
        for path in host.assoc().into_iter().flat_map(|assoc| assoc.paths()) {
            let number = usize::from(path.id.0);
            self.packets.resize(self.packets.len().max(number + 1), 0);
            let before =
                std::mem::replace(&mut self.packets[number], path.counters.packets_received);
            if path.state != PathState::Unconfirmed && path.counters.packets_received > before {
                self.at = Some(now);
            }
        }
        Ok(())
    }
}

fn is_abandonment(event: &&(Instant, Event)) -> bool {
    matches!(event.1, Event::MessageAbandoned { was_sent: true, .. })
}

/// Cause of the ABORT of an application (RFC 9260 §3.3.10.12).
const USER_INITIATED_ABORT: u16 = 12;

/// An association with nobody ends so: nobody answers, or a host that does not know it, or the
/// ABORT of the attempt that it came from is late as well.
fn is_end_of_ghost(reason: &AssocClosed) -> bool {
    matches!(reason, AssocClosed::PathsFailed)
        || matches!(reason, AssocClosed::PeerAborted { cause: 0 | USER_INITIATED_ABORT, .. })
}

/// How long a peer must have been silent that is given up. Questions whether a peer still has its
/// keys are counted.
fn least_silence(host: &Host) -> Duration {
    let config = host.config();
    let is_protected = host.assoc().is_some_and(manypath_proto::Association::is_protected);
    let counts = config.association_max_retrans.is_some();
    let timeout = config.association_timeout;
    if counts || is_protected { SILENCE } else { timeout.unwrap_or(SILENCE) }
}

struct Run {
    pair: Pair,
    /// Of `a` and of `z`.
    hearing: [Hearing; 2],
    steps: u64,
    ending: Ending,
    is_disturbed: bool,
    /// Host A restarts, or gives up and begins again, and its NAT gives it another port, or it gets
    /// another address. Nothing tells Z then that a late COOKIE ECHO of the old port or address is
    /// of the same host: that an association lists the address proves nothing, or a stranger could
    /// keep its owner out.
    may_leave_a_ghost: bool,
    /// Of both sides together, when the shutdown was last asked for.
    epoch: u32,
}

impl Run {
    fn of(plan: &Plan) -> Run {
        let mut pair = plan.pair();
        pair.a.watch_transitions();
        pair.z.watch_transitions();
        Run {
            pair,
            hearing: <[Hearing; 2]>::default(),
            steps: 0,
            ending: plan.ending,
            is_disturbed: plan.setting.is_protected,
            may_leave_a_ghost: plan
                .has(|op| matches!(op, Op::Restart(Side::A) | Op::Abort(Side::A)))
                && plan.has(|op| matches!(op, Op::Rebind(..) | Op::Renumber(..))),
            epoch: 0,
        }
    }

    fn run(mut self, plan: &Plan, steps_done: &mut usize) -> Result<Outcome, String> {
        for (op, pause) in &plan.steps {
            self.apply(*op);
            *steps_done += 1;
            let until = self.pair.net.now() + *pause;
            while self.step(until)? {}
            self.pair.a.check_invariants();
            self.pair.z.check_invariants();
        }
        self.end_faults();
        self.deliver_all()?;
        self.end_association()?;
        let (a, z) = (&self.pair.a, &self.pair.z);
        let losses = a.epoch() + z.epoch();
        if plan.setting.is_protected && plan.keeps_association() && losses > 0 {
            return Err(format!("nothing ends the association, yet it ended; {}", self.report()));
        }
        Ok(Outcome {
            steps: self.steps,
            trace_hash: self.pair.net.trace_hash(),
            bytes: a.received_bytes() + z.received_bytes(),
            abandoned: a.events().iter().chain(z.events()).filter(is_abandonment).count(),
            losses,
            transitions: self.transitions(),
        })
    }

    fn transitions(&self) -> Transitions {
        let mut both = Transitions::default();
        [&self.pair.a, &self.pair.z].into_iter().filter_map(Host::transitions).for_each(|of| {
            both.merge(of);
        });
        both
    }

    fn step(&mut self, limit: manypath_proto::Instant) -> Result<bool, String> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return Err(format!("{MAX_STEPS} steps and no end; {}", self.report()));
        }
        let goes_on = self.pair.step(limit);
        let now = self.pair.net.now();
        let hosts = [&self.pair.a, &self.pair.z];
        let followed =
            self.hearing.iter_mut().zip(hosts).try_for_each(|(h, host)| h.follow(host, now));
        match followed {
            Ok(()) => Ok(goes_on),
            Err(what) => Err(format!("{what}; {}", self.report())),
        }
    }

    fn host(&mut self, side: Side) -> &mut Host {
        match side {
            Side::A => &mut self.pair.a,
            Side::Z => &mut self.pair.z,
        }
    }

    fn apply(&mut self, op: Op) {
        let count = self.pair.net.path_count();
        let net = &mut self.pair.net;
        let share = |percent: u32| f64::from(percent) / 100.0;
        let ms = |millis: u32| Duration::from_millis(u64::from(millis));
        match op {
            Op::Send { side, stream, unordered, length, count } => {
                let host = self.host(side);
                let limits = Limits::default();
                (0..count).for_each(|_| host.send_limited(stream, unordered, length, limits));
            }
            Op::SendLimited { side, stream, unordered, length, count, limits } => {
                let host = self.host(side);
                (0..count).for_each(|_| host.send_limited(stream, unordered, length, limits));
            }
            Op::PauseReading(side) => self.host(side).pause_reading(),
            Op::ResumeReading(side) => self.host(side).resume_reading(),
            Op::Cut(path) => net.path(path % count).cut(),
            Op::CutForward(path) => net.path(path % count).forward().cut(),
            Op::CutReverse(path) => net.path(path % count).reverse().cut(),
            Op::CutAll => (0..count).for_each(|path| net.path(path).cut()),
            Op::Restore(path) => net.path(path % count).restore(),
            Op::RestoreAll => (0..count).for_each(|path| net.path(path).restore()),
            Op::Loss(path, percent) => net.path(path % count).set_loss(share(percent)),
            Op::Duplicate(path, percent) => net.path(path % count).set_duplicate(share(percent)),
            Op::Reorder(path, percent, by) => {
                net.path(path % count).set_reorder(share(percent), ms(by));
            }
            Op::Jitter(path, bound) => net.path(path % count).set_jitter(ms(bound)),
            Op::Rate(path, kbps) => net.path(path % count).set_rate_mbps(f64::from(kbps) / 1e3),
            Op::Delay(path, delay) => net.path(path % count).set_delay(ms(delay)),
            Op::Rebind(path, port) => {
                let address = IpAddr::V4(Ipv4Addr::new(192, 0, 2, (path % count) as u8));
                net.path(path % count).rebind_source(SocketAddr::new(address, port));
            }
            Op::Renumber(path, away) => {
                net.path(path % count).renumber(End::Near, ms(away), None);
            }
            Op::Tamper(path, percent) => {
                self.pair.middle().disturb(path % count, Disturbance::of(percent));
            }
            Op::SetPrimary(side, path) => {
                let now = net.now();
                let host = self.host(side);
                if host.is_established() {
                    host.command(|assoc| assoc.set_primary(now, PathId((path % count) as u8)));
                }
            }
            Op::Rank(side, path, rank) => {
                let host = self.host(side);
                let addresses = host.addresses(); // none while it is renumbered
                let local = addresses.get(path % addresses.len().max(1)).map(|a| a.ip());
                if let Some(local) = local {
                    host.set_rank(local, rank);
                }
            }
            Op::ResetStreams(side, _) | Op::RequestReset(side, _) | Op::AddStreams(side, ..) => {
                self.reconfigure(side, op);
            }
            Op::RemovePath(place) => {
                let now = net.now();
                let paths = self.pair.a.paths();
                if let Some(path) = paths.get(place % paths.len().max(1)) {
                    self.pair.a.remove_path(now, path.id);
                }
            }
            Op::AddPath(path) => {
                self.pair.a.add_path(net.now(), path % count);
            }
            Op::Abort(side) => {
                let host = self.host(side);
                if host.assoc().is_some() {
                    host.abort("as planned");
                }
            }
            Op::Restart(side) => self.host(side).kill_and_restart(),
            Op::Shutdown(side) => self.host(side).shutdown(),
        }
    }

    /// Asks for a change of streams. The association may refuse it.
    fn reconfigure(&mut self, side: Side, op: Op) {
        let now = self.pair.net.now();
        let host = self.host(side);
        if !host.is_established() {
            return;
        }
        let _ = host.command(|assoc| match op {
            Op::ResetStreams(_, stream) => {
                assoc.reset_streams(now, stream.map(StreamId).as_slice())
            }
            Op::RequestReset(_, stream) => {
                assoc.request_stream_reset(now, stream.map(StreamId).as_slice())
            }
            Op::AddStreams(_, outgoing, incoming) => assoc.add_streams(now, outgoing, incoming),
            _ => Ok(()),
        });
    }

    fn end_faults(&mut self) {
        let Pair { a, z, net, .. } = &mut self.pair;
        for path in 0..net.path_count() {
            net.path(path).restore();
            net.path(path).set_loss(0.0);
            net.path(path).set_duplicate(0.0);
            net.path(path).set_reorder(0.0, Duration::ZERO);
            net.path(path).set_jitter(Duration::ZERO);
            net.path(path).set_rate_mbps(10.0);
            net.path(path).set_delay(Duration::from_millis(20));
        }
        a.resume_reading();
        z.resume_reading();
        if self.is_disturbed {
            self.pair.middle().stop_dropping();
        }
    }

    /// Everything arrives, or the association was shut down, which says that everything had.
    fn deliver_all(&mut self) -> Result<(), String> {
        let limit = self.pair.net.now() + PATIENCE;
        while !self.is_settled() {
            if !self.step(limit)? && !self.is_settled() {
                return Err(format!("not everything was delivered; {}", self.report()));
            }
        }
        Ok(())
    }

    fn is_settled(&self) -> bool {
        let (a, z) = (&self.pair.a, &self.pair.z);
        let is_half_way = a.is_shutting_down() || z.is_shutting_down();
        let has_all = self.pair.has_delivered_all();
        match (a.closed(), z.closed()) {
            // Data that Z sent to a ghost went nowhere.
            (Some(AssocClosed::Shutdown), Some(ghost))
                if self.may_leave_a_ghost && is_end_of_ghost(ghost) =>
            {
                true
            }
            // One end shut down with the other, which then lost all memory of it.
            (Some(AssocClosed::Shutdown), None) => z.assoc().is_none(),
            (Some(AssocClosed::Shutdown), Some(AssocClosed::Shutdown)) => has_all,
            // A late packet of the end that still waited drew an ABORT (RFC 9260 §8.4, point 8).
            (Some(AssocClosed::Shutdown), Some(AssocClosed::PeerAborted { .. }))
            | (Some(AssocClosed::PeerAborted { .. }), Some(AssocClosed::Shutdown)) => has_all,
            // The end that still waited was told to abort.
            (Some(AssocClosed::Shutdown), Some(AssocClosed::Aborted))
            | (Some(AssocClosed::Aborted), Some(AssocClosed::Shutdown)) => has_all,
            // An end moved behind its NAT after it had closed: nothing can reach it any more.
            (Some(AssocClosed::Shutdown), Some(AssocClosed::PathsFailed)) => has_all,
            (None, None) => a.is_established() && z.is_established() && has_all && !is_half_way,
            _ => false,
        }
    }

    fn end_association(&mut self) -> Result<(), String> {
        if self.pair.a.closed().is_some() {
            return Ok(());
        }
        self.shut_down();
        let limit = self.pair.net.now() + PATIENCE;
        let may_leave_a_ghost = self.may_leave_a_ghost;
        let is_over = |pair: &Pair| match (pair.a.closed(), pair.z.closed()) {
            (Some(AssocClosed::Shutdown), Some(AssocClosed::Shutdown)) => true,
            (Some(AssocClosed::Shutdown), Some(ghost)) => {
                may_leave_a_ghost && is_end_of_ghost(ghost)
            }
            _ => false,
        };
        while !is_over(&self.pair) {
            self.shut_down_again();
            if !self.step(limit)? && !is_over(&self.pair) {
                return Err(format!("the shutdown did not end; {}", self.report()));
            }
        }
        if self.pair.z.closed().is_some_and(is_end_of_ghost) {
            return Ok(()); // The ghost has received nothing.
        }
        // RFC 9260 §9.2: what was sent before the shutdown arrived.
        if self.pair.has_delivered_all() {
            Ok(())
        } else {
            Err(format!("shut down with data undelivered; {}", self.report()))
        }
    }

    fn shut_down(&mut self) {
        let Pair { a, z, .. } = &mut self.pair;
        self.epoch = a.epoch() + z.epoch();
        match self.ending {
            Ending::ByA => a.shutdown(),
            Ending::ByZ => z.shutdown(),
            Ending::ByBoth => {
                a.shutdown();
                z.shutdown();
            }
        }
    }

    /// If the association was lost meanwhile, its successor is to end as well.
    fn shut_down_again(&mut self) {
        if self.pair.a.epoch() + self.pair.z.epoch() != self.epoch {
            self.shut_down();
        }
    }

    fn report(&self) -> String {
        let host = |name: &str, host: &Host| {
            let paths: Vec<String> = host
                .paths()
                .iter()
                .map(|p| format!("{}: {} flight {}", p.id.0, p.state.name(), p.flight_size))
                .collect();
            format!(
                "\n{name}: established {}, closed {:?}, epoch {}, sent all {}, sent {} in {}, received {} in {}, \
                 unacked {:?}, paths [{}], last events {:?}",
                host.is_established(),
                host.closed(),
                host.epoch(),
                host.has_sent_all(),
                host.sent_bytes(),
                host.sent_messages(),
                host.received_bytes(),
                host.received_messages(),
                host.assoc().map(manypath_proto::Association::unacked_bytes),
                paths.join(", "),
                &host.events()[host.events().len().saturating_sub(8)..],
            )
        };
        let (a, z) = (&self.pair.a, &self.pair.z);
        format!("at {:?}; {}; {}", self.pair.net.now(), host("a", a), host("z", z))
    }
}
