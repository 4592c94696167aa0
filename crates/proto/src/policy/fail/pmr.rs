//! Failure after Path.Max.Retrans timeouts in a row (RFC 9260 §8.2).

use super::{FailurePolicy, InDoubt, last_resort};
use crate::params::Params;
use crate::view::{PathState, PathView};

/// A path works until it has had more than `path_max_retrans` timeouts in a row.
#[derive(Debug)]
pub struct Pmr {
    data_before_verification: bool,
    in_doubt: InDoubt,
}

impl Pmr {
    /// With the thresholds of a configuration.
    pub fn new(config: &Params) -> Pmr {
        Pmr {
            data_before_verification: config.data_before_verification,
            in_doubt: InDoubt::new(config),
        }
    }
}

impl FailurePolicy for Pmr {
    fn in_doubt(&self) -> InDoubt {
        self.in_doubt
    }

    fn after_timeout(&mut self, path: &PathView) -> PathState {
        if path.error_count > path.path_max_retrans { PathState::Inactive } else { path.state }
    }

    fn recovery_cwnd(&self, _left: PathState) -> Option<u32> {
        None
    }

    fn is_usable(&self, path: &PathView, all: &[PathView]) -> bool {
        match path.state {
            PathState::Active => true,
            PathState::Unconfirmed => self.data_before_verification,
            PathState::PotentiallyFailed | PathState::Inactive => last_resort(all) == Some(path.id),
        }
    }
}
