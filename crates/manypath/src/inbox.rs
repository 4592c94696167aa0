//! Received and not yet read: messages, and bytes of single streams.

use std::collections::{BTreeMap, VecDeque};
use std::task::{Context, Waker};

use bytes::Bytes;
use manypath_proto::{Message, StreamId};

use crate::wakers::Wakers;

/// Bytes taken off the engine for other readers than the one that looks, at most (plus one
/// message). Beyond it everybody waits for the slow reader, as with the receive buffer itself: the
/// peer's window is one for all streams (RFC 9260 §6.2).
const HELD_LIMIT: usize = 1 << 20;

/// Data taken off the engine that its reader has not taken yet.
#[derive(Default)]
pub(crate) struct Inbox {
    messages: VecDeque<Message>,
    message_wakers: Wakers,
    /// The streams that are read as bytes.
    streams: BTreeMap<StreamId, StreamQueue>,
    /// User data bytes in all queues.
    held: usize,
}

#[derive(Default)]
struct StreamQueue {
    chunks: VecDeque<Bytes>,
    wakers: Wakers,
}

impl Inbox {
    /// Puts a message where its reader looks, and wakes that reader.
    pub(crate) fn put(&mut self, message: Message, to_wake: &mut Vec<Waker>) {
        self.held += message.payload.len();
        match self.streams.get_mut(&message.stream) {
            Some(queue) => {
                queue.chunks.extend(message.payload);
                queue.wakers.wake(to_wake);
            }
            None => {
                self.messages.push_back(message);
                self.message_wakers.wake(to_wake);
            }
        }
    }

    pub(crate) fn wake(&mut self, to_wake: &mut Vec<Waker>) {
        self.message_wakers.wake(to_wake);
        for queue in self.streams.values_mut() {
            queue.wakers.wake(to_wake);
        }
    }

    /// Reads `stream` as bytes from now on, from what has already been taken off the engine too;
    /// false if it is read as bytes already.
    pub(crate) fn open(&mut self, stream: StreamId) -> bool {
        if self.streams.contains_key(&stream) {
            return false;
        }
        let mut queue = StreamQueue::default();
        self.messages.retain_mut(|message| {
            let keep = message.stream != stream;
            if !keep {
                queue.chunks.extend(std::mem::take(&mut message.payload));
            }
            keep
        });
        self.streams.insert(stream, queue);
        true
    }

    /// Ends what [`open`](Inbox::open) began; what was not read is lost.
    pub(crate) fn close(&mut self, stream: StreamId) {
        if let Some(queue) = self.streams.remove(&stream) {
            self.held -= queue.chunks.iter().map(Bytes::len).sum::<usize>();
        }
    }

    pub(crate) fn take_message(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        self.held -= message.payload.len();
        Some(message)
    }

    pub(crate) fn take_chunk(&mut self, stream: StreamId) -> Option<Bytes> {
        let chunk = self.streams.get_mut(&stream)?.chunks.pop_front()?;
        self.held -= chunk.len();
        Some(chunk)
    }

    /// True if it holds as much as it may.
    pub(crate) fn is_full(&self) -> bool {
        self.held >= HELD_LIMIT
    }

    pub(crate) fn wait_for_message(&mut self, cx: &Context<'_>) {
        self.message_wakers.register(cx);
    }

    pub(crate) fn wait_for_chunk(&mut self, cx: &Context<'_>, stream: StreamId) {
        if let Some(queue) = self.streams.get_mut(&stream) {
            queue.wakers.register(cx);
        }
    }
}
