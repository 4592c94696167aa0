//! Dearer paths for what cheaper ones cannot carry.

use std::time::Duration;

use super::{Ceiling, RankCx, RankPolicy};
use crate::params::Params;
use crate::time::Instant;
use crate::view::{PathRank, PathView};

/// Round trips of waiting that are normal: the recovery of a lost packet takes about that long.
const ROUNDS: u32 = 4;
/// Round trips of waiting that are normal in slow start, when the capacity is still unknown.
const ROUNDS_IN_SLOW_START: u32 = 10;

/// A path with a cost carries data if no cheaper one works, or if the cheaper ones cannot carry
/// what the application offers: data has waited for room on them for `overflow_after`, and for
/// some round trips. A [backup](PathRank::Backup) path carries data only if no other one works.
///
/// The rule judges the age of the data that is next to be sent, as CoDel judges a queue (RFC 8289
/// §3.2): how long data waits, not how much, tells a burst from an overload.
///
/// - Once a rank is in use, its paths get data that the cheaper ones have no room for and that has
///   waited for a round trip. So cheaper paths stay full, and latency stays low.
/// - A rank goes out of use when its paths have carried nothing for as long as data waits before a
///   rank comes into use.
/// - The next dearer rank has a wait of its own.
#[derive(Debug)]
pub struct Overflow {
    after: Duration,
    base: PathRank,
    /// The dearest rank in use.
    top: PathRank,
    /// Since when `top` is the dearest rank in use.
    since: Instant,
    /// When paths of that rank last carried data, or when it came into use.
    used: Instant,
}

impl Overflow {
    /// With the wait of a configuration.
    pub fn new(config: &Params) -> Overflow {
        Overflow {
            after: config.overflow_after,
            base: PathRank::NORMAL,
            top: PathRank::NORMAL,
            since: Instant::ZERO,
            used: Instant::ZERO,
        }
    }

    fn set_top(&mut self, now: Instant, top: PathRank) {
        (self.top, self.since, self.used) = (top, now, now);
    }

    /// How long data must wait for the paths up to a rank before a dearer rank comes into use.
    fn patience(&self, cx: &RankCx<'_>) -> Duration {
        let in_slow_start = usable(cx).any(|p| p.rank <= self.top && p.cwnd < p.ssthresh);
        let rounds = if in_slow_start { ROUNDS_IN_SLOW_START } else { ROUNDS };
        self.after.max(round_trip(cx, self.top) * rounds)
    }

    /// Ends the use of a rank that carried nothing for `patience`.
    fn close(&mut self, cx: &RankCx<'_>, patience: Duration) {
        if self.top > cx.base && cx.now.saturating_since(self.used) >= patience {
            let below = usable(cx).map(|p| p.rank).filter(|rank| *rank < self.top).max();
            self.set_top(cx.now, below.unwrap_or(cx.base));
        }
    }

    /// Takes the next rank into use if data has waited long enough. Otherwise returns the time when
    /// it will have.
    fn open(&mut self, cx: &RankCx<'_>, patience: Duration) -> Option<Instant> {
        let waits_since = cx.waits_since?;
        let dearer = usable(cx).map(|p| p.rank);
        let dearer = dearer.filter(|rank| *rank > self.top && *rank < PathRank::Backup).min()?;
        if usable(cx).any(|p| p.rank <= self.top && p.cwnd_space > 0) {
            return None;
        }
        let due = waits_since.max(self.since) + patience;
        if due > cx.now {
            return Some(due);
        }
        self.set_top(cx.now, dearer);
        None
    }

    /// The rank for the next packet: the cheapest with room. Also returns the time when a dearer
    /// one may carry it, if it has to wait.
    fn next(&self, cx: &RankCx<'_>) -> (PathRank, Option<Instant>) {
        let mut rank = cx.base;
        loop {
            if usable(cx).any(|p| p.rank == rank && p.cwnd_space > 0) {
                return (rank, None);
            }
            let dearer = usable(cx).map(|p| p.rank).filter(|r| *r > rank && *r <= self.top).min();
            let (Some(dearer), Some(since)) = (dearer, cx.waits_since) else {
                return (rank, None);
            };
            let due = since + round_trip(cx, rank);
            if due > cx.now {
                return (rank, Some(due));
            }
            rank = dearer;
        }
    }
}

fn usable<'a>(cx: &RankCx<'a>) -> impl Iterator<Item = &'a PathView> + use<'a> {
    cx.paths.iter().filter(|p| p.usable)
}

/// The longest RTT of the paths up to a rank.
fn round_trip(cx: &RankCx<'_>, rank: PathRank) -> Duration {
    let paths = usable(cx).filter(|p| p.rank <= rank);
    paths.map(|p| p.srtt.unwrap_or(p.rto)).max().unwrap_or_default()
}

impl RankPolicy for Overflow {
    fn ceiling(&mut self, cx: &RankCx<'_>) -> Ceiling {
        if self.base != cx.base {
            // A cheaper path works again, or the cheapest ones no longer work.
            self.base = cx.base;
            self.set_top(cx.now, cx.base);
        }
        let patience = self.patience(cx);
        self.close(cx, patience);
        let opens = self.open(cx, patience);
        let (next, overflows) = self.next(cx);
        Ceiling { open: self.top, next, again: opens.into_iter().chain(overflows).min() }
    }

    fn sent(&mut self, now: Instant, rank: PathRank) {
        if rank == self.top {
            self.used = now;
        }
    }
}

#[cfg(test)]
mod tests;
