//! Reads arbitrary bytes as a ticket, and as the inside of one. What is read reads the same when it
//! is written again.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| manypath_files::testing::fuzz_ticket(bytes));
