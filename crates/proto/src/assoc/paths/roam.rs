//! Addresses that come and go while an association lasts: a host is renumbered, or changes its
//! network.
//!
//! The side whose address changes knows it and says so: [`Association::local_gone`], then
//! [`Association::add_path`] from the new address, and [`Association::network_changed`] when routes
//! may have changed. The other side learns of it by packets with its verification tag from an
//! unknown address. Either side verifies the new path by a heartbeat's nonce before it sends
//! anything else there (RFC 9260 §5.4), so that nobody can take over an association by guessing or
//! repeating a tag.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use crate::assoc::{AssocTimer, Association, PathTimer, Timer};
use crate::datagram::AddressPair;
use crate::event::Event;
use crate::path::{Address, Path};
use crate::time::Instant;
use crate::view::{PathId, PathState};

/// Shortest time between two heartbeats that reported changes draw on one path. A path on which a
/// packet arrived within this time gets none.
const PROBE_GAP: Duration = Duration::from_millis(20);

impl Association {
    /// Takes note that this host lost a local transport address. Its paths are removed, and their
    /// outstanding data moves to the others. If no other path is left, the last one stays and sends
    /// nothing until another path works or [`add_path`](Self::add_path) reports the address back.
    /// Meanwhile nothing backs off; `association_timeout` limits how long.
    pub fn local_gone(&mut self, now: Instant, local: SocketAddr) {
        self.ends.local_gone(local);
        self.candidates.local_gone(local);
        if self.closed().is_some() {
            return;
        }
        self.tell_of_loss(local);
        for id in self.paths.ids() {
            let from_there = |p: &&Path| p.local == local && !p.liveness.is_away();
            if self.paths.get(id).filter(from_there).is_none() {
                continue;
            }
            self.events.push(Event::AddressGone { path: id, local });
            // While the association is being opened there is no data to move: INIT takes the paths
            // in turn.
            let has_other =
                self.paths.iter().any(|p| p.id != id && !p.liveness.is_away() && p.local != local);
            if has_other { self.remove_path(now, id) } else { self.park(now, id) }
        }
        self.reroute_addresses(now);
    }

    /// Moves a path to another local address, as when routes prefer another source: a path from
    /// there to the same remote address is added, and the old one is removed once the new one is
    /// verified. `None` if there is no such path, no room, or nothing to move.
    pub fn move_path(&mut self, now: Instant, id: PathId, local: SocketAddr) -> Option<PathId> {
        let remote = self.paths.get(id)?.remote;
        let known = self.paths.find(&AddressPair { local, remote });
        let new = self.add_path(now, local, remote).or(known).filter(|new| *new != id)?;
        if let Some(p) = self.paths.get_mut(new) {
            p.liveness.supersede(false);
        }
        if let Some(old) = self.paths.get_mut(id) {
            old.liveness.supersede(true);
        }
        if self.paths.get(new).is_some_and(|p| p.liveness.state == PathState::Active) {
            self.remove_path(now, id);
        }
        Some(new)
    }

    /// Sets the local addresses that must not be used, such as those of interfaces whose routes a
    /// tunnel (VPN) has taken over. The peer may go on sending to them, but no packet creates a
    /// path from there, no heartbeat is answered without a path, and no candidate is tried. The
    /// caller [moves](Self::move_path) existing paths.
    pub fn avoid_locals(&mut self, locals: BTreeSet<IpAddr>) {
        self.candidates.avoid(&locals);
        self.ends.avoid(locals);
    }

    /// Takes note that routes, interfaces or addresses have changed, so that failed paths may work
    /// again. Every path that is not known to work at this moment is probed at once, and its
    /// back-off ends. An attempt to open the association is repeated. It may be called often: a
    /// path is probed at most once in 20 ms.
    pub fn network_changed(&mut self, now: Instant) {
        if self.closed().is_some() {
            return;
        }
        self.try_again(now);
        if let Some(opening) = self.state.opening_mut() {
            let t1 = Timer::Assoc(AssocTimer::T1);
            let recent = opening.repeated_at.is_some_and(|at| now - at < PROBE_GAP);
            if self.timers.is_running(t1) && !recent {
                opening.repeated_at = Some(now);
                self.timers.set(t1, now);
            }
            return;
        }
        for id in self.paths.ids() {
            self.ask_after_change(now, id);
        }
    }

    fn ask_after_change(&mut self, now: Instant, id: PathId) {
        let Some(p) = self.paths.get_mut(id).filter(|p| !p.liveness.is_silent()) else { return };
        let is_fine = p.liveness.state == PathState::Active
            && p.liveness.error_count == 0
            && p.liveness.last_heard.is_some_and(|at| now - at <= PROBE_GAP);
        let is_asked = p.probing.probe.is_some_and(|probe| now - probe.sent_at < PROBE_GAP);
        if is_fine || is_asked || p.probing.is_due {
            return;
        }
        p.rto.end_back_off();
        p.probing.lost = 0;
        p.probing.is_after_change = true;
        p.probing.probe = None;
        let at = now + p.rto.rto();
        self.timers.bring_forward(Timer::Path(id, PathTimer::T3Rtx), at);
        self.probe_now(now, id);
    }

    /// Keeps the last path although its address is gone, without anything in flight.
    fn park(&mut self, now: Instant, id: PathId) {
        let Some(p) = self.paths.get_mut(id) else { return };
        p.liveness.address = Address::Away;
        p.probing.is_due = false;
        p.probing.probe = None;
        p.probing.answered = Some(now);
        self.out.mark_path(id, None);
        self.out.forget_lost(id);
        if self.state.is_open()
            && self.paths.get(id).is_some_and(|p| p.liveness.state == PathState::Active)
        {
            self.set_path_state(now, id, PathState::Inactive);
        }
        self.timers.stop_path(id);
        self.refresh_usable(now);
    }

    /// Lets a new path take over from one whose address is gone, while the association is being
    /// opened.
    pub(crate) fn replace_while_opening(&mut self, now: Instant) {
        let away: Vec<_> =
            self.paths.iter().filter(|p| p.liveness.is_away()).map(|p| p.id).collect();
        if !self.state.is_open() && !away.is_empty() {
            away.into_iter().for_each(|id| self.remove_path(now, id));
            self.network_changed(now);
        }
    }

    /// Brings a path back whose local address returned. True if there is such a path.
    pub(crate) fn come_back(&mut self, now: Instant, id: PathId) -> bool {
        let Some(p) = self.paths.get_mut(id) else { return false };
        if !p.liveness.is_away() {
            p.liveness.supersede(false);
            return false;
        }
        p.liveness.address = Address::Ours;
        p.rto.end_back_off();
        p.liveness.error_count = 0;
        let (path, local, remote) = (p.id, p.local, p.remote);
        self.tell_of_path(id);
        self.events.push(Event::PathAdded { path, local, remote });
        self.refresh_usable(now);
        true
    }

    /// Makes room for another path by removing one that does not work: preferably one that the
    /// application did not give, and of those the one silent for longest. True if there is room.
    pub(crate) fn make_room(&mut self, now: Instant) -> bool {
        if self.paths.len() < self.config.max_paths as usize {
            return true;
        }
        // A path that the application gave must have had time to be verified.
        let is_idle = |p: &&Path| {
            let has_failed = p.liveness.state != PathState::Active
                && (!p.origin.is_named() || p.liveness.error_count > p.liveness.max_retrans);
            p.liveness.is_away() || (has_failed && p.id != self.primary)
        };
        let idle = self.paths.iter().filter(is_idle);
        let oldest =
            idle.min_by_key(|p| (p.origin.is_named(), p.liveness.last_heard)).map(|p| p.id);
        if self.paths.len() <= 1 {
            return false;
        }
        let Some(oldest) = oldest else { return false };
        self.remove_path(now, oldest);
        true
    }

    /// A heartbeat has shown that a doubtful path works. Paths whose address is gone, or that this
    /// one replaces, are removed. If no other path works, outstanding data is sent again at once,
    /// because T3-rtx may have backed off up to `rto_max`.
    ///
    /// `asked_at` is set if the answer is late and newer heartbeats were sent: then only data sent
    /// on that path before it is taken for lost. Later data may arrive as late as the answer did.
    pub(crate) fn path_answers(&mut self, now: Instant, id: PathId, asked_at: Option<Instant>) {
        let Some(remote) =
            self.paths.get(id).filter(|p| !p.liveness.is_superseded()).map(|p| p.remote)
        else {
            return;
        };
        let is_over =
            |p: &&Path| p.liveness.is_away() || (p.liveness.is_superseded() && p.remote == remote);
        let over: Vec<_> = self.paths.iter().filter(is_over).map(|p| p.id).collect();
        for path in over.into_iter().filter(|path| *path != id) {
            self.remove_path(now, path);
        }
        if !self.policies.in_doubt.carry_when_answered || !self.state.may_send_data() {
            return;
        }
        let works = |p: &Path| {
            p.liveness.state == PathState::Active && p.liveness.error_count == 0 && p.id != id
        };
        if self.paths.iter().any(works) {
            return;
        }
        for path in self.paths.ids() {
            // A path that answers repeatedly must not keep T3-rtx of a dead path from expiring.
            let carries_on =
                path != id && self.paths.get(path).is_some_and(|p| p.liveness.was_carried);
            if self.out.chunks_in_flight(path) > 0 && !carries_on {
                if path != id
                    && let Some(other) = self.paths.get_mut(path)
                {
                    other.liveness.was_carried = true;
                }
                let sent_since = asked_at.filter(|_| path == id);
                self.out.mark_path(path, sent_since);
                self.out.forget_lost(path);
                self.renew_t3(now, path, true);
            }
        }
        self.recovery.past_cwnd.allow_if(self.out.may_have_marked());
    }

    /// Removes a path that a stranger's packet made, if it has lost more heartbeats than
    /// `path_max_retrans`. Returns false if the path stays.
    pub(super) fn forget_stranger(&mut self, now: Instant, id: PathId) -> bool {
        let is_over = |p: &Path| p.liveness.error_count > p.liveness.max_retrans;
        let is_over = self.paths.get(id).is_some_and(is_over);
        if !is_over || !self.is_stranger(id) || self.paths.len() < 2 {
            return false;
        }
        self.remove_path(now, id);
        true
    }
}
