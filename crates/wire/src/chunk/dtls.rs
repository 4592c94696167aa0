//! DTLS: the protected chunks of a packet (draft-ietf-tsvwg-sctp-dtls-chunk-04 §4.2, §5.2).

use std::ops::Range;

use bytes::Bytes;

use super::{CHUNK_HEADER_LEN, RawChunk, UnknownChunk, chunk_type};
use crate::builder::PacketBuilder;
use crate::error::DecodeError;
use crate::header::COMMON_HEADER_LEN;
use crate::tlv::padded;

/// The R bit: the record is protected with a restart key context.
const FLAG_RESTART: u8 = 1;

const PRE_PADDING_LEN: usize = 1;

/// Where the record begins in a DTLS chunk, in bytes: behind the chunk header and one byte of
/// pre-padding.
pub const DTLS_RECORD_OFFSET: usize = CHUNK_HEADER_LEN + PRE_PADDING_LEN;

/// Length of a record's header (`unified_hdr`) in bytes: a byte of flags with two bits of the
/// epoch, and 16 bits of the sequence number. The draft allows no other form (§3.1).
pub const DTLS_RECORD_HEADER_LEN: usize = 3;

/// Where the encrypted record, and thus the content, begins in a DTLS chunk, in bytes: a multiple
/// of 4, so that the content can be decrypted and its chunks decoded in place.
pub const DTLS_CONTENT_OFFSET: usize = DTLS_RECORD_OFFSET + DTLS_RECORD_HEADER_LEN;

/// Length of what follows the content in a record, in bytes: the inner content type (1) and the
/// AEAD tag (16). Zeros between the two are padding, which the sender of a record may add.
pub const DTLS_TRAILER_LEN: usize = 1 + 16;

/// The least length of a record in bytes: that of one without content.
pub const DTLS_RECORD_MIN_LEN: usize = DTLS_RECORD_HEADER_LEN + DTLS_TRAILER_LEN;

/// The length of a DTLS chunk without post-padding, less that of its content, in bytes.
pub const DTLS_OVERHEAD: usize = DTLS_CONTENT_OFFSET + DTLS_TRAILER_LEN;

/// The length that a DTLS chunk with its post-padding adds to the chunks in it, in bytes. As chunks
/// are padded to a multiple of 4 bytes, it is the same for all packets.
pub const DTLS_PADDED_OVERHEAD: usize = padded(DTLS_OVERHEAD);

const _: () = assert!(DTLS_CONTENT_OFFSET.is_multiple_of(4));

/// A DTLS chunk: all chunks of a packet in one DTLS 1.3 record (§4.2). It is the only chunk of its
/// packet (§5.2). Decoding looks at neither the record's header nor what is encrypted.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |  type = 0x41  |  reserved   |R|            length             |
/// +---------------+---------------+---------------+---------------+
/// |  pre-padding  |0|0|1|0|1|0|E E|   16-bit sequence number      |
/// +---------------+---------------+---------------+---------------+
/// | encrypted: content, inner content type, zeros or none; tag …  |
/// +---------------+---------------+---------------+---------------+
/// ```
/// The record (`DTLSCiphertext`, RFC 9147 §4) begins behind the pre-padding, a zero byte. The
/// post-padding is that of every chunk, which the length does not count.
///
/// To build the chunk in place, without moving its content:
///
/// 1. Leave [`DTLS_CONTENT_OFFSET`] bytes of a buffer free. Write a plain packet behind them with
///    [`PacketBuilder`], at least [`DTLS_PADDED_OVERHEAD`] bytes shorter than a packet may be.
/// 2. Copy its common header to the start of the free bytes: now the bytes between that and the
///    first chunk are free.
/// 3. Append [`DTLS_TRAILER_LEN`] bytes, the first of them the inner content type, and encrypt from
///    the first chunk on.
/// 4. Write [`Dtls::header`] and the record's header in front of the encrypted record. Pad the
///    packet with zeros to a multiple of 4 bytes, and write its checksum
///    ([`fill_checksum`](crate::fill_checksum)).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Dtls {
    /// The R bit: the record is protected with a restart key context, not with a primary one.
    pub restart: bool,
    /// The record: its header of [`DTLS_RECORD_HEADER_LEN`] bytes, then the encrypted record. In a
    /// received chunk it has at least [`DTLS_RECORD_MIN_LEN`] bytes.
    pub record: Bytes,
}

impl Dtls {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, DecodeError> {
        raw.fixed::<{ PRE_PADDING_LEN + DTLS_RECORD_MIN_LEN }>()?;
        let restart = raw.flags & FLAG_RESTART != 0;
        Ok(Self { restart, record: raw.value_from(PRE_PADDING_LEN) })
    }

    /// Where the record is in a packet that has one DTLS chunk and nothing else (§5.2), without the
    /// R bit. `None` for every other packet.
    #[must_use]
    #[inline]
    pub fn alone_in(packet: &[u8]) -> Option<Range<usize>> {
        let (_, chunks) = packet.split_first_chunk::<COMMON_HEADER_LEN>()?;
        let &[chunk_type::DTLS, flags, l0, l1] = chunks.first_chunk::<CHUNK_HEADER_LEN>()? else {
            return None;
        };
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        let is_alone = length <= chunks.len() && padded(length) >= chunks.len();
        let has_record = length >= DTLS_RECORD_OFFSET + DTLS_RECORD_MIN_LEN;
        let start = COMMON_HEADER_LEN + DTLS_RECORD_OFFSET;
        (flags & FLAG_RESTART == 0 && is_alone && has_record)
            .then_some(start..COMMON_HEADER_LEN + length)
    }

    /// The bytes of a DTLS chunk before a record of this length: the chunk header and the
    /// pre-padding. `None` if no DTLS chunk has a record of this length.
    #[must_use]
    #[inline]
    pub fn header(restart: bool, record_len: usize) -> Option<[u8; DTLS_RECORD_OFFSET]> {
        if record_len < DTLS_RECORD_MIN_LEN {
            return None;
        }
        let length = DTLS_RECORD_OFFSET.checked_add(record_len)?;
        Some(header(restart, u16::try_from(length).ok()?))
    }
}

fn header(restart: bool, length: u16) -> [u8; DTLS_RECORD_OFFSET] {
    let [l0, l1] = length.to_be_bytes();
    [chunk_type::DTLS, flags(restart), l0, l1, 0]
}

fn flags(restart: bool) -> u8 {
    if restart { FLAG_RESTART } else { 0 }
}

impl From<Dtls> for UnknownChunk {
    /// The chunk for an endpoint that does not support it, which reports it whole (§4.2). Reserved
    /// flags and the pre-padding, which decoding ignores, are zero. The length field holds what
    /// fits in 16 bits.
    fn from(chunk: Dtls) -> Self {
        let length = DTLS_RECORD_OFFSET + chunk.record.len();
        let header = header(chunk.restart, u16::try_from(length).unwrap_or(u16::MAX));
        Self::from_raw([&header, &chunk.record[..]].concat().into())
    }
}

impl PacketBuilder<'_> {
    /// Appends a DTLS chunk with this record, which must be alone in its packet (§5.2). Returns
    /// false and writes nothing also if the record is shorter than [`DTLS_RECORD_MIN_LEN`].
    pub fn push_dtls(&mut self, restart: bool, record: &[u8]) -> bool {
        record.len() >= DTLS_RECORD_MIN_LEN
            && self.push_parts(chunk_type::DTLS, flags(restart), [0; PRE_PADDING_LEN], record)
    }
}

#[cfg(test)]
mod tests;
