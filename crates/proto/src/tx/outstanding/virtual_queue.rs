//! SFR's virtual queue (CMT paper, §III-A): the chunks in flight on one path, in the order of their
//! transmission.

use manypath_wire::Tsn;

use super::ring::{Ring, Sent, TsnState};
use crate::view::PathId;

/// The chunks in flight on one path, linked through their records in the order of their
/// transmission, and the flight size of the path.
#[derive(Debug, Default)]
pub(crate) struct VirtualQueue {
    head: Option<Tsn>,
    tail: Option<Tsn>,
    flight_size: usize,
    chunks_in_flight: usize,
    /// The chunk that was last put back at its place in the order of transmission.
    placed: Option<Tsn>,
    /// A revoked chunk was put back at the tail, behind chunks sent later. Cleared when the queue
    /// is empty.
    has_revoked: bool,
}

impl VirtualQueue {
    /// Bytes of DATA chunks in flight on the path.
    pub(crate) fn flight_size(&self) -> usize {
        self.flight_size
    }

    /// Chunks in flight on the path.
    pub(crate) fn chunks_in_flight(&self) -> usize {
        self.chunks_in_flight
    }

    /// The chunk that was sent first.
    pub(crate) fn head(&self) -> Option<Tsn> {
        self.head
    }

    /// The chunks, first sent first.
    pub(crate) fn forwards<'a>(&self, ring: &'a Ring) -> impl Iterator<Item = (Tsn, &'a Sent)> {
        std::iter::successors(self.head, |&t| ring.get(t)?.next)
            .filter_map(|t| Some((t, ring.get(t)?)))
    }

    /// The chunks, last sent first.
    pub(crate) fn backwards<'a>(&self, ring: &'a Ring) -> impl Iterator<Item = (Tsn, &'a Sent)> {
        std::iter::successors(self.tail, |&t| ring.get(t)?.prev)
            .filter_map(|t| Some((t, ring.get(t)?)))
    }

    /// True if the chunks are in the order of their transmission.
    pub(crate) fn is_in_order(&mut self) -> bool {
        self.has_revoked &= self.head.is_some();
        !self.has_revoked
    }

    /// Adds a chunk that was sent last and is not in the ring yet. Returns its TSN.
    pub(crate) fn push_new(&mut self, ring: &mut Ring, mut sent: Sent) -> Tsn {
        let tsn = ring.next_tsn();
        let size = sent.size();
        let last = self.tail;
        sent.prev = last;
        ring.push(sent);
        self.join(ring, tsn, last, None, size);
        tsn
    }

    /// Adds a chunk of the path that was sent last. Returns its user bytes.
    pub(crate) fn push(&mut self, ring: &mut Ring, tsn: Tsn) -> usize {
        self.link(ring, tsn, self.tail, None)
    }

    /// Adds a revoked chunk of the path at the tail. Returns its user bytes.
    pub(crate) fn push_revoked(&mut self, ring: &mut Ring, tsn: Tsn) -> usize {
        self.has_revoked = true;
        self.push(ring, tsn)
    }

    /// Adds a chunk of the path at its place in the order of transmission. Returns its user bytes.
    pub(crate) fn insert_in_order(&mut self, ring: &mut Ring, tsn: Tsn) -> usize {
        let Some((path, order)) = ring.get(tsn).map(|s| (s.path, s.order)) else { return 0 };
        let before = self.last_before(ring, path, order);
        let after = match before {
            Some(before) => ring.get(before).and_then(|s| s.next),
            None => self.head,
        };
        self.placed = Some(tsn);
        self.link(ring, tsn, before, after)
    }

    /// The last chunk sent before the transmission `order`. The search goes backwards from the tail
    /// and, in step with that, forwards from the chunk placed last: chunks that are put back often
    /// follow one another.
    fn last_before(&self, ring: &Ring, path: PathId, order: u64) -> Option<Tsn> {
        let here = |s: &&Sent| s.state == TsnState::InFlight && s.path == path && s.order < order;
        let before = |tsn: &Tsn| ring.get(*tsn).filter(here).is_some();
        let (mut back, mut forth) = (self.tail, self.placed.filter(before));
        if self.has_revoked {
            forth = None;
        }
        loop {
            if back.is_none_or(|tsn| before(&tsn)) {
                return back;
            }
            back = back.and_then(|tsn| ring.get(tsn)?.prev);
            if let Some(tsn) = forth {
                let next = ring.get(tsn)?.next;
                if !next.as_ref().is_some_and(before) {
                    return Some(tsn);
                }
                forth = next;
            }
        }
    }

    /// Puts a chunk that is not marked in flight between its neighbours, if it has any. Returns its
    /// user bytes.
    fn link(
        &mut self,
        ring: &mut Ring,
        tsn: Tsn,
        before: Option<Tsn>,
        after: Option<Tsn>,
    ) -> usize {
        let Some(sent) = ring.get_mut(tsn) else { return 0 };
        sent.state = TsnState::InFlight;
        (sent.prev, sent.next) = (before, after);
        let (size, user) = (sent.size(), sent.payload.len());
        self.join(ring, tsn, before, after, size);
        user
    }

    /// Tells the neighbours of a chunk that it is in flight, and counts its size.
    #[inline(always)] // half of it goes where a chunk has nobody behind it, as mostly
    fn join(
        &mut self,
        ring: &mut Ring,
        tsn: Tsn,
        before: Option<Tsn>,
        after: Option<Tsn>,
        size: usize,
    ) {
        match before.and_then(|t| ring.get_mut(t)) {
            Some(before) => before.next = Some(tsn),
            None => self.head = Some(tsn),
        }
        match after.and_then(|t| ring.get_mut(t)) {
            Some(after) => after.prev = Some(tsn),
            None => self.tail = Some(tsn),
        }
        self.count(size);
    }

    /// Removes a chunk. Returns its user bytes.
    pub(crate) fn remove(&mut self, ring: &mut Ring, tsn: Tsn) -> usize {
        let Some(sent) = ring.get_mut(tsn) else { return 0 };
        let (prev, next) = (sent.prev.take(), sent.next.take());
        let (size, user) = (sent.size(), sent.payload.len());
        match prev.and_then(|t| ring.get_mut(t)) {
            Some(before) => before.next = next,
            None => self.head = next,
        }
        match next.and_then(|t| ring.get_mut(t)) {
            Some(after) => after.prev = prev,
            None => self.tail = prev,
        }
        self.discount(size);
        user
    }

    /// Counts a transmission in the flight size. Second transmissions, which have no record, count
    /// too.
    pub(crate) fn count(&mut self, size: usize) {
        self.flight_size += size;
        self.chunks_in_flight += 1;
    }

    /// Undoes [`count`](Self::count).
    pub(crate) fn discount(&mut self, size: usize) {
        self.flight_size -= size;
        self.chunks_in_flight -= 1;
    }

    /// Checks what must always hold. `extra` has the bytes and the number of transmissions that
    /// count but are not in the queue. Returns the user bytes of the chunks.
    pub(crate) fn check(&self, ring: &Ring, path: PathId, extra: (usize, usize)) -> usize {
        let (mut size, mut chunks) = extra;
        let (mut user, mut last) = (0, None);
        for (tsn, sent) in self.forwards(ring) {
            assert_eq!(sent.path, path, "{tsn:?} is linked on another path than its own");
            assert_eq!(sent.state, TsnState::InFlight, "{tsn:?} is queued as in flight");
            assert_eq!(sent.prev, last, "{tsn:?} has a broken link");
            last = Some(tsn);
            size += sent.size();
            chunks += 1;
            user += sent.payload.len();
        }
        assert_eq!(self.tail, last, "the tail of {path}");
        assert_eq!(self.flight_size, size, "flight size of {path}");
        assert_eq!(self.chunks_in_flight, chunks, "chunks in flight on {path}");
        user
    }
}
