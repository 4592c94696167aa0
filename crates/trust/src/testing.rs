//! The function that fuzzers run.

pub use crate::password::testing::fuzz_password;
