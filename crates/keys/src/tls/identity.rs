//! Key pairs that identify an end.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use bytes::Bytes;
use manypath_trust::Fingerprint;
use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::SigningKey;
use zeroize::Zeroizing;

/// The signature schemes of identities.
pub(crate) const SCHEMES: [SignatureScheme; 2] =
    [SignatureScheme::ED25519, SignatureScheme::ECDSA_NISTP256_SHA256];

/// Kinds of key pairs.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdentityKind {
    /// Ed25519 (RFC 8410).
    Ed25519,
    /// ECDSA on the curve P-256, with SHA-256.
    P256,
}

/// A key pair that identifies an end.
#[derive(Clone)]
pub struct Identity {
    pkcs8: Zeroizing<Vec<u8>>,
    signing_key: Arc<dyn SigningKey>,
    kind: IdentityKind,
    public_key: Bytes,
}

/// The private key is not printed.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("kind", &self.kind)
            .field("fingerprint", &self.fingerprint())
            .finish_non_exhaustive()
    }
}

/// A key pair that cannot be made or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The system gives no random numbers.
    #[error("the system gave no random numbers for a new key")]
    NoRandomness,
    /// There is no private key.
    #[error(
        "no private key found: the file needs a PEM section \"PRIVATE KEY\" (PKCS#8, unencrypted); \
         \"openssl pkcs8 -topk8 -nodes -in FILE\" converts other forms"
    )]
    NoKey,
    /// It is no PEM.
    #[error("not a valid PEM file: {0}")]
    Pem(String),
    /// The key cannot be used.
    #[error(
        "the private key is damaged, or neither Ed25519 nor P-256; \
         \"openssl genpkey -algorithm ed25519\" makes one that fits"
    )]
    Unsupported,
}

impl Identity {
    /// Makes a new key pair of the default kind, which is the faster one: Ed25519.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn generate() -> Result<Identity, IdentityError> {
        Identity::generate_kind(IdentityKind::Ed25519)
    }

    /// Makes a new key pair.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn generate_kind(kind: IdentityKind) -> Result<Identity, IdentityError> {
        let rng = SystemRandom::new();
        let document = match kind {
            IdentityKind::Ed25519 => Ed25519KeyPair::generate_pkcs8v1(&rng),
            IdentityKind::P256 => {
                EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &rng)
            }
        };
        let document = document.map_err(|_| IdentityError::NoRandomness)?;
        Identity::from_pkcs8(document.as_ref())
    }

    /// Reads a key pair from PEM: the first section "PRIVATE KEY" (PKCS#8).
    ///
    /// # Errors
    /// If there is none, or its key is neither Ed25519 nor P-256.
    pub fn from_pem(pem: &[u8]) -> Result<Identity, IdentityError> {
        use rustls::pki_types::pem::Error;
        match PrivatePkcs8KeyDer::from_pem_slice(pem) {
            Ok(key) => Identity::from_pkcs8(key.secret_pkcs8_der()),
            Err(Error::NoItemsFound) => Err(IdentityError::NoKey),
            Err(error) => Err(IdentityError::Pem(error.to_string())),
        }
    }

    /// Reads a key pair in DER (PKCS#8).
    ///
    /// # Errors
    /// If its key is neither Ed25519 nor P-256.
    pub fn from_pkcs8(der: &[u8]) -> Result<Identity, IdentityError> {
        let pkcs8 = Zeroizing::new(der.to_vec());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(der));
        let signing_key = any_supported_type(&key).map_err(|_| IdentityError::Unsupported)?;
        let scheme = signing_key.choose_scheme(&SCHEMES).map(|signer| signer.scheme());
        let kind = match scheme {
            Some(SignatureScheme::ED25519) => IdentityKind::Ed25519,
            Some(SignatureScheme::ECDSA_NISTP256_SHA256) => IdentityKind::P256,
            _ => return Err(IdentityError::Unsupported),
        };
        let public_key = signing_key.public_key().ok_or(IdentityError::Unsupported)?;
        let public_key = Bytes::copy_from_slice(public_key.as_ref());
        Ok(Identity { pkcs8, signing_key, kind, public_key })
    }

    /// The key pair as PEM (PKCS#8, unencrypted): a secret, to be kept in a file that only its
    /// owner can read.
    #[must_use]
    pub fn to_pem(&self) -> Zeroizing<String> {
        let pem =
            pem_rfc7468::encode_string("PRIVATE KEY", pem_rfc7468::LineEnding::LF, &self.pkcs8);
        Zeroizing::new(pem.expect("a key is far shorter than what the encoding takes"))
    }

    /// The kind of the key pair.
    #[must_use]
    pub fn kind(&self) -> IdentityKind {
        self.kind
    }

    /// The public key: a SubjectPublicKeyInfo in DER.
    #[must_use]
    pub fn public_key(&self) -> &Bytes {
        &self.public_key
    }

    /// The fingerprint of the public key.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.public_key)
    }

    pub(crate) fn signing_key(&self) -> Arc<dyn SigningKey> {
        self.signing_key.clone()
    }
}
