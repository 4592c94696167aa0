//! The answer of a receiver to a file that was announced.

use super::reader::{FrameError, Reader};

/// Beginnings in an answer, at most.
pub const BEGINNINGS_MAX: usize = 32;

/// The beginning of a file, as the receiver has it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// Its length in bytes.
    pub length: u64,
    /// Its SHA-256.
    pub sha256: [u8; 32],
}

/// The answer to a file that was announced: it may begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The file's index.
    pub index: u32,
    /// The beginnings that the receiver can go on from, the shortest first; at most
    /// [`BEGINNINGS_MAX`].
    pub beginnings: Vec<Beginning>,
}

impl Ready {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.index.to_be_bytes());
        out.push(self.beginnings.len() as u8);
        for beginning in &self.beginnings {
            out.extend(beginning.length.to_be_bytes());
            out.extend(beginning.sha256);
        }
    }

    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Ready, FrameError> {
        let index = r.u32()?;
        let count = usize::from(r.u8()?);
        if count > BEGINNINGS_MAX {
            return Err(FrameError::Value("beginnings"));
        }
        let mut beginnings: Vec<Beginning> = Vec::with_capacity(count);
        for _ in 0..count {
            let beginning = Beginning { length: r.u64()?, sha256: r.array()? };
            if beginnings.last().is_some_and(|last| last.length >= beginning.length) {
                return Err(FrameError::Value("beginnings"));
            }
            beginnings.push(beginning);
        }
        Ok(Ready { index, beginnings })
    }
}
