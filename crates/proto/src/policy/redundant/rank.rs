//! The order of the paths, best first (MSACMT-RTv2 paper, Algorithm 1 and section 3.1).

use std::cmp::Ordering;
use std::time::Duration;

use crate::params::RedundancyOrder;
use crate::policy::PolicyCx;
use crate::view::{PathId, PathView};

/// Round-trip times are similar if they are equal in this unit.
const SIMILAR_RTT: Duration = Duration::from_millis(10);

/// The paths that may carry data, best first: the least RTT, then the least RTO, the largest cwnd,
/// the largest ssthresh, the least loss rate; what is equal in all of them is in a random order.
/// Another of these qualities may come first.
#[derive(Debug)]
pub(super) struct Ranking {
    first: RedundancyOrder,
    pub(super) order: Vec<PathId>,
    /// Paths among them whose RTT was not known.
    unmeasured: usize,
}

impl Ranking {
    /// No paths yet. `first`: the quality that comes first.
    pub(super) fn by(first: RedundancyOrder) -> Ranking {
        Ranking { first, order: Vec::new(), unmeasured: 0 }
    }

    /// Ranks the paths as they are now.
    pub(super) fn renew(&mut self, cx: &mut PolicyCx<'_>) {
        let mut drawn: Vec<(&PathView, u64)> = Vec::new();
        for path in cx.paths.iter().filter(|p| p.usable) {
            drawn.push((path, cx.rng.next_u64()));
        }
        let first = self.first;
        drawn.sort_by(|(a, x), (b, y)| {
            compare(first, a, b)
                .then_with(|| compare_all(a, b))
                .then(x.cmp(y))
                .then(a.id.cmp(&b.id))
        });
        self.order = drawn.into_iter().map(|(path, _)| path.id).collect();
        self.unmeasured = unmeasured(cx);
    }

    /// True if other paths may carry data now, or the RTT of one became known.
    pub(super) fn is_outdated(&self, cx: &PolicyCx<'_>) -> bool {
        let usable = || cx.paths.iter().filter(|p| p.usable);
        usable().count() != self.order.len()
            || usable().any(|p| !self.order.contains(&p.id))
            || self.unmeasured > 0 && unmeasured(cx) != self.unmeasured
    }
}

fn unmeasured(cx: &PolicyCx<'_>) -> usize {
    cx.paths.iter().filter(|p| p.usable && p.srtt.is_none()).count()
}

/// The path that is better in this quality is the lesser one.
fn compare(quality: RedundancyOrder, a: &PathView, b: &PathView) -> Ordering {
    let steps = |time: Duration| time.as_nanos() / SIMILAR_RTT.as_nanos();
    // A path that was never measured comes after those that were.
    let rtt = |p: &PathView| p.srtt.map_or(u128::MAX, steps);
    match quality {
        RedundancyOrder::Rtt => rtt(a).cmp(&rtt(b)).then(steps(a.rto).cmp(&steps(b.rto))),
        RedundancyOrder::Cwnd => b.cwnd.cmp(&a.cwnd),
        RedundancyOrder::Ssthresh => b.ssthresh.cmp(&a.ssthresh),
        RedundancyOrder::Loss => a.loss_rate.total_cmp(&b.loss_rate),
    }
}

/// Compares the qualities in the paper's order.
fn compare_all(a: &PathView, b: &PathView) -> Ordering {
    let order = [
        RedundancyOrder::Rtt,
        RedundancyOrder::Cwnd,
        RedundancyOrder::Ssthresh,
        RedundancyOrder::Loss,
    ];
    let differs = |quality| Some(compare(quality, a, b)).filter(|o| o.is_ne());
    order.into_iter().find_map(differs).unwrap_or(Ordering::Equal)
}
