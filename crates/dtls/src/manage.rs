//! The interface between an association and its key management (draft-ietf-tsvwg-sctp-dtls-chunk,
//! sections "DTLS Key Management Method Considerations" and "Abstract API").
//!
//! [`KeyManagement`] is a method with its settings, given to an endpoint. It makes a [`KeySession`]
//! for each association: an object that takes and gives bytes, without clock or sockets.

use std::fmt;

use bytes::Bytes;

use crate::{OpeningKeys, SealingKeys};

/// Identifier of the method "pre-shared cryptographic parameters" (draft, section "DTLS Key
/// Management Method Identifiers").
pub const METHOD_PRE_SHARED: u8 = 0;

/// Identifier of the method "TLS for DTLS in SCTP" (draft-porfiri-tsvwg-sctp-dtls-handshake).
pub const METHOD_TLS: u8 = 192;

/// A role in key management, of one end of an association.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// It speaks first.
    Client,
    /// It answers.
    Server,
}

/// The roles that an end can take (the C and S bits of the DTLS Key Management parameter).
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Roles {
    /// It can be the client.
    pub client: bool,
    /// It can be the server.
    pub server: bool,
}

impl Roles {
    /// Only the client's.
    pub const CLIENT: Roles = Roles { client: true, server: false };
    /// Only the server's.
    pub const SERVER: Roles = Roles { client: false, server: true };
    /// Either: where both ends can take either, the tie breakers decide.
    pub const BOTH: Roles = Roles { client: true, server: true };
}

/// The agreement of both ends in the handshake of their association.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Agreement {
    /// The role of this end.
    pub role: Role,
    /// The identifier of the method; one of [`KeyManagement::methods`].
    pub method: u8,
    /// The DTLS Key Management parameter of the client, as it was on the wire: with its header and
    /// without padding. Keys must depend on it and on the server's, lest somebody weaken them on
    /// their way.
    pub client_parameter: Bytes,
    /// The parameter of the server, in the same form.
    pub server_parameter: Bytes,
    /// The verification tags that the client and the server expect.
    pub tags: (u32, u32),
}

impl Agreement {
    /// An agreement on `method`, with both parameters and tags; those of the client come first.
    #[must_use]
    pub fn new(role: Role, method: u8, parameters: (Bytes, Bytes), tags: (u32, u32)) -> Agreement {
        let (client_parameter, server_parameter) = parameters;
        Agreement { role, method, client_parameter, server_parameter, tags }
    }
}

/// Methods of key management, with their settings.
pub trait KeyManagement: fmt::Debug + Send + Sync {
    /// The identifiers of the methods that it supports, the preferred one first. At least one, and
    /// always the same.
    fn methods(&self) -> &[u8];

    /// The roles that this end can take in an association that it begins, or that the peer begins.
    fn roles(&self, begins: bool) -> Roles;

    /// Begins the key management of an association whose handshake is complete.
    fn begin(&self, agreement: Agreement) -> Box<dyn KeySession>;
}

/// The key management of one association.
///
/// After each input, call [`poll`](Self::poll) until there is nothing more.
pub trait KeySession: fmt::Debug + Send {
    /// Handles a message of the peer's key management. Messages come in order and none is lost.
    fn handle_message(&mut self, message: Bytes);

    /// A record of this epoch was opened, and none of it before.
    fn opened(&mut self, epoch: u64);

    /// Begins to replace the keys, unless that is under way. May be called again and again.
    fn rekey(&mut self);

    /// The next thing that the association must do.
    fn poll(&mut self) -> Option<KeyAction>;
}

/// An order of key management to its association.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeyAction {
    /// Send a message to the peer's key management, reliably and in order. Those before the first
    /// [`SealWith`](Self::SealWith) go unprotected.
    Send(Bytes),
    /// Install keys for what the peer seals: those of the next epoch. The keys of older epochs are
    /// kept.
    OpenWith(OpeningKeys),
    /// Seal everything with these keys from now on. Comes after the peer's keys of this epoch.
    SealWith(SealingKeys),
    /// The peer is who it should be: the application's data may flow. Comes once, after the first
    /// keys.
    Authenticated(Peer),
    /// End the association. If keys are installed, they still protect the ABORT.
    Fail(KeyFailure),
}

/// The peer, as far as key management knows it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Peer {
    /// Who it is.
    pub identity: PeerIdentity,
    /// A secret that only the two ends of this association know, for protocols of the application
    /// that prove more than `identity` does. Another association has another one.
    pub binding: [u8; 32],
}

/// Without the binding.
impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("identity", &self.identity).finish_non_exhaustive()
    }
}

impl Peer {
    /// A peer with this identity and this secret.
    #[must_use]
    pub fn new(identity: PeerIdentity, binding: [u8; 32]) -> Peer {
        Peer { identity, binding }
    }
}

/// Who a peer has proved to be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PeerIdentity {
    /// Nobody in particular: the association is encrypted, but not authenticated.
    Anonymous,
    /// One that has the shared key.
    SharedKey,
    /// The owner of a public key, a SubjectPublicKeyInfo in DER (RFC 7250).
    PublicKey(Bytes),
    /// The owner of a certificate: the certificates in DER, its own first.
    Certificate(Vec<Bytes>),
}

/// Why key management failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct KeyFailure {
    /// For the user, without a full stop.
    pub reason: String,
    /// It was the peer that refused.
    pub by_peer: bool,
}

impl KeyFailure {
    /// A failure that this end found.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> KeyFailure {
        KeyFailure { reason: reason.into(), by_peer: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_of_an_association_is_not_printed() {
        let action = KeyAction::Authenticated(Peer::new(PeerIdentity::SharedKey, [123; 32]));
        let printed = format!("{action:?}");
        assert!(printed.contains("SharedKey") && !printed.contains("123"), "{printed}");
    }
}
