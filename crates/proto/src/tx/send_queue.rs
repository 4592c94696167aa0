//! User messages that wait for their first transmission.

use std::collections::VecDeque;

use bytes::Bytes;
use manypath_wire::{DataFlags, Ssn, StreamId};

use crate::time::Instant;

/// How a message is sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SendOptions {
    /// The stream, below the number agreed in the handshake.
    pub stream: StreamId,
    /// Payload protocol identifier, carried for the application.
    pub ppid: u32,
    /// Deliver as soon as it is complete, whatever the order of its stream (RFC 9260 §6.6).
    pub unordered: bool,
}

impl Default for SendOptions {
    /// Ordered, on stream 0.
    fn default() -> SendOptions {
        SendOptions { stream: StreamId(0), ppid: 0, unordered: false }
    }
}

/// Why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The send buffer is full; wait for [`Event::Writable`](crate::Event::Writable).
    #[error("the send buffer is full")]
    Full,
    /// The message is longer than the send buffer can ever hold.
    #[error("a message may have at most {limit} bytes (send_buffer)")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// SCTP has no empty messages (RFC 9260 §3.3.1).
    #[error("an SCTP message has at least one byte")]
    Empty,
    /// The stream was not agreed in the handshake.
    #[error("stream {stream} does not exist; the association has {streams} outgoing streams")]
    NoSuchStream {
        /// The stream asked for.
        stream: u16,
        /// The number of outgoing streams.
        streams: u16,
    },
    /// The association is over or shutting down.
    #[error("the association is shut down")]
    Closed,
}

/// A piece of a message, as large as a DATA chunk may be.
#[derive(Debug)]
pub(crate) struct Fragment {
    pub(crate) payload: Bytes,
    pub(crate) ppid: u32,
    pub(crate) stream: StreamId,
    pub(crate) ssn: Ssn,
    pub(crate) flags: DataFlags,
}

#[derive(Debug)]
struct Queued {
    payload: Bytes,
    options: SendOptions,
    queued_at: Instant,
    /// Once its first fragment was cut.
    ssn: Option<Ssn>,
    /// It leaves unprotected, as there are no keys yet.
    in_plain: bool,
}

/// Messages in the order they were given, first come first served over all streams; but urgent ones
/// first.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    messages: VecDeque<Queued>,
    /// Of the key management. They are not the user's data.
    urgent: VecDeque<Queued>,
    /// Only urgent messages may leave.
    is_held: bool,
    bytes: usize,
    next_ssn: Vec<Ssn>,
}

impl SendQueue {
    /// User bytes waiting.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty() && self.urgent.is_empty()
    }

    pub(crate) fn push(&mut self, queued_at: Instant, options: SendOptions, payload: Bytes) {
        self.bytes += payload.len();
        self.messages.push_back(Queued { payload, options, queued_at, ssn: None, in_plain: false });
    }

    /// When the application handed over the first of the messages that wait.
    pub(crate) fn waits_since(&self) -> Option<Instant> {
        self.messages.front().map(|m| m.queued_at)
    }

    /// Queues a message that leaves before all others, but for one that has begun to leave.
    pub(crate) fn push_urgent(&mut self, options: SendOptions, payload: Bytes, in_plain: bool) {
        let queued_at = Instant::ZERO; // its age is of no interest
        self.urgent.push_back(Queued { payload, options, queued_at, ssn: None, in_plain });
    }

    /// The next fragment leaves unprotected.
    pub(crate) fn is_next_in_plain(&self) -> bool {
        self.front().is_some_and(|m| m.in_plain)
    }

    /// Lets only urgent messages leave, or all again.
    pub(crate) fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// The queue of the next fragment.
    #[inline]
    fn is_urgent_next(&self) -> bool {
        let has_begun = self.messages.front().is_some_and(|m| m.ssn.is_some());
        !self.urgent.is_empty() && !has_begun
    }

    #[inline]
    fn front(&self) -> Option<&Queued> {
        match self.is_urgent_next() {
            true => self.urgent.front(),
            false => self.messages.front().filter(|_| !self.is_held),
        }
    }

    /// Every message given so far is on one of the first `streams` streams.
    pub(crate) fn fits_streams(&self, streams: u16) -> bool {
        self.messages.iter().all(|m| m.options.stream.0 < streams)
    }

    /// User bytes that the next fragment of at most `limit` bytes would have.
    pub(crate) fn next_len(&self, limit: usize) -> Option<usize> {
        self.front().map(|m| m.payload.len().min(limit))
    }

    /// Cuts the next fragment, of at most `limit` bytes (RFC 9260 §6.9).
    pub(crate) fn pop(&mut self, limit: usize) -> Option<Fragment> {
        self.front()?;
        let is_urgent = self.is_urgent_next();
        let queue = if is_urgent { &mut self.urgent } else { &mut self.messages };
        let message = queue.front_mut()?;
        let len = message.payload.len().min(limit);
        let mut flags = DataFlags::default();
        let options = message.options;
        if options.unordered {
            flags = flags | DataFlags::UNORDERED;
        }
        let ssn = match message.ssn {
            Some(ssn) => ssn,
            None => {
                flags = flags | DataFlags::BEGIN;
                *message.ssn.insert(next_ssn(&mut self.next_ssn, options))
            }
        };
        let payload = if len == message.payload.len() {
            flags = flags | DataFlags::END;
            queue.pop_front()?.payload
        } else {
            message.payload.split_to(len)
        };
        if !is_urgent {
            self.bytes -= len;
        }
        Some(Fragment { payload, ppid: options.ppid, stream: options.stream, ssn, flags })
    }
}

/// The SSN of the next message with these options.
fn next_ssn(all: &mut Vec<Ssn>, options: SendOptions) -> Ssn {
    if options.unordered {
        return Ssn(0);
    }
    let stream = usize::from(options.stream.0);
    if all.len() <= stream {
        all.resize(stream + 1, Ssn(0));
    }
    let ssn = all[stream];
    all[stream] = ssn.next();
    ssn
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(stream: u16, unordered: bool) -> SendOptions {
        SendOptions { stream: StreamId(stream), ppid: 7, unordered }
    }

    #[test]
    fn a_message_longer_than_the_limit_is_cut_with_begin_and_end_marked() {
        let mut q = SendQueue::default();
        q.push(Instant::ZERO, options(0, false), Bytes::from_static(b"abcdefg"));
        let cut: Vec<_> = std::iter::from_fn(|| q.pop(3)).collect();
        let lens: Vec<_> = cut.iter().map(|f| f.payload.len()).collect();
        assert_eq!(lens, [3, 3, 1]);
        let marks: Vec<_> = cut.iter().map(|f| (f.flags.begin(), f.flags.end())).collect();
        assert_eq!(marks, [(true, false), (false, false), (false, true)]);
        assert!(cut.iter().all(|f| f.ssn == Ssn(0) && f.ppid == 7));
        assert_eq!((q.bytes(), q.is_empty()), (0, true));
    }

    #[test]
    fn stream_sequence_numbers_count_ordered_messages_of_each_stream() {
        let mut q = SendQueue::default();
        for (stream, unordered) in [(0, false), (5, false), (0, true), (0, false)] {
            q.push(Instant::ZERO, options(stream, unordered), Bytes::from_static(b"x"));
        }
        let sent: Vec<_> = std::iter::from_fn(|| q.pop(9))
            .map(|f| (f.stream.0, f.ssn.0, f.flags.unordered()))
            .collect();
        assert_eq!(sent, [(0, 0, false), (5, 0, false), (0, 0, true), (0, 1, false)]);
    }

    #[test]
    fn the_age_of_the_queue_is_that_of_its_first_message() {
        let mut q = SendQueue::default();
        assert_eq!(q.waits_since(), None);
        for ms in [3, 7] {
            q.push(Instant::from_millis(ms), options(0, false), Bytes::from_static(b"abc"));
        }
        for (ms, popped) in [(3, 2), (3, 1), (7, 3)] {
            assert_eq!(q.waits_since(), Some(Instant::from_millis(ms)));
            q.pop(popped);
        }
        assert_eq!(q.waits_since(), None);
    }

    #[test]
    fn urgent_messages_leave_first_but_cut_none_in_two() {
        let mut q = SendQueue::default();
        q.push(Instant::ZERO, options(0, false), Bytes::from_static(b"abcdef"));
        q.push(Instant::ZERO, options(0, false), Bytes::from_static(b"ghi"));
        let mut sent = vec![q.pop(3)];
        q.push_urgent(options(0, false), Bytes::from_static(b"key"), false);
        sent.extend((0..3).map(|_| q.pop(3)));
        let sent: Vec<_> = sent.into_iter().flatten().map(|f| (f.payload, f.ssn.0)).collect();
        let expected: [(&[u8], u16); 4] = [(b"abc", 0), (b"def", 0), (b"key", 1), (b"ghi", 2)];
        assert_eq!(sent, expected.map(|(text, ssn)| (Bytes::from_static(text), ssn)));
        assert!(q.is_empty());
    }

    #[test]
    fn a_held_queue_lets_only_urgent_messages_leave() {
        let mut q = SendQueue::default();
        q.hold(true);
        q.push(Instant::ZERO, options(0, false), Bytes::from_static(b"data"));
        assert_eq!((q.next_len(9), q.bytes(), q.is_empty()), (None, 4, false));
        q.push_urgent(options(0, false), Bytes::from_static(b"key"), true);
        assert!(q.is_next_in_plain());
        assert_eq!(q.pop(9).map(|f| f.payload), Some(Bytes::from_static(b"key")));
        assert!(q.pop(9).is_none());
        q.hold(false);
        assert_eq!(q.pop(9).map(|f| (f.payload, f.ssn.0)), Some((Bytes::from_static(b"data"), 1)));
    }
}
