//! Redundant transmissions: DATA chunks in flight on a second path, too.
//!
//! A chunk that is sent on a second path has two transmissions, and a SACK does not say which of them arrived. Each
//! counts in the flight size of its own path until it is settled:
//!
//! - A SACK that came in on one of the two paths and acknowledges the chunk is the answer to that path's
//!   transmission, for a receiver answers where the data came from (RFC 9260 §6.4).
//! - A SACK that came in on another path leaves both open.
//! - The report of a duplicate TSN settles what is open: both arrived.
//! - What is open is settled, too, once something sent later on the same path arrives: a transmission that the
//!   SACK left open is taken for arrived; one that lost the race has missing reports of its own.
//! - T3-rtx of the path.
//!
//! So a path that is silent runs into its timeout, though all of its data arrives by the other one.

use std::collections::VecDeque;

use manypath_wire::{Sack, Tsn};

use super::digest::{AckRules, SackDigest};
use super::outstanding::{Outstanding, PathQueue, TsnState};
use crate::path::PathId;
use crate::time::Instant;

/// What is known of the chunk of a transmission that is not settled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Claim {
    /// It is not acknowledged: this is a copy under way.
    Live,
    /// It arrived, by this transmission or the other one.
    Either,
    /// It arrived by the other one.
    Lost,
}

/// A transmission of a chunk that is not the one that the chunk's own record speaks of.
#[derive(Copy, Clone, Debug)]
struct Copy {
    tsn: Tsn,
    /// In the order of all transmissions of the association.
    order: u64,
    sent_at: Instant,
    /// The size that counts against cwnd.
    size: usize,
    claim: Claim,
    missing_reports: u8,
}

/// The unsettled transmissions of a path, in their order.
#[derive(Debug, Default)]
pub(super) struct CopyQueue {
    copies: VecDeque<Copy>,
    /// The last transmission of the association when a chunk with two transmissions last measured the path's RTT:
    /// one sent before does not measure it again (RFC 9260 §6.3.1, C4).
    timed_up_to: Option<u64>,
}

impl CopyQueue {
    pub(super) fn len(&self) -> usize {
        self.copies.len()
    }

    /// Bytes that count in the path's flight size.
    pub(super) fn bytes(&self) -> usize {
        self.copies.iter().map(|c| c.size).sum()
    }

    /// Order and time of the earliest.
    pub(super) fn earliest(&self) -> Option<(u64, Instant)> {
        self.copies.front().map(|c| (c.order, c.sent_at))
    }

    /// Order of the latest.
    pub(super) fn latest(&self) -> Option<u64> {
        self.copies.back().map(|c| c.order)
    }

    fn find(&self, accepts: impl Fn(&Copy) -> bool) -> Option<usize> {
        self.copies.iter().position(accepts)
    }
}

impl PathQueue {
    fn insert_copy(&mut self, copy: Copy) {
        let copies = &mut self.copies.copies;
        let at = copies.iter().rposition(|c| c.order < copy.order).map_or(0, |i| i + 1);
        copies.insert(at, copy);
        self.flight_size += copy.size;
        self.chunks_in_flight += 1;
    }

    fn remove_copy(&mut self, at: usize) -> Option<Copy> {
        let copy = self.copies.copies.remove(at)?;
        self.flight_size -= copy.size;
        self.chunks_in_flight -= 1;
        Some(copy)
    }
}

impl Outstanding {
    /// The chunk in flight on `covered` to be sent on another path, too: the earliest of those sent once, and after
    /// the transmission `after`.
    pub(crate) fn next_to_copy(&self, covered: PathId, after: Option<u64>) -> Option<Tsn> {
        let is_new = |order: u64| after.is_none_or(|after| order > after);
        self.queue_from_tail(covered)
            .take_while(|(_, sent)| is_new(sent.order))
            .filter(|(_, sent)| sent.transmissions == 1 && sent.copy.is_none())
            .last()
            .map(|(tsn, _)| tsn)
    }

    /// Sends a chunk that is in flight on another path on `path`, too.
    pub(crate) fn copy(&mut self, tsn: Tsn, path: PathId, now: Instant) {
        let order = self.take_order();
        self.has_copied = true;
        let Some(sent) = self.get_mut(tsn) else { return };
        sent.copy = Some(path);
        let (first, size) = (sent.path, sent.size());
        let timed = &mut self.queues[first.index()].rtt_probe;
        *timed = timed.filter(|&t| t != tsn); // its acknowledgement may be that of the copy
        let (claim, missing_reports) = (Claim::Live, 0);
        let queue = &mut self.queues[path.index()];
        queue.insert_copy(Copy { tsn, order, sent_at: now, size, claim, missing_reports });
    }

    /// A chunk with a copy was acknowledged for the first time.
    #[cold] // mostly never called: its caller must stay small
    pub(super) fn copied_acked(
        &mut self,
        tsn: Tsn,
        second: PathId,
        rules: &AckRules,
        digest: &mut SackDigest,
    ) {
        let Some(sent) = self.get_mut(tsn) else { return };
        sent.copy = None;
        let first = sent.path;
        let claim = |own: PathId, other: PathId| match rules.via {
            Some(via) if via == own => None, // it is this one's answer
            Some(via) if via == other => Some(Claim::Lost),
            _ => Some(Claim::Either),
        };
        let main = Copy {
            tsn,
            order: sent.order,
            sent_at: sent.sent_at,
            size: sent.size(),
            claim: Claim::Live,
            missing_reports: 0,
        };
        let (first_claim, second_claim) = (claim(first, second), claim(second, first));
        let user_bytes = sent.payload.len();
        digest.note_acked(tsn);
        for id in [first, second] {
            digest.paths[id.index()].chunks_sent_here += 1;
        }
        let is_first = self.earliest_order(first) == Some(main.order);
        self.leave_flight(tsn);
        match first_claim {
            Some(claim) => self.queues[first.index()].insert_copy(Copy { claim, ..main }),
            None => {
                digest.paths[first.index()].newly_acked_user_bytes += user_bytes;
                digest.credit(first, &main, is_first);
                digest.paths[first.index()].arrived_here = Some((main.order, main.sent_at));
            }
        }
        let is_live = |c: &Copy| c.tsn == tsn && c.claim == Claim::Live;
        let Some(at) = self.queues[second.index()].copies.find(is_live) else { return };
        match second_claim {
            Some(claim) => self.queues[second.index()].copies.copies[at].claim = claim,
            None => {
                let copy = self.queues[second.index()].copies.copies[at];
                digest.paths[second.index()].arrived_here = Some((copy.order, copy.sent_at));
                self.settle(second, at, digest);
            }
        }
    }

    /// A transmission is taken for arrived.
    fn settle(&mut self, path: PathId, at: usize, digest: &mut SackDigest) {
        let earliest = self.earliest_order(path);
        if let Some(copy) = self.queues[path.index()].remove_copy(at) {
            digest.credit(path, &copy, earliest == Some(copy.order));
        }
    }

    /// Whether any transmission is unsettled.
    pub(super) fn has_copies(&self) -> bool {
        self.queues.iter().any(|q| q.copies.len() > 0)
    }

    /// Settles what the SACK's duplicate TSNs, and what arrived of each path, tell of copies.
    #[cold] // mostly never called: its caller must stay small
    pub(super) fn settle_copies(
        &mut self,
        sack: &Sack,
        rules: &AckRules,
        now: Instant,
        digest: &mut SackDigest,
    ) {
        self.measure_first_arrival(sack, rules, now, digest);
        if !self.has_copies() {
            return;
        }
        for path in (0..self.queues.len()).map(|i| PathId(i as u8)) {
            for tsn in sack.duplicate_tsns() {
                let is_it = |c: &Copy| c.tsn == tsn && c.claim != Claim::Live;
                let Some(at) = self.queues[path.index()].copies.find(is_it) else { continue };
                let copy = self.queues[path.index()].copies.copies[at];
                // A packet with nothing but a duplicate draws a SACK at once, to where it came from (RFC 9260 §6.2,
                // §6.4): this one answers the transmission that arrived second.
                if sack.duplicate_tsns().len() == 1 {
                    self.measure(path, (copy.order, copy.sent_at), rules, now, digest);
                }
                self.settle(path, at, digest);
            }
            self.settle_overtaken(path, rules.missing_reports, digest);
        }
    }

    /// A SACK without duplicates is drawn by a packet of new data, which came in on the SACK's path. If of all that it
    /// newly acknowledges only one chunk was ever sent there, that one came with the packet.
    fn measure_first_arrival(
        &mut self,
        sack: &Sack,
        rules: &AckRules,
        now: Instant,
        digest: &mut SackDigest,
    ) {
        let Some(p) = rules.via.and_then(|via| digest.paths.get(via.index())) else { return };
        let sole = p.arrived_here.filter(|_| p.chunks_sent_here == 1);
        if let (Some(path), Some(sole)) = (rules.via, sole)
            && sack.duplicate_tsns().len() == 0
        {
            self.measure(path, sole, rules, now, digest);
        }
    }

    /// A transmission (its order and time) on the path that the SACK came in on measures the RTT, once per RTT.
    fn measure(
        &mut self,
        path: PathId,
        (order, sent_at): (u64, Instant),
        rules: &AckRules,
        now: Instant,
        digest: &mut SackDigest,
    ) {
        let last = self.last_order();
        let queue = &mut self.queues[path.index()].copies;
        let is_new = queue.timed_up_to.is_none_or(|up_to| order > up_to);
        if rules.via == Some(path) && rules.echo.is_none() && is_new {
            queue.timed_up_to = Some(last);
            digest.paths[path.index()].rtt = Some(now - sent_at);
        }
    }

    /// Something arrived that was sent on this path: what was sent before it arrived, too, or is late.
    fn settle_overtaken(&mut self, path: PathId, threshold: u8, digest: &mut SackDigest) {
        let Some(latest) = digest.paths[path.index()].latest else { return };
        let mut at = 0;
        while let Some(copy) = self.queues[path.index()].copies.copies.get_mut(at) {
            if copy.order >= latest {
                return;
            }
            if copy.claim == Claim::Either {
                self.settle(path, at, digest);
                continue;
            }
            copy.missing_reports = copy.missing_reports.saturating_add(1);
            if copy.missing_reports < threshold {
                at += 1;
                continue;
            }
            let (order, tsn, is_live) = (copy.order, copy.tsn, copy.claim == Claim::Live);
            self.queues[path.index()].remove_copy(at);
            digest.paths[path.index()].note_lost_copy(order);
            if let Some(sent) = self.get_mut(tsn).filter(|_| is_live) {
                sent.copy = None;
            }
        }
    }

    /// A chunk was found missing on its own path: if its copy is under way, that takes its place, and nothing
    /// needs to be retransmitted. Returns false if there is none.
    #[cold] // mostly never called: its caller must stay small
    pub(super) fn promote_copy(&mut self, tsn: Tsn) -> bool {
        let Some(second) = self.get(tsn).and_then(|s| s.copy) else { return false };
        let is_live = |c: &Copy| c.tsn == tsn && c.claim == Claim::Live;
        let queue = &mut self.queues[second.index()];
        let Some(copy) = queue.copies.find(is_live).and_then(|at| queue.remove_copy(at)) else {
            return false;
        };
        self.leave_flight(tsn);
        let Some(sent) = self.get_mut(tsn) else { return false };
        let first = sent.path;
        sent.copy = None;
        sent.path = second;
        sent.order = copy.order;
        sent.sent_at = copy.sent_at;
        sent.missing_reports = 0;
        // Its acknowledgement does not say which transmission arrived.
        sent.transmissions = sent.transmissions.saturating_add(1);
        self.enter_flight_in_order(tsn);
        for path in [first, second] {
            self.queues[path.index()].pseudo_cumacks = [None; 2];
        }
        true
    }

    /// A chunk is to be sent again although its copy is under way: from now on only its last transmission counts,
    /// as of any chunk that is sent again.
    pub(super) fn give_up_copy(&mut self, tsn: Tsn) {
        let Some(second) = self.get_mut(tsn).and_then(|sent| sent.copy.take()) else { return };
        let queue = &mut self.queues[second.index()];
        if let Some(at) = queue.copies.find(|c| c.tsn == tsn && c.claim == Claim::Live) {
            queue.remove_copy(at);
        }
    }

    /// T3-rtx of a path expired: its unsettled transmissions sent up to `spare_after` are lost. Returns their number
    /// and the order of the last.
    pub(super) fn lose_copies(
        &mut self,
        path: PathId,
        spare_after: Option<Instant>,
    ) -> (usize, u64) {
        let (mut count, mut latest) = (0, 0);
        let mut at = 0;
        while let Some(copy) = self.queues[path.index()].copies.copies.get(at).copied() {
            if spare_after.is_some_and(|limit| copy.sent_at > limit) {
                at += 1;
                continue;
            }
            self.queues[path.index()].remove_copy(at);
            if let Some(sent) = self.get_mut(copy.tsn).filter(|_| copy.claim == Claim::Live) {
                sent.copy = None;
            }
            (count, latest) = (count + 1, copy.order);
        }
        (count, latest)
    }

    /// Checks what must always hold of the copies of one path.
    pub(super) fn check_copies(&self, path: PathId) {
        let queue = &self.queues[path.index()].copies;
        assert!(queue.copies.iter().is_sorted_by_key(|c| c.order), "copies in order on {path}");
        for copy in queue.copies.iter().filter(|c| c.claim == Claim::Live) {
            let chunk = self.get(copy.tsn).filter(|s| s.copy == Some(path));
            let is_elsewhere = chunk.map(|s| s.state == TsnState::InFlight && s.path != path);
            assert_eq!(is_elsewhere, Some(true), "{:?} and its copy on {path}", copy.tsn);
        }
    }
}

impl SackDigest {
    /// Books a transmission of a chunk with two as arrived on its path.
    fn credit(&mut self, path: PathId, copy: &Copy, is_earliest: bool) {
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
