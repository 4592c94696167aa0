//! Messages that the sender has given up (RFC 8260 §2.3.1).

use manypath_wire::{ForwardTsn, Mid, Ssn, StreamId};

use super::{Assembly, Interleaved, Key};
use crate::rx::reassembly::{Amount, Heading, Inbound};
use crate::rx::tsn_tracker::TsnTracker;

/// True if `mid` is `upto` or comes before it, by serial number arithmetic of 32 bits.
fn is_up_to(mid: u32, upto: u32) -> bool {
    upto.wrapping_sub(mid) < 1 << 31
}

impl Interleaved {
    /// True if the message was skipped.
    pub(super) fn is_skipped(&self, key: Key) -> bool {
        let skipped = self.stream(key.stream).skipped[usize::from(key.unordered)];
        skipped.is_some_and(|upto| is_up_to(key.mid, upto.0))
    }

    /// The incomplete messages of a stream and kind up to a MID.
    fn incomplete_up_to(&self, last: Key) -> Vec<Key> {
        let of_kind = Key { mid: 0, ..last }..=Key { mid: u32::MAX, ..last };
        let is_cut = |(key, message): &(&Key, &Assembly)| {
            is_up_to(key.mid, last.mid) && !message.is_complete()
        };
        self.messages.range(of_kind).filter(is_cut).map(|(key, _)| *key).collect()
    }

    /// Removes a message. Returns what it held.
    fn discard(&mut self, key: Key) -> Amount {
        let Some(message) = self.messages.remove(&key) else { return Amount::default() };
        if let Some(first) = self.fragments.get(&(key, message.next)) {
            self.openable.remove(&(first.tsn, key));
        }
        let of_message = (key, 0)..=(key, u64::MAX);
        let fsns: Vec<u64> = self.fragments.range(of_message).map(|((_, fsn), _)| *fsn).collect();
        let mut held = Amount::default();
        for fragment in fsns.iter().filter_map(|fsn| self.fragments.remove(&(key, *fsn))) {
            self.by_tsn.remove(&fragment.tsn);
            held.add(Amount::of_chunk(fragment.payload.len()));
        }
        held
    }

    /// Lets the turn pass to the next ordered message that was not skipped, or that is complete.
    pub(super) fn pass_skipped(&mut self, stream: StreamId) {
        let Some(skipped) = self.stream(stream).skipped[0] else { return };
        let next = self.stream(stream).next_mid.0;
        if !is_up_to(next, skipped.0) {
            return;
        }
        let of_kind = |mid| Key { stream, unordered: false, mid };
        let all = self.messages.range(of_kind(0)..=of_kind(u32::MAX));
        let waits = |mid: &u32| is_up_to(next, *mid) && is_up_to(*mid, skipped.0);
        let waiting = all.map(|(key, _)| key.mid).filter(waits);
        let first = waiting.min_by_key(|mid| mid.wrapping_sub(next));
        self.stream_mut(stream).next_mid = first.map_or_else(|| skipped.next(), Mid);
    }
}

impl Inbound {
    /// Discards the messages that the chunk lists, and delivers those that waited for them.
    pub(in crate::rx::reassembly) fn skip_interleaved(
        &mut self,
        chunk: &ForwardTsn,
        tracker: &TsnTracker,
    ) {
        if let Some(i) = self.interleaved.as_mut() {
            i.cum = tracker.extended(tracker.cum_tsn());
        }
        for skipped in chunk.skipped() {
            if usize::from(skipped.stream.0) < self.streams.len() {
                let (stream, unordered) = (skipped.stream, skipped.unordered);
                self.skip_up_to(Key { stream, unordered, mid: skipped.mid.0 });
            }
        }
    }

    fn skip_up_to(&mut self, last: Key) {
        let Some(i) = self.interleaved.as_mut() else { return };
        if i.is_skipped(last) {
            return;
        }
        let stream = i.stream_mut(last.stream);
        stream.skipped[usize::from(last.unordered)] = Some(Mid(last.mid));
        let is_cut = |p: &Key| p.unordered == last.unordered && is_up_to(p.mid, last.mid);
        let partial = stream.partial.take_if(|partial| is_cut(partial));
        let ppid = partial.and_then(|key| i.messages.get(&key)).map_or(0, |message| message.ppid);
        for key in i.incomplete_up_to(last) {
            let held = i.discard(key);
            self.room.held.subtract(held);
        }
        if let Some(Key { stream, unordered, mid }) = partial {
            self.cut_off(Heading { stream, ssn: Ssn(mid as u16), ppid, unordered });
            self.deliver_deferred(stream);
        }
        self.deliver_next(last.stream);
    }
}
