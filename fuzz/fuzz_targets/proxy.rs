//! Reads arbitrary bytes as a frame and as a datagram of the proxy. What is read reads the same
//! when it is written again.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| manypath_proxy::testing::fuzz_frames(bytes));
