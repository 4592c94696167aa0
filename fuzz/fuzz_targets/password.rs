//! Runs a password exchange in which one message arrives as other bytes. Neither end accepts it
//! unless all messages arrived as they were sent.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| manypath_trust::testing::fuzz_password(bytes));
