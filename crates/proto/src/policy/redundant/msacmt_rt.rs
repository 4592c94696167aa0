//! MSACMT-RT, the predecessor that the MSACMT-RTv2 paper compares with (section 3).

use super::rank::Ranking;
use super::{Cover, RedundancyPolicy};
use crate::params::RedundancyOrder;
use crate::policy::PolicyCx;
use crate::view::PathId;

/// The worst path duplicates what the best one sends, always.
///
/// The paper does not say when its paths are ranked. Here they are at the beginning, as soon as
/// their RTTs are known, after every timeout, and when a path fails or comes back.
#[derive(Debug)]
pub struct MsacmtRt {
    ranking: Ranking,
    failed: bool,
}

impl MsacmtRt {
    /// `first`: the quality that comes first in the ranking.
    pub fn new(first: RedundancyOrder) -> MsacmtRt {
        MsacmtRt { ranking: Ranking::by(first), failed: false }
    }
}

impl RedundancyPolicy for MsacmtRt {
    fn cover(&mut self, cx: &mut PolicyCx<'_>) -> Option<Cover> {
        if std::mem::take(&mut self.failed) || self.ranking.is_outdated(cx) {
            self.ranking.renew(cx);
        }
        match self.ranking.order[..] {
            [best, .., worst] => Some(Cover { redundant: worst, covered: best }),
            _ => None,
        }
    }

    fn flight_failed(&mut self, _path: PathId) {
        self.failed = true;
    }
}
