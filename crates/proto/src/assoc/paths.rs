//! Paths come, are verified, fail, recover and go.

pub(super) mod candidates;
pub(super) mod direct;
pub(super) mod heartbeat;
pub(super) mod heartbeat_info;
pub(super) mod path_set;
pub(super) mod pmtu;
pub(super) mod rank;
pub(super) mod roam;
pub(super) mod third_parties;

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

use super::{AssocTimer, Association, Timer};
use crate::datagram::AddressPair;
use crate::event::Event;
use crate::path::{InUse, NewPath, Origin, Path};
use crate::policy::recovery::ReportScope;
use crate::sizes;
use crate::time::Instant;
use crate::view::{PathId, PathState, PathView};

impl Association {
    /// Adds a path between two transport addresses; it is verified before it carries data (RFC 9260
    /// §5.4), and INIT takes it in its turn. A path whose address was [gone](Self::local_gone)
    /// comes back. Returns `None` if it exists, if one address is of UDP and the other of
    /// [raw IP](crate::is_raw_ip), or if there are `max_paths` and none of them is dead.
    pub fn add_path(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Option<PathId> {
        if self.closed().is_some() {
            return None;
        }
        let pair = AddressPair { local, remote };
        let id = match self.paths.find(&pair) {
            Some(id) => self.come_back(now, id).then_some(id)?,
            None if self.make_room(now) => self.create_path(now, pair, Origin::Named)?,
            None => return None,
        };
        if let Some(path) = self.paths.get_mut(id) {
            path.origin.name();
        }
        self.candidates.take(local, remote);
        if self.state.is_open() {
            self.probe_now(now, id);
            self.start_size_search(now, id);
            self.begin_trial(now, id);
            self.reroute_addresses(now);
        } else {
            self.replace_while_opening(now)
        }
        Some(id)
    }

    /// Removes a path. Data outstanding on it is retransmitted on the others. The last path cannot
    /// be removed, nor can the last one whose local address still exists.
    pub fn remove_path(&mut self, now: Instant, id: PathId) {
        if self.paths.len() <= 1 {
            return;
        }
        let Some(path) = self.paths.get(id) else { return };
        let has_other = self.paths.iter().any(|p| p.id != id && !p.liveness.is_away());
        if !path.liveness.is_away() && !has_other {
            return;
        }
        self.paths.remove(id);
        self.recovery.reset_path(id);
        self.timers.stop_path(id);
        self.end_trial(id);
        let rest: Vec<_> =
            self.paths.iter().map(|p| (p.liveness.state != PathState::Active, p.id)).collect();
        let Some(&(_, heir)) = rest.iter().min() else { return };
        // Needed even if the path carried no data: it may hold what an earlier removed path left.
        self.out.abandon_path(id, heir);
        if self.primary == id {
            self.primary = heir;
        }
        self.forget_path(id);
        self.refresh_usable(now);
    }

    /// Forgets what the rest of the association knows of a path that is removed.
    fn forget_path(&mut self, id: PathId) {
        if let Some(r) = self.rx.if_last_data_on(id) {
            r.last_data = None;
        }
        self.policies.path_set.removed(id);
        self.forget_sack_path(id);
        self.events.push(Event::PathRemoved { path: id });
    }

    pub(super) fn create_path(
        &mut self,
        now: Instant,
        pair: AddressPair,
        origin: Origin,
    ) -> Option<PathId> {
        let full = self.paths.len() >= self.config.max_paths as usize;
        if full || pair.is_mixed() || self.paths.find(&pair).is_some() {
            return None;
        }
        let id = self.paths.free_id();
        let path = self.new_path(now, id, pair, origin);
        self.insert_path(now, path);
        if origin != Origin::Learnt {
            self.tell_of_path(id);
        }
        Some(id)
    }

    /// Gives a path another address pair. It starts like a new, unverified path.
    pub(super) fn replace_pair(&mut self, now: Instant, id: PathId, pair: AddressPair) {
        let Some(old) = self.paths.remove(id) else { return };
        self.timers.stop_path(id);
        // With `data_before_verification` the path may have carried data.
        self.out.mark_path(id, None);
        self.out.forget_lost(id);
        self.forget_path(id);
        let mut path = self.new_path(now, id, pair, Origin::Named);
        path.role.rank = old.role.rank;
        if !self.state.is_open() {
            path.rto = old.rto; // INIT backs off across all paths
        }
        self.insert_path(now, path);
        self.tell_of_path(id);
    }

    fn new_path(&mut self, now: Instant, id: PathId, pair: AddressPair, origin: Origin) -> Path {
        let of = NewPath {
            id,
            pair,
            origin,
            peer_rwnd: self.peer_window.a_rwnd_u32(),
            link_mtu: self.link_mtu(pair),
            overhead: self.overhead(),
        };
        let mut path = Path::new(&self.config, now, of);
        path.role.rank = self.first_rank(pair);
        path.role.is_barred = self.bars(pair);
        if let Some(model) = path.flow.cc.model() {
            model.seed(self.rng.fork(&format!("congestion control {}", id.0)));
        }
        path
    }

    /// Bytes that protection or authentication adds to packets.
    fn overhead(&self) -> usize {
        if self.is_protected() { sizes::PROTECTION } else { self.authentication_overhead() }
    }

    fn insert_path(&mut self, now: Instant, path: Path) {
        let (id, local, remote) = (path.id, path.local, path.remote);
        self.out.add_path(id);
        if path.flow.needed.spurious_losses || self.recovery.rules.sacks.scope == ReportScope::Time
        {
            self.out.watch_for_spurious_losses();
        }
        self.recovery.reset_path(id);
        self.paths.insert(path);
        self.policies.path_set.added(now, id);
        self.events.push(Event::PathAdded { path: id, local, remote });
        self.refresh_usable(now);
    }

    /// The path on which a packet arrived. The packet carried our verification tag, so it is the
    /// peer's: an unknown address pair becomes a path, to be verified. A server learns its client's
    /// uplinks in this way, and a path survives a NAT that gives it a new port.
    #[inline]
    pub(super) fn path_of(&mut self, now: Instant, pair: AddressPair) -> Option<PathId> {
        match self.paths.find(&pair) {
            Some(id) => Some(id),
            None => self.new_path_of(now, pair),
        }
    }

    #[cold]
    fn new_path_of(&mut self, now: Instant, pair: AddressPair) -> Option<PathId> {
        let AddressPair { local, remote } = pair;
        if self.ends.avoids(local.ip()) || self.is_deleted(remote.ip()) {
            return None;
        }
        let is_other = |p: &&Path| p.pair().differs_in_encapsulation(&pair);
        let other = self.paths.iter().find(is_other).map(|p| p.id);
        if let Some(id) = other {
            self.change_encapsulation(now, id, pair);
            return Some(id);
        }
        // The local address of a listed remote address was a guess, so correct it. If the
        // application gave candidates, its own pairs are no guesses.
        let is_known = self.candidates.are_given();
        let guess = |p: &&mut Path| {
            p.remote == remote
                && p.liveness.last_heard.is_none()
                && !(is_known && p.origin.is_named())
        };
        let guessed = self.paths.iter_mut().find(guess).map(|p| {
            p.local = local;
            p.id
        });
        if let Some(path) = guessed {
            self.events.push(Event::PathAdded { path, local, remote });
            self.take_local_rank(now, path);
            self.bar_paths(now);
            return Some(path);
        }
        let is_candidate = self.candidates.is_waiting(local, remote);
        let id = if self.make_room(now) {
            self.create_path(now, pair, Origin::Learnt)?
        } else if is_candidate {
            self.replace_unanswered(now, local, remote)?
        } else {
            return None;
        };
        if is_candidate && let Some(p) = self.paths.get_mut(id) {
            p.origin.name();
        }
        if self.state.is_open() {
            self.probe_now(now, id);
        }
        Some(id)
    }

    /// Sends on a path as its peer does from now on: in UDP, or over IP itself (RFC 6951 §5.4).
    /// The addresses are as they were, so nothing needs to be verified.
    fn change_encapsulation(&mut self, now: Instant, id: PathId, pair: AddressPair) {
        let AddressPair { local, remote } = pair;
        let link = self.link_mtu(pair);
        let config = self.config_rc();
        let Some(p) = self.paths.get_mut(id) else { return };
        (p.local, p.remote) = (local, remote);
        p.resize(&config);
        self.paths.renew_least_usable();
        if let Some(link) = link {
            self.set_path_link(now, id, link);
        }
        self.candidates.take(local, remote);
        self.events.push(Event::PathAdded { path: id, local, remote });
    }

    /// Adds a path for each address that the peer listed, from a local address of the same family
    /// that is not in use yet, or else from the first.
    pub(super) fn add_peer_addresses(&mut self, now: Instant, addresses: &[IpAddr], port: u16) {
        for &ip in addresses {
            self.ends.peer_lists(ip);
            if self.paths.iter().any(|p| p.remote.ip() == ip) {
                continue;
            }
            let is_used = |a| self.paths.iter().any(|p| p.local == a);
            let remote = SocketAddr::new(ip, port);
            if let Some(local) = self.ends.local_for(remote, is_used) {
                self.create_path(now, AddressPair { local, remote }, Origin::Listed);
            }
        }
    }

    /// True if the peer listed this address, the application named it, or it is verified.
    pub(super) fn knows(&self, ip: IpAddr) -> bool {
        let known = |p: &Path| p.origin.is_named() || p.liveness.state != PathState::Unconfirmed;
        self.ends.has_peer_listed(ip) || self.paths.iter().any(|p| p.remote.ip() == ip && known(p))
    }

    /// True for an unverified path of an open association that was learnt from an address which
    /// neither end named.
    pub(super) fn is_stranger(&self, id: PathId) -> bool {
        self.state.is_open()
            && self.paths.get(id).is_some_and(|p| {
                p.origin.is_learnt()
                    && p.liveness.state == PathState::Unconfirmed
                    && !self.knows(p.remote.ip())
            })
    }

    /// True for an unverified path of an open association that was learnt from the peer's packets.
    pub(super) fn is_to_verify(&self, id: PathId) -> bool {
        self.state.is_open() && self.paths.get(id).is_some_and(is_to_be_known)
    }

    // ---- States ----

    pub(super) fn confirm_path(&mut self, now: Instant, id: PathId) {
        if self.paths.get(id).is_some_and(|p| p.liveness.state == PathState::Unconfirmed) {
            if let Some(p) = self.paths.get_mut(id) {
                p.liveness.error_count = 0;
                p.liveness.last_active = now;
            }
            self.end_trial(id);
            self.set_path_state(now, id, PathState::Active);
            self.path_answers(now, id, None);
            self.start_size_search(now, id);
            self.measure_primary(now);
            // Acknowledgements that took other paths while this address was unverified may be lost.
            if let Some(r) = self.rx.if_last_data_on(id) {
                r.delayed.demand_now();
            }
            if let Some(old) = self.predecessor(id) {
                self.probe_now(now, old);
            }
        }
    }

    /// The path that a newly learnt one may replace: it has the same hosts and has been silent
    /// since. Either it is idle, or a NAT has given it a new port. A probe tells which.
    fn predecessor(&self, new: PathId) -> Option<PathId> {
        let new = self.paths.get(new).filter(|p| p.origin.is_learnt())?;
        let silent = |p: &&Path| p.liveness.last_heard.is_some_and(|at| at < new.created);
        self.paths.iter().filter(silent).find(|p| is_same_way(p, new)).map(|p| p.id)
    }

    /// Follows a NAT that gave a path a new port, after a timeout on the path. If a path learnt
    /// since has the same hosts, the old path takes its address, keeps its own congestion state,
    /// and the learnt path is removed.
    pub(super) fn follow_rebinding(&mut self, now: Instant, id: PathId) {
        let Some(old) = self.paths.get(id) else { return };
        let follows = |p: &&Path| {
            p.origin.is_learnt()
                && p.liveness.state == PathState::Active
                && p.id != id
                && is_same_way(p, old)
                && old.liveness.last_heard.is_some_and(|at| at < p.created)
        };
        let Some((new, local, remote)) =
            self.paths.iter().find(follows).map(|p| (p.id, p.local, p.remote))
        else {
            return;
        };
        self.remove_path(now, new);
        let Some(p) = self.paths.get_mut(id) else { return };
        p.remote = remote;
        p.liveness.last_heard = Some(now);
        p.liveness.error_count = 0;
        p.liveness.last_active = now;
        self.events.push(Event::PathAdded { path: id, local, remote });
        self.bar_paths(now);
        self.set_path_state(now, id, PathState::Active);
        if let Some(r) = self.rx.receiver.as_mut() {
            r.last_data.get_or_insert(id);
        }
    }

    pub(super) fn set_path_state(&mut self, now: Instant, id: PathId, to: PathState) {
        let Some(p) = self.paths.get_mut(id) else { return };
        let from = p.liveness.state;
        // A late answer does not bring back a local address. If the path seemed to work, the
        // association would wait for ever.
        let is_revived = to == PathState::Active && p.liveness.is_away();
        if from == to || is_revived {
            return;
        }
        p.liveness.state = to;
        p.probing.lost = 0;
        self.events.push(Event::PathState { path: id, from, to });
        match to {
            PathState::PotentiallyFailed => self.probe_now(now, id),
            PathState::Inactive if self.recovery.rules.heartbeats.failed_at_once => {
                self.probe_now(now, id);
            }
            PathState::Active | PathState::Inactive => self.schedule_heartbeat(now, id),
            PathState::Unconfirmed => {}
        }
        if to == PathState::Active {
            self.honour_preference();
        } else {
            self.seek_in_place_of(now, id);
        }
        self.bar_relays(now);
        self.refresh_usable(now);
    }

    /// RFC 7829 §5.2: after enough timeouts another path is primary for good.
    pub(super) fn switch_primary(&mut self, failed: PathId) {
        let Some(limit) = self.config.primary_switchover_max_retrans else { return };
        let over = self.paths.get(failed).is_some_and(|p| p.liveness.error_count > limit);
        let active =
            self.paths.iter().find(|p| p.liveness.state == PathState::Active).map(|p| p.id);
        if over
            && failed == self.primary
            && let Some(active) = active
        {
            self.primary = active;
        }
    }

    /// Asks the path set, the failure policy and the ranks which paths may carry data. Notices when
    /// no path works.
    pub(super) fn refresh_usable(&mut self, now: Instant) {
        self.renew_ranks(now);
        self.settle_path_set(now);
        self.renew_usable(now);
    }

    /// Renews which paths may carry data, after the path set has decided.
    pub(super) fn renew_usable(&mut self, now: Instant) {
        self.renew_ranks(now);
        let any_suppressed = self.paths.iter().any(|p| p.role.set_aside.is_some());
        let fail = &self.policies.fail;
        let views: Vec<_> = self.paths.iter().map(|p| p.view(InUse::default())).collect();
        let others = self.views_of_open(&views);
        for (p, view) in self.paths.iter_mut().zip(&views) {
            let may_carry = !p.liveness.is_silent() && !p.role.is_barred;
            p.role.usable =
                p.role.set_aside.is_none() && may_carry && fail.is_usable(view, &others);
            p.role.usable &= !self.ranks.keep_idle(p.role.rank);
        }
        if any_suppressed && self.paths.iter().all(|p| !p.role.usable) {
            // A suppressed path that has failed may be the only one left.
            for (p, view) in self.paths.iter_mut().zip(&views) {
                let may_carry = !p.liveness.is_silent() && !p.role.is_barred;
                p.role.usable = may_carry && fail.is_usable(view, &others);
            }
        }
        self.tell_ranks();
        if self.config.pmtu_discovery {
            self.paths.renew_least_usable();
        }
        let give_up = Timer::Assoc(AssocTimer::GiveUp);
        let works = |p: &Path| p.liveness.state == PathState::Active && !p.role.is_barred;
        let works = self.paths.iter().any(works);
        match self.config.association_timeout {
            Some(after) if !works && self.state.is_open() => {
                self.timers.start(give_up, now + after)
            }
            _ => self.timers.stop(give_up),
        }
    }

    /// The views of paths that are not barred: a barred path is no reason to do without another.
    pub(super) fn views_of_open<'a>(&self, views: &'a [PathView]) -> Cow<'a, [PathView]> {
        if self.paths.iter().all(|p| !p.role.is_barred) {
            return Cow::Borrowed(views);
        }
        let open = self.paths.iter().zip(views).filter(|(p, _)| !p.role.is_barred);
        Cow::Owned(open.map(|(_, view)| view.clone()).collect())
    }
}

/// True for a path learnt from the peer's packets and not verified yet.
pub(super) fn is_to_be_known(p: &Path) -> bool {
    p.origin.is_learnt() && p.liveness.state == PathState::Unconfirmed
}

/// True for two paths that differ in the peer's port only, as before and after a NAT forgot a
/// mapping.
fn is_same_way(a: &Path, b: &Path) -> bool {
    a.id != b.id && a.local == b.local && a.remote.ip() == b.remote.ip()
}
