//! The manypath command.
fn main() {}
