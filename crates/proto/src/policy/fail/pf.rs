//! The potentially failed state (CMT-PF paper, section III; RFC 7829).

use super::{FailurePolicy, InDoubt, Pmr, last_resort};
use crate::params::Params;
use crate::view::{PathState, PathView};

/// A path becomes potentially failed (PF) after more than `pf_max_retrans` timeouts in a row, and
/// carries heartbeats only while another path is active; it is inactive after more than
/// `path_max_retrans`. With `path_max_retrans` = 0 it behaves as [`Pmr`].
#[derive(Debug)]
pub struct PotentiallyFailed {
    base: Pmr,
    pf_max_retrans: u32,
    recovery_cwnd: u32,
}

impl PotentiallyFailed {
    /// With the thresholds of a configuration.
    pub fn new(config: &Params) -> PotentiallyFailed {
        PotentiallyFailed {
            base: Pmr::new(config),
            pf_max_retrans: config.pf_max_retrans,
            recovery_cwnd: config.pf_recovery_cwnd,
        }
    }
}

impl FailurePolicy for PotentiallyFailed {
    fn in_doubt(&self) -> InDoubt {
        self.base.in_doubt()
    }

    fn after_timeout(&mut self, path: &PathView) -> PathState {
        match self.base.after_timeout(path) {
            // An unverified path that carries data, as RFC 2960 allowed, is treated as an active
            // one.
            PathState::Active | PathState::Unconfirmed
                if path.error_count > self.pf_max_retrans =>
            {
                PathState::PotentiallyFailed
            }
            state => state,
        }
    }

    /// CMT-PF1 resumes with 1 MTU, CMT-PF2 with 2 (CMT-PF paper, section III-A).
    fn recovery_cwnd(&self, left: PathState) -> Option<u32> {
        (left == PathState::PotentiallyFailed).then_some(self.recovery_cwnd)
    }

    fn is_usable(&self, path: &PathView, all: &[PathView]) -> bool {
        match path.state {
            PathState::PotentiallyFailed => last_resort(all) == Some(path.id),
            _ => self.base.is_usable(path, all),
        }
    }

    fn pf_max_retrans(&self) -> Option<u32> {
        Some(self.pf_max_retrans)
    }
}
