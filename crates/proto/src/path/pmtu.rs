//! The size of a path's packets, found by probes: Datagram Packetization Layer Path MTU Discovery
//! (RFC 8899). This file decides which sizes to try and what their outcome means;
//! `assoc/paths/pmtu.rs` sends the probes.
//!
//! All sizes are of IP packets, in bytes, and multiples of four, as SCTP packets are.

use serde::Serialize;
use smallvec::SmallVec;

use crate::config::Config;
use crate::sizes::{self, unpadded};
use crate::time::Instant;

/// BASE_PLPMTU: the initial size of a path, to which it returns when larger packets get lost. Every
/// IPv6 link and nearly every IPv4 path carries it (RFC 8899 §5.1.2 suggests 1200 for UDP).
pub(crate) const BASE_MTU: usize = sizes::IPV6_MIN_MTU;

/// MIN_PLPMTU: the size of a path that does not even carry [`BASE_MTU`]. Every host must be able to
/// receive it over IPv4 (RFC 1122 §3.3.2). No path gets a smaller size.
pub(crate) const MIN_MTU: usize = sizes::IPV4_MIN_MTU;

/// MAX_PROBES (RFC 8899 §5.1.2): probes of one size that get lost before it counts as too large.
const PROBE_COUNT: u8 = 3;

/// PMTU_RAISE_TIMER (RFC 8899 §5.1.1): when larger sizes are tried again, in seconds.
pub(crate) const RAISE_AFTER_S: u64 = 600;

/// SACKs that report losses of long packets, with no such packet acknowledged between them, that
/// put the size in doubt.
const LARGE_LOST_MAX: u32 = 3;

/// Precision of the search for the largest size that passes, in bytes.
const STEP: usize = 4;

/// Sizes that real links have: jumbo frames, FDDI, Ethernet, PPPoE, tunnels, WireGuard, X.25.
const COMMON: [usize; 22] = [
    576, 1004, 1280, 1300, 1320, 1340, 1360, 1380, 1400, 1420, 1440, 1460, 1480, 1492, 1500, 2000,
    2300, 4352, 4464, 8164, 8996, 9000,
];

/// Most unanswered probes remembered; answers to older ones do not count.
const MAX_PROBES: usize = 8;

/// The reason why a path's size has changed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MtuReason {
    /// A probe of this size was answered.
    Confirmed,
    /// Larger packets get lost while small ones arrive.
    BlackHole,
    /// A router reported it, in a message about a packet of ours (RFC 8899 §4.6).
    PacketTooBig,
    /// This host's interface does not take larger packets.
    Interface,
}

impl MtuReason {
    /// The name used in JSON results: `confirmed`, `black_hole`, `packet_too_big` or `interface`.
    pub const fn name(self) -> &'static str {
        match self {
            MtuReason::Confirmed => "confirmed",
            MtuReason::BlackHole => "black_hole",
            MtuReason::PacketTooBig => "packet_too_big",
            MtuReason::Interface => "interface",
        }
    }
}

/// The states of RFC 8899 §5.2. Base and error are one state here, in which the size in use is in
/// doubt. Probes of several sizes at once settle it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is probed: discovery is off, or the path is not verified yet.
    Disabled,
    /// A larger size is tried.
    Search { candidate: usize },
    /// No larger size is left to try until [`RAISE_AFTER_S`] has passed.
    Complete,
    /// Packets of the size in use may get lost: probes ask for that size, the base size and the
    /// least size together.
    Doubt { hint: Option<usize> },
}

#[derive(Copy, Clone, Debug)]
struct SizeProbe {
    size: usize,
    nonce: u64,
}

/// How long the timer has to run.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// For the time in which a probe is answered.
    ForAnswer,
    /// Until larger sizes are tried again.
    ToRaise,
    Never,
}

/// A path's size and the search for a larger one.
#[derive(Debug)]
pub(crate) struct Pmtu {
    is_on: bool,
    phase: Phase,
    /// PLPMTU: the size in use.
    size: usize,
    /// True if the answer to a probe has shown that the size in use passes.
    is_confirmed: bool,
    /// The largest size to try, by this host's interface and the configuration.
    limit: usize,
    /// The size to try first.
    likely: usize,
    /// The smallest size that is known not to pass.
    fails_from: Option<usize>,
    /// Probes sent so far of the current size or doubt.
    rounds: u8,
    unanswered: SmallVec<[SizeProbe; MAX_PROBES]>,
    /// Sizes to probe now.
    due: SmallVec<[usize; 4]>,
    /// SACKs that lost long packets since such a packet was acknowledged, and the length of the
    /// shortest of these packets.
    large_lost: u32,
    shortest_lost: usize,
    /// When the last probe was sent.
    pub(crate) asked_at: Option<Instant>,
    /// When a router's message last made the size smaller.
    pub(crate) told_at: Option<Instant>,
}

impl Pmtu {
    /// The size of a new path. `link` is the MTU of its interface, if known.
    pub(crate) fn new(config: &Config, link: Option<usize>) -> Pmtu {
        let mut pmtu = Pmtu {
            is_on: config.pmtu_discovery,
            phase: Phase::Disabled,
            size: config.mtu,
            is_confirmed: false,
            limit: config.mtu,
            likely: unpadded(config.mtu),
            fails_from: None,
            rounds: 0,
            unanswered: SmallVec::new(),
            due: SmallVec::new(),
            large_lost: 0,
            shortest_lost: usize::MAX,
            asked_at: None,
            told_at: None,
        };
        if pmtu.is_on {
            pmtu.limit = limit(config, link);
            pmtu.size = BASE_MTU.min(pmtu.limit);
        }
        pmtu
    }

    /// True if the search has a result: the size in use was confirmed, or another one failed.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_confirmed || self.fails_from.is_some()
    }

    /// The size in use.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Begins or resumes the search, because the path was verified or works again.
    pub(crate) fn start(&mut self) {
        if self.is_on && matches!(self.phase, Phase::Disabled) {
            self.search();
        }
    }

    /// Tries the next size; the search is complete if none is left.
    fn search(&mut self) {
        self.rounds = 0;
        self.due.clear();
        match self.next_candidate() {
            Some(candidate) => {
                self.phase = Phase::Search { candidate };
                self.ask(&[candidate]);
            }
            None => self.phase = Phase::Complete,
        }
    }

    /// The next size to try: the likely size, then the limit, then the middle one of the common
    /// sizes between what passes and what fails, then the midpoint (RFC 8899 §5.3 leaves the choice
    /// open).
    fn next_candidate(&self) -> Option<usize> {
        let below = self.fails_from.unwrap_or(usize::MAX);
        let may_pass = |size: usize| size > self.size && size <= self.limit && size < below;
        if may_pass(self.likely) {
            return Some(self.likely);
        }
        if may_pass(self.limit) {
            return Some(self.limit);
        }
        if !self.is_confirmed {
            // No larger size has passed at all, so this one may not pass either.
            return Some(self.size);
        }
        let common: SmallVec<[usize; COMMON.len()]> =
            COMMON.into_iter().filter(|&size| may_pass(size)).collect();
        if let Some(&middle) = common.get(common.len() / 2) {
            return Some(middle);
        }
        let top = below.min(self.limit + STEP);
        let middle = unpadded(self.size + (top - self.size.min(top)) / 2);
        (top > self.size + STEP && may_pass(middle)).then_some(middle)
    }

    fn ask(&mut self, sizes: &[usize]) {
        for &size in sizes {
            if !self.due.contains(&size) {
                self.due.push(size);
            }
        }
    }

    // ---- Probes ----

    /// True if a probe is to be sent now.
    pub(crate) fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// The size of the probe that is sent now with this nonce; `None` if none is due.
    pub(crate) fn take_due(&mut self, nonce: u64) -> Option<usize> {
        if self.due.is_empty() {
            return None;
        }
        let size = self.due.remove(0);
        if self.unanswered.len() == MAX_PROBES {
            self.unanswered.remove(0);
        }
        self.unanswered.push(SizeProbe { size, nonce });
        Some(size)
    }

    /// Stops all probes, because the association or the path ends.
    pub(crate) fn stop(&mut self) {
        self.due.clear();
        self.phase = Phase::Disabled;
    }

    /// Handles the answer to a probe. `None` if no probe had this nonce.
    pub(crate) fn on_answer(&mut self, nonce: u64) -> Option<()> {
        let at = self.unanswered.iter().position(|probe| probe.nonce == nonce)?;
        let size = self.unanswered.remove(at).size;
        if size > self.limit {
            return Some(()); // the interface has become smaller meanwhile
        }
        if size < self.size {
            // The size in use was probed before this smaller one. If that probe is only late, or
            // was lost by chance, its next answer restores the size.
            if self.is_in_doubt() {
                self.lower(size);
                self.search();
            }
            return Some(());
        }
        self.size = size;
        self.is_confirmed = true;
        self.forget_losses();
        if self.fails_from.is_some_and(|fails| fails <= size) {
            self.fails_from = None;
        }
        self.search();
        Some(())
    }

    /// Acts on a probe that was not answered in time, or on the time to try larger sizes again.
    pub(crate) fn on_timer(&mut self) {
        match self.phase {
            Phase::Disabled => {}
            Phase::Complete => {
                self.fails_from = None;
                self.search();
            }
            Phase::Search { candidate } if self.rounds + 1 < PROBE_COUNT => {
                self.rounds += 1;
                self.ask(&[candidate]);
            }
            Phase::Search { candidate } if candidate <= self.size => self.doubt_again(),
            Phase::Search { candidate } => {
                self.fails_from = Some(self.fails_from.map_or(candidate, |f| f.min(candidate)));
                self.search();
            }
            Phase::Doubt { .. } if self.rounds + 1 < PROBE_COUNT => {
                self.rounds += 1;
                self.ask_in_doubt();
            }
            // Nothing at all was answered, so the size is not the reason.
            Phase::Doubt { .. } => self.search(),
        }
    }

    /// True while probes find out if packets of the size in use pass.
    pub(crate) fn is_in_doubt(&self) -> bool {
        matches!(self.phase, Phase::Doubt { .. })
    }

    /// The time to wait now, if no probe is to be sent.
    pub(crate) fn wait(&self) -> Wait {
        match self.phase {
            Phase::Disabled => Wait::Never,
            Phase::Complete if self.limit > self.size => Wait::ToRaise,
            Phase::Complete => Wait::Never,
            Phase::Search { .. } | Phase::Doubt { .. } => Wait::ForAnswer,
        }
    }

    // ---- Black holes ----

    /// Puts the size in doubt: nothing of a flight with large packets was acknowledged in time.
    /// True if probes now settle that.
    pub(crate) fn doubt(&mut self) -> bool {
        let may_be_less = self.is_on && self.size > MIN_MTU && self.phase != Phase::Disabled;
        if !may_be_less {
            return false;
        }
        self.forget_losses();
        if !self.is_in_doubt() {
            self.doubt_again();
        }
        true
    }

    fn doubt_again(&mut self) {
        self.due.clear();
        self.rounds = 0;
        if self.size <= MIN_MTU {
            self.is_confirmed = true; // there is nothing less
            return self.search();
        }
        self.phase = Phase::Doubt { hint: None };
        self.ask_in_doubt();
    }

    /// Probes the sizes in question, the largest first: if a smaller one is answered before it, the
    /// larger one did not arrive.
    fn ask_in_doubt(&mut self) {
        let hint = match self.phase {
            Phase::Doubt { hint } => hint,
            _ => None,
        };
        let (size, least) = (self.size, MIN_MTU);
        self.ask(&[size]);
        if size > BASE_MTU {
            self.ask(&[BASE_MTU]);
        }
        match hint {
            Some(hint) => self.ask(&[hint]),
            None => self.ask(&[least]),
        }
    }

    /// Takes the lengths of the longest packets that a SACK acknowledged and made lost. True if
    /// that puts the size in doubt.
    pub(crate) fn note_sack(&mut self, acked: usize, lost: usize) -> bool {
        if !self.is_on {
            return false;
        }
        if acked >= self.size && self.is_in_doubt() {
            // A packet of the size in doubt arrived after all.
            self.is_confirmed = true;
            self.search();
        }
        if acked >= self.shortest_lost.min(lost) && acked > 0 {
            self.forget_losses();
        } else if lost > MIN_MTU {
            self.large_lost += 1;
            self.shortest_lost = self.shortest_lost.min(lost);
        }
        self.large_lost >= LARGE_LOST_MAX && self.doubt()
    }

    fn forget_losses(&mut self) {
        (self.large_lost, self.shortest_lost) = (0, usize::MAX);
    }

    fn lower(&mut self, size: usize) {
        // Larger packets may pass again, or were lost by chance, so the search starts over from
        // here.
        self.size = size.min(self.size);
        self.is_confirmed = true;
        self.fails_from = None;
        self.forget_losses();
    }

    // ---- What others say ----

    /// Takes a router's message that only packets of `mtu` bytes pass (RFC 8899 §4.6.2). It may be
    /// forged, so alone it never lowers the size below [`BASE_MTU`].
    pub(crate) fn on_packet_too_big(&mut self, mtu: usize) {
        let mtu = unpadded(mtu);
        let largest = self.unanswered.iter().map(|probe| probe.size).fold(self.size, usize::max);
        if self.phase == Phase::Disabled || mtu < MIN_MTU || mtu >= largest {
            return;
        }
        self.fails_from = Some(self.fails_from.map_or(mtu + 4, |fails| fails.min(mtu + 4)));
        let size = self.size;
        if mtu >= size {
            if matches!(self.phase, Phase::Search { candidate } if candidate > mtu) {
                self.search_at(mtu);
            }
        } else if mtu >= BASE_MTU {
            (self.size, self.is_confirmed) = (BASE_MTU.min(size), false);
            self.search_at(mtu);
        } else if self.phase != (Phase::Doubt { hint: Some(mtu) }) {
            // Every packet in flight, and the probes themselves, draw such a message: act on the
            // first.
            (self.size, self.is_confirmed) = (BASE_MTU.min(size), false);
            self.rounds = 0;
            self.due.clear();
            self.phase = Phase::Doubt { hint: Some(mtu) };
            self.ask_in_doubt();
        }
    }

    /// Continues the search with the size that a message named.
    fn search_at(&mut self, candidate: usize) {
        if candidate <= self.size {
            return self.search();
        }
        self.rounds = 0;
        self.due.clear();
        self.phase = Phase::Search { candidate };
        self.ask(&[candidate]);
    }

    /// Takes a new MTU of this host's interface, in bytes.
    pub(crate) fn set_link(&mut self, config: &Config, link: usize) {
        let new = limit(config, Some(link));
        if !self.is_on || new == self.limit {
            return;
        }
        let grows = new > self.limit;
        self.limit = new;
        if self.size > new {
            (self.size, self.is_confirmed) = (new, false);
        }
        if self.fails_from.is_some_and(|fails| fails > new) {
            self.fails_from = None;
        }
        match self.phase {
            Phase::Search { candidate } if candidate > new => self.search(),
            Phase::Complete if grows || !self.is_confirmed => self.search(),
            _ => self.due.retain(|size| *size <= new),
        }
    }

    /// Takes note that this host's system refused a packet of `size` bytes.
    pub(crate) fn on_refused(&mut self, size: usize) {
        let size = unpadded(size);
        if self.phase == Phase::Disabled || size <= MIN_MTU {
            return;
        }
        self.fails_from = Some(self.fails_from.map_or(size, |fails| fails.min(size)));
        if size <= self.size {
            let less = if size > BASE_MTU { BASE_MTU } else { MIN_MTU };
            (self.size, self.is_confirmed) = (less, false);
            self.search();
        } else if matches!(self.phase, Phase::Search { candidate } if candidate >= size) {
            self.search();
        }
    }

    /// Checks what must always hold.
    pub(crate) fn check_invariants(&self) {
        if !self.is_on {
            return;
        }
        assert!((MIN_MTU..=self.limit).contains(&self.size), "a size of {}", self.size);
        assert_eq!(self.size % 4, 0, "sizes are multiples of four");
        assert!(self.due.iter().all(|size| *size <= self.limit), "{:?} is too large", self.due);
        assert!(self.unanswered.len() <= MAX_PROBES, "{} probes", self.unanswered.len());
    }
}

/// The largest size to try.
fn limit(config: &Config, link: Option<usize>) -> usize {
    let most = link.map_or(config.mtu, |link| link.min(config.pmtu_max));
    unpadded(most).max(MIN_MTU)
}

#[cfg(test)]
mod tests;
