//! One TLS connection of key management.

use std::io::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use manypath_dtls::manage::{Agreement, KeyFailure, PeerIdentity, Role};
use manypath_dtls::{
    CipherSuite, Direction, EXPORTER_LABEL, KeyKind, KeyMaterial, KeyRole, exporter_context,
};
use rustls::{ClientConnection, Connection, ProtocolVersion, ServerConfig, ServerConnection};

use super::config::ClientEnd;
use super::{failure, message, peer};

/// Bytes of TLS records that a connection takes from the peer at most.
const RECEIVED_MAX: usize = 64 * 1024;

/// The label of [`Peer::binding`](manypath_dtls::manage::Peer::binding).
const BINDING_LABEL: &[u8] = b"EXPORTER-manypath-channel-binding";

/// A TLS connection for the keys of one epoch.
#[derive(Debug)]
pub(super) struct Handshake {
    connection: Connection,
    /// The role of this end in this connection.
    pub(super) tls_role: Role,
    pub(super) epoch: u64,
    /// Bytes of TLS records from the peer.
    received: usize,
}

impl Handshake {
    pub(super) fn client(end: &ClientEnd, epoch: u64) -> Result<Handshake, KeyFailure> {
        let connection = ClientConnection::new(end.config.clone(), end.name.clone())
            .map_err(|error| failure::of_tls(&error))?;
        let connection = Connection::Client(connection);
        Ok(Handshake { connection, tls_role: Role::Client, epoch, received: 0 })
    }

    pub(super) fn server(config: &Arc<ServerConfig>, epoch: u64) -> Result<Handshake, KeyFailure> {
        let connection =
            ServerConnection::new(config.clone()).map_err(|error| failure::of_tls(&error))?;
        let connection = Connection::Server(connection);
        Ok(Handshake { connection, tls_role: Role::Server, epoch, received: 0 })
    }

    /// Tells if nothing came from the peer yet.
    pub(super) fn is_unanswered(&self) -> bool {
        self.received == 0
    }

    /// Tells if keys can be exported.
    pub(super) fn is_complete(&self) -> bool {
        !self.connection.is_handshaking()
    }

    /// Handles TLS records of the peer. There may be [output](Self::output) after it, also if it
    /// fails.
    pub(super) fn receive(&mut self, mut records: &[u8]) -> Result<(), KeyFailure> {
        self.received = self.received.saturating_add(records.len());
        if self.received > RECEIVED_MAX {
            return Err(failure::ours(format!(
                "the peer sent more than {RECEIVED_MAX} bytes in a TLS handshake"
            )));
        }
        let was_complete = self.is_complete();
        while !records.is_empty() {
            match self.connection.read_tls(&mut records) {
                // The peer has closed the connection: anything after that is ignored.
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => {
                    return Err(failure::ours(format!("the TLS handshake failed: {error}")));
                }
            }
            let state = self.connection.process_new_packets();
            let state = state.map_err(|error| failure::of_tls(&error))?;
            if state.plaintext_bytes_to_read() > 0 {
                return Err(failure::ours("the peer sent application data in TLS"));
            }
        }
        if was_complete {
            // rustls answers a KeyUpdate, which must not be used, with the next bytes that it
            // writes.
            let _ = self.connection.writer().write(&[]);
            if self.connection.wants_write() {
                return Err(failure::ours("the peer sent a KeyUpdate in TLS"));
            }
        }
        Ok(())
    }

    /// The message with the records that are to be sent.
    pub(super) fn output(&mut self) -> Option<Bytes> {
        let mut records = Vec::new();
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut records) {
                Ok(1..) => {}
                Ok(0) | Err(_) => break,
            }
        }
        (!records.is_empty()).then(|| message::records(self.epoch, &records))
    }

    /// The peer. Known when the handshake is complete.
    pub(super) fn peer(&self) -> PeerIdentity {
        peer::identity(self.connection.peer_certificates())
    }

    /// The cipher suite of the connection, and so of the DTLS chunks.
    pub(super) fn suite(&self) -> Result<CipherSuite, KeyFailure> {
        if self.connection.protocol_version() != Some(ProtocolVersion::TLSv1_3) {
            return Err(failure::ours("the TLS configuration is not limited to TLS 1.3"));
        }
        let suite = self.connection.negotiated_cipher_suite();
        let id = suite.map_or(0, |suite| u16::from(suite.suite()));
        CipherSuite::from_id(id).ok_or_else(|| {
            failure::ours(format!("DTLS chunks cannot use the cipher suite 0x{id:04x} of TLS"))
        })
    }

    /// The keys of the end that has this role in the TLS connection.
    pub(super) fn keys(
        &self,
        suite: CipherSuite,
        sealed_by: Role,
        agreement: &Agreement,
    ) -> Result<KeyMaterial, KeyFailure> {
        let direction = match sealed_by {
            Role::Client => Direction::Client,
            Role::Server => Direction::Server,
        };
        let Agreement { client_parameter, server_parameter, .. } = agreement;
        let context = |kind| {
            exporter_context(direction, KeyRole::Primary, kind, client_parameter, server_parameter)
        };
        let export = |kind, len| self.export(vec![0; len], EXPORTER_LABEL, &context(kind));
        Ok(KeyMaterial {
            key: export(KeyKind::Key, suite.key_len())?,
            sequence_number_key: export(KeyKind::SequenceNumberKey, suite.key_len())?,
            iv: self.export(Default::default(), EXPORTER_LABEL, &context(KeyKind::Iv))?,
        })
    }

    /// A secret of this association for the application.
    pub(super) fn binding(&self, agreement: &Agreement) -> Result<[u8; 32], KeyFailure> {
        // Parameters have a length in their header: two others do not give the same context.
        let context = [&agreement.client_parameter[..], &agreement.server_parameter[..]].concat();
        self.export([0; 32], BINDING_LABEL, &context)
    }

    fn export<T: AsMut<[u8]>>(
        &self,
        out: T,
        label: &[u8],
        context: &[u8],
    ) -> Result<T, KeyFailure> {
        let exported = self.connection.export_keying_material(out, label, Some(context));
        exported.map_err(|error| failure::of_tls(&error))
    }
}
