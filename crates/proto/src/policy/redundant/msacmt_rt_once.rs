//! MSACMT-RT that ranks its paths once, another reading of the MSACMT-RTv2 paper (section 3).

use super::rank::Ranking;
use super::{Cover, RedundancyPolicy};
use crate::params::RedundancyOrder;
use crate::policy::PolicyCx;
use crate::view::PathId;

/// The path that was worst in the beginning duplicates what the best one then sends, always.
///
/// The ranking is that of the first moment at which the RTTs of all paths are known. Paths that
/// fail leave it, and return to their places.
#[derive(Debug)]
pub struct MsacmtRtOnce {
    ranking: Ranking,
    is_final: bool,
}

impl MsacmtRtOnce {
    /// `first`: the quality that comes first in the ranking.
    pub fn new(first: RedundancyOrder) -> MsacmtRtOnce {
        MsacmtRtOnce { ranking: Ranking::by(first), is_final: false }
    }
}

impl RedundancyPolicy for MsacmtRtOnce {
    fn cover(&mut self, cx: &mut PolicyCx<'_>) -> Option<Cover> {
        if !self.is_final && self.ranking.is_outdated(cx) {
            self.ranking.renew(cx);
            self.is_final = cx.paths.iter().all(|p| p.usable && p.srtt.is_some());
        }
        let usable = |id: &PathId| cx.paths.iter().any(|p| p.id == *id && p.usable);
        let mut order = self.ranking.order.iter().copied().filter(usable);
        let (best, worst) = (order.next()?, order.next_back()?);
        Some(Cover { redundant: worst, covered: best })
    }
}
