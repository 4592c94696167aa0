//! PAD: fills a packet up to a size (RFC 4820).

use super::{CHUNK_HEADER_LEN, RawChunk, chunk_type};
use crate::builder::PacketBuilder;

/// A chunk whose value means nothing: beside a HEARTBEAT it makes a probe of a path's size (RFC
/// 8899 §6.2.1). Its type asks a receiver that does not know it to skip it in silence.
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
    /// The padding itself is not kept: nobody reads it.
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

    /// Appends a PAD chunk that makes the packet `len` bytes long, a multiple of 4. False, and
    /// nothing is written, if the packet is so long already but for less than the header of one, or
    /// must not become so long.
    pub fn push_pad_to(&mut self, len: usize) -> bool {
        let header = self.len() + CHUNK_HEADER_LEN;
        let padding = len.checked_sub(header).and_then(|padding| u16::try_from(padding).ok());
        padding
            .filter(|_| len.is_multiple_of(4))
            .is_some_and(|length| self.push_pad(Pad { length }))
    }
}
