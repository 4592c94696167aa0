//! Proof of a short password between two ends of an encrypted channel that does not authenticate
//! them.
//!
//! SPAKE2 (Abdalla and Pointcheval, RSA 2005; compare RFC 9382) in the variant of the crate
//! `spake2`, with the confirmation of keys of RFC 9382, section 4, bound to the channel:
//!
//! ```text
//! client                                             server
//! 1, X = x B + w M                    ──────────►
//!                                     ◄──────────    2, Y = y B + w N
//! 3, HMAC(K, "client", binding, X, Y) ──────────►    compares; ends the exchange if it is wrong
//!                                     ◄──────────    4, HMAC(K, "server", binding, X, Y)
//! ```
//!
//! `w` is made from the password. `K` is a hash of the password, of both roles with the binding, of
//! X, Y and x y B. Each message is one byte for its kind and 32 bytes.
//!
//! - A man in the middle has two channels with two bindings. If he passes messages on, both ends
//!   refuse. If he takes part himself, each message that he makes commits him to one password; a
//!   recording shows no other to be right or wrong.
//! - The client proves first, so the server tells a client that guesses no more than yes or no. The
//!   client's proof tells a server that guesses no more either.
//! - Who tries all passwords, one in each exchange, is stopped by [`Attempts`](crate::Attempts).
//!
//! An object takes each message once and is gone afterwards, so a second guess needs a new
//! exchange.

mod client;
mod keys;
mod random;
mod server;
#[cfg(feature = "testing")]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::fmt;

use crate::Token;

pub use client::{Client, ClientProof};
pub use server::Server;

/// Length of each message in bytes.
pub const MESSAGE_LEN: usize = 1 + ELEMENT_LEN;
/// A message of the exchange.
pub type Message = [u8; MESSAGE_LEN];

/// Length in bytes of a point and of a proof.
const ELEMENT_LEN: usize = 32;

/// A password that both ends know. Erased from memory when it is dropped.
#[derive(Clone)]
pub struct Password(Token);

/// Why a proof failed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PasswordError {
    /// The other end has another password, or its channel is another one: somebody is in between.
    #[error("the password is wrong")]
    Wrong,
    /// The message is none of this exchange, or out of order.
    #[error("a message of the password exchange is malformed")]
    Malformed,
    /// The system gives no random numbers.
    #[error("the system gives no random numbers")]
    NoRandomness,
}

/// A password is empty, or longer than [`Password::LEN_MAX`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a password has 1 to {} bytes", Password::LEN_MAX)]
pub struct PasswordLength;

impl Password {
    /// Longest password in bytes.
    pub const LEN_MAX: usize = 255;

    /// The password with these bytes.
    ///
    /// # Errors
    /// If there are none, or more than [`Password::LEN_MAX`].
    pub fn new(bytes: impl Into<Token>) -> Result<Password, PasswordLength> {
        let bytes = bytes.into();
        if (1..=Password::LEN_MAX).contains(&bytes.len()) {
            Ok(Password(bytes))
        } else {
            Err(PasswordLength)
        }
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Without the password.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// The kinds of messages.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    ClientShare = 1,
    ServerShare = 2,
    ClientProof = 3,
    ServerProof = 4,
}

impl Kind {
    fn message(self, content: &[u8; ELEMENT_LEN]) -> Message {
        let mut message = [self as u8; MESSAGE_LEN];
        message[1..].copy_from_slice(content);
        message
    }

    /// The content of a message of this kind.
    fn content(self, message: &[u8]) -> Result<&[u8; ELEMENT_LEN], PasswordError> {
        match message.split_first() {
            Some((&kind, content)) if kind == self as u8 => {
                content.try_into().map_err(|_| PasswordError::Malformed)
            }
            _ => Err(PasswordError::Malformed),
        }
    }
}
