//! Whom an end of a transfer trusts, without sockets and without a clock.
//!
//! - [`Fingerprint`] names a public key.
//! - [`password`] proves a short password to the other end, and [`Attempts`] limits guesses.

mod attempts;
mod fingerprint;
pub mod password;
#[cfg(feature = "testing")]
pub mod testing;

pub use attempts::{Attempt, Attempts};
pub use fingerprint::{Fingerprint, FingerprintError};
