//! The candidates of an endpoint: where its peers may reach it directly.

use std::sync::Arc;

use super::Endpoint;
use crate::assoc::Candidate;
use crate::time::Instant;

impl Endpoint {
    /// Sets the addresses at which peers may reach this host. Associations tell them to their peers
    /// and look for direct paths, if the peers do so, too. Those that peers opened begin with
    /// [`Association::seek_direct_paths`](crate::Association::seek_direct_paths).
    ///
    /// The first call makes associations that begin from now on look for direct paths, even if it
    /// has no candidates yet. A later one replaces the candidates of all of these.
    pub fn set_candidates(&mut self, now: Instant, candidates: impl Into<Arc<[Candidate]>>) {
        let candidates = candidates.into();
        self.candidates = Some(Arc::clone(&candidates));
        self.each_open(|assoc| assoc.set_candidates(now, Arc::clone(&candidates)));
    }

    /// Says if relays are there to meet only, for associations that begin from now on and look for
    /// direct paths. Their peers are told, and it holds for both ends: relayed paths carry no user
    /// data once a direct one has worked. Until then the application has to hold content back: see
    /// [`Association::directness`](crate::Association::directness).
    pub fn set_direct_only(&mut self, wanted: bool) {
        self.direct_only = wanted;
    }
}
