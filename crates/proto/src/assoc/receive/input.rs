//! A packet for this association, chunk by chunk.

use std::net::IpAddr;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use manypath_wire::{
    AsconfAck, Chunk, Data, DataFlags, ErrorCause, ErrorChunk, ForwardTsn, IData, Packet, StreamId,
    Timestamp, Tsn, UnknownChunk, chunk_type,
};

use crate::assoc::authentication::Authenticity;
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

/// Longest text of an ABORT that is kept, in bytes.
const MAX_REASON: usize = 256;

/// ASCONF chunks of a packet that count. More are repeated in another packet.
const MAX_ASCONFS: u8 = 4;

/// RE-CONFIG chunks of a packet that count. An end has an answer and a request to send at a time.
const MAX_RE_CONFIGS: u8 = 2;

/// Facts about the earlier chunks of a packet that its later chunks need.
struct Progress {
    now: Instant,
    from: AddressPair,
    path: Option<PathId>,
    has_data: bool,
    /// User bytes received for the first time.
    new_bytes: usize,
    facts: PacketFacts,
    /// The packet's TIMESTAMP, which stands before the chunks that it applies to.
    timestamp: Option<Timestamp>,
    /// A heartbeat of this packet was answered. Only one is, and one unknown chunk, so that a
    /// packet full of them does not draw many packets.
    answered_heartbeat: bool,
    reported_unknown: bool,
    re_configs: u8,
    /// The ASCONF chunks so far, and their answers.
    asconfs: u8,
    asconf_acks: Vec<AsconfAck>,
    /// A router marked the packet (CE).
    is_marked: bool,
    /// The first TSN of a marked packet, which is its lowest.
    marked_tsn: Option<Tsn>,
}

/// Signs that a packet is the peer's.
struct Trust {
    has_own_tag: bool,
    /// It came from an unverified address that neither end named.
    is_stranger: bool,
    is_sealed: bool,
    /// It is sealed, or need not be.
    counts_fully: bool,
    /// It came from an address that the peer has deleted.
    is_from_deleted: bool,
    /// Our address, to which it came.
    local: IpAddr,
}

/// How a packet came.
struct Carried {
    from: AddressPair,
    /// Bytes of the packet as it came.
    wire_len: usize,
    /// A router marked it (CE).
    is_marked: bool,
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
            re_configs: 0,
            asconfs: 0,
            asconf_acks: Vec::new(),
            is_marked: false,
            marked_tsn: None,
        }
    }

    /// Notes a TSN of the packet, if a router marked it.
    #[inline]
    fn note_mark(&mut self, tsn: Tsn) {
        if self.is_marked && self.marked_tsn.is_none() {
            self.marked_tsn = Some(tsn);
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
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        from: AddressPair,
        is_marked: bool,
        packet: Packet,
    ) {
        if matches!(self.state, State::Closed(_)) {
            return;
        }
        let wire_len = packet.bytes().len();
        let has_own_tag = packet.header.verification_tag == self.ends.id.local_tag;
        if let Some(received) = self.receive(now, packet) {
            let of_packet = Carried { from, wire_len, is_marked };
            self.handle_received(now, of_packet, received, has_own_tag);
        }
    }

    /// Handles a sealed packet with our tag. `record` is the range of its record.
    pub(crate) fn handle_sealed(
        &mut self,
        now: Instant,
        from: AddressPair,
        is_marked: bool,
        packet: BytesMut,
        record: Range<usize>,
    ) {
        if matches!(self.state, State::Closed(_)) {
            return;
        }
        let wire_len = packet.len();
        if let Some(received) = self.open_packet(now, packet, record) {
            self.handle_received(now, Carried { from, wire_len, is_marked }, received, true);
        }
    }

    #[inline(never)]
    fn handle_received(
        &mut self,
        now: Instant,
        carried: Carried,
        received: Received,
        has_own_tag: bool,
    ) {
        let Carried { from, wire_len, is_marked } = carried;
        let path = self.note_packet(now, from, wire_len, received.counts_fully);
        let is_stranger = !received.is_sealed && path.is_some_and(|id| self.is_stranger(id));
        let is_from_deleted = path.is_none() && self.is_deleted(from.remote.ip());
        if received.counts_fully && has_own_tag && !is_stranger && !is_from_deleted {
            self.peer_heard(now);
            self.heard_at_untold(now, path);
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
            is_from_deleted,
            local: from.local.ip(),
        };
        let mut progress = Progress { is_marked, ..Progress::new(now, from, path, facts) };
        let (mut chunks, mut is_authentic) = (received.chunks, false);
        while let Some(chunk) = chunks.next() {
            let Ok(chunk) = chunk else {
                // Chunks before the damage count. The rest cannot be parsed.
                self.stats.packets_dropped += 1;
                break;
            };
            if self.authentication.is_some() {
                match self.check_authenticity(&chunk, &chunks, &mut is_authentic) {
                    Authenticity::Counts => {}
                    Authenticity::Skipped => continue,
                    Authenticity::EndsPacket => break,
                }
            }
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
        if !progress.asconf_acks.is_empty() {
            let chunks = std::mem::take(&mut progress.asconf_acks);
            self.reply(Control::AsconfAcks { chunks, to: from });
        }
        if let Some(tsn) = progress.marked_tsn {
            self.note_marked(progress.path, tsn);
        }
        if progress.has_data {
            self.after_data_packet(&progress);
        }
        self.end_deferred_reset();
        self.run_key_management(now);
        self.tell_if_readable();
    }

    /// Notes a packet with its path. A packet that may be forged changes nothing about paths.
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

    /// True if the sender of the packet may send this chunk.
    #[inline]
    fn counts(&mut self, chunk: &Chunk, path: Option<PathId>, trust: &Trust) -> bool {
        // RFC 9260 §8.5 identifies an association by its addresses. A sender at another host may
        // have guessed the tag, so only the chunks that verify its path count.
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
            // RFC 5061 §5.3.2: they may come from an address that they add. They are authenticated,
            // or not agreed on.
            Chunk::Asconf(_) | Chunk::AsconfAck(_) => true,
            _ if trust.is_from_deleted => false,
            Chunk::Heartbeat(_) | Chunk::HeartbeatAck(_) => true,
            _ if trust.is_stranger => false,
            Chunk::Abort(abort) if abort.tag_reflected && self.is_changing(trust.local) => false,
            // RFC 9260 §8.5.1, B lets anyone who knows a tag end the association. From an address
            // where the peer was never seen, ABORT counts only after the address is verified.
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

    /// Handles a chunk. Returns false if the rest of the packet is to be ignored.
    #[inline]
    fn handle_chunk(&mut self, chunk: Chunk, p: &mut Progress) -> bool {
        match chunk {
            Chunk::Data(data) => self.on_data(data, p),
            Chunk::IData(data) => self.on_i_data(data, p),
            Chunk::Sack(sack) => {
                self.on_sack(p.now, &sack, p.path, p.timestamp.and_then(|ts| ts.echo));
            }
            // It was not agreed on. Its type says to discard it and the rest of the packet (RFC
            // 9260 §3.2).
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

    /// Handles a chunk that is not part of most packets.
    #[inline(never)] // what every packet takes must stay small
    fn handle_control(&mut self, chunk: Chunk, p: &mut Progress) -> bool {
        match chunk {
            Chunk::InitAck(init) => self.on_init_ack(p.now, p.from, &init),
            Chunk::CookieAck => self.on_cookie_ack(p.now, p.from),
            Chunk::Heartbeat(info) => {
                // RFC 9260 §8.3: the answer goes to the address that the HEARTBEAT came from.
                let is_avoided = p.path.is_none() && self.ends.avoids(p.from.local.ip());
                if !std::mem::replace(&mut p.answered_heartbeat, true) && !is_avoided {
                    self.reply(Control::HeartbeatAck { info: info.0.clone(), to: p.from });
                    if let Some(path) = p.path {
                        self.answer_elsewhere(p.now, path, &info.0);
                        self.check_back(p.now, path);
                    }
                }
            }
            Chunk::HeartbeatAck(info) => self.on_heartbeat_ack(p.now, &info.0, p.from, p.path),
            Chunk::Candidates(candidates) => self.on_candidates(p.now, &candidates),
            // A peer that floods us gets no more answers than a flood of packets draws.
            Chunk::ReConfig(chunk) if p.re_configs < MAX_RE_CONFIGS => {
                p.re_configs += 1;
                self.on_re_config(p.now, p.from, &chunk);
            }
            Chunk::ReConfig(_) => {}
            Chunk::Asconf(chunk) if self.reconfigures_addresses() => {
                p.asconfs += 1;
                if p.asconfs <= MAX_ASCONFS {
                    p.asconf_acks.extend(self.on_asconf(p.now, p.from, &chunk));
                }
            }
            Chunk::Asconf(chunk) => return self.on_unknown(&chunk.into(), p),
            Chunk::AsconfAck(chunk) => self.on_asconf_ack(p.now, &chunk),
            // A late packet of ours reached a peer that has already closed, and the answer overtook
            // SHUTDOWN COMPLETE. Everything is delivered.
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
                // Data that arrived before the ABORT can still be read.
                self.tell_if_readable();
                self.control.clear();
                self.close(AssocClosed::PeerAborted { cause, reason });
            }
            Chunk::Error(error) => self.on_error(p.now, &error),
            Chunk::Shutdown(shutdown) => self.on_shutdown(p.now, p.from, shutdown.cum_tsn_ack),
            Chunk::ShutdownAck => self.on_shutdown_ack(p.from),
            Chunk::ShutdownComplete { .. } => self.on_shutdown_complete(),
            // The endpoint handles these; bundled behind other chunks they mean nothing. Other
            // types were handled before.
            Chunk::Init(_) | Chunk::CookieEcho(_) => {}
            Chunk::Data(_) | Chunk::IData(_) | Chunk::Sack(_) | Chunk::NrSack(_) => {}
            Chunk::Timestamp(_) | Chunk::SackPath(_) | Chunk::Pad(_) => {}
            Chunk::ForwardTsn(chunk) => return self.on_forward_tsn(chunk, p),
            Chunk::Ecne(chunk) => return self.on_ecne(chunk, p.path),
            Chunk::Cwr(chunk) => return self.on_cwr(chunk),
            // It was not agreed on, and is of an unknown type then, which says to discard the rest
            // of the packet.
            Chunk::Auth(_) => return false,
            // In an unprotected association the chunk is of an unknown type.
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
        if self.awaits_reset(stream, tsn) {
            return self.after_data_chunk(Ok(Arrival::Dropped), flags, stream, p);
        }
        let Some(receiver) = self.rx.receiver.as_mut() else { return };
        let arrival = receiver.inbound.accept(data, &mut receiver.tracker);
        p.note_new(&arrival, length);
        p.note_mark(tsn);
        self.after_data_chunk(arrival, flags, stream, p);
    }

    #[inline(never)] // beside DATA it would make the way of packets longer
    fn on_i_data(&mut self, data: IData, p: &mut Progress) {
        let IData { tsn, flags, stream, .. } = data;
        let length = data.payload.len();
        if !self.takes_data(DataKind::IData, tsn, length == 0) {
            return;
        }
        if self.awaits_reset(stream, tsn) {
            return self.after_data_chunk(Ok(Arrival::Dropped), flags, stream, p);
        }
        let Some(receiver) = self.rx.receiver.as_mut() else { return };
        let arrival = receiver.inbound.accept_i_data(data, &mut receiver.tracker);
        p.note_new(&arrival, length);
        p.note_mark(tsn);
        self.after_data_chunk(arrival, flags, stream, p);
    }

    /// Skips what the peer has given up (RFC 3758 §3.6). Returns false if the rest of the packet is
    /// to be ignored.
    fn on_forward_tsn(&mut self, chunk: ForwardTsn, p: &mut Progress) -> bool {
        if !self.agreed.partial_reliability {
            return self.on_unknown(&chunk.into(), p);
        }
        if !self.state.may_receive_data() {
            return true;
        }
        if chunk.is_interleaved != self.interleaves() {
            let what = "a FORWARD TSN chunk of the other kind than user data has";
            let text = Bytes::from_static(what.as_bytes());
            self.abort_with(ErrorCause::ProtocolViolation(text), what);
            return false;
        }
        self.stats.forward_tsns_received += 1;
        let Some(r) = self.rx.receiver.as_mut() else { return true };
        let is_new = r.inbound.skip(&chunk, &mut r.tracker);
        // A repeated chunk means that the SACK was lost. A new one is answered at once, too: its
        // sender keeps what it gave up until then.
        p.has_data = true;
        p.facts.any_new |= is_new;
        p.facts.any_duplicate |= !is_new;
        p.facts.immediate_bit = true;
        true
    }

    /// True if a chunk of user data may be accepted. If it must not be there, ends the association.
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
        // DAC serves a sender whose several paths cause reordering. A sender on one path needs
        // SACKs at once when something is missing.
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
            if let ErrorCause::UnrecognizedChunkType(chunk) = &cause
                && chunk.first() == Some(&chunk_type::ASCONF)
            {
                self.on_asconf_unknown(now);
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

    /// Reports an error to the peer that does not end the association. Before COOKIE ACK only
    /// COOKIE ECHO may be sent (RFC 9260 §5.1, C).
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
