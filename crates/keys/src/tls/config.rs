//! The configurations of rustls for both TLS roles.

use std::fmt;
use std::sync::Arc;

use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption, WebPkiServerVerifier};
use rustls::crypto::aws_lc_rs::{self, cipher_suite, kx_group};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{AlwaysResolvesServerRawPublicKeys, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::identity::Identity;
use super::verify::{ClientAsTlsServer, PeerKeys, RawKeyVerifier, ServerAsTlsClient};
use crate::key_log::{KeyLog, hex};

/// The versions that are used.
const VERSIONS: &[&rustls::SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// The name that a TLS client gives rustls where none is checked.
const NO_NAME: &str = "peer.invalid";

/// Settings that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Neither role has a configuration.
    #[error("give a TLS configuration for the client, the server, or both")]
    NoRole,
    /// A file is no PEM.
    #[error("the {what} is not a valid PEM file: {reason}")]
    Pem {
        /// Which file it is.
        what: &'static str,
        /// The error in it.
        reason: String,
    },
    /// A file has no certificate.
    #[error("the {what} has no PEM section \"CERTIFICATE\"")]
    NoCertificate {
        /// Which file it is.
        what: &'static str,
    },
    /// There is no private key.
    #[error("the private key's file has no PEM section \"PRIVATE KEY\"")]
    NoKey,
    /// A root certificate cannot be used.
    #[error("a root certificate cannot be used: {0}")]
    Root(String),
    /// The system has no certificates of authorities.
    #[error("this system has no certificates of authorities{}", reason(.0))]
    NoSystemRoots(Option<String>),
    /// The system's authorities are to tell who may connect.
    #[error(
        "the authorities of the system vouch for names of hosts, not for clients: name those \
             whose clients may connect"
    )]
    SystemRootsForClients,
    /// The name of the server is none.
    #[error("\"{0}\" is neither a host name nor an IP address")]
    ServerName(String),
    /// The certificate and its key cannot be used.
    #[error("the certificate and its private key cannot be used: {0}")]
    Certificate(String),
}

fn reason(text: &Option<String>) -> String {
    text.as_ref().map_or_else(String::new, |text| format!(": {text}"))
}

/// The authorities that peers' certificates must come from.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Roots<'a> {
    /// Those with these certificates, in PEM.
    Pem(&'a [u8]),
    /// Those that the system trusts: the files of the distribution, such as those of the package
    /// `ca-certificates`, or what the environment variables `SSL_CERT_FILE` and `SSL_CERT_DIR`
    /// name.
    ///
    /// They vouch for names of hosts. Anybody can get a certificate from them, so it does not show
    /// who may connect: such an end needs a [`server_name`](Certificates::server_name), and is
    /// always the client of key management.
    System,
}

/// Client authentication that a server wants.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ClientAuth {
    /// Clients without certificate are refused.
    Required,
    /// Clients may have none; those that have one must have a valid one.
    Optional,
}

/// Certificates of an end, in PEM.
#[derive(Copy, Clone)]
pub struct Certificates<'a> {
    /// The end's certificate, then intermediate certificates.
    pub chain: &'a [u8],
    /// The private key of the certificate.
    pub key: &'a [u8],
    /// The authorities that peers' certificates must come from.
    pub roots: Roots<'a>,
    /// The host name or IP address that a server's certificate must have. An end without it cannot
    /// be the client of key management.
    pub server_name: Option<&'a str>,
    /// The client authentication that a server wants.
    pub client_auth: ClientAuth,
}

/// Keys are not printed.
impl fmt::Debug for Certificates<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates")
            .field("server_name", &self.server_name)
            .field("client_auth", &self.client_auth)
            .finish_non_exhaustive()
    }
}

/// The configuration of a TLS client.
#[derive(Clone, Debug)]
pub(super) struct ClientEnd {
    pub(super) config: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

/// The configurations of an end in one role of key management, for both roles of TLS: in a
/// rekeying, they may be the other way round.
#[derive(Clone, Debug, Default)]
pub(super) struct TlsRoles {
    pub(super) client: Option<ClientEnd>,
    pub(super) server: Option<Arc<ServerConfig>>,
}

/// The configurations of an end, by its role in key management.
#[derive(Clone, Debug)]
pub(super) struct Roles {
    pub(super) as_client: TlsRoles,
    pub(super) as_server: TlsRoles,
}

impl Roles {
    pub(super) fn raw_public_keys(identity: &Identity, peers: &PeerKeys) -> Roles {
        let key = CertificateDer::from(identity.public_key().to_vec());
        let certified = Arc::new(CertifiedKey::new(vec![key], identity.signing_key()));
        let provider = Arc::new(provider());
        let verifier = RawKeyVerifier { peers: peers.clone(), provider: provider.clone() };
        let verifier = Arc::new(verifier);
        let client = ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(VERSIONS)
            .expect("the provider has TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(verifier.clone())
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
                certified.clone(),
            )));
        let server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(VERSIONS)
            .expect("the provider has TLS 1.3")
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(certified)));
        let roles = TlsRoles {
            client: Some(client_end(client, None)),
            server: Some(Arc::new(server_end(server))),
        };
        Roles { as_client: roles.clone(), as_server: roles }
    }

    pub(super) fn certificates(files: &Certificates<'_>) -> Result<Roles, ConfigError> {
        let chain = certificates("certificate's file", files.chain)?;
        let key = private_key(files.key)?;
        let roots = match files.roots {
            Roots::Pem(pem) => given_roots(pem)?,
            Roots::System if files.server_name.is_none() => {
                return Err(ConfigError::SystemRootsForClients);
            }
            Roots::System => system_roots()?,
        };
        let unusable = |error: rustls::Error| ConfigError::Certificate(error.to_string());
        let unusable_roots =
            |error: rustls::server::VerifierBuilderError| ConfigError::Root(error.to_string());
        let provider = Arc::new(provider());
        let client_rules =
            WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
        let client_rules = match files.client_auth {
            ClientAuth::Required => client_rules,
            ClientAuth::Optional => client_rules.allow_unauthenticated(),
        };
        let client_rules = client_rules.build().map_err(unusable_roots)?;

        let tls_client = |verifier| {
            ClientConfig::builder_with_provider(provider.clone())
                .with_protocol_versions(VERSIONS)
                .map_err(unusable)?
                .dangerous()
                .with_custom_certificate_verifier(verifier)
                .with_client_auth_cert(chain.clone(), key.clone_key())
                .map_err(unusable)
        };
        let tls_server = |verifier: Arc<dyn ClientCertVerifier>| {
            ServerConfig::builder_with_provider(provider.clone())
                .with_protocol_versions(VERSIONS)
                .map_err(unusable)?
                .with_client_cert_verifier(verifier)
                .with_single_cert(chain.clone(), key.clone_key())
                .map(|config| Arc::new(server_end(config)))
                .map_err(unusable)
        };

        let as_server = match files.roots {
            Roots::System => TlsRoles::default(),
            Roots::Pem(_) => TlsRoles {
                server: Some(tls_server(client_rules.clone())?),
                client: Some(client_end(
                    tls_client(Arc::new(ClientAsTlsServer { rules: client_rules }))?,
                    None,
                )),
            },
        };
        let as_client = match files.server_name {
            None => TlsRoles::default(),
            Some(name) => {
                let name = ServerName::try_from(name.to_owned())
                    .map_err(|_| ConfigError::ServerName(name.to_owned()))?;
                let rules = WebPkiServerVerifier::builder_with_provider(roots, provider.clone())
                    .build()
                    .map_err(unusable_roots)?;
                let client = client_end(tls_client(rules.clone())?, Some(name.clone()));
                let server = tls_server(Arc::new(ServerAsTlsClient { rules, name }))?;
                TlsRoles { client: Some(client), server: Some(server) }
            }
        };
        Ok(Roles { as_client, as_server })
    }

    /// Has the secrets of TLS logged.
    pub(super) fn log_keys(&mut self, log: &Arc<dyn KeyLog>) {
        let log = Arc::new(TlsSecrets { log: log.clone() });
        for roles in [&mut self.as_client, &mut self.as_server] {
            if let Some(client) = &mut roles.client {
                Arc::make_mut(&mut client.config).key_log = log.clone();
            }
            if let Some(server) = &mut roles.server {
                Arc::make_mut(server).key_log = log.clone();
            }
        }
    }
}

/// AWS-LC with the suites of the DTLS chunk, the one that every endpoint has first.
///
/// Key exchange is X25519, whose ClientHello fits into a packet beside COOKIE ECHO. The hybrid with
/// ML-KEM-768 does not, and would take one more round trip; peers that want it get it so.
fn provider() -> rustls::crypto::CryptoProvider {
    rustls::crypto::CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![
            kx_group::X25519,
            kx_group::X25519MLKEM768,
            kx_group::SECP256R1,
            kx_group::SECP384R1,
        ],
        ..aws_lc_rs::default_provider()
    }
}

/// A connection gives keys and ends: there is nothing to resume.
fn client_end(mut config: ClientConfig, name: Option<ServerName<'static>>) -> ClientEnd {
    config.resumption = Resumption::disabled();
    config.enable_sni = name.is_some();
    let name =
        name.unwrap_or_else(|| ServerName::try_from(NO_NAME).expect("the constant is a host name"));
    ClientEnd { config: Arc::new(config), name }
}

fn server_end(mut config: ServerConfig) -> ServerConfig {
    config.send_tls13_tickets = 0;
    config
}

fn certificates(
    what: &'static str,
    pem: &[u8],
) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|error| ConfigError::Pem { what, reason: error.to_string() })?;
    if all.is_empty() { Err(ConfigError::NoCertificate { what }) } else { Ok(all) }
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, ConfigError> {
    use rustls::pki_types::pem::Error;
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        Error::NoItemsFound => ConfigError::NoKey,
        error => ConfigError::Pem { what: "private key's file", reason: error.to_string() },
    })
}

fn given_roots(pem: &[u8]) -> Result<Arc<RootCertStore>, ConfigError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("file of root certificates", pem)? {
        roots.add(certificate).map_err(|error| ConfigError::Root(error.to_string()))?;
    }
    Ok(Arc::new(roots))
}

/// The system's authorities. Certificates that cannot be used are left out, as long as there are
/// others: systems have some that are old or odd.
fn system_roots() -> Result<Arc<RootCertStore>, ConfigError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (used, left_out) = roots.add_parsable_certificates(found.certs);
    if used > 0 {
        return Ok(Arc::new(roots));
    }
    let of_certificates = || (left_out > 0).then(|| format!("{left_out} cannot be used"));
    let reason = found.errors.first().map(ToString::to_string).or_else(of_certificates);
    Err(ConfigError::NoSystemRoots(reason))
}

/// Writes rustls's secrets to our log.
#[derive(Debug)]
struct TlsSecrets {
    log: Arc<dyn KeyLog>,
}

impl rustls::KeyLog for TlsSecrets {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        self.log.line(&format!("{label} {} {}", hex(client_random), hex(secret)));
    }
}
