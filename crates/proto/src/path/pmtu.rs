//! The size of the packets that a path carries, found by probes: Datagram Packetization Layer Path
//! MTU Discovery (RFC 8899). This file decides which sizes to try and what an answer, or none,
//! says; `assoc/paths/pmtu.rs` sends the probes.
//!
//! All sizes are of IP packets, in bytes, and multiples of four, as SCTP packets are.

use serde::Serialize;
use smallvec::SmallVec;

use crate::config::Config;
use crate::sizes::{self, unpadded};
use crate::time::Instant;

/// BASE_PLPMTU: the size that a path begins with, and goes back to when larger packets get lost.
/// Every IPv6 link carries it, and nearly every way through IPv4 (RFC 8899 §5.1.2 suggests 1200 for
/// UDP).
pub(crate) const BASE_MTU: usize = sizes::IPV6_MIN_MTU;

/// MIN_PLPMTU: what a path is taken for that does not even carry [`BASE_MTU`]: what every host must
/// be able to receive over IPv4 (RFC 1122 §3.3.2). Nothing makes a path's size less.
pub(crate) const MIN_MTU: usize = sizes::IPV4_MIN_MTU;

/// MAX_PROBES (RFC 8899 §5.1.2): probes of one size that get lost before it counts as too large.
const PROBE_COUNT: u8 = 3;

/// PMTU_RAISE_TIMER (RFC 8899 §5.1.1): when larger sizes are tried again, in seconds.
pub(crate) const RAISE_AFTER_S: u64 = 600;

/// Losses of long packets, by missing reports and with none as long acknowledged between, that put
/// the size in doubt.
const LARGE_LOST_MAX: u32 = 3;

/// How near to the largest size that passes the search must come, in bytes.
const STEP: usize = 4;

/// Sizes that real links have: jumbo frames, FDDI, Ethernet, PPPoE, tunnels, WireGuard, X.25.
const COMMON: [usize; 22] = [
    576, 1004, 1280, 1300, 1320, 1340, 1360, 1380, 1400, 1420, 1440, 1460, 1480, 1492, 1500, 2000,
    2300, 4352, 4464, 8164, 8996, 9000,
];

/// Probes that may be unanswered at once; answers to older ones count for nothing.
const MAX_PROBES: usize = 8;

/// Why a path's size is another one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MtuReason {
    /// A probe of this size was answered.
    Confirmed,
    /// Larger packets get lost while small ones arrive.
    BlackHole,
    /// A router said so, in a message about a packet of ours (RFC 8899 §4.6).
    PacketTooBig,
    /// This host's own interface does not take larger ones.
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

/// The states of RFC 8899 §5.2. Base and error are one here: what is in doubt is the size in use,
/// and it is settled by asking for several sizes at once.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing is probed: it is off, or the path was not verified yet.
    Disabled,
    /// A larger size is tried.
    Search { candidate: usize },
    /// Nothing larger is left to try; [`RAISE_AFTER_S`] later it is.
    Complete,
    /// Packets of the size in use may get lost: that size, the base and the least one are asked for
    /// together.
    Doubt { hint: Option<usize> },
}

#[derive(Copy, Clone, Debug)]
struct SizeProbe {
    size: usize,
    nonce: u64,
}

/// When the timer is wanted next.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// After the time in which a probe is answered.
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
    /// The size in use arrives, as an answer to a probe says.
    is_confirmed: bool,
    /// The most that is tried: what this host's interface takes, and the configuration allows.
    limit: usize,
    /// The size to try first.
    likely: usize,
    /// The least of the sizes that are known not to pass.
    fails_from: Option<usize>,
    /// Probes of the same size, or of the same doubt, that were sent so far.
    rounds: u8,
    unanswered: SmallVec<[SizeProbe; MAX_PROBES]>,
    /// Sizes to be asked for now.
    due: SmallVec<[usize; 4]>,
    /// SACKs by which long packets were lost since one as long was acknowledged, and the shortest
    /// of these packets.
    large_lost: u32,
    shortest_lost: usize,
    /// When the last probe was sent.
    pub(crate) asked_at: Option<Instant>,
    /// When a message of a router last made it smaller.
    pub(crate) told_at: Option<Instant>,
}

impl Pmtu {
    /// Of a path that begins: its interface takes packets of `link` bytes, if that is known.
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

    /// The size in use was not only what a path begins with: larger ones were answered, or were
    /// not.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_confirmed || self.fails_from.is_some()
    }

    /// The size in use.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// The path was verified, or works again: the search begins, or goes on.
    pub(crate) fn start(&mut self) {
        if self.is_on && matches!(self.phase, Phase::Disabled) {
            self.search();
        }
    }

    /// Tries the next size; all is found if none is left.
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

    /// The likely size, then the most that can be, then the middle of the common ones between what
    /// passes and what does not, then the middle (RFC 8899 §5.3 leaves the choice open).
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
            // Nothing larger passed at all: perhaps this size does not, either.
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

    /// The size of the probe that is sent now, with this nonce.
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

    /// Nothing is asked any more: the association ends, or the path does.
    pub(crate) fn stop(&mut self) {
        self.due.clear();
        self.phase = Phase::Disabled;
    }

    /// A probe with this nonce was answered. `None` if there was none such.
    pub(crate) fn on_answer(&mut self, nonce: u64) -> Option<()> {
        let at = self.unanswered.iter().position(|probe| probe.nonce == nonce)?;
        let size = self.unanswered.remove(at).size;
        if size > self.limit {
            return Some(()); // the interface has become smaller meanwhile
        }
        if size < self.size {
            // The probe of the size in use was sent before this one. If it is only late, or was
            // lost like any other packet, the next answer makes good.
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

    /// A probe was not answered in time, or it is time to try larger sizes again.
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
            // Nothing at all was answered: that is no matter of sizes.
            Phase::Doubt { .. } => self.search(),
        }
    }

    /// Packets of the size in use may get lost, and that is being asked.
    pub(crate) fn is_in_doubt(&self) -> bool {
        matches!(self.phase, Phase::Doubt { .. })
    }

    /// How long to wait now, if no probe is to be sent.
    pub(crate) fn wait(&self) -> Wait {
        match self.phase {
            Phase::Disabled => Wait::Never,
            Phase::Complete if self.limit > self.size => Wait::ToRaise,
            Phase::Complete => Wait::Never,
            Phase::Search { .. } | Phase::Doubt { .. } => Wait::ForAnswer,
        }
    }

    // ---- Black holes ----

    /// Packets of the size in use may get lost: nothing of a flight with large packets was
    /// acknowledged in time. Returns whether that is asked now.
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

    /// The largest first: if a smaller one is answered before it, it did not arrive.
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

    /// A SACK acknowledged packets of at most `acked` bytes, and made such of up to `lost` bytes
    /// lost. True if that puts the size in doubt.
    pub(crate) fn note_sack(&mut self, acked: usize, lost: usize) -> bool {
        if !self.is_on {
            return false;
        }
        if acked >= self.size && self.is_in_doubt() {
            // One of the size in doubt arrived after all.
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
        // Larger packets may pass again, or were lost by chance: they are tried again from above.
        self.size = size.min(self.size);
        self.is_confirmed = true;
        self.fails_from = None;
        self.forget_losses();
    }

    // ---- What others say ----

    /// A router, or somebody who saw a packet of ours, says that only packets of `mtu` bytes pass
    /// (RFC 8899 §4.6.2). It can make the path's size no less than [`BASE_MTU`] by itself.
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
            // Each packet under way draws such a message, and the probes do: it is asked once.
            (self.size, self.is_confirmed) = (BASE_MTU.min(size), false);
            self.rounds = 0;
            self.due.clear();
            self.phase = Phase::Doubt { hint: Some(mtu) };
            self.ask_in_doubt();
        }
    }

    /// Goes on with this size, which somebody named.
    fn search_at(&mut self, candidate: usize) {
        if candidate <= self.size {
            return self.search();
        }
        self.rounds = 0;
        self.due.clear();
        self.phase = Phase::Search { candidate };
        self.ask(&[candidate]);
    }

    /// This host's interface takes packets of `link` bytes from now on.
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

    /// This host's system did not take a packet of `size` bytes: it never left.
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

/// The most that is tried.
fn limit(config: &Config, link: Option<usize>) -> usize {
    let most = link.map_or(config.mtu, |link| link.min(config.pmtu_max));
    unpadded(most).max(MIN_MTU)
}

#[cfg(test)]
mod tests;
