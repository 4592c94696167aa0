//! Paths come, are verified, fail, recover and go; and heartbeats, which find that out.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};

use super::timeout::TimeoutCause;
use super::{AssocTimer, Association, PathTimer, Timer};
use crate::config::Config;
use crate::event::Event;
use crate::path::{InUse, Path, PathId, PathState, Probe};
use crate::policy::fail::InDoubt;
use crate::policy::recovery::HeartbeatRules;
use crate::time::Instant;

/// Length of our Heartbeat Information: a nonce and the path.
pub(super) const PROBE_LEN: usize = 12;

/// Facts on the heartbeats of all paths together; the rest is in the paths.
#[derive(Debug, Default)]
pub(super) struct Heartbeats {
    /// False if no path's is due.
    pub(super) may_be_due: bool,
    /// When one was last answered on other paths than its own.
    pub(super) answered_elsewhere: Option<Instant>,
}

impl Association {
    /// Adds a path between two transport addresses; it is verified before it carries data (RFC 9260
    /// §5.4), and INIT takes it in its turn. A path whose address was [gone](Self::local_gone)
    /// comes back. Returns `None` if it exists, or if there are `max_paths` and none of them is
    /// dead.
    pub fn add_path(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Option<PathId> {
        if self.closed().is_some() {
            return None;
        }
        let id = match self.paths.find(&local, &remote) {
            Some(id) => self.come_back(now, id).then_some(id)?,
            None if self.make_room(now) => self.create_path(now, (local, remote), false)?,
            None => return None,
        };
        if let Some(path) = self.paths.get_mut(id) {
            path.given = true;
        }
        match self.state.is_open() {
            true => {
                self.probe_now(now, id);
                self.start_size_search(now, id);
            }
            false => self.replace_while_opening(now),
        }
        Some(id)
    }

    /// Removes a path; what is outstanding on it is retransmitted on the others. The last path
    /// stays, and so does the last whose address is there.
    pub fn remove_path(&mut self, now: Instant, id: PathId) {
        let Some(path) = self.paths.get(id).filter(|_| self.paths.len() > 1) else { return };
        let has_other = self.paths.iter().any(|p| p.id != id && !p.is_away);
        if !path.is_away && !has_other {
            return;
        }
        self.paths.remove(id);
        self.recovery.reset_path(id);
        self.timers.stop_path(id);
        let rest: Vec<_> =
            self.paths.iter().map(|p| (p.state != PathState::Active, p.id)).collect();
        let Some(&(_, heir)) = rest.iter().min() else { return };
        // Also if it carried no data: it may have what a path left that was removed before it.
        self.out.abandon_path(id, heir);
        if self.primary == id {
            self.primary = heir;
        }
        if let Some(r) = self.rx.if_last_data_on(id) {
            r.last_data = None;
        }
        self.policies.path_set.removed(id);
        self.forget_sack_path(id);
        self.events.push(Event::PathRemoved { path: id });
        self.refresh_usable(now);
    }

    pub(super) fn create_path(
        &mut self,
        now: Instant,
        pair: (SocketAddr, SocketAddr),
        learnt: bool,
    ) -> Option<PathId> {
        let (local, remote) = pair;
        let full = self.paths.len() >= self.config.max_paths as usize;
        if full || self.paths.find(&local, &remote).is_some() {
            return None;
        }
        let id = self.paths.free_id();
        let peer_rwnd = self.peer_window.a_rwnd_u32();
        let link_mtu = self.size_search.link_mtu(local);
        let mut path = Path::new(id, pair, &self.config, peer_rwnd, link_mtu, now);
        path.learnt = learnt;
        self.out.add_path(id);
        self.recovery.reset_path(id);
        self.paths.insert(path);
        self.policies.path_set.added(now, id);
        self.events.push(Event::PathAdded { path: id, local, remote });
        self.refresh_usable(now);
        Some(id)
    }

    /// The path on which a packet arrived. The packet carried our verification tag, so it is the peer's:
    /// an address pair that was not known becomes a path, to be verified. This is how a server learns of
    /// its client's uplinks, and how a path survives a NAT that gives it a new port.
    #[inline]
    pub(super) fn path_of(
        &mut self,
        now: Instant,
        (local, remote): (SocketAddr, SocketAddr),
    ) -> Option<PathId> {
        match self.paths.find(&local, &remote) {
            Some(id) => Some(id),
            None => self.new_path_of(now, (local, remote)),
        }
    }

    #[cold]
    fn new_path_of(
        &mut self,
        now: Instant,
        (local, remote): (SocketAddr, SocketAddr),
    ) -> Option<PathId> {
        // The pairing of a listed address with one of ours was a guess: correct it.
        let guess = |p: &&mut Path| p.remote == remote && p.last_heard.is_none();
        if let Some(p) = self.paths.iter_mut().find(guess) {
            p.local = local;
            let path = p.id;
            self.events.push(Event::PathAdded { path, local, remote });
            return Some(path);
        }
        if !self.make_room(now) {
            return None;
        }
        let id = self.create_path(now, (local, remote), true)?;
        if self.state.is_open() {
            self.probe_now(now, id);
        }
        Some(id)
    }

    /// Adds a path for each address that the peer listed, from a local address of the same family that is
    /// not in use yet, or else from the first.
    pub(super) fn add_peer_addresses(&mut self, now: Instant, addresses: &[IpAddr], port: u16) {
        for &ip in addresses {
            self.ends.peer_lists(ip);
            if self.paths.iter().any(|p| p.remote.ip() == ip) {
                continue;
            }
            let is_used = |a| self.paths.iter().any(|p| p.local == a);
            if let Some(local) = self.ends.local_for(ip, is_used) {
                self.create_path(now, (local, SocketAddr::new(ip, port)), false);
            }
        }
    }

    /// The peer listed this address, the application named it, or it is verified.
    pub(super) fn knows(&self, ip: IpAddr) -> bool {
        let known = |p: &Path| p.given || p.state != PathState::Unconfirmed;
        self.ends.has_peer_listed(ip) || self.paths.iter().any(|p| p.remote.ip() == ip && known(p))
    }

    /// A path of an open association that was learnt from an address nobody named, and is not verified.
    pub(super) fn is_stranger(&self, id: PathId) -> bool {
        self.state.is_open()
            && self.paths.get(id).is_some_and(|p| {
                p.learnt && p.state == PathState::Unconfirmed && !self.knows(p.remote.ip())
            })
    }

    /// A path of an open association that was learnt from the peer's packets and is not verified.
    pub(super) fn is_to_verify(&self, id: PathId) -> bool {
        self.state.is_open() && self.paths.get(id).is_some_and(is_to_be_known)
    }

    // ---- States ----

    pub(super) fn confirm_path(&mut self, now: Instant, id: PathId) {
        if self.paths.get(id).is_some_and(|p| p.state == PathState::Unconfirmed) {
            if let Some(p) = self.paths.get_mut(id) {
                p.error_count = 0;
                p.last_active = now;
            }
            self.set_path_state(now, id, PathState::Active);
            self.path_answers(now, id);
            self.start_size_search(now, id);
            self.measure_primary(now);
            // What was acknowledged elsewhere while this address was not verified may not have arrived.
            if let Some(r) = self.rx.if_last_data_on(id) {
                r.delayed.demand_now();
            }
            if let Some(old) = self.predecessor(id) {
                self.probe_now(now, old);
            }
        }
    }

    /// The path that a newly learnt one may replace: same host, same address of ours, silent since. It is
    /// either idle, or gone because a NAT gave it a new port. A probe tells.
    fn predecessor(&self, new: PathId) -> Option<PathId> {
        let new = self.paths.get(new).filter(|p| p.learnt)?;
        let silent = |p: &&Path| p.last_heard.is_some_and(|at| at < new.created);
        self.paths.iter().filter(silent).find(|p| is_same_way(p, new)).map(|p| p.id)
    }

    /// After a timeout on a path: if a path learnt since takes the same way, this one goes on behind the new
    /// port of its NAT, with its congestion state, and the learnt one is not needed.
    pub(super) fn follow_rebinding(&mut self, now: Instant, id: PathId) {
        let Some(old) = self.paths.get(id) else { return };
        let follows = |p: &&Path| {
            p.learnt
                && p.state == PathState::Active
                && p.id != id
                && is_same_way(p, old)
                && old.last_heard.is_some_and(|at| at < p.created)
        };
        let Some((new, local, remote)) =
            self.paths.iter().find(follows).map(|p| (p.id, p.local, p.remote))
        else {
            return;
        };
        self.remove_path(now, new);
        let Some(p) = self.paths.get_mut(id) else { return };
        p.remote = remote;
        p.last_heard = Some(now);
        p.error_count = 0;
        p.last_active = now;
        self.events.push(Event::PathAdded { path: id, local, remote });
        self.set_path_state(now, id, PathState::Active);
        if let Some(r) = self.rx.receiver.as_mut() {
            r.last_data.get_or_insert(id);
        }
    }

    pub(super) fn set_path_state(&mut self, now: Instant, id: PathId, to: PathState) {
        let Some(p) = self.paths.get_mut(id) else { return };
        let from = p.state;
        if from == to {
            return;
        }
        p.state = to;
        p.probes_lost = 0;
        self.events.push(Event::PathState { path: id, from, to });
        match to {
            PathState::PotentiallyFailed => self.probe_now(now, id),
            PathState::Inactive if self.recovery.rules.heartbeats.failed_at_once => {
                self.probe_now(now, id);
            }
            PathState::Active | PathState::Inactive => self.schedule_heartbeat(now, id),
            PathState::Unconfirmed => {}
        }
        self.refresh_usable(now);
    }

    /// RFC 7829 §5.2: after enough timeouts another path is primary for good.
    pub(super) fn switch_primary(&mut self, failed: PathId) {
        let Some(limit) = self.config.primary_switchover_max_retrans else { return };
        let over = self.paths.get(failed).is_some_and(|p| p.error_count > limit);
        let active = self.paths.iter().find(|p| p.state == PathState::Active).map(|p| p.id);
        if let Some(active) = active.filter(|_| over && failed == self.primary) {
            self.primary = active;
        }
    }

    /// Asks the path set and the failure policy which paths may carry data, and watches for "none
    /// works".
    pub(super) fn refresh_usable(&mut self, now: Instant) {
        self.settle_path_set(now);
        self.renew_usable(now);
    }

    /// The same after the path set has decided.
    pub(super) fn renew_usable(&mut self, now: Instant) {
        let any_suppressed = self.paths.iter().any(|p| p.suppressed.is_some());
        let fail = &self.policies.fail;
        let views: Vec<_> = self.paths.iter().map(|p| p.view(InUse::default())).collect();
        for (p, view) in self.paths.iter_mut().zip(&views) {
            p.usable = p.suppressed.is_none() && !p.is_away && fail.is_usable(view, &views);
        }
        if any_suppressed && self.paths.iter().all(|p| !p.usable) {
            // A suppressed path that has failed may be all there is.
            for (p, view) in self.paths.iter_mut().zip(&views) {
                p.usable = !p.is_away && fail.is_usable(view, &views);
            }
        }
        if self.config.pmtu_discovery {
            self.paths.renew_least_usable();
        }
        let give_up = Timer::Assoc(AssocTimer::GiveUp);
        let works = self.paths.iter().any(|p| p.state == PathState::Active);
        match self.config.association_timeout {
            Some(after) if !works && self.state.is_open() => {
                self.timers.start(give_up, now + after)
            }
            _ => self.timers.stop(give_up),
        }
    }

    // ---- Heartbeats ----

    /// Starts the verification of every path the handshake did not verify (RFC 9260 §5.4).
    pub(super) fn verify_paths(&mut self, now: Instant) {
        let burst = self.config.hb_max_burst as usize;
        let unconfirmed: Vec<_> = self
            .paths
            .iter()
            .filter(|p| p.state == PathState::Unconfirmed)
            .map(|p| (p.id, p.rto.rto()))
            .collect();
        for (n, (id, rto)) in unconfirmed.into_iter().enumerate() {
            match u32::try_from(n / burst) {
                Ok(0) => self.probe_now(now, id),
                round => {
                    let at = now + rto * round.unwrap_or(u32::MAX);
                    self.timers.set(Timer::Path(id, PathTimer::Heartbeat), at);
                }
            }
        }
    }

    /// RFC 9260 §8.3: none are sent after SHUTDOWN or SHUTDOWN ACK, but those that verify an address which
    /// the peer's packets come from since then: without it nothing that they say would count.
    pub(super) fn stop_heartbeats(&mut self) {
        self.stop_size_searches();
        for p in self.paths.iter_mut().filter(|p| !is_to_be_known(p)) {
            self.timers.stop(Timer::Path(p.id, PathTimer::Heartbeat));
            p.heartbeat_due = false;
            p.probe = None;
        }
    }

    pub(super) fn probe_now(&mut self, now: Instant, id: PathId) {
        if self.state.is_ending() && !self.paths.get(id).is_some_and(is_to_be_known) {
            return;
        }
        // What made it worth asking may have ended the association.
        if self.closed().is_some() {
            return;
        }
        if let Some(p) = self.paths.get_mut(id).filter(|p| !p.is_away) {
            p.heartbeat_due = true;
            self.heartbeats.may_be_due = true;
            let at = now + p.rto.rto();
            self.timers.set(Timer::Path(id, PathTimer::Heartbeat), at);
        }
    }

    /// Probes a path at once after T3-rtx expired on it, if there is another (HAR: retransmission policies
    /// paper, section 4.1): the answer ends its back-off.
    pub(super) fn heartbeat_after_rto(&mut self, now: Instant, id: PathId) {
        let has_other = self.paths.iter().any(|p| p.id != id && p.usable);
        let Some(p) = self.paths.get_mut(id).filter(|p| has_other && !p.heartbeat_due) else {
            return;
        };
        p.take_probe();
        self.probe_now(now, id);
    }

    /// The peer's packets arrive on a path that has failed: it may work again. An earlier question gets its
    /// RTO to be answered first, for only the last one can be.
    pub(super) fn probe_if_failed(&mut self, now: Instant, id: PathId) {
        let Some(p) = self.paths.get_mut(id) else { return };
        let has_failed = matches!(p.state, PathState::PotentiallyFailed | PathState::Inactive);
        // A peer that returned asks by its packets: what it was asked while it was away is no
        // question, and it can still answer it.
        let waits = match p.rto.srtt().filter(|_| self.policies.in_doubt.carry_when_answered) {
            Some(srtt) => srtt,
            None => p.rto.rto(),
        };
        let is_asked = p.probe.is_some_and(|probe| now - probe.sent_at < waits);
        if has_failed && !is_asked && !p.heartbeat_due {
            p.take_probe();
            self.probe_now(now, id);
        }
    }

    /// The Heartbeat Information for a probe that is sent now.
    pub(super) fn new_probe(&mut self, now: Instant, id: PathId) -> Vec<u8> {
        let nonce = self.rng.next_u64();
        if self.recovery.rules.heartbeats.from_sending {
            self.begin_heartbeat_interval(now, id);
        }
        let in_outage = self.is_probed_with_data(id);
        if let Some(p) = self.paths.get_mut(id) {
            p.heartbeat_due = false;
            p.last_heartbeat = Some(now);
            p.probe = Some(Probe { nonce, sent_at: now });
            let answer_by = match p.state {
                PathState::Active if !in_outage => p.rto.rto(),
                _ => {
                    let rules = &self.recovery.rules.heartbeats;
                    probe_interval(p, &self.config, rules, self.policies.in_doubt)
                }
            };
            self.timers.set(Timer::Path(id, PathTimer::Heartbeat), now + answer_by);
        }
        let mut info = Vec::with_capacity(PROBE_LEN);
        info.put_u64(nonce);
        info.put_u32(id.0.into());
        info
    }

    /// Begins the interval to the next heartbeat of an active path, unless one lasts.
    fn begin_heartbeat_interval(&mut self, now: Instant, id: PathId) {
        let jitter = self.rng.unit() + 0.5;
        let interval = self.config.hb_interval;
        let Some(p) = self.paths.get_mut(id).filter(|p| p.state == PathState::Active) else {
            return;
        };
        if p.heartbeat_interval.is_none_or(|(_, end)| end <= now) {
            p.heartbeat_interval = Some((now, now + interval + p.rto.rto().mul_f64(jitter)));
        }
    }

    /// A heartbeat was sent again in the interval that ends: it takes the place of the next.
    fn was_repeated(&self, id: PathId) -> bool {
        let Some(p) = self.paths.get(id) else { return false };
        let begun = p.heartbeat_interval.map(|(begun, _)| begun);
        p.probe.is_none() && begun.is_some() && p.last_heartbeat > begun && p.probes_lost == 0
    }

    /// When an idle path is probed next: HB.interval + RTO, give or take half an RTO (RFC 9260 §8.3).
    pub(super) fn schedule_heartbeat(&mut self, now: Instant, id: PathId) {
        let jitter = self.rng.unit() + 0.5;
        let is_over = self.state.is_ending() || self.closed().is_some();
        let may_probe = |p: &&Path| !is_over && !p.is_away;
        let Some(p) = self.paths.get(id).filter(may_probe) else { return };
        let ends = p.heartbeat_interval.map(|(_, end)| end).filter(|end| *end > now);
        if let Some(end) = ends.filter(|_| p.state == PathState::Active && self.config.heartbeats) {
            self.timers.set(Timer::Path(id, PathTimer::Heartbeat), end);
            return;
        }
        let mut after = self.config.hb_interval + p.rto.rto().mul_f64(jitter);
        if p.state != PathState::Active {
            let hurries = self.is_probed_with_data(id);
            let least = if hurries { Duration::ZERO } else { p.rto.rto() };
            let rules = &self.recovery.rules.heartbeats;
            let interval = probe_interval(p, &self.config, rules, self.policies.in_doubt);
            after = after.min(interval.max(least));
        }
        let timer = Timer::Path(id, PathTimer::Heartbeat);
        if p.state == PathState::Active && !self.config.heartbeats {
            self.timers.stop(timer);
        } else {
            self.timers.set(timer, now + after);
        }
    }

    pub(super) fn on_heartbeat_timer(&mut self, now: Instant, id: PathId) {
        if !self.state.is_open() {
            return;
        }
        let counts = !self.counts_elsewhere(now, id);
        let Some(p) = self.paths.get_mut(id) else { return };
        if let Some(probe) = p.take_probe() {
            p.probes_lost = p.probes_lost.saturating_add(1);
            if counts && p.timed_out.data.is_none_or(|at| at <= probe.sent_at) {
                self.count_timeout(now, id, TimeoutCause::Heartbeat);
            }
        }
        if self.forget_stranger(now, id) {
            return;
        }
        let Some(p) = self.paths.get(id).filter(|_| self.state.is_open()) else { return };
        // Nor is a path idle whose peer answers probes of its window: their back-off is not to be ended.
        let sends_new = p.last_new_data.is_some_and(|at| now - at < self.config.hb_interval);
        let busy = sends_new || self.peer_window.is_probe_answered();
        let carries_data = p.usable && self.out.chunks_in_flight(id) > 0;
        let (busy, carries_data) = match self.is_probed_with_data(id) {
            true => (false, false),
            false => (busy, carries_data),
        };
        match p.state {
            // RFC 9260 §8.3: only idle paths are probed, those without chunks that measure their RTT.
            // Retransmissions do not, so a path that carries nothing else is idle.
            PathState::Active if busy => self.schedule_heartbeat(now, id),
            PathState::Active if self.was_repeated(id) => {
                self.begin_heartbeat_interval(now, id);
                self.schedule_heartbeat(now, id);
            }
            PathState::Active => self.probe_now(now, id),
            // T3-rtx watches a path that carries data as the last resort; a probe beside it would count each
            // failure twice.
            _ if carries_data => self.schedule_heartbeat(now, id),
            _ => self.probe_now(now, id),
        }
    }

    pub(super) fn on_heartbeat_ack(&mut self, now: Instant, info: &Bytes) {
        let mut info = info.clone();
        if info.len() != PROBE_LEN {
            return;
        }
        let nonce = info.get_u64();
        let Ok(id) = u8::try_from(info.get_u32()).map(PathId) else { return };
        if self.on_size_answer(now, id, nonce) {
            return;
        }
        let config = self.config_rc();
        let stuck = self.stuck_paths(id);
        let Some(p) = self.paths.get_mut(id) else { return };
        let Some(probe) = p.probe_with(nonce) else { return };
        if p.is_away {
            return;
        }
        // Since it was asked nothing else has shown that it works.
        let is_news = std::mem::take(&mut p.is_in_doubt) && p.last_active < probe.sent_at;
        let was_in_doubt = p.state != PathState::Active || p.error_count > 0 || is_news;
        p.probe = None;
        p.late_probes.clear();
        self.recovery.policy.on_heartbeat_ack();
        p.rto.sample(now - probe.sent_at);
        p.error_count = 0;
        p.probes_lost = 0;
        p.last_active = now;
        self.error_count = 0;
        let state = p.state;
        if let Some(packets) = self.policies.fail.recovery_cwnd(state) {
            p.one_packet = false;
            p.window.cwnd = packets as usize * p.limits(&config).packet;
        }
        match state {
            PathState::Unconfirmed => self.confirm_path(now, id),
            PathState::PotentiallyFailed | PathState::Inactive => {
                self.set_path_state(now, id, PathState::Active);
            }
            PathState::Active => self.schedule_heartbeat(now, id),
        }
        self.end_outage(now, &stuck, (id, probe.sent_at));
        if was_in_doubt && state != PathState::Unconfirmed {
            self.path_answers(now, id);
        }
    }
}

/// Learnt from the peer's packets and not verified yet.
fn is_to_be_known(p: &Path) -> bool {
    p.learnt && p.state == PathState::Unconfirmed
}

/// Two paths that differ in the peer's port only, as before and after a NAT forgot a mapping.
fn is_same_way(a: &Path, b: &Path) -> bool {
    a.id != b.id && a.local == b.local && a.remote.ip() == b.remote.ip()
}

/// The time between probes of a path that is not active: its RTO, which backs off, unless the
/// configuration asks for quicker ones. Never quicker than an answer can come.
fn probe_interval(
    p: &Path,
    config: &Config,
    rules: &HeartbeatRules,
    in_doubt: InDoubt,
) -> Duration {
    let rto = p.rto.rto();
    let waits = p.state == PathState::Inactive && !rules.failed_at_once;
    let slow = if waits { rto + config.hb_interval } else { rto };
    let doubled = |first: Duration| first.saturating_mul(1 << p.probes_lost.min(16));
    let Some(srtt) = p.rto.srtt() else {
        // A network that one has just come to may lose the first packets.
        let is_new = p.given && p.error_count <= config.path_max_retrans;
        let first = config.hb_first_probe.filter(|_| is_new && in_doubt.carry_when_answered);
        return first.map_or(slow, |first| slow.min(doubled(first)));
    };
    let first = config.hb_first_probe.map_or(Duration::MAX, doubled);
    let most = config.hb_probe_max.unwrap_or(Duration::MAX);
    slow.min(first.min(most).max(2 * srtt))
}
