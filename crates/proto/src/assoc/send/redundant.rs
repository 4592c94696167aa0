//! Carrying out what a redundancy policy says: which chunks are sent twice, and how the flights of
//! paths end.

use std::collections::VecDeque;

use manypath_wire::{DataFlags, PacketBuilder, Tsn};

use super::data::push_data;
use super::flights::FlightsView;
use crate::assoc::{AssocTimer, Association, Timer};
use crate::path::Path;
use crate::policy::redundant::{ChunkCopy, CopyTurn, Cover, Flights, NextLook, RedundancyPolicy};
use crate::time::Instant;
use crate::view::{PathId, PathRank};

/// The paths' roles, and their flights.
#[derive(Debug, Default)]
pub(crate) struct Redundancy {
    cover: Option<Cover>,
    /// Chunks of the covered path that were sent after this transmission are still to be copied.
    copied_up_to: Option<u64>,
    /// Chunks sent after this transmission are still to be looked at.
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
            // Chunks in flight were sent before the roles were given: they are not copied.
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

    /// The chunk to be copied now by the paths' roles.
    pub(super) fn copy_by_roles(&mut self) -> Option<ChunkCopy> {
        let Cover { redundant, covered } = self.redundancy.cover?;
        if !self.paths.get(redundant)?.role.usable || !self.has_room(redundant) {
            return None;
        }
        let tsn = self.next_to_copy(covered)?;
        Some(ChunkCopy { tsn, on: redundant, asks_for_sack: false })
    }

    /// True if the policy chooses chunks to copy, and there may be one.
    #[inline]
    pub(super) fn is_asked_for_copies(&self) -> bool {
        self.policies.needs.copies && !self.out.is_empty()
    }

    /// The chunk to be copied now by the policy's choice.
    #[inline]
    pub(super) fn copy_by_choice(&mut self, now: Instant, turn: CopyTurn) -> Option<ChunkCopy> {
        if !self.is_asked_for_copies() {
            return None;
        }
        let copy = self.ask_about_flights(|policy, flights| policy.copy(now, turn, flights))?;
        self.can_copy(copy).then_some(copy)
    }

    /// Calls the redundancy policy with a view of what is in flight.
    fn ask_about_flights<T>(
        &mut self,
        question: impl FnOnce(&mut dyn RedundancyPolicy, &dyn Flights) -> T,
    ) -> T {
        let flights = FlightsView {
            out: &self.out,
            paths: &self.paths,
            rules: &self.recovery.rules,
            last_progress: self.redundancy.progress_at,
            bytes_acked: self.stats.bytes_acked,
            bytes_copied: self.redundancy.copied_bytes,
        };
        question(&mut *self.policies.redundant, &flights)
    }

    /// True if a chunk is in flight on one path, and may be sent on that other one now.
    fn can_copy(&self, ChunkCopy { tsn, on, .. }: ChunkCopy) -> bool {
        let is_usable = self.paths.get(on).is_some_and(|p| p.role.usable) && self.has_room(on);
        let first = self.out.get(tsn).map(|sent| sent.path).filter(|first| *first != on);
        is_usable && first.is_some_and(|first| self.out.is_only_on(tsn, first))
    }

    /// Nothing can be sent. Starts the timer for when the policy wants to look again: at the end of
    /// a transfer nothing else may happen before T3-rtx.
    pub(super) fn wait_for_copy(&mut self, now: Instant) {
        if !self.is_asked_for_copies() {
            return;
        }
        let timer = Timer::Assoc(AssocTimer::Copy);
        match self.ask_about_flights(|policy, flights| policy.next_look(now, flights)) {
            Some(NextLook::At(at)) if at > now => self.timers.start(timer, at),
            Some(NextLook::Paced { except }) => {
                let has_window = |p: &&mut Path| p.flow.usable_cwnd() > self.out.counted(p.id);
                let others = self.paths.iter_mut().filter(|p| p.id != except && p.role.usable);
                let held = others.filter(has_window).filter_map(|p| p.flow.pacer.hold());
                if let Some(at) = held.min() {
                    self.timers.set(timer, at);
                }
            }
            Some(NextLook::At(_)) | None => {}
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
            // Chunks that were acknowledged or sent again meanwhile are left out.
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
        ChunkCopy { tsn, on, asks_for_sack }: ChunkCopy,
        packet: &mut PacketBuilder<'_>,
    ) -> bool {
        let Some(sent) = self.out.get(tsn) else { return false };
        let asks = if asks_for_sack { DataFlags::IMMEDIATE } else { DataFlags::default() };
        if !push_data(packet, tsn, sent, sent.flags | asks) {
            return false;
        }
        self.redundancy.copied_up_to = self.redundancy.copied_up_to.max(Some(sent.order));
        self.redundancy.copied_bytes += sent.size() as u64;
        if self.redundancy.to_copy.front() == Some(&tsn) {
            self.redundancy.to_copy.pop_front();
        }
        self.false_acks.sends_early(tsn);
        self.out.copy(tsn, on, now);
        if let Some(p) = self.paths.get_mut(on) {
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
