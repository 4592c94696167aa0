//! The path of new data.

mod fill_first;
mod fill_in_turn;
mod pipe_cwnd;
mod primary;
mod soonest;

pub use fill_first::FillFirst;
pub use fill_in_turn::FillInTurn;
pub use pipe_cwnd::PipeCwnd;
pub use primary::Primary;
pub use soonest::Soonest;
pub(in crate::policy) use soonest::one_way;

use super::{PolicyCx, registry};
use crate::view::PathId;

/// Chooses the path of new data; each association has its own.
pub trait Scheduler: std::fmt::Debug + Send {
    /// A usable path with room in its congestion window, or `None` to wait until a SACK, a timer or
    /// the application changes something. Not called while no path has room.
    ///
    /// Called for each packet of new data, and again for the same packet if the answer is another
    /// path than that of the current batch. So a policy must not count its answers; the views show
    /// the data in flight.
    fn choose(&mut self, cx: &mut PolicyCx<'_>) -> Option<PathId>;

    /// True if the policy compares RTTs. Each path is then measured before the policy is asked.
    fn compares_rtts(&self) -> bool {
        false
    }
}

registry!(Scheduler {
    "primary" => |_| Box::new(Primary),
    "fill_first" => |_| Box::new(FillFirst::default()),
    "fill_in_turn" => |_| Box::new(FillInTurn::default()),
    "pipe_cwnd" => |_| Box::new(PipeCwnd),
    "soonest" => |_| Box::new(Soonest),
});
