//! Authentication of chunks (RFC 4895): the offers of the handshake, AUTH chunks on the wire, and
//! which chunks count. `docs/rfc4895.md` names the test for each rule.
//!
//! The peer makes its keys and HMACs by itself, as RFC 4895 describes them.

use std::sync::Arc;

use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use manypath_keys::psk::SharedKey;
use manypath_proto::testing::*;
use manypath_proto::{AssocClosed, AuthKeyError, AuthKeys, AuthReport, Event};
use manypath_wire::{
    AUTH_HEADER_LEN, Auth, Checksum, Chunk, CommonHeader, ErrorCause, Init, Packet, Parameter,
    chunk_type, fill_checksum, hmac_id, into_chunks_of,
};
use sha2::Sha256;

use super::common::{announced, last_init};

const DATA: u8 = chunk_type::DATA;
const SACK: u8 = chunk_type::SACK;
const COOKIE_ECHO: u8 = chunk_type::COOKIE_ECHO;

/// An endpoint that authenticates, and takes these chunks only so.
fn on(setup: Setup, required: &str) -> Setup {
    setup.set("authentication", "true").set("authenticated_chunks", required).set("max_burst", "0")
}

/// Adds the peer's parameters to its INIT or INIT ACK: it takes these chunks only authenticated.
pub(super) fn offering(chunk: PeerChunk, random: u8, wanted: &[u8]) -> PeerChunk {
    chunk
        .param(Parameter::Random(vec![random; 32].into()))
        .param(Parameter::AuthenticatedChunks(wanted.to_vec().into()))
        .param(Parameter::HmacAlgorithms(vec![hmac_id::SHA_256, hmac_id::SHA_1]))
}

/// The key vector of an INIT or INIT ACK (RFC 4895 §6.1).
fn vector(init: &Init) -> Vec<u8> {
    let mut parts = [Vec::new(), Vec::new(), Vec::new()];
    for parameter in &init.params {
        let parameter = parameter.expect("well-formed");
        let part = match parameter {
            Parameter::Random(_) => 0,
            Parameter::AuthenticatedChunks(_) => 1,
            Parameter::HmacAlgorithms(_) => 2,
            _ => continue,
        };
        parameter.encode(&mut parts[part]);
    }
    parts.concat()
}

/// The keys of the scripted peer.
#[derive(Clone)]
pub(super) struct Peer {
    vectors: Vec<u8>,
    secret: Vec<u8>,
    number: u16,
}

impl Peer {
    /// The peer that sent one of these, and got the other.
    pub(super) fn of(own: &PeerChunk, theirs: &Init) -> Peer {
        let PeerChunk::Plain(Chunk::Init(own) | Chunk::InitAck(own)) = own else {
            panic!("{own:?} has no parameters")
        };
        let mut vectors = [vector(own), vector(theirs)];
        // All begin with the type of RANDOM, so the longer is the greater.
        vectors.sort_by_key(|vector| (vector.len(), vector.clone()));
        Peer { vectors: vectors.concat(), secret: Vec::new(), number: 0 }
    }

    /// This peer, with a key that both ends share.
    fn with(&self, number: u16, secret: &[u8]) -> Peer {
        Peer { number, secret: secret.to_vec(), ..self.clone() }
    }

    fn hmac(&self, covered: &[u8]) -> Vec<u8> {
        let key = [&self.secret[..], &self.vectors].concat();
        let mut hmac = Hmac::<Sha256>::new_from_slice(&key).expect("keys have any length");
        hmac.update(covered);
        hmac.finalize().into_bytes().to_vec()
    }

    /// These chunks behind an AUTH chunk; the first `plain` bytes of them before it.
    pub(super) fn packet(&self, t: &Script, plain: usize, chunks: impl Into<Chunks>) -> Vec<u8> {
        let header = CommonHeader {
            source_port: PEER_PORT,
            destination_port: PORT,
            verification_tag: t.tag(),
        };
        let mut packet = t.packet(header, chunks);
        let rest = packet.split_off(12 + plain);
        let auth = Auth {
            flags: 0,
            key: self.number,
            algorithm: hmac_id::SHA_256,
            hmac: vec![0; 32].into(),
        };
        let hmac = self.hmac(&[auth.zeroed(), rest.clone()].concat());
        packet.extend(&auth.zeroed()[..AUTH_HEADER_LEN]);
        packet.extend(hmac);
        packet.extend(rest);
        fill_checksum(&mut packet);
        packet
    }

    /// Sends these chunks behind an AUTH chunk.
    pub(super) fn send(&self, t: &mut Script, chunks: impl Into<Chunks>) {
        let packet = self.packet(t, 0, chunks);
        t.peer_bytes(t.pairs[0], packet);
    }

    /// The first AUTH chunk of a packet is right.
    pub(super) fn accepts(&self, packet: &Packet) -> bool {
        let mut chunks = packet.clone().into_chunks();
        let auth = chunks.find_map(|chunk| match chunk {
            Ok(Chunk::Auth(auth)) => Some(auth),
            _ => None,
        });
        let auth = auth.expect("an AUTH chunk");
        auth.key == self.number
            && auth.hmac == self.hmac(&[auth.zeroed(), chunks.rest().to_vec()].concat())
    }
}

/// A client that requires these chunks to be authenticated, and its peer that wants those.
fn client_of(setup: Setup, wanted: &[u8]) -> (Script, Peer) {
    let mut t = setup.start();
    t.connect();
    let init = t.expect_init();
    let answer = offering(init_ack(), 0x22, wanted);
    let peer = Peer::of(&answer, &init);
    t.peer(answer);
    t.all_sent();
    peer.send(&mut t, cookie_ack());
    t.run_ms(100);
    t.answer_heartbeats();
    t.events();
    t.take_sent();
    assert!(t.assoc().authenticates());
    (t, peer)
}

fn client(required: &str, wanted: &[u8]) -> (Script, Peer) {
    client_of(on(Setup::client(), required), wanted)
}

/// A server, the cookie that it made for this INIT, and the keys of the peer.
fn answered(t: &mut Script, init: PeerChunk) -> (Bytes, Peer) {
    t.peer(init.clone());
    let cookie = t.expect_init_ack();
    let peer = Peer::of(&init, &last_init(t));
    (cookie, peer)
}

fn failures(t: &Script) -> (u64, u64) {
    let stats = t.assoc().stats();
    (stats.auth_failures, stats.unauthenticated_dropped)
}

fn change(
    t: &mut Script,
    change: impl FnOnce(&mut AuthKeys) -> Result<(), AuthKeyError>,
) -> Result<(), AuthKeyError> {
    t.with(|a, _| a.change_auth_keys(change))
}

fn parameters(init: &Init) -> Vec<Parameter> {
    let all = init.params.iter().map(|p| p.expect("well-formed"));
    let is_of_auth = |ty: u16| (0x8002..=0x8004).contains(&ty);
    all.filter(|p| is_of_auth(p.ty())).collect()
}

// ---- The handshake (§3, §6.1) ----

#[test]
fn authentication_is_offered_only_if_it_is_on() {
    for (is_on, required) in [("true", "data, sack"), ("true", "none"), ("false", "data")] {
        let on =
            |setup: Setup| setup.set("authentication", is_on).set("authenticated_chunks", required);
        let mut t = on(Setup::client()).start();
        t.connect();
        let ours = t.expect_init();
        let mut t = on(Setup::server()).start();
        t.peer(offering(init(), 1, &[]));
        t.expect_init_ack();
        for init in [ours, last_init(&t)] {
            let found = parameters(&init);
            assert_eq!(announced(&init).contains(&chunk_type::AUTH), is_on == "true");
            if is_on == "false" {
                assert_eq!(found, []);
                continue;
            }
            assert!(matches!(&found[0], Parameter::Random(r) if r.len() == 32), "§6.1");
            let chunks = Parameter::AuthenticatedChunks(vec![DATA, SACK].into());
            let algorithms = Parameter::HmacAlgorithms(vec![hmac_id::SHA_256, hmac_id::SHA_1]);
            let list = if required == "none" { vec![] } else { vec![chunks] };
            assert_eq!(found[1..], [list, vec![algorithms]].concat(), "§6.1: SHA-1 is in it");
        }
    }
}

#[test]
fn by_default_asconf_and_its_answer_must_be_authenticated() {
    let mut t = Setup::client().set("authentication", "true").start();
    t.connect();
    let list = Parameter::AuthenticatedChunks(vec![0x80, 0xc1].into());
    assert!(parameters(&t.expect_init()).contains(&list), "RFC 5061 §4.1");
}

#[test]
fn each_association_has_another_random_number() {
    let random = |init: &Init| parameters(init).swap_remove(0);
    let mut t = on(Setup::server(), "data").start();
    t.peer(offering(init(), 1, &[]));
    t.expect_init_ack();
    let first = random(&last_init(&t));
    t.peer(offering(init(), 1, &[]));
    t.expect_init_ack();
    assert_ne!(random(&last_init(&t)), first);
}

#[test]
fn a_peer_without_it_is_served_in_plain_and_the_application_is_told() {
    let told = Event::Authentication(AuthReport::NotSupported);
    let without = [
        init_ack(),
        init_ack().param(Parameter::Random(vec![1; 32].into())),
        init_ack().param(Parameter::HmacAlgorithms(vec![3])),
        init_ack()
            .param(Parameter::Random(vec![1; 32].into()))
            .param(Parameter::HmacAlgorithms(vec![2, 4])),
    ];
    for answer in without {
        let mut t = on(Setup::client(), "data").start();
        t.connect();
        t.expect_init();
        t.peer(answer);
        t.expect("COOKIE ECHO");
        t.peer(cookie_ack());
        let connected = Event::Connected { incoming: false };
        assert_eq!(t.events()[1..3], [connected, told.clone()], "RFC 6458 §6.1.8");
        assert!(!t.assoc().authenticates());
        t.peer(data(1));
        t.expect("SACK 1");
    }
    let mut t = on(Setup::server(), "data").start();
    t.peer(init());
    let cookie = t.expect_init_ack();
    assert_eq!(parameters(&last_init(&t)), []);
    t.peer([cookie_echo(&cookie), data(1)]);
    t.expect("COOKIE ACK");
    t.expect("SACK 1");
    assert!(t.events().contains(&told));
}

#[test]
fn an_auth_chunk_that_was_not_agreed_on_ends_its_packet() {
    for setup in [Setup::client(), on(Setup::client(), "data")] {
        let mut t = setup.established();
        let auth = Auth { flags: 0, key: 0, algorithm: 3, hmac: vec![0; 32].into() };
        t.peer([PeerChunk::Plain(Chunk::Auth(auth)), data(1)]);
        t.expect_nothing();
        t.peer(data(1));
        t.expect("SACK 1");
        assert_eq!(failures(&t), (0, 0));
    }
}

#[test]
fn a_random_number_of_another_length_than_32_bytes_ends_the_attempt() {
    let bad = |chunk: PeerChunk| {
        chunk
            .param(Parameter::Random(vec![1; 16].into()))
            .param(Parameter::HmacAlgorithms(vec![3, 1]))
    };
    let mut t = on(Setup::client(), "data").start();
    t.connect();
    t.expect_init();
    t.peer(bad(init_ack()));
    t.expect("ABORT 13");
    assert!(matches!(t.assoc().closed(), Some(AssocClosed::ProtocolViolation(_))), "§6.1");
    let mut t = on(Setup::server(), "data").start();
    t.peer(bad(init()));
    t.expect("ABORT 13");
    // Without the extension the parameters mean nothing.
    let mut t = Setup::server().start();
    t.peer(bad(init()));
    t.expect_init_ack();
}

#[test]
fn types_that_cannot_be_authenticated_are_ignored_in_the_peers_list() {
    let (mut t, _) = client("none", &[1, 2, 14, 15]);
    t.send(10);
    t.expect("DATA 1");
    t.peer([sack(1), shutdown_ack()]);
    t.all_sent();
    let (mut t, _) = client("none", &[14]);
    t.peer(shutdown(0));
    t.expect("SHUTDOWN ACK");
    t.peer(shutdown_complete());
    assert_eq!(t.assoc().closed(), Some(&AssocClosed::Shutdown), "§3.2");
}

#[test]
fn an_init_ack_without_room_for_addresses_keeps_the_parameters() {
    let setup = on(Setup::server(), "data, sack").paths(8).set("advertise_addresses", "true");
    let mut t = setup.start();
    t.peer(offering(init(), 1, &[DATA]));
    t.expect_init_ack();
    assert_eq!(parameters(&last_init(&t)).len(), 3);
}

#[test]
fn protected_associations_do_without_it() {
    let mut t = on(Setup::client(), "data").start();
    let key = SharedKey::new(&[7; 32]).expect("long enough");
    t.endpoint.set_key_management(Some(Arc::new(key)));
    t.connect();
    let init = t.expect_init();
    assert_eq!(parameters(&init), []);
    assert!(!announced(&init).contains(&chunk_type::AUTH));
    assert_eq!(change(&mut t, |keys| keys.set(1, vec![1])), Err(AuthKeyError::NotSupported));
}

// ---- Sending (§6.2) ----

#[test]
fn auth_goes_before_the_first_chunk_that_the_peer_wants_authenticated() {
    let (mut t, peer) = client("none", &[DATA]);
    t.send(10);
    t.expect("AUTH, DATA 1");
    assert!(peer.accepts(&t.last().packet), "§6.1, §6.2");
    t.peer(data(1));
    t.expect("SACK 1");
    t.peer(sack(1));
    // A SACK that need not be authenticated stands before it.
    t.peer(data(2));
    t.send(10);
    t.expect("SACK 2, AUTH, DATA 2");
    assert!(peer.accepts(&t.last().packet));
    let (mut t, peer) = client("none", &[DATA, SACK]);
    t.peer([data(1), data(2)]);
    t.expect("AUTH, SACK 2");
    assert!(peer.accepts(&t.last().packet));
}

#[test]
fn the_algorithm_is_the_first_of_the_peers_list_that_is_known() {
    for (list, id, len) in [(vec![2, 1, 3], 1, 20), (vec![3, 1], 3, 32), (vec![1], 1, 20)] {
        let mut t = on(Setup::client(), "none").start();
        t.connect();
        t.expect_init();
        let answer = init_ack()
            .param(Parameter::Random(vec![1; 32].into()))
            .param(Parameter::AuthenticatedChunks(vec![COOKIE_ECHO].into()))
            .param(Parameter::HmacAlgorithms(list));
        t.peer(answer);
        t.expect("AUTH, COOKIE ECHO");
        let Some(Chunk::Auth(auth)) = t.last_chunks().into_iter().next() else { panic!("AUTH") };
        assert_eq!((auth.algorithm, auth.hmac.len()), (id, len), "§6.1");
    }
}

#[test]
fn data_beside_cookie_echo_is_authenticated_behind_it() {
    for (wanted, words) in [
        (&[DATA][..], "COOKIE ECHO, AUTH, DATA 1"),
        (&[DATA, COOKIE_ECHO], "AUTH, COOKIE ECHO, DATA 1"),
    ] {
        let mut t = on(Setup::client(), "none").set("data_with_cookie", "true").start();
        t.connect();
        let init = t.expect_init();
        t.send(10);
        let answer = offering(init_ack(), 0x22, wanted);
        let peer = Peer::of(&answer, &init);
        t.peer(answer);
        t.expect(words);
        assert!(peer.accepts(&t.last().packet));
    }
}

#[test]
fn full_packets_leave_room_for_auth_and_so_do_probes() {
    for pmtu_discovery in ["true", "false"] {
        for wanted in [&[DATA][..], &[DATA, SACK], &[DATA, chunk_type::HEARTBEAT], &[SACK], &[]] {
            let setup = on(Setup::client(), "none")
                .set("pmtu_discovery", pmtu_discovery)
                .set("initial_cwnd", "100 pmdcs");
            let mut t = setup.start();
            t.connect();
            let init = t.expect_init();
            let answer = offering(init_ack(), 0x22, wanted);
            let peer = Peer::of(&answer, &init);
            t.peer(answer);
            t.peer(cookie_ack());
            t.run_ms(100);
            let sizes = |t: &mut Script| -> Vec<_> {
                let sent = t.take_sent().into_iter();
                sent.map(|s| (s.packet.bytes().len() + 28, s.packet)).collect()
            };
            let probes = sizes(&mut t);
            let largest = probes.iter().map(|(len, _)| *len).max();
            let is_probed = pmtu_discovery == "true";
            assert!(!is_probed || largest == Some(1500), "{wanted:?}: {largest:?}");
            t.answer_heartbeats();
            for (_, probe) in probes {
                if let Some(info) = heartbeat_info(&probe) {
                    t.peer(heartbeat_ack(&info));
                }
            }
            sizes(&mut t);
            t.send(20_000);
            let packets = sizes(&mut t);
            assert!(packets.len() >= 10, "{wanted:?}");
            assert!(packets.iter().all(|(len, _)| *len <= 1500), "{wanted:?}");
            let full = packets.iter().map(|(len, _)| *len).max();
            let expected = if *wanted == [SACK] { 1460 } else { 1500 };
            assert_eq!(full, Some(expected), "{wanted:?}, {pmtu_discovery}");
            if wanted.contains(&DATA) {
                assert!(packets.iter().all(|(_, packet)| peer.accepts(packet)));
            }
        }
    }
}

#[test]
fn data_that_is_sent_again_is_authenticated_again() {
    let (mut t, peer) = client("none", &[DATA]);
    t.send_packets(2);
    t.expect("AUTH, DATA 1");
    t.expect("AUTH, DATA 2");
    change(&mut t, |keys| {
        keys.set(5, vec![9; 9])?;
        keys.activate(5)
    })
    .expect("there is room");
    t.run_to_timer();
    t.expect("AUTH, DATA 1");
    assert!(peer.with(5, &[9; 9]).accepts(&t.last().packet), "by the key that is active now");
}

// ---- Receiving (§6.3) ----

#[test]
fn chunks_that_lack_a_valid_hmac_have_no_effect() {
    let (mut t, peer) = client("data, sack", &[]);
    t.send(10);
    t.expect("DATA 1");
    t.peer(data(1));
    t.peer([sack(1), data(1)]);
    assert_eq!(failures(&t), (0, 3), "§6.3: not behind an AUTH chunk");
    let mut forged = peer.packet(&t, 0, [sack(1), data(1)]);
    let last = forged.len() - 4;
    forged[last] ^= 1;
    fill_checksum(&mut forged);
    t.peer_bytes(t.pairs[0], forged);
    assert_eq!(failures(&t), (1, 3), "§6.3: another message");
    peer.with(0, b"guessed").send(&mut t, data(1));
    peer.with(1, b"").send(&mut t, data(1));
    assert_eq!(failures(&t), (3, 3), "§6.3: a wrong key, and one that nobody knows");
    assert_eq!((t.recv(), t.assoc().unacked_bytes()), (None, 10));
    t.expect_nothing();
    peer.send(&mut t, [sack(1), data(1)]);
    t.expect("SACK 1");
    assert_eq!((t.recv().map(|m| m.len()), t.assoc().unacked_bytes()), (Some(1), 0));
    assert_eq!(failures(&t), (3, 3));
}

#[test]
fn chunks_before_auth_are_not_covered() {
    let (mut t, peer) = client("data", &[]);
    let packet = peer.packet(&t, 20, [data(1), data(2)]);
    t.peer_bytes(t.pairs[0], packet);
    assert_eq!(failures(&t), (0, 1));
    t.expect("SACK 0 gaps 2");
    // Chunks that need not be authenticated count there.
    t.send(10);
    t.expect("DATA 1");
    let packet = peer.packet(&t, 16, [sack(1), data(1)]);
    t.peer_bytes(t.pairs[0], packet);
    assert_eq!(t.assoc().unacked_bytes(), 0);
    t.expect("SACK 2");
}

#[test]
fn a_wrong_hmac_discards_also_what_needs_none() {
    let (mut t, peer) = client("data", &[]);
    peer.with(0, b"guessed").send(&mut t, [heartbeat(b"alive"), data(1)]);
    t.expect_nothing();
    t.peer([heartbeat(b"alive"), data(1)]);
    t.expect("HEARTBEAT ACK");
    assert_eq!(failures(&t), (1, 1));
}

#[test]
fn a_second_auth_chunk_is_skipped() {
    let (mut t, peer) = client("data", &[]);
    let other = Auth { flags: 0, key: 9, algorithm: 9, hmac: Bytes::new() };
    peer.send(&mut t, [PeerChunk::Plain(Chunk::Auth(other)), data(1)]);
    t.run_ms(200);
    t.expect("SACK 1");
    assert_eq!(failures(&t), (0, 0));
}

#[test]
fn an_algorithm_that_nobody_asked_for_is_reported() {
    let (mut t, _) = client("data", &[]);
    let auth = Auth { flags: 0, key: 0, algorithm: 2, hmac: vec![0; 28].into() };
    t.peer([PeerChunk::Plain(Chunk::Auth(auth)), data(1)]);
    t.expect("ERROR 261");
    let Some(Chunk::Error(error)) = t.last_chunks().pop() else { panic!("ERROR") };
    let cause = error.causes.iter().next();
    assert_eq!(cause, Some(Ok(ErrorCause::UnsupportedHmacIdentifier(2))), "§4.1, §6.3");
    t.expect_nothing();
    assert_eq!(failures(&t), (1, 0));
}

#[test]
fn an_abort_of_someone_without_keys_does_not_end_an_association_that_wants_it_authenticated() {
    let (mut t, peer) = client("abort", &[]);
    t.peer(abort(&[]));
    assert_eq!((t.assoc().closed(), failures(&t)), (None, (0, 1)));
    peer.send(&mut t, abort(&[]));
    assert!(t.assoc().closed().is_some());
}

#[test]
fn a_packet_of_no_association_is_answered_as_if_it_had_no_auth_chunk() {
    let mut t = on(Setup::server(), "data").start();
    let auth = || {
        PeerChunk::Plain(Chunk::Auth(Auth {
            flags: 0,
            key: 0,
            algorithm: 3,
            hmac: vec![0; 32].into(),
        }))
    };
    t.peer_with_tag(t.pairs[0], 77, [auth(), data(1)]);
    t.expect("ABORT T");
    t.peer_with_tag(t.pairs[0], 77, [auth(), shutdown_ack()]);
    t.expect("SHUTDOWN COMPLETE T");
    t.peer_with_tag(t.pairs[0], 77, [auth(), abort(&[])]);
    t.expect_nothing();
}

// ---- COOKIE ECHO (§6.3) ----

#[test]
fn a_cookie_without_the_right_hmac_opens_nothing() {
    let mut t = on(Setup::server(), "cookie_echo, data").start();
    let mut keys = AuthKeys::default();
    keys.set(3, &b"known to both"[..]).expect("room");
    keys.activate(3).and_then(|()| keys.remove(0)).expect("another key is active");
    t.endpoint.set_auth_keys(keys);
    let (cookie, stranger) = answered(&mut t, offering(init(), 1, &[]));
    let peer = stranger.with(3, b"known to both");
    t.peer([cookie_echo(&cookie), data(1)]);
    stranger.send(&mut t, [cookie_echo(&cookie), data(1)]);
    stranger.with(3, b"guessed").send(&mut t, [cookie_echo(&cookie), data(1)]);
    t.expect_nothing();
    assert_eq!(t.endpoint.associations().count(), 0, "§6.3: no state before a valid HMAC");
    peer.send(&mut t, [cookie_echo(&cookie), data(1)]);
    t.expect("COOKIE ACK");
    t.expect("SACK 1");
    assert_eq!(failures(&t), (0, 0));
    // A repeated one is checked with the keys of the association.
    t.peer(cookie_echo(&cookie));
    t.expect_nothing();
    peer.send(&mut t, cookie_echo(&cookie));
    t.expect("COOKIE ACK");
}

#[test]
fn a_peer_without_keys_cannot_do_without_the_extension_where_cookies_need_it() {
    let mut t = on(Setup::server(), "cookie_echo").start();
    t.peer(init());
    let cookie = t.expect_init_ack();
    t.peer(cookie_echo(&cookie));
    t.expect_nothing();
    assert_eq!(t.endpoint.associations().count(), 0);
}

#[test]
fn an_hmac_before_a_cookie_is_checked_also_where_none_is_needed() {
    let mut t = on(Setup::server(), "data").start();
    let (cookie, peer) = answered(&mut t, offering(init(), 1, &[]));
    peer.with(0, b"guessed").send(&mut t, cookie_echo(&cookie));
    t.expect_nothing();
    peer.send(&mut t, [cookie_echo(&cookie), data(1)]);
    t.expect("COOKIE ACK");
    t.expect("SACK 1");
}

#[test]
fn the_cookie_holds_no_key_that_both_ends_share() {
    let mut t = on(Setup::server(), "cookie_echo").start();
    let mut keys = AuthKeys::default();
    keys.set(1, &b"a rather long secret of both"[..]).expect("room");
    keys.activate(1).expect("it exists");
    t.endpoint.set_auth_keys(keys);
    let (cookie, _) = answered(&mut t, offering(init(), 1, &[]));
    let secret = b"a rather long secret of both";
    assert!(!cookie.windows(secret.len()).any(|part| part == secret), "§6.3");
}

// ---- Restart and collision (§6.1, §6.3) ----

/// A server whose peer wants DATA authenticated, and has it authenticated itself.
fn server(required: &str) -> (Script, Peer) {
    let mut t = on(Setup::server(), required).start();
    let (cookie, peer) = answered(&mut t, offering(init(), 1, &[DATA]));
    peer.send(&mut t, cookie_echo(&cookie));
    t.expect("COOKIE ACK");
    t.run_ms(100);
    t.answer_heartbeats();
    t.take_sent();
    t.events();
    (t, peer)
}

#[test]
fn a_restarted_peer_has_new_keys_and_the_keys_of_the_application_stay() {
    let (mut t, before) = server("data");
    change(&mut t, |keys| {
        keys.set(2, &b"shared"[..])?;
        keys.activate(2)
    })
    .expect("there is room");
    before.send(&mut t, data(1));
    t.expect("SACK 1");
    let (cookie, after) = answered(&mut t, offering(init().tag(901), 7, &[DATA]));
    assert_ne!(before.vectors, after.vectors, "§6.1: new random numbers of both ends");
    t.peer(cookie_echo(&cookie));
    t.expect("COOKIE ACK");
    assert!(t.events().contains(&Event::Restarted));
    t.take_sent();
    before.send(&mut t, data(1));
    t.expect_nothing();
    assert_eq!(failures(&t), (1, 0), "keys of before count no more");
    after.with(2, b"shared").send(&mut t, data(1));
    t.expect("SACK 1");
    t.send(10);
    t.expect("AUTH, DATA 1");
    assert!(after.with(2, b"shared").accepts(&t.last().packet));
}

#[test]
fn a_restart_without_the_keys_of_before_fails_where_cookies_need_them() {
    let (mut t, before) = server("cookie_echo, data");
    let (cookie, after) = answered(&mut t, offering(init().tag(901), 7, &[DATA]));
    t.peer(cookie_echo(&cookie));
    after.send(&mut t, cookie_echo(&cookie));
    t.expect_nothing();
    assert!(!t.events().contains(&Event::Restarted), "§6.3");
    before.send(&mut t, cookie_echo(&cookie));
    t.expect("COOKIE ACK");
    assert!(t.events().contains(&Event::Restarted), "§6.3: it knows the keys of before");
    t.take_sent();
    after.send(&mut t, data(1));
    t.expect("SACK 1");
}

#[test]
fn crossing_inits_keep_the_random_number_of_the_tag() {
    let mut t = on(Setup::client(), "data").start();
    t.connect();
    let ours = t.expect_init();
    let init = offering(init(), 0x55, &[DATA]);
    let (cookie, peer) = answered(&mut t, init.clone());
    assert_eq!(parameters(&last_init(&t)), parameters(&ours), "§6.1");
    peer.send(&mut t, [cookie_echo(&cookie), data(1)]);
    t.expect("COOKIE ACK");
    t.expect("SACK 1");
    t.send(10);
    t.expect("AUTH, DATA 1");
    assert!(peer.accepts(&t.last().packet));
    assert!(Peer::of(&init, &ours).accepts(&t.last().packet));
}

#[test]
fn a_stale_cookie_brings_another_random_number_with_the_other_tag() {
    let mut t = on(Setup::client(), "data").start();
    t.connect();
    let first = t.expect_init();
    t.peer(offering(init_ack(), 1, &[]));
    t.expect("COOKIE ECHO");
    t.peer(error(ErrorCause::StaleCookie(0)));
    let second = t.expect_init();
    assert_ne!(first.initiate_tag, second.initiate_tag);
    assert_ne!(parameters(&first), parameters(&second), "§6.1: it follows the tag");
    let answer = offering(init_ack(), 2, &[DATA]);
    let peer = Peer::of(&answer, &second);
    t.peer(answer);
    t.expect("COOKIE ECHO");
    t.peer(cookie_ack());
    t.send(10);
    t.expect("AUTH, DATA 1");
    assert!(peer.accepts(&t.last().packet));
}

// ---- Keys (§6.1, RFC 6458 §8.1.18, §8.3.3 to §8.3.5) ----

#[test]
fn a_new_key_takes_over_step_by_step() {
    let (mut t, peer) = client("data", &[DATA]);
    let new = peer.with(4, b"new");
    change(&mut t, |keys| keys.set(4, &b"new"[..])).expect("room");
    t.send(10);
    t.expect("AUTH, DATA 1");
    assert!(peer.accepts(&t.last().packet), "it is not active yet");
    new.send(&mut t, data(1));
    t.expect("SACK 1");
    let told = t.events();
    assert!(told.contains(&Event::Authentication(AuthReport::NewKey { key: 4 })), "{told:?}");
    change(&mut t, |keys| keys.activate(4)).expect("it exists");
    t.peer(sack(1));
    t.send(10);
    t.expect("AUTH, DATA 2");
    assert!(new.accepts(&t.last().packet));
    peer.send(&mut t, data(2));
    t.run_ms(200);
    t.expect("SACK 2");
    t.events();
    change(&mut t, |keys| keys.deactivate(0)).expect("another one is active");
    assert_eq!(t.events(), [Event::Authentication(AuthReport::KeyFree { key: 0 })]);
    peer.send(&mut t, data(3));
    t.run_ms(200);
    t.expect("SACK 3");
    change(&mut t, |keys| keys.remove(0)).expect("another one is active");
    peer.send(&mut t, data(4));
    t.run_ms(200);
    t.expect_nothing();
    assert_eq!(failures(&t), (1, 0), "§6.3: no such key any more");
    assert_eq!(t.assoc().auth_keys().map(|keys| keys.active()), Some(4));
}

#[test]
fn keys_without_the_extension_are_refused() {
    let mut t = Setup::client().established();
    assert_eq!(change(&mut t, |keys| keys.set(1, vec![1])), Err(AuthKeyError::NotSupported));
    assert!(t.assoc().auth_keys().is_none());
    assert_eq!(t.events(), []);
}

#[test]
fn a_captured_packet_is_read_as_it_was_written() {
    let (mut t, peer) = client("none", &[DATA]);
    t.send(10);
    t.expect("AUTH, DATA 1");
    let bytes = t.last().packet.bytes().clone();
    let packet = Packet::parse(bytes.clone(), Checksum::Verify).expect("its checksum is right");
    assert!(peer.accepts(&packet), "the checksum was made after the HMAC");
    assert_eq!(into_chunks_of(bytes.slice(12..)).count(), 2);
}
