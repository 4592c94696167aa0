//! Whom an end of a transfer trusts, without sockets and without a clock.
//!
//! - [`Fingerprint`] names a public key, and an [`AllowList`] those that may send.
//! - [`Identity`] is the private key in a file.
//! - [`password`] proves a short password to the other end, and [`Attempts`] limits guesses.

mod allow;
mod attempts;
mod fingerprint;
mod identity;
pub mod password;
#[cfg(feature = "testing")]
pub mod testing;

pub use allow::{AllowError, AllowList};
pub use attempts::{Attempt, Attempts};
pub use fingerprint::{Fingerprint, FingerprintError};
pub use identity::{Identity, IdentityError, IdentityKey};
