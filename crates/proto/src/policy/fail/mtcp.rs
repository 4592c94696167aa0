//! Failure by silence (mTCP paper, section 3.5).

use std::time::Duration;

use super::{FailurePolicy, InDoubt, Pmr, Silenced, Silent, last_resort};
use crate::params::Params;
use crate::policy::{Needs, PolicyCx};
use crate::time::Instant;
use crate::view::{PathId, PathState, PathView};

/// A path has failed if nothing sent on it is acknowledged for `silence_rtos` RTO (the paper's
/// chi). It is then potentially failed: heartbeats show when it works again, and more than
/// `path_max_retrans` timeouts make it inactive. A single T3-rtx expiry changes nothing, because a
/// burst of losses is no failure.
///
/// If the path of all SACKs fails, all paths seem to fail. So paths that failed since then are
/// taken back, and DATA goes to all active paths. The peer is told on these paths, and would also
/// notice that DATA no longer comes from its primary. It elects another (section 3.5.2). If the
/// peer's SACKs return on every path, or if it does not say which path they take, silence means the
/// failure of that path only.
#[derive(Debug)]
pub struct Silence {
    base: Pmr,
    rtos: u32,
    recovery_cwnd: u32,
    /// When each path last failed by silence.
    silent_at: Vec<Option<Instant>>,
}

impl Silence {
    /// With the thresholds of a configuration.
    pub fn new(config: &Params) -> Silence {
        Silence {
            base: Pmr::new(config),
            rtos: config.silence_rtos,
            recovery_cwnd: config.pf_recovery_cwnd,
            silent_at: Vec::new(),
        }
    }

    fn silent_at(&mut self, path: PathId) -> &mut Option<Instant> {
        if self.silent_at.len() <= path.index() {
            self.silent_at.resize(path.index() + 1, None);
        }
        &mut self.silent_at[path.index()]
    }
}

impl FailurePolicy for Silence {
    fn needs(&self) -> Needs {
        Needs { silence: true, sack_path_chunks: true, ..Needs::default() }
    }

    fn in_doubt(&self) -> InDoubt {
        self.base.in_doubt()
    }

    fn after_timeout(&mut self, path: &PathView) -> PathState {
        self.base.after_timeout(path)
    }

    fn recovery_cwnd(&self, left: PathState) -> Option<u32> {
        (left == PathState::PotentiallyFailed).then_some(self.recovery_cwnd)
    }

    fn is_usable(&self, path: &PathView, all: &[PathView]) -> bool {
        match path.state {
            PathState::PotentiallyFailed => last_resort(all) == Some(path.id),
            _ => self.base.is_usable(path, all),
        }
    }

    fn silence_max(&self, rto: Duration) -> Option<Duration> {
        Some(rto * self.rtos)
    }

    fn on_silence(&mut self, cx: &PolicyCx<'_>, silent: &Silent) -> Vec<Silenced> {
        *self.silent_at(silent.path) = Some(cx.now);
        if silent.sack_path != Some(silent.path) {
            return vec![Silenced::Fail(silent.path)];
        }
        let since = cx.now.saturating_sub(silent.waited);
        let mut made = vec![Silenced::AwaitSacks, Silenced::Fail(silent.path)];
        for other in cx.paths.iter().filter(|p| p.id != silent.path) {
            let has_failed = other.state == PathState::PotentiallyFailed;
            let silent_at = self.silent_at(other.id);
            let seems = has_failed && silent_at.is_some_and(|at| at >= since);
            if seems {
                *silent_at = None;
                made.push(Silenced::TakeBack(other.id));
            }
            if seems || other.state == PathState::Active {
                made.push(Silenced::StartOver(other.id));
            }
        }
        made
    }

    fn forget(&mut self, path: PathId) {
        *self.silent_at(path) = None;
    }
}
