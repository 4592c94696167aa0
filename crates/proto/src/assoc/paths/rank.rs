//! Ranks of paths: cheaper paths carry data first.
//!
//! Which ranks are in use is the decision of a [rank policy](crate::policy::rank). Paths of dearer
//! ranks work, answer and send heartbeats, and carry no data. While all paths have one rank,
//! nothing here runs.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::assoc::{AssocTimer, Association, Timer};
use crate::event::Event;
use crate::path::Path;
use crate::policy::rank::RankCx;
use crate::time::Instant;
use crate::view::{PathId, PathRank, PathState, PathView};
use crate::view::{RestoreReason, Standing, SuppressReason};

/// Ranks of the paths from local addresses.
pub(crate) type LocalRanks = BTreeMap<IpAddr, PathRank>;

/// A path is taken for working if its last packet came within this time. It is shorter than most
/// round trips, so few SACKs get lost when the path fails.
const HEARD_WITHIN: Duration = Duration::from_millis(20);

/// The ranks in use.
#[derive(Debug, Default)]
pub(crate) struct Ranks {
    of_local: Arc<LocalRanks>,
    /// True if paths have different ranks.
    pub(crate) differ: bool,
    /// The least rank among working paths; `None` if no path works.
    base: Option<PathRank>,
    /// The dearest rank in use.
    open: PathRank,
    /// When new data was last held back by something other than the room on paths.
    held_at: Instant,
}

impl Ranks {
    /// True if paths of this rank must not carry data.
    pub(crate) fn keep_idle(&self, rank: PathRank) -> bool {
        self.differ && self.base.is_some() && rank > self.open
    }
}

impl Association {
    /// Sets the rank of a path, which decides what paths carry data before it does. It takes effect
    /// at once. Data in flight on a path that became dearer is still acknowledged there. Returns
    /// false if there is no such path.
    ///
    /// The rank applies to DATA and SACKs that this side sends. SCTP has no chunk that tells a peer
    /// of ranks.
    pub fn set_path_rank(&mut self, now: Instant, path: PathId, rank: PathRank) -> bool {
        let is_over = self.closed().is_some();
        let Some(p) = self.paths.get_mut(path) else { return false };
        if p.role.rank != rank {
            p.role.rank = rank;
            if is_over {
                return true; // no event follows its end
            }
            self.events.push(Event::PathRank { path, rank });
            self.refresh_usable(now);
        }
        true
    }

    /// The rank of a path; `None` if there is no such path.
    pub fn path_rank(&self, path: PathId) -> Option<PathRank> {
        self.paths.get(path).map(|p| p.role.rank)
    }

    /// Sets the rank of all paths from a local address, now and later.
    pub(crate) fn set_local_rank(&mut self, now: Instant, local: IpAddr, all: Arc<LocalRanks>) {
        let rank = all.get(&local).copied().unwrap_or_default();
        self.ranks.of_local = all;
        for id in self.paths.ids() {
            if self.paths.get(id).is_some_and(|p| p.local.ip() == local) {
                self.set_path_rank(now, id, rank);
            }
        }
    }

    /// Sets the ranks of local addresses, for paths now and later.
    pub(crate) fn set_local_ranks(&mut self, now: Instant, all: Arc<LocalRanks>) {
        self.ranks.of_local = all;
        for id in self.paths.ids() {
            self.take_local_rank(now, id);
        }
    }

    /// Takes the rank of a path's new local address.
    pub(crate) fn take_local_rank(&mut self, now: Instant, id: PathId) {
        let Some(pair) = self.paths.get(id).map(Path::pair) else { return };
        self.set_path_rank(now, id, self.first_rank(pair));
    }

    /// The rank of a new path from a local address.
    pub(crate) fn local_rank(&self, local: IpAddr) -> PathRank {
        self.ranks.of_local.get(&local).copied().unwrap_or_default()
    }

    /// Finds the ranks of paths, and the least one that works, before anything is decided on paths.
    pub(crate) fn renew_ranks(&mut self, now: Instant) {
        let mut ranks = self.paths.iter().map(|p| p.role.rank);
        let first = ranks.next().unwrap_or_default();
        let differ = ranks.any(|rank| rank != first);
        if !differ && !self.ranks.differ {
            return; // mostly
        }
        self.ranks.differ = differ;
        let base = self.working_views().iter().filter(|p| p.usable).map(|p| p.rank).min();
        if base != self.ranks.base {
            self.ranks.base = base;
            self.ranks.open = base.unwrap_or_default();
            self.ranks.held_at = now;
        }
        if !differ {
            self.timers.stop(Timer::Assoc(AssocTimer::Ranks));
        }
    }

    /// The cheapest rank with a path that works, if paths have ranks.
    pub(crate) fn cheapest_rank(&self) -> Option<PathRank> {
        self.ranks.base.filter(|_| self.ranks.differ)
    }

    /// Views of all paths. Here `usable` means that a path works, whatever its rank.
    fn working_views(&self) -> smallvec::SmallVec<[PathView; 4]> {
        let view = |p: &Path| p.view(self.out.in_use(p.id));
        let mut views: smallvec::SmallVec<[PathView; 4]> = self.paths.iter().map(view).collect();
        let fail = &self.policies.fail;
        let others = self.views_of_open(&views);
        let usable: smallvec::SmallVec<[bool; 8]> = (self.paths.iter().zip(&views))
            .map(|(p, view)| {
                let may_carry = !p.liveness.is_away() && !p.role.is_barred;
                may_carry && p.role.set_aside.is_none() && fail.is_usable(view, &others)
            })
            .collect();
        views.iter_mut().zip(usable).for_each(|(view, usable)| view.usable = usable);
        views
    }

    /// The dearest rank that may carry the next packet of new data, given that no more data goes on
    /// `closed`.
    pub(crate) fn rank_limit(&mut self, now: Instant, closed: Option<PathId>) -> PathRank {
        let Some(base) = self.ranks.base else { return PathRank::Backup };
        let mut paths = self.working_views();
        paths.iter_mut().filter(|p| Some(p.id) == closed).for_each(|p| p.cwnd_space = 0);
        let waits_since = self.queue.waits_since().map(|at| at.max(self.ranks.held_at));
        let cx = RankCx { now, paths: &paths, base, waits_since };
        let ceiling = self.policies.rank.ceiling(&cx);
        let open = ceiling.open.max(base);
        if open != self.ranks.open {
            self.ranks.open = open;
            self.refresh_usable(now);
        }
        let timer = Timer::Assoc(AssocTimer::Ranks);
        match ceiling.again.filter(|at| *at > now) {
            Some(at) => self.timers.set(timer, at),
            None => self.timers.stop(timer),
        }
        ceiling.next.clamp(base, open)
    }

    /// Notes that new data is held back by something other than the room on paths, or that there is
    /// none.
    #[inline]
    pub(crate) fn note_held(&mut self, now: Instant) {
        if self.ranks.differ {
            self.ranks.held_at = now;
            self.timers.stop(Timer::Assoc(AssocTimer::Ranks));
        }
    }

    /// Tells the rank policy that a packet with data left on a path.
    #[inline]
    pub(crate) fn note_rank_used(&mut self, now: Instant, path: PathId) {
        if self.ranks.differ
            && let Some(p) = self.paths.get(path)
        {
            self.policies.rank.sent(now, p.role.rank);
        }
    }

    /// A path as the path set sees it. A path that is barred, or that its rank keeps idle, does not
    /// work for the path set, so that it cannot displace a cheaper one.
    pub(crate) fn standing(&self, p: &Path) -> Standing {
        let mut standing = p.standing();
        let is_idle = p.role.is_barred || self.ranks.keep_idle(p.role.rank);
        if standing.state == PathState::Active && is_idle {
            standing.state = PathState::Inactive;
        }
        standing
    }

    /// Tells the application which paths begin or cease to carry data because of their ranks.
    pub(crate) fn tell_ranks(&mut self) {
        let base = self.ranks.base;
        let cheapest = self.paths.iter().map(|p| p.role.rank).min();
        for p in self.paths.iter_mut() {
            let path = p.id;
            let keeps_idle = self.ranks.keep_idle(p.role.rank);
            if keeps_idle == std::mem::replace(&mut p.role.is_kept_idle, keeps_idle) {
                continue;
            }
            self.events.push(if keeps_idle {
                Event::PathSuppressed { path, reason: SuppressReason::Dearer }
            } else {
                Event::PathRestored {
                    path,
                    reason: match base {
                        Some(base) if self.ranks.differ && p.role.rank > base => {
                            RestoreReason::Overflow
                        }
                        _ if cheapest.is_some_and(|cheapest| cheapest < p.role.rank) => {
                            RestoreReason::Failover
                        }
                        _ => RestoreReason::Ranked,
                    },
                }
            });
        }
    }

    /// The path for a SACK that was to take `chosen`: a cheaper working one, if there is any. The
    /// peer's packets must arrive there, so that SACKs do not stay on a path that has just failed.
    pub(crate) fn cheaper_sack_path(&self, now: Instant, chosen: PathId) -> PathId {
        if !self.ranks.differ {
            return chosen;
        }
        let Some(rank) = self.path_rank(chosen) else {
            return chosen;
        };
        if self.policies.ack_path.elects() {
            return chosen; // the peer is told which path they take
        }
        let is_heard = |p: &Path| {
            p.liveness.last_heard.is_some_and(|at| now.saturating_since(at) <= HEARD_WITHIN)
        };
        let works = |p: &&Path| {
            p.liveness.state == PathState::Active
                && p.liveness.error_count == 0
                && !p.liveness.is_away()
        };
        let cheaper = self.paths.iter().filter(|p| p.role.rank < rank).filter(works);
        let best = cheaper.filter(|p| is_heard(p)).min_by_key(|p| (p.role.rank, p.rto.srtt()));
        best.map_or(chosen, |p| p.id)
    }
}
