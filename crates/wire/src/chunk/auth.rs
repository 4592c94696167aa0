//! AUTH: the HMAC over the chunks that follow it (RFC 4895).

use bytes::Bytes;

use super::{CHUNK_HEADER_LEN, RawChunk, chunk_type};
use crate::builder::PacketBuilder;

/// Length of an AUTH chunk before its HMAC, in bytes.
pub const AUTH_HEADER_LEN: usize = CHUNK_HEADER_LEN + 4;

/// The identifiers of HMAC algorithms (RFC 4895 §3.3).
pub mod hmac_id {
    /// HMAC with SHA-1, of 20 bytes.
    pub const SHA_1: u16 = 1;
    /// HMAC with SHA-256, of 32 bytes.
    pub const SHA_256: u16 = 3;
}

/// Authenticates all chunks that follow it in its packet (RFC 4895 §5.1).
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |  type = 0x0f  |     flags     |            length             |
/// +---------------+---------------+---------------+---------------+
/// |     shared key identifier     |        HMAC identifier        |
/// +---------------+---------------+---------------+---------------+
/// | HMAC …                                                        |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Auth {
    /// The flags, which mean nothing, but which the HMAC covers.
    pub flags: u8,
    /// The number of the key that both ends share.
    pub key: u16,
    /// The algorithm, one of [`hmac_id`] unless unknown.
    pub algorithm: u16,
    /// The HMAC.
    pub hmac: Bytes,
}

impl Auth {
    /// `None` if the chunk is too short: it is then of an unknown form.
    pub(super) fn decode(raw: &RawChunk<'_>) -> Option<Self> {
        let [k0, k1, a0, a1] = *raw.fixed().ok()?;
        Some(Self {
            flags: raw.flags,
            key: u16::from_be_bytes([k0, k1]),
            algorithm: u16::from_be_bytes([a0, a1]),
            hmac: raw.value_from(4),
        })
    }

    /// The chunk as the HMAC covers it: header, fields, and zeros in place of the HMAC (RFC 4895
    /// §6.2). The length field holds what fits in 16 bits.
    #[must_use]
    pub fn zeroed(&self) -> Vec<u8> {
        let length = AUTH_HEADER_LEN + self.hmac.len();
        let [l0, l1] = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
        let ([k0, k1], [a0, a1]) = (self.key.to_be_bytes(), self.algorithm.to_be_bytes());
        let mut bytes = vec![chunk_type::AUTH, self.flags, l0, l1, k0, k1, a0, a1];
        bytes.resize(crate::tlv::padded(length), 0);
        bytes
    }
}

impl PacketBuilder<'_> {
    /// Appends an AUTH chunk.
    pub fn push_auth(&mut self, chunk: &Auth) -> bool {
        let ([k0, k1], [a0, a1]) = (chunk.key.to_be_bytes(), chunk.algorithm.to_be_bytes());
        self.push_parts(chunk_type::AUTH, chunk.flags, [k0, k1, a0, a1], &chunk.hmac)
    }

    /// Inserts an AUTH chunk before the chunk that begins at byte `at` of the packet. Returns the
    /// packet from there on. The caller has left room for the chunk: the size given to
    /// [`new`](Self::new) does not bound it.
    ///
    /// # Panics
    /// If the packet is shorter than `at`.
    pub fn insert_auth(&mut self, at: usize, chunk: &Auth) -> &mut [u8] {
        let mut bytes = chunk.zeroed();
        bytes[AUTH_HEADER_LEN..AUTH_HEADER_LEN + chunk.hmac.len()].copy_from_slice(&chunk.hmac);
        self.insert(at, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Chunk, CommonHeader, chunks_of};

    const HEADER: CommonHeader =
        CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };

    fn auth(hmac: &'static [u8]) -> Auth {
        Auth { flags: 0, key: 0x0102, algorithm: hmac_id::SHA_256, hmac: Bytes::from_static(hmac) }
    }

    #[test]
    fn an_auth_chunk_is_laid_out_as_rfc_4895_draws_it() {
        let mut out = Vec::new();
        let mut packet = PacketBuilder::new(&mut out, HEADER, 100);
        assert!(packet.push_auth(&auth(&[9, 8, 7, 6])));
        packet.finish(false);
        assert_eq!(out[12..], [15, 0, 0, 12, 1, 2, 0, 3, 9, 8, 7, 6]);
        assert_eq!(auth(&[9, 8, 7, 6]).zeroed(), [15, 0, 0, 12, 1, 2, 0, 3, 0, 0, 0, 0]);
    }

    #[test]
    fn an_auth_chunk_without_its_fields_is_of_an_unknown_type() {
        for bytes in [&[15, 0, 0, 4][..], &[15, 0, 0, 7, 0, 1, 0, 0]] {
            let chunk = chunks_of(&Bytes::copy_from_slice(bytes)).next();
            assert!(matches!(chunk, Some(Ok(Chunk::Unknown(_)))), "{chunk:?}");
        }
    }

    #[test]
    fn an_auth_chunk_can_be_inserted_before_any_chunk() {
        let mut out = vec![1, 2, 3];
        let mut packet = PacketBuilder::new(&mut out, HEADER, 20);
        assert!(packet.push_cookie_ack());
        assert!(packet.push_shutdown_ack());
        let chunks: Vec<_> = packet.chunk_types().collect();
        assert_eq!(chunks, [(12, 11), (16, 8)]);
        let rest = packet.insert_auth(16, &auth(&[9, 8, 7, 6]));
        assert_eq!(rest, [15, 0, 0, 12, 1, 2, 0, 3, 9, 8, 7, 6, 8, 0, 0, 4]);
        let types: Vec<_> = packet.chunk_types().map(|(_, ty)| ty).collect();
        assert_eq!(types, [11, 15, 8]);
        assert_eq!(packet.finish(false), 32);
        assert_eq!(out[..3], [1, 2, 3]);
    }

    #[test]
    fn the_bytes_behind_a_chunk_are_those_that_an_hmac_covers() {
        let content = Bytes::from_static(&[15, 7, 0, 8, 0, 0, 0, 1, 11, 0, 0, 4]);
        let mut chunks = crate::into_chunks_of(content);
        let Some(Ok(Chunk::Auth(auth))) = chunks.next() else { panic!("an AUTH chunk") };
        assert_eq!(auth.zeroed(), [15, 7, 0, 8, 0, 0, 0, 1]);
        assert_eq!(chunks.rest(), [11, 0, 0, 4][..]);
        assert!(chunks.next().is_some() && chunks.rest().is_empty());
        assert!(chunks.next().is_none() && chunks.rest().is_empty());
    }
}
