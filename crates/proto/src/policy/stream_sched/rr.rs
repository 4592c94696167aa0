//! Round robin (RFC 8260 §3.2).

use std::collections::VecDeque;

use manypath_wire::StreamId;

use super::{StreamScheduler, Turn};

/// Streams take turns: a message each, or with message interleaving a fragment each. Streams with
/// long messages get more bytes without interleaving, and those with long fragments with it.
#[derive(Debug, Default)]
pub struct Rr {
    /// Streams with something to send, the next one first.
    streams: VecDeque<StreamId>,
}

impl StreamScheduler for Rr {
    fn enter(&mut self, stream: StreamId, _priority: u16) {
        self.streams.push_back(stream);
    }

    fn next(&self) -> Option<StreamId> {
        self.streams.front().copied()
    }

    fn sent(&mut self, turn: &Turn) {
        if turn.may_change {
            self.streams.pop_front();
        }
        if turn.may_change && !turn.is_empty {
            self.streams.push_back(turn.stream);
        }
    }

    fn left(&mut self, stream: StreamId) {
        self.streams.retain(|waiting| *waiting != stream);
    }
}
