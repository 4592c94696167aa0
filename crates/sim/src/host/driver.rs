//! Moves packets, timers and events between the engine, the network and the applications.

use std::fmt::Write as _;
use std::time::Duration;

use manypath_proto::{
    AssocClosed, AssocId, ConnectTo, Datagram, Event, Instant, PacketTooBig, PathState,
};

use super::planned::Planned;
use super::{Host, LossOracle, Phase, SCTP_PORT};
use crate::ledger::Ledger;
use crate::network::{Header, Network};
use crate::packet::{Delivery, TooLong};
use crate::transitions::Cause;

/// Rounds of events, applications and packets at one instant that only a fault can need.
const MAX_ROUNDS: u32 = 100_000;
/// Between an attempt to associate that has failed and the next one. A peer may refuse INITs until
/// it gives up the association that it has (RFC 9260 §5.2.2), which takes minutes.
const ATTEMPTS_APART: Duration = Duration::from_millis(50);

impl Host {
    /// True if commands wait for [`drive`](Self::drive).
    pub fn has_commands(&self) -> bool {
        self.pending.commands
    }

    /// Notes what was received by a moment: since then nothing was.
    pub(crate) fn note_received(&mut self, at: Instant) {
        match self.received_at.last_mut().filter(|(latest, _)| *latest == at) {
            Some((_, bytes)) => *bytes = self.receiver.bytes,
            None => self.received_at.push((at, self.receiver.bytes)),
        }
    }

    /// Bytes received by then; exact at the moments that concern this host.
    pub(crate) fn received_by(&self, at: Instant) -> u64 {
        match self.received_at.partition_point(|(moment, _)| *moment <= at) {
            0 => 0,
            count => self.received_at[count - 1].1,
        }
    }

    /// Reads memory that the next event will need, as deep as `depth` from 0 to 3, and returns a
    /// number without meaning: see [`network::ahead`](crate::network).
    pub(crate) fn touch(&self, depth: usize) -> usize {
        let assoc = || self.assoc.and_then(|id| self.endpoint.assoc(id));
        match depth {
            0 => {
                self.receiver.bytes as usize
                    + self.sender.bytes as usize
                    + self.schedule.len()
                    + self.pending.commands as usize
                    + self.setup.max_segments
                    + self.node.0 as usize
            }
            1 => self.receiver.touch() + self.sender.touch(),
            2 => assoc().map_or(0, |a| a.send_space() + a.unsent_bytes() + a.fragment_size()),
            _ => assoc().map_or(0, |a| {
                a.stats().bytes_acked as usize + a.paths().map(|p| p.cwnd).sum::<usize>()
            }),
        }
    }

    /// Hands a packet to the engine.
    pub fn handle_packet(&mut self, delivery: Delivery, net: &mut Network) {
        let Delivery { route, payload, has_ce, .. } = delivery;
        let (local, remote) = net.seen_ends(route);
        let mut datagram = Datagram::new(local, remote, payload);
        datagram.has_ce = has_ce;
        self.handle_datagram(datagram, net);
    }

    /// Hands a packet to the engine that came no ordinary way.
    pub(crate) fn handle_datagram(&mut self, datagram: Datagram, net: &mut Network) {
        let cause = self.watched.is_some().then(|| Cause::of(&datagram, &self.endpoint));
        self.look(&Cause::Named("unseen"));
        self.endpoint.handle_datagram(net.now(), datagram);
        if let Some(cause) = cause {
            self.look(&cause);
        }
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
        self.look(&Cause::Named("unseen"));
        self.endpoint.handle_timeout(net.now());
        self.look(&Cause::Named("timer"));
        self.drive(net);
    }

    /// Carries out commands and drains the engine, which is its one law: after any input, take all
    /// outputs, then wait.
    pub fn drive(&mut self, net: &mut Network) {
        let now = net.now();
        if !self.schedule.is_empty() {
            self.carry_out_plans(now);
        }
        if std::mem::take(&mut self.pending.link_mtus) {
            for &local in &self.setup.addresses {
                self.endpoint.set_link_mtu(now, local, net.interface_mtu(self.node, local));
            }
        }
        if std::mem::take(&mut self.pending.ranks) {
            for (&local, &rank) in &self.ranks {
                self.endpoint.set_local_rank(now, local, rank);
            }
        }
        if std::mem::take(&mut self.pending.gather) {
            self.gather(net);
        }
        if std::mem::take(&mut self.pending.associate) {
            self.start(now);
        }
        self.sender.note_call(now);
        net.show_association(self.node, || self.assoc());
        let mut rounds = 0;
        // Applications act on commands and events only.
        let mut has_news = std::mem::take(&mut self.pending.commands);
        loop {
            rounds += 1;
            assert!(rounds < MAX_ROUNDS, "the engine does not come to rest at {now:?}");
            while let Some((id, event)) = &self.endpoint.poll_event() {
                // Applications have no use for that one.
                has_news |= !matches!(event, Event::NoAnswer { .. });
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
        if !matches!(self.oracle, LossOracle::Unused) {
            self.ask_oracle(net);
        }
        let timer = self.endpoint.poll_timeout();
        net.set_timer(self.node, timer.into_iter().chain(self.schedule.next()).min());
    }

    /// Tells RTX-LOSSRATE what the links of each path lose, if that or the paths have changed.
    #[inline(never)]
    fn ask_oracle(&mut self, net: &Network) {
        let latest = net.loss_changes();
        if matches!(self.oracle, LossOracle::Asked { changes } if changes == latest) {
            return;
        }
        let Some(id) = self.assoc else { return };
        let Some(assoc) = self.endpoint.assoc_mut(id) else { return };
        self.oracle = LossOracle::Asked { changes: latest };
        for path in assoc.paths().collect::<Vec<_>>() {
            if let Some(loss) = net.true_loss(self.node, path.local, path.remote) {
                assoc.set_loss_oracle(path.id, loss);
            }
        }
    }

    #[cold]
    fn start(&mut self, now: Instant) {
        if let Some(old) = self.assoc.take() {
            self.forget(old);
        }
        let candidates = self.setup.candidates.clone();
        let relayed = self.setup.relayed.clone();
        let to = ConnectTo::new(self.setup.connect.clone(), SCTP_PORT);
        let to = ConnectTo { candidates, relayed, ..to };
        let id =
            self.endpoint.connect(now, to).expect("the paths were given as pairs of own addresses");
        self.assoc = Some(id);
        self.look(&Cause::Named("associate"));
    }

    /// Drops an association, without a word to the peer if it is open.
    fn forget(&mut self, old: AssocId) {
        self.look(&Cause::Named("unseen"));
        self.endpoint.forget(old);
        self.look(&Cause::Named("forget"));
    }

    /// Forgets an attempt that has failed, and makes another one after a pause, as programs do.
    fn start_later(&mut self, now: Instant) {
        if let Some(failed) = self.assoc.take() {
            self.forget(failed);
        }
        self.plan(now + ATTEMPTS_APART, Planned::Associate);
    }

    /// True if the association that has closed was established.
    fn was_open(&self) -> bool {
        let events = self.events.iter().rev().map(|(_, event)| event);
        let mut of_this = events.take_while(|event| !matches!(event, Event::Closed(_)));
        of_this.any(|event| matches!(event, Event::Connected { .. }))
    }

    fn on_event(&mut self, id: AssocId, event: &Event, net: &mut Network) {
        let now = net.now();
        match event {
            Event::Readable => net.trace_event(self.node, b"readable"),
            Event::Writable => net.trace_event(self.node, b"writable"),
            // It repeats what the packets of the handshake say, which count.
            Event::SackPathAgreed { .. } => {}
            // Nothing but what follows from it counts.
            Event::NoAnswer { .. } => {}
            _ => {
                self.text.clear();
                // Writing to a String does not fail.
                let _ = write!(self.text, "{event:?}");
                net.trace_event(self.node, self.text.as_bytes());
            }
        }
        let is_new = matches!(event, Event::Connected { incoming: true }) && self.assoc != Some(id);
        if is_new && let Some(old) = self.assoc.replace(id) {
            self.forget(old);
            self.new_epoch();
        }
        if self.assoc != Some(id) {
            return;
        }
        net.show_event(self.node, event);
        match event {
            Event::Readable => return,
            Event::Writable => return self.sender.on_writable(),
            Event::Connected { incoming: true } => {
                if let Some(assoc) = self.endpoint.assoc_mut(id) {
                    assoc.seek_direct_paths(now);
                }
            }
            Event::Restarted => self.new_epoch(),
            Event::PathState { to, .. } => {
                net.note_path_state(self.node);
                if *to != PathState::Active {
                    self.doubt_addresses(now);
                }
            }
            Event::PathAdded { .. } => self.oracle.outdate(),
            Event::SendBufferEmpty => self.sender.on_all_acked(now),
            Event::PeerShutdown => self.phase = Phase::ShuttingDown,
            Event::Closed(why) => {
                let is_lost = *why != AssocClosed::Shutdown;
                if is_lost && self.application.reconnects && !self.setup.connect.is_empty() {
                    let was_open = self.was_open();
                    self.new_epoch();
                    if was_open {
                        self.start(now);
                    } else {
                        self.start_later(now);
                    }
                } else if !is_lost || self.phase == Phase::ShuttingDown {
                    // An association in a shutdown takes no more data (RFC 9260 §9.2).
                    self.sender.clear();
                }
            }
            _ => {}
        }
        self.events.push((now, event.clone()));
    }

    pub(super) fn new_epoch(&mut self) {
        self.beginnings.epoch += 1;
        self.oracle.outdate();
        self.phase = Phase::Open;
        self.sender.restart();
        self.receiver.restart();
        if self.ledger.is_some() {
            self.ledger = Some(Ledger::default());
        }
    }

    fn run_applications(&mut self, now: Instant, net: &mut Network) {
        let Some(id) = self.assoc else { return };
        let Some(assoc) = self.endpoint.assoc_mut(id) else { return };
        if let Some(reason) = self.pending.abort.take() {
            assoc.abort(now, &reason);
            return self.look(&Cause::Named("abort"));
        }
        while self.application.reads
            && let Some(message) = assoc.recv(now)
        {
            self.receiver.take(now, &message);
            if std::mem::take(&mut self.application.admits) {
                assoc.set_receive_buffer(now, self.setup.config.first_receive_buffer());
            }
            message.payload.into_iter().for_each(|piece| net.pool.recycle(piece));
        }
        self.sender.feed(now, assoc);
        if self.pending.shutdown && self.sender.is_done() && assoc.is_established() {
            self.pending.shutdown = false;
            self.phase = Phase::ShuttingDown;
            assoc.shutdown(now);
            self.look(&Cause::Named("shutdown"));
        }
    }

    /// Puts everything that the engine sends now on the network, and its TSNs in the ledger, if
    /// there is one.
    fn transmit(&mut self, net: &mut Network) {
        let mut batches = 0;
        let endpoint = &mut self.endpoint;
        let mut out = net.pool.open();
        // By reference: this is done for every packet, and moving what is returned takes time.
        while let Some(to) = &endpoint.poll_transmit(net.now(), self.setup.max_segments, &mut out) {
            batches += 1;
            assert!(batches < MAX_ROUNDS, "the engine sends without end at {:?}", net.now());
            let segment = to.segment_size.max(1);
            let outlet = net.outlet(self.node, &to.local, &to.remote);
            if let (Some(ledger), Some(route)) = (&mut self.ledger, outlet.route) {
                let path = net.route_path(route).unwrap_or(0);
                out.chunks(segment).for_each(|packet| ledger.sent(packet, path));
            }
            let mut rest = net.pool.seal(&mut out);
            let header = Header { may_fragment: to.may_fragment, is_ect: to.is_ect };
            while rest.len() > segment {
                net.send_from(&outlet, header, rest.split_to(segment));
            }
            net.send_from(&outlet, header, rest);
        }
        net.pool.close(out);
    }
}
