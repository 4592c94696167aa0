//! The end that begins the exchange and proves first.

use std::fmt;

use rand_core_06::{CryptoRng, RngCore};

use super::keys::{Exchange, Proofs, Role, identities, key, library_password, share};
use super::random::System;
use super::{ELEMENT_LEN, Kind, Message, Password, PasswordError};

/// A client that waits for the server's share.
pub struct Client {
    exchange: Exchange,
    share: [u8; ELEMENT_LEN],
    binding: [u8; 32],
}

/// A client that has proved the password and waits for the server's proof.
pub struct ClientProof(Proofs);

impl Client {
    /// Begins an exchange on the channel with this binding. The message is for the server.
    ///
    /// # Errors
    /// [`PasswordError::NoRandomness`].
    pub fn start(
        password: &Password,
        binding: &[u8; 32],
    ) -> Result<(Client, Message), PasswordError> {
        Client::start_by(password, binding, System::default())
    }

    /// Begins an exchange with random numbers that this system gives, if it gives any.
    pub(super) fn start_by(
        password: &Password,
        binding: &[u8; 32],
        mut random: System,
    ) -> Result<(Client, Message), PasswordError> {
        let started = Client::start_with(password, binding, &mut random)?;
        random.check()?;
        Ok(started)
    }

    pub(super) fn start_with<R: RngCore + CryptoRng>(
        password: &Password,
        binding: &[u8; 32],
        random: &mut R,
    ) -> Result<(Client, Message), PasswordError> {
        let (client, server) = identities(binding);
        let (exchange, message) =
            Exchange::start_a_with_rng(&library_password(password), &client, &server, random);
        let share = share(&message)?;
        let client = Client { exchange, share, binding: *binding };
        Ok((client, Kind::ClientShare.message(&share)))
    }

    /// Handles the server's share. The message is for the server.
    ///
    /// # Errors
    /// [`PasswordError::Malformed`]. The exchange is over then.
    pub fn answer(self, message: &[u8]) -> Result<(ClientProof, Message), PasswordError> {
        let theirs = Kind::ServerShare.content(message)?;
        let key = key(self.exchange, Role::Server, theirs)?;
        let shares = (&self.share, theirs);
        let proofs = Proofs::new(&key, Role::Client, &self.binding, shares)?;
        let message = Kind::ClientProof.message(proofs.own());
        Ok((ClientProof(proofs), message))
    }
}

impl ClientProof {
    /// Handles the server's proof. If it is right, the server has the password, and the channel
    /// ends at it.
    ///
    /// # Errors
    /// [`PasswordError::Wrong`] or [`PasswordError::Malformed`]. The channel must not be used then.
    pub fn finish(self, message: &[u8]) -> Result<(), PasswordError> {
        self.0.check(Kind::ServerProof.content(message)?)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Client(..)")
    }
}

impl fmt::Debug for ClientProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientProof(..)")
    }
}
