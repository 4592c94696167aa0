//! I-DATA (RFC 8260 §2.1).

use bytes::{Buf, Bytes};

use super::{CHUNK_HEADER_LEN, DataFlags, RawChunk, chunk_type};
use crate::builder::PacketBuilder;
use crate::error::DecodeError;
use crate::types::{Mid, StreamId, Tsn};

/// Length of what precedes the payload in an I-DATA chunk, the chunk header included, in bytes.
pub const I_DATA_HEADER_LEN: usize = CHUNK_HEADER_LEN + FIXED_LEN;

const FIXED_LEN: usize = 16;

/// An I-DATA chunk: a message or a fragment of one, which those of other messages may stand
/// between.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |   type = 64   |  res  |I|U|B|E|            length             |
/// +---------------+---------------+---------------+---------------+
/// |                              TSN                              |
/// +---------------+---------------+---------------+---------------+
/// |       stream identifier       |           reserved            |
/// +---------------+---------------+---------------+---------------+
/// |                      message identifier                       |
/// +---------------+---------------+---------------+---------------+
/// |  payload protocol identifier (B) or fragment sequence number  |
/// +---------------+---------------+---------------+---------------+
/// | payload …                                                     |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IData {
    /// Transmission sequence number of this chunk.
    pub tsn: Tsn,
    /// The stream the message belongs to.
    pub stream: StreamId,
    /// Number of the message in its stream; ordered and unordered ones count apart.
    pub mid: Mid,
    /// With the B bit the payload protocol identifier, and without it the fragment sequence number:
    /// see [`ppid`](Self::ppid) and [`fsn`](Self::fsn).
    pub ppid_or_fsn: u32,
    /// I, U, B and E bits.
    pub flags: DataFlags,
    /// The bytes of the message. A valid chunk has at least one; an empty payload decodes, so that
    /// the receiver can answer with "No User Data".
    pub payload: Bytes,
}

impl IData {
    /// The payload protocol identifier of the message, which its first fragment carries.
    #[must_use]
    pub const fn ppid(&self) -> Option<u32> {
        if self.flags.begin() { Some(self.ppid_or_fsn) } else { None }
    }

    /// The place of the fragment in its message: 0 for the first one. It wraps around.
    #[must_use]
    pub const fn fsn(&self) -> u32 {
        if self.flags.begin() { 0 } else { self.ppid_or_fsn }
    }

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
        packet.advance(offset + I_DATA_HEADER_LEN);
        Ok(Self::from_parts(flags, &fixed, packet))
    }

    #[inline]
    fn from_parts(flags: u8, fixed: &[u8; FIXED_LEN], payload: Bytes) -> Self {
        let [t0, t1, t2, t3, i0, i1, _, _, m0, m1, m2, m3, p0, p1, p2, p3] = *fixed;
        Self {
            tsn: Tsn(u32::from_be_bytes([t0, t1, t2, t3])),
            stream: StreamId(u16::from_be_bytes([i0, i1])),
            mid: Mid(u32::from_be_bytes([m0, m1, m2, m3])),
            ppid_or_fsn: u32::from_be_bytes([p0, p1, p2, p3]),
            flags: DataFlags(flags),
            payload,
        }
    }

    pub(super) fn push(&self, packet: &mut PacketBuilder<'_>) -> bool {
        let IData { tsn, stream, mid, ppid_or_fsn, flags, payload } = self;
        packet.push_i_data(*tsn, *stream, *mid, *ppid_or_fsn, *flags, payload)
    }
}

impl PacketBuilder<'_> {
    /// Appends an I-DATA chunk. `ppid_or_fsn` is the payload protocol identifier if `flags` have
    /// the B bit, and else the fragment sequence number.
    #[inline]
    pub fn push_i_data(
        &mut self,
        tsn: Tsn,
        stream: StreamId,
        mid: Mid,
        ppid_or_fsn: u32,
        flags: DataFlags,
        payload: &[u8],
    ) -> bool {
        let mut fixed = [0; FIXED_LEN];
        fixed[..4].copy_from_slice(&tsn.0.to_be_bytes());
        fixed[4..6].copy_from_slice(&stream.0.to_be_bytes());
        fixed[8..12].copy_from_slice(&mid.0.to_be_bytes());
        fixed[12..].copy_from_slice(&ppid_or_fsn.to_be_bytes());
        self.push_parts(chunk_type::I_DATA, flags.0, fixed, payload)
    }
}
