//! Peers and networks that mean no good, or do not know better.

use std::io::Write as _;

use bytes::{BufMut, Bytes, BytesMut};
use manypath_dtls::manage::Role;
use manypath_keys::tls::rustls::{ClientConnection, Connection, ServerConnection};
use manypath_keys::tls::{ClientAuth, TlsKeys};
use proptest::prelude::*;

use crate::certificates::{given_client, given_server};
use crate::harness::{End, Pair, agreement, anybody};
use crate::pki::Authority;

const NAME: &str = "receiver.example";

/// A peer that is nothing but rustls.
struct Foreign(Connection);

impl Foreign {
    fn handle(&mut self, message: &[u8]) {
        assert_eq!(message[0], 3, "records of the first epoch");
        let mut records = &message[1..];
        while !records.is_empty() {
            self.0.read_tls(&mut records).unwrap();
            self.0.process_new_packets().unwrap();
        }
    }

    /// A message with all that rustls wants to send.
    fn message(&mut self) -> Bytes {
        let mut records = vec![3];
        while self.0.wants_write() {
            self.0.write_tls(&mut records).unwrap();
        }
        records.into()
    }
}

/// Our client, keys of it that are installed, and a foreign server that saw its last flight.
fn foreign_server() -> (End, Foreign) {
    let authority = Authority::new("authority");
    let config = given_server(&authority, &authority.server(NAME));
    let mut server = Foreign(Connection::Server(ServerConnection::new(config).unwrap()));
    let keys = authority.client_keys(&authority.client("sender"), NAME);
    let mut client = End::new(&keys, agreement(Role::Client));
    server.handle(&client.outbox.pop_front().unwrap());
    client.handle(server.message());
    server.handle(&client.outbox.pop_front().unwrap());
    assert!(client.peer.is_some());
    (client, server)
}

/// Our server, and a foreign client that has seen its flight.
fn foreign_client() -> (End, Foreign) {
    let authority = Authority::new("authority");
    let (config, name) = given_client(&authority, Some(&authority.client("sender")));
    let mut client = Foreign(Connection::Client(ClientConnection::new(config, name).unwrap()));
    let keys = authority.server_keys(&authority.server(NAME), ClientAuth::Required);
    let mut server = End::new(&keys, agreement(Role::Server));
    server.handle(client.message());
    client.handle(&server.outbox.pop_front().unwrap());
    (server, client)
}

#[test]
fn a_server_that_is_only_rustls_is_understood() {
    let (mut client, mut server) = foreign_server();
    // Its tickets.
    let tickets = server.message();
    assert!(tickets.len() > 1);
    client.handle(tickets);
    server.0.send_close_notify();
    client.handle(server.message());
    client.handle(Bytes::from_static(&[0x83, 1]));
    assert_eq!(client.failure, None);
    // What comes late is of no use, and does no harm.
    client.handle(Bytes::from_static(&[3, 21, 3, 3]));
    client.handle(Bytes::from_static(&[0x83, 1]));
    assert_eq!(client.failure, None);
}

/// Resuming would skip the proof of identity, and show that two associations have the same client.
#[test]
fn no_connection_resumes_another() {
    let authority = Authority::new("authority");
    let config = given_server(&authority, &authority.server(NAME));
    let keys = authority.client_keys(&authority.client("sender"), NAME);
    let mut lengths = Vec::new();
    for _ in 0..2 {
        let mut server =
            Foreign(Connection::Server(ServerConnection::new(config.clone()).unwrap()));
        let mut client = End::new(&keys, agreement(Role::Client));
        let hello = client.outbox.pop_front().unwrap();
        lengths.push(hello.len());
        server.handle(&hello);
        client.handle(server.message());
        server.handle(&client.outbox.pop_front().unwrap());
        client.handle(server.message());
        assert!(client.peer.is_some() && client.failure.is_none());
    }
    assert_eq!(lengths[0], lengths[1], "the second ClientHello has no ticket of the first");
}

#[test]
fn a_client_that_is_only_rustls_is_understood() {
    let (mut server, mut client) = foreign_client();
    server.handle(client.message());
    client.0.send_close_notify();
    server.handle(client.message());
    assert_eq!(server.failure, None);
    assert!(server.peer.is_some());
}

#[test]
fn application_data_in_tls_is_refused() {
    const REASON: &str = "the peer sent application data in TLS";
    let (mut server, mut client) = foreign_client();
    client.0.writer().write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    server.handle(client.message());
    assert_eq!(server.reason(), REASON);
    assert!(server.peer.is_none());

    let (mut client, mut server) = foreign_server();
    server.0.writer().write_all(b"220 smtp.example").unwrap();
    client.handle(server.message());
    assert_eq!(client.reason(), REASON);
}

#[test]
fn key_updates_are_refused() {
    let (mut client, mut server) = foreign_server();
    client.handle(server.message());
    server.0.refresh_traffic_keys().unwrap();
    client.handle(server.message());
    assert_eq!(client.reason(), "the peer sent a KeyUpdate in TLS");
}

/// Whoever can inject an alert can end a handshake, as with any TLS; but it is no success.
#[test]
fn alerts_in_the_clear_end_a_handshake_at_most() {
    const CLOSE_NOTIFY: &[u8] = &[3, 21, 3, 3, 0, 2, 1, 0];
    const HANDSHAKE_FAILURE: &[u8] = &[3, 21, 3, 3, 0, 2, 2, 40];
    let (mut server, _client) = foreign_client();
    server.handle(Bytes::from_static(CLOSE_NOTIFY));
    assert!(server.failure.is_some() && server.peer.is_none(), "{:?}", server.log);

    // rustls ignores this one before the version is clear.
    let mut pair = Pair::new(&anybody(), &anybody());
    pair.client.handle(Bytes::from_static(CLOSE_NOTIFY));
    pair.run();
    pair.assert_works(3);

    let mut client = End::new(&anybody(), agreement(Role::Client));
    client.handle(Bytes::from_static(HANDSHAKE_FAILURE));
    assert_eq!(
        client.reason(),
        "the peer ended the TLS handshake: there are no settings that both ends accept"
    );
    assert!(client.failure.unwrap().by_peer);
}

fn message(first: u8, payload: &[u8]) -> Bytes {
    let mut message = BytesMut::new();
    message.put_u8(first);
    message.put_slice(payload);
    message.freeze()
}

#[test]
fn messages_without_content_are_refused() {
    for bytes in [&[][..], &[3], &[0x83]] {
        for role in [Role::Client, Role::Server] {
            let mut end = End::new(&anybody(), agreement(role));
            end.handle(Bytes::from_static(bytes));
            assert_eq!(end.reason(), "the peer sent a message of key management without content");
        }
    }
}

#[test]
fn messages_for_other_epochs_are_refused() {
    for first in [0, 2, 4, 127, 0x80, 0x84] {
        let mut end = End::new(&anybody(), agreement(Role::Server));
        end.handle(message(first, &[1, 2, 3]));
        assert_eq!(
            end.reason(),
            "the peer sent a message of key management for another epoch than 3"
        );
    }
    let mut pair = Pair::established(&anybody(), &anybody());
    pair.client.handle(message(5, &[22]));
    assert!(pair.client.reason().ends_with("for another epoch than 4"));
    // Nothing happens after that.
    pair.client.rekey();
    pair.client.handle(message(4, &[22]));
    assert!(pair.client.outbox.is_empty());
}

/// They may get a meaning one day.
#[test]
fn unknown_control_messages_are_ignored() {
    let mut pair = Pair::new(&anybody(), &anybody());
    for end in [&mut pair.client, &mut pair.server] {
        end.handle(message(0x83, &[0]));
        end.handle(message(0x83, &[2, 3, 4]));
    }
    pair.run();
    pair.assert_works(3);
}

#[test]
fn keys_are_not_confirmed_before_there_are_any() {
    let mut client = End::new(&anybody(), agreement(Role::Client));
    client.handle(message(0x83, &[1]));
    assert_eq!(client.reason(), "the peer confirmed keys that it does not have yet");
    // A server waits for none.
    let mut pair = Pair::new(&anybody(), &anybody());
    pair.server.handle(message(0x83, &[1]));
    pair.run();
    pair.assert_works(3);
}

#[test]
fn memory_is_bounded() {
    // The beginning of a ClientHello that is said to be larger than all bounds.
    let record = [&[22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff][..], &[0; 0x4000 - 4]].concat();
    let mut server = End::new(&anybody(), agreement(Role::Server));
    let mut count = 0;
    while server.failure.is_none() {
        server.handle(message(3, &record));
        count += 1;
    }
    assert!(count <= 5, "{count} records of 16 KiB were taken");

    // One message beyond the bound, with records that say nothing.
    let mut server = End::new(&anybody(), agreement(Role::Server));
    server.handle(message(3, &[20, 3, 3, 0, 1, 1].repeat(12_000)));
    assert_eq!(server.reason(), "the peer sent more than 65536 bytes in a TLS handshake");
}

#[test]
fn records_cut_short_wait_for_the_rest_or_fail() {
    let mut pair = Pair::new(&anybody(), &anybody());
    let hello = pair.client.outbox.pop_front().unwrap();
    pair.server.handle(hello.slice(..hello.len() / 2));
    assert!(pair.server.failure.is_none() && pair.server.outbox.is_empty());
    pair.server.handle(message(3, &hello[hello.len() / 2..]));
    pair.run();
    pair.assert_works(3);

    // Here the rest is other bytes.
    let mut pair = Pair::new(&anybody(), &anybody());
    let hello = pair.client.outbox.pop_front().unwrap();
    pair.server.handle(hello.slice(..hello.len() / 2));
    pair.server.handle(hello);
    assert!(pair.server.failure.is_some());
}

/// As a client, an end does not answer a handshake of the peer before there are keys.
#[test]
fn a_server_cannot_swap_the_roles_in_the_first_handshake() {
    let mut first = End::new(&anybody(), agreement(Role::Client));
    let second = &mut End::new(&anybody(), agreement(Role::Client));
    first.handle(second.outbox.pop_front().unwrap());
    assert!(first.failure.is_some() && first.peer.is_none());
}

/// Something that happens to an association.
#[derive(Clone, Debug)]
enum Event {
    /// The oldest message of this end arrives.
    Deliver(Role),
    /// It arrives with a byte changed.
    Damage(Role, usize, u8),
    /// It arrives, and again.
    Repeat(Role),
    /// It is cut short.
    Cut(Role, usize),
    /// It is lost.
    Lose(Role),
    /// This end gets a message that nobody sent.
    Inject(Role, u8, Vec<u8>),
    /// This end begins to rekey.
    Rekey(Role),
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![Just(Role::Client), Just(Role::Server)]
}

/// Bytes that may begin as TLS records do.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..80);
    prop_oneof![
        bytes(),
        (20..24u8, 0..80u8, bytes()).prop_map(|(kind, len, rest)| [
            &[kind, 3, 3, 0, len][..],
            &rest
        ]
        .concat()),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let first = prop_oneof![3..6u8, 0x83..0x86u8, any::<u8>()];
    prop_oneof![
        12 => role().prop_map(Event::Deliver),
        2 => role().prop_map(Event::Rekey),
        1 => (role(), any::<usize>(), 1..=255u8).prop_map(|(r, at, by)| Event::Damage(r, at, by)),
        1 => role().prop_map(Event::Repeat),
        1 => (role(), any::<usize>()).prop_map(|(r, at)| Event::Cut(r, at)),
        1 => role().prop_map(Event::Lose),
        1 => (role(), first, payload()).prop_map(|(r, first, rest)| Event::Inject(r, first, rest)),
    ]
}

impl Pair {
    fn ends(&mut self, from: Role) -> (&mut End, &mut End) {
        match from {
            Role::Client => (&mut self.client, &mut self.server),
            Role::Server => (&mut self.server, &mut self.client),
        }
    }

    fn happen(&mut self, event: Event) {
        let pop = |pair: &mut Pair, from| pair.ends(from).0.outbox.pop_front();
        match event {
            Event::Inject(to, first, payload) => {
                self.ends(to).0.handle(message(first, &payload));
            }
            Event::Rekey(role) => self.ends(role).0.rekey(),
            Event::Deliver(from) => {
                if let Some(message) = pop(self, from) {
                    self.ends(from).1.handle(message);
                }
            }
            Event::Damage(from, at, by) => {
                if let Some(message) = pop(self, from) {
                    let mut message = BytesMut::from(&message[..]);
                    let at = at % message.len();
                    message[at] ^= by;
                    self.ends(from).1.handle(message.freeze());
                }
            }
            Event::Repeat(from) => {
                if let Some(message) = pop(self, from) {
                    self.ends(from).1.handle(message.clone());
                    self.ends(from).1.handle(message);
                }
            }
            Event::Cut(from, at) => {
                if let Some(message) = pop(self, from) {
                    let at = at % message.len();
                    self.ends(from).1.handle(message.slice(..at));
                }
            }
            Event::Lose(from) => drop(pop(self, from)),
        }
    }

    /// Ends that have keys of the same epoch have the same keys.
    fn assert_consistent(&mut self) {
        for from in [Role::Client, Role::Server] {
            let (sender, receiver) = self.ends(from);
            let Some(epoch) = sender.sealing.as_ref().map(|keys| keys.epoch()) else { continue };
            if receiver.opening.get(epoch).is_some() {
                let record = sender.seal(b"content");
                assert_eq!(receiver.open(&record), Some((epoch, b"content".to_vec())));
            }
        }
        if let (Some(client), Some(server)) = (&self.client.peer, &self.server.peer) {
            assert_eq!(client.binding, server.binding);
        }
    }
}

fn ends() -> (TlsKeys, TlsKeys) {
    use std::sync::OnceLock;
    static ENDS: OnceLock<(TlsKeys, TlsKeys)> = OnceLock::new();
    ENDS.get_or_init(|| (anybody(), anybody())).clone()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// No panic, no keys that differ, and nothing after a failure (which the harness checks).
    #[test]
    fn anything_may_happen_at_any_time(events in prop::collection::vec(event(), 1..60)) {
        let (client, server) = ends();
        let mut pair = Pair::new(&client, &server);
        for event in events {
            pair.happen(event);
            pair.assert_consistent();
        }
    }

    /// A handshake with one byte changed never ends with both ends content, unless the byte has no
    /// meaning; their keys are the same then.
    #[test]
    fn a_changed_byte_is_noticed(
        number in 0..4usize,
        at in any::<usize>(),
        by in 1..=255u8,
    ) {
        let (client, server) = ends();
        let mut pair = Pair::new(&client, &server);
        let mut count = 0;
        pair.run_changing(|_, message| {
            let is_it = count == number;
            count += 1;
            let mut message = BytesMut::from(&message[..]);
            if is_it {
                let at = at % message.len();
                message[at] ^= by;
            }
            Some(message.freeze())
        });
        pair.assert_consistent();
    }
}
