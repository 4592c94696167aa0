//! Ranks of paths by their local addresses.

use std::net::IpAddr;
use std::sync::Arc;

use super::Endpoint;
use crate::time::Instant;
use crate::view::PathRank;

impl Endpoint {
    /// Sets the rank of all paths from this local address, now and later, in all associations.
    /// [`Association::set_path_rank`](crate::Association::set_path_rank) sets the rank of one path.
    pub fn set_local_rank(&mut self, now: Instant, local: IpAddr, rank: PathRank) {
        let all = Arc::make_mut(&mut self.local_ranks);
        if rank.is_normal() {
            all.remove(&local)
        } else {
            all.insert(local, rank)
        };
        for index in self.assocs.slots() {
            let all = Arc::clone(&self.local_ranks);
            let Some(assoc) = self.assocs.get_mut(index) else { continue };
            assoc.set_local_rank(now, local, all);
            self.dirty.add(index);
        }
    }

    /// The rank of paths from a local address.
    pub fn local_rank(&self, local: IpAddr) -> PathRank {
        self.local_ranks.get(&local).copied().unwrap_or_default()
    }
}
