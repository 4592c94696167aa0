//! The room for data: in the congestion windows of paths, and in the peer's receive buffer.

use crate::assoc::{Association, PathTimer, Timer};
use crate::path::Path;
use crate::policy::recovery::Rules;
use crate::time::Instant;
use crate::tx::Outstanding;
use crate::view::{PathId, PathState};

impl Association {
    /// Brings idle windows and pacers up to date before anything is chosen.
    pub(super) fn prepare_windows(&mut self, now: Instant) {
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
            } else if is_idle && p.flow.rate.is_none() {
                p.decay_if_idle(config, now);
            }
            if p.flow.rate.is_some() {
                p.pace_by_model(now);
            } else if config.pacing {
                let (w, srtt) = (&p.flow.window, p.rto.srtt());
                p.flow.pacer.update(now, w.cwnd, w.cwnd < w.ssthresh, srtt, p.size.max_packet);
            }
        }
    }

    /// True if the congestion window of a path has room for a chunk.
    pub(crate) fn has_room(&self, path: PathId) -> bool {
        let rules = &self.recovery.rules;
        self.paths.get(path).is_some_and(|p| has_room(p, &self.out, rules))
    }

    /// True if the peer has room for the next chunk, or its window must be probed (RFC 9260 §6.1,
    /// A).
    pub(super) fn new_data_allowed(&self) -> bool {
        let Some(len) = self.queue.next_len(self.fragmentation_point()) else { return false };
        let unverified = |p: &Path| {
            p.liveness.state == PathState::Unconfirmed
                && p.liveness.error_count <= p.liveness.max_retrans
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

    /// User bytes that the next chunk may have by the peer's receive buffer (RFC 9260 §6.2.1, D
    /// ii).
    #[inline]
    pub(crate) fn peer_rwnd(&self) -> usize {
        let rules = self.recovery.rules.room;
        let header = self.agreed.data_kind.header();
        let in_use = self.out.rwnd_in_use(rules, header);
        let next = if rules.of_headers { header } else { 0 };
        self.peer_window.a_rwnd().saturating_sub(in_use + next)
    }

    /// Notes the reason why nothing can be sent.
    pub(super) fn wait_for_window(&mut self, now: Instant) {
        self.wait_for_copy(now);
        let waits = !self.queue.is_empty() || self.out.has_marked();
        for p in self.paths.iter_mut().filter(|p| p.role.usable && p.flow.rate.is_some()) {
            p.note_unused_room(self.out.counted(p.id), waits);
        }
        let wants = waits && self.state.may_send_data();
        if !wants && self.peer_window.blocked_since().is_none() {
            return;
        }
        let mut window_open = false;
        for p in self.paths.iter_mut().filter(|p| wants && p.role.usable) {
            let room = p.flow.usable_cwnd() > self.out.counted(p.id);
            window_open |= room;
            if (self.config.pacing || p.flow.rate.is_some())
                && room
                && let Some(at) = p.flow.pacer.hold()
            {
                self.timers.set(Timer::Path(p.id, PathTimer::Pacing), at);
                window_open = false;
            }
        }
        let has_next = self.queue.next_len(1).is_some();
        let blocked = wants && window_open && has_next && !self.new_data_allowed();
        if let Some(waited) = self.peer_window.note_blocked(now, blocked) {
            self.stats.receive_buffer_blocked += waited;
        }
    }
}

/// True if the congestion window of a path has room for a chunk.
pub(super) fn has_room(p: &Path, out: &Outstanding, rules: &Rules) -> bool {
    let waiting = if rules.waiting_takes_cwnd { out.waiting_bytes(p.id) } else { 0 };
    p.flow.cwnd_space(out.counted(p.id) + waiting) > 0
}
