//! Credentials of whoever asks a relay: the signatures of its requests, and the relay's challenges
//! (RFC 8489 §9.2).

use turn_types::stun::attribute::{ErrorCode, Nonce, Realm, Username};
use turn_types::stun::message::{IntegrityKey, Message, MessageWriteVec};
use turn_types::stun::prelude::*;
use zeroize::Zeroizing;

use crate::message::{add, challenge, long_term_key, sign};

/// Maximum number of consecutive answers 438 (Stale Nonce) that are followed.
const STALE_MAX: u32 = 3;

/// The user's name and password, and the relay's last challenge.
pub(crate) struct Credentials {
    user: String,
    password: Zeroizing<String>,
    /// `None` before the first challenge: requests are not signed.
    auth: Option<Auth>,
    stale_nonces: u32,
}

struct Auth {
    realm: String,
    nonce: String,
    key: IntegrityKey,
}

impl Credentials {
    pub(crate) fn new(user: &str, password: &str) -> Credentials {
        Credentials {
            user: user.to_owned(),
            password: Zeroizing::new(password.to_owned()),
            auth: None,
            stale_nonces: 0,
        }
    }

    pub(crate) fn user(&self) -> &str {
        &self.user
    }

    /// Forgets the relay's challenge.
    pub(crate) fn reset(&mut self) {
        self.auth = None;
        self.stale_nonces = 0;
    }

    /// Ends a request: its bytes, and true if it is signed.
    pub(crate) fn finish(&self, mut message: MessageWriteVec) -> (Vec<u8>, bool) {
        let Some(auth) = &self.auth else { return (message.finish(), false) };
        // Too long a name is left out, and refused by the relay.
        Username::new(&self.user).iter().for_each(|a| add(&mut message, a));
        Realm::new(&auth.realm).iter().for_each(|a| add(&mut message, a));
        Nonce::new(&auth.nonce).iter().for_each(|a| add(&mut message, a));
        (sign(message, &auth.key), true)
    }

    /// True if the answer is signed with our key.
    pub(crate) fn prove(&self, answer: &Message<'_>) -> bool {
        let proves = |auth: &Auth| answer.validate_integrity_with_key(&auth.key).is_ok();
        self.auth.as_ref().is_some_and(proves)
    }

    /// The relay accepted a request: its nonce is fresh.
    pub(crate) fn accepted(&mut self) {
        self.stale_nonces = 0;
    }

    /// Takes a new challenge from an error answer; false if there is none, or it is no reason to
    /// ask again. `signed` says if the request was signed.
    pub(crate) fn renew(&mut self, answer: &Message<'_>, signed: bool) -> bool {
        let code = answer.attribute::<ErrorCode>().map_or(0, |e| e.code());
        let renew = match code {
            ErrorCode::UNAUTHORIZED => !signed,
            ErrorCode::STALE_NONCE => self.stale_nonces < STALE_MAX,
            _ => false,
        };
        if !renew {
            return false;
        }
        let Some((realm, nonce)) = challenge(answer) else { return false };
        self.stale_nonces += 1;
        let key = long_term_key(&self.user, &self.password, &realm);
        self.auth = Some(Auth { realm, nonce, key });
        true
    }
}
