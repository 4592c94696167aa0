//! MSACMT-RTv2 (MSACMT-RTv2 paper, Algorithm 1).

use super::rank::Ranking;
use super::{Cover, RedundancyPolicy};
use crate::params::{RedundancyCycle, RedundancyOrder};
use crate::policy::PolicyCx;
use crate::view::PathId;

/// The worst of n paths duplicates what path n-1 sends, which is the one expected to fail, until
/// both have proved themselves; then all carry new data.
///
/// Proved: `review` flights in a row that succeeded, on both. Then all paths are reviewed: each
/// time all of them have proved themselves they are ranked again. With [`RedundancyCycle::Keep`]
/// all go on carrying new data (step 11 goes to step 8), with [`RedundancyCycle::Restart`] the
/// worst of them is redundant again. [`RedundancyCycle::Dynamic`] does that less and less often
/// while the order of the paths stays the same (section 5). Any timeout, and any path that fails or
/// comes back, ranks the paths again and starts over with redundancy (steps 6 and 10).
#[derive(Debug)]
pub struct MsacmtRtv2 {
    /// Successful flights in a row after which the paths are ranked again.
    review: u32,
    /// As many while all paths carry new data.
    review_of_all: u32,
    cycle: RedundancyCycle,
    pub(super) ranking: Ranking,
    /// Flights that succeeded since then, by the place in the ranking.
    pub(super) successes: Vec<u32>,
    is_redundant: bool,
    failed: bool,
}

/// Flights between two reviews, at most: the largest value of `redundancy_review`.
const MAX_REVIEW: u32 = 10_000;

impl MsacmtRtv2 {
    /// `review`: flights between two reviews. The paper finds 10 best (Fig. 2). `first`: the
    /// quality that comes first in the ranking.
    pub fn new(review: u32, cycle: RedundancyCycle, first: RedundancyOrder) -> MsacmtRtv2 {
        MsacmtRtv2 {
            review,
            review_of_all: review,
            cycle,
            ranking: Ranking::by(first),
            successes: Vec::new(),
            is_redundant: false,
            failed: false,
        }
    }

    /// True once the paths that count have proved themselves.
    fn is_proved(&self) -> bool {
        let (counted, needed) = if self.is_redundant {
            (2, self.review)
        } else {
            (self.ranking.order.len(), self.review_of_all)
        };
        self.successes.iter().rev().take(counted).all(|&n| n >= needed)
    }

    /// Ranks the paths, and begins to count their flights again.
    fn review(&mut self, starts_over: bool, cx: &mut PolicyCx<'_>) {
        let is_review_of_all = !starts_over && !self.is_redundant;
        self.is_redundant = starts_over || is_review_of_all && self.cycle != RedundancyCycle::Keep;
        let before = std::mem::take(&mut self.ranking.order);
        self.ranking.renew(cx);
        if starts_over || self.ranking.order != before {
            self.review_of_all = self.review;
        } else if is_review_of_all && self.cycle == RedundancyCycle::Dynamic {
            self.review_of_all = self.review_of_all.saturating_mul(2).min(MAX_REVIEW);
        }
        self.successes.clear();
        self.successes.resize(self.ranking.order.len(), 0);
    }
}

impl RedundancyPolicy for MsacmtRtv2 {
    fn cover(&mut self, cx: &mut PolicyCx<'_>) -> Option<Cover> {
        let starts_over = std::mem::take(&mut self.failed) || self.ranking.is_outdated(cx);
        if starts_over || self.is_proved() {
            self.review(starts_over, cx);
        }
        match self.ranking.order[..] {
            [.., covered, redundant] if self.is_redundant => Some(Cover { redundant, covered }),
            _ => None,
        }
    }

    fn flight_succeeded(&mut self, path: PathId) {
        if let Some(at) = self.ranking.order.iter().position(|id| *id == path) {
            self.successes[at] += 1;
        }
    }

    fn flight_failed(&mut self, _path: PathId) {
        self.failed = true;
    }
}
