//! Effects of a SACK on windows, timers, path states and the send buffer.

use std::time::Duration;

use manypath_wire::{ErrorCause, Sack};
use smallvec::SmallVec;

use crate::assoc::{Association, PathTimer, Timer};
use crate::config::Cuc;
use crate::event::Event;
use crate::path::{Path, SackReport};
use crate::policy::cc::{AckFacts, PathWindow};
use crate::policy::recovery::{PathFacts, PathVerdict, ReportScope, Rules};
use crate::time::Instant;
use crate::tx::{AckRules, PathDigest, SackArrival, SackError};
use crate::view::{PathId, PathState};

impl Association {
    /// A SACK came in on a path, with the timestamp it echoes.
    pub(crate) fn on_sack(
        &mut self,
        now: Instant,
        sack: &Sack,
        via: Option<PathId>,
        echo: Option<u32>,
    ) {
        self.acknowledge(now, sack, true, via, echo);
    }

    /// Applies the acknowledgement of a SACK, or that of SHUTDOWN, which reports no gaps.
    pub(crate) fn acknowledge(
        &mut self,
        now: Instant,
        sack: &Sack,
        reports_gaps: bool,
        via: Option<PathId>,
        echo: Option<u32>,
    ) {
        if !self.state.is_open() {
            return;
        }
        self.stats.sacks_received += 1;
        if self.is_caught(sack) {
            return;
        }
        if self.recovery.rules.decays_in_silence {
            let (config, recovery) = (&*self.config, &mut self.recovery);
            self.paths.iter_mut().for_each(|p| p.decay_in_silence(config, recovery, now, false));
        }
        let is_full = self.is_report_full(sack);
        let via = via.map(|path| SackArrival { path, rtt_min: self.least_rtt(path) });
        let rules = AckRules {
            is_full,
            by: &self.recovery.rules,
            dac: self.agreed.sack_paths.dac,
            reports_gaps,
            in_fast_recovery: self.recovery.policy.recovers_anywhere(),
            echo: self.echo(echo),
            via,
            waits_for_late: self.paths.iter().all(|p| p.liveness.state != PathState::Active),
        };
        match self.out.acknowledge(sack, &rules, now, &mut self.digest) {
            Ok(true) => self.on_digest(now, Some((sack, is_full)), via),
            // The SACK is old, or harmless nonsense: ignore it (RFC 9260 §6.2.1, D i).
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

    /// Marks the chunks lost that have become late since the last SACK.
    pub(super) fn on_late(&mut self, now: Instant) {
        let rules = AckRules {
            by: &self.recovery.rules,
            dac: false,
            reports_gaps: true,
            is_full: false,
            in_fast_recovery: self.recovery.policy.recovers_anywhere(),
            echo: None,
            via: None,
            waits_for_late: false,
        };
        self.digest.reset(&self.out);
        self.out.lose_late_on_all(now, &rules, &mut self.digest);
        self.on_digest(now, None, None);
    }

    /// Acts on `digest`: the facts of a SACK, or losses found without one. The flag is true if the
    /// SACK is full; `via` is the path on which it came.
    fn on_digest(&mut self, now: Instant, sack: Option<(&Sack, bool)>, via: Option<SackArrival>) {
        let is_full = sack.is_some_and(|(_, is_full)| is_full);
        let digest = &mut self.digest;
        let mut paths = std::mem::take(&mut digest.paths);
        let (released, dropped) = (digest.released, digest.dropped);
        if digest.cum_advanced {
            self.redundancy.note_progress(now);
        }
        if let Some((sack, _)) = sack {
            self.peer_window.on_sack(sack, digest);
        }
        if self.recovery.rules.sacks.cum_ack_clears_errors
            && let Some(id) = digest.cum_from
            && let Some(p) = self.paths.get_mut(id)
        {
            p.liveness.error_count = 0;
        }
        if digest.newly_acked > 0 {
            self.error_count = 0;
            self.unheeded = 0;
        }
        self.stats.bytes_acked += released as u64;
        self.recovery.bursts.on_sack(digest.rtx_cum_acked);
        if paths.iter().any(|facts| facts.lost > 0) {
            let has_lost = |(_, facts): &(usize, &PathDigest)| facts.lost > 0;
            let losers = paths.iter().enumerate().filter(has_lost);
            self.recovery.past_cwnd.set_losers(losers.map(|(i, _)| PathId(i as u8)));
        }
        if self.config.combined_window {
            let before = paths.iter().map(|facts| facts.flight_before).sum();
            paths.iter_mut().for_each(|facts| facts.flight_before = before);
        }
        for (index, facts) in paths.iter().enumerate() {
            self.on_path_digest(now, PathId(index as u8), SackReport { facts, is_full, via });
        }
        let is_fast_retransmit = paths.iter().any(|facts| facts.lost > 0);
        self.go_on_with_ack_test(released, &paths);
        self.digest.paths = paths;
        if self.policies.needs.roles {
            self.note_flights();
        }
        if is_fast_retransmit {
            self.cut_for_waiting();
        }
        let passes_cwnd = self.recovery.policy.after_sack(is_fast_retransmit);
        self.recovery.past_cwnd.allow_if(passes_cwnd);
        self.stats.fast_retransmit_events += u64::from(is_fast_retransmit);
        self.reopen_window(now);
        self.grow_send_buffer();
        if self.out.has_limited() {
            self.skip_abandoned(now);
        }
        if released + dropped > 0 {
            self.tell_if_writable();
            if self.unacked_bytes() == 0 {
                self.events.push(Event::SendBufferEmpty);
            }
        }
        self.continue_shutdown(now);
    }

    /// True if the SACK has hardly room for more gap ack blocks. Blocks that do not fit are left
    /// out, the highest first. These would acknowledge the newest data (RFC 9260 §6.2.1).
    fn is_report_full(&self, sack: &Sack) -> bool {
        let room = self.paths.iter().map(|p| p.size.max_packet).min().unwrap_or_default();
        let used = sack.gap_ack_blocks().len() * size_of::<u32>();
        used > room / 4 * 3
    }

    /// The shortest RTT of a path, if answers that come clearly sooner are not trusted. Loss
    /// detection by time does not trust them (RFC 8985 §6.2, step 2).
    fn least_rtt(&self, path: PathId) -> Option<Duration> {
        match self.recovery.rules.sacks.scope {
            ReportScope::Time => self.paths.get(path)?.rto.rtt_min(),
            _ => None,
        }
    }

    /// Acts on a SACK's report on one path, in the order of RFC 9260 §6.3 and §7.2: losses are
    /// judged, the RTT is measured, the window grows or is cut, and timers follow.
    fn on_path_digest(&mut self, now: Instant, id: PathId, report: SackReport<'_>) {
        let facts = report.facts;
        let grows = facts.cwnd_update && facts.newly_acked_bytes > 0;
        let windows = self.windows_for(id, grows);
        let Some(verdict) = self.judge_losses(id, facts, grows) else { return };
        self.measure_rtt(now, id, report);
        if grows {
            self.grow_window(now, id, facts, verdict, &windows);
        }
        self.follow_delivery(now, id, report);
        self.count_losses(id, facts);
        self.cut_window(id, verdict);
        self.share_window(id);
        if facts.newly_acked_bytes > 0 {
            self.data_acked_on(now, id, facts);
            if self.policies.needs.silence {
                self.renew_silence(now, id);
            }
        }
        self.renew_t3(now, id, facts.watched_acked);
        self.renew_late_timer(id, facts);
        if facts.largest_lost | facts.largest_acked > 0 {
            self.note_sacked_sizes(now, id, facts.largest_acked, facts.largest_lost);
        }
        if verdict.cuts {
            self.look_for_shared_bottleneck(now, id);
        }
        self.tell_delays(now, id, facts);
    }

    /// Tells recovery of losses, and of those that turned out spurious. The verdict says whether
    /// they cut the window.
    fn judge_losses(&mut self, id: PathId, facts: &PathDigest, grows: bool) -> Option<PathVerdict> {
        let p = self.paths.get_mut(id)?;
        if facts.spurious.is_some_and(|episode| p.flow.undo_losses(episode)) {
            self.recovery.policy.on_spurious_losses(id);
        }
        let lost = facts.lost_transmissions();
        if lost > 0 {
            p.flow.note_losses(self.out.loss_episode(id));
        }
        let of_path = PathFacts {
            path: id,
            grows,
            lost,
            latest_lost: facts.latest_lost,
            highest_lost: facts.highest_lost,
            timed_out: p.flow.cut_order,
        };
        let verdict = self.recovery.policy.on_path_sack(&of_path, &self.out);
        self.recovery.bursts.renew(&mut p.flow.burst);
        p.flow.count_acked(facts.newly_acked_bytes);
        p.counters.acked_bytes += facts.newly_acked_user_bytes as u64;
        Some(verdict)
    }

    /// Takes the RTT that the SACK measured (RFC 9260 §6.3.1, C2 to C5).
    fn measure_rtt(&mut self, now: Instant, id: PathId, report: SackReport<'_>) {
        let Some(p) = self.paths.get_mut(id) else { return };
        let latest = report.facts.latest_rtt(now);
        if let Some(rtt) = latest {
            p.rto.latest = Some((rtt, report.via.map(|via| via.path)));
        }
        // Where many chunks are lost, the timed ones are among them, so take the first RTT from any
        // chunk.
        let is_first = self.recovery.rules.sacks.scope == ReportScope::Time && p.rto.samples() == 0;
        if let Some(rtt) = report.facts.rtt.or(if is_first { latest } else { None }) {
            p.rto.sample(rtt);
        }
    }

    /// Lets the window grow (RFC 9260 §7.2.1 and §7.2.2, or as the congestion control has it).
    fn grow_window(
        &mut self,
        now: Instant,
        id: PathId,
        facts: &PathDigest,
        verdict: PathVerdict,
        windows: &[PathWindow],
    ) {
        let Some(p) = self.paths.get_mut(id) else { return };
        let ack = AckFacts {
            path: id,
            acked_bytes: facts.newly_acked_bytes,
            counted_bytes: counted_bytes(&self.recovery.rules, facts, p.flow.window.cwnd),
            flight_before: facts.flight_before,
            flight_after: self.out.counted(id),
            in_fast_recovery: verdict.recovers,
            now,
            rtt: facts.latest_rtt(now),
            srtt: p.rto.srtt(),
            latest_acked: facts.latest_sent,
            latest_sent: self.out.last_order(),
            paths: windows,
        };
        let limits = p.limits(&self.config);
        p.flow.window = p.flow.cc.on_ack(p.flow.window, &limits, &ack);
    }

    /// Keeps a congestion control with a model of the path informed.
    fn follow_delivery(&mut self, now: Instant, id: PathId, report: SackReport<'_>) {
        let Some(p) = self.paths.get_mut(id) else { return };
        if p.flow.rate.is_some() {
            let earliest = self.out.earliest_order(id);
            p.follow_delivery(&self.config, now, report, self.out.counted(id), earliest);
        }
    }

    fn count_losses(&mut self, id: PathId, facts: &PathDigest) {
        let Some(p) = self.paths.get_mut(id) else { return };
        p.counters.fast_retransmits += facts.lost as u64;
        p.counters.chunks_lost += facts.lost_transmissions() as u64;
    }

    /// Cuts the window for losses (RFC 9260 §7.2.3), if recovery says so.
    fn cut_window(&mut self, id: PathId, verdict: PathVerdict) {
        self.recovery.past_cwnd.allow_if(verdict.passes_cwnd);
        let Some(p) = self.paths.get_mut(id) else { return };
        if verdict.cuts {
            p.flow.count_cut();
            let limits = p.limits(&self.config);
            p.flow.window = p.flow.cc.on_fast_retransmit(p.flow.window, &limits);
        }
    }

    /// Loss detection by time looks again when the next chunk is late (RFC 8985 §6.3).
    fn renew_late_timer(&mut self, id: PathId, facts: &PathDigest) {
        if self.recovery.rules.sacks.scope != ReportScope::Time {
            return;
        }
        let late = Timer::Path(id, PathTimer::Late);
        match facts.late_at {
            Some(at) => self.timers.set(late, at),
            None => self.timers.stop(late),
        }
    }

    /// Tells the path set how many of the sent chunks arrived, and their delay.
    fn tell_delays(&mut self, now: Instant, id: PathId, facts: &PathDigest) {
        if self.policies.needs.delays {
            let lost = facts.lost_transmissions();
            self.policies.path_set.on_fates(id, facts.chunks_sent_here, lost);
        }
        if let Some(sent_at) = facts.latest_sent_at {
            self.note_delay(now, id, sent_at);
        }
    }

    /// The windows of all paths that carry data; empty if this path's congestion control needs
    /// none.
    fn windows_for(&self, id: PathId, grows: bool) -> SmallVec<[PathWindow; 4]> {
        if !grows || !self.paths.get(id).is_some_and(|p| p.flow.needed.paths) {
            return SmallVec::new();
        }
        let carries = |p: &&Path| p.id == id || p.role.usable && p.flow.last_data_sent.is_some();
        let window = |p: &Path| PathWindow {
            path: p.id,
            cwnd: p.flow.window.cwnd,
            srtt: p.rto.srtt(),
            between_losses: p.flow.between_losses(),
        };
        self.paths.iter().filter(carries).map(window).collect()
    }

    /// After a fast retransmit: cuts windows for chunks that wait for retransmission.
    fn cut_for_waiting(&mut self) {
        let ids: SmallVec<[PathId; 8]> = self.paths.ids().collect();
        for id in self.recovery.policy.cuts_for_waiting(&ids, &self.out) {
            if let Some(p) = self.paths.get_mut(id) {
                let limits = p.limits(&self.config);
                p.flow.window = p.flow.cc.on_fast_retransmit(p.flow.window, &limits);
            }
        }
    }

    /// Takes acknowledged data as proof that a path works, if it was sent after the timeouts that
    /// put the path in doubt. The ack of a retransmission does not say which transmission arrived,
    /// so it does not revive a failed path (CMT-PF paper, §III-A).
    fn data_acked_on(&mut self, now: Instant, id: PathId, facts: &PathDigest) {
        let Some(p) = self.paths.get_mut(id) else { return };
        p.flow.one_packet = false;
        p.flow.tail_probed = false;
        let has_failed =
            matches!(p.liveness.state, PathState::PotentiallyFailed | PathState::Inactive);
        // A path that timed out repeatedly and is probed needs more proof, too.
        let is_asked = self.policies.in_doubt.probed_with_data && p.liveness.error_count > 1;
        let proof = if has_failed || is_asked { facts.latest } else { facts.latest_sent };
        if proof.is_some() && proof > p.liveness.doubted_order {
            p.liveness.error_count = 0;
            p.liveness.was_carried = false;
            p.liveness.last_active = now;
            if has_failed {
                self.set_path_state(now, id, PathState::Active);
            }
        }
    }

    /// Restarts, starts or stops T3-rtx (RFC 9260 §6.3.2, R2 and R3). With `pipe_accounting` the
    /// timer also runs while lost chunks fill the path's pipe: with nothing in flight, only a
    /// timeout empties it (mTCP paper, section 3.1.2).
    pub(crate) fn renew_t3(&mut self, now: Instant, id: PathId, watched_acked: bool) {
        let t3 = Timer::Path(id, PathTimer::T3Rtx);
        let Some(p) = self.paths.get(id) else { return };
        let at = now + self.t3_rtx(p);
        let waits = self.recovery.rules.t3.covers_waiting && self.out.waiting_bytes(id) > 0;
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

    /// Sends the chunk again that probed a closed window, once the window opens: it was dropped for
    /// want of room, and need not wait for its timeout.
    fn reopen_window(&mut self, now: Instant) {
        if !self.peer_window.is_probed()
            || self.peer_window.a_rwnd() < self.config.mtu.min(self.fragmentation_point())
        {
            return;
        }
        self.peer_window.end_probe();
        for id in self.paths.ids() {
            self.out.mark_path(id, None);
            self.renew_t3(now, id, false);
        }
    }
}

/// The bytes acknowledged on a path that congestion avoidance counts.
fn counted_bytes(rules: &Rules, facts: &PathDigest, cwnd: usize) -> usize {
    if rules.sacks.cuc == Cuc::Off || !rules.growth_needs_used_window {
        return facts.newly_acked_bytes;
    }
    let cum_acked = if facts.used_before >= cwnd { facts.cum_acked_bytes } else { 0 };
    cum_acked + facts.edge_acked_bytes
}
