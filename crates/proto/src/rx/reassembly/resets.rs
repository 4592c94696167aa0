//! Incoming streams that begin again, and streams that are added (RFC 6525 §5.2.2, §5.2.5).

use manypath_wire::{Ssn, StreamId};

use super::{Inbound, Stream};

impl Stream {
    /// Lets the numbers begin again, whatever was skipped before.
    fn begin_again(&mut self) {
        (self.next_ssn, self.skipped) = (Ssn(0), None);
    }
}

impl Inbound {
    /// The number of incoming streams.
    pub(crate) fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Adds streams. Their first message has the number 0.
    pub(crate) fn add_streams(&mut self, count: u16) {
        let new = Stream { next_ssn: Ssn(0), waiting: 0, skipped: None };
        self.streams.resize(self.streams.len() + usize::from(count), new);
    }

    /// Lets the numbers of these streams begin again; of all, if there are none in the list. Does
    /// nothing and returns false if a message of them waits for its turn or is delivered in part:
    /// the peer has left out something that it should have sent before.
    pub(crate) fn reset_streams(&mut self, streams: &[StreamId]) -> bool {
        let is_done = if streams.is_empty() {
            (0..self.streams.len()).all(|index| self.is_quiet(index))
        } else {
            streams.iter().all(|stream| self.is_quiet(usize::from(stream.0)))
        };
        if !is_done {
            return false;
        }
        if streams.is_empty() {
            self.streams.iter_mut().for_each(Stream::begin_again);
        }
        for stream in streams {
            if let Some(stream) = self.streams.get_mut(usize::from(stream.0)) {
                stream.begin_again();
            }
        }
        if let Some(i) = &mut self.interleaved {
            i.reset(streams);
        }
        true
    }

    /// True if no message of a stream waits for its turn or is delivered in part.
    fn is_quiet(&self, index: usize) -> bool {
        let is_waiting = self.streams.get(index).is_some_and(|stream| stream.waiting > 0);
        let of_stream = StreamId(index as u16);
        let is_partial = self.partial.is_some_and(|partial| partial.heading.stream == of_stream);
        let is_held = self.interleaved.as_ref().is_some_and(|i| i.holds(of_stream));
        !is_waiting && !is_partial && !is_held
    }
}
