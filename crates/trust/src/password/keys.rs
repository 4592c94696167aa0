//! The parts that both roles share: what they give to the library, and the proofs.

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};
use spake2::{Ed25519Group, Identity, Spake2};
use zeroize::Zeroizing;

use super::{ELEMENT_LEN, Password, PasswordError};

pub(super) type Exchange = Spake2<Ed25519Group>;

/// Separates this use of a password, and this version of the exchange, from all others.
const LABEL: &[u8] = b"manypath password 1";
/// How the library marks the messages of its roles.
const SIDE_A: u8 = b'A';
const SIDE_B: u8 = b'B';

/// A role in the exchange.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Client,
    Server,
}

impl Role {
    fn name(self) -> &'static [u8] {
        match self {
            Role::Client => b"client",
            Role::Server => b"server",
        }
    }

    fn side(self) -> u8 {
        match self {
            Role::Client => SIDE_A,
            Role::Server => SIDE_B,
        }
    }

    fn identity(self, binding: &[u8; 32]) -> Identity {
        Identity::new(&[LABEL, b" ", self.name(), b" ", binding].concat())
    }
}

/// The identities of client and server. Both name the channel.
pub(super) fn identities(binding: &[u8; 32]) -> (Identity, Identity) {
    (Role::Client.identity(binding), Role::Server.identity(binding))
}

/// The password for the library, which keeps copies of it that it does not erase: a hash, so that
/// the password itself, which a user may use elsewhere, is in none of them.
pub(super) fn library_password(password: &Password) -> spake2::Password {
    let digest = Sha256::new().chain_update(LABEL).chain_update(password.as_bytes()).finalize();
    spake2::Password::new(Zeroizing::new(<[u8; 32]>::from(digest)))
}

/// The share in the message that the library made.
pub(super) fn share(message: &[u8]) -> Result<[u8; ELEMENT_LEN], PasswordError> {
    message
        .split_first()
        .and_then(|(_, share)| share.try_into().ok())
        .ok_or(PasswordError::Malformed)
}

/// The key of the exchange, from the share of the `peer`.
pub(super) fn key(
    exchange: Exchange,
    peer: Role,
    share: &[u8; ELEMENT_LEN],
) -> Result<Zeroizing<Vec<u8>>, PasswordError> {
    let message = [&[peer.side()][..], share].concat();
    exchange.finish(&message).map(Zeroizing::new).map_err(|_| PasswordError::Malformed)
}

/// The computation of a proof, still to be finished or compared.
fn mac(
    key: &[u8],
    prover: Role,
    binding: &[u8; 32],
    shares: (&[u8; ELEMENT_LEN], &[u8; ELEMENT_LEN]),
) -> Result<Hmac<Sha256>, PasswordError> {
    // HMAC takes keys of any length, so this never fails.
    let mac = Hmac::<Sha256>::new_from_slice(key).map_err(|_| PasswordError::Malformed)?;
    Ok(mac
        .chain_update(LABEL)
        .chain_update(prover.name())
        .chain_update(binding)
        .chain_update(shares.0)
        .chain_update(shares.1))
}

/// The proofs of both roles, still secret.
pub(super) struct Proofs {
    own: Zeroizing<[u8; ELEMENT_LEN]>,
    peer: Hmac<Sha256>,
}

impl Proofs {
    /// Makes the proofs of `own` and of the other role. The client's share comes first.
    pub(super) fn new(
        key: &[u8],
        own: Role,
        binding: &[u8; 32],
        shares: (&[u8; ELEMENT_LEN], &[u8; ELEMENT_LEN]),
    ) -> Result<Proofs, PasswordError> {
        let peer = match own {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        };
        let own = mac(key, own, binding, shares)?.finalize().into_bytes();
        Ok(Proofs { own: Zeroizing::new(own.into()), peer: mac(key, peer, binding, shares)? })
    }

    pub(super) fn own(&self) -> &[u8; ELEMENT_LEN] {
        &self.own
    }

    /// Compares in a time that does not depend on the content.
    pub(super) fn check(self, shown: &[u8; ELEMENT_LEN]) -> Result<(), PasswordError> {
        self.peer.verify_slice(shown).map_err(|_| PasswordError::Wrong)
    }
}
