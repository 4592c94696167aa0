//! Who gets what was received: readers of messages, and readers of one stream's bytes.

use std::task::{Context, Poll};

use bytes::Bytes;
use manypath_proto::{AssocClosed, AssocId, Instant, Message, StreamId};

use crate::inbox::Inbox;
use crate::shared::Associations;

impl Associations {
    /// The next message of the streams that are not read as bytes.
    pub(crate) fn poll_message(
        &mut self,
        cx: &Context<'_>,
        now: Instant,
        id: AssocId,
    ) -> Poll<Result<Option<Message>, AssocClosed>> {
        let taken = self.take(now, id, Inbox::take_message);
        self.taken_or_wait(id, taken, |inbox| inbox.wait_for_message(cx))
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
        self.taken_or_wait(id, taken, |inbox| inbox.wait_for_chunk(cx, stream))
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
            let was_full = inbox.is_full();
            if let Some(taken) = take(inbox) {
                if was_full && !inbox.is_full() {
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
        let inbox_full = self.state(id).inbox.is_full();
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
