//! Fair capacity (RFC 8260 §3.5).

use manypath_wire::StreamId;

use super::{DEFAULT_PRIORITY, StreamScheduler, Turn, Wfq};

/// All streams with something to send get the same number of bytes, however long their messages
/// are: weighted fair queueing with equal weights.
#[derive(Debug, Default)]
pub struct Fair(Wfq);

impl StreamScheduler for Fair {
    fn enter(&mut self, stream: StreamId, _priority: u16) {
        self.0.enter(stream, DEFAULT_PRIORITY);
    }

    fn next(&self) -> Option<StreamId> {
        self.0.next()
    }

    fn sent(&mut self, turn: &Turn) {
        self.0.sent(turn);
    }
}
