//! Packets without CRC32c over DTLS (RFC 9653). `docs/rfc9653.md` names the test for each rule.

use manypath_proto::Event;
use manypath_proto::config::Config;
use manypath_proto::testing::*;
use manypath_wire::{CommonHeader, EDMID_DTLS, Init, Parameter, chunk_type, has_zero_checksum};

use super::common::last_init;

fn on(setup: Setup) -> Setup {
    setup.set("zero_checksum", "true")
}

fn acceptable() -> Parameter {
    Parameter::ZeroChecksumAcceptable(EDMID_DTLS)
}

/// The methods that INIT or INIT ACK declares.
fn declared(init: &Init) -> Vec<u32> {
    let method = |p| match p {
        Ok(Parameter::ZeroChecksumAcceptable(method)) => Some(method),
        _ => None,
    };
    init.params.iter().filter_map(method).collect()
}

/// The last packet has no checksum.
fn is_free(t: &Script) -> bool {
    has_zero_checksum(t.last().packet.bytes())
}

/// The peer sends this packet with checksum 0.
fn peer_without_checksum(t: &mut Script, tag: u32, chunk: PeerChunk) {
    let header =
        CommonHeader { source_port: PEER_PORT, destination_port: PORT, verification_tag: tag };
    let mut bytes = t.packet(header, chunk);
    assert!(!has_zero_checksum(&bytes), "the right checksum is another one");
    bytes[8..12].fill(0);
    t.peer_bytes(t.pairs[0], bytes);
}

#[test]
fn an_end_declares_the_method_only_if_its_program_says_so() {
    for (set, methods) in [("true", vec![EDMID_DTLS]), ("false", vec![])] {
        let mut t = Setup::client().set("zero_checksum", set).start();
        t.connect();
        assert_eq!(declared(&t.expect_init()), methods);
        let mut t = Setup::server().set("zero_checksum", set).start();
        t.peer(init());
        t.expect_init_ack();
        assert_eq!(declared(&last_init(&t)), methods);
    }
}

#[test]
fn an_init_ack_without_room_for_addresses_still_declares_it() {
    let setup = on(Setup::server()).paths(8).set("advertise_addresses", "true");
    let mut t = setup.start();
    t.peer(init().no_params());
    t.expect_init_ack();
    assert_eq!(declared(&last_init(&t)), [EDMID_DTLS]);
}

#[test]
fn packets_to_a_peer_that_declared_it_have_no_checksum_except_for_the_handshake() {
    let mut t = on(Setup::client()).start();
    t.connect();
    t.expect_init();
    assert!(!is_free(&t), "§5.2 (1a): INIT");
    t.peer(init_ack().param(acceptable()));
    t.expect("COOKIE ECHO");
    assert!(!is_free(&t), "§5.2 (2)");
    t.run_to_timer();
    t.expect("COOKIE ECHO");
    assert!(!is_free(&t), "§5.2 (2), again");
    t.peer(cookie_ack());
    t.send(1);
    t.expect("DATA 1");
    assert!(is_free(&t), "§5.2: SHOULD");
    t.peer([data(1), sack(1)]);
    t.expect("SACK 1");
    assert!(is_free(&t));
}

#[test]
fn a_server_knows_by_the_cookie_what_its_client_declared() {
    for (params, free) in [(vec![acceptable()], true), (vec![], false)] {
        let mut t = on(Setup::server()).start();
        let types = Parameter::SupportedExtensions(vec![chunk_type::I_DATA].into());
        // In any order of the parameters.
        t.peer(params.into_iter().chain([types]).fold(init(), PeerChunk::param));
        let cookie = t.expect_init_ack();
        assert!(!is_free(&t), "INIT ACK comes before the association");
        t.peer(cookie_echo(&cookie));
        t.expect("COOKIE ACK");
        assert_eq!(is_free(&t), free);
        t.peer(data(1));
        t.expect("SACK 1");
        assert_eq!(is_free(&t), free);
    }
}

#[test]
fn packets_to_a_peer_with_another_method_or_none_have_a_checksum() {
    let another = Parameter::ZeroChecksumAcceptable(2);
    let cases = [
        ("true", init_ack()),
        ("true", init_ack().param(another)),
        ("false", init_ack().param(acceptable())),
    ];
    for (set, answer) in cases {
        let mut t = Setup::client().set("zero_checksum", set).start();
        t.connect_to(answer.clone());
        t.send(1);
        t.expect("DATA 1");
        assert!(!is_free(&t), "§5.2 (1): {set}, {answer:?}");
    }
}

#[test]
fn packets_of_an_association_are_accepted_without_checksum_once_it_was_declared() {
    // The peer need not have declared it itself.
    let mut t = on(Setup::client()).start();
    t.connect();
    t.expect_init();
    let tag = t.tag();
    peer_without_checksum(&mut t, tag, init_ack());
    t.expect("COOKIE ECHO");
    peer_without_checksum(&mut t, tag, cookie_ack());
    assert!(t.assoc().is_established());
    peer_without_checksum(&mut t, tag, data(1));
    t.expect("SACK 1");
    t.peer(data(2));
    t.peer(data(3));
    t.expect("SACK 3"); // §5.3: in addition to those with a checksum
}

#[test]
fn without_the_declaration_checksum_0_is_a_wrong_one() {
    let mut t = Setup::client().established();
    let tag = t.tag();
    peer_without_checksum(&mut t, tag, data(1));
    t.expect_nothing();
    t.peer(data(1));
    t.expect("SACK 1");
}

#[test]
fn a_wrong_checksum_that_is_not_0_is_wrong_for_everyone() {
    let mut t = on(Setup::client()).established();
    let header =
        CommonHeader { source_port: PEER_PORT, destination_port: PORT, verification_tag: t.tag() };
    let mut bytes = t.packet(header, data(1));
    bytes[8] ^= 1;
    t.peer_bytes(t.pairs[0], bytes);
    t.expect_nothing();
}

#[test]
fn init_and_cookie_echo_need_their_checksum() {
    let mut t = on(Setup::server()).start();
    peer_without_checksum(&mut t, 0, init());
    t.expect_nothing();
    t.peer(init());
    let cookie = t.expect_init_ack();
    let tag = t.tag();
    peer_without_checksum(&mut t, tag, cookie_echo(&cookie));
    t.expect_nothing();
    assert_eq!(t.endpoint.associations().count(), 0, "§5.2 (2)");
    t.peer(cookie_echo(&cookie));
    t.expect("COOKIE ACK");
    peer_without_checksum(&mut t, tag, cookie_echo(&cookie)); // a copy, for the association
    t.expect_nothing();
    peer_without_checksum(&mut t, 0, init().tag(900));
    t.expect_nothing();
}

#[test]
fn packets_out_of_the_blue_need_their_checksum_and_their_answers_have_one() {
    let mut t = on(Setup::server()).established();
    let tag = t.tag();
    peer_without_checksum(&mut t, tag ^ 1, data(1));
    t.expect_nothing();
    let stranger = (t.pairs[0].0, ([10, 6, 6, 6], PORT).into());
    t.peer_with_tag(stranger, 77, data(1));
    t.expect("ABORT T");
    assert!(!is_free(&t), "§5.2 (1b)");
}

#[test]
fn the_last_packet_of_an_association_is_read_by_a_peer_that_forgot_it() {
    let mut t = on(Setup::client()).start();
    t.connect_to(init_ack().param(acceptable()));
    t.with(|a, now| a.abort(now, b""));
    t.expect("ABORT 12");
    assert!(!is_free(&t));
}

#[test]
fn a_restarted_peer_is_treated_as_it_declares_itself_then() {
    let mut t = on(Setup::server()).start();
    t.accept(init().param(acceptable()));
    t.peer(init().tag(900).tsn(5000)); // without the parameter
    let cookie = t.expect_init_ack();
    t.peer(cookie_echo(&cookie));
    t.expect("COOKIE ACK");
    assert!(t.events().contains(&Event::Restarted) && !is_free(&t));
}

#[test]
fn a_packet_that_is_too_short_is_dropped() {
    let mut t = on(Setup::client()).established();
    for len in 0..16 {
        t.peer_bytes(t.pairs[0], vec![0; len]);
    }
    t.expect_nothing();
    t.send(1);
    t.expect("DATA 1");
}

#[test]
fn sockets_refuse_to_leave_the_checksum_out() {
    let set = [("zero_checksum".to_owned(), "true".to_owned())];
    let config = Config::build("fast", "cmt-pf", &set).expect("a configuration");
    assert_eq!(config.for_sockets(0).map_err(|e| e.field), Err("zero_checksum".to_owned()));
}
