//! Keys from a secret that both ends have (draft-ietf-tsvwg-sctp-dtls-chunk, method 0).
//!
//! The draft leaves open how the keys of an association come from the secret. Here they are
//! expanded from it with HKDF (RFC 5869), and depend on what both ends chose at random for this
//! association: tie breakers and verification tags. No two associations have the same keys.
//!
//! No messages are exchanged. An end replaces its keys by using those of the next epoch; the peer,
//! which has them ready, follows as soon as it sees that. As everything comes from one secret, new
//! keys keep a key from sealing too much; they do not keep old traffic secret once the secret is
//! known, as those of TLS do.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use hkdf::Hkdf;
use manypath_dtls::manage::{
    Agreement, KeyAction, KeyManagement, KeySession, METHOD_PRE_SHARED, Peer, PeerIdentity, Role,
    Roles,
};
use manypath_dtls::{
    CipherSuite, Direction, FIRST_EPOCH, KeyKind, KeyMaterial, KeyRole, OpeningKeys, RecordCipher,
    SealingKeys, aws_lc, exporter_context,
};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::key_log::{KeyLog, chunk_keys};

/// The least length of a secret, in bytes.
pub const MIN_SECRET_LEN: usize = 16;

/// A secret that is too short to protect anything.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SecretTooShort;

impl fmt::Display for SecretTooShort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a shared key has at least {MIN_SECRET_LEN} random bytes; it is no password")
    }
}

impl std::error::Error for SecretTooShort {}

/// Key management with a secret that both ends have.
#[derive(Clone)]
pub struct SharedKey {
    secret: Hkdf<Sha256>,
    suite: CipherSuite,
    key_log: Option<Arc<dyn KeyLog>>,
}

/// The secret is not printed.
impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedKey").field("suite", &self.suite).finish_non_exhaustive()
    }
}

impl SharedKey {
    /// From a secret of random bytes, the same at both ends; AES-128-GCM.
    ///
    /// # Errors
    /// If it has less than [`MIN_SECRET_LEN`] bytes.
    pub fn new(secret: &[u8]) -> Result<SharedKey, SecretTooShort> {
        if secret.len() < MIN_SECRET_LEN {
            return Err(SecretTooShort);
        }
        let secret = Hkdf::new(Some(b"manypath shared key"), secret);
        Ok(SharedKey { secret, suite: CipherSuite::Aes128Gcm, key_log: None })
    }

    /// From random numbers of the operating system: for two ends in one program, or to be given to
    /// the other end by a safe way.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn random() -> Result<SharedKey, getrandom::Error> {
        let mut secret = Zeroizing::new([0; 32]);
        getrandom::fill(&mut *secret)?;
        Ok(SharedKey::new(&*secret).expect("long enough"))
    }

    /// The same with another cipher suite, which must be that of the other end.
    #[must_use]
    pub fn with_suite(self, suite: CipherSuite) -> SharedKey {
        SharedKey { suite, ..self }
    }

    /// Has the keys of associations written to a log, for tools that decrypt captures.
    #[must_use]
    pub fn log_keys(self, log: Arc<dyn KeyLog>) -> SharedKey {
        SharedKey { key_log: Some(log), ..self }
    }
}

impl KeyManagement for SharedKey {
    fn methods(&self) -> &[u8] {
        &[METHOD_PRE_SHARED]
    }

    fn roles(&self, _begins: bool) -> Roles {
        Roles::BOTH
    }

    fn begin(&self, agreement: Agreement) -> Box<dyn KeySession> {
        let mut session = Session {
            key: self.clone(),
            agreement,
            epoch: FIRST_EPOCH,
            opened: None,
            actions: VecDeque::new(),
        };
        session.open_with(FIRST_EPOCH);
        session.open_with(FIRST_EPOCH + 1);
        session.seal_with(FIRST_EPOCH);
        Box::new(session)
    }
}

/// The keys of one association. Those of the peer's next epoch are always installed.
#[derive(Debug)]
struct Session {
    key: SharedKey,
    agreement: Agreement,
    /// The epoch of the keys that seal.
    epoch: u64,
    /// The peer's newest epoch, once one of its records was opened.
    opened: Option<u64>,
    actions: VecDeque<KeyAction>,
}

impl Session {
    fn expand(&self, purpose: &[u8], context: &[u8], key: &mut [u8]) {
        let (client, server) = self.agreement.tags;
        let (client, server) = (client.to_be_bytes(), server.to_be_bytes());
        let info: [&[u8]; 4] = [purpose, &client, &server, context];
        self.key.secret.expand_multi_info(&info, key).expect("far below 255 hashes");
    }

    /// The cipher and the initialization vector of what an end seals in an epoch.
    fn cipher(&self, epoch: u64, sealer: Role) -> (Box<dyn RecordCipher>, [u8; 12]) {
        let Agreement { client_parameter, server_parameter, .. } = &self.agreement;
        let direction = match sealer {
            Role::Client => Direction::Client,
            Role::Server => Direction::Server,
        };
        let export = |kind, key: &mut [u8]| {
            let context = exporter_context(
                direction,
                KeyRole::Primary,
                kind,
                client_parameter,
                server_parameter,
            );
            let purpose = [b"record ".as_slice(), &epoch.to_be_bytes()].concat();
            self.expand(&purpose, &context, key);
        };
        let suite = self.key.suite;
        let empty = || vec![0; suite.key_len()];
        let mut material = KeyMaterial { key: empty(), sequence_number_key: empty(), iv: [0; 12] };
        export(KeyKind::Key, &mut material.key);
        export(KeyKind::SequenceNumberKey, &mut material.sequence_number_key);
        export(KeyKind::Iv, &mut material.iv);
        if let Some(log) = &self.key.key_log {
            log.line(&chunk_keys(&self.agreement, sealer, epoch, suite, &material));
        }
        let cipher = aws_lc::cipher(suite, &material).expect("keys of the right length");
        (cipher, material.iv)
    }

    fn open_with(&mut self, epoch: u64) {
        let peer = match self.agreement.role {
            Role::Client => Role::Server,
            Role::Server => Role::Client,
        };
        let (cipher, iv) = self.cipher(epoch, peer);
        self.actions.push_back(KeyAction::OpenWith(OpeningKeys::new(cipher, iv, epoch)));
    }

    fn seal_with(&mut self, epoch: u64) {
        let (cipher, iv) = self.cipher(epoch, self.agreement.role);
        let keys = SealingKeys::new(self.key.suite, cipher, iv, epoch);
        self.actions.push_back(KeyAction::SealWith(keys));
    }

    /// Seals with the keys of the next epoch from now on.
    fn advance(&mut self) {
        self.epoch += 1;
        self.open_with(self.epoch + 1);
        self.seal_with(self.epoch);
    }
}

impl KeySession for Session {
    /// There are none in this method.
    fn handle_message(&mut self, _message: Bytes) {}

    fn opened(&mut self, epoch: u64) {
        if self.opened.is_none() {
            let Agreement { client_parameter, server_parameter, .. } = &self.agreement;
            let context = [&client_parameter[..], &server_parameter[..]].concat();
            let mut binding = [0; 32];
            self.expand(b"binding", &context, &mut binding);
            let peer = Peer::new(PeerIdentity::SharedKey, binding);
            self.actions.push_back(KeyAction::Authenticated(peer));
        }
        self.opened = self.opened.max(Some(epoch));
        if epoch > self.epoch {
            self.advance();
        }
    }

    /// Only after the peer has used the keys of this epoch: then it has those of the next.
    fn rekey(&mut self) {
        if self.opened == Some(self.epoch) {
            self.advance();
        }
    }

    fn poll(&mut self) -> Option<KeyAction> {
        self.actions.pop_front()
    }
}

#[cfg(test)]
mod tests {
    /// The state of HKDF is one of this hash: a shared key is erased with it.
    #[test]
    fn a_shared_key_is_erased_when_it_is_dropped() {
        fn is_erased<T: zeroize::ZeroizeOnDrop>() {}
        is_erased::<sha2::Sha256>();
    }
}
