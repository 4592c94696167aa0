//! Direct paths between hosts behind NATs, which reach each other through a relay at first.
//!
//! Each end tells the other its candidates (RFC 8445 §5.1): addresses of its own, addresses that
//! NATs map to these, addresses on relays. They travel in CANDIDATES chunks over the association.
//! Both ends then [check](checks) pairs of their own addresses and the peer's candidates. A pair
//! that answers becomes a path.
//!
//! Relayed paths have the rank of a backup, since they cost the relay's operator and take a detour.
//! They carry data until a direct path works, and again when none does, unless an end wants them to
//! be there [to meet only](only).

pub(crate) mod checks;
pub(crate) mod only;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use manypath_wire::{CANDIDATES_MAX, CandidateKind, Candidates, NamedAddress};
use smallvec::SmallVec;

use crate::assoc::send::control::Control;
use crate::assoc::{AssocTimer, Association, Timer};
use crate::datagram::AddressPair;
use crate::time::Instant;
use crate::view::{PathId, PathRank, PathState};
use checks::Checks;
use only::Only;

/// The wait before a list is told again, if the peer does not say that it has it. It doubles.
const REPEAT: Duration = Duration::from_millis(300);
/// Times that a list is told without an answer: for about five minutes.
const TOLD_MAX: u32 = 10;

/// An address at which peers may reach this host (RFC 8445 §5.1), and the way to it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// How this host came by it.
    pub kind: CandidateKind,
    /// The local address at which packets to it arrive. Of an address on a relay, it is that
    /// address.
    pub base: SocketAddr,
    /// The address as peers use it.
    pub address: SocketAddr,
}

/// The search for direct paths of an association.
#[derive(Debug)]
pub(crate) struct Direct {
    /// The candidates of this end.
    own: Arc<[Candidate]>,
    /// Counts the lists of this end.
    serial: u32,
    /// The last of them that the peer has.
    heard: u32,
    /// How often the latest was told.
    told: u32,
    /// When it is told again; `None` if the peer has it.
    tell_at: Option<Instant>,
    /// The number of the peer's latest list; 0 if there is none.
    peer_serial: u32,
    /// The candidates of the peer.
    peer: Vec<NamedAddress>,
    /// The peer's addresses on relays, as the application has them.
    relayed: Vec<SocketAddr>,
    /// Says if the peer may be told of this host.
    trust: PeerTrust,
    only: Only,
    checks: Checks,
}

/// Says if a peer may be told where this host is, and have it send checks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum PeerTrust {
    /// It opened the association, and the application does not know it yet.
    Stranger,
    Known,
}

impl Direct {
    /// A search with these candidates of this end. `relayed` are addresses of the peer on relays.
    pub(crate) fn new(own: Arc<[Candidate]>, relayed: Vec<SocketAddr>, trust: PeerTrust) -> Direct {
        Direct {
            own,
            serial: 1,
            heard: 0,
            told: 0,
            tell_at: None,
            peer_serial: 0,
            peer: Vec::new(),
            relayed,
            trust,
            only: Only::default(),
            checks: Checks::default(),
        }
    }

    /// The list of this end, as the peer gets it. A stranger gets an empty one, without a number.
    fn list(&self) -> Candidates {
        if self.trust == PeerTrust::Stranger {
            return Candidates {
                asks: false,
                direct_only: self.wants_direct_only(),
                serial: 0,
                seen: self.peer_serial,
                list: Vec::new(),
            };
        }
        let bases = self.bases();
        let number = |base| bases.iter().position(|known| *known == base).unwrap_or_default();
        let named = |candidate: &Candidate| NamedAddress {
            kind: candidate.kind,
            base: number(candidate.base) as u8,
            address: candidate.address,
        };
        Candidates {
            asks: self.heard != self.serial,
            direct_only: self.wants_direct_only(),
            serial: self.serial,
            seen: self.peer_serial,
            list: self.own.iter().take(CANDIDATES_MAX).map(named).collect(),
        }
    }

    /// The local addresses behind the candidates, each once.
    fn bases(&self) -> SmallVec<[SocketAddr; 8]> {
        let mut bases = SmallVec::new();
        for candidate in self.own.iter().take(CANDIDATES_MAX) {
            if !bases.contains(&candidate.base) {
                bases.push(candidate.base);
            }
        }
        bases
    }

    /// True if packets between these addresses take a relay.
    fn is_relayed(&self, pair: AddressPair) -> bool {
        let is_own = |c: &Candidate| c.kind == CandidateKind::Relayed && c.address == pair.local;
        let is_peers =
            |n: &NamedAddress| n.kind == CandidateKind::Relayed && n.address == pair.remote;
        self.relayed.contains(&pair.remote)
            || self.own.iter().any(is_own)
            || self.peer.iter().any(is_peers)
    }

    /// Takes the peer's list, if it is newer than the one before. True if it is. That of a peer to
    /// which this end is a stranger has the number 0, and is none.
    fn take(&mut self, chunk: &Candidates) -> bool {
        let is_after = (chunk.serial.wrapping_sub(self.peer_serial) as i32).is_positive();
        let is_newer = chunk.serial != 0 && (self.peer_serial == 0 || is_after);
        if is_newer {
            self.peer_serial = chunk.serial;
            self.peer = chunk.list.iter().copied().filter(|n| may_be_reached(n.address)).collect();
        }
        is_newer
    }

    /// When something is due.
    fn due(&self) -> Option<Instant> {
        self.tell_at.into_iter().chain(self.checks.due()).min()
    }
}

/// True for an address that a single host in the network may have.
fn may_be_reached(address: SocketAddr) -> bool {
    let is_host = match address.ip() {
        IpAddr::V4(ip) => {
            !ip.is_unspecified() && !ip.is_broadcast() && !ip.is_multicast() && !ip.is_link_local()
        }
        // A link-local address means another host on each link.
        IpAddr::V6(ip) => {
            let is_mapped = ip.to_ipv4_mapped().is_some();
            !ip.is_unspecified() && !ip.is_multicast() && !ip.is_unicast_link_local() && !is_mapped
        }
    };
    is_host && address.port() != 0
}

impl Association {
    /// Begins to look for direct paths, if the peer does, too.
    pub(crate) fn offer_direct_paths(&mut self, now: Instant, direct: Direct) {
        self.direct = Some(Box::new(direct));
        self.rank_relayed_paths(now);
    }

    /// Takes the candidates that this end has now.
    pub(crate) fn set_candidates(&mut self, now: Instant, own: Arc<[Candidate]>) {
        let Some(direct) = self.direct.as_mut().filter(|direct| direct.own != own) else { return };
        direct.own = own;
        direct.serial = direct.serial.wrapping_add(1).max(1);
        direct.told = 0;
        direct.checks.renew(now);
        self.rank_relayed_paths(now);
        self.tell_candidates(now);
        self.renew_checks(now);
    }

    /// Looks for direct paths to a peer that opened the association, from now on. Until then it is
    /// not told where this host may be reached, and its candidates draw nothing.
    pub fn seek_direct_paths(&mut self, now: Instant) {
        if let Some(direct) = &mut self.direct
            && direct.trust == PeerTrust::Stranger
        {
            direct.trust = PeerTrust::Known;
            self.tell_candidates(now);
            self.renew_checks(now);
        }
    }

    /// True for an address of a peer behind relays that is on none of them: it may be in a private
    /// network, where nobody expects an answer from.
    pub(crate) fn may_be_private(&self, remote: SocketAddr) -> bool {
        let relayed = self.direct.as_deref().map_or(&[][..], |direct| &direct.relayed);
        !relayed.is_empty() && !relayed.contains(&remote)
    }

    /// True if both ends exchange candidates, and data may flow.
    fn exchanges_candidates(&self) -> bool {
        let is_open = self.state.is_open() && !self.state.is_ending() && self.is_released();
        self.agreed.candidates && self.direct.is_some() && is_open
    }

    /// True if this end may send candidates and checks.
    fn seeks_direct_paths(&self) -> bool {
        let is_known = |direct: &Direct| direct.trust == PeerTrust::Known;
        self.exchanges_candidates() && self.direct.as_deref().is_some_and(is_known)
    }

    /// Queues our list for the peer, and plans to repeat it.
    pub(crate) fn tell_candidates(&mut self, now: Instant) {
        if !self.seeks_direct_paths() {
            return;
        }
        let Some(direct) = &mut self.direct else { return };
        let wait = REPEAT * (1 << direct.told.min(16));
        direct.told += 1;
        direct.tell_at = (direct.told < TOLD_MAX).then_some(now + wait);
        let on = self.path_to_tell();
        self.push_candidates(on);
        self.renew_direct_timer();
    }

    /// A repeated list takes the working paths in turn: the one before may have failed.
    fn path_to_tell(&self) -> PathId {
        let told = self.direct.as_ref().map_or(0, |direct| direct.told as usize);
        let works = |p: &&crate::path::Path| p.liveness.state == PathState::Active;
        let working: SmallVec<[_; 8]> = self.paths.iter().filter(works).map(|p| p.id).collect();
        match told {
            0 | 1 => self.control_path(),
            _ if working.is_empty() => self.control_path(),
            _ => working[told % working.len()],
        }
    }

    fn push_candidates(&mut self, on: PathId) {
        let is_queued = |c: &Control| matches!(c, Control::Candidates { .. });
        if !self.control.iter().any(is_queued) {
            self.reply(Control::Candidates { on });
        }
    }

    /// The chunk with our list, as it is sent now.
    pub(crate) fn candidates_chunk(&self) -> Option<Candidates> {
        self.direct.as_ref().map(|direct| direct.list())
    }

    /// Handles a list of the peer.
    pub(crate) fn on_candidates(&mut self, now: Instant, chunk: &Candidates) {
        if !self.exchanges_candidates() {
            return;
        }
        let Some(direct) = &mut self.direct else { return };
        if chunk.seen == direct.serial {
            direct.heard = direct.serial;
            direct.tell_at = None;
            direct.wish_is_told();
        }
        direct.peer_wants_direct_only(chunk.direct_only);
        let is_new = direct.take(chunk);
        let is_known = direct.trust == PeerTrust::Known;
        // A stranger may know that its wish arrived, before it says more.
        let hears_wish = chunk.asks && chunk.direct_only;
        if (is_known && (is_new || chunk.asks)) || hears_wish {
            let on = self.control_path();
            self.push_candidates(on);
        }
        if is_new {
            self.rank_relayed_paths(now);
            self.renew_checks(now);
        }
        self.bar_relays(now);
        self.renew_direct_timer();
    }

    pub(crate) fn renew_direct_timer(&mut self) {
        let timer = Timer::Assoc(AssocTimer::Direct);
        match self.direct.as_ref().and_then(|direct| direct.due()) {
            Some(at) if self.closed().is_none() => self.timers.set(timer, at),
            _ => self.timers.stop(timer),
        }
    }

    pub(crate) fn on_direct_timer(&mut self, now: Instant) {
        if !self.seeks_direct_paths() {
            return;
        }
        let tell_at = self.direct.as_ref().and_then(|direct| direct.tell_at);
        if tell_at.is_some_and(|at| at <= now) {
            self.tell_candidates(now);
        }
        self.check_next(now);
        self.renew_direct_timer();
    }

    // ---- Ranks ----

    /// The rank of a new path: a relayed one is a backup.
    pub(crate) fn first_rank(&self, pair: AddressPair) -> PathRank {
        let rank = self.local_rank(pair.local.ip());
        let is_relayed = self.direct.as_ref().is_some_and(|direct| direct.is_relayed(pair));
        if is_relayed && rank.is_normal() { PathRank::Backup } else { rank }
    }

    fn rank_relayed_paths(&mut self, now: Instant) {
        let normal = self.paths.iter().filter(|p| p.role.rank.is_normal());
        let pairs: SmallVec<[_; 8]> = normal.map(|p| (p.id, p.pair())).collect();
        for (id, pair) in pairs {
            self.set_path_rank(now, id, self.first_rank(pair));
        }
        self.bar_paths(now);
    }
}
