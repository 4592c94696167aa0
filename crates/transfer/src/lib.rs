//! Files and directories over an association, at both ends.
//!
//! `docs/protocol-transfer.md` describes the protocol, and `manypath_files` has its frames, names
//! and disks.

pub mod messages;
pub mod password;
pub mod stall;
