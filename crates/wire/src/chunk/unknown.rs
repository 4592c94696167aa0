//! Chunks of types that are not known.

use bytes::Bytes;

use super::{CHUNK_HEADER_LEN, RawChunk};
use crate::unknown::UnknownAction;

/// A chunk of a type this crate does not know, whole, so that it can be reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownChunk {
    /// At least a chunk header.
    raw: Bytes,
}

impl UnknownChunk {
    pub(super) fn decode(raw: &RawChunk<'_>) -> Self {
        Self { raw: raw.packet.slice(raw.offset..raw.offset + raw.length) }
    }

    /// `raw` begins with a chunk header.
    pub(super) fn from_raw(raw: Bytes) -> Self {
        Self { raw }
    }

    /// The chunk type.
    #[must_use]
    pub fn ty(&self) -> u8 {
        self.raw[0]
    }

    /// The chunk flags.
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.raw[1]
    }

    /// The bytes after the chunk header, without padding.
    #[must_use]
    pub fn value(&self) -> Bytes {
        self.raw.slice(CHUNK_HEADER_LEN..)
    }

    /// The whole chunk without padding, as "Unrecognized Chunk Type" returns it (§3.3.10.6).
    #[must_use]
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The action that the type's upper bits ask for.
    #[must_use]
    pub fn action(&self) -> UnknownAction {
        UnknownAction::of_chunk(self.ty())
    }
}
