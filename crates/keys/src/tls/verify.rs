//! Verifiers for rustls: raw public keys, and rules that stay with an end whatever its TLS role.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, PeerMisbehaved,
    SignatureScheme,
};

use super::Fingerprint;
use super::identity::SCHEMES;

/// The public keys that a peer may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PeerKeys {
    /// Any: the peer's key is reported, and it is for the application to know it.
    Any,
    /// Those with one of these fingerprints.
    Pinned(Vec<Fingerprint>),
}

impl PeerKeys {
    /// Checks a SubjectPublicKeyInfo in DER.
    pub(super) fn check(&self, public_key: &[u8]) -> Result<(), NotPinned> {
        match self {
            PeerKeys::Any => Ok(()),
            PeerKeys::Pinned(pins) => {
                let key = Fingerprint::of(public_key);
                if pins.contains(&key) { Ok(()) } else { Err(NotPinned { key }) }
            }
        }
    }
}

/// A peer with another key than expected.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the key {key} is not one that is expected")]
pub(super) struct NotPinned {
    pub(super) key: Fingerprint,
}

/// Verifies raw public keys (RFC 7250).
///
/// As a server it checks only the client's signature: it is the session that refuses a key, after
/// the handshake, so that the refusal is protected.
#[derive(Debug)]
pub(super) struct RawKeyVerifier {
    pub(super) peers: PeerKeys,
    pub(super) provider: Arc<CryptoProvider>,
}

impl RawKeyVerifier {
    fn verify_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        if !SCHEMES.contains(&signed.scheme) {
            return Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into());
        }
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signed, algorithms)
    }
}

fn only_tls13() -> Error {
    Error::General("TLS 1.2 is not used".into())
}

impl ServerCertVerifier for RawKeyVerifier {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let refuse = |refusal| CertificateError::Other(OtherError(Arc::new(refusal)));
        self.peers.check(key).map_err(refuse)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(only_tls13())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        SCHEMES.to_vec()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for RawKeyVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(only_tls13())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, key, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        SCHEMES.to_vec()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// Verifies a TLS client by the rules for a server.
///
/// When the server of the key management begins a rekeying, it is the TLS client, but its
/// certificate is still a server's, and must still have the name that this end wanted.
pub(super) struct ServerAsTlsClient {
    pub(super) rules: Arc<dyn ServerCertVerifier>,
    pub(super) name: ServerName<'static>,
}

impl fmt::Debug for ServerAsTlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerAsTlsClient").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ClientCertVerifier for ServerAsTlsClient {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.rules.verify_server_cert(certificate, intermediates, &self.name, &[], now)?;
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(only_tls13())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.rules.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.rules.supported_verify_schemes()
    }
}

/// Verifies a TLS server by the rules for a client: the other side of [`ServerAsTlsClient`].
#[derive(Debug)]
pub(super) struct ClientAsTlsServer {
    pub(super) rules: Arc<dyn ClientCertVerifier>,
}

impl ServerCertVerifier for ClientAsTlsServer {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.rules.verify_client_cert(certificate, intermediates, now)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(only_tls13())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.rules.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.rules.supported_verify_schemes()
    }
}
