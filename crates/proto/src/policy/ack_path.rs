//! The path of a SACK.

mod last_received;
mod primary;

pub use last_received::LastReceived;
pub use primary::Primary;

use super::{Needs, PolicyCx, registry};
use crate::params::Params;
use crate::time::Instant;
use crate::view::{PathId, PathView};

/// Chooses where a SACK goes.
pub trait AckPathPolicy: std::fmt::Debug + Send {
    /// Of [`Needs`], `sack_paths` and `sack_path_chunks` are its own. The first is false if it
    /// always chooses `last_data`, whatever the paths are like; the second is true if it elects.
    fn needs(&self) -> Needs {
        Needs { sack_paths: true, sack_path_chunks: self.elects(), ..Needs::default() }
    }

    /// The path for a SACK; `last_data` is the path on which the latest DATA arrived. `None` leaves
    /// it to the primary path.
    fn choose(&mut self, cx: &mut PolicyCx<'_>, last_data: Option<PathId>) -> Option<PathId>;

    /// The peer says that what takes the primary path does not arrive.
    fn primary_failed(&mut self) {}

    /// The path has brought no DATA for so long that SACKs do not stay there.
    fn is_silent(&self, _now: Instant, _path: &PathView) -> bool {
        false
    }

    /// A path is gone; another may get its number.
    fn forget(&mut self, _path: PathId) {}

    /// True if the path it chooses is the primary from then on, and all SACKs take it.
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
