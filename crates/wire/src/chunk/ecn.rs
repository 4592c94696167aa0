//! ECNE and CWR: explicit congestion notification (RFC 4960, appendix A). RFC 9260 reserves their
//! types.

use super::{RawChunk, chunk_type};
use crate::builder::PacketBuilder;
use crate::error::DecodeError;
use crate::types::Tsn;

/// An ECN Echo chunk: a packet came whose IP header says that it met congestion. A Congestion
/// Window Reduced chunk has the same layout: it answers an echo.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// | type = 12, 13 |   flags = 0   |          length = 8           |
/// +---------------+---------------+---------------+---------------+
/// |                          lowest TSN                           |
/// +---------------+---------------+---------------+---------------+
/// ```
///
/// Some stacks append the number of such packets to ECNE. It is ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ecne {
    /// The lowest TSN of the packet.
    pub lowest_tsn: Tsn,
}

/// A Congestion Window Reduced chunk: its sender has acted on an [`Ecne`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cwr {
    /// The lowest TSN of the echo. The answer is for that echo, and all with lower TSNs.
    pub lowest_tsn: Tsn,
}

impl Ecne {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, DecodeError> {
        Ok(Self { lowest_tsn: Tsn(u32::from_be_bytes(*raw.fixed()?)) })
    }
}

impl Cwr {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, DecodeError> {
        Ok(Self { lowest_tsn: Tsn(u32::from_be_bytes(*raw.fixed()?)) })
    }
}

impl PacketBuilder<'_> {
    /// Appends an ECN Echo chunk.
    pub fn push_ecne(&mut self, chunk: Ecne) -> bool {
        self.push_parts(chunk_type::ECNE, 0, chunk.lowest_tsn.0.to_be_bytes(), &[])
    }

    /// Appends a Congestion Window Reduced chunk.
    pub fn push_cwr(&mut self, chunk: Cwr) -> bool {
        self.push_parts(chunk_type::CWR, 0, chunk.lowest_tsn.0.to_be_bytes(), &[])
    }
}
