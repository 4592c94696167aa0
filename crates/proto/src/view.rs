//! Paths as policies see them: values that the engine makes and no policy changes.

mod estimate;
mod path;
mod rank;
mod reason;
mod standing;
mod state;

pub use estimate::Estimate;
pub(crate) use path::score;
pub use path::{PathId, PathView};
pub use rank::{PathRank, RankError};
pub use reason::{ElectReason, RestoreReason, SuppressReason};
pub use standing::Standing;
pub use state::PathState;
