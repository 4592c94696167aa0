//! TIMESTAMP: a private chunk that measures the round-trip time of every packet (Caro, Amer,
//! Stewart, "Retransmission policies for multihomed transport protocols", section 4.2). No RFC has
//! it.

use super::{CHUNK_HEADER_LEN, RawChunk, chunk_type};
use crate::builder::PacketBuilder;

/// Length of a TIMESTAMP chunk in bytes.
pub const TIMESTAMP_LEN: usize = CHUNK_HEADER_LEN + 8;

/// The flag that says that the echo counts.
const FLAG_ECHO: u8 = 1;

/// When a packet was sent, and the time that a packet of the peer carried. It precedes the DATA and
/// SACK chunks of its packet. Its type asks a receiver that does not know it to skip it in silence.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |  type = 0xb5  |   flags . . E |          length = 12          |
/// +---------------+---------------+---------------+---------------+
/// |                           timestamp                           |
/// +---------------+---------------+---------------+---------------+
/// |                     echo, if the E bit is set                 |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Timestamp {
    /// The sender's clock, in microseconds from an origin of its own, modulo 2^32.
    pub timestamp: u32,
    /// In a packet with SACK: the timestamp of the first packet that the SACK answers.
    pub echo: Option<u32>,
}

impl Timestamp {
    /// `None` if the length is not right: the type is private, and someone else's may look
    /// different.
    pub(super) fn decode(raw: &RawChunk<'_>) -> Option<Self> {
        if raw.length != TIMESTAMP_LEN {
            return None;
        }
        let fixed: &[u8; 8] = raw.fixed().ok()?;
        let [t0, t1, t2, t3, e0, e1, e2, e3] = *fixed;
        let echo = u32::from_be_bytes([e0, e1, e2, e3]);
        Some(Self {
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            echo: (raw.flags & FLAG_ECHO != 0).then_some(echo),
        })
    }
}

impl PacketBuilder<'_> {
    /// Appends a TIMESTAMP chunk.
    pub fn push_timestamp(&mut self, chunk: Timestamp) -> bool {
        let flags = if chunk.echo.is_some() { FLAG_ECHO } else { 0 };
        let [t0, t1, t2, t3] = chunk.timestamp.to_be_bytes();
        let [e0, e1, e2, e3] = chunk.echo.unwrap_or(0).to_be_bytes();
        self.push_parts(chunk_type::TIMESTAMP, flags, [t0, t1, t2, t3, e0, e1, e2, e3], &[])
    }
}
