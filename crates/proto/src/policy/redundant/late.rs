//! Copies of what is late.

use std::time::Duration;

use super::{ChunkCopy, CopyTurn, FlightPath, Flights, NextLook, RedundancyPolicy, SentChunk};
use crate::policy::Needs;
use crate::time::Instant;
use crate::view::{Estimate, PathId};

/// Bytes that may be copied: this number, and one of [`COPIED_SHARE`] acknowledged.
const COPIED_BYTES: u64 = 512 << 10;
const COPIED_SHARE: u64 = 50;

/// The largest part of a path's smoothed round-trip time by which its round-trip times are taken to
/// vary: after the first ones RTTVAR says little.
const MARGIN_MAX: u32 = 3;

/// The least time without progress of the cumulative TSN ack after which chunks are overdue. A
/// shorter pause is over sooner than copies would help.
const LEAST_STALL: Duration = Duration::from_millis(50);

/// No path duplicates another. But chunks that are late on one path are sent again on another
/// (reinjection), in two cases:
///
/// - A path has nothing else to send, at the end of a transfer or because the peer's receive buffer
///   is full, and delivers clearly sooner than the slower path that has a chunk in flight. Or the
///   slower path should have delivered by now.
/// - The receiver waits for a chunk that is overdue on a path, which may be silent or have become
///   slow.
///
/// The copies are 512 KiB and 2 % of what is acknowledged, at most. They ask for a SACK at once, so
/// that it comes back on their path and not on the slower one.
#[derive(Debug, Default)]
pub struct Late;

impl RedundancyPolicy for Late {
    fn needs(&self) -> Needs {
        Needs { copies: true, ..Needs::default() }
    }

    fn copy(&mut self, now: Instant, turn: CopyTurn, flights: &dyn Flights) -> Option<ChunkCopy> {
        if flights.bytes_copied() >= COPIED_BYTES + flights.bytes_acked() / COPIED_SHARE {
            return None;
        }
        match turn {
            CopyTurn::BeforeNewData => overdue(now, flights),
            CopyTurn::Idle => late(now, flights),
        }
    }

    fn next_look(&mut self, now: Instant, flights: &dyn Flights) -> Option<NextLook> {
        let awaited = Awaited::of(flights)?;
        if now < awaited.overdue_at {
            return Some(NextLook::At(awaited.overdue_at));
        }
        Some(NextLook::Paced { except: awaited.path })
    }
}

/// A chunk that the receiver waits for: everything after it does.
struct Awaited {
    /// The path that it is under way on.
    path: PathId,
    /// How long a chunk may be under way there.
    patience: Duration,
    /// When it is overdue.
    overdue_at: Instant,
}

impl Awaited {
    /// That chunk, if one is outstanding.
    fn of(flights: &dyn Flights) -> Option<Awaited> {
        let next = flights.awaited()?;
        let path = flights.path(next.path)?;
        let patience = (2 * path.srtt?).max(LEAST_STALL);
        // Copies move the point, too, while the path itself says nothing.
        let quiet_since = flights.last_progress().min(path.last_active);
        let overdue_at = next.sent_at.max(quiet_since) + patience;
        Some(Awaited { path: path.id, patience, overdue_at })
    }
}

/// The earliest overdue chunk that was not copied yet, for another path with room. A chunk is
/// overdue if it is under way for two round-trip times of its path while the receiver waits. The
/// copy comes before new data, which would have to wait, too.
fn overdue(now: Instant, flights: &dyn Flights) -> Option<ChunkCopy> {
    // Mostly the chunk is too young whatever its path: this is asked for every packet.
    if now < flights.awaited()?.sent_at + LEAST_STALL {
        return None;
    }
    let slow = Awaited::of(flights)?;
    if now < slow.overdue_at {
        return None;
    }
    let others = flights.paths().filter(|p| p.id != slow.path && p.usable);
    let free = others.filter(|p| flights.has_room(p.id));
    let on = free.min_by_key(|p| p.srtt.unwrap_or(Duration::MAX))?;
    let chunk = flights.find_on(slow.path, &mut |chunk| flights.is_alone(chunk))?;
    (now >= chunk.sent_at + slow.patience).then_some(copy_of(chunk, on.id))
}

/// A chunk in flight on a slow path that a faster one, which has nothing else to send, delivers
/// sooner. The chunk that holds back most comes first.
fn late(now: Instant, flights: &dyn Flights) -> Option<ChunkCopy> {
    let measured = || flights.paths().filter_map(Measured::of);
    let free = measured().filter(|p| p.usable && flights.has_room(p.id));
    let fast = free.min_by_key(|p| p.srtt)?;
    let slower = measured().filter(|p| p.id != fast.id && p.srtt > fast.srtt);
    let found = slower.filter_map(|slow| slow.late_chunk(fast.srtt, now, flights));
    let base = flights.cum_tsn_ack_point();
    let chunk = found.min_by_key(|chunk| chunk.tsn.distance_from(base))?;
    Some(copy_of(chunk, fast.id))
}

/// A path whose round-trip time is known.
struct Measured {
    id: PathId,
    usable: bool,
    srtt: Duration,
    /// By how much a round-trip time may exceed the smoothed one.
    margin: Duration,
    /// The rate at which it delivers, if that was seen not to grow any more.
    settled: Option<Estimate>,
}

impl Measured {
    fn of(path: FlightPath) -> Option<Measured> {
        let FlightPath { id, usable, .. } = path;
        let srtt = path.srtt?;
        let margin = path.rtt_variation.min(srtt / MARGIN_MAX);
        let settled = path.estimate.filter(|estimate| estimate.is_settled);
        Some(Measured { id, usable, srtt, margin, settled })
    }

    /// The first chunk in flight here that is overdue, or that arrives later than by a path with
    /// the round-trip time `fast_rtt`.
    ///
    /// An overdue chunk may be lost. A chunk that is due soon needs no copy: delays vary, and a
    /// copy takes a round trip of the fast path itself.
    fn late_chunk(
        &self,
        fast_rtt: Duration,
        now: Instant,
        flights: &dyn Flights,
    ) -> Option<SentChunk> {
        let soon = now + fast_rtt + self.margin.min(fast_rtt);
        let mut ahead = 0;
        let mut is_late = |chunk: &SentChunk| {
            ahead += chunk.size;
            let usual = chunk.sent_at + self.srtt;
            // A path that is full delivers one chunk after the other.
            let drained = self.settled.map(|estimate| now + estimate.time_of(ahead));
            let due = drained.map_or(usual, |drained| drained.max(usual));
            usual + self.margin < now || due > soon
        };
        flights.find_on(self.id, &mut |chunk| {
            is_late(chunk) && chunk.is_first && flights.is_alone(chunk)
        })
    }
}

fn copy_of(chunk: SentChunk, on: PathId) -> ChunkCopy {
    ChunkCopy { tsn: chunk.tsn, on, asks_for_sack: true }
}

#[cfg(test)]
mod tests;
