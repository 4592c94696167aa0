//! From I-DATA chunks to messages (RFC 8260 §2.2.3).
//!
//! The stream, the U bit and the MID identify a message, and the FSN orders its fragments. TSNs
//! only decide which fragments may be discarded to make room.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use manypath_wire::{IData, Mid, Ssn, StreamId, Tsn};

use super::room::Amount;
use super::{Heading, Inbound};
use crate::rx::message::Payload;
use crate::rx::tsn_tracker::{Arrival, TsnTracker};
use crate::rx::violation::ProtocolViolation;

mod skip;

/// The identity of a message.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    stream: StreamId,
    unordered: bool,
    mid: u32,
}

impl Key {
    fn of(data: &IData) -> Key {
        Key { stream: data.stream, unordered: data.flags.unordered(), mid: data.mid.0 }
    }

    /// The least key of a stream.
    fn first_of(stream: StreamId) -> Key {
        Key { stream, unordered: false, mid: 0 }
    }
}

#[derive(Copy, Clone, Debug, Default)]
struct Stream {
    /// The ordered message to deliver next.
    next_mid: Mid,
    /// The message that is being delivered in parts. Until it ends, no other message is delivered
    /// from the stream.
    partial: Option<Key>,
    /// The last ordered and the last unordered message that was skipped.
    skipped: [Option<Mid>; 2],
}

impl Stream {
    /// Lets the numbers begin again, whatever was skipped before.
    fn begin_again(&mut self) {
        (self.next_mid, self.skipped) = (Mid(0), [None; 2]);
    }
}

#[derive(Clone, Debug)]
struct Fragment {
    /// The TSN as the tracker's number, which does not wrap.
    tsn: u64,
    payload: Bytes,
}

/// A message that is not delivered to its end. FSNs are numbered on where they wrap.
#[derive(Copy, Clone, Debug, Default)]
struct Assembly {
    /// The PPID, known once the first fragment is here.
    ppid: u32,
    /// Fragments held.
    held: u64,
    /// All fragments before this one were delivered.
    next: u64,
    /// All fragments from `next` to this one, exclusive, are here and not above the cumulative TSN,
    /// so that they are not discarded.
    reach: u64,
    /// User bytes of these fragments.
    reach_bytes: usize,
    /// The FSN of the last fragment, once it is here.
    last: Option<u64>,
}

impl Assembly {
    fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.held == last + 1 - self.next)
    }
}

/// The messages that wait for fragments or for their turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Interleaved {
    /// State of streams, up to the highest one on which anything arrived.
    streams: Vec<Stream>,
    messages: BTreeMap<Key, Assembly>,
    /// Fragments by message and FSN. One map holds all, so that a small message costs little more
    /// than its bytes.
    fragments: BTreeMap<(Key, u64), Fragment>,
    /// The message and the FSN of each held fragment, by TSN.
    by_tsn: BTreeMap<u64, (Key, u64)>,
    /// Incomplete messages whose turn it is and whose next fragment is here, with the TSN of that
    /// fragment.
    openable: BTreeSet<(u64, Key)>,
    /// Complete unordered messages that wait until one that is delivered in parts ends.
    deferred: BTreeSet<Key>,
    /// The cumulative TSN.
    cum: u64,
}

impl Interleaved {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// True if a message of a stream is not delivered to its end.
    pub(super) fn holds(&self, stream: StreamId) -> bool {
        let first = self.messages.range(Key::first_of(stream)..).next();
        self.stream(stream).partial.is_some() || first.is_some_and(|(key, _)| key.stream == stream)
    }

    /// Lets the numbers of ordered messages begin again, those of all streams if none is named.
    /// Numbers of unordered messages are not counted.
    pub(super) fn reset(&mut self, streams: &[StreamId]) {
        if streams.is_empty() {
            self.streams.iter_mut().for_each(Stream::begin_again);
        }
        for stream in streams {
            if let Some(stream) = self.streams.get_mut(usize::from(stream.0)) {
                stream.begin_again();
            }
        }
    }

    fn stream(&self, stream: StreamId) -> Stream {
        self.streams.get(usize::from(stream.0)).copied().unwrap_or_default()
    }

    fn stream_mut(&mut self, stream: StreamId) -> &mut Stream {
        let index = usize::from(stream.0);
        if self.streams.len() <= index {
            self.streams.resize(index + 1, Stream::default());
        }
        &mut self.streams[index]
    }

    /// True if the order of its stream allows the message to be delivered.
    fn is_next(&self, key: Key) -> bool {
        key.unordered || self.stream(key.stream).next_mid.0 == key.mid
    }

    /// True if no other message of its stream is being delivered in parts.
    fn is_free(&self, key: Key) -> bool {
        self.stream(key.stream).partial.is_none_or(|partial| partial == key)
    }

    /// The FSN of a chunk, if it can be a fragment of its message beside the others.
    fn place_of(&self, key: Key, data: &IData) -> Option<u64> {
        let message = self.messages.get(&key).copied().unwrap_or_default();
        let (begin, end) = (data.flags.begin(), data.flags.end());
        let ahead = data.fsn().wrapping_sub(message.next as u32);
        // RFC 8260 §2.1: serial number arithmetic of 32 bits.
        let fsn = message.next + u64::from(ahead);
        let is_ahead = ahead < 1 << 31;
        let fits_begin = (fsn == 0) == begin;
        let mut behind = self.fragments.range((key, fsn)..=(key, u64::MAX));
        let fits_end = match message.last {
            Some(last) => fsn < last && !end,
            None => !end || behind.next_back().is_none(),
        };
        let is_new = !self.fragments.contains_key(&(key, fsn));
        (is_ahead && fits_begin && fits_end && is_new).then_some(fsn)
    }

    /// Holds a fragment.
    fn insert(&mut self, data: &IData, payload: Bytes, tsn: u64) -> Result<(), ProtocolViolation> {
        let key = Key::of(data);
        let Some(fsn) = self.place_of(key, data) else {
            return Err(ProtocolViolation::FragmentOutOfPlace { tsn: data.tsn });
        };
        let message = self.messages.entry(key).or_default();
        if let Some(ppid) = data.ppid() {
            message.ppid = ppid;
        }
        if data.flags.end() {
            message.last = Some(fsn);
        }
        message.held += 1;
        self.fragments.insert((key, fsn), Fragment { tsn, payload });
        self.by_tsn.insert(tsn, (key, fsn));
        Ok(())
    }

    /// Extends a message's `reach` over fragments that are here. Returns the message and its entry
    /// for `openable`, if its next fragment is here.
    fn advance(&mut self, key: Key) -> Option<(Assembly, (u64, Key))> {
        let message = self.messages.get_mut(&key)?;
        for (&(_, fsn), fragment) in self.fragments.range((key, message.reach)..=(key, u64::MAX)) {
            if fsn != message.reach || fragment.tsn > self.cum {
                break;
            }
            message.reach_bytes += fragment.payload.len();
            message.reach += 1;
        }
        let first = self.fragments.get(&(key, message.next))?;
        Some((*message, (first.tsn, key)))
    }

    /// Removes the consecutive fragments of a message: all of them, if it is complete.
    fn take(&mut self, key: Key) -> Option<(Payload, u32)> {
        let message = self.messages.get_mut(&key)?;
        let (first, ppid) = (message.next, message.ppid);
        let upto = match message.last {
            Some(last) if message.is_complete() => {
                self.messages.remove(&key);
                last + 1
            }
            _ => {
                message.held -= message.reach - first;
                (message.next, message.reach_bytes) = (message.reach, 0);
                message.reach
            }
        };
        let mut payload = Payload::with_capacity((upto - first) as usize);
        for fsn in first..upto {
            let Some(fragment) = self.fragments.remove(&(key, fsn)) else { break };
            self.by_tsn.remove(&fragment.tsn);
            if fsn == first {
                self.openable.remove(&(fragment.tsn, key));
            }
            payload.push(fragment.payload);
        }
        Some((payload, ppid))
    }

    /// Discards the fragment with the highest TSN, if it is above `floor`; returns its TSN and its
    /// user bytes.
    pub(super) fn discard_highest(&mut self, floor: u64) -> Option<(Tsn, usize)> {
        let (&tsn, &(key, fsn)) = self.by_tsn.last_key_value().filter(|(tsn, _)| **tsn > floor)?;
        self.by_tsn.remove(&tsn);
        self.deferred.remove(&key);
        self.openable.remove(&(tsn, key));
        let bytes = self.fragments.remove(&(key, fsn))?.payload.len();
        let message = self.messages.get_mut(&key)?;
        message.held -= 1;
        message.last = message.last.filter(|last| *last != fsn);
        debug_assert!(message.reach <= fsn, "nothing below the cumulative TSN is discarded");
        if message.held == 0 && message.next == 0 {
            self.messages.remove(&key);
        } else if self.is_next(key) {
            // The message may have been complete before.
            let open = self.advance(key).map(|(_, open)| open);
            self.openable.extend(open);
        }
        Some((Tsn(tsn as u32), bytes))
    }

    /// True if a message may begin partial delivery: its first fragment is not above the cumulative
    /// TSN. All that its sender sent before on the stream is then here, so it holds up only later
    /// data, which can be discarded.
    fn may_open(&self, tsn: u64, key: Key) -> bool {
        tsn <= self.cum && self.is_free(key)
    }

    /// A message that can be delivered in parts now. `None` if the lowest TSN belongs to one that
    /// cannot: its sender mixed messages of one stream.
    fn first_openable(&self) -> Option<Key> {
        self.openable.first().filter(|(tsn, key)| self.may_open(*tsn, *key)).map(|(_, key)| *key)
    }

    /// A complete unordered message of a stream that need not wait any more.
    fn next_deferred(&mut self, stream: StreamId) -> Option<Key> {
        let key = *self.deferred.range(Key::first_of(stream)..).next()?;
        let is_of_stream = key.stream == stream;
        (is_of_stream && self.deferred.remove(&key)).then_some(key)
    }

    /// Checks that all indices agree. Returns the number of fragments held.
    #[cfg(test)]
    fn check(&self) -> usize {
        let held = self.fragments.len();
        assert_eq!(held, self.by_tsn.len());
        assert_eq!(held as u64, self.messages.values().map(|m| m.held).sum::<u64>());
        for (tsn, (key, fsn)) in &self.by_tsn {
            assert_eq!(self.fragments[&(*key, *fsn)].tsn, *tsn);
        }
        for (tsn, key) in &self.openable {
            let m = &self.messages[key];
            assert!(!m.is_complete() && self.is_next(*key), "{key:?}");
            assert_eq!(self.fragments[&(*key, m.next)].tsn, *tsn);
        }
        assert!(self.deferred.iter().all(|key| self.messages[key].is_complete()));
        held
    }
}

impl Inbound {
    /// User data comes in I-DATA chunks (RFC 8260 §2.2.1), not in DATA.
    pub(crate) fn interleave(&mut self) {
        self.interleaved.get_or_insert_default();
        self.room.interleave();
    }

    /// Takes in an I-DATA chunk just received, like [`accept`](Inbound::accept).
    pub(crate) fn accept_i_data(
        &mut self,
        data: IData,
        tracker: &mut TsnTracker,
    ) -> Result<Arrival, ProtocolViolation> {
        let (tsn, len) = (data.tsn, data.payload.len());
        self.room.largest = self.room.largest.max(len);
        if !self.has_room(len)
            && tracker.classify(tsn) == Arrival::New
            && !self.make_room(tsn, len, tracker)?
        {
            return Ok(Arrival::Dropped);
        }
        let arrival = tracker.observe(tsn);
        if arrival == Arrival::New {
            if let Some(i) = &mut self.interleaved {
                i.cum = tracker.extended(tracker.cum_tsn());
            }
            self.push_i_data(data, tracker.extended(tsn))?;
        }
        Ok(arrival)
    }

    fn push_i_data(&mut self, mut data: IData, tsn: u64) -> Result<(), ProtocolViolation> {
        let (key, stream) = (Key::of(&data), data.stream);
        if usize::from(stream.0) >= self.streams.len() {
            return Err(ProtocolViolation::InvalidStream { tsn: data.tsn, stream });
        }
        let Some(i) = self.interleaved.as_mut() else { return Ok(()) };
        if i.is_skipped(key) {
            return Ok(()); // its message was given up
        }
        let ahead = data.mid.distance_from(i.stream(stream).next_mid);
        if !key.unordered && ahead >= 1 << 31 {
            let mid = data.mid;
            return Err(ProtocolViolation::MidReused { tsn: data.tsn, stream, mid });
        }
        let whole = data.flags.begin() && data.flags.end();
        if whole && i.is_next(key) && i.is_free(key) && !i.messages.contains_key(&key) {
            let payload = self.retain.ready(std::mem::take(&mut data.payload), self.ready.len());
            self.room.held.add(Amount::of_chunk(payload.len()));
            self.deliver_message(key, Payload::from(payload), data.ppid_or_fsn, true);
            self.finish_message(key);
            return Ok(());
        }
        let payload = self.retain.held(std::mem::take(&mut data.payload));
        let bytes = payload.len();
        i.insert(&data, payload, tsn)?;
        self.room.held.add(Amount::of_chunk(bytes));
        self.settle(key);
        Ok(())
    }

    /// Delivers as much of a message as possible.
    fn settle(&mut self, key: Key) {
        let held = self.held_in_reassembly();
        let limits = self.room.limits;
        let Some(i) = self.interleaved.as_mut() else { return };
        if !i.is_next(key) {
            return;
        }
        let Some((message, open)) = i.advance(key) else { return };
        if message.is_complete() {
            i.openable.remove(&open);
            if i.is_free(key) {
                self.deliver(key, true);
                self.finish_message(key);
            } else if key.unordered {
                i.deferred.insert(key);
            }
            return;
        }
        i.openable.insert(open);
        // The fragments of many incomplete messages can fill the buffer, although none is long.
        let is_long = message.reach_bytes >= limits.partial_delivery_point;
        let is_full = held.bytes >= limits.partial_delivery_point
            || held.chunks >= (limits.max_chunks / 2).max(1);
        let is_partial = i.stream(key.stream).partial == Some(key);
        let has_part = message.reach > message.next;
        if has_part && (is_partial || ((is_long || is_full) && i.may_open(open.0, open.1))) {
            self.deliver_part(key);
        }
    }

    /// Begins partial delivery of an incomplete message, if one may begin.
    pub(super) fn open_a_message(&mut self) {
        while self.ready.is_empty()
            && let Some(key) = self.interleaved.as_ref().and_then(|i| i.first_openable())
        {
            self.deliver_part(key);
        }
    }

    /// All that is held and not ready yet.
    pub(super) fn held_in_reassembly(&self) -> Amount {
        let mut held = self.room.held;
        held.subtract(self.room.ready);
        held
    }

    fn deliver_part(&mut self, key: Key) {
        if let Some(i) = self.interleaved.as_mut() {
            i.advance(key); // more may be below the cumulative TSN by now
            i.stream_mut(key.stream).partial = Some(key);
            self.deliver(key, false);
        }
    }

    /// Delivers the consecutive fragments of a message.
    fn deliver(&mut self, key: Key, end_of_message: bool) {
        let taken = self.interleaved.as_mut().and_then(|i| i.take(key));
        if let Some((payload, ppid)) = taken {
            self.deliver_message(key, payload, ppid, end_of_message);
        }
    }

    fn deliver_message(&mut self, key: Key, payload: Payload, ppid: u32, end_of_message: bool) {
        let Key { stream, unordered, mid } = key;
        self.room.ready.add(Amount { chunks: payload.chunks().len(), bytes: payload.len() });
        // RFC 8260 §4.1: the SSN, for users of it, is the lower 16 bits of the MID.
        let heading = Heading { stream, ssn: Ssn(mid as u16), ppid, unordered };
        self.make_ready(heading, payload, end_of_message);
    }

    /// Ends a delivered message, and delivers the messages that waited for it.
    fn finish_message(&mut self, key: Key) {
        let Some(i) = self.interleaved.as_mut() else { return };
        let stream = i.stream_mut(key.stream);
        if !key.unordered {
            stream.next_mid = Mid(key.mid).next();
        }
        let was_partial = stream.partial.take_if(|partial| *partial == key).is_some();
        if i.is_empty() || (key.unordered && !was_partial) {
            return;
        }
        if was_partial {
            self.deliver_deferred(key.stream);
        }
        self.deliver_next(key.stream);
    }

    /// Delivers the unordered messages that waited for the end of one in parts.
    fn deliver_deferred(&mut self, stream: StreamId) {
        while let Some(key) = self.interleaved.as_mut().and_then(|i| i.next_deferred(stream)) {
            self.deliver(key, true);
        }
    }

    /// Delivers the ordered messages of a stream whose turn has come.
    fn deliver_next(&mut self, stream: StreamId) {
        loop {
            let Some(i) = self.interleaved.as_mut() else { return };
            i.pass_skipped(stream);
            let Stream { next_mid, .. } = i.stream(stream);
            let next = Key { stream, unordered: false, mid: next_mid.0 };
            let is_complete = i.messages.get(&next).is_some_and(Assembly::is_complete);
            if !is_complete || !i.is_free(next) {
                self.settle(next);
                return;
            }
            self.deliver(next, true);
            if let Some(i) = self.interleaved.as_mut() {
                i.stream_mut(stream).next_mid = next_mid.next();
            }
        }
    }
}

#[cfg(test)]
mod tests;
