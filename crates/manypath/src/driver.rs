//! The task that moves packets between the sockets and the engine.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use manypath_net::{
    IcmpReport, Outgoing, RELAY_OVERHEAD_MAX, Refused, Relays, Sent, UdpReceiver, UdpSockets,
    interface_mtus,
};
use manypath_proto::sizes::UDP_IPV4_HEADERS;
use manypath_proto::{Config, Datagram, Instant};
use tokio::time::Sleep;

#[cfg(feature = "relay")]
use crate::direct::Search;
use crate::late::LateTimers;
use crate::roaming::Roaming;
use crate::shared::{Inner, Shared};

/// Rounds of receiving and sending before other tasks get their turn.
const ROUNDS: usize = 8;

/// Batches taken from the engine before the next look at what has arrived.
const BATCHES: usize = 8;

/// Batches that wait for a socket whose buffer is full, while other sockets go on. More are
/// dropped, as a full queue on the way would.
const BLOCKED_BATCHES: usize = 16;

/// Bytes of one batch at most: what UDP can carry, since the system segments one large datagram.
const BATCH_BYTES: usize = 65_507;

/// ICMP messages that wait until no packet does.
const ICMP_MAX: usize = 64;

/// How often the interfaces' MTU is looked at; and when a packet was too long for one, at most.
const MTU_INTERVAL: Duration = Duration::from_secs(10);
const MTU_INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Receives, lets the engine think, wakes the application and sends; everything in batches, so that
/// no lock is taken, no task woken and no system call made per packet.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    sockets: UdpSockets,
    relays: Relays,
    /// `None` if nothing follows this host's network.
    #[cfg(feature = "relay")]
    direct: Search,
    roaming: Option<Roaming>,
    receiver: UdpReceiver,
    received: Vec<Datagram>,
    /// ICMP messages about packets over IP itself.
    icmp: Vec<IcmpReport>,
    /// Arrived, and not seen by the engine yet.
    waiting: VecDeque<Datagram>,
    /// The engine gets one packet at a time, and what it answers is taken before the next. Without
    /// pacing Max.Burst limits what leaves at each arrival: if a batch of SACKs were one arrival,
    /// or a batch of DATA had one SACK, a sender would never get beyond a burst each round trip.
    one_by_one: bool,
    /// Taken from the engine, to be sent in this round.
    outgoing: Vec<Outgoing>,
    /// For each socket, what waits until its buffer has room.
    blocked: Vec<VecDeque<Outgoing>>,
    /// Buffers of batches that were sent.
    spare: Vec<Vec<u8>>,
    packets_per_batch: usize,
    timer: Timer,
    late: LateTimers,
    finished: bool,
    /// The engine looks for the size of each path's packets.
    finds_sizes: bool,
    /// MTUs of the interfaces of our addresses, and when they were last read.
    mtus: Vec<(IpAddr, usize)>,
    mtus_read: Option<Instant>,
}

/// Work that is left after one round.
struct Round {
    /// The engine has more to send.
    more: bool,
    /// Somebody waits for what this round brought.
    woke: bool,
    /// When the engine wants to be called again.
    deadline: Option<Instant>,
    finished: bool,
}

impl Driver {
    /// The driver of `sockets` for associations of this configuration.
    pub(crate) fn new(
        shared: Arc<Shared>,
        sockets: UdpSockets,
        relays: Relays,
        roaming: Option<Roaming>,
        config: &Config,
    ) -> Driver {
        let relay_header = if relays.is_empty() { 0 } else { RELAY_OVERHEAD_MAX };
        let packet = (config.mtu + relay_header).saturating_sub(UDP_IPV4_HEADERS).max(1);
        Driver {
            shared,
            blocked: (0..sockets.count()).map(|_| VecDeque::new()).collect(),
            sockets,
            relays,
            #[cfg(feature = "relay")]
            direct: Search::default(),
            roaming,
            receiver: UdpReceiver::new(),
            received: Vec::new(),
            icmp: Vec::new(),
            waiting: VecDeque::new(),
            one_by_one: config.max_burst > 0 && !config.pacing,
            outgoing: Vec::new(),
            spare: Vec::new(),
            packets_per_batch: (BATCH_BYTES / packet).max(1),
            timer: Timer::new(),
            late: LateTimers::default(),
            finished: false,
            finds_sizes: config.pmtu_discovery,
            mtus: Vec::new(),
            mtus_read: None,
        }
    }

    /// One look at the engine under the lock: in goes what arrived, out comes what to send.
    fn run_engine(&mut self, cx: &mut Context<'_>, arrived: bool) -> Round {
        let max_batches = if self.can_send() { BATCHES } else { 0 };
        let segments = self.packets_per_batch.min(self.sockets.max_segments());
        let failures = self.sockets.send_failures();
        let shared = Arc::clone(&self.shared);
        let refused = self.sockets.take_refused();
        shared.with(|inner, now| {
            inner.assocs.driver_runs(cx);
            inner.send_failures = failures;
            if self.reads_mtus(&refused, now) {
                self.tell_mtus(inner, now);
            }
            for Refused { local, remote, len } in refused {
                inner.assocs.engine.packet_refused(now, local, remote, len);
            }
            self.run_relays(inner, now);
            let search = self.run_direct(inner, now);
            inner.keep_relayed(&mut self.received);
            if self.one_by_one {
                self.feed_one_by_one(inner, max_batches, segments);
            }
            let now = self.shared.clock.now().max(now);
            self.feed(inner, now, max_batches, segments);
            if !arrived {
                // Last: a program that has ended said good-bye before its host says that it is
                // gone.
                for report in self.icmp.drain(..) {
                    inner.assocs.engine.handle_icmp(now, report.message());
                }
            }
            self.judge_timers(inner, now, arrived);
            // What these make the application's side do, such as an ABORT, leaves in this round.
            inner.drain_events(now);
            if self.take_outputs(inner, now, max_batches, segments) {
                inner.assocs.all_transmitted();
            }
            inner.assocs.wake_drained();
            inner.drain_events(now);
            let more = max_batches > 0 && self.outgoing.len() == max_batches;
            let finished = self.outgoing.is_empty() && inner.is_finished();
            let woke = inner.assocs.wakes_anyone();
            let relays = self.relays.poll_timeout();
            let deadline = inner.assocs.engine.poll_timeout().into_iter();
            let deadline = deadline.chain(relays).chain(search).min();
            // Few and small: beyond the number of batches, so that they wait for nothing.
            self.outgoing.extend(std::iter::from_fn(|| self.relays.poll_transmit()));
            #[cfg(feature = "relay")]
            self.outgoing.extend(std::iter::from_fn(|| self.direct.poll_transmit()));
            Round { more, woke, deadline, finished }
        })
    }

    /// Lets the engine act on timers that are due. If they are late, because this task did not run,
    /// what has arrived meanwhile comes first.
    fn judge_timers(&mut self, inner: &mut Inner, now: Instant, arrived: bool) {
        match inner.assocs.engine.poll_timeout().filter(|at| *at <= now) {
            Some(at) if self.late.judges(now - at, arrived) => {
                inner.assocs.engine.handle_timeout(now);
            }
            Some(_) => {}
            None => self.late.none_due(),
        }
    }

    /// True if it is time to look at what the interfaces take: at the start, when a packet was too
    /// long for one, and now and then.
    fn reads_mtus(&mut self, refused: &[Refused], now: Instant) -> bool {
        let is_due = self.mtus_read.is_none_or(|at| {
            let wait = if refused.is_empty() { MTU_INTERVAL } else { MTU_INTERVAL_MIN };
            now - at >= wait
        });
        if is_due && self.finds_sizes {
            self.mtus_read = Some(now);
        }
        is_due && self.finds_sizes
    }

    /// Tells the engine what the interfaces of our addresses take, those of relays included.
    fn tell_mtus(&mut self, inner: &mut Inner, now: Instant) {
        let bound = self.sockets.bound();
        let over_ip = if bound.has_raw_ip() { Some(0) } else { None };
        let ports = [Some(bound.port()), over_ip];
        self.mtus = interface_mtus();
        for &(ip, mtu) in &self.mtus {
            for port in ports.into_iter().flatten() {
                inner.assocs.engine.set_link_mtu(now, SocketAddr::new(ip, port), mtu);
            }
        }
        self.tell_relay_mtus(inner, now);
    }

    fn tell_relay_mtus(&self, inner: &mut Inner, now: Instant) {
        for (relayed, local, less) in self.relays.links() {
            let link = self.mtus.iter().find(|(ip, _)| *ip == local.ip());
            if let Some((_, mtu)) = link {
                inner.assocs.engine.set_link_mtu(now, relayed, mtu.saturating_sub(less));
            }
        }
    }

    /// Asks relays for what is wanted, and does what is due.
    fn run_relays(&mut self, inner: &mut Inner, now: Instant) {
        if self.relays.is_empty() {
            return;
        }
        self.relays.handle_timeout(now);
        let mut changed = false;
        while let Some(change) = self.relays.poll_change() {
            if self.finds_sizes {
                self.tell_relay_mtus(inner, now);
            }
            inner.relay_paths.on_change(now, &mut inner.assocs.engine, change);
            changed = true;
        }
        for (index, peer) in inner.relay_paths.take_wanted() {
            self.relays.add_peer(now, index, peer);
        }
        inner.follow_relayed_peers(now, &mut self.relays);
        for (relayed, peer) in inner.relay_paths.take_wanted_routes() {
            self.relays.trace(now, relayed, peer);
        }
        if changed {
            let status = self.relays.status();
            inner.relay_paths.note_names(&status);
            self.shared.relays.send_replace(status);
            #[cfg(feature = "relay")]
            inner.direct.look_again();
        }
    }

    /// Looks for the addresses at which peers may reach this host. Answers when that is to be done
    /// again.
    #[cfg(feature = "relay")]
    fn run_direct(&mut self, inner: &mut Inner, now: Instant) -> Option<Instant> {
        let found = self.direct.run(now, &mut inner.direct, &inner.bound, &mut self.relays);
        if let Some(candidates) = found {
            inner.assocs.engine.set_candidates(now, candidates);
        }
        self.direct.poll_timeout()
    }

    #[cfg(not(feature = "relay"))]
    fn run_direct(&mut self, _inner: &mut Inner, _now: Instant) -> Option<Instant> {
        None
    }

    /// Gives the relays' addresses back, as far as one message to each can do that.
    fn leave_relays(&mut self) {
        self.relays.close(self.shared.clock.now());
        while let Some(mut last) = self.relays.poll_transmit() {
            self.sockets.try_send(&mut last);
        }
    }

    /// Gives the engine what waits, as long as there is room for its answers. If no socket takes
    /// any, it gets everything.
    fn feed_one_by_one(&mut self, inner: &mut Inner, max_batches: usize, segments: usize) {
        self.waiting.extend(self.received.drain(..));
        while max_batches == 0 || self.outgoing.len() < max_batches {
            let Some(datagram) = self.waiting.pop_front() else { return };
            let now = self.shared.clock.now();
            inner.assocs.engine.handle_datagram(now, datagram);
            self.take_outputs(inner, now, max_batches, segments);
        }
    }

    /// Gives the engine what has arrived, and takes the SACKs that cannot wait for all of it.
    fn feed(&mut self, inner: &mut Inner, now: Instant, max_batches: usize, segments: usize) {
        let mut received = std::mem::take(&mut self.received);
        for datagram in received.drain(..) {
            inner.assocs.engine.handle_datagram(now, datagram);
            if inner.assocs.engine.owes_sack() {
                self.take_outputs(inner, now, max_batches, segments);
            }
        }
        self.received = received;
    }

    /// Takes what the engine wants to send, up to `max_batches`; false if there may be more.
    fn take_outputs(
        &mut self,
        inner: &mut Inner,
        now: Instant,
        max_batches: usize,
        segments: usize,
    ) -> bool {
        while self.outgoing.len() < max_batches {
            let mut bytes = self.spare.pop().unwrap_or_default();
            match inner.assocs.engine.poll_transmit(now, segments, &mut bytes) {
                Some(transmit) => {
                    let mut batch = Outgoing::new(transmit, bytes);
                    let may_leave = inner.may_leave_from(batch.transmit.local);
                    if may_leave && self.relays.wrap(now, &mut batch) {
                        self.outgoing.push(batch);
                    } else {
                        self.sockets.drop_batch(&batch);
                        recycle(&mut self.spare, batch);
                    }
                }
                None => {
                    self.spare.push(bytes);
                    return true;
                }
            }
        }
        false
    }

    /// False if every socket is blocked: then what the engine has can wait in the engine.
    fn can_send(&self) -> bool {
        self.blocked.iter().any(VecDeque::is_empty)
    }

    /// Sends what the engine gave out. A blocked socket keeps its own batches and stops no other.
    fn send(&mut self) {
        for mut batch in self.outgoing.drain(..) {
            let queue = self
                .sockets
                .socket_for(batch.transmit.local)
                .map(|index| &mut self.blocked[index])
                .filter(|queue| !queue.is_empty());
            match queue {
                Some(queue) if queue.len() < BLOCKED_BATCHES => queue.push_back(batch),
                Some(_) => {
                    self.sockets.drop_batch(&batch);
                    recycle(&mut self.spare, batch);
                }
                None => match self.sockets.try_send(&mut batch) {
                    Sent::Done => recycle(&mut self.spare, batch),
                    Sent::Blocked => {
                        if let Some(index) = self.sockets.socket_for(batch.transmit.local) {
                            self.blocked[index].push_back(batch);
                        }
                    }
                },
            }
        }
    }

    /// Sends what waits for sockets that have room again, and has the task woken for the others.
    fn send_blocked(&mut self, cx: &mut Context<'_>) {
        for (index, queue) in self.blocked.iter_mut().enumerate() {
            while let Some(batch) = queue.front_mut() {
                // An error means that tokio's reactor is gone; this task soon will be.
                if !matches!(self.sockets.poll_writable(index, cx), Poll::Ready(Ok(()))) {
                    break;
                }
                if self.sockets.try_send(batch) == Sent::Done
                    && let Some(batch) = queue.pop_front()
                {
                    recycle(&mut self.spare, batch);
                }
            }
        }
    }
}

/// Keeps the buffer of a batch that is done with.
fn recycle(spare: &mut Vec<Vec<u8>>, batch: Outgoing) {
    if spare.len() < BATCHES {
        spare.push(batch.bytes);
    }
}

/// Why a turn of the driver ended.
enum Turn {
    /// Others should have theirs, then there is more to do.
    Yield,
    /// Nothing is left to do, now or later.
    Finished,
}

impl Driver {
    /// Moves packets until the endpoint and its associations are done with.
    pub(crate) async fn run(mut self) {
        loop {
            match poll_fn(|cx| self.poll_turn(cx)).await {
                // Not by waking this task again, which would let it run many times before a
                // reader in `block_on` gets its turn, and before new packets are looked for.
                Turn::Yield => tokio::task::yield_now().await,
                Turn::Finished => {
                    self.leave_relays();
                    self.finished = true;
                    return;
                }
            }
        }
    }

    /// A few rounds; pending when there is nothing to do for now.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<Turn> {
        self.follow_network(cx);
        for _ in 0..ROUNDS {
            self.send_blocked(cx);
            // While something waits the rest stays in the sockets, whose buffers have a bound.
            let reads_first = self.late.reads_first();
            let arrived = !self.waiting.is_empty() || self.receive(cx);
            let _ = self.sockets.poll_icmp(cx, &mut self.icmp); // it wakes this task for more
            self.icmp.truncate(ICMP_MAX);
            #[cfg(feature = "relay")]
            self.direct.take(self.shared.clock.now(), &mut self.received);
            self.relays.unwrap(self.shared.clock.now(), &mut self.received);
            let round = self.run_engine(cx, arrived);
            if round.finished {
                return Poll::Ready(Turn::Finished);
            }
            let blocked_before = self.count_blocked();
            self.send();
            let newly_blocked = self.count_blocked() > blocked_before;
            let due = self.timer.poll(cx, &self.shared, round.deadline).is_ready();
            // After a look at the sockets alone nothing would wake this task.
            let looks_again = reads_first || self.late.reads_first();
            if !arrived && !round.more && !newly_blocked && !due && !looks_again {
                return Poll::Pending;
            }
            if round.woke {
                // A reader takes a batch while it is in the cache; a receive buffer never fills
                // only because its reader had no turn.
                break;
            }
        }
        Poll::Ready(Turn::Yield)
    }

    /// Receives a batch from each socket that has one; true if any had.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        if self.late.reads_first() {
            self.receiver.recv_now(&self.sockets, &mut self.received)
        } else {
            self.receiver.poll_recv(cx, &self.sockets, &mut self.received).is_ready()
        }
    }

    /// Brings sockets and paths up to date with this host's network if it has changed, and opens
    /// the sockets that a new association needs.
    fn follow_network(&mut self, cx: &mut Context<'_>) {
        let Some(roaming) = &mut self.roaming else { return };
        let mut has_changed = roaming.poll(cx, &mut self.sockets, &mut self.relays, &self.shared);
        if self.shared.look_at_uplinks.swap(false, Ordering::Relaxed) {
            let sockets = &mut self.sockets;
            has_changed |= self.shared.with(|inner, now| inner.open_uplinks(now, sockets));
        }
        if has_changed {
            self.blocked.resize_with(self.sockets.count(), VecDeque::new);
            self.mtus_read = None; // other interfaces, other sizes
        }
    }

    fn count_blocked(&self) -> usize {
        self.blocked.iter().filter(|queue| !queue.is_empty()).count()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let sane = !std::thread::panicking();
        let shared = Arc::clone(&self.shared);
        shared.with(|inner, now| {
            inner.driver_gone(now, sane);
            let mut bytes = Vec::new();
            while sane && let Some(transmit) = inner.assocs.engine.poll_transmit(now, 1, &mut bytes)
            {
                let mut last = Outgoing::new(transmit, std::mem::take(&mut bytes));
                if self.relays.wrap(now, &mut last) {
                    self.sockets.try_send(&mut last);
                }
            }
        });
        self.leave_relays();
    }
}

/// The engine's deadline as a timer that is touched only when it moves earlier or has fired: most
/// deadlines are postponed by the next acknowledgement.
struct Timer {
    sleep: Pin<Box<Sleep>>,
    /// When `sleep` fires; `None` if it has.
    set: Option<Instant>,
}

impl Timer {
    fn new() -> Timer {
        Timer { sleep: Box::pin(tokio::time::sleep(std::time::Duration::ZERO)), set: None }
    }

    /// Ready if `deadline` has come; otherwise the task is woken when it does.
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        shared: &Shared,
        deadline: Option<Instant>,
    ) -> Poll<()> {
        let Some(deadline) = deadline else { return Poll::Pending };
        loop {
            if self.set.is_none_or(|set| deadline < set) {
                self.sleep.as_mut().reset(shared.clock.to_std(deadline).into());
                self.set = Some(deadline);
            }
            if self.sleep.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let fired = self.set.take();
            if fired.is_none_or(|at| at >= deadline) {
                return Poll::Ready(());
            }
        }
    }
}
