//! The path of a SACK.

mod last_received;
mod primary;

pub use last_received::LastReceived;
pub use primary::Primary;

use super::{PolicyCx, registry};
use crate::path::PathId;

/// Chooses where a SACK goes.
pub trait AckPathPolicy: std::fmt::Debug + Send {
    /// The path for a SACK; `last_data` is the path on which the latest DATA arrived. `None` leaves it
    /// to the primary path.
    fn choose(&mut self, cx: &mut PolicyCx<'_>, last_data: Option<PathId>) -> Option<PathId>;

    /// True if it always chooses `last_data`, whatever the paths are like: then it is not asked.
    fn is_last(&self) -> bool {
        false
    }

    /// The peer says that what takes the primary path does not arrive.
    fn primary_failed(&mut self) {}

    /// A path is gone; another may get its number.
    fn forget(&mut self, _path: PathId) {}

    /// True if the path it chooses is the primary from then on, and all SACKs take it.
    fn elects(&self) -> bool {
        false
    }
}

registry!(AckPathPolicy {
    "last_received" => |_| Box::new(LastReceived),
    "primary" => |c| Box::new(Primary::new(c)),
});
