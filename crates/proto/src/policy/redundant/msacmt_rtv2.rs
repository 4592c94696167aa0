//! MSACMT-RTv2 (MSACMT-RTv2 paper, Algorithm 1).

use super::rank::Ranking;
use super::{Cover, RedundancyPolicy};
use crate::path::PathId;
use crate::policy::PolicyCx;

/// The worst of n paths duplicates what path n-1 sends, which is the one expected to fail, until both have proved
/// themselves; then all carry new data, until a review after which it starts over.
///
/// Proved: `review` flights in a row that succeeded, on both; for the review, on all paths. Any timeout, and any path
/// that fails or comes back, ranks the paths anew and starts over.
#[derive(Debug)]
pub struct MsacmtRtv2 {
    /// Successful flights in a row after which the phase changes.
    review: u32,
    ranking: Ranking,
    /// Flights that succeeded in this phase, by the place in the ranking.
    successes: Vec<u32>,
    is_redundant: bool,
    failed: bool,
}

impl MsacmtRtv2 {
    /// With so many flights between reviews; the paper finds 10 best (Fig. 2).
    pub fn new(review: u32) -> MsacmtRtv2 {
        let (ranking, successes) = (Ranking::default(), Vec::new());
        MsacmtRtv2 { review, ranking, successes, is_redundant: false, failed: false }
    }

    /// Whether the paths that count in this phase have proved themselves.
    fn is_proved(&self) -> bool {
        let counted = if self.is_redundant { 2 } else { self.ranking.order.len() };
        self.successes.iter().rev().take(counted).all(|&n| n >= self.review)
    }
}

impl RedundancyPolicy for MsacmtRtv2 {
    fn cover(&mut self, cx: &mut PolicyCx<'_>) -> Option<Cover> {
        let restarts = std::mem::take(&mut self.failed) || self.ranking.is_outdated(cx);
        if restarts || self.is_proved() {
            self.is_redundant = restarts || !self.is_redundant;
            self.ranking.renew(cx);
            self.successes.clear();
            self.successes.resize(self.ranking.order.len(), 0);
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
