//! The one place that builds packets: SACKs and DATA meet here once, after the control chunks of
//! [`control`](super::control).

use manypath_wire::{DATA_HEADER_LEN, PacketBuilder, Tsn};

use super::{AssocTimer, Association, PathTimer, Timer};
use crate::datagram::Transmit;
use crate::path::{Path, PathId, PathState};
use crate::policy::PolicyCx;
use crate::policy::recovery::T3Watches;
use crate::policy::rtx::RtxCandidate;
use crate::sizes;
use crate::time::Instant;
use crate::tx::Sent;

/// Bytes of one batch at most: what a UDP datagram can have, less what relays add to each packet.
const BATCH_BYTES: usize = 65_000;

/// A chunk that may be sent now, and where.
#[derive(Copy, Clone, Debug)]
enum Source {
    Retransmission(Tsn),
    /// Of a chunk in flight on another path.
    Copy(Tsn),
    New,
}

impl Association {
    /// Writes the next packets for one path to the end of `buf`: up to `max_segments` of the same
    /// size, the last of which may be shorter.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        max_segments: usize,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        while let Some(control) = self.control.pop_front() {
            if let Some(transmit) = self.control_packet(now, control, buf) {
                return Some(transmit);
            }
        }
        if !self.state.is_open() {
            return None;
        }
        // Before heartbeats: their answers bring data back to the path, which should have the right
        // size.
        if self.size_search.may_owe_probe
            && let Some(transmit) = self.size_probe_packet(now, buf)
        {
            return Some(transmit);
        }
        if self.heartbeats.may_be_due
            && let Some(transmit) = self.heartbeat_packet(now, buf)
        {
            return Some(transmit);
        }
        self.prepare_windows(now);
        let sack_due = self.rx.is_sack_due(now);
        let may_copy = self.policies.wants.roles && self.may_copy(now);
        let has_data = !self.queue.is_empty() || self.out.may_have_marked() || may_copy;
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
        let path = if sack_due { sack_path } else { choice.map(|(path, _)| path) };
        let Some(path) = path else {
            self.wait_for_window(now);
            return None;
        };
        // A SACK that is not due yet travels with DATA for its path (RFC 9260 §6.2).
        let with_sack = may_sack && sack_path == Some(path);
        let first = choice.filter(|&(chosen, _)| chosen == path).map(|(_, source)| source);
        self.batch(now, path, with_sack, first, max_segments, buf)
    }

    fn sack_path(&mut self, now: Instant) -> Option<PathId> {
        let last = self.rx.receiver.as_ref()?.last_data;
        let chosen = match self.policies.wants.sack_paths {
            true => self.decide(now, |policies, cx| policies.ack_path.choose(cx, last)),
            false => last,
        };
        self.elect(now, chosen);
        let chosen = chosen.map(|id| self.working_sack_path(id));
        // RFC 9260 §5.4: an address that is not verified gets none.
        let verified = |id: &PathId| {
            self.paths.get(*id).is_some_and(|p| {
                p.state != PathState::Unconfirmed || self.config.data_before_verification
            })
        };
        chosen.filter(verified).or(Some(self.control_path()))
    }

    /// Brings idle windows and pacers up to date before anything is chosen.
    fn prepare_windows(&mut self, now: Instant) {
        if self.queue.is_empty() && self.out.is_empty() {
            return;
        }
        let (config, recovery) = (&*self.config, &mut self.recovery);
        let out = &self.out;
        let is_idle = |p: &Path| out.chunks_in_flight(p.id) == 0;
        let all_idle = config.combined_window.then(|| self.paths.iter().all(is_idle));
        for p in self.paths.iter_mut() {
            let is_idle = all_idle.unwrap_or_else(|| is_idle(p));
            p.begin_opportunity(config, &recovery.bursts, now, self.out.flight_size(p.id));
            if recovery.rules.decays_in_silence {
                p.decay_in_silence(config, recovery, now, false);
            } else if is_idle {
                p.decay_if_idle(config, now);
            }
            if config.pacing {
                let (w, srtt) = (&p.window, p.rto.srtt());
                p.pacer.update(now, w.cwnd, w.cwnd < w.ssthresh, srtt, p.max_packet);
            }
        }
    }

    /// The chunk to send next and its path: retransmissions first, then new data (RFC 9260 §6.1,
    /// C).
    fn choose(&mut self, now: Instant) -> Option<(PathId, Source)> {
        if !self.state.may_send_data() {
            return None;
        }
        if let Some(retransmission) = self.choose_retransmission(now) {
            return Some(retransmission);
        }
        if let Some((path, tsn)) = self.choose_copy() {
            return Some((path, Source::Copy(tsn)));
        }
        if !self.new_data_allowed() {
            return None;
        }
        let path = self.schedule(now);
        if path.is_none() {
            self.end_joint_burst();
        }
        path.map(|path| (path, Source::New))
    }

    /// The path of new data.
    fn schedule(&mut self, now: Instant) -> Option<PathId> {
        let waiting_counts = self.recovery.rules.waiting_takes_cwnd && self.out.may_have_marked();
        let path = match waiting_counts || self.redundant_path().is_some() {
            false if !self.may_schedule() => return None,
            false => self.decide(now, |policies, cx| policies.sched.choose(cx))?,
            true => self.schedule_on_the_rest(now)?,
        };
        // A forced retransmission does not let new data past cwnd.
        self.has_room(path).then_some(path)
    }

    /// Notes that nothing but Max.Burst holds new data back.
    fn end_joint_burst(&mut self) {
        if !self.recovery.bursts.are_joint() {
            return;
        }
        let latest = self.paths.iter().max_by_key(|p| p.last_new_data);
        let holds = |p: &Path| p.burst.is_spent() && p.window.cwnd > self.out.flight_size(p.id);
        if latest.is_some_and(holds) {
            self.recovery.bursts.end();
        }
    }

    /// False if no path has room that the scheduler could choose: mostly so when all that can be
    /// sent was.
    fn may_schedule(&self) -> bool {
        let has_room = |p: &Path| p.usable && p.cwnd_space(self.out.counted(p.id)) > 0;
        self.recovery.past_cwnd.is_allowed() || self.paths.iter().any(has_room)
    }

    /// The path of new data where chunks that wait for retransmission fill the window, too, or
    /// where a path carries copies only.
    #[inline(never)]
    fn schedule_on_the_rest(&mut self, now: Instant) -> Option<PathId> {
        let counts = self.recovery.rules.waiting_takes_cwnd;
        let waiting: smallvec::SmallVec<[usize; 8]> = self
            .paths
            .ids()
            .map(|id| if counts { self.out.waiting_bytes(id) } else { 0 })
            .collect();
        let redundant = self.redundant_path();
        self.decide(now, |policies, cx| {
            let mut views = cx.paths.to_vec();
            for (view, waiting) in views.iter_mut().zip(&waiting) {
                view.cwnd_space = view.cwnd_space.saturating_sub(*waiting);
                view.usable &= Some(view.id) != redundant;
            }
            let PolicyCx { now, primary, .. } = *cx;
            policies.sched.choose(&mut PolicyCx { now, paths: &views, primary, rng: cx.rng })
        })
    }

    /// The lowest of the lost chunks that may be sent again now, and its path.
    #[inline]
    fn choose_retransmission(&mut self, now: Instant) -> Option<(PathId, Source)> {
        if !self.out.may_have_marked() {
            self.recovery.past_cwnd.end();
            return None;
        }
        self.choose_marked(now)
    }

    #[inline(never)] // mostly nothing is lost
    fn choose_marked(&mut self, now: Instant) -> Option<(PathId, Source)> {
        let mut heads: smallvec::SmallVec<[(Tsn, PathId); 8]> = smallvec::SmallVec::new();
        for id in self.paths.ids() {
            heads.extend(self.out.next_marked(id).map(|tsn| (tsn, id)));
        }
        // The exemption from cwnd is for retransmissions, and ends with them.
        if heads.is_empty() {
            self.recovery.past_cwnd.end();
        }
        let may_pass = self.recovery.past_cwnd.is_allowed();
        if !may_pass && self.recovery.policy.holds_retransmissions() {
            return None;
        }
        let base = self.out.cum_tsn_ack_point();
        heads.sort_unstable_by_key(|(tsn, _)| tsn.distance_from(base));
        for (tsn, last_path) in heads {
            let Some(sent) = self.out.get(tsn) else { continue };
            let (cause, transmissions) = (sent.lost_by, sent.transmissions);
            let lost = RtxCandidate { last_path, cause, transmissions };
            if let Some(path) = self.decide(now, |policies, cx| policies.rtx.choose(cx, &lost)) {
                let path = self.path_for_length(path, tsn);
                return Some((path, Source::Retransmission(tsn)));
            }
        }
        None
    }

    /// Instead of the path that was chosen for a chunk too long for its packets, one that takes it
    /// whole, if one may send now.
    fn path_for_length(&self, chosen: PathId, tsn: Tsn) -> PathId {
        let carries = |p: &Path, needed| p.max_packet >= needed;
        if !self.config.pmtu_discovery {
            return chosen;
        }
        let needed = self.needed(Some(Source::Retransmission(tsn)));
        if self.paths.get(chosen).is_some_and(|p| carries(p, needed)) {
            return chosen;
        }
        let mut others = self.paths.iter().filter(|p| p.usable && carries(p, needed));
        others.find(|p| self.has_room(p.id)).map_or(chosen, |p| p.id)
    }

    pub(super) fn has_room(&self, path: PathId) -> bool {
        let counts = self.recovery.rules.waiting_takes_cwnd;
        let waiting = if counts { self.out.waiting_bytes(path) } else { 0 };
        let counted = self.out.counted(path) + waiting;
        self.paths.get(path).is_some_and(|p| p.cwnd_space(counted) > 0)
    }

    /// The peer has room for the next chunk, or must be asked (RFC 9260 §6.1, A).
    pub(super) fn new_data_allowed(&self) -> bool {
        let Some(len) = self.queue.next_len(self.fragmentation_point()) else { return false };
        let unverified = |p: &Path| {
            p.state == PathState::Unconfirmed && p.error_count <= self.config.path_max_retrans
        };
        if self.recovery.rules.verifies_first && self.paths.iter().any(unverified) {
            return false;
        }
        // Gap ack blocks reach 65535 TSNs beyond the cumulative TSN ack (RFC 9260 §3.3.4).
        if self.out.len() >= usize::from(u16::MAX) {
            return false;
        }
        if self.recovery.holds_new_data(self.out.may_have_marked()) {
            return false;
        }
        len <= self.peer_rwnd() || self.out.is_empty()
    }

    /// User bytes of the next chunk that the peer's receive buffer has room for (RFC 9260 §6.2.1, D
    /// ii).
    pub(super) fn peer_rwnd(&self) -> usize {
        let rules = self.recovery.rules.room;
        let header = if rules.of_headers { DATA_HEADER_LEN } else { 0 };
        let in_use = self.out.rwnd_in_use(rules);
        self.peer_window.a_rwnd().saturating_sub(in_use + header)
    }

    /// Packets for one path: `first` is the chunk that was chosen for it.
    fn batch(
        &mut self,
        now: Instant,
        path: PathId,
        mut with_sack: bool,
        mut first: Option<Source>,
        max_segments: usize,
        buf: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let p = self.paths.get(path)?;
        let (local, remote) = (p.local, p.remote);
        let max_packet = p.max_packet.max(self.needed(first));
        // A chunk that was cut for larger packets cannot be cut again: it goes alone, in fragments
        // (RFC 9260 §7.3).
        let may_fragment = max_packet > p.max_packet;
        // The system cuts a batch out of one datagram, which may not be longer than any.
        let most = (BATCH_BYTES / max_packet).min(max_segments).max(1);
        let max_segments = if may_fragment { 1 } else { most };
        let mut segment_size = 0;
        for n in 0..max_segments {
            let limit = if n == 0 { max_packet } else { segment_size };
            let Some(len) = self.packet(now, path, with_sack, first, limit, buf) else { break };
            with_sack = false;
            if n == 0 {
                segment_size = len;
            }
            // Only the last of a batch may be shorter; and a small first one would make all small.
            if len < segment_size || len < max_packet / 4 * 3 {
                break;
            }
            // A choice among lost chunks may draw a random number, also for a packet that does not
            // come.
            if n + 1 >= max_segments && !self.out.may_have_marked() {
                break;
            }
            first = self.choose_for(now, path);
            if first.is_none() {
                break;
            }
        }
        let may_fragment = may_fragment && segment_size > self.paths.get(path)?.max_packet;
        (segment_size > 0)
            .then_some(Transmit { may_fragment, ..Transmit::new(local, remote, segment_size) })
    }

    /// The packet that a chunk needs: one that was cut for larger packets than its path takes, as
    /// before that path was added, must still be sent whole.
    fn needed(&self, source: Option<Source>) -> usize {
        match source {
            Some(Source::Retransmission(tsn) | Source::Copy(tsn)) => {
                let has_timestamp = self.agreed.timestamps.is_some();
                let packet = |sent: &Sent| sizes::packet_of(sent.size(), has_timestamp);
                self.out.get(tsn).map_or(0, packet)
            }
            _ => 0,
        }
    }

    /// The chunk to send next, if it may go on `path`.
    fn choose_for(&mut self, now: Instant, path: PathId) -> Option<Source> {
        self.choose(now).filter(|&(chosen, _)| chosen == path).map(|(_, source)| source)
    }

    /// The chunk that joins `last` in a packet with `room` bytes left.
    ///
    /// New data needs no decision again: the scheduler decides for packets, and the packet is
    /// filled while the window lasts.
    fn next_in_packet(
        &mut self,
        now: Instant,
        path: PathId,
        last: Source,
        room: usize,
    ) -> Option<Source> {
        if !matches!(last, Source::New) || self.out.may_have_marked() {
            return self.choose_for(now, path);
        }
        let next = self.queue.next_len(self.fragmentation_point())?;
        let joins =
            DATA_HEADER_LEN + next <= room && self.new_data_allowed() && self.has_room(path);
        joins.then_some(Source::New)
    }

    /// Appends one packet for `path` of at most `limit` bytes; `None` if there is nothing for it.
    fn packet(
        &mut self,
        now: Instant,
        path: PathId,
        with_sack: bool,
        first: Option<Source>,
        limit: usize,
        buf: &mut Vec<u8>,
    ) -> Option<usize> {
        let header = self.ends.header();
        let mut packet = PacketBuilder::new(buf, header, limit);
        if let Some(timestamps) =
            self.agreed.timestamps.as_mut().filter(|_| with_sack || first.is_some())
        {
            packet.push_timestamp(timestamps.chunk(now, with_sack));
        }
        let nothing = packet.len();
        if with_sack {
            if let Some(chunk) = self.sack_path_chunk(path) {
                packet.push_sack_path(chunk);
            }
            self.push_sack(&mut packet);
        }
        let mut chunks = 0;
        let mut sent: smallvec::SmallVec<[Tsn; 8]> = smallvec::SmallVec::new();
        let mut next = first;
        while let Some(source) = next {
            let pushed = match source {
                Source::Retransmission(tsn) => self.push_again(now, path, tsn, &mut packet),
                Source::Copy(tsn) => self.push_copy(now, path, tsn, &mut packet),
                Source::New => self.push_new(now, path, &mut packet),
            };
            if !pushed {
                break;
            }
            chunks += 1;
            if self.config.pmtu_discovery {
                match source {
                    Source::New => sent.push(self.out.highest_tsn()),
                    Source::Retransmission(tsn) => sent.push(tsn),
                    Source::Copy(_) => {}
                }
            }
            next = self.next_in_packet(now, path, source, packet.remaining());
        }
        if packet.len() == nothing {
            packet.discard();
            return None;
        }
        let len = packet.finish(self.config.checksum);
        if !sent.is_empty() {
            self.note_packet_size(path, &sent, len);
        }
        if chunks > 0 {
            self.recovery.past_cwnd.end();
            self.after_data(now, path, len);
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

    /// Appends a chunk that is sent again.
    #[inline(never)]
    pub(super) fn push_again(
        &mut self,
        now: Instant,
        path: PathId,
        tsn: Tsn,
        packet: &mut PacketBuilder<'_>,
    ) -> bool {
        let Some(sent) = self.out.get(tsn) else { return false };
        if !push_data(packet, tsn, sent) {
            return false;
        }
        let is_earliest = sent.path == path
            && self.out.earliest_order(path).is_none_or(|order| sent.order < order);
        // Of several chunks that are lost at once only the first is; the forced packet carries it.
        let by_tsn = self.recovery.rules.t3.watches == T3Watches::LowestTsn;
        let is_fast = sent.fast_retransmitted && self.recovery.past_cwnd.is_allowed();
        let restarts_t3 = is_earliest && is_fast && !by_tsn;
        let old = sent.path;
        let left_first = by_tsn && self.out.lowest_unacked(old) == Some(tsn);
        self.out.retransmit(tsn, path, now);
        if by_tsn {
            self.restart_t3_by_tsn(now, tsn, (old, left_first), path);
        }
        let Some(p) = self.paths.get_mut(path) else { return true };
        self.recovery.past_cwnd.use_on(path);
        p.counters.retransmissions += u64::from(!self.ack_test.sends(tsn));
        p.counters.data_chunks_sent += 1;
        if restarts_t3 {
            // RFC 9260 §7.2.4, point 4: fast retransmit of the path's earliest chunk restarts
            // T3-rtx.
            let at = now + p.rto.rto();
            self.timers.set(Timer::Path(path, PathTimer::T3Rtx), at);
        }
        true
    }

    /// A chunk was sent again on `path`: its old path may have lost the first of its chunks, and
    /// the new one may have got one (RFC 2960 §6.1).
    fn restart_t3_by_tsn(
        &mut self,
        now: Instant,
        tsn: Tsn,
        (old, left_first): (PathId, bool),
        path: PathId,
    ) {
        let is_first = self.out.lowest_unacked(path) == Some(tsn);
        for (id, restarts) in [(old, left_first), (path, is_first)] {
            if restarts && self.out.chunks_in_flight(id) > 0 {
                self.renew_t3(now, id, true);
            }
        }
    }

    /// Appends the next new chunk.
    pub(super) fn push_new(
        &mut self,
        now: Instant,
        path: PathId,
        packet: &mut PacketBuilder<'_>,
    ) -> bool {
        let limit = self.fragmentation_point();
        let Some(length) = self.queue.next_len(limit) else { return false };
        if sizes::data_chunk(length) > packet.remaining() {
            return false;
        }
        if length > self.peer_rwnd() {
            self.peer_window.probe();
        }
        let Some(fragment) = self.queue.pop(limit) else { return false };
        let tsn = self.out.push(fragment, path, now);
        if let Some(sent) = self.out.get(tsn) {
            push_data(packet, tsn, sent);
        }
        let mut is_first = false;
        if let Some(p) = self.paths.get_mut(path) {
            p.counters.data_chunks_sent += 1;
            is_first = p.last_new_data.replace(now).is_none();
        }
        if is_first {
            self.begin_use(now, path);
        }
        self.stats.first_data_sent.get_or_insert(now);
        if self.is_to_skip(path, limit)
            && let Some(fragment) = self.queue.pop(limit)
        {
            let skipped = self.out.push(fragment, path, now);
            self.note_skipped(skipped);
        }
        true
    }

    /// Books a packet with DATA.
    fn after_data(&mut self, now: Instant, path: PathId, len: usize) {
        let are_joint = self.recovery.bursts.are_joint();
        for p in self.paths.iter_mut().filter(|p| p.id == path || are_joint) {
            p.burst.spend();
        }
        let Some(p) = self.paths.get_mut(path) else { return };
        p.last_data_sent = Some(now);
        p.pacer.spend(len);
        let rto = p.rto.rto();
        if self.recovery.rules.decays_in_silence {
            self.recovery.policy.on_data_sent(path, now + rto);
        }
        self.timers.start(Timer::Path(path, PathTimer::T3Rtx), now + rto);
        self.arm_tail_loss_probe(now, path);
        if self.policies.wants.silence {
            self.start_silence(now, path);
        }
        self.start_review(now);
    }

    /// Nothing can be sent: notes what it waits for.
    fn wait_for_window(&mut self, now: Instant) {
        let waits = !self.queue.is_empty() || self.out.has_marked();
        let wants = waits && self.state.may_send_data();
        if !wants && self.peer_window.blocked_since().is_none() {
            return;
        }
        let mut window_open = false;
        for p in self.paths.iter_mut().filter(|p| wants && p.usable) {
            let room = p.usable_cwnd() > self.out.counted(p.id);
            window_open |= room;
            if self.config.pacing
                && room
                && let Some(at) = p.pacer.hold()
            {
                self.timers.set(Timer::Path(p.id, PathTimer::Pacing), at);
                window_open = false;
            }
        }
        let blocked = wants && window_open && !self.queue.is_empty() && !self.new_data_allowed();
        if let Some(waited) = self.peer_window.note_blocked(now, blocked) {
            self.stats.receive_buffer_blocked += waited;
        }
    }
}

pub(super) fn push_data(packet: &mut PacketBuilder<'_>, tsn: Tsn, s: &Sent) -> bool {
    packet.push_data(tsn, s.stream, s.ssn, s.ppid, s.flags, &s.payload)
}
