//! The function that fuzzers run.

use bytes::Bytes;

use crate::frame::{Datagram, Frame};

/// Reads arbitrary bytes as a frame and as a datagram. What is read reads the same when it is
/// written again.
///
/// # Panics
///
/// If it does not.
pub fn fuzz_frames(bytes: &[u8]) {
    if let Ok(frame) = Frame::decode(bytes) {
        assert_eq!(Frame::decode(&frame.encode()), Ok(frame));
    }
    if let Ok(datagram) = Datagram::decode(&Bytes::copy_from_slice(bytes)) {
        assert_eq!(Datagram::decode(&datagram.encode()), Ok(datagram));
    }
}
