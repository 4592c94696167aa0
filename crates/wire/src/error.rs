//! The errors in received bytes.

/// Received bytes that are not what RFC 9260 describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
#[error("at byte {offset} of the packet: {kind}")]
pub struct DecodeError {
    /// Where the offending item begins, in bytes from the start of the packet; in chunks without a
    /// common header ([`chunks_of`](crate::chunks_of)), from the start of their bytes. In lists
    /// that were built and not received, from the start of the list.
    pub offset: usize,
    /// The kind of error.
    pub kind: DecodeErrorKind,
}

/// The kinds of malformed bytes. Lengths are in bytes and count headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum DecodeErrorKind {
    /// The packet cannot hold a common header.
    #[error("packet of {length} bytes, a common header has 12")]
    PacketTooShort {
        /// Length of the packet.
        length: usize,
    },
    /// The checksum does not match the contents.
    #[error("checksum {found:#010x}, the contents give {computed:#010x}")]
    BadChecksum {
        /// The checksum in the packet.
        found: u32,
        /// The checksum of what was received.
        computed: u32,
    },
    /// A port is zero (RFC 9260 §3.1 forbids it).
    #[error("source or destination port is zero")]
    ZeroPort,
    /// Bytes follow the last chunk, too few for another.
    #[error("{available} trailing bytes, a chunk header has 4")]
    ChunkHeaderTruncated {
        /// Bytes left.
        available: usize,
    },
    /// The chunk's length field is less than its header.
    #[error("chunk type {ty} of length {length}, a chunk header has 4")]
    ChunkLengthTooSmall {
        /// Chunk type.
        ty: u8,
        /// Its length field.
        length: u16,
    },
    /// The chunk's length field points beyond the packet.
    #[error("chunk type {ty} of length {length}, {available} bytes are left")]
    ChunkPastEnd {
        /// Chunk type.
        ty: u8,
        /// Its length field.
        length: u16,
        /// Bytes left, from the chunk's first.
        available: usize,
    },
    /// The chunk is shorter than the fixed fields of its type.
    #[error("chunk type {ty} of length {length}, its type needs {minimum}")]
    ChunkTooShort {
        /// Chunk type.
        ty: u8,
        /// Its length field.
        length: usize,
        /// The least length of its type.
        minimum: usize,
    },
    /// The counts in a SACK do not add up to its length.
    #[error(
        "SACK of length {length} with {gap_ack_blocks} gap ack blocks and {duplicate_tsns} duplicate TSNs"
    )]
    SackCounts {
        /// The chunk's length field.
        length: usize,
        /// How many gap ack blocks it claims.
        gap_ack_blocks: u16,
        /// How many duplicate TSNs it claims.
        duplicate_tsns: u16,
    },
    /// The counts in an NR-SACK do not add up to its length.
    #[error(
        "NR-SACK of length {length} with {gap_ack_blocks} gap ack blocks, {nr_gap_ack_blocks} non-renegable ones \
         and {duplicate_tsns} duplicate TSNs"
    )]
    NrSackCounts {
        /// The chunk's length field.
        length: usize,
        /// How many gap ack blocks it claims.
        gap_ack_blocks: u16,
        /// How many non-renegable ones it claims.
        nr_gap_ack_blocks: u16,
        /// How many duplicate TSNs it claims.
        duplicate_tsns: u16,
    },
    /// A HEARTBEAT or HEARTBEAT ACK does not begin with Heartbeat Information.
    #[error("heartbeat begins with parameter type {ty}, not with Heartbeat Information (1)")]
    NoHeartbeatInfo {
        /// The parameter type found.
        ty: u16,
    },
    /// Bytes follow the last parameter or cause, too few for another.
    #[error("{available} trailing bytes, a parameter or cause header has 4")]
    TlvHeaderTruncated {
        /// Bytes left.
        available: usize,
    },
    /// The length of a parameter or cause is less than its header or points beyond the chunk.
    #[error("parameter or cause {ty} of length {length}, {available} bytes are left")]
    TlvLength {
        /// Parameter type or cause code.
        ty: u16,
        /// Its length field.
        length: u16,
        /// Bytes left, from the item's first.
        available: usize,
    },
    /// A parameter has a length its type cannot have.
    #[error("parameter type {ty} of length {length}")]
    ParameterLength {
        /// Parameter type.
        ty: u16,
        /// Its length.
        length: usize,
    },
    /// An error cause has a length its code cannot have.
    #[error("error cause {code} of length {length}")]
    CauseLength {
        /// Cause code.
        code: u16,
        /// Its length.
        length: usize,
    },
}

impl DecodeErrorKind {
    /// This kind of error, at a place.
    pub(crate) fn at(self, offset: usize) -> DecodeError {
        DecodeError { offset, kind: self }
    }
}
