//! Violations of the protocol by DATA and I-DATA chunks.

use manypath_wire::{Mid, Ssn, StreamId, Tsn};

/// A chunk of user data that the peer should not have sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProtocolViolation {
    /// The stream was not negotiated. The association goes on: the chunk has been discarded and its
    /// TSN is acknowledged; report an Invalid Stream Identifier (RFC 9260 §6.5).
    #[error("TSN {} is on stream {}, which was not negotiated", tsn.0, stream.0)]
    InvalidStream {
        /// The TSN of the chunk.
        tsn: Tsn,
        /// The stream it named.
        stream: StreamId,
    },
    /// The chunk and its neighbours cannot be fragments of messages (RFC 9260 §6.9), or the chunk
    /// is no fragment of the message that it names (RFC 8260 §2.1).
    #[error("TSN {} does not fit the fragments beside it", tsn.0)]
    FragmentOutOfPlace {
        /// The TSN of the chunk.
        tsn: Tsn,
    },
    /// The message's SSN has been used before (RFC 9260 §6.5).
    #[error("TSN {} repeats SSN {} of stream {}", tsn.0, ssn.0, stream.0)]
    SsnReused {
        /// The TSN of the chunk.
        tsn: Tsn,
        /// Its stream.
        stream: StreamId,
        /// Its SSN.
        ssn: Ssn,
    },
    /// The message's MID has been used before (RFC 8260 §2.1).
    #[error("TSN {} repeats MID {} of stream {}", tsn.0, mid.0, stream.0)]
    MidReused {
        /// The TSN of the chunk.
        tsn: Tsn,
        /// Its stream.
        stream: StreamId,
        /// Its MID.
        mid: Mid,
    },
    /// Everything up to this TSN has been received and fills the buffers, but an earlier message of
    /// its stream is missing. So nothing of it can ever be delivered.
    #[error("at TSN {} the buffers are full of messages whose predecessors were never sent", tsn.0)]
    Undeliverable {
        /// The TSN of the chunk.
        tsn: Tsn,
    },
}

impl ProtocolViolation {
    /// True if the association must be aborted with a Protocol Violation (RFC 9260 §3.3.10.13).
    pub(crate) fn is_fatal(&self) -> bool {
        !matches!(self, ProtocolViolation::InvalidStream { .. })
    }
}
