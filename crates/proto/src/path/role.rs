//! The role of a path in its association.

use crate::view::{PathRank, SuppressReason};

/// The role of a path.
#[derive(Debug)]
pub(crate) struct Role {
    pub(crate) rank: PathRank,
    /// True if the path may carry data now; renewed when any path changes its state.
    pub(crate) usable: bool,
    /// Why the path set keeps the path from carrying data although it works.
    pub(crate) set_aside: Option<SuppressReason>,
    /// True if the path's rank keeps it from carrying data, and the application was told.
    pub(crate) is_kept_idle: bool,
    /// True if the path takes a relay that is there to meet only: it carries no DATA, whatever
    /// happens to other paths.
    pub(crate) is_barred: bool,
}

impl Role {
    pub(super) fn new() -> Role {
        Role {
            rank: PathRank::NORMAL,
            usable: false,
            set_aside: None,
            is_kept_idle: false,
            is_barred: false,
        }
    }

    /// Why it carries no data although it works; `None` if it may.
    pub(crate) fn suppressed(&self) -> Option<SuppressReason> {
        self.set_aside.or(self.is_kept_idle.then_some(SuppressReason::Dearer))
    }
}
