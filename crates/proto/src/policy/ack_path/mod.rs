//! The path of a SACK.

mod last_received;

pub use last_received::LastReceived;

use super::{PolicyCx, registry};
use crate::path::PathId;

/// Chooses where a SACK goes.
pub trait AckPathPolicy: std::fmt::Debug + Send {
    /// The path for a SACK; `last_data` is the path on which the latest DATA arrived. `None` leaves it
    /// to the primary path.
    fn choose(&mut self, cx: &mut PolicyCx<'_>, last_data: Option<PathId>) -> Option<PathId>;
}

registry!(AckPathPolicy {
    "last_received" => |_| Box::new(LastReceived),
});
