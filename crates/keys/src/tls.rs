//! "TLS for DTLS in SCTP" (draft-porfiri-tsvwg-sctp-dtls-handshake): keys come from TLS 1.3.
//!
//! The client begins a TLS handshake when the association is established. Each message of the
//! method holds TLS records, and keys come from the TLS exporter. Rekeying is a new handshake, and
//! either end can begin it.
//!
//! - Both ends prove an identity: a raw public key (RFC 7250) or a certificate.
//! - The two DTLS Key Management parameters go into the keys. If one was changed on its way, the
//!   keys differ and nothing opens.
//! - Key exchange is X25519; configurations of a program's own may prefer the hybrid with
//!   ML-KEM-768, which costs a round trip.
//! - A session takes at most 64 KiB of TLS records a handshake, and has one handshake at a time. It
//!   has no clock: the association ends a handshake that takes too long.
//!
//! # A refused peer learns the reason
//!
//! A client that expects another key of the server ends the handshake before it shows its own
//! identity. A server that does not accept a client's raw public key completes the handshake first,
//! so that keys protect the reason of its refusal: [`Fail`] comes in place of [`Authenticated`]. A
//! certificate that is not accepted ends the handshake itself, with an alert of TLS, which the
//! peer can authenticate, too.
//!
//! # Differences to the draft
//!
//! - A client seals its packets after its last TLS message. It does not wait for "Protection
//!   Established" in the first handshake.
//! - A rekeying that fails ends the association. The draft would have it tried again.
//! - There are no keys for restarts.
//!
//! [`Fail`]: manypath_dtls::manage::KeyAction::Fail
//! [`Authenticated`]: manypath_dtls::manage::KeyAction::Authenticated

mod config;
mod failure;
mod handshake;
mod identity;
mod message;
mod peer;
mod session;
mod verify;

use std::sync::Arc;

use manypath_dtls::manage::{Agreement, KeyManagement, KeySession, METHOD_TLS, Role, Roles};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};

pub use config::{Certificates, ClientAuth, ConfigError, Roots};
pub use identity::{Identity, IdentityError, IdentityKind};
pub use manypath_trust::{Fingerprint, FingerprintError};
/// The library of TLS, for configurations of it.
pub use rustls;
pub use verify::PeerKeys;

use crate::key_log::KeyLog;
use config::{ClientEnd, TlsRoles};

/// Key management with TLS.
#[derive(Clone, Debug)]
pub struct TlsKeys {
    settings: Arc<Settings>,
}

#[derive(Clone, Debug)]
struct Settings {
    roles: config::Roles,
    /// The raw public keys that peers may have.
    peers: PeerKeys,
    /// The configurations are the user's, and stay as they are.
    is_given: bool,
    key_log: Option<Arc<dyn KeyLog>>,
}

impl TlsKeys {
    /// Raw public keys on both sides: `identity` on ours, one of `peers` on the other.
    ///
    /// [`PeerIdentity::PublicKey`](manypath_dtls::manage::PeerIdentity::PublicKey) is the identity
    /// of the peer, also with [`PeerKeys::Any`].
    #[must_use]
    pub fn raw_public_keys(identity: &Identity, peers: PeerKeys) -> TlsKeys {
        let roles = config::Roles::raw_public_keys(identity, &peers);
        TlsKeys::new(Settings { roles, peers, is_given: false, key_log: None })
    }

    /// Certificates on both sides.
    ///
    /// Both ends keep their rules for rekeyings, whichever begins them: the client checks that the
    /// server's certificate is a server's and has the right name, the server that the client's is a
    /// client's. A server does not begin to rekey with a client that has no certificate.
    ///
    /// # Errors
    /// If a file is no PEM, or its content does not fit.
    pub fn certificates(files: &Certificates<'_>) -> Result<TlsKeys, ConfigError> {
        let roles = config::Roles::certificates(files)?;
        Ok(TlsKeys::new(Settings { roles, peers: PeerKeys::Any, is_given: false, key_log: None }))
    }

    /// Configurations of rustls, used as they are: for the client with the name of the server, and
    /// for the server. They must use TLS 1.3 only, with cipher suites of the DTLS chunk, and should
    /// authenticate both ends.
    ///
    /// An end rekeys as a TLS client or as a TLS server, whatever its role. Give both
    /// configurations, if you can:
    /// - A server without a client's configuration never begins to rekey.
    /// - A client without a server's configuration begins itself when the server does.
    ///
    /// # Errors
    /// If there is no configuration.
    pub fn from_rustls(
        client: Option<(Arc<ClientConfig>, ServerName<'static>)>,
        server: Option<Arc<ServerConfig>>,
    ) -> Result<TlsKeys, ConfigError> {
        if client.is_none() && server.is_none() {
            return Err(ConfigError::NoRole);
        }
        let client = client.map(|(config, name)| ClientEnd { config, name });
        let roles = TlsRoles { client, server };
        let roles = config::Roles { as_client: roles.clone(), as_server: roles };
        Ok(TlsKeys::new(Settings { roles, peers: PeerKeys::Any, is_given: true, key_log: None }))
    }

    /// Has the keys written to a log, for tools that decrypt captures: those of DTLS chunks, and
    /// the secrets of TLS, except with configurations that were [given](Self::from_rustls).
    #[must_use]
    pub fn log_keys(mut self, log: Arc<dyn KeyLog>) -> TlsKeys {
        let settings = Arc::make_mut(&mut self.settings);
        if !settings.is_given {
            settings.roles.log_keys(&log);
        }
        settings.key_log = Some(log);
        self
    }

    fn new(settings: Settings) -> TlsKeys {
        TlsKeys { settings: Arc::new(settings) }
    }

    fn can_be(&self, role: Role) -> bool {
        let Settings { roles, .. } = &*self.settings;
        match role {
            Role::Client => roles.as_client.client.is_some(),
            Role::Server => roles.as_server.server.is_some(),
        }
    }
}

impl KeyManagement for TlsKeys {
    fn methods(&self) -> &[u8] {
        &[METHOD_TLS]
    }

    /// The end that begins an association is the client: it is the one that knows whom it wants to
    /// reach, and must not be talked into the rules for a server. Only an end that has the settings
    /// of one role takes that one always.
    fn roles(&self, begins: bool) -> Roles {
        match (self.can_be(Role::Client), self.can_be(Role::Server)) {
            (true, true) => Roles { client: begins, server: !begins },
            (client, server) => Roles { client, server },
        }
    }

    fn begin(&self, agreement: Agreement) -> Box<dyn KeySession> {
        Box::new(session::TlsSession::new(self.settings.clone(), agreement))
    }
}
