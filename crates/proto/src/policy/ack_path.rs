//! The path of a SACK.

mod last_received;
mod primary;

pub use last_received::LastReceived;
pub use primary::Primary;

use super::{Needs, PolicyCx, registry};
use crate::params::Params;
use crate::time::Instant;
use crate::view::{PathId, PathView};

/// Chooses the path of each SACK.
pub trait AckPathPolicy: std::fmt::Debug + Send {
    /// The needs of the policy: it decides `sack_paths` and `sack_path_chunks` of [`Needs`]. The
    /// first is false if the policy always chooses `last_data`; the second is true if it elects.
    fn needs(&self) -> Needs {
        Needs { sack_paths: true, sack_path_chunks: self.elects(), ..Needs::default() }
    }

    /// The path for a SACK; `None` for the primary path. `last_data` is the path on which the
    /// latest DATA arrived.
    fn choose(&mut self, cx: &mut PolicyCx<'_>, last_data: Option<PathId>) -> Option<PathId>;

    /// The peer reports that SACKs on the primary path do not arrive.
    fn primary_failed(&mut self) {}

    /// True if the path has brought no DATA for so long that SACKs must leave it.
    fn is_silent(&self, _now: Instant, _path: &PathView) -> bool {
        false
    }

    /// A path was removed. Another may get its id.
    fn forget(&mut self, _path: PathId) {}

    /// True if the chosen path becomes the primary, and all SACKs take it.
    fn elects(&self) -> bool {
        false
    }
}

/// The policy of an end whose peer asks for one path for all SACKs.
pub(crate) fn one_path(config: &Params) -> Box<dyn AckPathPolicy> {
    Box::new(Primary::new(config))
}

registry!(AckPathPolicy {
    "last_received" => |_| Box::new(LastReceived),
    "primary" => |c| Box::new(Primary::new(c)),
});
