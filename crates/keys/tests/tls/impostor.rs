//! Ends that show a public key without having the private one.

use std::sync::Arc;

use manypath_dtls::manage::Role;
use manypath_keys::tls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use manypath_keys::tls::rustls::client::{AlwaysResolvesClientRawPublicKeys, ClientConfig};
use manypath_keys::tls::rustls::crypto::CryptoProvider;
use manypath_keys::tls::rustls::crypto::aws_lc_rs::{default_provider, sign::any_supported_type};
use manypath_keys::tls::rustls::pki_types::pem::PemObject;
use manypath_keys::tls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use manypath_keys::tls::rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use manypath_keys::tls::rustls::server::{AlwaysResolvesServerRawPublicKeys, ServerConfig};
use manypath_keys::tls::rustls::sign::CertifiedKey;
use manypath_keys::tls::rustls::{
    DigitallySignedStruct, DistinguishedName, Error, SignatureScheme,
};
use manypath_keys::tls::{Identity, IdentityKind, PeerKeys, TlsKeys};

use crate::harness::Pair;

/// Believes everything.
#[derive(Debug)]
struct Gullible;

const SCHEMES: [SignatureScheme; 2] =
    [SignatureScheme::ED25519, SignatureScheme::ECDSA_NISTP256_SHA256];

type Signature = Result<HandshakeSignatureValid, Error>;

impl ServerCertVerifier for Gullible {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Signature {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Signature {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        SCHEMES.to_vec()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Gullible {
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
    ) -> Signature {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Signature {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        SCHEMES.to_vec()
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// Keys of an end that shows one identity and signs with another, for both roles.
fn end(shows: &Identity, signs: &Identity) -> TlsKeys {
    let provider: Arc<CryptoProvider> = Arc::new(default_provider());
    let key = PrivateKeyDer::from_pem_slice(signs.to_pem().as_bytes()).unwrap();
    let key = any_supported_type(&key).unwrap();
    let shown = CertificateDer::from(shows.public_key().to_vec());
    let certified = Arc::new(CertifiedKey::new(vec![shown], key));
    let client = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Gullible))
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
            certified.clone(),
        )));
    let server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(Arc::new(Gullible))
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(certified)));
    let name = ServerName::try_from("peer.invalid").unwrap();
    TlsKeys::from_rustls(Some((Arc::new(client), name)), Some(Arc::new(server))).unwrap()
}

#[test]
fn a_public_key_without_its_private_key_is_worth_nothing() {
    for kind in [IdentityKind::Ed25519, IdentityKind::P256] {
        let new = || Identity::generate_kind(kind).unwrap();
        let (victim, mallory) = (new(), new());
        for peers in [PeerKeys::Any, PeerKeys::Pinned(vec![victim.fingerprint()])] {
            let honest = TlsKeys::raw_public_keys(&new(), peers);
            // Who does have the private key is believed: so the rest of the impostor is right.
            Pair::established(&honest, &end(&victim, &victim));
            Pair::established(&end(&victim, &victim), &honest);

            let impostor = end(&victim, &mallory);
            for role in [Role::Client, Role::Server] {
                let pair = match role {
                    Role::Client => Pair::run_new(&honest, &impostor),
                    Role::Server => Pair::run_new(&impostor, &honest),
                };
                let end = match role {
                    Role::Client => pair.client,
                    Role::Server => pair.server,
                };
                assert_eq!(
                    end.reason(),
                    "the peer did not prove that it has the private key of its identity",
                    "{:?}",
                    end.log
                );
                assert!(end.peer.is_none() && end.opening.newest().is_none());
            }
        }
    }
}
