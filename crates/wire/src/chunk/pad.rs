//! PAD: fills a packet up to a size (RFC 4820).

use super::{CHUNK_HEADER_LEN, RawChunk, chunk_type};
use crate::builder::PacketBuilder;

/// A chunk without meaning: it pads a HEARTBEAT to a probe of the path's packet size (RFC 8899
/// §6.2.1). Its type makes receivers that do not know it skip it silently.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |  type = 0x84  |   flags = 0   |            length             |
/// +---------------+---------------+---------------+---------------+
/// | padding data …                                                |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pad {
    /// Bytes of padding data, without the header.
    pub length: u16,
}

impl Pad {
    /// The padding itself is not stored.
    pub(super) fn decode(raw: &RawChunk<'_>) -> Self {
        let length = raw.length - CHUNK_HEADER_LEN;
        Self { length: u16::try_from(length).unwrap_or(u16::MAX) }
    }
}

impl PacketBuilder<'_> {
    /// Appends a PAD chunk with this number of zero bytes of padding.
    pub fn push_pad(&mut self, chunk: Pad) -> bool {
        self.push_with(chunk_type::PAD, 0, |out, _| {
            out.resize(out.len() + usize::from(chunk.length), 0);
        })
    }

    /// Appends a PAD chunk that makes the packet `len` bytes long, a multiple of 4. Returns false
    /// and writes nothing if there is no room for a chunk header before `len`, or if the packet
    /// must not become that long.
    pub fn push_pad_to(&mut self, len: usize) -> bool {
        let header = self.len() + CHUNK_HEADER_LEN;
        let padding = len.checked_sub(header).and_then(|padding| u16::try_from(padding).ok());
        len.is_multiple_of(4) && padding.is_some_and(|length| self.push_pad(Pad { length }))
    }
}
