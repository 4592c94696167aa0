//! Appends DATA or I-DATA chunks to packets, and books their transmissions.

use manypath_wire::{DataFlags, PacketBuilder, Ssn, Tsn};

use crate::assoc::{Association, PathTimer, Timer};
use crate::path::InFlight;
use crate::policy::recovery::T3Watches;
use crate::sizes::{self, DataKind};
use crate::time::Instant;
use crate::tx::{Fragment, Sent};
use crate::view::PathId;

impl Association {
    /// Appends the next new chunk.
    pub(crate) fn push_new(
        &mut self,
        now: Instant,
        path: PathId,
        packet: &mut PacketBuilder<'_>,
    ) -> bool {
        if self.queue.ends_packet() {
            return false;
        }
        let limit = self.fragmentation_point();
        let Some(length) = self.queue.next_len(limit) else { return false };
        if sizes::data_chunk(self.agreed.data_kind, length) > packet.remaining() {
            return false;
        }
        let is_probe = length > self.peer_rwnd();
        if is_probe {
            self.peer_window.probe();
        }
        let in_plain = self.queue.is_next_in_plain();
        let limits = self.queue.next_limits();
        let Some(fragment) = self.next_fragment(limit) else { return false };
        let tsn = self.out.push(fragment, path, now);
        if self.agreed.partial_reliability
            && let Some(limits) = limits
        {
            self.out.note_limited(tsn, limits);
        }
        if in_plain {
            self.note_in_plain(tsn);
        }
        let asks = self.asks_for_sack(tsn, is_probe);
        if let Some(sent) = self.out.get(tsn) {
            push_data(packet, tsn, sent, sent.flags | asks);
        }
        let mut is_first = false;
        if let Some(p) = self.paths.get_mut(path) {
            p.counters.data_chunks_sent += 1;
            is_first = p.flow.last_new_data.replace(now).is_none();
        }
        if is_first {
            self.begin_use(now, path);
        }
        self.stats.first_data_sent.get_or_insert(now);
        // A TSN that is skipped on purpose must not be given up.
        if self.is_to_skip(path, limit)
            && self.queue.next_limits().is_none()
            && let Some(fragment) = self.next_fragment(limit)
        {
            let skipped = self.out.push(fragment, path, now);
            self.note_skipped(skipped);
        }
        true
    }

    /// Cuts the next fragment. The last one before a shutdown asks for a SACK at once, because no
    /// later data would draw it, and the shutdown waits for it (RFC 7053 §5.2, RFC 9260 §3.3.1).
    #[inline]
    fn next_fragment(&mut self, limit: usize) -> Option<Fragment> {
        let mut fragment = self.queue.pop(limit)?;
        if self.state.is_shutting_down() && self.queue.is_empty() {
            fragment.flags = fragment.flags | DataFlags::IMMEDIATE;
        }
        Some(fragment)
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
        if !push_data(packet, tsn, sent, sent.flags | self.asks_again_for_sack()) {
            return false;
        }
        let is_earliest = sent.path == path
            && self.out.earliest_order(path).is_none_or(|order| sent.order < order);
        // Only the first of several chunks lost at once counts as earliest; the forced packet
        // carries it.
        let by_tsn = self.recovery.rules.t3.watches == T3Watches::LowestTsn;
        let is_fast = sent.fast_retransmitted && self.recovery.past_cwnd.is_allowed();
        let restarts_t3 = is_earliest && is_fast && !by_tsn;
        let old = sent.path;
        let was_first = by_tsn && self.out.lowest_unacked(old) == Some(tsn);
        self.out.retransmit(tsn, path, now);
        self.note_repeated(tsn);
        if by_tsn {
            self.restart_t3_by_tsn(now, tsn, was_first.then_some(old), path);
        }
        let Some(p) = self.paths.get_mut(path) else { return true };
        self.recovery.past_cwnd.use_on(path);
        p.counters.retransmissions += u64::from(!self.false_acks.sends(tsn));
        p.counters.data_chunks_sent += 1;
        if restarts_t3 {
            // RFC 9260 §7.2.4, point 4: fast retransmit of the path's earliest chunk restarts
            // T3-rtx.
            let at = now + p.rto.rto();
            self.timers.set(Timer::Path(path, PathTimer::T3Rtx), at);
        }
        true
    }

    /// Restarts T3-rtx by the rules of RFC 2960 §6.1 after a chunk was sent again on `path`, where
    /// it may now have the lowest TSN. `left` is the path on which it had the lowest TSN before.
    fn restart_t3_by_tsn(&mut self, now: Instant, tsn: Tsn, left: Option<PathId>, path: PathId) {
        let is_first = self.out.lowest_unacked(path) == Some(tsn);
        let is_lower = is_first && self.recovery.rules.t3.restarts_for_lower;
        for id in left.into_iter().chain(is_lower.then_some(path)) {
            if self.out.chunks_in_flight(id) > 0 {
                self.renew_t3(now, id, true);
            }
        }
    }

    /// Updates the state of a path after a packet with DATA.
    pub(super) fn after_data(&mut self, now: Instant, path: PathId, len: usize, before: usize) {
        let are_joint = self.recovery.bursts.are_joint();
        for p in self.paths.iter_mut().filter(|p| p.id == path || are_joint) {
            p.flow.burst.spend();
        }
        self.note_rank_used(now, path);
        let Some(p) = self.paths.get_mut(path) else { return };
        p.flow.last_data_sent = Some(now);
        if p.flow.rate.is_some() {
            p.note_sent(
                now,
                self.out.last_order(),
                InFlight { before, after: self.out.counted(path) },
            )
        } else {
            p.flow.pacer.spend(len)
        }
        if self.recovery.rules.decays_in_silence {
            self.recovery.policy.on_data_sent(path, now + p.rto.rto());
        }
        if let Some(t3_rtx) = self.paths.get(path).map(|p| self.t3_rtx(p)) {
            self.timers.start(Timer::Path(path, PathTimer::T3Rtx), now + t3_rtx);
        }
        self.arm_tail_loss_probe(now, path);
        if self.policies.needs.silence {
            self.start_silence(now, path);
        }
        self.start_review(now);
    }
}

pub(crate) fn push_data(
    packet: &mut PacketBuilder<'_>,
    tsn: Tsn,
    s: &Sent,
    flags: DataFlags,
) -> bool {
    match s.kind {
        DataKind::Data => {
            let ssn = Ssn(s.mid.0 as u16);
            packet.push_data(tsn, s.stream, ssn, s.ppid_or_fsn, flags, &s.payload)
        }
        DataKind::IData => {
            packet.push_i_data(tsn, s.stream, s.mid, s.ppid_or_fsn, flags, &s.payload)
        }
    }
}
