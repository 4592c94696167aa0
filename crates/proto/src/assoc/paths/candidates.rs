//! Candidate pairs (RFC 8445 §6.1.2): pairs of a local and a remote address that the application
//! gave in addition to its paths. Some addresses that a peer lists may be out of reach, such as the
//! address of a bridge on its host, and nobody can tell which. A path that is not verified in time
//! (RFC 9260 §5.4) therefore tries the next remote address from the same local one, and keeps the
//! first pair that answers.
//!
//! Without candidates a trial changes nothing; its end only produces an event.

use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use smallvec::SmallVec;

use crate::assoc::open::cookie::MAX_ADDRESSES;
use crate::assoc::send::control::Control;
use crate::assoc::state::State;
use crate::assoc::{AssocTimer, Association, Timer};
use crate::datagram::AddressPair;
use crate::event::Event;
use crate::path::Path;
use crate::time::Instant;
use crate::view::{PathId, PathState};

/// Time in which a path must answer before a candidate takes its place. Nearly all round trips of
/// the Internet are shorter, even with one retransmission. A longer one only costs time: a late
/// answer brings a replaced pair back.
const TRIAL: Duration = Duration::from_secs(1);

/// Trials per pair, so that the whole search is bounded. There is more than one because packets get
/// lost, and a network may need some seconds after a host joins it.
const MAX_TRIES: u8 = 3;

/// Most candidates, so that a peer that invents addresses costs little memory and time.
const MAX_CANDIDATES: usize = 64;

/// A pair of addresses and its failed trials.
#[derive(Copy, Clone, Debug)]
struct Pair {
    local: SocketAddr,
    remote: SocketAddr,
    /// The pair's place in the application's order: paths come before candidates.
    order: (Role, u32),
    /// Trials that brought no answer.
    tries: u8,
    /// The application was told that the pair does not answer.
    is_told: bool,
}

impl Pair {
    fn addresses(&self) -> AddressPair {
        AddressPair { local: self.local, remote: self.remote }
    }
}

/// The role in which the application gave a pair.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    Path,
    Candidate,
}

/// The trial of a path that the application gave.
#[derive(Copy, Clone, Debug)]
struct Trial {
    path: PathId,
    pair: Pair,
    /// When the trial ends. `None` if it ended without an answer and no candidate took its place,
    /// or while no answer is possible.
    ends: Option<Instant>,
}

/// The candidates of an association, and the trials of its paths.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// Pairs that are not paths of the application now, in the order in which they are tried.
    waiting: VecDeque<Pair>,
    /// The trials of paths that are not verified yet.
    trials: Vec<Trial>,
    /// Number of pairs given so far.
    pairs: u32,
    are_given: bool,
}

impl Candidates {
    /// True once the application has given a candidate.
    pub(crate) fn are_given(&self) -> bool {
        self.are_given
    }

    pub(crate) fn is_waiting(&self, local: SocketAddr, remote: SocketAddr) -> bool {
        self.waiting.iter().any(|pair| (pair.local, pair.remote) == (local, remote))
    }

    /// True if a candidate has this remote address.
    pub(crate) fn is_waiting_for(&self, remote: SocketAddr) -> bool {
        self.waiting.iter().any(|pair| pair.remote == remote)
    }

    /// Removes a candidate, because the application makes a path of this pair.
    pub(crate) fn take(&mut self, local: SocketAddr, remote: SocketAddr) {
        self.waiting.retain(|pair| (pair.local, pair.remote) != (local, remote));
    }

    /// Forgets the candidates from a local address that this host no longer has.
    pub(crate) fn local_gone(&mut self, local: SocketAddr) {
        self.waiting.retain(|pair| pair.local != local);
    }

    /// Forgets the candidates from local addresses that must not be used.
    pub(crate) fn avoid(&mut self, locals: &BTreeSet<IpAddr>) {
        self.waiting.retain(|pair| !locals.contains(&pair.local.ip()));
    }

    fn new_pair(&mut self, role: Role, local: SocketAddr, remote: SocketAddr) -> Pair {
        self.pairs = self.pairs.saturating_add(1);
        Pair { local, remote, order: (role, self.pairs), tries: 0, is_told: false }
    }

    fn trial_mut(&mut self, path: PathId) -> Option<&mut Trial> {
        self.trials.iter_mut().find(|trial| trial.path == path)
    }

    fn forget_tries(&mut self) {
        self.waiting.iter_mut().for_each(|pair| pair.tries = 0);
        self.trials.iter_mut().for_each(|trial| trial.pair.tries = 0);
    }

    /// Lets a candidate wait again, behind the others.
    fn put_back(&mut self, pair: Pair) {
        self.take(pair.local, pair.remote);
        self.waiting.push_back(pair);
    }
}

impl Association {
    /// Adds a candidate pair (RFC 8445): it is tried in place of a path from the same local address
    /// that the application gave and that does not answer. Does nothing if it is such a path or a
    /// candidate already, if its addresses are of two families, or if there are 64.
    pub fn add_candidate(&mut self, now: Instant, local: SocketAddr, remote: SocketAddr) {
        let is_given =
            self.path_of_pair(AddressPair { local, remote }).is_some_and(|p| p.origin.is_named());
        let is_full = self.candidates.waiting.len() >= MAX_CANDIDATES;
        let is_pair = local.is_ipv4() == remote.is_ipv4();
        if is_given || is_full || !is_pair || self.candidates.is_waiting(local, remote) {
            return;
        }
        let pair = self.candidates.new_pair(Role::Candidate, local, remote);
        self.candidates.waiting.push_back(pair);
        self.candidates.are_given = true;
        // Paths from this local address may have waited for a candidate.
        let waits = |t: &&Trial| t.ends.is_none() && t.pair.is_told && t.pair.local == local;
        let unanswered = self.candidates.trials.iter().find(waits).map(|t| t.path);
        if self.may_try()
            && let Some(path) = unanswered
        {
            self.try_next(now, path);
            self.renew_trial_timer();
        }
    }

    /// The addresses that our INIT lists (RFC 9260 §3.3.2): those of the endpoint, and those that
    /// paths and candidates of the application start from.
    pub(crate) fn listed_addresses(&self) -> Vec<SocketAddr> {
        let mut listed = self.ends.local_addresses().to_vec();
        let paths = self
            .paths
            .iter()
            .filter(|p| p.origin.is_named() && !p.liveness.is_away())
            .map(|p| p.local);
        let waiting = self.candidates.waiting.iter().map(|pair| pair.local);
        for local in paths.chain(waiting) {
            let is_new = listed.iter().all(|a| a.ip() != local.ip());
            if is_new && !local.ip().is_unspecified() && listed.len() < MAX_ADDRESSES {
                listed.push(local);
            }
        }
        listed
    }

    fn path_of_pair(&self, pair: AddressPair) -> Option<&Path> {
        self.paths.get(self.paths.find(&pair)?)
    }

    // ---- Trials ----

    /// Begins the trial of a path that INIT is sent on, unless it has had one.
    pub(crate) fn begin_first_trial(&mut self, now: Instant, id: PathId) {
        match self.candidates.trial_mut(id) {
            None => self.begin_trial(now, id),
            Some(_) => self.renew_trial_timer(), // it stops while a cookie waits for its answer
        }
    }

    /// Starts the trial of a path again, if it may have another. The path can answer from `at` on.
    pub(crate) fn begin_trial(&mut self, at: Instant, id: PathId) {
        let has_use = self.candidates.are_given
            || self.paths.iter().filter(|p| p.origin.is_named()).count() > 1;
        let may_answer = |p: &&Path| has_use && is_to_answer(p) && !p.liveness.is_untold();
        let Some(p) = self.paths.get(id).filter(may_answer) else { return };
        let (local, remote) = (p.local, p.remote);
        let ends = Some(at + TRIAL);
        match self.candidates.trial_mut(id).filter(|t| is_pair_of(&t.pair, local, remote)) {
            Some(trial) => trial.ends = ends,
            None => {
                let pair = self.candidates.new_pair(Role::Path, local, remote);
                self.set_trial(Trial { path: id, pair, ends });
            }
        }
        self.renew_trial_timer();
    }

    fn set_trial(&mut self, trial: Trial) {
        self.candidates.trials.retain(|other| other.path != trial.path);
        self.candidates.trials.push(trial);
    }

    /// Ends the trial of a path that is verified or removed.
    pub(crate) fn end_trial(&mut self, id: PathId) {
        if self.candidates.trial_mut(id).is_some() {
            self.candidates.trials.retain(|trial| trial.path != id);
            self.renew_trial_timer();
        }
    }

    /// Suspends all trials, because the peer answers the handshake. No path can be verified before
    /// the association is open for data.
    pub(crate) fn suspend_trials(&mut self) {
        self.candidates.forget_tries();
        self.candidates.trials.iter_mut().for_each(|trial| trial.ends = None);
        self.renew_trial_timer();
    }

    /// The network has changed: pairs that did not answer may answer now.
    pub(crate) fn try_again(&mut self, now: Instant) {
        self.candidates.forget_tries();
        let ended = |t: &&Trial| t.ends.is_none() && t.pair.is_told;
        let again: SmallVec<[_; 8]> =
            self.candidates.trials.iter().filter(ended).map(|trial| trial.path).collect();
        again.into_iter().for_each(|path| self.begin_trial(now, path));
    }

    /// True if a path can answer now, to INIT or to HEARTBEAT.
    fn may_try(&self) -> bool {
        let is_opening = matches!(self.state, State::CookieWait(_));
        is_opening || (self.state.is_open() && !self.state.is_ending())
    }

    fn renew_trial_timer(&mut self) {
        let timer = Timer::Assoc(AssocTimer::Trial);
        let next = self.candidates.trials.iter().filter_map(|trial| trial.ends).min();
        // Without candidates the end of a trial only produces an event, for which other timers are
        // early enough. Another timer would change when packets are sent.
        let has_effect = self.candidates.are_given && self.closed().is_none();
        match next {
            Some(at) if has_effect => self.timers.set(timer, at),
            _ => self.timers.stop(timer),
        }
    }

    /// Ends the trials whose time is over.
    pub(crate) fn on_trial_timer(&mut self, now: Instant) {
        if !self.may_try() {
            return; // the next INIT or the opening begins them again
        }
        let is_over = |trial: &&Trial| trial.ends.is_some_and(|at| at <= now);
        let over = self.candidates.trials.iter().filter(is_over).map(|trial| trial.path);
        let over: SmallVec<[_; 8]> = over.collect();
        for path in over {
            self.judge(now, path);
        }
        self.renew_trial_timer();
    }

    fn judge(&mut self, now: Instant, id: PathId) {
        let Some(trial) = self.candidates.trial_mut(id).copied() else { return };
        let Pair { local, remote, .. } = trial.pair;
        let path = self.paths.get(id).filter(|p| is_pair_of(&trial.pair, p.local, p.remote));
        if !path.is_some_and(|p| is_to_answer(p) && !has_answered(p)) {
            self.end_trial(id);
            return;
        }
        if !trial.pair.is_told && !self.may_be_private(remote) {
            self.events.push(Event::NoAnswer { path: id, local, remote });
        }
        let tries = trial.pair.tries.saturating_add(1);
        let pair = Pair { tries, is_told: true, ..trial.pair };
        self.set_trial(Trial { pair, ends: None, ..trial });
        self.try_next(now, id);
    }

    /// Puts the next candidate, if any, in the place of a path that did not answer. Once each was
    /// tried `MAX_TRIES` times, the path stays with the best.
    fn try_next(&mut self, now: Instant, id: PathId) {
        let Some(failed) = self.candidates.trial_mut(id).map(|trial| trial.pair) else { return };
        if let Some(next) = self.next_candidate(failed.local) {
            self.replace(now, id, next);
            let taken = self.paths.find(&next.addresses());
            taken.into_iter().for_each(|id| self.begin_trial(now, id));
            return;
        }
        let from_there = |pair: &&Pair| pair.local == failed.local;
        let waiting = self.candidates.waiting.iter().filter(from_there);
        let rank = |pair: &&Pair| (!self.is_remote_verified(pair), pair.order);
        let best = waiting.chain([&failed]).min_by_key(rank).copied();
        if let Some(best) = best.filter(|best| !is_pair_of(best, failed.local, failed.remote)) {
            self.replace(now, id, best);
        }
    }

    /// The next candidate to try from a local address. A candidate from which the peer's packets
    /// already come is first, then the least often tried; among equals, one whose remote address
    /// answers on another path.
    fn next_candidate(&self, local: SocketAddr) -> Option<Pair> {
        let may_be_tried = |pair: &&Pair| pair.local == local && pair.tries < MAX_TRIES;
        let rank = |pair: &&Pair| {
            let is_heard = self.path_of_pair(pair.addresses()).is_some_and(is_heard);
            (!is_heard, pair.tries, !self.is_remote_verified(pair), pair.order)
        };
        self.candidates.waiting.iter().filter(may_be_tried).min_by_key(rank).copied()
    }

    fn is_remote_verified(&self, pair: &Pair) -> bool {
        let is_verified =
            |p: &Path| p.remote == pair.remote && p.liveness.state != PathState::Unconfirmed;
        self.paths.iter().any(is_verified)
    }

    /// Puts a candidate in the place of a path that does not answer. The path's pair waits then.
    fn replace(&mut self, now: Instant, id: PathId, by: Pair) {
        let Some(failed) = self.candidates.trial_mut(id).map(|trial| trial.pair) else { return };
        match self.paths.find(&by.addresses()) {
            // Meanwhile the peer's packets have come from this pair.
            Some(there) => {
                let was_primary = self.primary == id && !self.state.is_open();
                self.remove_path(now, id);
                if self.paths.get(id).is_some() {
                    return; // all others are away
                }
                if was_primary {
                    self.primary = there;
                }
                if let Some(p) = self.paths.get_mut(there) {
                    p.origin.name();
                }
                if self.state.is_open() && !self.paths.get(there).is_some_and(has_answered) {
                    self.probe_now(now, there);
                }
            }
            None => {
                self.replace_pair(now, id, by.addresses());
                self.ask_replaced(now, id);
            }
        }
        self.candidates.take(by.local, by.remote);
        self.candidates.put_back(failed);
        if let Some(path) = self.paths.find(&by.addresses()) {
            self.set_trial(Trial { path, pair: by, ends: None });
        }
    }

    /// Sends the first packet to new addresses of a path.
    fn ask_replaced(&mut self, now: Instant, id: PathId) {
        if self.state.is_open() {
            self.probe_now(now, id);
            self.start_size_search(now, id);
        } else if matches!(self.state, State::CookieWait(_)) {
            let is_init = |c: &Control| matches!(c, Control::Init { on } if *on == id);
            if !self.control.iter().any(is_init) {
                self.control.push_back(Control::Init { on: id });
            }
        }
    }

    /// Uses a candidate from which the peer's packets come, although there is no room for another
    /// path: it replaces an unanswered path from the same local address.
    pub(crate) fn replace_unanswered(
        &mut self,
        now: Instant,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Option<PathId> {
        let is_unanswered = |t: &&Trial| {
            let path = self.path_of_pair(t.pair.addresses());
            t.pair.local == local && path.is_some_and(|p| is_to_answer(p) && !has_answered(p))
        };
        let id = self.candidates.trials.iter().find(is_unanswered).map(|trial| trial.path)?;
        let waits = |pair: &&Pair| is_pair_of(pair, local, remote);
        let by = self.candidates.waiting.iter().find(waits).copied()?;
        self.replace(now, id, by);
        self.paths.find(&AddressPair { local, remote })
    }
}

/// True for a path that can have a trial.
fn is_to_answer(p: &Path) -> bool {
    p.origin.is_named()
        && !p.liveness.is_away()
        && !p.liveness.is_superseded()
        && p.liveness.state == PathState::Unconfirmed
}

/// True if packets of the peer came on the path.
fn is_heard(p: &Path) -> bool {
    !p.liveness.is_away() && p.liveness.last_heard.is_some()
}

/// True if the path has answered our heartbeat. Packets from the peer prove less: their source
/// address may be out of reach, such as the address of a bridge on its host.
fn has_answered(p: &Path) -> bool {
    !p.liveness.is_away() && p.liveness.state != PathState::Unconfirmed
}

fn is_pair_of(pair: &Pair, local: SocketAddr, remote: SocketAddr) -> bool {
    (pair.local, pair.remote) == (local, remote)
}
