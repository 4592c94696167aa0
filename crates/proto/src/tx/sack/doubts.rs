//! Losses that may turn out spurious, and their episodes; see [`spurious`](super::spurious).

use std::collections::{BTreeMap, VecDeque};

use manypath_wire::Tsn;

use crate::policy::rtx::LossCause;
use crate::time::Instant;
use crate::view::PathId;

/// Most acknowledged chunks to remember until a duplicate is reported.
pub(super) const REMEMBERED_MAX: usize = 1024;

/// A transmission that was taken for lost.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loss {
    pub(crate) path: PathId,
    /// The episode that it is part of.
    pub(crate) episode: u64,
    pub(crate) sent_at: Instant,
    pub(crate) cause: LossCause,
}

/// The latest losses of a path.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct Episode {
    /// Unique in the association; 0 before the first.
    pub(crate) number: u64,
    /// The latest transmission of the association when it began.
    pub(crate) ends: u64,
    /// Losses that have not turned out spurious.
    pub(crate) open: usize,
}

/// The losses of all paths that may still turn out spurious.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    /// True if a policy needs to know of spurious losses.
    pub(super) is_wanted: bool,
    pub(super) episodes: u64,
    /// Acknowledged chunks that had been retransmitted, by TSN. The flag is true if the chunk was
    /// lost once only.
    pub(super) remembered: BTreeMap<u32, (Loss, bool)>,
    /// The remembered TSNs, earliest first. Some may be forgotten already.
    pub(crate) in_order: VecDeque<Tsn>,
}

impl Doubts {
    /// Remembers a loss until its TSN is reported as a duplicate, or until 1024 others came after
    /// it.
    pub(crate) fn remember(&mut self, tsn: Tsn, loss: Loss, is_only: bool) {
        if self.in_order.len() >= REMEMBERED_MAX
            && let Some(oldest) = self.in_order.pop_front()
        {
            self.remembered.remove(&oldest.0);
        }
        self.in_order.push_back(tsn);
        self.remembered.insert(tsn.0, (loss, is_only));
    }
}
