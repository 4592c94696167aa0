//! Reading the fields of a frame, and the errors of a frame.

use std::fmt;

use super::Kind;
use crate::relative::NameError;

/// An entry whose name is not accepted: it cannot be stored, and the others can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unnamed {
    /// The index of the entry.
    pub index: u32,
    /// File or directory.
    pub kind: Kind,
    /// Length of the content in bytes, or [`SIZE_UNKNOWN`](super::SIZE_UNKNOWN).
    pub size: u64,
    /// The name, for people: with escapes.
    pub name: String,
    /// The reason.
    pub why: NameError,
}

/// Why a frame is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// Shorter than its type requires, or longer.
    Length,
    /// The first frame does not begin as this protocol does.
    Magic,
    /// An unknown type, or one that is not allowed from this side.
    Type(u8),
    /// An unknown value in a field.
    Value(&'static str),
    /// The name of a file is not acceptable. The rest of the frame is.
    Name(Unnamed),
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FrameError::Length => f.write_str("a frame has the wrong length"),
            FrameError::Magic => f.write_str("the peer does not speak the transfer protocol"),
            FrameError::Type(t) => write!(f, "unknown frame type {t}"),
            FrameError::Value(field) => write!(f, "unknown value in the field {field}"),
            FrameError::Name(unnamed) => {
                write!(f, "the name {} is refused: {}", unnamed.name, unnamed.why)
            }
        }
    }
}

/// Reads big-endian fields from the front.
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// The next `n` bytes.
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], FrameError> {
        let (head, rest) = self.0.split_at_checked(n).ok_or(FrameError::Length)?;
        self.0 = rest;
        Ok(head)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], FrameError> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or(FrameError::Length)?;
        self.0 = rest;
        Ok(*head)
    }

    /// A byte.
    pub fn u8(&mut self) -> Result<u8, FrameError> {
        Ok(self.array::<1>()?[0])
    }

    /// Two bytes.
    pub fn u16(&mut self) -> Result<u16, FrameError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32, FrameError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64, FrameError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// Everything that is left.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// Fails if anything is left.
    pub fn end(&self) -> Result<(), FrameError> {
        if self.0.is_empty() { Ok(()) } else { Err(FrameError::Length) }
    }
}
