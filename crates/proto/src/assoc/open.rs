//! Opening: from INIT to COOKIE ACK (RFC 9260 §5), and what both ends agreed on.

pub(super) mod agreed;
pub(crate) mod cookie;
pub(super) mod ends;
pub(super) mod existing;
pub(super) mod handshake;
pub(super) mod init;
