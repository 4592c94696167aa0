//! A packet for this association, chunk by chunk.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use manypath_wire::{
    Chunk, Data, DataFlags, ErrorCause, ErrorChunk, IData, Packet, StreamId, Timestamp, Tsn,
    UnknownChunk,
};

use crate::assoc::protect::keys::refusal;
use crate::assoc::protect::protection::Received;
use crate::assoc::send::control::{Control, MAX_CONTROL};
use crate::assoc::state::State;
use crate::assoc::{AssocTimer, Association, Timer};
use crate::datagram::AddressPair;
use crate::event::{AssocClosed, Event};
use crate::rx::{Arrival, PacketFacts, ProtocolViolation};
use crate::sizes::DataKind;
use crate::time::Instant;
use crate::view::PathId;

/// An ABORT's text is kept up to this length, in bytes.
const MAX_REASON: usize = 256;

/// Facts about the chunks of a packet so far that the rest of it needs.
struct Progress {
    now: Instant,
    from: AddressPair,
    path: Option<PathId>,
    has_data: bool,
    /// User bytes that had not come before.
    new_bytes: usize,
    facts: PacketFacts,
    /// It stands before the chunks that it concerns.
    timestamp: Option<Timestamp>,
    /// One heartbeat and one unknown chunk of a packet are answered: a packet full of them must not
    /// draw a packet for each.
    answered_heartbeat: bool,
    reported_unknown: bool,
}

/// The signs that a packet is the peer's.
struct Trust {
    has_own_tag: bool,
    /// It came from an address that nobody named, and that is not verified.
    is_stranger: bool,
    is_sealed: bool,
    /// It is sealed if it must be: nobody else can have sent it.
    counts_fully: bool,
}

impl Progress {
    fn new(now: Instant, from: AddressPair, path: Option<PathId>, facts: PacketFacts) -> Progress {
        Progress {
            now,
            from,
            path,
            has_data: false,
            new_bytes: 0,
            facts,
            timestamp: None,
            answered_heartbeat: false,
            reported_unknown: false,
        }
    }

    #[inline]
    fn note_new(&mut self, arrival: &Result<Arrival, ProtocolViolation>, length: usize) {
        if matches!(arrival, Ok(Arrival::New)) {
            self.new_bytes += length;
        }
    }
}

impl Association {
    /// Handles a packet whose verification tag and ports are right.
    pub(crate) fn handle_packet(&mut self, now: Instant, from: AddressPair, packet: Packet) {
        if matches!(self.state, State::Closed(_)) {
            return;
        }
        let wire_len = packet.bytes().len();
        let has_own_tag = packet.header.verification_tag == self.ends.id.local_tag;
        if let Some(received) = self.receive(now, packet) {
            self.handle_received(now, from, received, wire_len, has_own_tag);
        }
    }

    /// The same for a packet that is sealed, with the place of its record. It has our tag.
    pub(crate) fn handle_sealed(
        &mut self,
        now: Instant,
        from: AddressPair,
        packet: BytesMut,
        record: Range<usize>,
    ) {
        if matches!(self.state, State::Closed(_)) {
            return;
        }
        let wire_len = packet.len();
        if let Some(received) = self.open_packet(now, packet, record) {
            self.handle_received(now, from, received, wire_len, true);
        }
    }

    #[inline(never)]
    fn handle_received(
        &mut self,
        now: Instant,
        from: AddressPair,
        received: Received,
        wire_len: usize,
        has_own_tag: bool,
    ) {
        let path = self.note_packet(now, from, wire_len, received.counts_fully);
        let is_stranger = !received.is_sealed && path.is_some_and(|id| self.is_stranger(id));
        if received.counts_fully && has_own_tag && !is_stranger {
            self.peer_heard(now);
        }
        let gap_before = self.rx.receiver.as_mut().is_some_and(|r| {
            r.inbound.begin_packet(received.len);
            r.tracker.has_gaps()
        });
        let facts = PacketFacts { gap_before, ..PacketFacts::default() };
        let trust = Trust {
            has_own_tag,
            is_stranger,
            is_sealed: received.is_sealed,
            counts_fully: received.counts_fully,
        };
        let mut progress = Progress::new(now, from, path, facts);
        for chunk in received.chunks {
            let Ok(chunk) = chunk else {
                // The chunks before the damage count; what follows cannot be told apart.
                self.stats.packets_dropped += 1;
                break;
            };
            if !self.counts(&chunk, path, &trust) {
                continue;
            }
            if !self.handle_chunk(chunk, &mut progress) || matches!(self.state, State::Closed(_)) {
                break;
            }
        }
        if matches!(self.state, State::Closed(_)) {
            return;
        }
        if progress.has_data {
            self.after_data_packet(&progress);
        }
        self.run_key_management(now);
        self.tell_if_readable();
    }

    /// A packet came: notes it with its path. What may be forged changes nothing about paths.
    #[inline]
    fn note_packet(
        &mut self,
        now: Instant,
        from: AddressPair,
        wire_len: usize,
        counts_fully: bool,
    ) -> Option<PathId> {
        self.note_bytes_of_peer(from.remote, wire_len);
        let path = if counts_fully || !self.state.is_open() {
            self.path_of(now, from)
        } else {
            self.paths.find(&from)
        };
        let p = self.paths.get_mut(path?)?;
        p.counters.packets_received += 1;
        p.counters.bytes_received += wire_len as u64;
        p.liveness.last_heard = Some(now);
        if counts_fully {
            p.probing.note_heard(now);
        }
        self.probe_if_failed(now, path?);
        path
    }

    /// False for a chunk that its packet's sender may not send.
    #[inline]
    fn counts(&mut self, chunk: &Chunk, path: Option<PathId>, trust: &Trust) -> bool {
        // RFC 9260 §8.5 knows an association by its addresses: from another host, who may have
        // guessed the tag, nothing counts but the verification of its path.
        if !is_rightly_tagged(chunk, trust.has_own_tag) {
            return false;
        }
        if !trust.counts_fully && !self.counts_in_plain(chunk) {
            if !trust.is_stranger {
                self.acknowledge_again(chunk);
            }
            return false;
        }
        match chunk {
            Chunk::Heartbeat(_) | Chunk::HeartbeatAck(_) => true,
            _ if trust.is_stranger => false,
            // RFC 9260 §8.5.1, B lets whoever knows a tag end the association. Who comes from where
            // the peer was never seen has to show first that packets reach it there.
            Chunk::Abort(_) => trust.is_sealed || !path.is_some_and(|id| self.is_to_verify(id)),
            _ => true,
        }
    }

    /// The chunks of a packet; `None` if it does not count.
    #[inline]
    fn receive(&mut self, now: Instant, packet: Packet) -> Option<Received> {
        match self.protection {
            None => Some(Received {
                len: packet.bytes().len(),
                chunks: packet.into_chunks(),
                counts_fully: true,
                is_sealed: false,
            }),
            Some(_) => self.receive_in_plain(now, packet),
        }
    }

    /// Returns false if the rest of the packet is to be ignored.
    #[inline]
    fn handle_chunk(&mut self, chunk: Chunk, p: &mut Progress) -> bool {
        match chunk {
            Chunk::Data(data) => self.on_data(data, p),
            Chunk::IData(data) => self.on_i_data(data, p),
            Chunk::Sack(sack) => {
                self.on_sack(p.now, &sack, p.path, p.timestamp.and_then(|ts| ts.echo));
            }
            // Not agreed on, its type says: discard it and what follows it (RFC 9260 §3.2).
            Chunk::NrSack(_) if !self.agreed.nr_sack => return false,
            Chunk::NrSack(sack) => {
                self.stats.nr_sacks_received += 1;
                self.on_sack(p.now, &sack, p.path, p.timestamp.and_then(|ts| ts.echo));
            }
            Chunk::Timestamp(timestamp) => p.timestamp = Some(timestamp),
            Chunk::SackPath(chunk) => self.on_sack_path(p.now, p.path, chunk),
            other => return self.handle_control(other, p),
        }
        true
    }

    /// The same for a chunk that does not come with every packet.
    #[inline(never)] // what every packet takes must stay small
    fn handle_control(&mut self, chunk: Chunk, p: &mut Progress) -> bool {
        match chunk {
            Chunk::InitAck(init) => self.on_init_ack(p.now, p.from, &init),
            Chunk::CookieAck => self.on_cookie_ack(p.now, p.from),
            Chunk::Heartbeat(info) => {
                // RFC 9260 §8.3: the answer goes to where the question came from.
                let is_avoided = p.path.is_none() && self.ends.avoids(p.from.local.ip());
                if !std::mem::replace(&mut p.answered_heartbeat, true) && !is_avoided {
                    self.reply(Control::HeartbeatAck { info: info.0.clone(), to: p.from });
                    if let Some(path) = p.path {
                        self.answer_elsewhere(p.now, path, &info.0);
                    }
                }
            }
            Chunk::HeartbeatAck(info) => self.on_heartbeat_ack(p.now, &info.0, p.path),
            // A packet of ours that was late reached a peer that has closed already, and its answer
            // overtook SHUTDOWN COMPLETE: everything is delivered.
            Chunk::Abort(abort)
                if abort.tag_reflected && matches!(self.state, State::ShutdownAckSent { .. }) =>
            {
                self.on_shutdown_complete();
            }
            Chunk::Abort(abort) => {
                let cause = abort.causes.iter().find_map(Result::ok);
                if let Some(reason) = cause.as_ref().and_then(refusal) {
                    self.control.clear();
                    let reason = reason.to_owned();
                    self.close(AssocClosed::NotProtected { reason, by_peer: true });
                    return false;
                }
                let reason = match &cause {
                    Some(ErrorCause::UserInitiatedAbort(r) | ErrorCause::ProtocolViolation(r)) => {
                        r[..r.len().min(MAX_REASON)].to_vec()
                    }
                    _ => Vec::new(),
                };
                let cause = cause.map_or(0, |c| c.code());
                // What arrived before it can still be read.
                self.tell_if_readable();
                self.control.clear();
                self.close(AssocClosed::PeerAborted { cause, reason });
            }
            Chunk::Error(error) => self.on_error(p.now, &error),
            Chunk::Shutdown(shutdown) => self.on_shutdown(p.now, p.from, shutdown.cum_tsn_ack),
            Chunk::ShutdownAck => self.on_shutdown_ack(p.from),
            Chunk::ShutdownComplete { .. } => self.on_shutdown_complete(),
            // The endpoint handles these; bundled behind other chunks they mean nothing. The rest
            // was handled before.
            Chunk::Init(_) | Chunk::CookieEcho(_) => {}
            Chunk::Data(_) | Chunk::IData(_) | Chunk::Sack(_) | Chunk::NrSack(_) => {}
            Chunk::Timestamp(_) | Chunk::SackPath(_) | Chunk::Pad(_) => {}
            // In an association that is not protected the type is as one that is not known.
            Chunk::Dtls(dtls) => return self.on_unknown(&dtls.into(), p),
            Chunk::Unknown(unknown) => return self.on_unknown(&unknown, p),
        }
        true
    }

    /// Handles a chunk of an unknown type (RFC 9260 §3.2). Returns false if the rest of the packet
    /// is to be ignored.
    fn on_unknown(&mut self, unknown: &UnknownChunk, p: &mut Progress) -> bool {
        let action = unknown.action();
        if action.report && !std::mem::replace(&mut p.reported_unknown, true) {
            let raw = unknown.raw().slice(..unknown.raw().len().min(512));
            self.report(ErrorCause::UnrecognizedChunkType(raw));
        }
        !action.stop
    }

    #[inline]
    fn on_data(&mut self, data: Data, p: &mut Progress) {
        let Data { tsn, flags, stream, .. } = data;
        let length = data.payload.len();
        if !self.takes_data(DataKind::Data, tsn, length == 0) {
            return;
        }
        let Some(receiver) = self.rx.receiver.as_mut() else { return };
        let arrival = receiver.inbound.accept(data, &mut receiver.tracker);
        p.note_new(&arrival, length);
        self.after_data_chunk(arrival, flags, stream, p);
    }

    #[inline(never)] // beside DATA it would make the way of packets longer
    fn on_i_data(&mut self, data: IData, p: &mut Progress) {
        let IData { tsn, flags, stream, .. } = data;
        let length = data.payload.len();
        if !self.takes_data(DataKind::IData, tsn, length == 0) {
            return;
        }
        let Some(receiver) = self.rx.receiver.as_mut() else { return };
        let arrival = receiver.inbound.accept_i_data(data, &mut receiver.tracker);
        p.note_new(&arrival, length);
        self.after_data_chunk(arrival, flags, stream, p);
    }

    /// A chunk of user data counts. If it must not be there, the association ends.
    #[inline]
    fn takes_data(&mut self, kind: DataKind, tsn: Tsn, is_empty: bool) -> bool {
        if !self.state.may_receive_data() {
            return false;
        }
        if is_empty {
            // RFC 9260 §6.2
            self.abort_with(ErrorCause::NoUserData(tsn), "a DATA chunk without user data");
            return false;
        }
        if kind != self.agreed.data_kind {
            self.refuse_kind(kind);
            return false;
        }
        true
    }

    /// RFC 8260 §2.2.3: user data in chunks that were not agreed on ends the association.
    #[cold]
    fn refuse_kind(&mut self, kind: DataKind) {
        let what = match kind {
            DataKind::Data => "a DATA chunk, although messages are interleaved",
            DataKind::IData => "an I-DATA chunk, although messages are not interleaved",
        };
        let text = Bytes::from_static(what.as_bytes());
        self.abort_with(ErrorCause::ProtocolViolation(text), what);
    }

    #[inline(always)] // into both callers
    fn after_data_chunk(
        &mut self,
        arrival: Result<Arrival, ProtocolViolation>,
        flags: DataFlags,
        stream: StreamId,
        p: &mut Progress,
    ) {
        p.has_data = true;
        p.facts.immediate_bit |= flags.immediate();
        match arrival {
            Ok(Arrival::New) => p.facts.any_new = true,
            Ok(Arrival::Duplicate) => {
                p.facts.any_duplicate = true;
                self.stats.duplicates_received += 1;
            }
            Ok(_) => p.facts.any_dropped = true,
            Err(violation) if violation.is_fatal() => {
                let text = Bytes::from(violation.to_string());
                self.abort_with(
                    ErrorCause::ProtocolViolation(text),
                    "DATA chunks that contradict each other",
                );
            }
            Err(_) => {
                p.facts.any_new = true;
                self.report(ErrorCause::InvalidStreamIdentifier(stream));
            }
        }
    }

    /// Decides about the SACK after a packet with DATA.
    fn after_data_packet(&mut self, p: &Progress) {
        let is_prompt = self.expects_prompt_sacks();
        let Some(r) = self.rx.receiver.as_mut() else { return };
        r.last_data = p.path.or(r.last_data);
        // DAC is for reordering that the sender causes by using several paths. Another sender, on
        // one, needs its SACKs at once when something is missing.
        r.data_paths |= p.path.map_or(0, |id| 1 << id.0);
        let many =
            self.agreed.sack_paths.gaps_wait && r.delayed.sack_every() > self.config.sack_every;
        let waits = !is_prompt && (self.agreed.sack_paths.dac || many);
        r.delayed.set_dac(waits && r.data_paths.count_ones() > 1);
        if let Some(path) = p.path.and_then(|id| self.paths.get_mut(id)) {
            path.flow.last_data_received = Some(p.now);
            path.counters.data_bytes_received += p.new_bytes as u64;
        }
        let facts = PacketFacts { gap_after: r.tracker.has_gaps(), ..p.facts };
        if !is_prompt {
            r.adapt_sack_every(&self.config, p.now);
        }
        r.delayed.on_data_packet(p.now, facts);
        match r.delayed.deadline() {
            Some(at) => self.timers.start(Timer::Assoc(AssocTimer::Sack), at),
            None => self.timers.stop(Timer::Assoc(AssocTimer::Sack)),
        }
        if let (Some(ts), Some(timestamps)) = (p.timestamp, self.agreed.timestamps.as_mut()) {
            timestamps.received(ts.timestamp);
        }
        self.shutdown_sent_got_data(p.now, p.facts.any_new);
    }

    fn on_error(&mut self, now: Instant, error: &ErrorChunk) {
        for cause in error.causes.iter().map_while(Result::ok).take(16) {
            let is_stale = matches!(cause, ErrorCause::StaleCookie(_));
            if is_stale && !matches!(self.state, State::CookieEchoed { .. }) {
                continue; // RFC 9260 §5.2.6
            }
            self.events.push(Event::PeerError { cause: cause.code() });
            if is_stale {
                self.on_stale_cookie(now);
                return;
            }
        }
    }

    /// Queues an answer, unless the peer floods us, or has not told us its tag.
    pub(crate) fn reply(&mut self, control: Control) {
        if self.control.len() < MAX_CONTROL && self.ends.id.peer_tag != 0 {
            self.control.push_back(control);
        }
    }

    /// Tells the peer of an error that does not end the association. Until COOKIE ACK nothing may
    /// be sent but COOKIE ECHO (RFC 9260 §5.1, C).
    pub(crate) fn report(&mut self, cause: ErrorCause) {
        if self.state.is_open() {
            self.reply(Control::Error(cause));
        }
    }

    /// Ends the association because the peer broke the protocol.
    pub(crate) fn abort_with(&mut self, cause: ErrorCause, what: &'static str) {
        self.push_abort(Some(cause));
        self.close(AssocClosed::ProtocolViolation(what));
    }
}

/// RFC 9260 §8.5.1, B and C: the T bit says whose tag ABORT and SHUTDOWN COMPLETE carry; all else
/// carries ours.
fn is_rightly_tagged(chunk: &Chunk, has_own_tag: bool) -> bool {
    match chunk {
        Chunk::Abort(abort) => abort.tag_reflected != has_own_tag,
        Chunk::ShutdownComplete { tag_reflected } => *tag_reflected != has_own_tag,
        _ => has_own_tag,
    }
}
