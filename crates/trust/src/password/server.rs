//! The end that answers, and proves only to a client that has proved.

use std::fmt;

use rand_core_06::{CryptoRng, RngCore};

use super::keys::{Exchange, Proofs, Role, identities, key, library_password, share};
use super::random::System;
use super::{Kind, Message, Password, PasswordError};

/// A server that waits for the client's proof.
pub struct Server(Proofs);

impl Server {
    /// Answers a client's first message on the channel with this binding. The message is for the
    /// client. Ask [`Attempts`](crate::Attempts) first.
    ///
    /// # Errors
    /// [`PasswordError::Malformed`] or [`PasswordError::NoRandomness`].
    pub fn answer(
        password: &Password,
        binding: &[u8; 32],
        message: &[u8],
    ) -> Result<(Server, Message), PasswordError> {
        Server::answer_by(password, binding, message, System::default())
    }

    /// Answers with random numbers that this system gives, if it gives any.
    pub(super) fn answer_by(
        password: &Password,
        binding: &[u8; 32],
        message: &[u8],
        mut random: System,
    ) -> Result<(Server, Message), PasswordError> {
        let answered = Server::answer_with(password, binding, message, &mut random)?;
        random.check()?;
        Ok(answered)
    }

    pub(super) fn answer_with<R: RngCore + CryptoRng>(
        password: &Password,
        binding: &[u8; 32],
        message: &[u8],
        random: &mut R,
    ) -> Result<(Server, Message), PasswordError> {
        let theirs = Kind::ClientShare.content(message)?;
        let (client, server) = identities(binding);
        let (exchange, message) =
            Exchange::start_b_with_rng(&library_password(password), &client, &server, random);
        let share = share(&message)?;
        let key = key(exchange, Role::Client, theirs)?;
        let proofs = Proofs::new(&key, Role::Server, binding, (theirs, &share))?;
        Ok((Server(proofs), Kind::ServerShare.message(&share)))
    }

    /// Handles the client's proof. If it is right, the client has the password, and the channel
    /// ends at it. The message is for the client, and only made then.
    ///
    /// # Errors
    /// [`PasswordError::Wrong`] or [`PasswordError::Malformed`]: one wrong attempt.
    pub fn finish(self, message: &[u8]) -> Result<Message, PasswordError> {
        let proof = Kind::ServerProof.message(self.0.own());
        self.0.check(Kind::ClientProof.content(message)?)?;
        Ok(proof)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Server(..)")
    }
}
