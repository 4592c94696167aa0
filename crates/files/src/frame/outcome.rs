//! The outcome of one file: its byte, its name in results, and the remedy for a failure.

/// Success, or the reason why a file was not stored.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    /// Under its final name, its SHA-256 verified.
    Stored = 0,
    /// There is something of that name already.
    Exists = 1,
    /// It could not be created.
    CannotCreate = 2,
    /// No space left.
    DiskFull = 3,
    /// Writing failed for another reason.
    WriteFailed = 4,
    /// The bytes that arrived are not those that were read.
    DigestMismatch = 5,
    /// The sender gave it up.
    Abandoned = 6,
    /// Larger than the receiver accepts, by itself or with what came before.
    TooLarge = 7,
    /// The receiver, or its file system, does not accept such a name.
    NameRefused = 8,
}

impl Outcome {
    pub(super) const ALL: [Outcome; 9] = [
        Outcome::Stored,
        Outcome::Exists,
        Outcome::CannotCreate,
        Outcome::DiskFull,
        Outcome::WriteFailed,
        Outcome::DigestMismatch,
        Outcome::Abandoned,
        Outcome::TooLarge,
        Outcome::NameRefused,
    ];

    /// The outcome with this byte in a frame.
    pub(super) fn from_byte(byte: u8) -> Option<Outcome> {
        Outcome::ALL.into_iter().find(|o| *o as u8 == byte)
    }

    /// A remedy for the sender's user.
    pub const fn hint(self) -> Option<&'static str> {
        match self {
            Outcome::Exists => Some("give the receiver --overwrite, or another --dir"),
            Outcome::CannotCreate => Some("look at the receiver's --dir and its permissions"),
            Outcome::DiskFull => Some("free space at the receiver, or give it another --dir"),
            Outcome::DigestMismatch => Some("send it again"),
            Outcome::TooLarge => Some("give the receiver a larger --max-size"),
            Outcome::NameRefused => {
                Some("rename it; for one that begins with a dot, give the receiver --hidden")
            }
            Outcome::Stored | Outcome::WriteFailed | Outcome::Abandoned => None,
        }
    }

    /// The name used in JSON results.
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Stored => "stored",
            Outcome::Exists => "exists",
            Outcome::CannotCreate => "cannot_create",
            Outcome::DiskFull => "disk_full",
            Outcome::WriteFailed => "write_failed",
            Outcome::DigestMismatch => "digest_mismatch",
            Outcome::Abandoned => "abandoned",
            Outcome::TooLarge => "too_large",
            Outcome::NameRefused => "name_refused",
        }
    }
}
