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

/// The priority of a stream that was given none: "normal" in RFC 8831 §6.4, where 128 is below
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
/// It is told of streams with something to send, and of nothing else, so that its cost need not
/// grow with the number of idle streams.
pub trait StreamScheduler: std::fmt::Debug + Send {
    /// All streams share one queue: their messages leave in the order in which they were given, and
    /// the scheduler is told and asked nothing more.
    fn shares_queue(&self) -> bool {
        false
    }

    /// A stream that had nothing to send has a message now. Streams of a greater priority are more
    /// important.
    fn enter(&mut self, stream: StreamId, priority: u16);

    /// A stream that has something to send gets another priority.
    fn set_priority(&mut self, _stream: StreamId, _priority: u16) {}

    /// The stream to send from, of those that have something to send. The same until one of the
    /// other methods is called.
    fn next(&self) -> Option<StreamId>;

    /// A fragment was sent. Its stream is that of [`next`](Self::next), or one whose message had
    /// begun.
    fn sent(&mut self, turn: &Turn);

    /// The packet at hand takes no more fragments.
    fn ends_packet(&self) -> bool {
        false
    }

    /// A packet is complete. Not told while a message must go on without interleaving.
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
