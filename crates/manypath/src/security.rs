//! How associations are protected.

use std::sync::Arc;

use manypath_keys::psk::SharedKey;
use manypath_keys::tls::TlsKeys;
use manypath_proto::KeyManagement;

/// The protection of associations: encryption and authentication of every packet, on every path, by
/// SCTP's DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk).
///
/// Both ends must want the same. An end that protects its associations refuses peers that do not,
/// and sends nothing of the application's before the peer has shown who it is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Security {
    /// With keys from TLS 1.3, and peers known by their public keys or certificates.
    Tls(TlsKeys),
    /// With a key that both ends have.
    Psk(SharedKey),
    /// With a key management of the program's own.
    Custom(Arc<dyn KeyManagement>),
    /// None: anyone on the way can read and change everything. For peers that only speak plain SCTP
    /// (RFC 9260), and for networks that nobody else is on.
    Plain,
}

impl Security {
    /// The key management; `None` if nothing is protected.
    pub(crate) fn keys(&self) -> Option<Arc<dyn KeyManagement>> {
        match self {
            Security::Tls(keys) => Some(Arc::new(keys.clone())),
            Security::Psk(key) => Some(Arc::new(key.clone())),
            Security::Custom(keys) => Some(Arc::clone(keys)),
            Security::Plain => None,
        }
    }
}

impl From<TlsKeys> for Security {
    fn from(keys: TlsKeys) -> Security {
        Security::Tls(keys)
    }
}

impl From<SharedKey> for Security {
    fn from(key: SharedKey) -> Security {
        Security::Psk(key)
    }
}
