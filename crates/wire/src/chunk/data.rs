//! DATA (RFC 9260 §3.3.1).

use std::ops::BitOr;

use bytes::{Buf, Bytes};

use super::{CHUNK_HEADER_LEN, RawChunk, chunk_type};
use crate::builder::PacketBuilder;
use crate::error::DecodeError;
use crate::types::{Ssn, StreamId, Tsn};

/// Length of what precedes the payload in a DATA chunk, the chunk header included, in bytes.
pub const DATA_HEADER_LEN: usize = CHUNK_HEADER_LEN + FIXED_LEN;

const FIXED_LEN: usize = 12;

/// A DATA chunk: a message or a fragment of one.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |   type = 0    |  res  |I|U|B|E|            length             |
/// +---------------+---------------+---------------+---------------+
/// |                              TSN                              |
/// +---------------+---------------+---------------+---------------+
/// |       stream identifier       |    stream sequence number     |
/// +---------------+---------------+---------------+---------------+
/// |                  payload protocol identifier                  |
/// +---------------+---------------+---------------+---------------+
/// | payload …                                                     |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// Transmission sequence number of this chunk.
    pub tsn: Tsn,
    /// The stream the message belongs to.
    pub stream: StreamId,
    /// Number of the message in its stream; without meaning when the U bit is set.
    pub ssn: Ssn,
    /// Payload protocol identifier, for the application; 0 is "unspecified".
    pub ppid: u32,
    /// I, U, B and E bits.
    pub flags: DataFlags,
    /// The bytes of the message. A valid chunk has at least one; an empty payload decodes, so that
    /// the receiver can answer with "No User Data" (§6.2).
    pub payload: Bytes,
}

impl Data {
    #[inline]
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, DecodeError> {
        Ok(Self::from_parts(raw.flags, raw.fixed()?, raw.value_from(FIXED_LEN)))
    }

    /// The chunk at `offset`, the last of `packet`, whose bytes it takes for its payload.
    #[inline]
    pub(crate) fn decode_last(mut packet: Bytes, offset: usize) -> Result<Self, DecodeError> {
        let raw = RawChunk::split(&packet, offset)?;
        let (flags, fixed, end) = (raw.flags, *raw.fixed()?, offset + raw.length);
        packet.truncate(end);
        packet.advance(offset + DATA_HEADER_LEN);
        Ok(Self::from_parts(flags, &fixed, packet))
    }

    #[inline]
    fn from_parts(flags: u8, fixed: &[u8; FIXED_LEN], payload: Bytes) -> Self {
        let [t0, t1, t2, t3, i0, i1, s0, s1, p0, p1, p2, p3] = *fixed;
        Self {
            tsn: Tsn(u32::from_be_bytes([t0, t1, t2, t3])),
            stream: StreamId(u16::from_be_bytes([i0, i1])),
            ssn: Ssn(u16::from_be_bytes([s0, s1])),
            ppid: u32::from_be_bytes([p0, p1, p2, p3]),
            flags: DataFlags(flags),
            payload,
        }
    }

    pub(super) fn push(&self, packet: &mut PacketBuilder<'_>) -> bool {
        let Data { tsn, stream, ssn, ppid, flags, payload } = self;
        packet.push_data(*tsn, *stream, *ssn, *ppid, *flags, payload)
    }
}

impl PacketBuilder<'_> {
    /// Appends a DATA chunk.
    #[inline]
    pub fn push_data(
        &mut self,
        tsn: Tsn,
        stream: StreamId,
        ssn: Ssn,
        ppid: u32,
        flags: DataFlags,
        payload: &[u8],
    ) -> bool {
        let mut fixed = [0; FIXED_LEN];
        fixed[..4].copy_from_slice(&tsn.0.to_be_bytes());
        fixed[4..6].copy_from_slice(&stream.0.to_be_bytes());
        fixed[6..8].copy_from_slice(&ssn.0.to_be_bytes());
        fixed[8..].copy_from_slice(&ppid.to_be_bytes());
        self.push_parts(chunk_type::DATA, flags.0, fixed, payload)
    }
}

/// The flags of a DATA chunk. Bits RFC 9260 reserves are kept as received.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DataFlags(pub u8);

impl DataFlags {
    /// E: the last fragment of a message.
    pub const END: DataFlags = DataFlags(1);
    /// B: the first fragment of a message.
    pub const BEGIN: DataFlags = DataFlags(2);
    /// U: an unordered message.
    pub const UNORDERED: DataFlags = DataFlags(4);
    /// I: the sender wants a SACK at once (first defined in RFC 7053).
    pub const IMMEDIATE: DataFlags = DataFlags(8);

    /// True for the last fragment of a message.
    #[must_use]
    pub const fn end(self) -> bool {
        self.0 & Self::END.0 != 0
    }

    /// True for the first fragment of a message.
    #[must_use]
    pub const fn begin(self) -> bool {
        self.0 & Self::BEGIN.0 != 0
    }

    /// True if the message is unordered.
    #[must_use]
    pub const fn unordered(self) -> bool {
        self.0 & Self::UNORDERED.0 != 0
    }

    /// True if the sender wants a SACK at once.
    #[must_use]
    pub const fn immediate(self) -> bool {
        self.0 & Self::IMMEDIATE.0 != 0
    }
}

impl BitOr for DataFlags {
    type Output = DataFlags;

    fn bitor(self, other: DataFlags) -> DataFlags {
        DataFlags(self.0 | other.0)
    }
}
