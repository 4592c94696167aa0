//! Weighted fair queueing (RFC 8260 §3.6).

use std::collections::BTreeMap;

use manypath_wire::StreamId;

use super::{StreamScheduler, Turn};

/// Virtual time of a byte at weight 1. At the greatest weight it is still 65537.
const BYTE: u128 = 1 << 32;

/// When a stream may go on, in virtual time; of equal ones, the stream that waits longest is first.
type Tag = (u128, u64);

#[derive(Copy, Clone, Debug)]
struct Share {
    tag: Tag,
    weight: u16,
}

/// Streams with something to send share the capacity by their weights, which are their priorities
/// (0 counts as 1): start-time fair queueing (Goyal, Vin, Cheng 1997). Each byte moves a stream's
/// tag on by the reciprocal of its weight, and the stream with the least tag sends. A stream that
/// had nothing to send begins at the tag in service; it cannot save up capacity.
#[derive(Debug, Default)]
pub struct Wfq {
    by_tag: BTreeMap<Tag, StreamId>,
    shares: BTreeMap<StreamId, Share>,
    /// Tags of idle streams that had more than their share.
    ahead: BTreeMap<StreamId, u128>,
    /// The tag in service.
    now: u128,
    /// Number of entries so far.
    entries: u64,
}

impl Wfq {
    fn insert(&mut self, stream: StreamId, time: u128, weight: u16) {
        let tag = (time, self.entries);
        self.entries += 1;
        self.by_tag.insert(tag, stream);
        self.shares.insert(stream, Share { tag, weight });
    }
}

impl StreamScheduler for Wfq {
    fn enter(&mut self, stream: StreamId, priority: u16) {
        let ahead = self.ahead.remove(&stream).unwrap_or(0);
        self.insert(stream, ahead.max(self.now), priority);
    }

    fn set_priority(&mut self, stream: StreamId, priority: u16) {
        if let Some(share) = self.shares.get_mut(&stream) {
            share.weight = priority;
        }
    }

    fn next(&self) -> Option<StreamId> {
        self.by_tag.first_key_value().map(|(_, stream)| *stream)
    }

    fn sent(&mut self, turn: &Turn) {
        let Some(Share { tag, weight }) = self.shares.remove(&turn.stream) else { return };
        self.by_tag.remove(&tag);
        self.now = self.now.max(tag.0);
        let time = tag.0 + turn.bytes as u128 * BYTE / u128::from(weight.max(1));
        if !turn.is_empty {
            self.insert(turn.stream, time, weight);
        } else if self.by_tag.is_empty() {
            // No stream has anything to send, so all start again.
            *self = Wfq::default();
        } else {
            self.ahead.insert(turn.stream, time);
        }
    }
}
