//! DATA chunks in flight on several paths at once.
//!
//! The record of a chunk describes one transmission. If the chunk is sent on a second path as well,
//! that path's queue keeps the second transmission, the copy, in its `extra`. The rest of `tx` asks
//! `extra` how many bytes it holds and since when, and does not know who sends copies, or why.
//!
//! A SACK acknowledges a chunk with two transmissions without saying which of them arrived. Each
//! counts in the flight size of its own path until it is settled:
//!
//! - A SACK that arrives on one of the two paths and acknowledges the chunk settles that path's
//!   transmission, because a receiver answers where the data came from (RFC 9260 §6.4).
//! - A SACK that arrives there sooner than that path's shortest RTT allows answers something else,
//!   such as a duplicate. It settles the other transmission, or neither if the chunk was
//!   retransmitted.
//! - A SACK that arrives on a third path settles neither.
//! - The report of a duplicate TSN settles the open transmission: both arrived.
//! - The acknowledgement of something sent later on the same path also settles an open
//!   transmission. If a SACK left both open, the transmission counts as arrived. If the other one
//!   arrived first, it gets a missing report.
//! - T3-rtx of the path takes its open transmissions for lost.
//!
//! A silent path therefore times out even if all of its data arrives on the other path.

use std::collections::BTreeSet;

use manypath_wire::{Sack, Tsn};

use super::digest::{AckRules, LostChunk, SackArrival, SackDigest};
use crate::time::Instant;
use crate::tx::outstanding::ring::{Sent, TsnState};
use crate::tx::outstanding::second_transmission::{Claim, Transmission};
use crate::tx::outstanding::{Outstanding, PathQueues};
use crate::view::PathId;

impl PathQueues {
    fn insert_copy(&mut self, copy: Transmission) {
        self.extra.insert(copy);
        self.flight.count(copy.size);
    }

    fn remove_copy(&mut self, order: u64) -> Option<Transmission> {
        let copy = self.extra.remove(order)?;
        self.flight.discount(copy.size);
        Some(copy)
    }
}

impl Outstanding {
    /// The chunks in flight on `covered` that were sent after the transmission `after`, the last
    /// first.
    pub(crate) fn sent_after(
        &self,
        covered: PathId,
        after: Option<u64>,
    ) -> impl Iterator<Item = (Tsn, &Sent)> + '_ {
        let is_new = move |order: u64| after.is_none_or(|after| order > after);
        self.queue_from_tail(covered).take_while(move |(_, sent)| is_new(sent.order))
    }

    /// The chunks in flight on a path, first sent first.
    pub(crate) fn sent_in_order(&self, path: PathId) -> impl Iterator<Item = (Tsn, &Sent)> + '_ {
        self.queue_from_head(path)
    }

    /// True if the role of a path lets a chunk be sent there, too: it is in flight on `covered`,
    /// sent once only, and has no copy.
    pub(crate) fn may_copy(&self, tsn: Tsn, covered: PathId) -> bool {
        self.get(tsn).is_some_and(|sent| sent.transmissions == 1) && self.is_only_on(tsn, covered)
    }

    /// True if a chunk, which may be a retransmission, is in flight on `covered` and has no copy.
    /// A revoked chunk may still have a copy.
    pub(crate) fn is_only_on(&self, tsn: Tsn, covered: PathId) -> bool {
        let is_alone = |s: &Sent| s.also_on.is_none() && !s.is_abandoned;
        let is_here = |s: &Sent| s.state == TsnState::InFlight && s.path == covered;
        let has_copy = |q: &PathQueues| q.extra.find(tsn, |_| true).is_some();
        self.get(tsn).is_some_and(|sent| is_here(sent) && is_alone(sent))
            && !self.queues.iter().any(has_copy)
    }

    /// Sends a chunk on `path` that is also in flight on another path.
    pub(crate) fn copy(&mut self, tsn: Tsn, path: PathId, now: Instant) {
        let order = self.take_order();
        self.has_extra = true;
        let Some(sent) = self.get_mut(tsn) else { return };
        sent.also_on = Some(path);
        let (first, size) = (sent.path, sent.size());
        let timed = &mut self.queues[first.index()].rtt_probe;
        *timed = timed.filter(|&t| t != tsn); // its acknowledgement may be that of the copy
        let (claim, missing_reports) = (Claim::Live, 0);
        let queue = &mut self.queues[path.index()];
        queue.insert_copy(Transmission { tsn, order, sent_at: now, size, claim, missing_reports });
    }

    /// Acts on the first acknowledgement of a chunk that has a copy.
    #[cold] // mostly never called: its caller must stay small
    pub(super) fn acked_on_either(
        &mut self,
        tsn: Tsn,
        second: PathId,
        rules: &AckRules<'_>,
        now: Instant,
        digest: &mut SackDigest,
    ) {
        if self.counts_lost {
            self.settle_lost(tsn); // it may be a retransmission
        }
        let copy_sent_at = self.queues[second.index()].extra.live(tsn).map(|copy| copy.sent_at);
        let Some(sent) = self.get_mut(tsn) else { return };
        sent.also_on = None;
        let first = sent.path;
        let is_once = sent.transmissions == 1;
        let main_sent_at = sent.sent_at;
        let arrived = rules.via.and_then(|via| {
            let (here, elsewhere) = match via.path {
                path if path == first => (Some(main_sent_at), second),
                path if path == second => (copy_sent_at, first),
                _ => return None,
            };
            if via.is_too_soon(now - here?) { is_once.then_some(elsewhere) } else { Some(via.path) }
        });
        let claim = |own: PathId| match arrived {
            Some(path) if path == own => None, // it is this one's answer
            Some(_) => Some(Claim::Lost),
            None => Some(Claim::Either),
        };
        let main = Transmission {
            tsn,
            order: sent.order,
            sent_at: sent.sent_at,
            size: sent.size(),
            claim: Claim::Live,
            missing_reports: 0,
        };
        let (first_claim, second_claim) = (claim(first), claim(second));
        let user_bytes = sent.payload.len();
        digest.note_acked(tsn);
        for id in [first, second] {
            digest.paths[id.index()].chunks_sent_here += 1;
        }
        let is_first = self.earliest_order(first) == Some(main.order);
        self.leave_flight(tsn);
        match first_claim {
            Some(claim) => self.queues[first.index()].insert_copy(Transmission { claim, ..main }),
            None => {
                digest.paths[first.index()].newly_acked_user_bytes += user_bytes;
                digest.credit(first, &main, is_first);
                digest.paths[first.index()].arrived_here = Some((main.order, main.sent_at));
            }
        }
        let extra = &mut self.queues[second.index()].extra;
        let Some(order) = extra.find_live(tsn) else { return };
        let Some(copy) = extra.by_order.get_mut(&order) else { return };
        match second_claim {
            Some(claim) => copy.claim = claim,
            None => {
                digest.paths[second.index()].arrived_here = Some((order, copy.sent_at));
                self.settle(second, order, digest);
            }
        }
    }

    /// Counts a transmission as arrived.
    fn settle(&mut self, path: PathId, order: u64, digest: &mut SackDigest) {
        let earliest = self.earliest_order(path);
        if let Some(copy) = self.queues[path.index()].remove_copy(order) {
            digest.credit(path, &copy, earliest == Some(order));
        }
    }

    /// Number of unsettled second transmissions on all paths. The chunk of each is in flight on
    /// another path too, or was acknowledged.
    #[cold] // mostly never called: its caller must stay small
    pub(crate) fn extra_in_flight(&self) -> usize {
        self.queues.iter().map(|q| q.extra.len()).sum()
    }

    /// True if any transmission is unsettled.
    fn is_any_open(&self) -> bool {
        self.queues.iter().any(|q| !q.extra.is_empty())
    }

    /// Settles copies by the duplicates of an overtaken SACK. Returns false if no copy was open.
    #[cold]
    pub(super) fn settle_by_overtaken(
        &mut self,
        sack: &Sack,
        rules: &AckRules,
        now: Instant,
        digest: &mut SackDigest,
    ) -> bool {
        let settles = self.is_any_open();
        if settles {
            self.settle_extra(sack, rules, now, digest);
        }
        settles
    }

    /// Settles copies by the SACK's duplicate TSNs and by what arrived on each path.
    #[cold] // mostly never called: its caller must stay small
    pub(super) fn settle_extra(
        &mut self,
        sack: &Sack,
        rules: &AckRules<'_>,
        now: Instant,
        digest: &mut SackDigest,
    ) {
        self.measure_first_arrival(sack, rules, now, digest);
        if !self.is_any_open() {
            return;
        }
        for path in (0..self.queues.len()).map(|i| PathId(i as u8)) {
            for tsn in sack.duplicate_tsns() {
                let queue = &self.queues[path.index()].extra;
                let Some(order) = queue.find(tsn, |c| c.claim != Claim::Live) else { continue };
                let Some(&Transmission { sent_at, .. }) = queue.by_order.get(&order) else {
                    continue;
                };
                let is_too_soon =
                    |via: SackArrival| via.path == path && via.is_too_soon(now - sent_at);
                if rules.via.is_some_and(is_too_soon) {
                    continue; // an earlier transmission arrived twice
                }
                // A packet with nothing but a duplicate draws a SACK at once, to where it came from
                // (RFC 9260 §6.2, §6.4): this one answers the transmission that arrived second.
                if sack.duplicate_tsns().len() == 1 {
                    self.measure(path, order, sent_at, rules, now, digest);
                }
                self.settle(path, order, digest);
            }
            self.settle_overtaken(path, rules.by.sacks.missing_reports, digest);
        }
    }

    /// Measures the RTT of a path with copies. A SACK without duplicates was drawn by new data on
    /// the path that it took. If only one of the chunks it newly acknowledges was ever sent there,
    /// the packet carried that chunk.
    fn measure_first_arrival(
        &mut self,
        sack: &Sack,
        rules: &AckRules<'_>,
        now: Instant,
        digest: &mut SackDigest,
    ) {
        let Some(SackArrival { path, .. }) = rules.via else { return };
        let Some(p) = digest.paths.get(path.index()) else { return };
        let is_sole = p.chunks_sent_here == 1 && sack.duplicate_tsns().len() == 0;
        if is_sole && let Some((order, sent_at)) = p.arrived_here {
            self.measure(path, order, sent_at, rules, now, digest);
        }
    }

    /// Measures the RTT by a transmission on the SACK's own path, once per RTT. A value below the
    /// shortest RTT so far is ignored, as in RACK (RFC 8985 §6.2, step 2): something else may have
    /// drawn the SACK.
    fn measure(
        &mut self,
        path: PathId,
        order: u64,
        sent_at: Instant,
        rules: &AckRules<'_>,
        now: Instant,
        digest: &mut SackDigest,
    ) {
        let last = self.last_order();
        let queue = &mut self.queues[path.index()].extra;
        let is_new = queue.timed_up_to.is_none_or(|up_to| order > up_to);
        let rtt = now - sent_at;
        let is_credible = |via: SackArrival| {
            via.path == path && via.rtt_min.is_none_or(|shortest| rtt >= shortest)
        };
        if rules.via.is_some_and(is_credible) && rules.echo.is_none() && is_new {
            queue.timed_up_to = Some(last);
            digest.paths[path.index()].rtt = Some(rtt);
        }
    }

    /// Settles the copies on a path that were sent before the latest transmission known to have
    /// arrived there: each counts as arrived, or gets a missing report.
    fn settle_overtaken(&mut self, path: PathId, threshold: u8, digest: &mut SackDigest) {
        let Some(latest) = digest.paths[path.index()].latest else { return };
        let mut from = 0;
        // Each copy is visited at most `threshold` times before it is lost.
        while let Some((&order, copy)) =
            self.queues[path.index()].extra.by_order.range_mut(from..latest).next()
        {
            from = order + 1;
            if copy.claim == Claim::Either {
                self.settle(path, order, digest);
                continue;
            }
            copy.missing_reports = copy.missing_reports.saturating_add(1);
            if copy.missing_reports < threshold {
                continue;
            }
            let copy = *copy;
            let lost = LostChunk { order, size: copy.size };
            self.queues[path.index()].remove_copy(order);
            self.note_extra_loss(path, &copy);
            digest.paths[path.index()].note_lost_extra(lost);
            let is_live = copy.claim == Claim::Live;
            if is_live && let Some(sent) = self.get_mut(copy.tsn) {
                sent.also_on = None;
            }
        }
    }

    /// Lets the copy of a missing chunk take the place of the lost transmission, so that nothing is
    /// retransmitted. Returns false if no copy is in flight.
    #[cold] // mostly never called: its caller must stay small
    pub(crate) fn goes_on_elsewhere(&mut self, tsn: Tsn) -> bool {
        let Some(second) = self.get(tsn).and_then(|s| s.also_on) else { return false };
        let queue = &mut self.queues[second.index()];
        let live = queue.extra.find_live(tsn);
        let Some(copy) = live.and_then(|order| queue.remove_copy(order)) else { return false };
        self.leave_flight(tsn);
        let Some(sent) = self.get_mut(tsn) else { return false };
        let first = sent.path;
        sent.also_on = None;
        sent.path = second;
        sent.order = copy.order;
        sent.sent_at = copy.sent_at;
        sent.missing_reports = 0;
        // Its acknowledgement does not say which transmission arrived.
        sent.transmissions = sent.transmissions.saturating_add(1);
        self.enter_flight_in_order(tsn);
        for path in [first, second] {
            self.queues[path.index()].pseudo_cumacks.forget();
        }
        true
    }

    /// Drops the copy in flight of a chunk that is about to be retransmitted. From now on only the
    /// last transmission counts, as for any retransmitted chunk.
    pub(crate) fn forget_extra(&mut self, tsn: Tsn) {
        let Some(second) = self.get_mut(tsn).and_then(|sent| sent.also_on.take()) else { return };
        let queue = &mut self.queues[second.index()];
        if let Some(order) = queue.extra.find_live(tsn) {
            queue.remove_copy(order);
        }
    }

    /// Takes the unsettled copies of a path sent up to `spare_after` for lost, because its T3-rtx
    /// expired. Returns their number and the order of the last.
    pub(crate) fn lose_extra(
        &mut self,
        path: PathId,
        spare_after: Option<Instant>,
    ) -> (usize, u64) {
        let (mut count, mut latest) = (0, 0);
        let mut from = 0;
        while let Some((_, &copy)) = self.queues[path.index()].extra.by_order.range(from..).next() {
            from = copy.order + 1;
            if spare_after.is_some_and(|limit| copy.sent_at > limit) {
                continue;
            }
            self.queues[path.index()].remove_copy(copy.order);
            if copy.claim == Claim::Live
                && let Some(sent) = self.get_mut(copy.tsn)
            {
                sent.also_on = None;
            }
            (count, latest) = (count + 1, copy.order);
        }
        (count, latest)
    }

    /// Checks what must always hold of the copies of one path.
    pub(crate) fn check_extra(&self, path: PathId) {
        let queue = &self.queues[path.index()].extra;
        let index: BTreeSet<_> =
            queue.by_order.iter().map(|(&order, c)| (c.tsn.0, order)).collect();
        assert_eq!(queue.by_tsn, index, "the index of copies on {path}");
        for (order, copy) in &queue.by_order {
            assert_eq!(*order, copy.order, "copies in order on {path}");
        }
        for copy in queue.by_order.values().filter(|c| c.claim == Claim::Live) {
            let chunk = self.get(copy.tsn).filter(|s| s.also_on == Some(path));
            let is_elsewhere = chunk.map(|s| s.state == TsnState::InFlight && s.path != path);
            assert_eq!(is_elsewhere, Some(true), "{:?} and its copy on {path}", copy.tsn);
        }
    }
}

impl SackDigest {
    /// Counts one of the two transmissions of a chunk as arrived on its path.
    fn credit(&mut self, path: PathId, copy: &Transmission, is_earliest: bool) {
        let p = &mut self.paths[path.index()];
        p.newly_acked_bytes += copy.size;
        p.edge_acked_bytes += copy.size;
        p.cwnd_update |= is_earliest;
        p.watched_acked |= is_earliest;
        p.latest = p.latest.max(Some(copy.order));
        p.latest_sent = p.latest_sent.max(Some(copy.order));
    }
}

#[cfg(test)]
mod tests;
