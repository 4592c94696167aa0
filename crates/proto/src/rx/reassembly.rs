//! From DATA chunks to messages (RFC 9260 §6.5, §6.6, §6.9). I-DATA chunks are [`interleaved`].

use std::collections::{BTreeSet, HashMap, VecDeque};

use manypath_wire::{Data, DataFlags, Ssn, StreamId, Tsn};

use super::held::{HeldChunks, Run};
use super::message::{Message, Payload};
use super::retain::Retain;
use super::tsn_tracker::{Arrival, TsnTracker};
use super::violation::ProtocolViolation;
use interleaved::Interleaved;
use room::{Amount, Room};

pub(crate) use room::Limits;

mod interleaved;
mod resets;
mod room;
mod skip;

/// Most chunks of one message that are gathered before partial delivery begins. Together with the
/// window of the tracker it bounds the distance between held TSNs.
const PARTIAL_DELIVERY_CHUNKS_MAX: usize = 32_768;

#[derive(Copy, Clone, Debug)]
struct Stream {
    /// The SSN of the ordered message to deliver next.
    next_ssn: Ssn,
    /// Complete ordered messages held until their turn.
    waiting: u32,
    /// The last message that was skipped.
    skipped: Option<Ssn>,
}

/// Fields that are the same in all fragments of a message.
#[derive(Copy, Clone, Debug)]
struct Heading {
    stream: StreamId,
    ssn: Ssn,
    ppid: u32,
    unordered: bool,
}

impl Heading {
    fn matches(&self, stream: StreamId, ssn: Ssn, flags: DataFlags) -> bool {
        self.stream == stream
            && self.unordered == flags.unordered()
            && (self.unordered || self.ssn == ssn)
    }
}

/// A message that is being delivered in parts. All TSNs before `next` have been received.
#[derive(Copy, Clone, Debug)]
struct Partial {
    next: Tsn,
    heading: Heading,
}

/// DATA chunks in, messages out.
///
/// A message is ready as soon as it is complete and the order of its own stream allows; no stream
/// waits for another. What is held is bounded by [`Limits`].
#[derive(Clone, Debug)]
pub(crate) struct Inbound {
    room: Room,
    retain: Retain,
    streams: Vec<Stream>,
    held: HeldChunks,
    /// The first TSN of each complete ordered message that waits for its turn. Never iterated.
    waiting: HashMap<(StreamId, Ssn), Tsn>,
    /// The first TSN of each complete unordered message that waits until `partial` ends.
    deferred: BTreeSet<u32>,
    /// The message at the cumulative TSN, if it is delivered in parts. No other message can
    /// overtake it.
    partial: Option<Partial>,
    /// A fragment without the B bit behind this TSN belongs to a skipped message.
    skipped_to: Option<Tsn>,
    /// Reassembly of I-DATA chunks, if these carry the user data.
    interleaved: Option<Box<Interleaved>>,
    ready: VecDeque<Message>,
    /// Messages on stream 0 with this payload protocol identifier are kept from the application.
    set_aside: Option<u32>,
    aside: VecDeque<Message>,
    /// Number of chunks discarded to make room.
    reneged: u64,
}

impl Inbound {
    /// For an association with `streams` inbound streams (RFC 9260 §5.1.1).
    pub(crate) fn new(streams: u16, limits: Limits) -> Inbound {
        Inbound {
            room: Room::new(limits),
            retain: Retain::default(),
            streams: vec![
                Stream { next_ssn: Ssn(0), waiting: 0, skipped: None };
                usize::from(streams)
            ],
            held: HeldChunks::new(),
            waiting: HashMap::new(),
            deferred: BTreeSet::new(),
            partial: None,
            skipped_to: None,
            interleaved: None,
            ready: VecDeque::new(),
            set_aside: None,
            aside: VecDeque::new(),
            reneged: 0,
        }
    }

    /// Takes in a DATA chunk just received: decides whether there is room for it, records its TSN
    /// in `tracker`, and reassembles.
    ///
    /// If room is short, it follows RFC 9260 §6.2. A TSN above all others is dropped. For a lower
    /// TSN, the chunks with the highest TSNs are discarded until it fits. The next TSN in order is
    /// dropped only if ready messages fill the buffers, so that popping them makes room.
    ///
    /// After an error the TSN counts as received.
    pub(crate) fn accept(
        &mut self,
        data: Data,
        tracker: &mut TsnTracker,
    ) -> Result<Arrival, ProtocolViolation> {
        let tsn = data.tsn;
        self.room.largest = self.room.largest.max(data.payload.len());
        if !self.has_room(data.payload.len())
            && tracker.classify(tsn) == Arrival::New
            && !self.make_room(tsn, data.payload.len(), tracker)?
        {
            return Ok(Arrival::Dropped);
        }
        let arrival = tracker.observe(tsn);
        if arrival == Arrival::New {
            self.push(data, tracker)?;
        }
        Ok(arrival)
    }

    /// Reassembles a chunk that has room, and whose TSN was new to `tracker`.
    pub(crate) fn push(
        &mut self,
        data: Data,
        tracker: &TsnTracker,
    ) -> Result<(), ProtocolViolation> {
        let whole = data.flags.begin() && data.flags.end();
        let in_turn = self.is_turn(data.stream, data.ssn, data.flags.unordered());
        if whole && in_turn && self.held.is_empty() && self.partial.is_none() {
            self.deliver_whole(data);
            return Ok(());
        }
        if self.is_of_skipped(&data) {
            return Ok(());
        }
        self.check_neighbours(&data, tracker)?;
        self.check_order(&data, tracker)?;
        if whole && in_turn {
            let stream = data.stream;
            self.deliver_whole(data);
            self.deliver_waiting(stream);
        } else {
            self.hold(data)?;
        }
        self.begin_partial(tracker.cum_tsn(), self.room.limits.partial_delivery_point);
        Ok(())
    }

    /// Lets the header of each DATA chunk take room, too.
    pub(crate) fn counting_headers(mut self, counts: bool) -> Inbound {
        self.room.count_headers(counts);
        self
    }

    /// Notes the length of the packet that carried the next chunks. Their payloads keep the packet
    /// alive until they are copied.
    pub(crate) fn begin_packet(&mut self, bytes: usize) {
        self.retain.begin_packet(bytes);
        self.room.begin_packet();
    }

    /// Copies every payload that is held, so that none keeps its packet alive: for unknown peers.
    pub(crate) fn copy_all(&mut self, all: bool) {
        self.retain.copy_all(all);
    }

    /// Sets the limits. Data held above lower limits stays until it is popped or makes room.
    pub(crate) fn set_limits(&mut self, limits: Limits) {
        self.room.limits = limits;
    }

    /// Messages on stream 0 with this payload protocol identifier are for
    /// [`pop_aside`](Self::pop_aside) from now on.
    pub(crate) fn set_aside(&mut self, ppid: u32) {
        self.set_aside = Some(ppid);
    }

    /// The next message, or part of one, that is set aside. Such messages take no room.
    pub(crate) fn pop_aside(&mut self) -> Option<Message> {
        self.aside.pop_front()
    }

    /// True if nothing that has arrived waits for anything.
    pub(crate) fn is_clear(&self) -> bool {
        self.ready.is_empty()
            && self.aside.is_empty()
            && self.held.is_empty()
            && self.partial.is_none()
            && self.interleaved.as_ref().is_none_or(|i| i.is_empty())
    }

    /// The next message, or part of one, in the order of delivery.
    pub(crate) fn pop(&mut self) -> Option<Message> {
        let message = self.ready.pop_front()?;
        self.leave(&message.payload);
        Some(message)
    }

    /// Releases the room of a payload that was ready.
    #[inline]
    fn leave(&mut self, payload: &Payload) {
        let amount = Amount { chunks: payload.chunks().len(), bytes: payload.len() };
        self.room.ready.subtract(amount);
        self.room.held.subtract(amount);
    }

    /// True if [`pop`](Self::pop) has something to return.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// User data held, in bytes: in reassembly, waiting for its turn, or ready to be popped.
    pub(crate) fn buffered_bytes(&self) -> usize {
        self.room.held.bytes
    }

    /// DATA chunks held, as [`buffered_bytes`](Self::buffered_bytes) counts them.
    #[cfg(test)]
    pub(crate) fn buffered_chunks(&self) -> usize {
        self.room.held.chunks
    }

    /// User data that may still come in, in bytes: what a SACK announces as a_rwnd.
    pub(crate) fn available_bytes(&self) -> usize {
        self.room.available()
    }

    /// DATA chunks that were discarded to make room for others.
    pub(crate) fn chunks_reneged(&self) -> u64 {
        self.reneged
    }

    /// True if a chunk with `len` bytes of user data fits within the limits.
    pub(crate) fn has_room(&self, len: usize) -> bool {
        self.room.has_room(len)
    }

    /// Promises to keep all chunks up to a TSN, and returns that TSN: for non-renegable gap ack
    /// blocks.
    pub(crate) fn keep(&mut self, tracker: &TsnTracker) -> Tsn {
        let cum = tracker.cum_tsn();
        let begun = match self.interleaved {
            None => self.held.run_at(cum).map(amount_of).unwrap_or_default(),
            // A chunk of a partly delivered message may have any TSN, so count all that is held.
            Some(_) => self.held_in_reassembly(),
        };
        self.room.keep(cum, begun)
    }

    /// Discards the chunk with the highest TSN that is above the cumulative TSN, undelivered, and
    /// not promised to be [kept](Self::keep). `tracker` forgets it (reneging, RFC 9260 §6.2). For
    /// use when memory is short.
    #[cfg(test)]
    pub(crate) fn drop_highest(&mut self, tracker: &mut TsnTracker) -> Option<Tsn> {
        self.drop_highest_above(tracker.cum_tsn(), tracker)
    }

    #[inline(never)] // mostly there is room
    fn make_room(
        &mut self,
        tsn: Tsn,
        len: usize,
        tracker: &mut TsnTracker,
    ) -> Result<bool, ProtocolViolation> {
        while !self.has_room(len) {
            if self.drop_highest_above(tsn, tracker).is_none() {
                return self.refuse(tsn, tracker.cum_tsn());
            }
        }
        Ok(true)
    }

    /// Refuses a chunk that has no room, although no chunk above its TSN is held any more.
    fn refuse(&mut self, tsn: Tsn, cum: Tsn) -> Result<bool, ProtocolViolation> {
        if tsn != cum.next() {
            return Ok(false);
        }
        if self.room.packet_may_exceed() {
            return Ok(true);
        }
        if !self.ready.is_empty() {
            return Ok(false);
        }
        // Nothing can be popped, and no missing TSN can release what is held. So the buffers hold
        // one long message, or messages behind SSNs that the peer left out.
        match self.interleaved {
            None => self.begin_partial(cum, 0),
            Some(_) => self.open_a_message(),
        }
        if !self.ready.is_empty() {
            Ok(false)
        } else if self.room.admit_next(cum) {
            Ok(true)
        } else {
            Err(ProtocolViolation::Undeliverable { tsn })
        }
    }

    fn drop_highest_above(&mut self, floor: Tsn, tracker: &mut TsnTracker) -> Option<Tsn> {
        let floor = self.room.floor(floor);
        if let Some(i) = &mut self.interleaved {
            let (tsn, bytes) = i.discard_highest(tracker.extended(floor))?;
            return Some(self.note_reneged(tsn, bytes, tracker));
        }
        let tsn = self.held.highest_above(floor)?;
        let run = self.held.run_at(tsn)?;
        let cut = self.held.cut_last(run)?;
        if cut.flags.end() {
            // If the message was complete, it waits no longer.
            if self.waiting.get(&(cut.stream, cut.ssn)) == Some(&run.first) {
                self.waiting.remove(&(cut.stream, cut.ssn));
                self.streams[usize::from(cut.stream.0)].waiting -= 1;
            }
            self.deferred.remove(&run.first.0);
        }
        Some(self.note_reneged(tsn, cut.payload.len(), tracker))
    }

    /// Notes that a chunk was discarded: it takes no room, and may be sent again.
    fn note_reneged(&mut self, tsn: Tsn, bytes: usize, tracker: &mut TsnTracker) -> Tsn {
        self.room.held.subtract(Amount::of_chunk(bytes));
        self.reneged += 1;
        let forgotten = tracker.forget(tsn);
        debug_assert!(forgotten, "what is held above the cumulative TSN was observed");
        tsn
    }

    fn is_turn(&self, stream: StreamId, ssn: Ssn, unordered: bool) -> bool {
        let Some(state) = self.streams.get(usize::from(stream.0)) else {
            return false;
        };
        (unordered || state.next_ssn == ssn)
            && self.partial.is_none_or(|partial| partial.heading.stream != stream)
    }

    /// Checks by the TSNs beside a chunk that it can stand where it does.
    fn check_neighbours(&self, data: &Data, tracker: &TsnTracker) -> Result<(), ProtocolViolation> {
        let heading = heading_of(data);
        let (begin, end) = (data.flags.begin(), data.flags.end());
        let (before, after) = (data.tsn.prev(), data.tsn.next());
        let partial = self.partial.filter(|partial| partial.next == data.tsn);
        // A neighbour that was received and is not held was delivered, as the end or the beginning
        // of its message; or it was on an invalid stream.
        let invalid = usize::from(data.stream.0) >= self.streams.len();
        let fits_before = match (self.held.get(before), partial) {
            (Some(left), _) if left.flags.end() => begin,
            (Some(left), _) => !begin && heading.matches(left.stream, left.ssn, left.flags),
            (None, Some(partial)) => {
                !begin && partial.heading.matches(data.stream, data.ssn, data.flags)
            }
            (None, None) => begin || invalid || !tracker.contains(before),
        };
        let fits_after = match self.held.get(after) {
            Some(right) if right.flags.begin() => end,
            Some(right) => !end && heading.matches(right.stream, right.ssn, right.flags),
            None => end || invalid || !tracker.contains(after),
        };
        if fits_before && fits_after {
            Ok(())
        } else {
            Err(ProtocolViolation::FragmentOutOfPlace { tsn: data.tsn })
        }
    }

    fn check_order(&self, data: &Data, tracker: &TsnTracker) -> Result<(), ProtocolViolation> {
        let Data { tsn, stream, ssn, .. } = *data;
        let Some(state) = self.streams.get(usize::from(stream.0)) else {
            return Err(ProtocolViolation::InvalidStream { tsn, stream });
        };
        // RFC 9260 §6.5: SSNs compare by serial number arithmetic, by which half of all SSNs are
        // "behind". A message half of the SSNs ahead needs as many TSNs between, so a TSN that is
        // far enough ahead proves that the SSN is ahead.
        let behind = ssn.distance_from(state.next_ssn) > u16::MAX / 2;
        let cum = tracker.cum_tsn();
        let far = tsn.gt(cum) && tsn.distance_from(cum) > u32::from(u16::MAX / 2);
        if behind && !far && !data.flags.unordered() && !self.is_late_fragment(data) {
            Err(ProtocolViolation::SsnReused { tsn, stream, ssn })
        } else {
            Ok(())
        }
    }

    /// Holds a chunk, joins it to its neighbours, and delivers what that completes.
    fn hold(&mut self, mut data: Data) -> Result<(), ProtocolViolation> {
        let Data { tsn, flags, .. } = data;
        let payload = self.retain.held(std::mem::take(&mut data.payload));
        let bytes = payload.len();
        if self.held.insert(data, payload).is_err() {
            // Only if TSNs below the cumulative one wait for ever can this TSN be so far from them.
            return Err(ProtocolViolation::Undeliverable { tsn });
        }
        self.room.held.add(Amount::of_chunk(bytes));
        let mut run = Run { first: tsn, last: tsn, bytes };
        if !flags.begin()
            && let Some(left) = self.held.run_at(tsn.prev())
        {
            run = self.held.join(left, run);
        }
        if !flags.end()
            && let Some(right) = self.held.run_at(tsn.next())
        {
            run = self.held.join(run, right);
        }
        if let Some(partial) = self.partial.filter(|partial| partial.next == run.first) {
            self.continue_partial(partial.heading, run);
            return Ok(());
        }
        match self.complete_message(run) {
            Some(heading) => self.deliver_or_wait(heading, run),
            None => Ok(()),
        }
    }

    /// The heading of a run, if the run is a complete message.
    fn complete_message(&self, run: Run) -> Option<Heading> {
        let first = self.held.get(run.first)?;
        let last = self.held.get(run.last)?;
        (first.flags.begin() && last.flags.end()).then_some(Heading {
            stream: first.stream,
            ssn: first.ssn,
            ppid: first.ppid,
            unordered: first.flags.unordered(),
        })
    }

    fn deliver_or_wait(&mut self, heading: Heading, run: Run) -> Result<(), ProtocolViolation> {
        let Heading { stream, ssn, unordered, .. } = heading;
        if self.is_turn(stream, ssn, unordered) {
            self.deliver_run(heading, run);
            self.deliver_waiting(stream);
        } else if unordered {
            self.deferred.insert(run.first.0);
        } else if self.waiting.insert((stream, ssn), run.first).is_some() {
            return Err(ProtocolViolation::SsnReused { tsn: run.first, stream, ssn });
        } else {
            self.streams[usize::from(stream.0)].waiting += 1;
        }
        Ok(())
    }

    /// Delivers the ordered messages of a stream whose turn has come.
    fn deliver_waiting(&mut self, stream: StreamId) {
        loop {
            let Stream { next_ssn, waiting, .. } = self.streams[usize::from(stream.0)];
            if waiting == 0 || !self.is_turn(stream, next_ssn, false) {
                return;
            }
            let Some(first) = self.waiting.remove(&(stream, next_ssn)) else {
                return;
            };
            self.streams[usize::from(stream.0)].waiting -= 1;
            let found = self.held.run_at(first);
            debug_assert!(found.is_some(), "what waits is held");
            let Some(run) = found else { return };
            let Some(heading) = self.complete_message(run) else { return };
            self.deliver_run(heading, run);
        }
    }

    /// Begins partial delivery if the incomplete message at the cumulative TSN has `point` bytes,
    /// or too many chunks.
    fn begin_partial(&mut self, cum: Tsn, point: usize) {
        if self.partial.is_some() || self.held.is_empty() {
            return;
        }
        let Some(run) = self.held.run_at(cum) else { return };
        let chunks_max = (self.room.limits.max_chunks / 2).clamp(1, PARTIAL_DELIVERY_CHUNKS_MAX);
        if run.bytes < point && run.chunks() < chunks_max {
            return;
        }
        let Some(first) = self.held.get(run.first) else { return };
        let heading = Heading {
            stream: first.stream,
            ssn: first.ssn,
            ppid: first.ppid,
            unordered: first.flags.unordered(),
        };
        debug_assert!(
            first.flags.begin(),
            "what is before the cumulative TSN was checked against it"
        );
        // A complete message that is still held waits for its turn as a whole.
        if self.is_turn(heading.stream, heading.ssn, heading.unordered) {
            self.continue_partial(heading, run);
        }
    }

    /// Delivers a run as the next part of a message.
    fn continue_partial(&mut self, heading: Heading, run: Run) {
        let end_of_message = self.held.get(run.last).is_some_and(|last| last.flags.end());
        let payload = self.held.take_run(run);
        self.room.ready.add(amount_of(run));
        self.make_ready(heading, payload, end_of_message);
        if !end_of_message {
            self.partial = Some(Partial { next: run.last.next(), heading });
            return;
        }
        self.partial = None;
        self.after_partial(heading.stream);
    }

    /// Delivers what waited for the end of a message that was delivered in parts.
    fn after_partial(&mut self, stream: StreamId) {
        for first in std::mem::take(&mut self.deferred) {
            if let Some(run) = self.held.run_at(Tsn(first))
                && let Some(heading) = self.complete_message(run)
            {
                self.deliver_run(heading, run);
            }
        }
        self.deliver_waiting(stream);
    }

    fn deliver_run(&mut self, heading: Heading, run: Run) {
        let payload = self.held.take_run(run);
        self.room.ready.add(amount_of(run));
        self.make_ready(heading, payload, true);
    }

    /// Delivers a message of one chunk without holding it.
    fn deliver_whole(&mut self, mut data: Data) {
        let heading = heading_of(&data);
        let payload = self.retain.ready(std::mem::take(&mut data.payload), self.ready.len());
        let amount = Amount::of_chunk(payload.len());
        self.room.held.add(amount);
        self.room.ready.add(amount);
        self.make_ready(heading, Payload::from(payload), true);
    }

    /// True if the application does not get the message.
    fn is_aside(&self, heading: Heading) -> bool {
        self.set_aside == Some(heading.ppid) && heading.stream.0 == 0
    }

    fn make_ready(&mut self, heading: Heading, payload: Payload, end_of_message: bool) {
        let Heading { stream, ssn, ppid, unordered } = heading;
        let is_aside = self.is_aside(heading);
        let is_cut_off = false;
        let message = Message { stream, ssn, ppid, unordered, payload, end_of_message, is_cut_off };
        if is_aside {
            self.leave(&message.payload);
            self.aside.push_back(message);
        } else {
            self.ready.push_back(message);
        }
        if end_of_message && !unordered {
            self.streams[usize::from(stream.0)].next_ssn = ssn.next();
        }
    }
}

fn amount_of(run: Run) -> Amount {
    Amount { chunks: run.chunks(), bytes: run.bytes }
}

fn heading_of(data: &Data) -> Heading {
    Heading {
        stream: data.stream,
        ssn: data.ssn,
        ppid: data.ppid,
        unordered: data.flags.unordered(),
    }
}

#[cfg(test)]
mod tests;
