//! The peer's receive buffer: its free room, probes while there is none, and data that waits for
//! it.

use std::time::Duration;

use manypath_wire::Sack;

use crate::time::Instant;
use crate::tx::SackDigest;

/// The peer's receive buffer, as far as we know it.
#[derive(Debug, Default)]
pub(crate) struct PeerWindow {
    /// a_rwnd of the latest SACK, in bytes; at first, of INIT or INIT ACK.
    a_rwnd: usize,
    /// The last chunk probed a zero window (RFC 9260 §6.1, rule A), and no SACK has acknowledged
    /// anything since.
    is_probed: bool,
    /// A SACK arrived since the first probe, and since T3-rtx last expired.
    is_answered: bool,
    /// Since when data waits for the peer's receive buffer alone.
    blocked_since: Option<Instant>,
}

impl PeerWindow {
    /// Takes the a_rwnd of the handshake.
    pub(crate) fn begin(&mut self, a_rwnd: u32) {
        self.a_rwnd = a_rwnd as usize;
    }

    pub(crate) fn a_rwnd(&self) -> usize {
        self.a_rwnd
    }

    /// The a_rwnd as a 32-bit number, for chunks and the configuration.
    pub(crate) fn a_rwnd_u32(&self) -> u32 {
        u32::try_from(self.a_rwnd).unwrap_or(u32::MAX)
    }

    /// Takes the a_rwnd of a SACK with the facts in `digest`.
    pub(crate) fn on_sack(&mut self, sack: &Sack, digest: &SackDigest) {
        if !digest.stale {
            let most = if digest.cut_or_stale { self.a_rwnd } else { usize::MAX };
            self.a_rwnd = most.min(sack.a_rwnd as usize);
        }
        self.is_answered = true;
        if digest.newly_acked > 0 {
            self.is_probed = false;
        }
    }

    // ---- Probes of a closed window ----

    /// Notes that a chunk that does not fit is sent. Earlier SACKs do not answer it.
    pub(crate) fn probe(&mut self) {
        if !std::mem::replace(&mut self.is_probed, true) {
            self.is_answered = false;
        }
    }

    pub(crate) fn is_probed(&self) -> bool {
        self.is_probed
    }

    /// True if the window is being probed and the peer answers.
    pub(crate) fn is_probe_answered(&self) -> bool {
        self.is_probed && self.is_answered
    }

    /// True if nothing fits, as far as we know.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_probed || self.a_rwnd == 0
    }

    /// Takes the answer when T3-rtx expires. True if a SACK arrived since it last expired.
    pub(crate) fn take_answer(&mut self) -> bool {
        std::mem::take(&mut self.is_answered)
    }

    /// The window has opened again.
    pub(crate) fn end_probe(&mut self) {
        self.is_probed = false;
    }

    // ---- Data that waits ----

    /// Since when data waits for the peer's receive buffer alone.
    pub(crate) fn blocked_since(&self) -> Option<Instant> {
        self.blocked_since
    }

    /// Notes if data waits for the peer alone. When that ends, returns how long it lasted.
    pub(super) fn note_blocked(&mut self, now: Instant, is_blocked: bool) -> Option<Duration> {
        match (is_blocked, self.blocked_since) {
            (true, None) => self.blocked_since = Some(now),
            (false, Some(since)) => {
                self.blocked_since = None;
                return Some(now - since);
            }
            _ => {}
        }
        None
    }

    /// Ends the wait without counting it, because the association has ended.
    pub(crate) fn end_blocked(&mut self) {
        self.blocked_since = None;
    }
}
