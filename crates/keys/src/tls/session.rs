//! The key management of one association.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use manypath_dtls::manage::{
    Agreement, KeyAction, KeyFailure, KeySession, Peer, PeerIdentity, Role,
};
use manypath_dtls::{FIRST_EPOCH, OpeningKeys, SealingKeys, aws_lc};

use super::config::TlsRoles;
use super::handshake::Handshake;
use super::message::{self, Content, Message};
use super::peer::KnownPeer;
use super::{PeerKeys, Settings, failure};
use crate::key_log;

#[derive(Debug)]
pub(super) struct TlsSession {
    settings: Arc<Settings>,
    agreement: Agreement,
    state: State,
    /// The newest epoch whose handshake is over.
    epoch: Option<u64>,
    /// The peer of the first handshake.
    peer: Option<KnownPeer>,
    actions: VecDeque<KeyAction>,
}

#[derive(Debug)]
enum State {
    /// No handshake is under way. The next one may begin.
    Idle,
    /// TLS has given no keys yet.
    Negotiating(Handshake),
    /// This end was the TLS client, and waits for "Protection Established". Until then an alert of
    /// the server may come.
    Unconfirmed {
        handshake: Handshake,
        /// The keys to seal with from then on; in the first handshake they are in use already.
        sealing: Option<SealingKeys>,
    },
    /// It failed; nothing follows.
    Failed,
}

/// The keys of both directions.
struct Keys {
    opening: OpeningKeys,
    sealing: SealingKeys,
}

fn other(role: Role) -> Role {
    match role {
        Role::Client => Role::Server,
        Role::Server => Role::Client,
    }
}

impl KeySession for TlsSession {
    fn handle_message(&mut self, message: Bytes) {
        if matches!(self.state, State::Failed) {
            return;
        }
        if let Err(failure) = self.message(&message) {
            self.fail(failure);
        }
    }

    /// "Protection Established" tells as much, and comes from the peer's key management.
    fn opened(&mut self, _epoch: u64) {}

    fn rekey(&mut self) {
        let nobody = matches!(self.peer, Some(KnownPeer::Nobody));
        // A client without a certificate could not be the TLS server.
        let is_able = self.agreement.role == Role::Client || !nobody;
        if self.epoch.is_some()
            && is_able
            && matches!(self.state, State::Idle)
            && let Err(failure) = self.begin_handshake()
        {
            self.fail(failure);
        }
    }

    fn poll(&mut self) -> Option<KeyAction> {
        self.actions.pop_front()
    }
}

impl TlsSession {
    pub(super) fn new(settings: Arc<Settings>, agreement: Agreement) -> TlsSession {
        let mut session = TlsSession {
            settings,
            agreement,
            state: State::Idle,
            epoch: None,
            peer: None,
            actions: VecDeque::new(),
        };
        let begun = match (session.agreement.role, session.tls_roles()) {
            (Role::Client, TlsRoles { client: Some(_), .. }) => session.begin_handshake(),
            (Role::Server, TlsRoles { server: Some(_), .. }) => Ok(()),
            _ => Err(failure::ours("there is no TLS configuration for this end's role")),
        };
        if let Err(failure) = begun {
            session.fail(failure);
        }
        session
    }

    fn tls_roles(&self) -> &TlsRoles {
        match self.agreement.role {
            Role::Client => &self.settings.roles.as_client,
            Role::Server => &self.settings.roles.as_server,
        }
    }

    fn next_epoch(&self) -> u64 {
        self.epoch.map_or(FIRST_EPOCH, |epoch| epoch + 1)
    }

    /// Begins a handshake as the TLS client, if there is a configuration for it.
    fn begin_handshake(&mut self) -> Result<(), KeyFailure> {
        if let Some(end) = &self.tls_roles().client {
            let mut handshake = Handshake::client(end, self.next_epoch())?;
            self.actions.extend(handshake.output().map(KeyAction::Send));
            self.state = State::Negotiating(handshake);
        }
        Ok(())
    }

    fn fail(&mut self, failure: KeyFailure) {
        self.state = State::Failed;
        self.actions.push_back(KeyAction::Fail(failure));
    }

    fn message(&mut self, message: &[u8]) -> Result<(), KeyFailure> {
        let Some(Message { epoch, content }) = Message::read(message) else {
            return Err(failure::ours("the peer sent a message of key management without content"));
        };
        let is_next = epoch == message::epoch_bits(self.next_epoch());
        let is_past = self.epoch.is_some_and(|past| epoch == message::epoch_bits(past));
        match (mem::replace(&mut self.state, State::Idle), content) {
            // Tickets, the close of the connection: of no use any more.
            (state, _) if is_past => self.state = state,
            (_, _) if !is_next => {
                return Err(failure::ours(format!(
                    "the peer sent a message of key management for another epoch than {}",
                    self.next_epoch()
                )));
            }
            (State::Idle, Content::Records(records)) => self.answer(records)?,
            (State::Negotiating(handshake), Content::Records(records)) => {
                self.negotiate(handshake, records)?;
            }
            (State::Negotiating(_), Content::ProtectionEstablished) => {
                return Err(failure::ours("the peer confirmed keys that it does not have yet"));
            }
            (State::Unconfirmed { mut handshake, sealing }, Content::Records(records)) => {
                let received = handshake.receive(records);
                if received.is_err() {
                    self.actions.extend(handshake.output().map(KeyAction::Send));
                }
                received?;
                self.state = State::Unconfirmed { handshake, sealing };
            }
            (State::Unconfirmed { handshake, sealing }, Content::ProtectionEstablished) => {
                self.epoch = Some(handshake.epoch);
                self.actions.extend(sealing.map(KeyAction::SealWith));
            }
            (state, _) => self.state = state,
        }
        Ok(())
    }

    /// Handles the first records of a handshake that the peer begins.
    fn answer(&mut self, records: &[u8]) -> Result<(), KeyFailure> {
        match &self.tls_roles().server {
            Some(config) => {
                let handshake = Handshake::server(config, self.next_epoch())?;
                self.negotiate(handshake, records)
            }
            // This end cannot answer, but the peer's handshake would lose against its own.
            None if self.agreement.role == Role::Client => self.begin_handshake(),
            None => Err(failure::ours("there is no TLS configuration for this end's role")),
        }
    }

    fn negotiate(&mut self, mut handshake: Handshake, records: &[u8]) -> Result<(), KeyFailure> {
        let both_began = handshake.tls_role == Role::Client
            && handshake.is_unanswered()
            && self.epoch.is_some()
            && message::is_client_hello(records);
        if both_began {
            // Draft, section "Simultaneous Rekey Resolution".
            return match self.agreement.role {
                Role::Client => {
                    self.state = State::Negotiating(handshake);
                    Ok(())
                }
                Role::Server => self.answer(records),
            };
        }
        let received = handshake.receive(records);
        if received.is_ok() && handshake.is_complete() {
            return self.complete(handshake);
        }
        self.actions.extend(handshake.output().map(KeyAction::Send));
        received?;
        self.state = State::Negotiating(handshake);
        Ok(())
    }

    fn complete(&mut self, mut handshake: Handshake) -> Result<(), KeyFailure> {
        let Keys { opening, sealing } = self.keys(&handshake)?;
        let identity = handshake.peer();
        let peer = KnownPeer::new(&identity);
        let authenticated = match &self.peer {
            None => Some(self.authenticated(&handshake, identity, &peer)),
            Some(known) if known.is_same(&peer) => None,
            Some(_) => {
                return Err(failure::ours("the peer has another identity than in the beginning"));
            }
        };
        self.peer.get_or_insert(peer);
        let output = handshake.output().map(KeyAction::Send);
        self.actions.push_back(KeyAction::OpenWith(opening));
        match handshake.tls_role {
            Role::Client => {
                let sealing = match authenticated.transpose()? {
                    // A client of the draft would wait for "Protection Established". This one does
                    // not: the association sends the output unprotected, and protects the rest.
                    Some(authenticated) => {
                        self.actions.extend(output);
                        self.actions.push_back(KeyAction::SealWith(sealing));
                        self.actions.push_back(authenticated);
                        None
                    }
                    None => {
                        self.actions.extend(output);
                        Some(sealing)
                    }
                };
                self.state = State::Unconfirmed { handshake, sealing };
            }
            Role::Server => {
                self.actions.push_back(KeyAction::SealWith(sealing));
                // The keys protect a refusal.
                self.actions.extend(authenticated.transpose()?);
                self.actions.extend(output);
                self.actions
                    .push_back(KeyAction::Send(message::protection_established(handshake.epoch)));
                self.epoch = Some(handshake.epoch);
                self.state = State::Idle;
            }
        }
        Ok(())
    }

    /// Accepts or refuses the peer of the first handshake.
    fn authenticated(
        &self,
        handshake: &Handshake,
        identity: PeerIdentity,
        peer: &KnownPeer,
    ) -> Result<KeyAction, KeyFailure> {
        let accepted = match (&self.settings.peers, peer) {
            (PeerKeys::Any, _) => Ok(()),
            (peers, KnownPeer::PublicKey(key)) => peers.check(key).map_err(|no| no.to_string()),
            (PeerKeys::Pinned(_), _) => Err("the peer has no raw public key".to_owned()),
        };
        accepted.map_err(failure::ours)?;
        let binding = handshake.binding(&self.agreement)?;
        Ok(KeyAction::Authenticated(Peer::new(identity, binding)))
    }

    fn keys(&self, handshake: &Handshake) -> Result<Keys, KeyFailure> {
        let suite = handshake.suite()?;
        let epoch = handshake.epoch;
        // The roles of key management and of this TLS connection are the other way round if the
        // server began a rekeying.
        let derive = |tls_role, role| {
            let material = handshake.keys(suite, tls_role, &self.agreement)?;
            if let Some(log) = &self.settings.key_log {
                log.line(&key_log::chunk_keys(&self.agreement, role, epoch, suite, &material));
            }
            let cipher = aws_lc::cipher(suite, &material)
                .map_err(|error| failure::ours(error.to_string()))?;
            Ok((cipher, material.iv))
        };
        let (cipher, iv) = derive(handshake.tls_role, self.agreement.role)?;
        let sealing = SealingKeys::new(suite, cipher, iv, epoch);
        let (cipher, iv) = derive(other(handshake.tls_role), other(self.agreement.role))?;
        Ok(Keys { sealing, opening: OpeningKeys::new(cipher, iv, epoch) })
    }
}
