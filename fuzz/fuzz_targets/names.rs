//! Reads arbitrary bytes as a message of multicast DNS, and gives them to a receiver that announces
//! itself and to a sender that looks for one. What is read reads the same when it is written again.

#![no_main]

use std::time::Instant;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| manypath_names::testing::fuzz_message(bytes, Instant::now()));
