//! Who the peer of a TLS connection is, and if it is still the same.

use bytes::Bytes;
use manypath_dtls::manage::PeerIdentity;
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer};

/// Reads the certificates or the raw public key that a peer has proved to own.
pub(super) fn identity(certificates: Option<&[CertificateDer<'_>]>) -> PeerIdentity {
    match certificates {
        None | Some([]) => PeerIdentity::Anonymous,
        Some([key]) if is_public_key(key) => PeerIdentity::PublicKey(bytes(key)),
        Some(chain) => PeerIdentity::Certificate(chain.iter().map(bytes).collect()),
    }
}

fn is_public_key(der: &CertificateDer<'_>) -> bool {
    let key = SubjectPublicKeyInfoDer::from(der.as_ref());
    webpki::RawPublicKeyEntity::try_from(&key).is_ok()
}

fn bytes(der: &CertificateDer<'_>) -> Bytes {
    Bytes::copy_from_slice(der)
}

/// As much of a peer as is needed to know it again.
#[derive(Debug)]
pub(super) enum KnownPeer {
    Nobody,
    PublicKey(Bytes),
    Certificate { der: Bytes, named: Option<Named> },
}

/// The parts of a certificate that may outlive it.
#[derive(Debug)]
pub(super) struct Named {
    public_key: Bytes,
    subject: Bytes,
}

impl KnownPeer {
    pub(super) fn new(identity: &PeerIdentity) -> KnownPeer {
        match identity {
            PeerIdentity::PublicKey(key) => KnownPeer::PublicKey(key.clone()),
            PeerIdentity::Certificate(chain) if !chain.is_empty() => {
                let der = chain[0].clone();
                let certificate = CertificateDer::from(der.as_ref());
                let named =
                    webpki::EndEntityCert::try_from(&certificate).ok().map(|parsed| Named {
                        public_key: Bytes::copy_from_slice(
                            parsed.subject_public_key_info().as_ref(),
                        ),
                        subject: Bytes::copy_from_slice(parsed.subject()),
                    });
                KnownPeer::Certificate { der, named }
            }
            _ => KnownPeer::Nobody,
        }
    }

    /// Tells if the other is the same peer: the same public key, or a certificate with the same
    /// subject. An empty subject names nobody.
    pub(super) fn is_same(&self, other: &KnownPeer) -> bool {
        match (self, other) {
            (KnownPeer::Nobody, KnownPeer::Nobody) => true,
            (KnownPeer::PublicKey(a), KnownPeer::PublicKey(b)) => a == b,
            (
                KnownPeer::Certificate { der: a, named: a_named },
                KnownPeer::Certificate { der: b, named: b_named },
            ) => {
                let same_name = match (a_named, b_named) {
                    (Some(a), Some(b)) => {
                        a.public_key == b.public_key
                            || (!a.subject.is_empty() && a.subject == b.subject)
                    }
                    _ => false,
                };
                a == b || same_name
            }
            _ => false,
        }
    }
}
