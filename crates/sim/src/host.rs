//! A host: an engine, its applications, and a place in the network.

mod roaming;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use manypath_proto::config::Config;
use manypath_proto::{
    AssocClosed, AssocId, AssocStats, Association, ConnectTo, Datagram, Endpoint, EndpointConfig,
    Event, Instant, PacketTooBig, PathId, PathState, PathStats, Rng, SharedEvidence,
};

use crate::ledger::Ledger;
use crate::network::{Network, NodeId};
use crate::packet::{Delivery, TooLong};
use crate::traffic::{Pace, Receiver, Sender};

/// How a host is set up.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The engine's configuration.
    pub config: Arc<Config>,
    /// Its transport addresses.
    pub addresses: Vec<SocketAddr>,
    /// The paths over which it associates, primary first; none if it waits for its peer.
    pub connect: Vec<(SocketAddr, SocketAddr)>,
    /// Most packets that the engine may hand over at once.
    pub max_segments: usize,
    /// Counts spurious retransmissions.
    pub has_ledger: bool,
    /// Where its randomness comes from.
    pub rng: Rng,
}

/// Rounds of events, applications and packets at one instant that only a fault can need.
const MAX_ROUNDS: u32 = 100_000;

/// The SCTP port of every host.
const SCTP_PORT: u16 = 9899;

/// What a host does at a time set beforehand.
#[derive(Copy, Clone, Debug)]
enum Planned {
    Associate,
    Send(u64),
    SendUntil(Instant),
    /// So many bytes, a message each time.
    SendPaced {
        bytes: u64,
        pace: Pace,
    },
    StopSending,
    Shutdown,
}

/// A host with one association at a time, and the applications that use it.
///
/// Commands such as [`send`](Self::send) take effect at the present time, when the run goes on.
#[derive(Debug)]
pub struct Host {
    node: NodeId,
    setup: HostConfig,
    endpoint: Endpoint,
    assoc: Option<AssocId>,
    /// Times the host lost all its state.
    restarts: u32,
    /// Associations and peer restarts so far: the counters of sender and receiver are of the latest.
    epoch: u32,
    connects: bool,
    reconnects: bool,
    shuts_down: bool,
    has_begun_shutdown: bool,
    aborts: Option<Vec<u8>>,
    reads: bool,
    /// The peer's first message gives it the configured receive buffer.
    admits: bool,
    /// The engine does not know its interfaces yet.
    is_new: bool,
    has_commands: bool,
    /// By time, and then in the order in which they were given.
    planned: BTreeMap<(Instant, u32), Planned>,
    plans: u32,
    /// The engine is told what links lose.
    wants_oracle: bool,
    /// Changes of loss in the network when the loss oracle was last asked; `None` if it must be again.
    oracle: Option<u64>,
    /// Bytes received at each of the network's moments.
    received_at: Vec<u64>,
    pub(crate) sender: Sender,
    pub(crate) receiver: Receiver,
    pub(crate) ledger: Option<Ledger>,
    events: Vec<(Instant, Event)>,
    out: Vec<u8>,
    text: String,
}

impl Host {
    /// A host at that node.
    pub fn new(node: NodeId, setup: HostConfig) -> Host {
        Host {
            node,
            endpoint: new_endpoint(&setup, 0),
            assoc: None,
            restarts: 0,
            epoch: 0,
            connects: !setup.connect.is_empty(),
            reconnects: false,
            shuts_down: false,
            has_begun_shutdown: false,
            aborts: None,
            reads: true,
            admits: false,
            is_new: true,
            has_commands: true,
            planned: BTreeMap::new(),
            plans: 0,
            wants_oracle: knows_true_loss(&setup.config),
            oracle: None,
            received_at: Vec::new(),
            sender: Sender::default(),
            receiver: Receiver::default(),
            ledger: setup.has_ledger.then(Ledger::default),
            events: Vec::new(),
            out: Vec::new(),
            text: String::new(),
            setup,
        }
    }

    /// Its place in the network.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Its transport addresses.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.setup.addresses
    }

    /// The engine's configuration.
    pub fn config(&self) -> &Config {
        &self.setup.config
    }

    // ---- Commands ----

    /// Sends a file of `bytes` on stream 0, in order, in messages of one DATA chunk each. Only what the
    /// send buffer holds is in memory.
    pub fn send_file(&mut self, bytes: u64) {
        self.sender.add(0, false, bytes, None);
        self.has_commands = true;
    }

    /// Sends one message of `length` bytes, after what was to be sent before.
    pub fn send(&mut self, stream: u16, length: usize) {
        self.sender.add(stream, false, length as u64, Some(length));
        self.has_commands = true;
    }

    /// Sends one message of `length` bytes that need not wait for its stream's order.
    pub fn send_unordered(&mut self, stream: u16, length: usize) {
        self.sender.add(stream, true, length as u64, Some(length));
        self.has_commands = true;
    }

    /// Associates at that time and not when the run begins. What the application sends before then
    /// waits, and counts as sent when it was.
    pub fn start_at(&mut self, at: Instant) {
        if std::mem::take(&mut self.connects) {
            self.plan(at, Planned::Associate);
        }
    }

    /// [`send_file`](Self::send_file) at that time.
    pub fn send_file_at(&mut self, at: Instant, bytes: u64) {
        self.plan(at, Planned::Send(bytes));
    }

    /// Sends `bytes` from `at` on, one message after the other at that pace.
    pub fn send_paced_at(&mut self, at: Instant, bytes: u64, pace: Pace) {
        self.plan(at, Planned::SendPaced { bytes, pace });
    }

    /// Sends a file without end from `at` to `until`: what the association has not taken by then is
    /// not sent.
    pub fn send_between(&mut self, at: Instant, until: Instant) {
        self.plan(at, Planned::SendUntil(until));
    }

    /// [`shutdown`](Self::shutdown) at that time.
    pub fn shutdown_at(&mut self, at: Instant) {
        self.plan(at, Planned::Shutdown);
    }

    fn plan(&mut self, at: Instant, what: Planned) {
        self.planned.insert((at, self.plans), what);
        self.plans += 1;
        self.has_commands = true;
    }

    /// Ends the association once it is established and everything is sent and acknowledged.
    pub fn shutdown(&mut self) {
        self.shuts_down = true;
        self.has_commands = true;
    }

    /// Ends the association at once.
    pub fn abort(&mut self, reason: &str) {
        self.aborts = Some(reason.as_bytes().to_vec());
        self.has_commands = true;
    }

    /// Gives peers a receive buffer of `bytes`, as a server does that must know who they are. If it
    /// `admits` them, they get the configured one with their first message.
    pub fn limit_strangers(&mut self, bytes: usize, admits: bool) {
        self.endpoint.set_incoming_window(bytes);
        self.admits = admits;
    }

    /// Stops to read: the receive buffer fills and the window closes.
    pub fn pause_reading(&mut self) {
        self.reads = false;
    }

    /// Reads again.
    pub fn resume_reading(&mut self) {
        self.reads = true;
        self.has_commands = true;
    }

    /// Loses everything the host knew, and starts anew at the same addresses. A host that associates
    /// does so at once; what it had to send is gone.
    pub fn kill_and_restart(&mut self) {
        self.restarts += 1;
        self.endpoint = new_endpoint(&self.setup, self.restarts);
        self.is_new = true;
        self.assoc = None;
        self.sender.clear();
        self.planned.clear();
        self.new_epoch();
        self.connects = !self.setup.connect.is_empty();
        (self.shuts_down, self.aborts) = (false, None);
        self.has_commands = true;
    }

    /// Whether the host associates again whenever its association ends other than by shutdown.
    pub fn reconnect_when_lost(&mut self, reconnects: bool) {
        self.reconnects = reconnects;
    }

    /// Runs any other command on the association.
    ///
    /// # Panics
    ///
    /// If there is none.
    pub fn command<T>(&mut self, command: impl FnOnce(&mut Association) -> T) -> T {
        self.has_commands = true;
        let id = self.assoc.expect("no association yet");
        command(self.endpoint.assoc_mut(id).expect("hosts forget only what they replace"))
    }

    /// Takes a path out of the association; not the last one that is verified.
    pub fn remove_path(&mut self, now: Instant, path: PathId) {
        let is_verified = |p: &PathStats| p.state != PathState::Unconfirmed && p.id != path;
        if self.paths().iter().any(is_verified) {
            self.command(|assoc| assoc.remove_path(now, path));
        }
    }

    /// Puts a path that the host was given at first back into the association.
    pub fn add_path(&mut self, now: Instant, number: usize) -> Option<PathId> {
        let (local, remote) = *self.setup.connect.get(number)?;
        self.assoc?;
        self.command(|assoc| assoc.add_path(now, local, remote))
    }

    // ---- Facts ----

    /// The association, open or closed.
    pub fn assoc(&self) -> Option<&Association> {
        self.endpoint.assoc(self.assoc?)
    }

    /// True while the association is established.
    pub fn is_established(&self) -> bool {
        self.assoc().is_some_and(Association::is_established)
    }

    /// Why the association ended, if it did.
    pub fn closed(&self) -> Option<&AssocClosed> {
        self.assoc()?.closed()
    }

    /// The paths as the engine reports them.
    pub fn paths(&self) -> Vec<PathStats> {
        self.assoc().map(|assoc| assoc.paths().collect()).unwrap_or_default()
    }

    /// What the engine knows of paths that may share a bottleneck.
    pub fn shared_pairs(&self) -> &[SharedEvidence] {
        self.assoc().map_or(&[], Association::shared_pairs)
    }

    /// The counters of the association.
    pub fn stats(&self) -> Option<AssocStats> {
        self.assoc().map(Association::stats)
    }

    /// User bytes handed to the association since it, or the peer, started.
    pub fn sent_bytes(&self) -> u64 {
        self.sender.bytes
    }

    /// Messages handed to the association since it, or the peer, started.
    pub fn sent_messages(&self) -> u64 {
        self.sender.messages
    }

    /// User bytes received since the association, or the peer, started.
    pub fn received_bytes(&self) -> u64 {
        self.receiver.bytes
    }

    /// Messages received since the association, or the peer, started.
    pub fn received_messages(&self) -> u64 {
        self.receiver.messages
    }

    /// When the last bytes were received.
    pub fn last_received(&self) -> Option<Instant> {
        self.receiver.last
    }

    /// True if the association took everything that was to be sent.
    pub fn has_sent_all(&self) -> bool {
        self.sender.is_done() && !self.will_send()
    }

    /// True if everything that was to be sent, if anything was, is acknowledged.
    pub fn has_been_acked_all(&self) -> bool {
        self.has_sent_all() && self.assoc().is_none_or(|assoc| assoc.unacked_bytes() == 0)
    }

    /// True if the application sends more at a time set beforehand.
    fn will_send(&self) -> bool {
        use Planned::{Send, SendPaced, SendUntil};
        let is_sending = |what: &Planned| matches!(what, Send(_) | SendUntil(_) | SendPaced { .. });
        self.planned.values().any(is_sending)
    }

    /// Its preset.
    pub fn preset(&self) -> &'static str {
        self.setup.config.preset
    }

    /// True if a shutdown was asked for or begun and the association is not over.
    pub(crate) fn is_shutting_down(&self) -> bool {
        self.shuts_down || self.has_begun_shutdown
    }

    /// Associations and peer restarts so far.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Everything the engine reported but that there is data to read or room to write.
    pub fn events(&self) -> &[(Instant, Event)] {
        &self.events
    }

    /// Checks what must always hold in the engine.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub fn check_invariants(&self) {
        for id in self.endpoint.associations() {
            if let Some(assoc) = self.endpoint.assoc(id) {
                assoc.check_invariants();
            }
        }
    }

    // ---- For the driver ----

    /// True if commands wait for [`drive`](Self::drive).
    pub fn has_commands(&self) -> bool {
        self.has_commands
    }

    /// Notes what was received by the network's latest moments.
    pub(crate) fn note_received(&mut self, moments: usize) {
        self.received_at.resize(moments, self.receiver.bytes);
    }

    /// Bytes received by then; exact at the network's moments.
    pub(crate) fn received_by(&self, at: Instant, net: &Network) -> u64 {
        let noted = &net.moments()[..self.received_at.len()];
        match noted.partition_point(|moment| *moment <= at) {
            0 => 0,
            count => self.received_at[count - 1],
        }
    }

    /// Hands a packet to the engine.
    pub fn handle_packet(&mut self, delivery: Delivery, net: &mut Network) {
        let Delivery { route, ecn, payload, .. } = delivery;
        let (local, remote) = net.seen_ends(route);
        self.endpoint.handle_datagram(net.now(), Datagram { local, remote, ecn, payload });
        self.drive(net);
    }

    /// Tells the engine that a packet was too long for a link.
    pub(crate) fn handle_too_long(&mut self, message: &TooLong, net: &mut Network) {
        let TooLong { local, remote, mtu, quoted, .. } = message;
        let message = PacketTooBig { local: *local, remote: *remote, mtu: *mtu as usize, quoted };
        self.endpoint.packet_too_big(net.now(), message);
        self.drive(net);
    }

    /// Tells the engine that its timer ran out.
    pub fn handle_timer(&mut self, net: &mut Network) {
        self.endpoint.handle_timeout(net.now());
        self.drive(net);
    }

    /// Carries out commands and drains the engine, which is its one law: after any input, take all
    /// outputs, then wait.
    pub fn drive(&mut self, net: &mut Network) {
        let now = net.now();
        if !self.planned.is_empty() {
            self.carry_out_plans(now);
        }
        if std::mem::take(&mut self.is_new) {
            for &local in &self.setup.addresses {
                self.endpoint.set_link_mtu(now, local, net.interface_mtu(self.node, local));
            }
        }
        if std::mem::take(&mut self.connects) {
            self.start(now);
        }
        self.sender.note_call(now);
        net.show_association(self.node, || self.assoc());
        let mut rounds = 0;
        // Applications act on commands and events only.
        let mut has_news = std::mem::take(&mut self.has_commands);
        loop {
            rounds += 1;
            assert!(rounds < MAX_ROUNDS, "the engine does not come to rest at {now:?}");
            while let Some((id, event)) = &self.endpoint.poll_event() {
                has_news = true;
                self.on_event(*id, event, net);
            }
            if rounds > 1 && !has_news {
                break;
            }
            if std::mem::take(&mut has_news) {
                self.run_applications(now, net);
            }
            self.transmit(net);
        }
        net.show_association(self.node, || self.assoc());
        if self.wants_oracle {
            self.ask_oracle(net);
        }
        let planned = self.planned.first_key_value().map(|((at, _), _)| *at);
        let timer = self.endpoint.poll_timeout();
        net.set_timer(self.node, timer.into_iter().chain(planned).min());
    }

    /// Tells RTX-LOSSRATE what the links of each path lose, if that or the paths have changed.
    #[inline(never)]
    fn ask_oracle(&mut self, net: &Network) {
        let latest = Some(net.loss_changes());
        let Some(id) = self.assoc.filter(|_| self.oracle != latest) else { return };
        let Some(assoc) = self.endpoint.assoc_mut(id) else { return };
        self.oracle = latest;
        for path in assoc.paths().collect::<Vec<_>>() {
            if let Some(loss) = net.true_loss(self.node, path.local, path.remote) {
                assoc.set_loss_oracle(path.id, loss);
            }
        }
    }

    #[inline(never)]
    fn carry_out_plans(&mut self, now: Instant) {
        while let Some(next) = self.planned.first_entry().filter(|next| next.key().0 <= now) {
            self.has_commands = true;
            let at = next.key().0;
            match next.remove() {
                Planned::Associate => self.connects = true,
                Planned::Send(bytes) => self.send_file(bytes),
                Planned::SendUntil(until) => {
                    self.sender.add(0, false, u64::MAX, None);
                    self.plan(until, Planned::StopSending);
                }
                Planned::SendPaced { bytes, pace } => {
                    let length = bytes.min(pace.message as u64);
                    self.sender.add(0, false, length, Some(pace.message));
                    if bytes > length {
                        let rest = Planned::SendPaced { bytes: bytes - length, pace };
                        self.plan(at + pace.every, rest);
                    }
                }
                Planned::StopSending => self.sender.clear(),
                Planned::Shutdown => self.shutdown(),
            }
        }
    }

    #[cold]
    fn start(&mut self, now: Instant) {
        if let Some(old) = self.assoc.take() {
            self.endpoint.forget(old);
        }
        let to = ConnectTo { paths: self.setup.connect.clone(), sctp_port: SCTP_PORT };
        let id =
            self.endpoint.connect(now, to).expect("the paths were given as pairs of own addresses");
        self.assoc = Some(id);
    }

    fn on_event(&mut self, id: AssocId, event: &Event, net: &mut Network) {
        let now = net.now();
        match event {
            Event::Readable => net.trace_event(self.node, b"readable"),
            Event::Writable => net.trace_event(self.node, b"writable"),
            // It repeats what the packets of the handshake say, which count.
            Event::SackPathAgreed { .. } => {}
            _ => {
                self.text.clear();
                // Writing to a String does not fail.
                let _ = write!(self.text, "{event:?}");
                net.trace_event(self.node, self.text.as_bytes());
            }
        }
        let is_new = matches!(event, Event::Connected { incoming: true }) && self.assoc != Some(id);
        if is_new && let Some(old) = self.assoc.replace(id) {
            self.endpoint.forget(old);
            self.new_epoch();
        }
        if self.assoc != Some(id) {
            return;
        }
        net.show_event(self.node, event);
        match event {
            Event::Readable => return,
            Event::Writable => return self.sender.on_writable(),
            Event::Restarted => self.new_epoch(),
            Event::PathState { .. } => net.note_moment(),
            Event::PathAdded { .. } => self.oracle = None,
            Event::SendBufferEmpty => self.sender.on_all_acked(now),
            Event::PeerShutdown => self.has_begun_shutdown = true,
            Event::Closed(why) => {
                if *why == AssocClosed::Shutdown {
                    self.sender.clear();
                } else if self.reconnects && !self.setup.connect.is_empty() {
                    self.new_epoch();
                    self.start(now);
                }
            }
            _ => {}
        }
        self.events.push((now, event.clone()));
    }

    fn new_epoch(&mut self) {
        self.epoch += 1;
        self.oracle = None;
        self.has_begun_shutdown = false;
        self.sender.restart();
        self.receiver.restart();
        if self.ledger.is_some() {
            self.ledger = Some(Ledger::default());
        }
    }

    fn run_applications(&mut self, now: Instant, net: &mut Network) {
        let Some(id) = self.assoc else { return };
        let Some(assoc) = self.endpoint.assoc_mut(id) else { return };
        if let Some(reason) = self.aborts.take() {
            return assoc.abort(now, &reason);
        }
        while self.reads
            && let Some(message) = assoc.recv(now)
        {
            self.receiver.take(now, &message);
            if std::mem::take(&mut self.admits) {
                assoc.set_receive_buffer(now, self.setup.config.receive_buffer);
            }
            message.payload.into_iter().for_each(|piece| net.pool.recycle(piece));
        }
        self.sender.feed(now, assoc);
        if self.shuts_down && self.sender.is_done() && assoc.is_established() {
            self.shuts_down = false;
            self.has_begun_shutdown = true;
            assoc.shutdown(now);
        }
    }

    /// Puts everything that the engine sends now on the network, and its TSNs in the ledger, if there is one.
    fn transmit(&mut self, net: &mut Network) {
        let mut batches = 0;
        let (endpoint, out) = (&mut self.endpoint, &mut self.out);
        // By reference: this is done for every packet, and moving what is returned takes time.
        while let Some(to) = &endpoint.poll_transmit(net.now(), self.setup.max_segments, out) {
            batches += 1;
            assert!(batches < MAX_ROUNDS, "the engine sends without end at {:?}", net.now());
            let segment = to.segment_size.max(1);
            let outlet = net.outlet(self.node, &to.local, &to.remote);
            if let (Some(ledger), Some(route)) = (&mut self.ledger, outlet.route) {
                let path = net.route_path(route).unwrap_or(0);
                out.chunks(segment).for_each(|packet| ledger.sent(packet, path));
            }
            let mut rest = net.pool.seal(out);
            while rest.len() > segment {
                net.send_from(&outlet, to.ecn, to.may_fragment, rest.split_to(segment));
            }
            net.send_from(&outlet, to.ecn, to.may_fragment, rest);
        }
    }
}

/// True if the engine is told what links lose: by RTX-LOSSRATE, an oracle.
pub(crate) fn knows_true_loss(config: &Config) -> bool {
    config.rtx_policy.build(config).wants_true_loss()
}

fn new_endpoint(setup: &HostConfig, restarts: u32) -> Endpoint {
    let config = EndpointConfig {
        config: Arc::new(setup.config.for_simulation()),
        sctp_port: SCTP_PORT,
        accept: setup.connect.is_empty(),
        max_associations: 16,
        local_addresses: setup.addresses.clone(),
    };
    Endpoint::new(config, setup.rng.fork(&format!("endpoint {restarts}")))
}
