//! Carrying out what a redundancy policy says: which chunks are sent twice, and how the flights of
//! paths end.

use std::collections::VecDeque;
use std::time::Duration;

use manypath_wire::{DataFlags, PacketBuilder, Tsn};

use super::data::push_data;
use crate::assoc::{AssocTimer, Association, Timer};
use crate::path::Path;
use crate::policy::redundant::Cover;
use crate::time::Instant;
use crate::tx::Sent;
use crate::view::{PathId, PathRank};

/// Bytes that may be copied because they are late: this number, and one of fifty acknowledged.
const LATE_BYTES: u64 = 512 << 10;
const LATE_SHARE: u64 = 50;

/// The largest part of a path's smoothed round-trip time by which its round-trip times are taken to
/// vary: after the first ones RTTVAR says little.
const MARGIN_MAX: u32 = 3;

/// The least time without progress of the cumulative TSN ack after which chunks are overdue. A
/// shorter pause is over sooner than copies would help.
const LEAST_STALL: Duration = Duration::from_millis(50);

/// The paths' roles, and their flights.
#[derive(Debug, Default)]
pub(crate) struct Redundancy {
    cover: Option<Cover>,
    /// Chunks of the covered path that were sent after this transmission are still to be copied.
    copied_up_to: Option<u64>,
    /// Those sent after this one are still to be looked at.
    seen_up_to: Option<u64>,
    /// Of what was looked at, what may still be copied, in the order of transmission. Each chunk
    /// enters once.
    to_copy: VecDeque<Tsn>,
    /// The last transmission of the flight under way, by path.
    flights: Vec<Option<u64>>,
    /// Bytes of chunks that were copied.
    copied_bytes: u64,
    /// When the cumulative TSN ack point last moved.
    progress_at: Instant,
}

impl Redundancy {
    /// A SACK moved the cumulative TSN ack point.
    pub(crate) fn note_progress(&mut self, now: Instant) {
        self.progress_at = now;
    }

    /// Forgets what was looked at and not copied.
    fn look_again(&mut self) {
        self.seen_up_to = self.copied_up_to;
        self.to_copy.clear();
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

impl Association {
    /// Asks the policy, if it is on, for the paths' roles, before anything is sent. True if there
    /// may be something to copy.
    #[inline(never)]
    pub(crate) fn may_copy(&mut self, now: Instant) -> bool {
        let cover = match self.cheapest_rank() {
            None => self.decide(now, |policies, cx| policies.redundant.cover(cx)),
            Some(cheapest) => self.cover_among(now, cheapest),
        };
        if cover != self.redundancy.cover {
            // What is in flight already was sent before the roles were given.
            self.redundancy.copied_up_to = Some(self.out.last_order());
            self.redundancy.look_again();
            self.redundancy.cover = cover;
        }
        self.note_flights();
        cover.is_some() && !self.out.is_empty()
    }

    /// The roles of the cheapest paths: copies shall not push new data on to dearer ones.
    fn cover_among(&mut self, now: Instant, cheapest: PathRank) -> Option<Cover> {
        self.decide(now, |policies, cx| {
            let mut views = cx.paths.to_vec();
            views.iter_mut().for_each(|view| view.usable &= view.rank <= cheapest);
            policies.redundant.cover(&mut cx.of(&views))
        })
    }

    /// The path that carries copies now, and so no new data.
    pub(super) fn redundant_path(&self) -> Option<PathId> {
        self.redundancy.cover.map(|cover| cover.redundant)
    }

    /// The chunk to be copied now, and the path for it.
    pub(super) fn choose_copy(&mut self) -> Option<(PathId, Tsn)> {
        let Cover { redundant, covered } = self.redundancy.cover?;
        if !self.paths.get(redundant)?.role.usable || !self.has_room(redundant) {
            return None;
        }
        Some((redundant, self.next_to_copy(covered)?))
    }

    /// A chunk in flight on a slow path that a faster one, which has nothing else to send, delivers
    /// sooner; and that path. The chunk that holds back most comes first.
    pub(super) fn choose_late(&self, now: Instant) -> Option<(PathId, Tsn)> {
        if !self.may_copy_late() {
            return None;
        }
        let measured = || self.paths.iter().filter_map(|p| Some((p, p.rto.srtt()?)));
        let free = measured().filter(|(p, _)| p.role.usable && self.has_room(p.id));
        let (fast, fast_rtt) = free.min_by_key(|(_, srtt)| *srtt)?;
        let soon = now + fast_rtt;
        // What is overdue may be lost. What is due soon needs no copy: delays vary, and a copy
        // takes a round trip of the fast path itself.
        let late_on = |slow: &Path, slow_rtt: Duration| {
            let margin = slow.rto.variation().min(slow_rtt / MARGIN_MAX);
            let estimate = slow.flow.estimate.filter(|estimate| estimate.is_settled);
            let mut ahead = 0;
            let mut is_late = |sent: &Sent| {
                ahead += sent.size();
                let usual = sent.sent_at + slow_rtt;
                // A path that is full delivers one chunk after the other.
                let drained = estimate.map(|estimate| now + estimate.time_of(ahead));
                let due = drained.map_or(usual, |drained| drained.max(usual));
                usual + margin < now || due > soon + margin.min(fast_rtt)
            };
            let mut flight = self.out.sent_in_order(slow.id);
            flight.find(|(tsn, sent)| is_late(sent) && self.out.may_copy(*tsn, slow.id))
        };
        let slower = measured().filter(|(p, srtt)| p.id != fast.id && *srtt > fast_rtt);
        let base = self.out.cum_tsn_ack_point();
        let found = slower.filter_map(|(p, srtt)| late_on(p, srtt));
        let (tsn, _) = found.min_by_key(|(tsn, _)| tsn.distance_from(base))?;
        Some((fast.id, tsn))
    }

    /// Late chunks may be copied, and were not too many yet.
    fn may_copy_late(&self) -> bool {
        let limit = LATE_BYTES + self.stats.bytes_acked / LATE_SHARE;
        self.policies.needs.late_copies && self.redundancy.copied_bytes < limit
    }

    /// The earliest overdue chunk that was not copied yet, and another path with room. A chunk is
    /// overdue if it is under way for two round-trip times of its path while the receiver waits.
    /// The copy comes before new data, which would have to wait, too.
    pub(super) fn choose_overdue(&self, now: Instant) -> Option<(PathId, Tsn)> {
        if !self.policies.needs.late_copies {
            return None;
        }
        let Awaited { path: slow, patience, overdue_at } = self.awaited()?;
        if !self.may_copy_late() || now < overdue_at {
            return None;
        }
        let others =
            self.paths.iter().filter(|p| p.id != slow && p.role.usable && self.has_room(p.id));
        let other = others.min_by_key(|p| p.rto.srtt().unwrap_or(Duration::MAX))?;
        let mut flight = self.out.sent_in_order(slow);
        let (tsn, sent) = flight.find(|(tsn, _)| self.out.may_copy_overdue(*tsn, slow))?;
        (now >= sent.sent_at + patience).then_some((other.id, tsn))
    }

    /// The chunk that the receiver waits for, if one is outstanding.
    fn awaited(&self) -> Option<Awaited> {
        let next = self.out.get(self.out.cum_tsn_ack_point().next())?;
        let p = self.paths.get(next.path)?;
        let patience = (2 * p.rto.srtt()?).max(LEAST_STALL);
        // Copies move the point, too, while the path itself says nothing.
        let quiet_since = self.redundancy.progress_at.min(p.liveness.last_active);
        let overdue_at = next.sent_at.max(quiet_since) + patience;
        Some(Awaited { path: next.path, patience, overdue_at })
    }

    /// Nothing can be sent. Looks again when what the receiver waits for is overdue, or, if it is,
    /// when a pacer lets it go: at the end of a transfer nothing else may happen before T3-rtx.
    pub(super) fn wait_for_overdue(&mut self, now: Instant) {
        if !self.policies.needs.late_copies {
            return;
        }
        let Some(Awaited { path: slow, overdue_at, .. }) = self.awaited() else { return };
        let timer = Timer::Assoc(AssocTimer::Overdue);
        if now < overdue_at {
            return self.timers.start(timer, overdue_at);
        }
        let has_window = |p: &&mut Path| p.flow.usable_cwnd() > self.out.counted(p.id);
        let others =
            self.paths.iter_mut().filter(|p| p.id != slow && p.role.usable).filter(has_window);
        if let Some(at) = others.filter_map(|p| p.flow.pacer.hold()).min() {
            self.timers.set(timer, at);
        }
    }

    /// The earliest chunk on the covered path that is to be copied.
    fn next_to_copy(&mut self, covered: PathId) -> Option<Tsn> {
        if !self.out.is_in_order(covered) {
            // Rare: a chunk that the receiver dropped is behind those sent later, and ends the
            // search.
            self.redundancy.look_again();
            let sent = self.out.sent_after(covered, self.redundancy.copied_up_to);
            return sent.map(|(tsn, _)| tsn).filter(|&tsn| self.out.may_copy(tsn, covered)).last();
        }
        let Redundancy { seen_up_to, to_copy, .. } = &mut self.redundancy;
        let may_copy = |tsn: &Tsn| self.out.may_copy(*tsn, covered);
        loop {
            // What was acknowledged or sent again meanwhile is left out.
            while let Some(tsn) = to_copy.front() {
                if may_copy(tsn) {
                    return Some(*tsn);
                }
                to_copy.pop_front();
            }
            let mut latest = None;
            for (tsn, sent) in self.out.sent_after(covered, *seen_up_to) {
                latest = latest.or(Some(sent.order));
                to_copy.push_front(tsn);
            }
            *seen_up_to = Some(latest?);
        }
    }

    /// Appends the copy of a chunk. It is no retransmission.
    pub(super) fn push_copy(
        &mut self,
        now: Instant,
        path: PathId,
        tsn: Tsn,
        packet: &mut PacketBuilder<'_>,
    ) -> bool {
        let Some(sent) = self.out.get(tsn) else { return false };
        // The SACK is to come back on the path of the copy, not on the slower one.
        let asks = if self.policies.needs.late_copies {
            DataFlags::IMMEDIATE
        } else {
            DataFlags::default()
        };
        if !push_data(packet, tsn, sent, sent.flags | asks) {
            return false;
        }
        self.redundancy.copied_up_to = self.redundancy.copied_up_to.max(Some(sent.order));
        self.redundancy.copied_bytes += sent.size() as u64;
        if self.redundancy.to_copy.front() == Some(&tsn) {
            self.redundancy.to_copy.pop_front();
        }
        self.false_acks.sends_early(tsn);
        self.out.copy(tsn, path, now);
        if let Some(p) = self.paths.get_mut(path) {
            p.counters.data_chunks_sent += 1;
            p.counters.redundant_chunks_sent += 1;
        }
        true
    }

    /// Tells the policy, if it is on, of the flights that have ended, and notes where the next ones
    /// end.
    pub(crate) fn note_flights(&mut self) {
        for id in self.paths.ids() {
            if self.redundancy.flights.len() <= id.index() {
                self.redundancy.flights.resize(id.index() + 1, None);
            }
            let flight = &mut self.redundancy.flights[id.index()];
            let earliest = self.out.earliest_order(id);
            if flight.is_some_and(|last| earliest.is_none_or(|order| order > last)) {
                self.policies.redundant.flight_succeeded(id);
                *flight = None;
            }
            *flight = flight.or_else(|| self.out.latest_order(id));
        }
    }

    /// T3-rtx expired on a path: its flight has failed.
    pub(crate) fn flight_failed(&mut self, id: PathId) {
        if let Some(flight) = self.redundancy.flights.get_mut(id.index()) {
            *flight = None;
        }
        self.policies.redundant.flight_failed(id);
    }
}
