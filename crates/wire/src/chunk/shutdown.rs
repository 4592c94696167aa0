//! SHUTDOWN, SHUTDOWN ACK and SHUTDOWN COMPLETE (RFC 9260 §3.3.8, §3.3.9, §3.3.13).
//!
//! The last two are a chunk header and nothing else; SHUTDOWN COMPLETE (type 14) has the T bit in
//! the lowest bit of its flags, SHUTDOWN ACK (type 8) has no flags.

use super::{FLAG_T, RawChunk, chunk_type};
use crate::builder::PacketBuilder;
use crate::error::DecodeError;
use crate::types::Tsn;

/// A SHUTDOWN chunk: its sender has nothing more to send.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |   type = 7    |   flags = 0   |          length = 8           |
/// +---------------+---------------+---------------+---------------+
/// |                      cumulative TSN ack                       |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shutdown {
    /// The last TSN before the first gap, as in a SACK.
    pub cum_tsn_ack: Tsn,
}

impl Shutdown {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, DecodeError> {
        Ok(Self { cum_tsn_ack: Tsn(u32::from_be_bytes(*raw.fixed()?)) })
    }
}

impl PacketBuilder<'_> {
    /// Appends a SHUTDOWN chunk.
    pub fn push_shutdown(&mut self, cum_tsn_ack: Tsn) -> bool {
        self.push_parts(chunk_type::SHUTDOWN, 0, cum_tsn_ack.0.to_be_bytes(), &[])
    }

    /// Appends a SHUTDOWN ACK chunk.
    pub fn push_shutdown_ack(&mut self) -> bool {
        self.push_chunk(chunk_type::SHUTDOWN_ACK, 0, &[])
    }

    /// Appends a SHUTDOWN COMPLETE chunk, which must be alone in its packet (§6.10).
    pub fn push_shutdown_complete(&mut self, tag_reflected: bool) -> bool {
        let flags = if tag_reflected { FLAG_T } else { 0 };
        self.push_chunk(chunk_type::SHUTDOWN_COMPLETE, flags, &[])
    }
}
