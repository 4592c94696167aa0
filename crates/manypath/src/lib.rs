//! manypath for applications.
