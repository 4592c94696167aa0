//! First come, first served (RFC 8260 §3.1).

use manypath_wire::StreamId;

use super::{StreamScheduler, Turn};

/// Sends messages in the order in which the application gave them, whatever their streams. A long
/// message delays all that come after it.
#[derive(Debug)]
pub struct Fcfs;

impl StreamScheduler for Fcfs {
    fn shares_queue(&self) -> bool {
        true
    }

    fn enter(&mut self, _stream: StreamId, _priority: u16) {}

    fn next(&self) -> Option<StreamId> {
        None
    }

    fn sent(&mut self, _turn: &Turn) {}
}
