//! The transfer of files: protocol, reading, writing, and both ends of it.
//! `docs/protocol-transfer.md` describes the protocol.

pub(crate) mod messages;
pub(crate) mod password;
pub(crate) mod receiver;
pub(crate) mod report;
pub(crate) mod sender;
pub(crate) mod source;
pub(crate) mod stall;

pub(crate) use manypath_files::{frame, relative, sink};
