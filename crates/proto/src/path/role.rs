//! The part of a path in its association, beside whether it works.

use crate::view::{PathRank, SuppressReason};

/// A path's part in the association.
#[derive(Debug)]
pub(crate) struct Role {
    pub(crate) rank: PathRank,
    /// May carry data now; renewed by the association when any path changes state.
    pub(crate) usable: bool,
    /// Why the path set keeps it from carrying data although it works.
    pub(crate) set_aside: Option<SuppressReason>,
    /// Its rank keeps it from carrying data, and the application was told.
    pub(crate) is_kept_idle: bool,
}

impl Role {
    pub(super) fn new() -> Role {
        Role { rank: PathRank::NORMAL, usable: false, set_aside: None, is_kept_idle: false }
    }

    /// Why it carries no data although it works; `None` if it may.
    pub(crate) fn suppressed(&self) -> Option<SuppressReason> {
        self.set_aside.or(self.is_kept_idle.then_some(SuppressReason::Dearer))
    }
}
