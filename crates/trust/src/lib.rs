//! Whom an end of a transfer trusts, without sockets and without a clock.
//!
//! - [`Fingerprint`] names a public key.

mod fingerprint;

pub use fingerprint::{Fingerprint, FingerprintError};
