//! What a SACK does: to windows, timers, path states and the send buffer.

use manypath_wire::{ErrorCause, Sack, Tsn};

use super::{Association, PathTimer, Timer};
use crate::config::{Config, Cuc, RtxPastCwnd, SfrCompares};
use crate::event::Event;
use crate::path::{PathId, PathState, Recovery};
use crate::policy::cc::AckFacts;
use crate::time::Instant;
use crate::tx::{AckRules, PathDigest, SackError};

impl Association {
    /// A SACK came in on a path, with the timestamp it echoes.
    pub(super) fn on_sack(
        &mut self,
        now: Instant,
        sack: &Sack,
        via: Option<PathId>,
        echo: Option<u32>,
    ) {
        self.acknowledge(now, sack, true, (via, echo));
    }

    /// Applies the acknowledgement of a SACK, or that of SHUTDOWN, which reports no gaps.
    pub(super) fn acknowledge(
        &mut self,
        now: Instant,
        sack: &Sack,
        reports_gaps: bool,
        (via, echo): (Option<PathId>, Option<u32>),
    ) {
        if !self.state.is_open() {
            return;
        }
        self.stats.sacks_received += 1;
        if self.is_caught(sack) {
            return;
        }
        if self.config.cwnd_decays_in_flight {
            let config = &*self.config;
            self.paths.iter_mut().for_each(|p| p.decay_if_silent(config, now));
        }
        let rules = AckRules {
            sfr: self.config.sfr,
            mfr: self.config.mfr,
            cuc: self.config.cuc,
            dac: self.sack_paths.dac,
            missing_reports: u8::try_from(self.config.missing_reports).unwrap_or(u8::MAX),
            reports_gaps,
            in_fast_recovery: self.paths.iter().any(|p| p.recovery.is_some()),
            echo: self.echo(echo),
            via,
            t3_watches: self.config.t3_watches,
            marked_fills_cwnd: self.config.marked_fills_cwnd,
            sfr_by_tsn: self.config.sfr_compares == SfrCompares::Tsn,
            fast_rtx_after_timeout: self.config.fast_rtx_after_timeout,
            reports_by_highest_so_far: self.config.reports_by_highest_so_far,
            waiting_counts_reports: self.config.waiting_counts_reports && !self.config.sfr,
            overtaken_revokes: self.config.overtaken_sack_revokes,
            watches_delays: self.policies.wants.delays,
        };
        match self.out.acknowledge(sack, &rules, now, &mut self.digest) {
            Ok(true) => self.on_digest(now, sack),
            // Old, or nonsense that harms nothing: ignored (RFC 9260 §6.2.1, D i).
            Ok(false) | Err(SackError::BadGapAckBlocks) => {}
            Err(SackError::AcksUnsent) => {
                let text = bytes::Bytes::from_static(b"SACK for a TSN that was never sent");
                self.abort_with(
                    ErrorCause::ProtocolViolation(text),
                    "a SACK for a TSN that was never sent",
                );
            }
        }
    }

    /// Acts on what a SACK says, which is in `digest`.
    fn on_digest(&mut self, now: Instant, sack: &Sack) {
        let digest = &mut self.digest;
        let mut paths = std::mem::take(&mut digest.paths);
        let released = digest.released;
        if !digest.stale {
            let most = if digest.cut_or_stale { self.a_rwnd } else { usize::MAX };
            self.a_rwnd = most.min(sack.a_rwnd as usize);
        }
        self.probe_answered = true;
        if digest.newly_acked > 0 {
            self.error_count = 0;
            self.probing_window = false;
        }
        self.stats.bytes_acked += released as u64;
        self.after_timeout = false;
        self.may_apply_max_burst |= digest.rtx_cum_acked;
        self.note_losers(&paths);
        if self.config.combined_window {
            let before = paths.iter().map(|facts| facts.flight_before).sum();
            paths.iter_mut().for_each(|facts| facts.flight_before = before);
        }
        for (index, facts) in paths.iter().enumerate() {
            self.on_path_digest(now, PathId(index as u8), facts);
        }
        let is_fast_retransmit = paths.iter().any(|facts| facts.lost > 0);
        self.go_on_with_ack_test(released, &paths);
        self.digest.paths = paths;
        if self.policies.wants.roles {
            self.note_flights();
        }
        if is_fast_retransmit && self.config.fast_rtx_cuts_waiting {
            match self.config.sfr {
                true => self.cut_where_chunks_wait(),
                false => self.cut_for_lowest_waiting(),
            }
        }
        self.rtx_waits = is_fast_retransmit && self.config.rtx_waits_for_sack;
        self.forced_rtx |= self.rtx_waits;
        self.stats.fast_retransmit_events += u64::from(is_fast_retransmit);
        self.reopen_window(now);
        if released > 0 {
            self.tell_if_writable();
            if self.unacked_bytes() == 0 {
                self.events.push_back(Event::SendBufferEmpty);
            }
        }
        self.continue_shutdown(now);
    }

    fn on_path_digest(&mut self, now: Instant, id: PathId, facts: &PathDigest) {
        let config = &*self.config;
        let grows = facts.cwnd_update && facts.newly_acked_bytes > 0;
        // RFC 9260 §7.2.4: fast recovery is of the association. With SFR each path has its own.
        let lost = facts.lost + facts.lost_extra;
        let others_recover = !config.sfr && (grows || lost > 0) && self.recovers_beside(id);
        let cuts_again = config.new_losses_cut_again && !config.sfr && self.loses_beyond(facts);
        let cum = self.out.cum_tsn_ack_point();
        let Some(p) = self.paths.get_mut(id) else { return };
        p.renew_burst(config, self.may_apply_max_burst);
        p.counters.acked_bytes += facts.newly_acked_user_bytes as u64;
        if let Some(rtt) = facts.rtt {
            p.rto.sample(rtt);
        }
        // With SFR a loss of what was sent before the last cut is part of what it was for, even if this SACK
        // ends the recovery: the last chunks of a window are found missing by those sent after the cut.
        let is_known = |r: Recovery| facts.latest_lost <= Some(r.exit_order);
        let was_cut_for =
            config.sfr && config.cut_once_per_flight && p.recovery.is_some_and(is_known);
        if let Some(r) = p.recovery {
            let earliest = self.out.earliest_order(id);
            // One window for all paths recovers with all of them.
            let own = config.sfr && !config.combined_window;
            let by_path = own && earliest.is_none_or(|order| order > r.exit_order);
            if by_path || cum.ge(r.exit_tsn) {
                p.recovery = None;
            }
        }
        if grows {
            let ack = AckFacts {
                acked_bytes: facts.newly_acked_bytes,
                counted_bytes: counted_bytes(config, facts, p.window.cwnd),
                flight_before: facts.flight_before,
                flight_after: self.out.counted(id),
                in_fast_recovery: p.recovery.is_some() || others_recover,
            };
            let limits = p.limits(config);
            p.window = p.cc.on_ack(p.window, &limits, &ack);
        }
        let mut enters_recovery = false;
        if lost > 0 {
            p.counters.fast_retransmits += facts.lost as u64;
            p.counters.chunks_lost += lost as u64;
            // RFC 2960 §7.2.4 knows no fast recovery.
            self.forced_rtx |= config.rtx_past_cwnd == RtxPastCwnd::Loser;
            if config.fast_rtx_cuts_waiting {
                self.forced_rtx = true; // cut afterwards, for all that waits
            } else if cuts_again || p.recovery.is_none() && !was_cut_for && !others_recover {
                // RFC 9260 §7.2.4 (2): cut once per fast recovery.
                let limits = p.limits(config);
                p.window = p.cc.on_fast_retransmit(p.window, &limits);
                let (exit_tsn, exit_order) = (self.out.highest_tsn(), self.out.last_order());
                p.recovery = Some(Recovery { exit_tsn, exit_order });
                self.forced_rtx = true;
                enters_recovery = true;
            }
        }
        if facts.newly_acked_bytes > 0 {
            p.one_packet = false;
            p.tail_probed = false;
        }
        self.share_window(id);
        if facts.newly_acked_bytes > 0 {
            self.data_acked_on(now, id, facts);
            if self.policies.wants.silence {
                self.renew_silence(now, id);
            }
        }
        self.renew_t3(now, id, facts.watched_acked);
        if facts.largest_lost | facts.largest_acked > 0 {
            self.note_sacked_sizes(now, id, facts.largest_acked, facts.largest_lost);
        }
        if enters_recovery {
            self.look_for_shared_bottleneck(now, id);
        }
        if self.policies.wants.delays {
            self.policies.path_set.on_fates(id, facts.chunks_sent_here, lost);
        }
        if let Some(sent_at) = facts.latest_sent_at {
            self.note_delay(now, id, sent_at);
        }
    }

    /// True if another path than this one is in fast recovery, and stays so.
    fn recovers_beside(&self, id: PathId) -> bool {
        let cum = self.out.cum_tsn_ack_point();
        let recovers = |r: Recovery| !cum.ge(r.exit_tsn);
        self.paths.iter().any(|p| p.id != id && p.recovery.is_some_and(recovers))
    }

    /// True if a chunk is lost that was sent after every fast recovery under way had begun.
    fn loses_beyond(&self, facts: &PathDigest) -> bool {
        let is_beyond =
            |tsn: Tsn| self.paths.iter().all(|p| p.recovery.is_none_or(|r| tsn.gt(r.exit_tsn)));
        facts.highest_lost.is_some_and(is_beyond)
    }

    /// Cuts the window of the path of the lowest TSN that waits for retransmission, of those sent after the fast
    /// recovery under way had begun, if it goes on for them.
    fn cut_for_lowest_waiting(&mut self) {
        let exit = Recovery { exit_tsn: self.out.highest_tsn(), exit_order: self.out.last_order() };
        let base = self.out.cum_tsn_ack_point();
        let exits = self.paths.iter().filter_map(|p| p.recovery).map(|r| r.exit_tsn);
        let under_way = exits.max_by_key(|tsn| tsn.distance_from(base));
        if under_way.is_some() && !self.config.new_losses_cut_again {
            return;
        }
        let Some(id) = self.out.lowest_waiting_beyond(under_way) else { return };
        let Some(p) = self.paths.get_mut(id) else { return };
        let limits = p.limits(&self.config);
        p.window = p.cc.on_fast_retransmit(p.window, &limits);
        p.recovery = Some(exit);
    }

    /// Cuts the window of every path with a chunk that waits for retransmission, if it was not cut for that TSN
    /// yet. Where no new data was sent since the cut before, nothing is remembered of this one, and the next
    /// fast retransmit cuts again: so does ns-2.
    fn cut_where_chunks_wait(&mut self) {
        let exit = Recovery { exit_tsn: self.out.highest_tsn(), exit_order: self.out.last_order() };
        for p in self.paths.iter_mut() {
            let (waiting, other) = self.out.highest_sent_on(p.id);
            let Some(waiting) = waiting else { continue };
            if p.cut_up_to.is_some_and(|up_to| !waiting.gt(up_to)) {
                continue;
            }
            let limits = p.limits(&self.config);
            p.window = p.cc.on_fast_retransmit(p.window, &limits);
            p.recovery = Some(exit);
            let is_lower = |highest: Tsn| other.is_none_or(|tsn| tsn.lt(highest));
            p.cut_up_to = other.filter(|_| !p.highest_at_cut.is_some_and(is_lower));
            p.highest_at_cut = p.cut_up_to.or(p.highest_at_cut);
        }
    }

    /// After a fast retransmit: which paths lost data, and so may send one packet beyond cwnd.
    fn note_losers(&mut self, digests: &[PathDigest]) {
        if digests.iter().all(|facts| facts.lost == 0) {
            return;
        }
        for p in self.paths.iter_mut() {
            p.is_loser = digests.get(p.id.index()).is_some_and(|facts| facts.lost > 0);
            p.rtx_past_cwnd = p.is_loser;
        }
    }

    /// The ack of data proves that a path works, if the data was sent after the timeouts that put it in
    /// doubt. The ack of a retransmission does not say which transmission arrived, so it leaves a path
    /// that has failed as it is (CMT-PF paper, §III-A).
    fn data_acked_on(&mut self, now: Instant, id: PathId, facts: &PathDigest) {
        let Some(p) = self.paths.get_mut(id) else { return };
        let has_failed = matches!(p.state, PathState::PotentiallyFailed | PathState::Inactive);
        // Nor one that timed out again and is asked by heartbeats: their answers say it.
        let is_asked = self.config.probe_with_data && p.error_count > 1;
        let proof = if has_failed || is_asked { facts.latest } else { facts.latest_sent };
        if proof.is_some() && proof > p.doubted_order {
            p.error_count = 0;
            p.last_active = now;
            if has_failed {
                self.set_path_state(now, id, PathState::Active);
            }
        }
    }

    /// RFC 9260 §6.3.2, R2 and R3. With `pipe_accounting` a path's timer runs, too, while what it lost fills its
    /// pipe: only a timeout empties that if nothing is in flight any more (mTCP paper, section 3.1.2).
    pub(super) fn renew_t3(&mut self, now: Instant, id: PathId, watched_acked: bool) {
        let t3 = Timer::Path(id, PathTimer::T3Rtx);
        let Some(p) = self.paths.get(id) else { return };
        let at = now + p.rto.rto();
        let waits = self.config.t3_covers_waiting && self.out.waiting_bytes(id) > 0;
        if !self.out.needs_t3(id) && !waits {
            self.timers.stop(t3);
            self.timers.stop(Timer::Path(id, PathTimer::TailLossProbe));
        } else if watched_acked {
            self.timers.set(t3, at);
            self.arm_tail_loss_probe(now, id);
        } else {
            self.timers.start(t3, at);
        }
    }

    /// A window that was closed opened again: the chunk that probed it was dropped for want of room, and
    /// is sent again now instead of after its timeout.
    fn reopen_window(&mut self, now: Instant) {
        if !self.probing_window || self.a_rwnd < self.config.mtu.min(self.fragmentation_point()) {
            return;
        }
        self.probing_window = false;
        for id in self.paths.ids() {
            self.out.mark_path(id, None);
            self.renew_t3(now, id, false);
        }
    }
}

/// What congestion avoidance counts of the bytes that a SACK acknowledges on a path.
fn counted_bytes(config: &Config, facts: &PathDigest, cwnd: usize) -> usize {
    if config.cuc == Cuc::Off || !config.growth_counts_used_window {
        return facts.newly_acked_bytes;
    }
    let cum_acked = if facts.used_before >= cwnd { facts.cum_acked_bytes } else { 0 };
    cum_acked + facts.edge_acked_bytes
}
