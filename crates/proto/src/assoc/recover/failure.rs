//! The silence timer. It runs on paths with unacknowledged data, for failure policies that need it
//! (mTCP paper, section 3.5.1).

use std::time::Duration;

use crate::assoc::{Association, PathTimer, Timer};
use crate::policy::fail::{Silenced, Silent};
use crate::time::Instant;
use crate::view::{PathId, PathState};

impl Association {
    /// How long a working path may be without an acknowledgement.
    fn silence_max(&self, id: PathId) -> Option<Duration> {
        let path = self.paths.get(id).filter(|p| p.liveness.state == PathState::Active)?;
        if self.agreed.sack_paths.awaits_choice() {
            return None;
        }
        self.policies.fail.silence_max(path.rto.rto())
    }

    /// Starts the timer when DATA is sent on a path, unless it runs.
    pub(crate) fn start_silence(&mut self, now: Instant, id: PathId) {
        let timer = Timer::Path(id, PathTimer::Silence);
        if self.timers.is_running(timer) {
            return;
        }
        let Some(limit) = self.silence_max(id) else {
            return;
        };
        if let Some(p) = self.paths.get_mut(id) {
            p.liveness.silence_max = limit;
        }
        self.timers.set(timer, now + limit);
    }

    /// Restarts the timer after an acknowledgement, if the path still has DATA in flight.
    pub(crate) fn renew_silence(&mut self, now: Instant, id: PathId) {
        self.timers.stop(Timer::Path(id, PathTimer::Silence));
        if self.out.chunks_in_flight(id) > 0 {
            self.start_silence(now, id);
        }
    }

    /// Acts on a path on which nothing was acknowledged for too long.
    pub(crate) fn on_silence(&mut self, now: Instant, id: PathId) {
        let Some(p) = self.paths.get(id).filter(|p| p.liveness.state == PathState::Active) else {
            return;
        };
        if !self.state.is_open() {
            return;
        }
        let waited = p.liveness.silence_max;
        // A peer with a closed window acknowledges nothing above what it has room for. If it is
        // silent as well, T3-rtx finds out.
        if self.peer_window.is_closed() && self.out.is_beyond_received(id) {
            self.renew_silence(now, id);
            return;
        }
        let silent = Silent { path: id, waited, sack_path: self.agreed.sack_paths.of_peer() };
        let made = self.decide(now, |policies, cx| policies.fail.on_silence(cx, &silent));
        for what in made {
            match what {
                Silenced::Fail(path) => self.fail_path(now, path),
                Silenced::AwaitSacks => self.await_sacks(),
                Silenced::TakeBack(path) => {
                    if let Some(p) = self.paths.get_mut(path) {
                        p.liveness.error_count = 0;
                    }
                    self.set_path_state(now, path, PathState::Active);
                }
                Silenced::StartOver(path) => self.start_over(path),
            }
        }
    }

    /// Takes a path for failed; its outstanding data moves to other paths.
    fn fail_path(&mut self, now: Instant, id: PathId) {
        let config = self.config_rc();
        self.move_outstanding(id);
        let last_order = self.out.last_order();
        let Some(p) = self.paths.get_mut(id) else { return };
        let limits = p.limits(&config);
        if p.flow.window.cwnd > limits.packet {
            p.flow.note_losses(self.out.loss_episode(id));
            p.flow.window = p.flow.cc.on_timeout(p.flow.window, &limits);
        }
        p.liveness.doubted_order = Some(last_order);
        self.set_path_state(now, id, PathState::PotentiallyFailed);
    }

    /// Waits for the peer's SACKs to arrive again. Until then nothing is acknowledged, and silence
    /// means nothing.
    fn await_sacks(&mut self) {
        self.agreed.sack_paths.peers_has_failed();
        for id in self.paths.ids() {
            self.timers.stop(Timer::Path(id, PathTimer::Silence));
        }
    }

    /// Sends the outstanding data of a path that works again, one packet at first, and tells the
    /// peer.
    fn start_over(&mut self, id: PathId) {
        self.move_outstanding(id);
        if let Some(p) = self.paths.get_mut(id) {
            p.flow.one_packet = true;
        }
        self.tell_sack_path_failed(id);
    }

    /// Marks all chunks outstanding on a path as lost, so that any path with room sends them again.
    pub(crate) fn move_outstanding(&mut self, id: PathId) {
        let (marked, _) = self.out.mark_path(id, None);
        self.out.forget_lost(id);
        if let Some(p) = self.paths.get_mut(id) {
            p.counters.chunks_lost += marked as u64;
        }
        self.timers.stop(Timer::Path(id, PathTimer::T3Rtx));
        self.timers.stop(Timer::Path(id, PathTimer::TailLossProbe));
    }
}
