//! Memory that held payloads keep alive.
//!
//! A payload is a slice of its packet, and the peer chooses the sizes of both. So a few bytes could
//! keep a packet of 64 KiB alive.

use bytes::Bytes;

/// Held payloads shorter than this, in bytes, are copied.
pub(super) const COPY_BELOW: usize = 512;

/// Most ready messages whose payloads are not copied.
pub(super) const READY_UNCOPIED: usize = 1024;

/// Longest packet, in bytes, that a small ready payload may keep alive while few messages are
/// ready. Together they keep at most 4 MiB.
pub(super) const READY_PACKET: usize = 4096;

/// Decides which payloads are copied out of their packet.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Retain {
    /// Length of the packet of the current chunks, in bytes; 0 if unknown.
    packet: usize,
    /// Every payload is copied.
    all: bool,
}

impl Retain {
    pub(super) fn begin_packet(&mut self, bytes: usize) {
        self.packet = bytes;
    }

    pub(super) fn copy_all(&mut self, all: bool) {
        self.all = all;
    }

    /// The payload to hold. It is copied if it is short, or less than half of its packet.
    pub(super) fn held(self, payload: Bytes) -> Bytes {
        if self.all || payload.len() < COPY_BELOW || self.is_minor(&payload) {
            Bytes::copy_from_slice(&payload)
        } else {
            payload
        }
    }

    /// The payload of a ready message, with `before` ready messages before it. Most are popped at
    /// once, so copies would be wasted.
    pub(super) fn ready(self, payload: Bytes, before: usize) -> Bytes {
        let large = self.packet > READY_PACKET && self.is_minor(&payload);
        if self.all || large || before >= READY_UNCOPIED { self.held(payload) } else { payload }
    }

    /// True if the payload is less than half of its packet.
    fn is_minor(self, payload: &Bytes) -> bool {
        2 * payload.len() < self.packet
    }
}
