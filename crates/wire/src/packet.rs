//! Reading a packet.

use bytes::Bytes;

use crate::checksum;
use crate::chunk::{Chunk, Data, IData, RawChunk};
use crate::error::{DecodeError, DecodeErrorKind};
use crate::header::{COMMON_HEADER_LEN, CommonHeader};
use crate::tlv::padded;

/// The treatment of the checksum by the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// Reject a packet whose CRC32c is wrong (RFC 9260 §6.8).
    Verify,
    /// Do not look at the checksum: for simulated networks, which do not damage packets, and where
    /// another method detects damage (RFC 9653).
    Ignore,
}

/// A received packet with a valid common header. Its chunks are decoded when iterated.
#[derive(Debug, Clone)]
pub struct Packet {
    /// The common header.
    pub header: CommonHeader,
    bytes: Bytes,
}

impl Packet {
    /// Checks the length, the checksum and that no port is zero.
    ///
    /// # Errors
    /// Returns what is wrong with the common header. Chunks are not looked at yet.
    #[inline]
    pub fn parse(bytes: Bytes, checksum: Checksum) -> Result<Packet, DecodeError> {
        let header = Packet::check(&bytes, checksum)?;
        Ok(Packet { header, bytes })
    }

    /// Makes the same checks, and leaves the bytes where they are.
    ///
    /// # Errors
    /// Those of [`parse`](Self::parse).
    #[inline]
    pub fn check(bytes: &[u8], checksum: Checksum) -> Result<CommonHeader, DecodeError> {
        let Some((fixed, rest)) = bytes.split_first_chunk::<COMMON_HEADER_LEN>() else {
            return Err(DecodeErrorKind::PacketTooShort { length: bytes.len() }.at(0));
        };
        let (header, found) = CommonHeader::decode(fixed);
        if checksum == Checksum::Verify {
            let computed = checksum::of_received(fixed, rest);
            if computed != found {
                return Err(DecodeErrorKind::BadChecksum { found, computed }.at(0));
            }
        }
        if header.source_port == 0 || header.destination_port == 0 {
            return Err(DecodeErrorKind::ZeroPort.at(0));
        }
        Ok(header)
    }

    /// A packet of bytes that were [checked](Self::check), and have that header.
    #[must_use]
    #[inline]
    pub fn checked(header: CommonHeader, bytes: Bytes) -> Packet {
        Packet { header, bytes }
    }

    /// The chunks in order. After an error the iterator ends: nothing behind a malformed chunk can
    /// be trusted to be a chunk.
    #[must_use]
    pub fn chunks(&self) -> ChunkIter<'_> {
        ChunkIter { packet: &self.bytes, offset: COMMON_HEADER_LEN }
    }

    /// The chunks, in exchange for the packet: the last chunk takes over the packet's reference to
    /// its bytes, in place of one more.
    #[must_use]
    pub fn into_chunks(self) -> IntoChunks {
        IntoChunks { packet: self.bytes, offset: COMMON_HEADER_LEN }
    }

    /// The whole packet as received.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }
}

/// The chunks of a sequence of chunks without a common header, such as the decrypted content of a
/// DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04 §5.2). The rules are those of
/// [`Packet::chunks`]; offsets in errors count from the start of `content`.
#[must_use]
pub fn chunks_of(content: &Bytes) -> ChunkIter<'_> {
    ChunkIter { packet: content, offset: 0 }
}

/// The same chunks, at the cost of the content, as [`Packet::into_chunks`] does it.
#[must_use]
pub fn into_chunks_of(content: Bytes) -> IntoChunks {
    IntoChunks { packet: content, offset: 0 }
}

/// The chunks of a packet, from [`Packet::chunks`], or of a content, from [`chunks_of`].
#[derive(Debug, Clone)]
pub struct ChunkIter<'a> {
    packet: &'a Bytes,
    /// Where the next chunk begins; the packet's length or more at the end.
    offset: usize,
}

impl Iterator for ChunkIter<'_> {
    type Item = Result<Chunk, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.packet.len() {
            return None;
        }
        let chunk = RawChunk::split(self.packet, self.offset).and_then(|raw| {
            // A receiver accepts a last chunk without its padding; `offset` is then past the end.
            self.offset += padded(raw.length);
            Chunk::decode(&raw)
        });
        if chunk.is_err() {
            self.offset = self.packet.len();
        }
        Some(chunk)
    }
}

impl std::iter::FusedIterator for ChunkIter<'_> {}

/// The chunks of a packet, from [`Packet::into_chunks`], or of a content, from [`into_chunks_of`].
#[derive(Debug)]
pub struct IntoChunks {
    /// Empty at the end.
    packet: Bytes,
    /// Where the next chunk begins.
    offset: usize,
}

impl IntoChunks {
    /// The bytes behind the last chunk that was yielded: those that an AUTH chunk there covers,
    /// besides its own (RFC 4895 §6.2). Empty after a malformed chunk.
    #[must_use]
    pub fn rest(&self) -> Bytes {
        self.packet.slice(self.offset.min(self.packet.len())..)
    }
}

impl Iterator for IntoChunks {
    type Item = Result<Chunk, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.offset >= self.packet.len() {
            return None;
        }
        let raw = RawChunk::split(&self.packet, self.offset);
        let ends = |raw: &RawChunk<'_>| self.offset + padded(raw.length) >= self.packet.len();
        let chunk = match raw {
            Ok(raw) if raw.is_data() && ends(&raw) => {
                Data::decode_last(std::mem::take(&mut self.packet), self.offset).map(Chunk::Data)
            }
            Ok(raw) if raw.is_i_data() && ends(&raw) => {
                IData::decode_last(std::mem::take(&mut self.packet), self.offset).map(Chunk::IData)
            }
            Ok(raw) => {
                self.offset += padded(raw.length);
                Chunk::decode(&raw)
            }
            Err(error) => Err(error),
        };
        if chunk.is_err() {
            self.packet = Bytes::new();
        }
        Some(chunk)
    }
}

impl std::iter::FusedIterator for IntoChunks {}

#[cfg(test)]
mod tests;
