//! Runs arbitrary bytes as a script of packets, commands and time against an endpoint. Nothing may
//! panic, and no invariant may break.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| manypath_proto::testing::fuzz::run(bytes));
