//! Who gets what was received: readers of messages, and readers of one stream's bytes.

use std::collections::{BTreeMap, VecDeque};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use manypath_proto::{AssocClosed, AssocId, Instant, Message, StreamId};

use crate::shared::{Inner, Wakers};

/// Bytes taken off the engine for other readers than the one that looks, at most (plus one message).
/// Beyond it everybody waits for the slow reader, as with the receive buffer itself: the peer's
/// window is one for all streams (RFC 9260 §6.2).
const HELD_LIMIT: usize = 1 << 20;

/// What was taken off the engine and not yet by its reader.
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

    fn take_message(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        self.held -= message.payload.len();
        Some(message)
    }

    fn take_chunk(&mut self, stream: StreamId) -> Option<Bytes> {
        let chunk = self.streams.get_mut(&stream)?.chunks.pop_front()?;
        self.held -= chunk.len();
        Some(chunk)
    }
}

impl Inner {
    /// The next message of the streams that are not read as bytes.
    pub(crate) fn poll_message(
        &mut self,
        cx: &Context<'_>,
        now: Instant,
        id: AssocId,
    ) -> Poll<Result<Option<Message>, AssocClosed>> {
        let taken = self.take(now, id, Inbox::take_message);
        self.taken_or_wait(id, taken, |inbox| inbox.message_wakers.register(cx))
    }

    /// The next bytes of a stream that is read as bytes.
    pub(crate) fn poll_chunk(
        &mut self,
        cx: &Context<'_>,
        now: Instant,
        id: AssocId,
        stream: StreamId,
    ) -> Poll<Result<Option<Bytes>, AssocClosed>> {
        let taken = self.take(now, id, |inbox| inbox.take_chunk(stream));
        self.taken_or_wait(id, taken, |inbox| {
            if let Some(queue) = inbox.streams.get_mut(&stream) {
                queue.wakers.register(cx);
            }
        })
    }

    /// Takes from the inbox, filling it from the engine as far as needed and allowed.
    fn take<T>(
        &mut self,
        now: Instant,
        id: AssocId,
        mut take: impl FnMut(&mut Inbox) -> Option<T>,
    ) -> Option<T> {
        loop {
            let inbox = &mut self.state(id).inbox;
            let was_full = inbox.held >= HELD_LIMIT;
            if let Some(taken) = take(inbox) {
                if was_full && inbox.held < HELD_LIMIT {
                    self.wake_readers(id);
                }
                return Some(taken);
            }
            if was_full || !self.pull(now, id) {
                return None;
            }
        }
    }

    fn taken_or_wait<T>(
        &mut self,
        id: AssocId,
        taken: Option<T>,
        wait: impl FnOnce(&mut Inbox),
    ) -> Poll<Result<Option<T>, AssocClosed>> {
        if taken.is_some() {
            return Poll::Ready(Ok(taken));
        }
        let inbox_full = self.state(id).inbox.held >= HELD_LIMIT;
        match self.end_of_input(id) {
            // What others have not read yet may hide messages for this reader.
            Some(end) if !inbox_full => Poll::Ready(end.map(|()| None)),
            _ => {
                wait(&mut self.state(id).inbox);
                Poll::Pending
            }
        }
    }
}
