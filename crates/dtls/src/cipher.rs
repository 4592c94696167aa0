//! The work of a library of cryptography for records.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

/// Length of an authentication tag, in bytes; the same in all suites.
pub const TAG_LEN: usize = 16;

/// Length of a nonce and of an initialization vector, in bytes; the same in all suites.
pub const NONCE_LEN: usize = 12;

/// Forged records after which a key must no longer open any, in all suites (RFC 9147 §4.5.3).
pub(crate) const FORGERY_LIMIT: u64 = 1 << 36;

/// The cipher suites of the DTLS chunk (draft, section "Mandatory-to-Implement Cipher Suites").
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CipherSuite {
    /// TLS_AES_128_GCM_SHA256, which every endpoint has.
    Aes128Gcm,
    /// TLS_AES_256_GCM_SHA384.
    Aes256Gcm,
    /// TLS_CHACHA20_POLY1305_SHA256.
    ChaCha20Poly1305,
}

impl CipherSuite {
    /// All of them, the preferred one first.
    pub const ALL: [CipherSuite; 3] =
        [CipherSuite::Aes128Gcm, CipherSuite::Aes256Gcm, CipherSuite::ChaCha20Poly1305];

    /// Its number in IANA's registry of TLS cipher suites.
    #[must_use]
    pub fn id(self) -> u16 {
        match self {
            CipherSuite::Aes128Gcm => 0x1301,
            CipherSuite::Aes256Gcm => 0x1302,
            CipherSuite::ChaCha20Poly1305 => 0x1303,
        }
    }

    /// The suite with that number in IANA's registry.
    #[must_use]
    pub fn from_id(id: u16) -> Option<CipherSuite> {
        CipherSuite::ALL.into_iter().find(|suite| suite.id() == id)
    }

    /// Length of a record payload key and of a sequence number key, in bytes.
    #[must_use]
    pub fn key_len(self) -> usize {
        match self {
            CipherSuite::Aes128Gcm => 16,
            CipherSuite::Aes256Gcm | CipherSuite::ChaCha20Poly1305 => 32,
        }
    }

    /// Records that one key may seal (RFC 9147 §4.5.3): 2^24.5 with AES-GCM; the sequence numbers
    /// of an epoch, 2^48, otherwise.
    #[must_use]
    pub fn seal_limit(self) -> u64 {
        match self {
            CipherSuite::Aes128Gcm | CipherSuite::Aes256Gcm => 23_726_566,
            CipherSuite::ChaCha20Poly1305 => 1 << 48,
        }
    }
}

/// The keys of one direction in one epoch. They are erased from memory when this is dropped.
#[derive(Clone)]
pub struct KeyMaterial {
    /// Key of the record payload, [`CipherSuite::key_len`] bytes.
    pub key: Vec<u8>,
    /// Key that masks sequence numbers, as long.
    pub sequence_number_key: Vec<u8>,
    /// Initialization vector: the nonce of a record is this, exclusive-or its sequence number.
    pub iv: [u8; NONCE_LEN],
}

impl Zeroize for KeyMaterial {
    fn zeroize(&mut self) {
        let KeyMaterial { key, sequence_number_key, iv } = self;
        key.zeroize();
        sequence_number_key.zeroize();
        iv.zeroize();
    }
}

impl Drop for KeyMaterial {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl ZeroizeOnDrop for KeyMaterial {}

/// Keys are not printed.
impl fmt::Debug for KeyMaterial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyMaterial").finish_non_exhaustive()
    }
}

/// An AEAD cipher with one payload key, and the masks of sequence numbers with another.
///
/// An implementation chooses no nonce and keeps no state.
pub trait RecordCipher: fmt::Debug + Send + Sync {
    /// Encrypts `text` in place and returns its authentication tag, which covers `aad`, too.
    fn seal(&self, nonce: [u8; NONCE_LEN], aad: &[u8], text: &mut [u8]) -> [u8; TAG_LEN];

    /// Decrypts a ciphertext, which its tag follows, in place. Returns false if the tag is wrong;
    /// `sealed` is then of no use.
    #[must_use]
    fn open(&self, nonce: [u8; NONCE_LEN], aad: &[u8], sealed: &mut [u8]) -> bool;

    /// The mask of a sequence number, from the first bytes of the encrypted record (RFC 9147
    /// §4.2.3).
    fn mask(&self, sample: [u8; TAG_LEN]) -> [u8; 2];
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_erased_when_they_are_dropped() {
        fn is_erased<T: ZeroizeOnDrop>(_: &T) {}
        let mut keys =
            KeyMaterial { key: vec![7; 16], sequence_number_key: vec![8; 16], iv: [9; 12] };
        is_erased(&keys);
        let at = keys.key.as_ptr();
        keys.zeroize();
        assert!(keys.key.is_empty() && keys.sequence_number_key.is_empty());
        // The whole of the buffer was overwritten before.
        keys.key.resize(16, 0);
        assert_eq!(keys.key.as_ptr(), at);
        assert_eq!(keys.iv, [0; 12]);
    }
}
