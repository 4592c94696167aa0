//! Failure by silence (mTCP paper, section 3.5).

use std::time::Duration;

use super::{FailurePolicy, Pmr, last_resort};
use crate::config::Config;
use crate::path::{PathState, PathView};

/// A path has failed when nothing sent on it is acknowledged for `silence_rtos` RTO (the paper's chi). It is
/// potentially failed then: heartbeats find out when it is back, and more than `path_max_retrans` timeouts make
/// it inactive. A single T3-rtx expiry changes nothing: bursts of losses are not failures.
#[derive(Debug)]
pub struct Silence {
    base: Pmr,
    rtos: u32,
    recovery_cwnd: u32,
}

impl Silence {
    /// With the thresholds of a configuration.
    pub fn new(config: &Config) -> Silence {
        Silence {
            base: Pmr::new(config),
            rtos: config.silence_rtos,
            recovery_cwnd: config.pf_recovery_cwnd,
        }
    }
}

impl FailurePolicy for Silence {
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
}
