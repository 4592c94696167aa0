//! Timers that expire.

use std::time::Duration;

use crate::assoc::{AssocTimer, Association, PathTimer, Timer};
use crate::event::AssocClosed;
use crate::path::{InUse, Path};
use crate::policy::recovery::T3Watches;
use crate::time::Instant;
use crate::view::{PathId, PathState};

/// The kind of packet that was not answered in time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum TimeoutCause {
    /// DATA, or a chunk of a shutdown.
    Data,
    Heartbeat,
}

/// An expiry of T3-rtx.
struct Expiry {
    /// True if the timer also watches waiting chunks, or if all that is outstanding is lost.
    covers_all: bool,
    /// True if the peer answers that its window is closed.
    says_closed: bool,
    /// True if a lost heartbeat has already counted this failure.
    is_counted: bool,
    /// True if the path has answered a heartbeat since the data was sent.
    is_unheeded: bool,
    /// Number of chunks that were marked.
    marked: usize,
    /// Order of the last of them.
    latest: u64,
}

/// Retransmissions of unacknowledged data on paths that answer heartbeats, after which T3-rtx backs
/// off.
const REPEATS_BEFORE_BACK_OFF: u32 = 3;

impl Association {
    /// Acts on every timer that has expired.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.pop_expired(now) {
            match timer {
                Timer::Assoc(AssocTimer::T1) => self.on_t1(now),
                Timer::Assoc(AssocTimer::T2) => self.on_t2(now),
                Timer::Assoc(AssocTimer::T5) => self.on_t5(),
                // The SACK is due now; `output` sends it.
                Timer::Assoc(AssocTimer::Sack) => {}
                Timer::Assoc(AssocTimer::GiveUp) => self.on_no_usable_path(now),
                Timer::Assoc(AssocTimer::Review) => self.review_paths(now),
                Timer::Assoc(AssocTimer::Keys) => self.on_key_timer(now),
                Timer::Assoc(AssocTimer::Trial) => self.on_trial_timer(now),
                Timer::Assoc(AssocTimer::Direct) => self.on_direct_timer(now),
                Timer::Assoc(AssocTimer::Forward) => self.on_forward_timer(now),
                // `output` drops what has expired.
                Timer::Assoc(AssocTimer::Lifetime) => {}
                Timer::Assoc(AssocTimer::Reconfigure) => self.on_reconfigure_timer(now),
                Timer::Assoc(AssocTimer::T4) => self.on_t4(now),
                // `output` asks again which paths are too dear.
                Timer::Assoc(AssocTimer::Ranks) => {}
                // `output` looks for a chunk to copy.
                Timer::Assoc(AssocTimer::Copy) => {}
                Timer::Path(path, PathTimer::T3Rtx) => self.on_t3(now, path),
                Timer::Path(path, PathTimer::Heartbeat) => self.on_heartbeat_timer(now, path),
                Timer::Path(path, PathTimer::TailLossProbe) => self.on_tail_loss_probe(now, path),
                // The pacer has tokens again; `output` uses them.
                Timer::Path(_, PathTimer::Pacing) => {}
                Timer::Path(path, PathTimer::Silence) => self.on_silence(now, path),
                Timer::Path(path, PathTimer::Pmtu) => self.on_size_timer(now, path),
                Timer::Path(_, PathTimer::Late) => self.on_late(now),
            }
        }
        self.on_trial_timer(now);
    }

    /// T3-rtx expired: E1 to E4 of RFC 9260 §6.3.3, unless nothing has timed out.
    fn on_t3(&mut self, now: Instant, id: PathId) {
        let is_pipe_lost = self.out.is_pipe_lost(id);
        let covers_all = self.recovery.rules.t3.covers_waiting || is_pipe_lost;
        if self.out.chunks_in_flight(id) == 0 && !covers_all {
            // Lost chunks of this path are in flight on other paths, whose timers watch them.
            self.out.forget_lost(id);
            return;
        }
        if self.put_off_t3(now, id) {
            return;
        }
        self.note_expiry(now, id);
        let had_large = self.has_large_in_flight(id);
        let expiry = self.mark_expired(now, id, is_pipe_lost, covers_all);
        let has_expired = expiry.marked > 0 || covers_all;
        if expiry.says_closed && self.peer_window.is_probed() {
            self.back_off(id);
        } else if has_expired {
            self.cut_after_timeout(id, &expiry);
            self.count_expiry(now, id, &expiry);
        }
        if expiry.marked > 0 || is_pipe_lost {
            self.out.forget_lost(id);
            self.share_window(id);
            self.tell_sack_path_failed(id);
            self.flight_failed(id);
        }
        if has_expired && !expiry.says_closed {
            self.doubt_size(now, id, had_large);
        }
        if self.config.har && has_expired {
            self.heartbeat_after_rto(now, id);
        }
        self.recovery.past_cwnd.allow_if(has_expired);
        self.recovery.past_cwnd.renew();
        self.recovery.policy.after_timeout(has_expired);
        // E4: starts the timer of the chunks that are sent again.
        self.timers.stop(Timer::Path(id, PathTimer::TailLossProbe));
        if covers_all {
            // The chunks that wait are watched again from the next SACK on.
            self.timers.stop(Timer::Path(id, PathTimer::T3Rtx));
        } else {
            self.renew_t3(now, id, true);
        }
    }

    /// Lets T3-rtx run on if missing reports have marked the chunk that it was started for. The
    /// next chunk gets an RTO of its own; otherwise a burst of losses would look like a silent
    /// path. True if T3-rtx runs on.
    fn put_off_t3(&mut self, now: Instant, id: PathId) -> bool {
        let earliest = self.out.earliest_sent_once(id);
        let Some(p) = self.paths.get_mut(id) else { return true };
        p.liveness.was_carried = false;
        // Only while no timeout is counted: lost heartbeats back off the RTO, too, which would then
        // exceed the age of a chunk that an earlier expiry has spared.
        let watches_earliest = self.recovery.rules.t3.watches == T3Watches::EarliestSent;
        if p.liveness.error_count > 0 || !watches_earliest {
            return false;
        }
        match earliest.map(|at| at + p.rto.rto()) {
            Some(due) if due > now => {
                self.timers.set(Timer::Path(id, PathTimer::T3Rtx), due);
                true
            }
            _ => false,
        }
    }

    /// Counts the expiry, and renews the burst and the decay of the window.
    fn note_expiry(&mut self, now: Instant, id: PathId) {
        let Some(p) = self.paths.get_mut(id) else { return };
        self.recovery.bursts.renew(&mut p.flow.burst);
        if self.recovery.rules.decays_in_silence {
            p.decay_in_silence(&self.config, &mut self.recovery, now, true);
        }
        p.counters.t3_expired(now, p.liveness.last_active);
    }

    /// E3: marks the chunks outstanding on the path. Collects first how the timeout is to count.
    fn mark_expired(
        &mut self,
        now: Instant,
        id: PathId,
        is_pipe_lost: bool,
        covers_all: bool,
    ) -> Expiry {
        // RFC 9260 §6.1, A: a peer that reports a closed window is not unreachable. The rule is for
        // window probes, which the peer has no room for. Chunks missing below the highest TSN that
        // it has are lost on the way.
        let is_closed =
            self.peer_window.is_closed() && self.out.is_beyond_received(id) && !is_pipe_lost;
        let says_closed = is_closed && self.peer_window.take_answer();
        let since = self.out.earliest_sent_at(id);
        let p = self.paths.get(id);
        let heartbeat_lost = p.and_then(|p| p.liveness.timed_out.heartbeat);
        let is_counted = heartbeat_lost.is_some_and(|at| since.is_some_and(|sent| at > sent));
        let answered = p.and_then(|p| p.probing.answered);
        let is_unheeded = since.is_some_and(|sent| answered >= Some(sent));
        let spare_after = match p.and_then(|p| p.rto.srtt()) {
            Some(srtt) if self.config.rtx_age_heuristic => Some(now.saturating_sub(srtt)),
            _ => None,
        };
        let (marked, latest) = self.out.mark_path(id, spare_after);
        if covers_all {
            self.out.time_out_waiting(id);
        }
        Expiry { covers_all, says_closed, is_counted, is_unheeded, marked, latest }
    }

    fn back_off(&mut self, id: PathId) {
        if let Some(p) = self.paths.get_mut(id) {
            p.rto.back_off();
        }
    }

    /// E1: cuts the window (RFC 9260 §7.2.3). Chunks that an earlier expiry spared belong to its
    /// flight, so they cut no second time.
    fn cut_after_timeout(&mut self, id: PathId, expiry: &Expiry) {
        let last_order = self.out.last_order();
        let Some(p) = self.paths.get_mut(id) else { return };
        let is_new = p.flow.cut_order.is_none_or(|order| expiry.latest > order);
        if expiry.covers_all || is_new {
            let limits = p.limits(&self.config);
            p.flow.count_cut();
            p.flow.note_losses(self.out.loss_episode(id));
            if let Some(limits) = self.recovery.policy.timeout_limits(&p.flow.window, limits) {
                p.flow.window = p.flow.cc.on_timeout(p.flow.window, &limits);
            }
            p.flow.cut_order = Some(last_order);
            p.flow.one_packet = true;
        }
        self.recovery.policy.on_path_timeout(id);
        p.flow.avoids_ect |= p.counters.acked_bytes == 0;
        p.counters.chunks_lost += expiry.marked as u64;
    }

    /// E2: backs off the RTO and counts the timeout (RFC 9260 §8.2), unless a lost heartbeat has
    /// counted this failure already.
    fn count_expiry(&mut self, now: Instant, id: PathId, expiry: &Expiry) {
        if expiry.says_closed {
            return self.back_off(id);
        }
        if !expiry.is_counted {
            self.count_timeout(now, id, TimeoutCause::Data);
        }
        if expiry.is_unheeded {
            self.note_unheeded();
        }
    }

    /// Counts a timeout of data or of a heartbeat on a path (RFC 9260 §8.1, §8.2) and backs off its
    /// RTO.
    pub(crate) fn count_timeout(&mut self, now: Instant, id: PathId, cause: TimeoutCause) {
        let Some(p) = self.paths.get_mut(id) else { return };
        p.rto.back_off();
        p.liveness.error_count = p.liveness.error_count.saturating_add(1);
        p.liveness.doubted_order = Some(self.out.last_order());
        match cause {
            TimeoutCause::Data => p.liveness.timed_out.data = Some(now),
            TimeoutCause::Heartbeat => p.liveness.timed_out.heartbeat = Some(now),
        }
        let flight_size = self.out.flight_size(id);
        let view = p.view(InUse { flight_size, ..InUse::default() });
        // RFC 9260 §5.4: an unverified path keeps its state, because its address may be a
        // stranger's.
        let verifies_first = self.recovery.rules.verifies_first;
        let may_fail = self.config.data_before_verification && !verifies_first;
        if p.liveness.state != PathState::Unconfirmed || may_fail {
            let state = self.policies.fail.after_timeout(&view);
            self.set_path_state(now, id, state);
            self.switch_primary(id);
        }
        self.probe_doubtful(now);
        self.follow_rebinding(now, id);
        self.refresh_usable(now);
        // RFC 9260 §8.1: heartbeats lost on paths that are not needed prove nothing about the peer.
        let others_work =
            self.paths.iter().any(|p| p.liveness.state == PathState::Active && p.id != id);
        if cause == TimeoutCause::Heartbeat && others_work {
            return;
        }
        self.error_count = self.error_count.saturating_add(1);
        if self.config.association_max_retrans.is_some_and(|max| self.error_count > max) {
            self.give_up();
        }
    }

    /// Counts a retransmission of data that the peer should have acknowledged, because the path has
    /// since answered a heartbeat. Any new acknowledgement clears the count.
    pub(super) fn note_unheeded(&mut self) {
        self.unheeded = self.unheeded.saturating_add(1);
    }

    /// True if the peer answers heartbeats but acknowledges nothing, so that quicker
    /// retransmissions are useless.
    pub(super) fn is_unheeded(&self) -> bool {
        self.unheeded >= REPEATS_BEFORE_BACK_OFF
    }

    /// How long T3-rtx runs on a path: its RTO (RFC 9260 §6.3.2). If the peer acknowledges nothing,
    /// it doubles with each retransmission, up to RTO.Max: answers to heartbeats would otherwise
    /// end the back-off.
    pub(crate) fn t3_rtx(&self, p: &Path) -> Duration {
        let rto = p.rto.rto();
        if !self.is_unheeded() {
            return rto;
        }
        let doublings = (self.unheeded - REPEATS_BEFORE_BACK_OFF).min(16);
        rto.max((rto * (2 << doublings)).min(self.config.rto_max))
    }

    /// Notes an authentic packet of the peer, whatever it carries: the peer exists. Its missing
    /// answers may still be in flight, or our packets may be lost; the peer will notice if it hears
    /// nothing from us.
    ///
    /// RFC 9260 §8.1 counts timeouts until data or a heartbeat is acknowledged. Here that count
    /// decides about paths, not about the peer.
    #[inline]
    pub(crate) fn peer_heard(&mut self, now: Instant) {
        self.error_count = 0;
        self.last_heard = Some(now);
        self.heard_while_shutting_down();
    }

    /// Gives up a peer that was silent for `association_timeout`, while no path was usable.
    fn on_no_usable_path(&mut self, now: Instant) {
        let limit = self.last_heard.zip(self.config.association_timeout);
        let until = limit.map(|(heard_at, after)| heard_at + after);
        // Over relays that are there to meet only, the peer is heard in vain.
        match until.filter(|until| *until > now && !self.bars_relays()) {
            Some(until) => self.timers.set(Timer::Assoc(AssocTimer::GiveUp), until),
            None => self.give_up(),
        }
    }

    fn give_up(&mut self) {
        // The peer may still hear us: tell it (RFC 9260 §8.1).
        self.push_abort(None);
        self.close(AssocClosed::PathsFailed);
    }

    /// Starts the tail-loss probe of a path that has data in flight.
    #[inline]
    pub(crate) fn arm_tail_loss_probe(&mut self, now: Instant, id: PathId) {
        if self.config.tail_loss_probe {
            self.set_tail_loss_probe(now, id);
        }
    }

    fn set_tail_loss_probe(&mut self, now: Instant, id: PathId) {
        let Some(p) = self.paths.get(id) else { return };
        let may_probe = p.liveness.state == PathState::Active && !p.flow.tail_probed;
        // The first packets may be lost before any other RTT was measured.
        let measured = p.rto.srtt().or(self.buffers.handshake_rtt());
        if !may_probe {
            return;
        }
        let Some(srtt) = measured else { return };
        // RFC 8985 §7.2, for TCP: two RTTs, plus the peer's SACK delay if few chunks are in flight.
        let delayed = if self.out.chunks_in_flight(id) <= 2 {
            self.config.sack_delay
        } else {
            Duration::ZERO
        };
        let after = (2 * srtt + delayed).max(Duration::from_millis(10));
        if after < p.rto.rto() {
            self.timers.set(Timer::Path(id, PathTimer::TailLossProbe), now + after);
        }
    }

    /// Sends a tail-loss probe: repeats the last chunks in flight, as many as one packet holds, to
    /// draw a SACK that shows what is missing. It is no sign of congestion, and T3-rtx keeps
    /// running.
    fn on_tail_loss_probe(&mut self, now: Instant, id: PathId) {
        let Some(room) = self.paths.get(id).map(|p| p.size.pmdcs) else { return };
        let mut last = self.out.last_in_flight(id, room);
        // A probe is no loss, so it must not make a message be given up.
        last.retain(|tsn| !self.out.is_over(*tsn, now));
        if last.is_empty() {
            return;
        }
        for tsn in last {
            self.out.mark_for_probe(tsn);
        }
        self.recovery.past_cwnd.allow_if(true);
        if let Some(p) = self.paths.get_mut(id) {
            p.counters.tail_loss_probes += 1;
            p.flow.tail_probed = true;
        }
        self.renew_t3(now, id, false);
    }
}
