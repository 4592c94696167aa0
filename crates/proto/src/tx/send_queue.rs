//! User messages that wait for their first transmission.

use std::collections::VecDeque;

use bytes::Bytes;
use manypath_wire::{DataFlags, Ssn, StreamId};

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
#[non_exhaustive]
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
    ssn: Ssn,
    begun: bool,
}

/// Messages in the order they were given, first come first served over all streams.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    messages: VecDeque<Queued>,
    bytes: usize,
    next_ssn: Vec<Ssn>,
}

impl SendQueue {
    /// User bytes waiting.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(crate) fn push(&mut self, options: SendOptions, payload: Bytes) {
        let ssn = if options.unordered {
            Ssn(0)
        } else {
            let stream = usize::from(options.stream.0);
            if self.next_ssn.len() <= stream {
                self.next_ssn.resize(stream + 1, Ssn(0));
            }
            let ssn = self.next_ssn[stream];
            self.next_ssn[stream] = ssn.next();
            ssn
        };
        self.bytes += payload.len();
        self.messages.push_back(Queued { payload, options, ssn, begun: false });
    }

    /// Every message given so far is on one of the first `streams` streams.
    pub(crate) fn fits_streams(&self, streams: u16) -> bool {
        self.messages.iter().all(|m| m.options.stream.0 < streams)
    }

    /// User bytes that the next fragment of at most `limit` bytes would have.
    pub(crate) fn next_len(&self, limit: usize) -> Option<usize> {
        self.messages.front().map(|m| m.payload.len().min(limit))
    }

    /// Cuts the next fragment, of at most `limit` bytes (RFC 9260 §6.9).
    pub(crate) fn pop(&mut self, limit: usize) -> Option<Fragment> {
        let message = self.messages.front_mut()?;
        let len = message.payload.len().min(limit);
        let mut flags = DataFlags::default();
        if !message.begun {
            flags = flags | DataFlags::BEGIN;
        }
        if message.options.unordered {
            flags = flags | DataFlags::UNORDERED;
        }
        message.begun = true;
        let (options, ssn) = (message.options, message.ssn);
        let payload = if len == message.payload.len() {
            flags = flags | DataFlags::END;
            self.messages.pop_front()?.payload
        } else {
            message.payload.split_to(len)
        };
        self.bytes -= len;
        Some(Fragment { payload, ppid: options.ppid, stream: options.stream, ssn, flags })
    }
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
        q.push(options(0, false), Bytes::from_static(b"abcdefg"));
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
            q.push(options(stream, unordered), Bytes::from_static(b"x"));
        }
        let sent: Vec<_> = std::iter::from_fn(|| q.pop(9))
            .map(|f| (f.stream.0, f.ssn.0, f.flags.unordered()))
            .collect();
        assert_eq!(sent, [(0, 0, false), (5, 0, false), (0, 0, true), (0, 1, false)]);
    }
}
