//! The transfer of files: protocol, reading, writing, and both ends of it.
//! `docs/protocol-transfer.md` describes the protocol.

pub(crate) mod messages;
pub(crate) mod receiver;
pub(crate) mod report;
pub(crate) mod sender;
pub(crate) mod source;
pub(crate) mod stall;

pub(crate) use manypath_files::{frame, relative, sink};

/// True if transfers are neither encrypted nor authenticated. All are, until transfers are
/// encrypted.
pub(crate) const INSECURE: bool = true;

/// The warning of `send` and `recv` until transfers are encrypted.
pub(crate) const NOT_ENCRYPTED: &str =
    "Note: this transfer is NOT encrypted; anyone who can capture the traffic can read it.";
