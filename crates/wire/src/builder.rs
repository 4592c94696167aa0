//! Writing a packet.

use crate::checksum;
use crate::header::{CHECKSUM_OFFSET, CHUNK_HEADER_LEN, COMMON_HEADER_LEN, CommonHeader};
use crate::tlv::{padded, put_padding};

/// Writes one packet at the end of a buffer, chunk by chunk.
///
/// Every `push_…` method appends one chunk, padded, and returns `true`; or writes nothing and
/// returns `false` if the chunk does not fit. The buffer may already hold other packets (a batch),
/// and is the only thing that can allocate: reserve `max_len` bytes and nothing does.
///
/// End with [`finish`](Self::finish) or [`discard`](Self::discard).
#[derive(Debug)]
#[must_use = "a packet is complete only after `finish`"]
pub struct PacketBuilder<'a> {
    out: &'a mut Vec<u8>,
    /// Where the packet begins in `out`.
    start: usize,
    max_len: usize,
}

impl<'a> PacketBuilder<'a> {
    /// Starts a packet of at most `max_len` bytes, which begins with `header`.
    #[inline]
    pub fn new(out: &'a mut Vec<u8>, header: CommonHeader, max_len: usize) -> Self {
        let start = out.len();
        out.extend_from_slice(&header.encode());
        Self { out, start, max_len }
    }

    /// How many bytes of chunks (headers and padding included) still fit.
    #[must_use]
    #[inline]
    pub fn remaining(&self) -> usize {
        self.max_len.saturating_sub(self.len()) & !3
    }

    /// True if the packet has no chunk yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == COMMON_HEADER_LEN
    }

    /// Length of the packet so far, the common header included, in bytes.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.out.len() - self.start
    }

    /// Appends a chunk of any type.
    pub fn push_chunk(&mut self, ty: u8, flags: u8, value: &[u8]) -> bool {
        self.push_parts(ty, flags, [], value)
    }

    /// Completes the packet and returns its length in bytes. With `checksum` it writes the CRC32c;
    /// without, the field stays zero, for simulated networks and for peers that accept it (RFC
    /// 9653).
    #[inline]
    pub fn finish(self, checksum: bool) -> usize {
        let packet = &mut self.out[self.start..];
        if checksum {
            let crc = checksum::of_zeroed(packet);
            packet[CHECKSUM_OFFSET..COMMON_HEADER_LEN].copy_from_slice(&crc.to_le_bytes());
        }
        packet.len()
    }

    /// The buffer and where the packet begins in it, to go on with the packet without the builder.
    /// The checksum is not written.
    #[must_use]
    pub fn into_parts(self) -> (&'a mut Vec<u8>, usize) {
        (self.out, self.start)
    }

    /// The type of each chunk so far, and the byte of the packet where it begins.
    pub fn chunk_types(&self) -> impl Iterator<Item = (usize, u8)> + '_ {
        let packet = &self.out[self.start..];
        let mut at = COMMON_HEADER_LEN;
        std::iter::from_fn(move || {
            let &[ty, _, l0, l1] = packet.get(at..)?.first_chunk()?;
            let begin = at;
            // Chunks were appended whole and padded. None is shorter than its header.
            at += padded(usize::from(u16::from_be_bytes([l0, l1]))).max(CHUNK_HEADER_LEN);
            Some((begin, ty))
        })
    }

    /// Inserts bytes at a byte of the packet, however long it gets. Returns the packet from there
    /// on.
    pub(crate) fn insert(&mut self, at: usize, bytes: &[u8]) -> &mut [u8] {
        let at = self.start + at;
        let end = self.out.len();
        self.out.resize(end + bytes.len(), 0);
        self.out.copy_within(at..end, at + bytes.len());
        self.out[at..at + bytes.len()].copy_from_slice(bytes);
        &mut self.out[at..]
    }

    /// Takes the packet back: the buffer is as it was before [`new`](Self::new).
    pub fn discard(self) {
        self.out.truncate(self.start);
    }

    /// Appends a chunk whose value is fixed fields followed by variable bytes.
    #[inline]
    pub(crate) fn push_parts<const N: usize>(
        &mut self,
        ty: u8,
        flags: u8,
        fixed: [u8; N],
        variable: &[u8],
    ) -> bool {
        let length = CHUNK_HEADER_LEN + N + variable.len();
        if padded(length) > self.remaining() {
            return false;
        }
        let Ok(length) = u16::try_from(length) else { return false };
        let [l0, l1] = length.to_be_bytes();
        let length = usize::from(length);
        self.out.reserve(padded(length));
        self.out.extend_from_slice(&[ty, flags, l0, l1]);
        self.out.extend_from_slice(&fixed);
        self.out.extend_from_slice(variable);
        if padded(length) > length {
            self.out.extend_from_slice(&[0; 3][..padded(length) - length]);
        }
        true
    }

    /// Appends a chunk whose value `write` appends, given how many bytes it may at most write.
    /// When it writes more, the chunk is taken back.
    pub(crate) fn push_with(
        &mut self,
        ty: u8,
        flags: u8,
        write: impl FnOnce(&mut Vec<u8>, usize),
    ) -> bool {
        let max = self.remaining().min(usize::from(u16::MAX));
        let chunk = self.out.len();
        if max < CHUNK_HEADER_LEN {
            return false;
        }
        self.out.extend_from_slice(&[ty, flags, 0, 0]);
        write(self.out, max - CHUNK_HEADER_LEN);
        let length = self.out.len() - chunk;
        let length = match u16::try_from(length) {
            Ok(fits) if length <= max => fits,
            _ => {
                self.out.truncate(chunk);
                return false;
            }
        };
        self.out[chunk + 2..chunk + 4].copy_from_slice(&length.to_be_bytes());
        put_padding(self.out, chunk);
        true
    }
}

#[cfg(test)]
mod tests;
