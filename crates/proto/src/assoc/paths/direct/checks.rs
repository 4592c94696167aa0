//! Connectivity checks (RFC 8445 §7): heartbeats to the peer's candidates, from each address of
//! ours. A NAT on our side remembers them, and lets in the peer's (RFC 5128 §3.3, "hole punching").
//!
//! A check is a HEARTBEAT without a path. The information in it proves that this end sent it
//! between these two addresses, so nothing is kept for it. The pair becomes a path when the answer
//! comes back the same way, or when a check of the peer arrives and the engine has verified its
//! source.
//!
//! The peer's candidates may be addresses of others. Checks are therefore few: 64 a second and
//! 1,000 in all, until this host itself gets other addresses, and no more bytes than the peer has
//! sent.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use manypath_wire::{CandidateKind, NamedAddress};

use super::{Direct, PeerTrust};
use crate::assoc::Association;
use crate::assoc::send::control::Control;
use crate::datagram::AddressPair;
use crate::path::Path;
use crate::time::Instant;
use crate::view::{PathId, PathState};

/// Shortest time between two checks.
const GAP: Duration = Duration::from_micros(1_000_000 / 64);
/// Checks that may be sent in all, until this host gets other addresses.
const CHECKS_MAX: u32 = 1000;
/// Shortest time after which other addresses of this host allow more checks.
const RENEWED_AFTER: Duration = Duration::from_secs(60);
/// Most pairs that are checked.
const PAIRS_MAX: usize = 64;

/// The checks of a pair are this far apart at first: the peer's NAT may have dropped the one before
/// because the peer's own check had not opened it yet.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The first checks of a pair, with the first wait between them: for 3 s.
const FIRST_CHECKS: u32 = 15;
/// The longest time between two checks of a pair; the wait doubles after the first ones.
const LAST_WAIT: Duration = Duration::from_secs(30);
/// The wait before a pair is looked at again whose place is reached on a path already.
const REACHED_WAIT: Duration = Duration::from_secs(1);
/// The wait until the peer has sent enough bytes.
const CREDIT_WAIT: Duration = Duration::from_millis(50);

/// A pair of addresses that is checked.
#[derive(Copy, Clone, Debug)]
struct Pair {
    addresses: AddressPair,
    /// The candidate's place at the peer, see [`NamedAddress::base`].
    base: u8,
    /// Checks sent.
    sent: u32,
    /// When the next is due.
    due: Instant,
}

impl Pair {
    fn wait(&self) -> Duration {
        let doubled = self.sent.saturating_sub(FIRST_CHECKS).min(16);
        (FIRST_WAIT * (1 << doubled)).min(LAST_WAIT)
    }
}

/// The pairs that are checked.
#[derive(Debug)]
pub(super) struct Checks {
    pairs: Vec<Pair>,
    /// Checks that may still be sent.
    left: u32,
    /// When all were allowed again.
    renewed_at: Option<Instant>,
    /// When the next may be sent.
    next: Instant,
}

impl Default for Checks {
    fn default() -> Checks {
        Checks { pairs: Vec::new(), left: CHECKS_MAX, renewed_at: None, next: Instant::ZERO }
    }
}

impl Checks {
    /// This host has other addresses: the search begins again.
    pub(super) fn renew(&mut self, now: Instant) {
        if self.renewed_at.is_none_or(|at| now - at >= RENEWED_AFTER) {
            self.renewed_at = Some(now);
            self.left = CHECKS_MAX;
        }
        self.pairs.clear();
    }

    /// When a check is due.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.left == 0 {
            return None;
        }
        let first = self.pairs.iter().map(|pair| pair.due).min()?;
        Some(first.max(self.next))
    }

    /// Pairs from this local address are checked at once: a path from there has failed.
    fn hurry(&mut self, now: Instant, local: SocketAddr) {
        for pair in self.pairs.iter_mut().filter(|pair| pair.addresses.local == local) {
            pair.sent = 0;
            pair.due = now;
        }
    }
}

/// The order in which candidates are checked: those that cost the least come first.
fn order(candidate: &NamedAddress) -> (CandidateKind, bool) {
    (candidate.kind, candidate.address.is_ipv4())
}

impl Direct {
    /// The pairs to check: each local address with each candidate of the peer that it can reach.
    /// Pairs that were checked before go on.
    fn pairs(&self, now: Instant) -> Vec<Pair> {
        let is_local = |c: &&super::Candidate| c.kind == CandidateKind::Host;
        let locals = self.own.iter().filter(is_local).map(|c| c.base);
        let mut candidates: Vec<_> =
            self.peer.iter().filter(|n| n.kind != CandidateKind::Relayed).collect();
        candidates.sort_by_key(|n| order(n));
        let mut pairs: Vec<Pair> = Vec::new();
        for candidate in candidates {
            for local in locals.clone() {
                let addresses = AddressPair { local, remote: candidate.address };
                let is_known = pairs.iter().any(|pair| pair.addresses == addresses);
                if is_known || pairs.len() >= PAIRS_MAX || !can_reach(addresses) {
                    continue;
                }
                let before = self.checks.pairs.iter().find(|p| p.addresses == addresses);
                let fresh = Pair { addresses, base: candidate.base, sent: 0, due: now };
                pairs.push(before.map_or(fresh, |p| Pair { base: candidate.base, ..*p }));
            }
        }
        pairs
    }

    /// True if the path leads directly to the place of this pair's candidate.
    fn leads_there(&self, path: &Path, pair: &Pair) -> bool {
        let AddressPair { local, remote } = pair.addresses;
        // Behind a NAT with a mapping for each peer, the port is another one.
        let is_of_place = |n: &NamedAddress| {
            n.base == pair.base
                && n.kind != CandidateKind::Relayed
                && n.address.ip() == path.remote.ip()
        };
        path.liveness.state == PathState::Active
            && path.local == local
            && (path.remote == remote || self.peer.iter().any(is_of_place))
            && !self.is_relayed(path.pair())
    }
}

/// True if packets can go from this local address to a candidate.
fn can_reach(AddressPair { local, remote }: AddressPair) -> bool {
    local != remote
        && local.is_ipv4() == remote.is_ipv4()
        && local.ip().is_loopback() == remote.ip().is_loopback()
}

impl Association {
    /// Makes the pairs to check from the candidates of both ends.
    pub(super) fn renew_checks(&mut self, now: Instant) {
        if let Some(direct) = &mut self.direct
            && direct.trust == PeerTrust::Known
        {
            direct.checks.pairs = direct.pairs(now);
        }
        self.renew_direct_timer();
    }

    /// Sends the next check, if one is due.
    pub(super) fn check_next(&mut self, now: Instant) {
        while let Some(direct) = &self.direct
            && direct.checks.due().is_some_and(|at| at <= now)
        {
            let first = (0..direct.checks.pairs.len()).min_by_key(|&i| direct.checks.pairs[i].due);
            let Some(index) = first else { return };
            let pair = direct.checks.pairs[index];
            let is_there = self.paths.iter().any(|p| {
                let is_same = p.pair() == pair.addresses;
                (is_same && p.liveness.state != PathState::Unconfirmed)
                    || direct.leads_there(p, &pair)
            });
            let has_credit = self.heartbeats.credit >= self.check_len(pair.addresses);
            let Some(direct) = &mut self.direct else { return };
            let checks = &mut direct.checks;
            if is_there {
                checks.pairs[index].due = now + REACHED_WAIT;
                continue;
            }
            if !has_credit {
                checks.next = now + CREDIT_WAIT;
                return;
            }
            checks.pairs[index].sent += 1;
            checks.pairs[index].due = now + pair.wait();
            checks.left -= 1;
            checks.next = now + GAP;
            let len = self.check_len(pair.addresses);
            self.heartbeats.credit = self.heartbeats.credit.saturating_sub(len);
            let info = self.heartbeats.codec.write_check(pair.addresses, now);
            self.stats.checks_sent += 1;
            self.reply(Control::Check { info, to: pair.addresses });
        }
    }

    /// A heartbeat of the peer came over this path. If the path is not verified yet, a check of
    /// ours follows at once (RFC 8445 §7.3.1.4): the peer's firewall is open now, and may have
    /// dropped those before.
    pub(crate) fn check_back(&mut self, now: Instant, id: PathId) {
        let is_open = |p: &&Path| p.liveness.state == PathState::Unconfirmed;
        let Some(pair) = self.paths.get(id).filter(is_open).map(Path::pair) else { return };
        if let Some(direct) = &mut self.direct {
            for waiting in direct.checks.pairs.iter_mut().filter(|p| p.addresses == pair) {
                waiting.due = waiting.due.min(now);
            }
            self.renew_direct_timer();
        }
    }

    /// Handles the answer to a check. It counts if it came back the same way. True if it is one.
    pub(crate) fn on_check_answer(
        &mut self,
        now: Instant,
        info: &Bytes,
        from: AddressPair,
        via: Option<PathId>,
    ) -> bool {
        let Some(sent_at) = self.heartbeats.codec.read_check(info, now, from) else {
            return false;
        };
        let Some(p) = via.and_then(|id| self.paths.get_mut(id)) else { return true };
        let id = p.id;
        if p.liveness.state == PathState::Unconfirmed {
            p.origin.name();
            p.rto.sample(now - sent_at);
            p.note_answer(now, sent_at);
            // Heartbeats that were sent before may have met a NAT that was closed yet.
            p.probing.probe = None;
            self.stats.direct_paths += 1;
            self.confirm_path(now, id);
        }
        true
    }

    /// A path does not work any more: if it was a direct one, others are looked for at once.
    pub(crate) fn seek_in_place_of(&mut self, now: Instant, id: PathId) {
        let Some(p) = self.paths.get(id) else { return };
        let (local, pair) = (p.local, p.pair());
        if let Some(direct) = &mut self.direct
            && !direct.is_relayed(pair)
        {
            direct.checks.hurry(now, local);
            self.renew_direct_timer();
        }
    }
}
