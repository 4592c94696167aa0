//! Outstanding TSNs: sent, and not yet acknowledged cumulatively.

pub(crate) mod abandoned;
pub(super) mod flight;
pub(super) mod marked;
pub(super) mod pipe;
pub(super) mod ranges;
pub(super) mod ring;
pub(super) mod second_transmission;
pub(super) mod virtual_queue;

use std::collections::VecDeque;

use manypath_wire::Tsn;

use super::Fragment;
use super::outstanding::abandoned::Abandonment;
use super::outstanding::ranges::TsnRanges;
use super::outstanding::ring::{Ring, Sent, TsnState};
use super::outstanding::second_transmission::SecondTransmissions;
use super::outstanding::virtual_queue::VirtualQueue;
use super::sack::cuc::PseudoCumacks;
use super::sack::doubts::{Doubts, Episode};
use super::sack::rack::Rack;
use crate::policy::recovery::RoomRules;
use crate::time::Instant;
use crate::view::PathId;

/// The transmissions on one path: in flight, lost, and waiting to be repeated.
#[derive(Debug, Default)]
pub(super) struct PathQueues {
    /// The chunks in flight.
    pub(super) flight: VirtualQueue,
    /// Bytes of DATA chunks that were last sent on the path and wait for retransmission.
    pub(super) waiting_bytes: usize,
    /// With `pipe_accounting`: bytes of DATA chunks that the path lost and that are not
    /// acknowledged yet, on whatever path they were sent again.
    pub(super) lost_bytes: usize,
    /// TSNs to retransmit that were last sent on this path, ascending. May hold some that were
    /// acknowledged meanwhile.
    pub(super) marked: VecDeque<Tsn>,
    /// The TSN that is being timed for an RTT measurement: one at a time (RFC 9260 §6.3.1, C4).
    pub(super) rtt_probe: Option<Tsn>,
    pub(super) pseudo_cumacks: PseudoCumacks,
    /// Loss detection by time.
    pub(super) rack: Rack,
    /// The latest losses.
    pub(super) episode: Episode,
    /// Second transmissions of chunks on this path. The record of each chunk describes its other
    /// transmission.
    pub(super) extra: SecondTransmissions,
}

/// All outstanding TSNs of an association, and the transmissions on each path.
#[derive(Debug)]
pub(crate) struct Outstanding {
    pub(super) ring: Ring,
    pub(super) queues: Vec<PathQueues>,
    /// Gap-acknowledged TSNs.
    pub(super) acked: TsnRanges,
    /// The part of `acked` that the receiver promised to keep (NR-SACK). Its payload is released.
    pub(super) kept: TsnRanges,
    pub(super) flight_user_bytes: usize,
    pub(super) user_bytes: usize,
    /// Chunks that wait for retransmission, and their user bytes.
    pub(super) marked_chunks: usize,
    pub(super) marked_user_bytes: usize,
    /// Entries of all `marked` lists.
    pub(super) listed: usize,
    next_order: u64,
    /// Lost transmissions count until their chunk is acknowledged (`pipe_accounting`).
    pub(super) counts_lost: bool,
    /// The pipes of all paths count against the window of each (`combined_window`).
    pub(super) combines: bool,
    /// With CUC, not CUCv2: a pseudo-cumack stays with its path when its chunk is retransmitted on
    /// another path.
    pub(super) edges_stay: bool,
    /// True once any chunk has been in flight on two paths. Until then every path's `extra` is
    /// empty.
    pub(super) has_extra: bool,
    pub(super) doubts: Doubts,
    /// The highest TSN acknowledged by the latest SACK that acknowledged anything new, or a higher
    /// one gap-acknowledged since.
    pub(super) newest: Option<Tsn>,
    /// The cumulative TSN ack of the newest acknowledgement that could report gaps. SHUTDOWN
    /// cannot.
    pub(super) newest_report: Tsn,
    /// The highest TSN that the latest SACK reported. It falls as soon as a receiver reneges (drops
    /// TSNs for want of room, RFC 9260 §6.2). `acked` follows only when the cumulative TSN ack
    /// moves.
    pub(super) reported_up_to: Tsn,
    /// When the latest SACK arrived that was nearly full, so that gap ack blocks may be missing.
    pub(super) full_report_at: Option<Instant>,
    /// The latest TSN that was skipped to test the peer's acknowledgements.
    pub(super) skipped: Option<Tsn>,
    /// Set once a message was sent that may be given up.
    pub(super) abandonment: Option<Box<Abandonment>>,
}

impl Outstanding {
    pub(crate) fn new(initial_tsn: Tsn) -> Outstanding {
        Outstanding {
            ring: Ring::new(initial_tsn),
            queues: Vec::new(),
            acked: TsnRanges::default(),
            kept: TsnRanges::default(),
            flight_user_bytes: 0,
            user_bytes: 0,
            marked_chunks: 0,
            marked_user_bytes: 0,
            listed: 0,
            next_order: 0,
            counts_lost: false,
            combines: false,
            edges_stay: false,
            has_extra: false,
            doubts: Doubts::default(),
            newest: None,
            newest_report: initial_tsn.prev(),
            reported_up_to: initial_tsn.prev(),
            full_report_at: None,
            skipped: None,
            abandonment: None,
        }
    }

    /// Makes room for a path with this id.
    pub(crate) fn add_path(&mut self, path: PathId) {
        if self.queues.len() <= path.index() {
            // Paths are few and their queues are large: no room for twice as many.
            self.queues.reserve_exact(path.index() + 1 - self.queues.len());
            self.queues.resize_with(path.index() + 1, PathQueues::default);
        }
    }

    pub(crate) fn cum_tsn_ack_point(&self) -> Tsn {
        self.ring.base().prev()
    }

    /// The TSN that the next new chunk gets.
    pub(crate) fn next_tsn(&self) -> Tsn {
        self.ring.next_tsn()
    }

    pub(crate) fn highest_tsn(&self) -> Tsn {
        self.next_tsn().prev()
    }

    /// TSNs sent and not acknowledged cumulatively.
    pub(crate) fn len(&self) -> usize {
        self.ring.len()
    }

    /// True if every TSN sent was acknowledged cumulatively.
    pub(crate) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    pub(crate) fn flight_size(&self, path: PathId) -> usize {
        self.queues[path.index()].flight.flight_size()
    }

    pub(crate) fn chunks_in_flight(&self, path: PathId) -> usize {
        self.queues[path.index()].flight.chunks_in_flight()
    }

    /// Data in flight on all paths as the peer's receive buffer sees it, in bytes. Chunks have
    /// headers of `header` bytes.
    #[inline]
    pub(crate) fn rwnd_in_use(&self, rules: RoomRules, header: usize) -> usize {
        let (mut chunks, mut bytes) = (0, self.flight_user_bytes);
        if rules.of_headers {
            chunks = self.queues.iter().map(|q| q.flight.chunks_in_flight()).sum();
        }
        if rules.of_headers && self.has_extra {
            chunks -= self.extra_in_flight(); // they take the receiver's room once
        }
        if rules.of_waiting {
            chunks += if rules.of_headers { self.marked_chunks } else { 0 };
            bytes += self.marked_user_bytes;
        }
        bytes + chunks * header
    }

    /// User bytes held until they are acknowledged cumulatively.
    pub(crate) fn user_bytes(&self) -> usize {
        self.user_bytes
    }

    pub(crate) fn get(&self, tsn: Tsn) -> Option<&Sent> {
        self.ring.get(tsn)
    }

    pub(super) fn get_mut(&mut self, tsn: Tsn) -> Option<&mut Sent> {
        self.ring.get_mut(tsn)
    }

    /// Sends a new chunk on `path` and returns its TSN.
    pub(crate) fn push(&mut self, f: Fragment, path: PathId, now: Instant) -> Tsn {
        let order = self.take_order();
        let sent = Sent { sent_at: now, order, ..Sent::new(f, path) };
        self.user_bytes += sent.payload.len();
        self.flight_user_bytes += sent.payload.len();
        let queue = &mut self.queues[path.index()];
        let tsn = queue.flight.push_new(&mut self.ring, sent);
        if queue.rtt_probe.is_none() {
            queue.rtt_probe = Some(tsn);
        }
        tsn
    }

    /// Notes that `tsn` was skipped: it counts as sent, so windows grow past it, and the RTT is
    /// measured by the next TSN.
    pub(crate) fn note_skipped(&mut self, tsn: Tsn) {
        self.skipped = Some(tsn);
        self.queues.iter_mut().for_each(|queue| {
            queue.rtt_probe.take_if(|probe| *probe == tsn);
        });
    }

    /// Sends a marked chunk again, on `path`.
    pub(crate) fn retransmit(&mut self, tsn: Tsn, path: PathId, now: Instant) {
        let Some(old) = self.get(tsn).map(|s| s.path) else { return };
        let queue = &mut self.queues[old.index()];
        if old != path && !self.edges_stay {
            // The path's lowest unacknowledged chunk may be another one now.
            queue.pseudo_cumacks.forget();
        }
        if queue.rtt_probe == Some(tsn) {
            queue.rtt_probe = None; // Karn: never measure a chunk that was retransmitted
        }
        if queue.marked.front() == Some(&tsn) {
            queue.marked.pop_front();
            self.listed -= 1;
        }
        self.leave_flight(tsn);
        self.transmit(tsn, path, now);
    }

    /// Puts a chunk that is not in flight in flight on a path.
    fn transmit(&mut self, tsn: Tsn, path: PathId, now: Instant) {
        let order = self.take_order();
        self.unmark(tsn);
        let Some(sent) = self.get_mut(tsn) else { return };
        sent.path = path;
        sent.transmissions = sent.transmissions.saturating_add(1);
        sent.sent_at = now;
        sent.order = order;
        let queue = &mut self.queues[path.index()].flight;
        self.flight_user_bytes += queue.push(&mut self.ring, tsn);
    }

    /// The number of the next transmission.
    pub(super) fn take_order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order - 1
    }

    /// Puts a chunk in flight again, at its place in the order of transmission.
    pub(super) fn enter_flight_in_order(&mut self, tsn: Tsn) {
        let Some(path) = self.get(tsn).map(|s| s.path) else { return };
        let queue = &mut self.queues[path.index()].flight;
        self.flight_user_bytes += queue.insert_in_order(&mut self.ring, tsn);
    }

    /// Takes a chunk out of the flight of its path, if it is in flight.
    pub(super) fn leave_flight(&mut self, tsn: Tsn) {
        let in_flight = |s: &&Sent| s.state == TsnState::InFlight;
        let Some(path) = self.get(tsn).filter(in_flight).map(|s| s.path) else { return };
        let queue = &mut self.queues[path.index()].flight;
        self.flight_user_bytes -= queue.remove(&mut self.ring, tsn);
    }

    /// True if the chunks in flight on a path are in the order of their transmission.
    pub(crate) fn is_in_order(&mut self, path: PathId) -> bool {
        self.queues[path.index()].flight.is_in_order()
    }

    /// Puts a gap-acknowledged chunk that the receiver dropped back in flight, so that T3-rtx or
    /// missing reports recover it (RFC 9260 §6.2.1, D iii).
    pub(super) fn revoke(&mut self, tsn: Tsn, keeps_reports: bool) {
        let Some((path, is_abandoned)) = self.get(tsn).map(|s| (s.path, s.is_abandoned)) else {
            return;
        };
        if is_abandoned {
            return self.let_go(tsn);
        }
        let queue = &mut self.queues[path.index()].flight;
        self.flight_user_bytes += queue.push_revoked(&mut self.ring, tsn);
        if !keeps_reports && let Some(sent) = self.get_mut(tsn) {
            sent.missing_reports = 0;
        }
    }

    /// True if all chunks in flight on a path lie above the highest TSN that the peer reported. The
    /// peer may then have dropped them for want of room; lower ones it would have kept.
    pub(crate) fn is_beyond_received(&self, path: PathId) -> bool {
        let highest = self.reported_up_to;
        // A second transmission shows that the peer had room for the chunk when it was first sent.
        let has_extra = !self.queues[path.index()].extra.is_empty();
        !has_extra && self.queue_from_head(path).all(|(tsn, _)| highest.lt(tsn))
    }

    /// The chunks last sent on `path` that a tail-loss probe repeats, the latest first: as many as
    /// fit into `room` bytes, but at least one if any is in flight.
    pub(crate) fn last_in_flight(&self, path: PathId, room: usize) -> Vec<Tsn> {
        let mut bytes = 0;
        let fits = |(tsn, sent): (Tsn, &Sent)| {
            let is_first = bytes == 0;
            bytes += sent.size();
            (is_first || bytes <= room).then_some(tsn)
        };
        self.queue_from_tail(path).map_while(fits).collect()
    }

    /// Notes the IP packet in which chunks were sent, by its length in bytes.
    pub(crate) fn note_packet(&mut self, tsns: &[Tsn], len: usize) {
        let len = u16::try_from(len).unwrap_or(u16::MAX);
        for &tsn in tsns {
            if let Some(sent) = self.get_mut(tsn) {
                sent.packet_len = len;
            }
        }
    }

    /// True if a chunk is in flight on a path in a packet of more than `len` bytes.
    pub(crate) fn has_larger(&self, path: PathId, len: usize) -> bool {
        self.queue_from_head(path).any(|(_, sent)| usize::from(sent.packet_len) > len)
    }

    /// When the earliest transmission in flight on a path was sent.
    pub(crate) fn earliest_sent_at(&self, path: PathId) -> Option<Instant> {
        let first = self.queue_from_head(path).next().map(|(_, sent)| sent.sent_at);
        let extra = self.queues[path.index()].extra.earliest().map(|(_, at)| at);
        first.into_iter().chain(extra).min()
    }

    /// The order of the earliest transmission in flight on a path.
    pub(crate) fn earliest_order(&self, path: PathId) -> Option<u64> {
        let first = self.queue_from_head(path).next().map(|(_, sent)| sent.order);
        let extra = self.queues[path.index()].extra.earliest().map(|(order, _)| order);
        first.into_iter().chain(extra).min()
    }

    /// The order of the latest transmission in flight on a path.
    pub(crate) fn latest_order(&self, path: PathId) -> Option<u64> {
        let last = self.queue_from_tail(path).next().map(|(_, sent)| sent.order);
        last.max(self.queues[path.index()].extra.latest())
    }

    /// When the earliest chunk in flight on a path was sent; `None` if that chunk was
    /// retransmitted.
    pub(crate) fn earliest_sent_once(&self, path: PathId) -> Option<Instant> {
        let extra = self.queues[path.index()].extra.earliest();
        let Some((_, sent)) = self.queue_from_head(path).next() else {
            return extra.map(|(_, at)| at);
        };
        if let Some((_, at)) = extra.filter(|(order, _)| *order < sent.order) {
            return Some(at);
        }
        (sent.transmissions == 1).then_some(sent.sent_at)
    }

    /// The lowest TSN last sent on a path that is not acknowledged, waiting ones included.
    pub(crate) fn lowest_unacked(&self, path: PathId) -> Option<Tsn> {
        self.ring.lowest(|s| s.path == path && s.is_awaited())
    }

    /// The order of the latest transmission.
    pub(crate) fn last_order(&self) -> u64 {
        self.next_order.saturating_sub(1)
    }

    /// Chunks sent so far, repetitions and copies included.
    pub(crate) fn transmissions(&self) -> u64 {
        self.next_order
    }

    /// The chunks in flight on a path, first sent first.
    pub(super) fn queue_from_head(&self, path: PathId) -> impl Iterator<Item = (Tsn, &Sent)> + '_ {
        self.queues[path.index()].flight.forwards(&self.ring)
    }

    /// The chunks in flight on a path, last sent first.
    pub(super) fn queue_from_tail(&self, path: PathId) -> impl Iterator<Item = (Tsn, &Sent)> + '_ {
        self.queues[path.index()].flight.backwards(&self.ring)
    }

    /// Moves everything last sent on `from` to the retransmission queue of `to`: `from` is removed.
    pub(crate) fn abandon_path(&mut self, from: PathId, to: PathId) {
        self.mark_path(from, None);
        self.forget_lost(from);
        let marked = std::mem::take(&mut self.queues[from.index()].marked);
        self.listed -= marked.len();
        let waiting_bytes = std::mem::take(&mut self.queues[from.index()].waiting_bytes);
        self.queues[to.index()].waiting_bytes += waiting_bytes;
        for sent in self.ring.iter_mut() {
            // Gap-acknowledged chunks are in no queue, but a revoked one returns to its path's.
            if sent.path == from {
                sent.path = to;
            }
        }
        for tsn in marked {
            let waiting = self.get(tsn).filter(|s| s.state == TsnState::Marked);
            if let Some(cause) = waiting.map(|s| s.lost_by) {
                self.mark(tsn, cause);
            }
        }
        self.queues[from.index()] = PathQueues::default();
    }

    /// Checks what must always hold; panics with a description if it does not.
    pub(crate) fn check_invariants(&self) {
        let mut user = 0;
        for (i, queue) in self.queues.iter().enumerate() {
            let extra = (queue.extra.bytes(), queue.extra.len());
            user += queue.flight.check(&self.ring, PathId(i as u8), extra);
            let waits = |s: &&Sent| s.state == TsnState::Marked && s.path.index() == i;
            let waiting: usize = self.ring.iter().filter(waits).map(Sent::size).sum();
            assert_eq!(queue.waiting_bytes, waiting, "what waits on path {i}");
        }
        for path in (0..self.queues.len()).map(|i| PathId(i as u8)) {
            self.check_extra(path);
            self.check_pipe(path);
        }
        assert_eq!(self.flight_user_bytes, user, "user bytes in flight");
        let waiting = self.ring.iter().filter(|s| s.state == TsnState::Marked);
        let (chunks, bytes) = waiting.fold((0, 0), |(n, b), s| (n + 1, b + s.payload.len()));
        assert_eq!((self.marked_chunks, self.marked_user_bytes), (chunks, bytes), "what waits");
        let listed: usize = self.queues.iter().map(|q| q.marked.len()).sum();
        assert_eq!(self.listed, listed, "what is listed to be sent again");
        let held: usize = self.ring.iter().map(|s| s.payload.len()).sum();
        assert_eq!(self.user_bytes, held, "user bytes held");
        for (i, sent) in self.ring.iter().enumerate() {
            let tsn = self.ring.base().add(i as u32);
            let waits = self.queues[sent.path.index()].marked.contains(&tsn);
            assert!(sent.state != TsnState::Marked || waits, "{tsn:?} is marked but not queued");
        }
        let acked = self.ring.iter().filter(|s| s.state == TsnState::Acked).count() as u32;
        let ranged: u32 = self.acked.iter().map(|r| r.last.distance_from(r.first) + 1).sum();
        assert_eq!(acked, ranged, "gap-acknowledged TSNs");
        self.check_kept();
    }
}
