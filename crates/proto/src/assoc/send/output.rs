//! The one place that builds data packets: SACKs and the chunks of [`choice`](super::choice) meet
//! here, after the control chunks of [`control`](super::control).

use manypath_wire::{PacketBuilder, Tsn};

use super::choice::Choice;
use super::outgoing::OutgoingPacket;
use crate::assoc::{AssocTimer, Association, Timer};
use crate::datagram::Transmit;
use crate::time::Instant;
use crate::view::{PathId, PathState};

/// Most bytes of a batch: the length of a UDP datagram less the bytes that relays add to packets.
const BATCH_BYTES: usize = 65_000;

impl Association {
    /// Writes the next packets for one path to the end of `buf`: up to `max_segments` of the same
    /// size, the last of which may be shorter.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        max_segments: usize,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.rekey_if_due(now);
        self.give_up_if_due(now);
        self.reconfigure_if_due(now);
        self.change_addresses_if_due(now);
        while let Some(control) = self.control.pop_front() {
            if let Some(transmit) = self.control_packet(now, control, buf) {
                return Some(transmit);
            }
        }
        if !self.state.is_open() {
            return None;
        }
        // Key messages leave first, since the peer can open nothing without keys. Size probes leave
        // before heartbeats, because an answered heartbeat brings data back to the path, which then
        // should have its right size.
        let probes = !self.queue.is_next_in_plain();
        if probes
            && self.size_search.may_owe_probe
            && let Some(transmit) = self.size_probe_packet(now, buf)
        {
            return Some(transmit);
        }
        if probes
            && self.heartbeats.may_be_due
            && let Some(transmit) = self.heartbeat_packet(now, buf)
        {
            return Some(transmit);
        }
        self.prepare_windows(now);
        let sack_due = self.rx.is_sack_due(now);
        let has_data = self.may_have_data(now);
        if !has_data && self.state.may_send_data() {
            self.recovery.past_cwnd.end(); // with the retransmissions
        }
        if !has_data && !sack_due {
            self.wait_for_window(now);
            return None;
        }
        let choice = if has_data { self.choose(now) } else { None };
        let may_sack = sack_due || (choice.is_some() && self.rx.is_sack_pending());
        let sack_path = if may_sack { self.sack_path(now) } else { None };
        let path = if sack_due { sack_path } else { choice.map(|choice| choice.path) };
        let Some(path) = path else {
            self.wait_for_window(now);
            return None;
        };
        // A SACK that is not due yet travels with DATA for its path (RFC 9260 §6.2).
        let with_sack = may_sack && sack_path == Some(path);
        let first = choice.filter(|choice| choice.path == path);
        self.batch(now, path, with_sack, first, max_segments, buf)
    }

    fn sack_path(&mut self, now: Instant) -> Option<PathId> {
        let last = self.rx.receiver.as_ref()?.last_data;
        let chosen = if self.policies.needs.sack_paths {
            self.decide(now, |policies, cx| policies.ack_path.choose(cx, last))
        } else {
            last
        };
        self.elect(now, chosen);
        let chosen = chosen.map(|id| self.working_sack_path(id));
        let chosen = chosen.map(|id| self.cheaper_sack_path(now, id));
        // RFC 9260 §5.4: no SACK goes to an unverified address.
        let verified = |id: &PathId| {
            self.paths.get(*id).is_some_and(|p| {
                p.liveness.state != PathState::Unconfirmed || self.config.data_before_verification
            })
        };
        chosen.filter(verified).or(Some(self.control_path()))
    }

    /// Writes packets for one path. `first` is the chunk chosen for the first packet.
    fn batch(
        &mut self,
        now: Instant,
        path: PathId,
        mut with_sack: bool,
        mut first: Option<Choice>,
        max_segments: usize,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let p = self.paths.get(path)?;
        let (local, remote, overhead) = (p.local, p.remote, p.size.overhead);
        let max_packet = p.size.max_packet.max(first.map_or(0, |choice| self.needed(choice)));
        // A chunk cut for larger packets cannot be cut again. It travels alone, and IP fragments
        // its packet (RFC 9260 §7.3).
        let may_fragment = max_packet > p.size.max_packet;
        let may_be_ect = self.agreed.ecn.is_some() && !p.flow.avoids_ect;
        // The system cuts a batch from one datagram, so a batch cannot be longer than a datagram.
        let most = (BATCH_BYTES / (max_packet + overhead)).min(max_segments).max(1);
        let is_single = may_fragment || self.may_send_in_plain();
        let max_segments = if is_single { 1 } else { most };
        let (mut segment_size, mut is_ect) = (0, false);
        let before = self.out.transmissions();
        for n in 0..max_segments {
            let limit = if n == 0 { max_packet } else { segment_size - overhead };
            let Some(len) = self.packet(now, path, with_sack, first, limit, buf) else { break };
            with_sack = false;
            if n == 0 {
                segment_size = len;
                is_ect = may_be_ect && self.out.transmissions() > before;
            }
            // Only the last packet of a batch may be shorter, and a small first packet would make
            // all small.
            if len < segment_size || len.saturating_sub(overhead) < max_packet / 4 * 3 {
                break;
            }
            // Choosing among lost chunks may draw a random number, so choose even if no packet
            // follows.
            if n + 1 >= max_segments && !self.out.may_have_marked() {
                break;
            }
            first = self.choose_for(now, path);
            if first.is_none() {
                break;
            }
        }
        let most = self.paths.get(path)?.size.max_packet + overhead;
        let may_fragment = may_fragment && segment_size > most;
        (segment_size > 0).then_some(Transmit {
            may_fragment,
            is_ect,
            ..Transmit::new(local, remote, segment_size)
        })
    }

    /// Appends one packet of at most `limit` bytes for `path`; `None` if there is nothing to send.
    fn packet(
        &mut self,
        now: Instant,
        path: PathId,
        with_sack: bool,
        first: Option<Choice>,
        limit: usize,
        buf: &mut Vec<u8>,
    ) -> Option<usize> {
        let in_plain = first.is_some_and(|choice| self.goes_in_plain(choice));
        let is_sealed = self.seals() && !in_plain;
        let mut packet = OutgoingPacket::new(buf, self.ends.header(), limit, is_sealed);
        if (with_sack || first.is_some())
            && let Some(timestamps) = self.agreed.timestamps.as_mut()
        {
            packet.push_timestamp(timestamps.chunk(now, with_sack));
        }
        let nothing = packet.len();
        if first.is_some()
            && let Some(ecn) = self.agreed.ecn.as_mut()
        {
            ecn.push_answer(&mut packet);
        }
        if with_sack {
            if let Some(chunk) = self.sack_path_chunk(path) {
                packet.push_sack_path(chunk);
            }
            if let Some(ecn) = self.agreed.ecn.as_ref() {
                ecn.push_echoes(&mut packet);
            }
            self.push_sack(&mut packet);
        }
        let in_flight = self.out.counted(path);
        let mut chunks = 0;
        let mut sent: smallvec::SmallVec<[Tsn; 8]> = smallvec::SmallVec::new();
        let mut next = first;
        while let Some(choice) = next {
            if self.goes_in_plain(choice) != in_plain {
                break;
            }
            if !self.push_chosen(now, choice, &mut packet) {
                break;
            }
            chunks += 1;
            if self.config.pmtu_discovery {
                sent.extend(self.recorded_tsn(choice));
            }
            next = self.choose_after(now, choice, packet.remaining());
        }
        if packet.len() == nothing {
            packet.discard();
            return None;
        }
        let before = packet.len();
        let len = self.finish(packet)?;
        if !sent.is_empty() {
            self.note_packet_size(path, &sent, before);
        }
        if chunks > 0 {
            self.queue.packet_ended();
            self.recovery.past_cwnd.end();
            self.after_data(now, path, len, in_flight);
        }
        let p = self.paths.get_mut(path)?;
        p.counters.packets_sent += 1;
        p.counters.bytes_sent += len as u64;
        Some(len)
    }

    fn push_sack(&mut self, packet: &mut PacketBuilder<'_>) {
        let window = self.rx.window(self.config.mtu);
        let Some(r) = self.rx.receiver.as_mut() else { return };
        if r.push_sack(packet, window, self.agreed.nr_sack) {
            if r.delayed.deadline().is_none() {
                self.timers.stop(Timer::Assoc(AssocTimer::Sack));
            }
            self.stats.sacks_sent += 1;
        }
    }
}
