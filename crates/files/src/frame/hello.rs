//! The first frame of a sender, and what a receiver answers to it.

use manypath_trust::Token;

use super::VERSION;
use super::reader::{FrameError, Reader};

const MAGIC: &[u8; 4] = b"MPFT";
/// The most entries that a sender can announce.
pub const ENTRIES_MAX: u32 = SIZES_UNKNOWN - 1;
/// Bits above the number of entries. Receivers that do not know them do not look at that number.
const READS_ACCEPTS: u32 = 1 << 31;
const SIZES_UNKNOWN: u32 = 1 << 30;

/// Introduces a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Protocol version of the sender.
    pub version: u8,
    /// Proof that it may send.
    /// Empty where it was proved before.
    pub token: Token,
    /// How many files and directories it will send, hidden ones of directories not included; at
    /// most [`ENTRIES_MAX`].
    pub entries: u32,
    /// Sum of their sizes in bytes, as far as these are known; for progress, and for refusing a
    /// transfer that is too large.
    pub bytes: u64,
    /// The sender wants to hear what the receiver accepts.
    pub reads_accepts: bool,
    /// The size of a file is not known before its end.
    pub has_unknown_size: bool,
}

impl Hello {
    /// Of a sender of this version.
    pub fn new(token: impl Into<Token>, entries: u32, bytes: u64) -> Hello {
        let (version, token) = (VERSION, token.into());
        Hello { version, token, entries, bytes, reads_accepts: true, has_unknown_size: false }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        let mut entries = self.entries.min(ENTRIES_MAX);
        entries |= if self.reads_accepts { READS_ACCEPTS } else { 0 };
        entries |= if self.has_unknown_size { SIZES_UNKNOWN } else { 0 };
        out.extend(MAGIC);
        out.push(self.version);
        out.push(self.token.len() as u8);
        out.extend(&*self.token);
        out.extend(entries.to_be_bytes());
        out.extend(self.bytes.to_be_bytes());
    }

    /// Reads what follows the type. Of another version's hello only the beginning is known.
    pub(super) fn decode(r: &mut Reader<'_>) -> Result<Hello, FrameError> {
        if r.take(4)? != MAGIC {
            return Err(FrameError::Magic);
        }
        let version = r.u8()?;
        let token_len = r.u8()?;
        let token = r.take(usize::from(token_len))?.into();
        let (entries, bytes) = match version {
            VERSION => (r.u32()?, r.u64()?),
            _ => (0, 0),
        };
        Ok(Hello {
            version,
            token,
            entries: entries & ENTRIES_MAX,
            bytes,
            reads_accepts: entries & READS_ACCEPTS != 0,
            has_unknown_size: entries & SIZES_UNKNOWN != 0,
        })
    }
}

/// The kinds of files that a receiver accepts. One that says so takes files of unknown size, too.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Accepts {
    /// Names with parts that begin with a dot.
    pub hidden: bool,
}

impl Accepts {
    pub(super) fn to_byte(self) -> u8 {
        u8::from(self.hidden)
    }

    /// Bits that are not known yet mean nothing.
    pub(super) fn from_byte(byte: u8) -> Accepts {
        Accepts { hidden: byte & 1 != 0 }
    }
}
