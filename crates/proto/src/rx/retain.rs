//! The memory that a kept payload keeps alive.
//!
//! A payload is a slice of its packet. The peer chooses the sizes of both, so that a few bytes
//! could keep a packet of 64 KiB for as long as they wait.

use bytes::Bytes;

/// A payload shorter than this, in bytes, is copied if it is held.
pub(super) const COPY_BELOW: usize = 512;

/// Messages that may be ready and not popped before payloads are copied here too.
pub(super) const READY_UNCOPIED: usize = 1024;

/// Longest packet, in bytes, of which ready messages may be a small part while they are few:
/// together they keep at most 4 MiB.
pub(super) const READY_PACKET: usize = 4096;

/// Decides which payloads leave their packet.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Retain {
    /// Length of the packet that the chunks at hand came in, in bytes; 0 is unknown.
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

    /// The payload as it is held: it keeps less than twice its own size, or it is copied.
    pub(super) fn held(self, payload: Bytes) -> Bytes {
        if self.all || payload.len() < COPY_BELOW || self.is_minor(&payload) {
            Bytes::copy_from_slice(&payload)
        } else {
            payload
        }
    }

    /// The payload of a ready message, with `before` messages ready before it. Most are popped at
    /// once, and copies would be wasted.
    pub(super) fn ready(self, payload: Bytes, before: usize) -> Bytes {
        let large = self.packet > READY_PACKET && self.is_minor(&payload);
        if self.all || large || before >= READY_UNCOPIED { self.held(payload) } else { payload }
    }

    /// Less than half of its packet.
    fn is_minor(self, payload: &Bytes) -> bool {
        2 * payload.len() < self.packet
    }
}
