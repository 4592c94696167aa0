//! Ciphers by AWS-LC.

use std::fmt;

use aws_lc_rs::aead::quic::{self, HeaderProtectionKey};
use aws_lc_rs::aead::{
    AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};

use crate::cipher::{CipherSuite, KeyMaterial, NONCE_LEN, RecordCipher, TAG_LEN};

/// A key of the wrong length.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key of {suite:?} has {} bytes", suite.key_len())]
pub struct WrongKeyLength {
    suite: CipherSuite,
}

/// The cipher of a suite with these keys.
///
/// # Errors
/// If a key has not the [length](CipherSuite::key_len) that the suite needs.
pub fn cipher(
    suite: CipherSuite,
    material: &KeyMaterial,
) -> Result<Box<dyn RecordCipher>, WrongKeyLength> {
    let (aead, header) = match suite {
        CipherSuite::Aes128Gcm => (&AES_128_GCM, &quic::AES_128),
        CipherSuite::Aes256Gcm => (&AES_256_GCM, &quic::AES_256),
        CipherSuite::ChaCha20Poly1305 => (&CHACHA20_POLY1305, &quic::CHACHA20),
    };
    let wrong = |_| WrongKeyLength { suite };
    let payload = LessSafeKey::new(UnboundKey::new(aead, &material.key).map_err(wrong)?);
    let mask = HeaderProtectionKey::new(header, &material.sequence_number_key).map_err(wrong)?;
    Ok(Box::new(Cipher { payload, mask }))
}

/// QUIC masks its packet numbers as DTLS 1.3 does its sequence numbers (RFC 9001 §5.4, RFC 9147
/// §4.2.3).
struct Cipher {
    payload: LessSafeKey,
    mask: HeaderProtectionKey,
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.payload.algorithm())
    }
}

impl RecordCipher for Cipher {
    fn seal(&self, nonce: [u8; NONCE_LEN], aad: &[u8], text: &mut [u8]) -> [u8; TAG_LEN] {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.payload.seal_in_place_separate_tag(nonce, Aad::from(aad), text);
        let tag = tag.expect("a packet is shorter than what the ciphers take");
        tag.as_ref().try_into().expect("the tags of all suites are as long")
    }

    fn open(&self, nonce: [u8; NONCE_LEN], aad: &[u8], sealed: &mut [u8]) -> bool {
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.payload.open_in_place(nonce, Aad::from(aad), sealed).is_ok()
    }

    fn mask(&self, sample: [u8; TAG_LEN]) -> [u8; 2] {
        let [first, second, ..] =
            self.mask.new_mask(&sample).expect("a sample of the right length");
        [first, second]
    }
}
