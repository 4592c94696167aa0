//! The stream of the next user data (RFC 8260 §3).
//!
//! Without message interleaving a message that has begun to leave is finished before the scheduler
//! is asked again. With it the scheduler is asked for each fragment. Either way the messages of one
//! stream leave one after the other, in the order in which they were given (RFC 8260 §2.2.2).

mod fair;
mod fcfs;
mod prio;
mod rr;
mod rr_packet;
mod wfq;

pub use fair::Fair;
pub use fcfs::Fcfs;
pub use prio::Prio;
pub use rr::Rr;
pub use rr_packet::RrPacket;
pub use wfq::Wfq;

use manypath_wire::StreamId;

use super::registry;

/// The priority of a stream that was given none. In RFC 8831 §6.4 this is "normal"; 128 is below
/// normal, 512 high and 1024 extra high.
pub const DEFAULT_PRIORITY: u16 = 256;

/// A fragment that was sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its stream.
    pub stream: StreamId,
    /// Its user bytes.
    pub bytes: usize,
    /// The next fragment may be of another stream: messages are interleaved, or this one ended.
    pub may_change: bool,
    /// The stream has nothing more to send. It will [enter](StreamScheduler::enter) again.
    pub is_empty: bool,
}

/// Chooses the stream of each fragment; each association has its own.
///
/// It hears only of streams with something to send, so that idle streams cost nothing.
pub trait StreamScheduler: std::fmt::Debug + Send {
    /// True if all streams share one queue: messages leave in the order in which they were given,
    /// and no other method is called.
    fn shares_queue(&self) -> bool {
        false
    }

    /// A stream that had nothing to send has a message now. Streams of a greater priority are more
    /// important.
    fn enter(&mut self, stream: StreamId, priority: u16);

    /// A stream that has something to send gets another priority.
    fn set_priority(&mut self, _stream: StreamId, _priority: u16) {}

    /// The stream to send from, among those with something to send. The answer stays the same until
    /// another method is called.
    fn next(&self) -> Option<StreamId>;

    /// A fragment was sent. Its stream is that of [`next`](Self::next), or one with an unfinished
    /// message.
    fn sent(&mut self, turn: &Turn);

    /// A stream has nothing more to send, because its messages were given up. It will
    /// [enter](Self::enter) again.
    fn left(&mut self, stream: StreamId) {
        self.sent(&Turn { stream, bytes: 0, may_change: true, is_empty: true });
    }

    /// True if the current packet takes no more fragments.
    fn ends_packet(&self) -> bool {
        false
    }

    /// A packet is complete. Not called while a message must be finished without interleaving.
    fn packet_ended(&mut self) {}
}

registry!(StreamScheduler {
    "fcfs" => |_| Box::new(Fcfs),
    "rr" => |_| Box::new(Rr::default()),
    "rr_packet" => |_| Box::new(RrPacket::default()),
    "prio" => |_| Box::new(Prio::default()),
    "fair" => |_| Box::new(Fair::default()),
    "wfq" => |_| Box::new(Wfq::default()),
});

#[cfg(test)]
mod tests;
