//! Chunks that cannot be delivered yet, found by their TSN.

use bytes::Bytes;
use manypath_wire::{Data, DataFlags, Ssn, StreamId, Tsn};

use super::message::Payload;

/// Most slots of the index. Two held TSNs share a slot only if they are at least this far apart.
const SLOTS_MAX: usize = 1 << 17;
const SLOTS_MIN: usize = 64;
const EMPTY: u32 = u32::MAX;

/// A held DATA chunk.
///
/// Chunks with consecutive TSNs that belong to one message form a *run*. The first and the last
/// chunk of a run store each other's TSN and the run's size, so two runs join in constant time. The
/// values in inner chunks are out of date.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) tsn: Tsn,
    pub(super) stream: StreamId,
    pub(super) ssn: Ssn,
    pub(super) ppid: u32,
    pub(super) flags: DataFlags,
    pub(super) payload: Bytes,
    other_end: Tsn,
    run_bytes: usize,
}

/// The first and last TSN of a run, and its user data in bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: Tsn,
    pub(super) last: Tsn,
    pub(super) bytes: usize,
}

impl Run {
    pub(super) fn chunks(&self) -> usize {
        self.last.distance_from(self.first) as usize + 1
    }
}

/// No slot is free for this TSN: the held TSNs are too far apart.
#[derive(Debug)]
pub(super) struct TooWide;

/// The held chunks.
///
/// The index is a ring of slots; the low bits of a TSN select its slot. It doubles when two held
/// TSNs need one slot. So its length is about the distance between the held TSNs, at four bytes a
/// slot. No operation takes time in proportion to a distance between TSNs.
#[derive(Clone, Debug)]
pub(super) struct HeldChunks {
    /// Positions in `chunks`, or `EMPTY`; the length is a power of two, or zero before first use.
    slots: Vec<u32>,
    chunks: Vec<Option<Held>>,
    free: Vec<u32>,
    /// An upper bound of all held TSNs.
    highest: Tsn,
}

impl HeldChunks {
    pub(super) fn new() -> HeldChunks {
        HeldChunks { slots: Vec::new(), chunks: Vec::new(), free: Vec::new(), highest: Tsn(0) }
    }

    pub(super) fn len(&self) -> usize {
        self.chunks.len() - self.free.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn get(&self, tsn: Tsn) -> Option<&Held> {
        self.position(tsn).and_then(|i| self.chunks[i].as_ref())
    }

    /// Memory of the index in bytes.
    #[cfg(test)]
    pub(super) fn index_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<u32>()
    }

    /// Holds a chunk whose TSN is not held yet, as a run of its own.
    pub(super) fn insert(&mut self, data: Data, payload: Bytes) -> Result<(), TooWide> {
        let slot = self.free_slot(data.tsn)?;
        if self.is_empty() || data.tsn.gt(self.highest) {
            self.highest = data.tsn;
        }
        let held = Held {
            tsn: data.tsn,
            stream: data.stream,
            ssn: data.ssn,
            ppid: data.ppid,
            flags: data.flags,
            other_end: data.tsn,
            run_bytes: payload.len(),
            payload,
        };
        let i = match self.free.pop() {
            Some(i) => {
                self.chunks[i as usize] = Some(held);
                i
            }
            None => {
                self.chunks.push(Some(held));
                (self.chunks.len() - 1) as u32
            }
        };
        self.slots[slot] = i;
        Ok(())
    }

    /// The run that begins or ends with `tsn`.
    pub(super) fn run_at(&self, tsn: Tsn) -> Option<Run> {
        let held = self.get(tsn)?;
        let (first, last) =
            if held.other_end.lt(tsn) { (held.other_end, tsn) } else { (tsn, held.other_end) };
        Some(Run { first, last, bytes: held.run_bytes })
    }

    /// Joins two runs, of which one follows the other.
    pub(super) fn join(&mut self, left: Run, right: Run) -> Run {
        debug_assert_eq!(left.last.next(), right.first);
        let run = Run { first: left.first, last: right.last, bytes: left.bytes + right.bytes };
        self.write_ends(run);
        run
    }

    /// Removes the chunks of a run and returns their payload, in order.
    pub(super) fn take_run(&mut self, run: Run) -> Payload {
        let mut payload = Payload::with_capacity(run.chunks());
        let mut tsn = run.first;
        for _ in 0..run.chunks() {
            if let Some(held) = self.remove(tsn) {
                payload.push(held.payload);
            }
            tsn = tsn.next();
        }
        payload
    }

    /// The highest held TSN, if it is above `floor`.
    pub(super) fn highest_above(&mut self, floor: Tsn) -> Option<Tsn> {
        // The bound moves down only past TSNs that once moved it up.
        while !self.is_empty() && self.highest.gt(floor) {
            if self.position(self.highest).is_some() {
                return Some(self.highest);
            }
            self.highest = self.highest.prev();
        }
        None
    }

    /// Removes the last chunk of a run; the rest of the run remains.
    pub(super) fn cut_last(&mut self, run: Run) -> Option<Held> {
        let held = self.remove(run.last)?;
        if run.first != run.last {
            let bytes = run.bytes - held.payload.len();
            self.write_ends(Run { first: run.first, last: run.last.prev(), bytes });
        }
        Some(held)
    }

    fn write_ends(&mut self, run: Run) {
        for (end, other) in [(run.first, run.last), (run.last, run.first)] {
            let held = self.position(end).and_then(|i| self.chunks[i].as_mut());
            debug_assert!(held.is_some(), "the ends of a run are held");
            if let Some(held) = held {
                held.other_end = other;
                held.run_bytes = run.bytes;
            }
        }
    }

    fn remove(&mut self, tsn: Tsn) -> Option<Held> {
        let i = self.position(tsn)?;
        let slot = self.slot(tsn);
        self.slots[slot] = EMPTY;
        self.free.push(i as u32);
        self.chunks[i].take()
    }

    fn slot(&self, tsn: Tsn) -> usize {
        tsn.0 as usize & self.slots.len().wrapping_sub(1)
    }

    fn position(&self, tsn: Tsn) -> Option<usize> {
        let i = *self.slots.get(self.slot(tsn))?;
        let held = self.chunks.get(i as usize)?.as_ref()?;
        (held.tsn == tsn).then_some(i as usize)
    }

    /// The slot of a TSN that is not held. The index grows until no other TSN is in that slot.
    fn free_slot(&mut self, tsn: Tsn) -> Result<usize, TooWide> {
        while self.slots.get(self.slot(tsn)).is_none_or(|&i| i != EMPTY) {
            let len = (self.slots.len() * 2).max(SLOTS_MIN);
            if len > SLOTS_MAX {
                return Err(TooWide);
            }
            self.slots.clear();
            self.slots.resize(len, EMPTY);
            for (i, held) in self.chunks.iter().enumerate() {
                if let Some(held) = held {
                    self.slots[held.tsn.0 as usize & (len - 1)] = i as u32;
                }
            }
        }
        Ok(self.slot(tsn))
    }
}
