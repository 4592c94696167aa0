//! SACK PATH: a private chunk that says which path SACKs take (Zhang et al., "A transport layer
//! approach for improving end-to-end performance and robustness using redundant paths", section
//! 3.5.2). No RFC has it.

use super::{CHUNK_HEADER_LEN, RawChunk, chunk_type};
use crate::builder::PacketBuilder;

/// Length of a SACK PATH chunk in bytes.
pub const SACK_PATH_LEN: usize = CHUNK_HEADER_LEN + 4;

/// The flag that says that the path has failed.
const FLAG_FAILED: u8 = 1;

/// Without the F bit: all SACKs of its sender take the path on which it arrives, until one with a
/// later serial number arrives on another. It precedes the SACK of its packet.
///
/// With the F bit: the path that its receiver chose with that serial number has failed, and nothing
/// it acknowledges arrives. It stands alone in its packet.
///
/// Its type asks a receiver that does not know it to skip it in silence.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |  type = 0xb6  |   flags . . F |           length = 8          |
/// +---------------+---------------+---------------+---------------+
/// |                         serial number                         |
/// +---------------+---------------+---------------+---------------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SackPath {
    /// Counts the changes of the path, modulo 2^32.
    pub serial: u32,
    /// That path has failed.
    pub failed: bool,
}

impl SackPath {
    /// `None` if the length is not right: the type is private, and someone else's may look
    /// different.
    pub(super) fn decode(raw: &RawChunk<'_>) -> Option<Self> {
        if raw.length != SACK_PATH_LEN {
            return None;
        }
        let fixed: &[u8; 4] = raw.fixed().ok()?;
        let failed = raw.flags & FLAG_FAILED != 0;
        Some(Self { serial: u32::from_be_bytes(*fixed), failed })
    }
}

impl PacketBuilder<'_> {
    /// Appends a SACK PATH chunk.
    pub fn push_sack_path(&mut self, chunk: SackPath) -> bool {
        let flags = if chunk.failed { FLAG_FAILED } else { 0 };
        self.push_parts(chunk_type::SACK_PATH, flags, chunk.serial.to_be_bytes(), &[])
    }
}
