//! Two sessions, and a network between them that may change messages. Records are sealed and opened
//! with the keys that the sessions give.

use std::collections::VecDeque;

use bytes::Bytes;
use manypath_dtls::manage::{
    Agreement, KeyAction, KeyFailure, KeyManagement, KeySession, METHOD_TLS, Peer, Role,
};
use manypath_dtls::{Epochs, HEADER_LEN, SealingKeys};
use manypath_keys::tls::{Identity, PeerKeys, TlsKeys};

/// DTLS Key Management parameters as they may be on the wire: only their bytes matter here.
pub(crate) const CLIENT_PARAMETER: &[u8] = &[0x80, 0x06, 0, 9, 1, 192, 0xaa, 0xbb, 0xcc];
pub(crate) const SERVER_PARAMETER: &[u8] = &[0x80, 0x06, 0, 9, 2, 192, 0x11, 0x22, 0x33];

pub(crate) const TAGS: (u32, u32) = (0x0102_0304, 0xa1a2_a3a4);

pub(crate) fn agreement(role: Role) -> Agreement {
    let parameters = (Bytes::from_static(CLIENT_PARAMETER), Bytes::from_static(SERVER_PARAMETER));
    Agreement::new(role, METHOD_TLS, parameters, TAGS)
}

pub(crate) fn identity() -> Identity {
    Identity::generate().expect("random numbers")
}

/// Keys with an identity of its own, for any peer.
pub(crate) fn anybody() -> TlsKeys {
    TlsKeys::raw_public_keys(&identity(), PeerKeys::Any)
}

/// One end of an association.
pub(crate) struct End {
    pub(crate) session: Box<dyn KeySession>,
    pub(crate) opening: Epochs,
    pub(crate) sealing: Option<SealingKeys>,
    pub(crate) peer: Option<Peer>,
    pub(crate) failure: Option<KeyFailure>,
    /// Messages on their way to the other end.
    pub(crate) outbox: VecDeque<Bytes>,
    /// The actions so far, in short.
    pub(crate) log: Vec<String>,
}

impl End {
    pub(crate) fn new(keys: &TlsKeys, agreement: Agreement) -> End {
        let mut end = End {
            session: keys.begin(agreement),
            opening: Epochs::default(),
            sealing: None,
            peer: None,
            failure: None,
            outbox: VecDeque::new(),
            log: Vec::new(),
        };
        end.act();
        end
    }

    pub(crate) fn handle(&mut self, message: Bytes) {
        self.session.handle_message(message);
        self.act();
    }

    pub(crate) fn rekey(&mut self) {
        self.session.rekey();
        self.act();
    }

    /// Does what the session wants, and checks that it makes sense.
    fn act(&mut self) {
        while let Some(action) = self.session.poll() {
            assert!(self.failure.is_none(), "{action:?} follows a failure");
            let entry = match action {
                KeyAction::Send(message) => {
                    let entry = format!("send {:02x}", message[0]);
                    self.outbox.push_back(message);
                    entry
                }
                KeyAction::OpenWith(keys) => {
                    let entry = format!("open {}", keys.epoch());
                    self.opening.install(keys);
                    entry
                }
                KeyAction::SealWith(keys) => {
                    let entry = format!("seal {}", keys.epoch());
                    let next = self.sealing.as_ref().map_or(3, |keys| keys.epoch() + 1);
                    assert_eq!(keys.epoch(), next);
                    assert_eq!(self.opening.newest(), Some(next), "it must open before it seals");
                    self.sealing = Some(keys);
                    entry
                }
                KeyAction::Authenticated(peer) => {
                    assert!(self.peer.is_none(), "it comes once");
                    self.peer = Some(peer);
                    "authenticated".to_owned()
                }
                KeyAction::Fail(failure) => {
                    let entry = format!("fail: {failure}");
                    self.failure = Some(failure);
                    entry
                }
                other => panic!("unknown action {other:?}"),
            };
            self.log.push(entry);
        }
    }

    pub(crate) fn seal(&mut self, chunks: &[u8]) -> Vec<u8> {
        let mut record = vec![0; HEADER_LEN];
        record.extend_from_slice(chunks);
        let keys = self.sealing.as_mut().expect("keys to seal with");
        keys.seal(&mut record, 0).expect("keys that are not exhausted");
        record
    }

    /// The epoch and content of a record, if it opens.
    pub(crate) fn open(&mut self, record: &[u8]) -> Option<(u64, Vec<u8>)> {
        let mut record = record.to_vec();
        let (opened, chunks) = self.opening.open(&mut record).ok()?;
        Some((opened.epoch, record[chunks].to_vec()))
    }

    pub(crate) fn reason(&self) -> &str {
        self.failure.as_ref().map_or("no failure", |failure| &failure.reason)
    }
}

/// Both ends of an association.
pub(crate) struct Pair {
    pub(crate) client: End,
    pub(crate) server: End,
}

impl Pair {
    /// Begins; nothing is delivered yet.
    pub(crate) fn new(client: &TlsKeys, server: &TlsKeys) -> Pair {
        Pair {
            client: End::new(client, agreement(Role::Client)),
            server: End::new(server, agreement(Role::Server)),
        }
    }

    /// Begins, and delivers all messages.
    pub(crate) fn run_new(client: &TlsKeys, server: &TlsKeys) -> Pair {
        let mut pair = Pair::new(client, server);
        pair.run();
        pair
    }

    /// Begins, and does it successfully.
    pub(crate) fn established(client: &TlsKeys, server: &TlsKeys) -> Pair {
        let mut pair = Pair::run_new(client, server);
        pair.assert_works(3);
        pair
    }

    /// Delivers all messages until there are none.
    pub(crate) fn run(&mut self) {
        self.run_changing(|_, message| Some(message));
    }

    /// The same; `change` sees each message with its sender, and may change or discard it.
    pub(crate) fn run_changing(&mut self, mut change: impl FnMut(Role, Bytes) -> Option<Bytes>) {
        for _ in 0..100 {
            if let Some(message) = self.client.outbox.pop_front() {
                if let Some(message) = change(Role::Client, message) {
                    self.server.handle(message);
                }
            } else if let Some(message) = self.server.outbox.pop_front() {
                if let Some(message) = change(Role::Server, message) {
                    self.client.handle(message);
                }
            } else {
                return;
            }
        }
        panic!("there is no end of messages");
    }

    /// Both ends trust each other, use this epoch, and understand each other.
    pub(crate) fn assert_works(&mut self, epoch: u64) {
        for end in [&self.client, &self.server] {
            assert_eq!(end.failure, None, "{:?}", end.log);
            assert!(end.peer.is_some(), "{:?}", end.log);
        }
        let (client, server) = (self.client.peer.as_ref(), self.server.peer.as_ref());
        assert_eq!(client.map(|peer| peer.binding), server.map(|peer| peer.binding));
        let record = self.client.seal(b"ping");
        assert_eq!(self.server.open(&record), Some((epoch, b"ping".to_vec())));
        assert_eq!(self.client.open(&record), None, "the two directions have keys of their own");
        let record = self.server.seal(b"pong");
        assert_eq!(self.client.open(&record), Some((epoch, b"pong".to_vec())));
    }
}
