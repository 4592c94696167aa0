//! Reads arbitrary bytes as a frame of a transfer, of either side. What is read reads the same when
//! it is written again, and the name of a file stays inside its directory and shows as itself.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| manypath_files::testing::fuzz_frame(bytes));
