//! Calls policies with the views that they decide on.

use super::Association;
use crate::policy::{Policies, PolicyCx};
use crate::rng::Rng;
use crate::time::Instant;
use crate::view::PathView;

/// The views and the randomness that policies get.
#[derive(Debug)]
pub(super) struct PolicyCalls {
    rng: Rng,
    /// Kept between decisions, so that none allocates.
    views: Vec<PathView>,
}

impl PolicyCalls {
    pub(super) fn new(rng: Rng) -> PolicyCalls {
        PolicyCalls { rng, views: Vec::new() }
    }
}

impl Association {
    /// Calls a policy with a view of every path.
    pub(super) fn decide<T>(
        &mut self,
        now: Instant,
        decision: impl FnOnce(&mut Policies, &mut PolicyCx<'_>) -> T,
    ) -> T {
        let PolicyCalls { rng, views } = &mut self.policy_calls;
        views.clear();
        for p in self.paths.iter() {
            let mut view = p.view(self.out.in_use(p.id));
            if self.recovery.past_cwnd.is_allowed_on(p.id) {
                view.cwnd_space = view.cwnd_space.max(1);
            }
            views.push(view);
        }
        let waiting = self.queue.bytes();
        let mut cx = PolicyCx { now, paths: views, primary: self.primary, waiting, rng };
        decision(&mut self.policies, &mut cx)
    }
}
