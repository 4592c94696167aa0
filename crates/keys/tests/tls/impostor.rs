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
use manypath_keys::tls::rustls::sign::{CertifiedKey, Signer, SigningKey};
use manypath_keys::tls::rustls::{
    DigitallySignedStruct, DistinguishedName, Error, SignatureAlgorithm, SignatureScheme,
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
    let key = PrivateKeyDer::from_pem_slice(signs.to_pem().as_bytes()).unwrap();
    end_with(shows.public_key().to_vec(), any_supported_type(&key).unwrap())
}

/// Keys of an end that shows this public key and signs with this private one, for both roles.
fn end_with(shows: Vec<u8>, key: Arc<dyn SigningKey>) -> TlsKeys {
    let provider: Arc<CryptoProvider> = Arc::new(default_provider());
    let shown = CertificateDer::from(shows);
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

/// A key of a kind that is no identity, which signs although nobody offered to verify that.
#[derive(Debug)]
struct Unasked(Arc<dyn SigningKey>);

impl SigningKey for Unasked {
    fn choose_scheme(&self, _offered: &[SignatureScheme]) -> Option<Box<dyn Signer>> {
        self.0.choose_scheme(&[SignatureScheme::ECDSA_NISTP384_SHA384])
    }

    fn algorithm(&self) -> SignatureAlgorithm {
        self.0.algorithm()
    }
}

#[test]
fn a_key_of_another_kind_than_identities_have_is_refused() {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
    let key = PrivateKeyDer::try_from(pair.serialize_der()).unwrap();
    let key = any_supported_type(&key).unwrap();
    let public_key = key.public_key().unwrap().as_ref().to_vec();
    let stranger = end_with(public_key, Arc::new(Unasked(key)));
    let honest = TlsKeys::raw_public_keys(&Identity::generate().unwrap(), PeerKeys::Any);
    let ends = [Pair::run_new(&honest, &stranger).client, Pair::run_new(&stranger, &honest).server];
    for end in ends {
        assert!(
            end.reason().ends_with("SignedHandshakeWithUnadvertisedSigScheme"),
            "{:?}",
            end.log
        );
        assert!(end.peer.is_none());
    }
}
