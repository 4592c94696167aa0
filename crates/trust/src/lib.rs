//! Whom an end of a transfer trusts, without sockets and without a clock.
//!
//! - [`Fingerprint`] names a public key, and an [`AllowList`] those that may send.
//! - [`Identity`] is the private key in a file.
//! - [`password`] proves a short password to the other end, and [`Attempts`] limits guesses.
//! - An [`Erased`] secret, such as a [`Token`], does not stay in memory.
//! - [`Code`] is a short password that a person reads on one screen and types on another.

#[cfg(feature = "transfers")]
mod allow;
#[cfg(feature = "transfers")]
mod attempts;
#[cfg(feature = "transfers")]
mod code;
mod erased;
mod fingerprint;
#[cfg(feature = "transfers")]
mod identity;
#[cfg(feature = "transfers")]
pub mod password;
#[cfg(feature = "testing")]
pub mod testing;

#[cfg(feature = "transfers")]
pub use allow::{AllowError, AllowList};
#[cfg(feature = "transfers")]
pub use attempts::{Attempt, Attempts};
#[cfg(feature = "transfers")]
pub use code::{Code, CodeError, NoRandomness, RelayCode, RelayCodeError};
pub use erased::{Erased, Token};
pub use fingerprint::{Fingerprint, FingerprintError};
#[cfg(feature = "transfers")]
pub use identity::{Identity, IdentityError, IdentityKey, create_private};
