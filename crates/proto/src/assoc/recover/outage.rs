//! Recovery after an outage, and paths that work in one direction only.

use std::time::Duration;

use bytes::Bytes;

use crate::assoc::send::control::Control;
use crate::assoc::{Association, PathTimer, Timer};
use crate::datagram::AddressPair;
use crate::path::Path;
use crate::time::Instant;
use crate::view::{PathId, PathState};

/// A peer that repeats a heartbeat within this time has not received our answer. If `hb_probe_max`
/// is set, twice that value holds instead.
const REPEATED_WITHIN: Duration = Duration::from_secs(1);
/// Shortest time between two heartbeats that are answered on other paths. It limits the packets
/// that a peer can draw with each of its own.
const ELSEWHERE_EVERY: Duration = Duration::from_millis(100);

impl Association {
    /// True if no path is sure to work: each has failed, or timed out since it last proved to work.
    pub(crate) fn is_in_outage(&self) -> bool {
        self.paths.iter().filter(|p| is_known(p)).all(is_doubtful)
    }

    /// True if a path is to be probed quickly although it carries data: it is in doubt, and either
    /// data is in flight there or all other paths are in doubt too.
    pub(crate) fn is_probed_with_data(&self, id: PathId) -> bool {
        let verified = |p: &Path| is_known(p) && is_doubtful(p);
        self.policies.in_doubt.probed_with_data
            && self.paths.get(id).is_some_and(verified)
            && (self.out.chunks_in_flight(id) > 0 || self.is_in_outage())
    }

    /// True if a lost probe must not count: T3-rtx watches the path and counts the same failure, or
    /// another failure was counted less than an RTO ago. Quicker probes must not fail a path
    /// sooner.
    pub(crate) fn counts_elsewhere(&self, now: Instant, id: PathId) -> bool {
        if !self.is_probed_with_data(id) {
            return false;
        }
        let t3 = self.timers.is_running(Timer::Path(id, PathTimer::T3Rtx));
        let Some(p) = self.paths.get(id) else { return true };
        let last = p.liveness.timed_out.data.max(p.liveness.timed_out.heartbeat);
        (t3 && self.out.chunks_in_flight(id) > 0) || last.is_some_and(|at| now - at < p.rto.rto())
    }

    /// After a timeout, probes doubtful paths at once, and from then on every `hb_probe_max`.
    pub(super) fn probe_doubtful(&mut self, now: Instant) {
        if !self.policies.in_doubt.probed_with_data || !self.state.is_open() {
            return;
        }
        for id in self.paths.ids() {
            let is_asked = self.paths.get(id).is_none_or(|p| p.probing.is_asking());
            if !is_asked && self.is_probed_with_data(id) {
                self.probe_now(now, id);
            }
        }
    }

    /// The paths whose data has timed out since they last proved to work: this one, or in an outage
    /// any.
    pub(crate) fn stuck_paths(&self, id: PathId) -> smallvec::SmallVec<[PathId; 8]> {
        if !self.policies.in_doubt.probed_with_data {
            return smallvec::SmallVec::new();
        }
        let all = self.is_in_outage();
        let is_stuck = |p: &&Path| {
            (all || p.id == id)
                && is_known(p)
                && p.liveness.timed_out.data.is_some_and(|at| at > p.liveness.last_active)
        };
        self.paths.iter().filter(is_stuck).map(|p| p.id).collect()
    }

    /// A path that had failed answers the heartbeat sent at `asked_at`. Unacknowledged data sent
    /// there before was lost in the outage. It is sent again now, because T3-rtx has backed off.
    /// Data stuck on paths that have not answered is sent again too, and these paths stay unused
    /// until they answer. Nothing is sent again if the peer answers heartbeats but acknowledges no
    /// data.
    pub(crate) fn end_outage(
        &mut self,
        now: Instant,
        stuck: &[PathId],
        answers: PathId,
        asked_at: Instant,
    ) {
        if self.is_unheeded() {
            return;
        }
        let before = asked_at.saturating_sub(Duration::from_nanos(1));
        for &id in stuck {
            let is_active =
                self.paths.get(id).is_some_and(|p| p.liveness.state == PathState::Active);
            if id != answers && is_active {
                self.set_path_state(now, id, PathState::PotentiallyFailed);
            }
            let (marked, _) = self.out.mark_path(id, (id == answers).then_some(before));
            self.out.forget_lost(id);
            if id == answers && marked > 0 {
                self.note_unheeded();
            }
            if let Some(p) = self.paths.get_mut(id) {
                p.counters.chunks_lost += marked as u64;
            }
            self.renew_t3(now, id, true);
        }
        if !stuck.is_empty() {
            self.recovery.policy.on_path_back();
            self.recovery.past_cwnd.allow_if(self.out.may_have_marked());
        }
    }

    /// Answers a heartbeat of the peer on other paths too. The answer on its own path may be lost:
    /// the peer repeats the heartbeat, or this end doubts the path.
    pub(crate) fn answer_elsewhere(&mut self, now: Instant, asked_on: PathId, info: &Bytes) {
        if !self.policies.in_doubt.answered_elsewhere {
            return;
        }
        let within = self.config.hb_probe_max.map_or(REPEATED_WITHIN, |most| 2 * most);
        let Some(p) = self.paths.get_mut(asked_on) else { return };
        let last = p.probing.last_asked.replace(now);
        if p.liveness.state == PathState::Unconfirmed {
            return;
        }
        let is_repeated = last.is_some_and(|at| now - at < within);
        let in_doubt = is_doubtful(p);
        let is_asking = p.probing.is_asking();
        if is_repeated && !in_doubt && !is_asking && now - p.liveness.last_active >= within / 2 {
            // If the answers do not arrive, SACKs would not either.
            self.probe_now(now, asked_on);
        }
        let is_early =
            self.heartbeats.answered_elsewhere.is_some_and(|at| now - at < ELSEWHERE_EVERY);
        if (!is_repeated && !in_doubt) || is_early {
            return;
        }
        self.heartbeats.answered_elsewhere = Some(now);
        let others = |p: &&Path| p.id != asked_on && is_known(p);
        let to: smallvec::SmallVec<[AddressPair; 8]> =
            self.paths.iter().filter(others).map(|p| p.pair()).collect();
        for to in to {
            self.reply(Control::HeartbeatAck { info: info.clone(), to });
        }
    }

    /// The path for a SACK that was to take `chosen`: another path if `chosen` does not work and
    /// the other one does.
    pub(crate) fn working_sack_path(&self, chosen: PathId) -> PathId {
        let works = |p: &&Path| is_known(p) && !is_doubtful(p);
        if !self.policies.in_doubt.answered_elsewhere
            || self.paths.get(chosen).is_none_or(|p| works(&p))
        {
            return chosen;
        }
        let others =
            self.paths.iter().filter(|p| p.liveness.state == PathState::Active).filter(works);
        others.min_by_key(|p| p.rto.srtt()).map_or(chosen, |p| p.id)
    }

    /// The address pair for an answer to a chunk that came from `to`: another path's, if that path
    /// does not bring answers back.
    pub(crate) fn working_way_to(&self, to: AddressPair) -> AddressPair {
        if !self.policies.in_doubt.answered_elsewhere {
            return to;
        }
        let path = self.paths.find(&to).map(|id| self.working_sack_path(id));
        path.and_then(|id| self.paths.get(id)).map_or(to, Path::pair)
    }
}

/// True if the path is verified and its local address exists.
pub(crate) fn is_known(p: &Path) -> bool {
    p.liveness.state != PathState::Unconfirmed && !p.liveness.is_away()
}

/// True if the path has failed, or has timed out since it last proved to work.
fn is_doubtful(p: &Path) -> bool {
    p.liveness.state != PathState::Active || p.liveness.error_count > 0
}
