//! Messages of key management by TLS, at a client and a server that have just begun. Each may get
//! those that the other sent, as they are, damaged or cut short, and messages that nobody sent, and
//! may begin to rekey. Nothing panics, nothing follows a failure, no message is huge, and ends with
//! keys of the same epoch have the same keys.

#![no_main]

use std::collections::VecDeque;
use std::sync::OnceLock;

use bytes::{Bytes, BytesMut};
use libfuzzer_sys::fuzz_target;
use manypath_dtls::manage::{Agreement, KeyAction, KeyManagement, KeySession, METHOD_TLS, Role};
use manypath_dtls::{Epochs, HEADER_LEN, SealingKeys};
use manypath_keys::tls::{Identity, PeerKeys, TlsKeys};

fn keys(role: Role) -> &'static TlsKeys {
    static KEYS: OnceLock<[TlsKeys; 2]> = OnceLock::new();
    let new = || {
        let identity = Identity::generate().expect("random numbers");
        TlsKeys::raw_public_keys(&identity, PeerKeys::Any)
    };
    let [client, server] = KEYS.get_or_init(|| [new(), new()]);
    match role {
        Role::Client => client,
        Role::Server => server,
    }
}

struct End {
    session: Box<dyn KeySession>,
    opening: Epochs,
    sealing: Option<SealingKeys>,
    outbox: VecDeque<Bytes>,
    is_trusting: bool,
    has_failed: bool,
}

impl End {
    fn new(role: Role) -> End {
        let parameters = (Bytes::from_static(b"client"), Bytes::from_static(b"server"));
        let agreement = Agreement::new(role, METHOD_TLS, parameters, (1, 2));
        let mut end = End {
            session: keys(role).begin(agreement),
            opening: Epochs::default(),
            sealing: None,
            outbox: VecDeque::new(),
            is_trusting: false,
            has_failed: false,
        };
        end.act();
        end
    }

    fn handle(&mut self, message: Bytes) {
        self.session.handle_message(message);
        self.act();
    }

    fn act(&mut self) {
        while let Some(action) = self.session.poll() {
            assert!(!self.has_failed, "{action:?} follows a failure");
            match action {
                KeyAction::Send(message) => {
                    assert!(message.len() < 8192, "a message of {} bytes", message.len());
                    self.outbox.push_back(message);
                }
                KeyAction::OpenWith(keys) => self.opening.install(keys),
                KeyAction::SealWith(keys) => {
                    assert_eq!(self.opening.newest(), Some(keys.epoch()));
                    self.sealing = Some(keys);
                }
                KeyAction::Authenticated(_) => {
                    assert!(!self.is_trusting && self.sealing.is_some());
                    self.is_trusting = true;
                }
                KeyAction::Fail(_) => self.has_failed = true,
                action => panic!("unknown action {action:?}"),
            }
        }
    }
}

fn assert_same_keys(from: &mut End, to: &mut End) {
    let Some(keys) = &mut from.sealing else { return };
    if to.opening.get(keys.epoch()).is_none() {
        return;
    }
    let mut record = vec![0; HEADER_LEN];
    record.extend_from_slice(b"content");
    keys.seal(&mut record, 0).expect("keys that are not exhausted");
    let (_, content) = to.opening.open(&mut record).expect("the same keys");
    assert_eq!(&record[content], b"content");
}

/// Takes up to `len` bytes.
fn take<'a>(data: &mut &'a [u8], len: usize) -> &'a [u8] {
    let (taken, rest) = data.split_at(len.min(data.len()));
    *data = rest;
    taken
}

fuzz_target!(|data: &[u8]| {
    let mut data = data;
    let mut ends = [End::new(Role::Client), End::new(Role::Server)];
    while let Some(&what) = take(&mut data, 1).first() {
        let [client, server] = &mut ends;
        let (from, to) = if what & 1 == 0 { (client, server) } else { (server, client) };
        match what >> 1 & 7 {
            0 | 1 => {
                if let Some(message) = from.outbox.pop_front() {
                    to.handle(message);
                }
            }
            2 => {
                let &[high, low, by] = take(&mut data, 3) else { break };
                if let Some(message) = from.outbox.pop_front() {
                    let mut message = BytesMut::from(&message[..]);
                    let at = usize::from(u16::from_be_bytes([high, low])) % message.len();
                    message[at] ^= by;
                    to.handle(message.freeze());
                }
            }
            3 => {
                let &[high, low] = take(&mut data, 2) else { break };
                if let Some(message) = from.outbox.pop_front() {
                    let at = usize::from(u16::from_be_bytes([high, low])) % message.len();
                    to.handle(message.slice(..at));
                    to.handle([&message[..1], &message[at..]].concat().into());
                }
            }
            4 => {
                from.session.rekey();
                from.act();
            }
            5 => drop(from.outbox.pop_front()),
            _ => {
                let &[high, low] = take(&mut data, 2) else { break };
                let len = usize::from(u16::from_be_bytes([high, low]));
                to.handle(Bytes::copy_from_slice(take(&mut data, len)));
            }
        }
        let [client, server] = &mut ends;
        assert_same_keys(client, server);
        assert_same_keys(server, client);
    }
});
