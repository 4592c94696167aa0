//! Round robin per packet (RFC 8260 §3.3).

use std::collections::VecDeque;

use manypath_wire::StreamId;

use super::{StreamScheduler, Turn};

/// Streams take turns, a packet each: the new data of a packet is of one stream, so that its loss
/// delays no other one. Small messages of different streams share no packet.
#[derive(Debug, Default)]
pub struct RrPacket {
    /// Streams with something to send, the next one first.
    streams: VecDeque<StreamId>,
    /// True if the current packet has data of the first stream.
    is_begun: bool,
    /// True if the current packet has the last data of its stream.
    is_over: bool,
}

impl StreamScheduler for RrPacket {
    fn enter(&mut self, stream: StreamId, _priority: u16) {
        self.streams.push_back(stream);
    }

    fn next(&self) -> Option<StreamId> {
        self.streams.front().copied()
    }

    fn sent(&mut self, turn: &Turn) {
        self.is_begun = !turn.is_empty;
        if turn.is_empty {
            self.streams.pop_front();
            self.is_over = true;
        }
    }

    fn left(&mut self, stream: StreamId) {
        if self.next() == Some(stream) {
            self.is_over |= std::mem::take(&mut self.is_begun);
        }
        self.streams.retain(|waiting| *waiting != stream);
    }

    fn ends_packet(&self) -> bool {
        self.is_over
    }

    fn packet_ended(&mut self) {
        if std::mem::take(&mut self.is_begun) {
            self.streams.rotate_left(1);
        }
        self.is_over = false;
    }
}
