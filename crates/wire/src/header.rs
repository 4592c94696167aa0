//! The common header that begins every packet.

/// Length of the common header in bytes.
pub const COMMON_HEADER_LEN: usize = 12;

/// Length of a chunk's type, flags and length fields in bytes.
pub(crate) const CHUNK_HEADER_LEN: usize = 4;

/// Where the checksum begins in a packet; it is the header's last field.
pub(crate) const CHECKSUM_OFFSET: usize = 8;

/// The common header (RFC 9260 §3.1), without its checksum, which only parsing and building see.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |          source port          |       destination port        |
/// +---------------+---------------+---------------+---------------+
/// |                       verification tag                        |
/// +---------------+---------------+---------------+---------------+
/// |           checksum: CRC32c, least significant byte first      |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommonHeader {
    /// The sender's SCTP port, 1 to 65535.
    pub source_port: u16,
    /// The receiver's SCTP port, 1 to 65535.
    pub destination_port: u16,
    /// The receiver's tag; zero only in a packet that carries an INIT.
    pub verification_tag: u32,
}

impl CommonHeader {
    /// Splits a header into its fields and the checksum it carries.
    pub(crate) fn decode(bytes: &[u8; COMMON_HEADER_LEN]) -> (CommonHeader, u32) {
        let [s0, s1, d0, d1, v0, v1, v2, v3, c0, c1, c2, c3] = *bytes;
        let header = CommonHeader {
            source_port: u16::from_be_bytes([s0, s1]),
            destination_port: u16::from_be_bytes([d0, d1]),
            verification_tag: u32::from_be_bytes([v0, v1, v2, v3]),
        };
        (header, u32::from_le_bytes([c0, c1, c2, c3]))
    }

    /// The header's bytes, with a checksum of zero.
    #[inline]
    pub(crate) fn encode(&self) -> [u8; COMMON_HEADER_LEN] {
        let mut bytes = [0; COMMON_HEADER_LEN];
        bytes[..2].copy_from_slice(&self.source_port.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.verification_tag.to_be_bytes());
        bytes
    }
}
