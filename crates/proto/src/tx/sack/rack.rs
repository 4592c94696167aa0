//! Loss detection by time on one path: RACK (RFC 8985).
//!
//! A chunk is lost if another one sent later on the same path is acknowledged, and an RTT and a
//! reordering window have passed since it was sent. Retransmissions are treated like any other
//! chunk, because only the order of transmission counts, not that of TSNs.

use std::time::Duration;

use crate::time::Instant;
use crate::tx::outstanding::ring::Sent;

/// Round trips with losses, none of them spurious, after which the window shrinks to its least
/// value (§6.2, step 4).
const PERSISTENCE: u32 = 16;

/// The latest transmission that was acknowledged (RACK.segment).
#[derive(Copy, Clone, Debug)]
pub(crate) struct Newest {
    pub(crate) order: u64,
    pub(crate) rtt: Duration,
}

/// The state of one path.
#[derive(Debug)]
pub(crate) struct Rack {
    pub(crate) newest: Option<Newest>,
    /// Order of the latest acknowledged chunk that was sent once (RACK.fack).
    latest_once: Option<u64>,
    min_rtt: Option<Duration>,
    srtt: Duration,
    rttvar: Duration,
    /// True once chunks have arrived out of order on this path (RACK.reordering_seen).
    pub(super) reordering_seen: bool,
    /// The reordering window in quarters of the least round-trip time (RACK.reo_wnd_mult).
    quarters: u32,
    /// Round trips with losses left until the window shrinks to its least value
    /// (RACK.reo_wnd_persist).
    persists: u32,
    /// When the window last grew, and when losses were last counted: once a round trip.
    grown_at: Option<Instant>,
    counted_at: Option<Instant>,
}

impl Default for Rack {
    fn default() -> Rack {
        Rack {
            newest: None,
            latest_once: None,
            min_rtt: None,
            srtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            reordering_seen: false,
            quarters: 1,
            persists: PERSISTENCE,
            grown_at: None,
            counted_at: None,
        }
    }
}

impl Rack {
    /// Takes note of a chunk acknowledged for the first time. False if the acknowledgement came too
    /// soon for the last transmission: an earlier one must have arrived, and its loss was spurious.
    pub(crate) fn on_acked(&mut self, now: Instant, sent: &Sent) -> bool {
        let rtt = now.saturating_since(sent.sent_at);
        let is_once = sent.transmissions == 1;
        // §6.2, step 2.
        if !is_once && self.min_rtt.is_none_or(|min| rtt < min) {
            return self.min_rtt.is_none(); // nothing is known, and nothing is learnt
        }
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |min| min.min(rtt)));
        if self.srtt.is_zero() {
            (self.srtt, self.rttvar) = (rtt, rtt / 2);
        } else {
            self.rttvar = (self.rttvar * 3 + self.srtt.abs_diff(rtt)) / 4;
            self.srtt = (self.srtt * 7 + rtt) / 8;
        }
        if self.newest.is_none_or(|newest| sent.order > newest.order) {
            self.newest = Some(Newest { order: sent.order, rtt });
        }
        if is_once {
            // §6.2, step 3.
            self.reordering_seen |= self.latest_once.is_some_and(|latest| sent.order < latest);
            self.latest_once = self.latest_once.max(Some(sent.order));
        }
        true
    }

    /// True if an acknowledgement after this time is clearly too early for a retransmission, even
    /// if the shortest RTT was measured with a queue on the path.
    pub(super) fn is_clearly_early(&self, rtt: Duration) -> bool {
        self.min_rtt.is_some_and(|min| rtt < min * 3 / 4)
    }

    /// A loss was spurious: the window grows (§6.2, step 4). `took` is the time from the
    /// transmission to its acknowledgement, if known.
    ///
    /// Deviation: the window grows at once to the size that would have been enough. Where the delay
    /// varies by a multiple of the shortest RTT, steps of a quarter per round trip would take long.
    pub(super) fn on_spurious(&mut self, now: Instant, took: Option<Duration>) {
        self.reordering_seen = true;
        if let (Some(took), Some(newest), Some(min_rtt)) = (took, self.newest, self.min_rtt) {
            let late = took.saturating_sub(newest.rtt).as_nanos();
            let needed = (4 * late).div_ceil(min_rtt.as_nanos().max(1));
            self.quarters = self.quarters.max(u32::try_from(needed).unwrap_or(u32::MAX));
        }
        if self.grown_at.is_none_or(|at| now.saturating_since(at) >= self.srtt) {
            self.grown_at = Some(now);
            self.quarters = self.quarters.saturating_add(1);
        }
        self.persists = PERSISTENCE;
    }

    /// Chunks were lost.
    pub(crate) fn on_losses(&mut self, now: Instant) {
        if self.counted_at.is_some_and(|at| now.saturating_since(at) < self.srtt) {
            return;
        }
        self.counted_at = Some(now);
        self.persists = self.persists.saturating_sub(1);
        if self.persists == 0 {
            (self.quarters, self.persists) = (1, PERSISTENCE);
        }
    }

    /// The reordering window (RACK.reo_wnd).
    ///
    /// Deviation: the limit is SRTT plus four times RTTVAR, not SRTT alone. On radio links the
    /// delay varies by more than the shortest RTT, and chunks are late by that much.
    pub(crate) fn window(&self) -> Duration {
        let quarter = self.min_rtt.unwrap_or_default() / 4;
        quarter.saturating_mul(self.quarters).min(self.srtt + 4 * self.rttvar)
    }
}
