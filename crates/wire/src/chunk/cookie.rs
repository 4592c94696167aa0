//! COOKIE ECHO and COOKIE ACK (RFC 9260 §3.3.11, §3.3.12).
//!
//! ```text
//!  0               1               2               3
//! +---------------+---------------+---------------+---------------+
//! |   type = 10   |   flags = 0   |            length             |
//! +---------------+---------------+---------------+---------------+
//! | the state cookie's value, as received in the INIT ACK …       |
//! +---------------+---------------+---------------+---------------+
//! ```
//! COOKIE ACK (type 11) is a chunk header and nothing else.

use super::chunk_type;
use crate::builder::PacketBuilder;

impl PacketBuilder<'_> {
    /// Appends a COOKIE ECHO chunk. It must be the first chunk of its packet (§5.1).
    pub fn push_cookie_echo(&mut self, cookie: &[u8]) -> bool {
        self.push_chunk(chunk_type::COOKIE_ECHO, 0, cookie)
    }

    /// Appends a COOKIE ACK chunk. It must be the first chunk of its packet (§5.1).
    pub fn push_cookie_ack(&mut self) -> bool {
        self.push_chunk(chunk_type::COOKIE_ACK, 0, &[])
    }
}
