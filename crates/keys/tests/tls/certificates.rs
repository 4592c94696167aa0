//! Handshakes with certificates.

use std::sync::Arc;

use manypath_dtls::manage::{KeyManagement, PeerIdentity, Roles};
use manypath_keys::tls::rustls::pki_types::pem::PemObject;
use manypath_keys::tls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use manypath_keys::tls::rustls::server::WebPkiClientVerifier;
use manypath_keys::tls::rustls::{ClientConfig, RootCertStore, ServerConfig, crypto};
use manypath_keys::tls::{Certificates, ClientAuth, ConfigError, Roots, TlsKeys};

use crate::harness::{Pair, anybody};
use crate::pki::{Authority, Issued};

const NAME: &str = "receiver.example";

#[test]
fn both_ends_prove_their_names() {
    let authority = Authority::new("authority");
    let (server, client) = (authority.server(NAME), authority.client("sender"));
    let pair = Pair::established(
        &authority.client_keys(&client, NAME),
        &authority.server_keys(&server, ClientAuth::Required),
    );
    let der = CertificateDer::from_pem_slice(client.chain.as_bytes()).unwrap();
    let expected = PeerIdentity::Certificate(vec![der.to_vec().into()]);
    assert_eq!(pair.server.peer.unwrap().identity, expected);
    let is_certificate = |identity: &PeerIdentity| matches!(identity, PeerIdentity::Certificate(_));
    assert!(is_certificate(&pair.client.peer.unwrap().identity));
}

/// The client must refuse this server, for this reason, before it shows its own certificate.
fn assert_client_refuses(client: &TlsKeys, server: &TlsKeys, reason: &str, told: &str) {
    let pair = Pair::run_new(client, server);
    assert!(pair.client.reason().contains(reason), "{}", pair.client.reason());
    assert!(pair.client.reason().starts_with("the peer's certificate is not accepted"));
    assert!(pair.client.peer.is_none() && pair.client.opening.newest().is_none());
    assert!(pair.server.reason().contains(told), "{}", pair.server.reason());
    assert!(pair.server.peer.is_none() && pair.server.opening.newest().is_none());
    assert!(pair.server.failure.unwrap().by_peer);
}

#[test]
fn a_server_with_another_name_is_refused() {
    let authority = Authority::new("authority");
    let client = authority.client_keys(&authority.client("sender"), NAME);
    let server = authority.server_keys(&authority.server("other.example"), ClientAuth::Required);
    assert_client_refuses(&client, &server, "not valid for name", "does not accept");
}

#[test]
fn an_expired_server_is_refused() {
    let authority = Authority::new("authority");
    let client = authority.client_keys(&authority.client("sender"), NAME);
    let server = authority.server_keys(&authority.expired_server(NAME), ClientAuth::Required);
    assert_client_refuses(&client, &server, "expired", "our certificate has expired");
}

#[test]
fn a_server_of_an_unknown_authority_is_refused() {
    let (authority, other) = (Authority::new("authority"), Authority::new("other"));
    let client = authority.client_keys(&authority.client("sender"), NAME);
    let server = other.server_keys(&other.server(NAME), ClientAuth::Required);
    assert_client_refuses(&client, &server, "UnknownIssuer", "does not know the authority");
}

#[test]
fn a_certificate_for_clients_is_none_for_a_server() {
    let authority = Authority::new("authority");
    let client = authority.client_keys(&authority.client("sender"), NAME);
    let server = authority.server_keys(&authority.client(NAME), ClientAuth::Required);
    assert_client_refuses(&client, &server, "extended key usage", "does not accept");
}

/// The client learns the reason by an alert of TLS, which it can authenticate.
#[test]
fn a_client_of_an_unknown_authority_is_refused() {
    let (authority, other) = (Authority::new("authority"), Authority::new("other"));
    let server = authority.server(NAME);
    let (root, stranger) = (authority.root(), other.client("sender"));
    let files = Certificates {
        chain: stranger.chain.as_bytes(),
        key: stranger.key.as_bytes(),
        roots: Roots::Pem(root.as_bytes()),
        server_name: Some(NAME),
        client_auth: ClientAuth::Required,
    };
    let client = TlsKeys::certificates(&files).unwrap();
    let pair = Pair::run_new(&client, &authority.server_keys(&server, ClientAuth::Required));
    assert!(pair.server.reason().contains("UnknownIssuer"), "{}", pair.server.reason());
    assert!(pair.server.opening.newest().is_none() && pair.server.peer.is_none());
    assert_eq!(
        pair.client.reason(),
        "the peer ended the TLS handshake: it does not know the authority of our certificate"
    );
    assert!(pair.client.failure.unwrap().by_peer);
}

#[test]
fn ends_with_keys_and_ends_with_certificates_do_not_meet() {
    let authority = Authority::new("authority");
    let server = authority.server_keys(&authority.server(NAME), ClientAuth::Required);
    let pair = Pair::run_new(&anybody(), &server);
    assert!(pair.client.failure.is_some() && pair.server.failure.is_some());
    let client = authority.client_keys(&authority.client("sender"), NAME);
    let pair = Pair::run_new(&client, &anybody());
    assert!(pair.client.failure.is_some() && pair.server.failure.is_some());
}

fn provider() -> Arc<crypto::CryptoProvider> {
    Arc::new(crypto::aws_lc_rs::default_provider())
}

fn roots(authority: &Authority) -> Arc<RootCertStore> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.root().as_bytes()).unwrap()).unwrap();
    Arc::new(roots)
}

fn certified(issued: &Issued) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
    let chain = vec![CertificateDer::from_pem_slice(issued.chain.as_bytes()).unwrap()];
    (chain, PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap())
}

/// A user's configuration of a client, with or without a certificate.
pub(crate) fn given_client(
    authority: &Authority,
    issued: Option<&Issued>,
) -> (Arc<ClientConfig>, ServerName<'static>) {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(authority));
    let config = match issued.map(certified) {
        None => builder.with_no_client_auth(),
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).unwrap(),
    };
    (Arc::new(config), ServerName::try_from(NAME).unwrap())
}

/// A user's configuration of a server, where clients may lack a certificate.
pub(crate) fn given_server(authority: &Authority, issued: &Issued) -> Arc<ServerConfig> {
    let verifier = WebPkiClientVerifier::builder_with_provider(roots(authority), provider())
        .allow_unauthenticated()
        .build()
        .unwrap();
    let (chain, key) = certified(issued);
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .unwrap();
    Arc::new(config)
}

#[test]
fn clients_may_lack_a_certificate_if_the_server_lets_them() {
    let authority = Authority::new("authority");
    let client = TlsKeys::from_rustls(Some(given_client(&authority, None)), None).unwrap();
    let issued = authority.server(NAME);

    let server = authority.server_keys(&issued, ClientAuth::Optional);
    let mut pair = Pair::established(&client, &server);
    assert_eq!(pair.server.peer.as_ref().unwrap().identity, PeerIdentity::Anonymous);
    // It could not be the TLS server of a rekeying, so the server does not begin one.
    pair.server.rekey();
    assert!(pair.server.outbox.is_empty());
    pair.client.rekey();
    pair.run();
    pair.assert_works(4);

    let server = authority.server_keys(&issued, ClientAuth::Required);
    let pair = Pair::run_new(&client, &server);
    assert_eq!(pair.server.reason(), "the peer has no certificate");
    assert!(pair.server.peer.is_none());
    assert_eq!(pair.client.reason(), "the peer ended the TLS handshake: it requires a certificate");
}

/// Tickets of a server with rustls's usual settings are no obstacle, and none are used against us.
#[test]
fn configurations_of_rustls_are_used() {
    let authority = Authority::new("authority");
    let client_config = given_client(&authority, Some(&authority.client("sender")));
    let server_config = given_server(&authority, &authority.server(NAME));
    let client = TlsKeys::from_rustls(Some(client_config), None).unwrap();
    let server = TlsKeys::from_rustls(None, Some(server_config)).unwrap();
    for _ in 0..2 {
        let mut pair = Pair::established(&client, &server);
        pair.client.rekey();
        pair.run();
        pair.assert_works(4);
    }
    assert_eq!((client.roles(true), client.roles(false)), (Roles::CLIENT, Roles::CLIENT));
    assert_eq!((server.roles(true), server.roles(false)), (Roles::SERVER, Roles::SERVER));
    assert_eq!(TlsKeys::from_rustls(None, None).unwrap_err(), ConfigError::NoRole);
}

#[test]
fn files_that_do_not_fit_are_refused_with_a_reason() {
    let authority = Authority::new("authority");
    let (a, b) = (authority.server(NAME), authority.server(NAME));
    let root = authority.root();
    let good = Certificates {
        chain: a.chain.as_bytes(),
        key: a.key.as_bytes(),
        roots: Roots::Pem(root.as_bytes()),
        server_name: Some(NAME),
        client_auth: ClientAuth::Required,
    };
    let error = |files: Certificates<'_>| TlsKeys::certificates(&files).unwrap_err();
    assert!(TlsKeys::certificates(&good).is_ok());
    assert!(matches!(
        error(Certificates { key: b.key.as_bytes(), ..good }),
        ConfigError::Certificate(_)
    ));
    assert_eq!(error(Certificates { key: b"", ..good }), ConfigError::NoKey);
    assert_eq!(
        error(Certificates { chain: b"", ..good }).to_string(),
        "the certificate's file has no PEM section \"CERTIFICATE\""
    );
    assert_eq!(
        error(Certificates { roots: Roots::Pem(b""), ..good }).to_string(),
        "the file of root certificates has no PEM section \"CERTIFICATE\""
    );
    let junk = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    assert!(matches!(
        error(Certificates { roots: Roots::Pem(junk), ..good }),
        ConfigError::Root(_)
    ));
    assert!(matches!(error(Certificates { chain: junk, ..good }), ConfigError::Certificate(_)));
    let cut = b"-----BEGIN CERTIFICATE-----\nAAAA";
    assert!(matches!(error(Certificates { chain: cut, ..good }), ConfigError::Pem { .. }));
    assert_eq!(
        error(Certificates { server_name: Some("not a name"), ..good }).to_string(),
        "\"not a name\" is neither a host name nor an IP address"
    );
    // The system's authorities vouch for names only.
    let system = Certificates { roots: Roots::System, server_name: None, ..good };
    assert_eq!(error(system), ConfigError::SystemRootsForClients);
    // Without a name to check, it cannot be a client.
    let server = TlsKeys::certificates(&Certificates { server_name: None, ..good }).unwrap();
    assert_eq!(server.roles(true), Roles::SERVER);
}
