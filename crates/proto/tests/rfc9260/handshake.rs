//! Opening an association (RFC 9260 §5.1, §5.2.6).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use manypath_keys::psk::SharedKey;
use manypath_proto::testing::*;
use manypath_proto::{AssocClosed, ConnectError, ConnectTo, Event, PathId, PathState};
use manypath_wire::{
    Chunk, CommonHeader, DtlsKeyManagement, DtlsKeyManagementFlags, ErrorCause, Parameter,
};

use super::common::last_init;

const MIN: u64 = 60_000;

#[test]
fn a_client_opens_with_four_packets_and_data_waits_for_them() {
    let mut t = Setup::client().start();
    t.connect();
    t.try_send(0, 10).expect("it is queued");
    let init = t.expect_init();
    assert_ne!(init.initiate_tag, 0, "§5.1 A");
    assert_eq!(t.last().packet.header.verification_tag, 0, "§8.5.1 A");
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG, "§8.5.1 D");
    let Some(Chunk::CookieEcho(cookie)) = t.last_chunks().pop() else { panic!("a cookie") };
    assert_eq!(cookie, "the peer's cookie", "§3.3.11: exactly as received");
    t.expect_nothing();
    assert_eq!(
        t.events(),
        [Event::PathAdded { path: PathId(0), local: t.pairs[0].0, remote: t.pairs[0].1 }]
    );
    t.peer(cookie_ack());
    t.expect("DATA 1");
    t.expect_nothing();
    let active =
        Event::PathState { path: PathId(0), from: PathState::Unconfirmed, to: PathState::Active };
    assert_eq!(t.events(), [Event::Connected { incoming: false }, active]);
}

#[test]
fn an_init_is_padded_when_it_is_repeated() {
    let lengths = |profile| {
        let mut t = Setup::client().profile(profile).start();
        t.connect();
        [0; 3].map(|_| {
            t.expect_init();
            let len = t.last().packet.bytes().len();
            t.run_to_timer();
            len
        })
    };
    assert_eq!(lengths("rfc9260"), [44, 44, 44]);
    let [first, padded, again] = lengths("fast");
    assert!(first < 60 && [padded, again] == [548, 548], "{first}, {padded}, {again} bytes");
}

/// Some stacks refuse parameters that say nothing.
#[test]
fn init_has_no_parameter_that_says_nothing() {
    let mut t = Setup::client().set("partial_reliability", "false").start();
    t.connect();
    assert_eq!(t.expect_init().params.iter().count(), 0, "§3.3.2.1.5: all address types");
    let mut t = Setup::server().set("partial_reliability", "false").start();
    t.peer(init());
    t.expect_init_ack();
    let is_cookie = |p| matches!(p, Ok(Parameter::StateCookie(_)));
    assert!(last_init(&t).params.iter().all(is_cookie));
}

#[test]
fn a_server_answers_with_the_initiate_tag_and_is_established_by_the_cookie() {
    let mut t = Setup::server().start();
    t.peer(init());
    let cookie = t.expect_init_ack();
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG, "§5.1 B");
    assert_eq!(t.last().remote, t.pairs[0].1, "§5.1: to where INIT came from");
    assert_eq!(t.endpoint.associations().count(), 0);
    t.peer(cookie_echo(&cookie));
    t.expect("COOKIE ACK");
    t.expect_nothing();
    assert!(t.assoc().is_established());
    assert!(t.events().contains(&Event::Connected { incoming: true }));
    assert_eq!(t.path_state(1), PathState::Active, "§5.4: the cookie came back from there");
}

#[test]
fn a_thousand_inits_leave_no_state_and_still_one_association_can_be_opened() {
    let mut t = Setup::server().max_associations(1).start();
    let mut tags = std::collections::BTreeSet::new();
    for n in 1..=1000 {
        t.peer(init().tag(n));
        t.expect_init_ack();
        tags.insert(t.tag());
    }
    assert_eq!(tags.len(), 1000, "§5.3.1: each INIT ACK has a random tag");
    assert_eq!(t.endpoint.associations().count(), 0, "§5.1 B: no resources before COOKIE ECHO");
    assert_eq!(t.endpoint.poll_timeout(), None);
    assert!(t.events().is_empty());
    t.accept(init());
}

#[test]
fn data_bundled_with_cookie_echo_is_delivered_and_acknowledged_after_the_cookie() {
    let mut t = Setup::server().start();
    t.peer(init());
    let cookie = t.expect_init_ack();
    t.peer([cookie_echo(&cookie), data(1)]);
    t.expect_all(&["COOKIE ACK", "SACK 1"]);
    assert_eq!(t.recv().as_deref(), Some(&b"x"[..]), "§5.1.5, items 6 and 7");
}

#[test]
fn an_altered_cookie_is_dropped_silently_with_all_that_follows() {
    let mut t = Setup::server().start();
    t.peer(init());
    let mut cookie = t.expect_init_ack().to_vec();
    cookie[20] ^= 1;
    t.peer([cookie_echo(&Bytes::from(cookie)), data(1)]);
    t.expect_nothing();
    assert_eq!(t.endpoint.associations().count(), 0, "§5.1.5, item 2");
}

#[test]
fn a_cookie_under_another_tag_or_port_is_dropped_silently() {
    let mut t = Setup::server().start();
    t.peer(init());
    let cookie = t.expect_init_ack();
    let tag = t.tag();
    t.peer_with_tag(t.pairs[0], tag ^ 1, cookie_echo(&cookie));
    let header = CommonHeader { source_port: 4999, destination_port: PORT, verification_tag: tag };
    let bytes = t.packet(header, cookie_echo(&cookie));
    t.peer_bytes(t.pairs[0], bytes);
    t.expect_nothing();
    assert_eq!(t.endpoint.associations().count(), 0, "§5.1.5, item 3");
}

#[test]
fn an_expired_cookie_is_answered_with_how_long_ago() {
    let mut t = Setup::server().set("valid_cookie_life", "60 s").start();
    t.peer(init());
    let cookie = t.expect_init_ack();
    t.run_ms(61_000);
    t.peer_with_tag(t.pairs[0], t.tag() ^ 1, cookie_echo(&cookie));
    t.expect_nothing();
    t.peer(cookie_echo(&cookie));
    t.expect("ERROR 3");
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG);
    let Some(Chunk::Error(error)) = t.last_chunks().pop() else { panic!("an ERROR") };
    let cause = error.causes.iter().next().expect("one").expect("well-formed");
    assert_eq!(cause, ErrorCause::StaleCookie(1_000_000), "§5.1.5, item 4, in microseconds");
    assert_eq!(t.endpoint.associations().count(), 0);
}

#[test]
fn a_replayed_cookie_is_acknowledged_and_changes_nothing() {
    let mut t = Setup::server().start();
    t.peer(init());
    let cookie = t.expect_init_ack();
    t.peer(cookie_echo(&cookie));
    t.expect("COOKIE ACK");
    t.peer(data(1));
    t.expect("SACK 1");
    t.events();
    t.peer(cookie_echo(&cookie));
    t.expect("COOKIE ACK");
    t.peer(data(1));
    t.expect("SACK 1 dups 1");
    assert_eq!(t.endpoint.associations().count(), 1, "§5.2.4, case D");
    assert_eq!(t.events(), []);
}

#[test]
fn a_copy_of_the_cookie_begins_no_second_association_after_the_end_of_the_first() {
    let mut t = Setup::server().start();
    t.peer(init());
    let cookie = t.expect_init_ack();
    t.peer([cookie_echo(&cookie), data(1)]);
    t.expect("COOKIE ACK");
    t.peer(abort(&[]));
    t.events();
    t.all_sent();
    let from = t.pairs[0];
    let tag = t.view().0;
    t.peer_with_tag(from, tag, [cookie_echo(&cookie), data(1)]);
    t.expect("ABORT");
    assert_eq!(t.events(), [], "what came with it is not delivered twice");
}

#[test]
fn a_late_duplicate_of_the_cookie_is_valid_while_the_tags_match() {
    let mut t = Setup::server().set("valid_cookie_life", "60 s").start();
    t.peer(init());
    let cookie = t.expect_init_ack();
    t.peer(cookie_echo(&cookie));
    t.expect("COOKIE ACK");
    t.run_ms(61_000);
    t.answer_heartbeats();
    t.all_sent();
    t.peer(cookie_echo(&cookie));
    t.expect("COOKIE ACK");
    t.expect_nothing();
}

#[test]
fn a_cookie_from_another_address_than_the_init_does_not_verify_that_address() {
    let mut t = Setup::server().paths(2).start();
    t.peer_on(1, init());
    let cookie = t.expect_init_ack();
    t.peer_on(2, cookie_echo(&cookie));
    t.with(|a, now| a.send(now, Default::default(), Bytes::from_static(b"secret"))).expect("room");
    // §5.4: the only confirmed address is the one that INIT ACK was sent to; COOKIE ACK to another
    // one carries a probe.
    assert_eq!(t.all_sent(), ["P2 COOKIE ACK, HEARTBEAT", "P1 DATA 1"]);
    assert_eq!(t.path_state(1), PathState::Active);
    assert_eq!(t.path_state(2), PathState::Unconfirmed);
}

#[test]
fn init_is_retransmitted_with_back_off_over_all_paths_until_the_limit() {
    let mut t = Setup::client().paths(2).set("max_init_retransmits", "3").start();
    t.connect();
    let init = t.expect_init();
    t.expect_nothing();
    for (n, path) in [(1, 2), (2, 1), (4, 2)] {
        assert_eq!(t.run_to_timer().as_secs(), n, "§6.3.3 E2: doubled each time");
        t.expect(&format!("P{path} INIT"));
        assert_eq!(last_init(&t).initiate_tag, init.initiate_tag, "§5.1.6: the same tag");
    }
    t.events();
    assert_eq!(t.run_to_timer().as_secs(), 8);
    t.expect_nothing();
    assert_eq!(t.events(), [Event::Closed(AssocClosed::HandshakeTimedOut)]);
    assert_eq!(t.endpoint.poll_timeout(), None);
}

#[test]
fn a_path_added_while_nobody_answers_takes_init_in_its_turn() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    let (local, remote) = (([10, 0, 3, 1], PORT).into(), ([10, 0, 3, 2], PORT).into());
    t.with(|a, now| a.add_path(now, local, remote)).expect("a new path");
    t.expect_nothing();
    t.run_to_timer();
    t.expect("INIT");
    assert_eq!((t.last().local, t.last().remote), (local, remote));
    t.peer_from((local, remote), init_ack());
    t.expect("COOKIE ECHO");
    assert_eq!(t.last().remote, remote, "where the peer answers");
}

#[test]
fn cookie_echo_is_retransmitted_until_the_limit() {
    let mut t = Setup::client().set("max_init_retransmits", "2").start();
    t.connect();
    t.expect_init();
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    for n in [1, 2] {
        assert_eq!(t.run_to_timer().as_secs(), n);
        t.expect("COOKIE ECHO");
    }
    t.events();
    t.run_to_timer();
    t.expect_nothing();
    assert_eq!(t.events(), [Event::Closed(AssocClosed::HandshakeUnfinished)], "§5.1.4");
}

/// How far a peer goes before it is silent.
#[derive(Copy, Clone, Debug)]
enum Goes {
    Nowhere,
    ToInitAck,
    ToCookieAck,
}

/// The end of an attempt that may take 3 s, and when it came.
fn end_within_a_limit(goes: Goes, key_timeout: &str) -> (AssocClosed, u64) {
    let flags = DtlsKeyManagementFlags::CLIENT | DtlsKeyManagementFlags::SERVER;
    let offer = DtlsKeyManagement::new(1, flags, &[0]).expect("a method");
    let setup = Setup::client().profile("fast").set("key_timeout", key_timeout);
    let mut t = setup.limit(Duration::from_secs(3)).start();
    let keys = SharedKey::new(&[7; 32]).expect("long enough");
    t.endpoint.set_key_management(Some(Arc::new(keys)));
    t.connect();
    t.expect_init();
    t.run_ms(100);
    if !matches!(goes, Goes::Nowhere) {
        t.peer(init_ack().param(Parameter::DtlsKeyManagement(offer)));
    }
    if matches!(goes, Goes::ToCookieAck) {
        t.peer(cookie_ack());
    }
    loop {
        t.run_to_timer();
        if let Some(closed) = t.assoc().closed() {
            return (closed.clone(), t.now().as_nanos() / 1_000_000);
        }
    }
}

#[test]
fn the_end_of_an_attempt_says_how_far_it_came_whatever_its_limit() {
    let not_protected =
        |reason: &str| AssocClosed::NotProtected { reason: reason.to_owned(), by_peer: false };
    for (goes, key_timeout, end) in [
        (Goes::Nowhere, "15 s", (AssocClosed::HandshakeTimedOut, 3000)),
        (Goes::ToInitAck, "15 s", (AssocClosed::HandshakeUnfinished, 3000)),
        (
            Goes::ToCookieAck,
            "15 s",
            (not_protected("the peer sent nothing protected in time"), 3000),
        ),
        (
            Goes::ToCookieAck,
            "1 s",
            (not_protected("the peer sent nothing protected in time"), 1100),
        ),
    ] {
        assert_eq!(end_within_a_limit(goes, key_timeout), end, "{goes:?}, {key_timeout}");
    }
}

#[test]
fn a_limit_does_not_end_what_is_open() {
    let mut t = Setup::client().limit(Duration::from_secs(3)).established();
    t.run_ms(10_000);
    assert!(t.assoc().is_established());
}

#[test]
fn cookie_echo_does_not_go_to_an_address_that_only_the_peer_named() {
    let mut t = Setup::client().paths(2).start();
    t.pairs.truncate(1);
    t.connect();
    t.expect_init();
    t.peer(init_ack().param(Parameter::from(IpAddr::from([10, 0, 1, 2]))));
    for _ in 0..3 {
        t.expect("COOKIE ECHO");
        assert_eq!(t.last().remote, t.pairs[0].1, "§5.4: not to an unconfirmed address");
        t.run_to_timer();
    }
}

#[test]
fn the_path_on_which_cookie_ack_arrived_is_confirmed() {
    let mut t = Setup::client().paths(2).start();
    t.connect();
    t.expect_init();
    t.peer_on(1, init_ack());
    t.expect("P1 COOKIE ECHO");
    t.run_to_timer();
    t.expect("P2 COOKIE ECHO");
    t.peer_on(1, cookie_ack());
    assert_eq!((t.path_state(1), t.path_state(2)), (PathState::Active, PathState::Unconfirmed));
    t.expect("P2 HEARTBEAT");
}

#[test]
fn a_stale_cookie_is_replaced_by_a_new_init_a_limited_number_of_times() {
    let mut t = Setup::client().set("max_init_retransmits", "2").start();
    t.connect();
    t.expect_init();
    for _ in 0..2 {
        t.peer(init_ack());
        t.expect("COOKIE ECHO");
        t.peer(error(ErrorCause::StaleCookie(5)));
        t.expect_init();
        assert_eq!(t.last().packet.header.verification_tag, 0);
    }
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    t.peer(error(ErrorCause::StaleCookie(5)));
    t.expect_nothing();
    assert_eq!(t.events().pop(), Some(Event::Closed(AssocClosed::HandshakeTimedOut)), "§5.2.6");
}

/// COOKIE ACK does not say which cookie it confirms, and two copies of a COOKIE ECHO draw two
/// errors.
#[test]
fn answers_to_a_cookie_count_for_no_later_one() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    let first = t.view();
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    t.peer(error(ErrorCause::StaleCookie(5)));
    let again = t.expect_init();
    assert_ne!(again.initiate_tag, first.0, "another attempt has another tag");
    let second = t.view();
    t.peer(init_ack().tag(71));
    t.expect("COOKIE ECHO");
    t.set_view(first);
    t.peer(error(ErrorCause::StaleCookie(5))); // the answer to a copy of the first cookie
    t.peer(cookie_ack());
    t.expect_nothing();
    assert!(!t.assoc().is_established());
    t.set_view(second);
    t.peer(cookie_ack());
    assert!(t.assoc().is_established());
    t.send(1);
    t.expect("DATA 1");
    assert_eq!(t.last().packet.header.verification_tag, 71);
    t.peer([data(1), sack(1)]);
    t.expect("SACK 1");
    t.with(|a, now| a.abort(now, b""));
    t.expect("ABORT 12");
    t.peer(data(2));
    t.expect("ABORT T"); // the endpoint has forgotten the second tag, too
}

#[test]
fn a_stale_cookie_error_means_nothing_to_an_established_association() {
    let mut t = Setup::client().established();
    t.peer(error(ErrorCause::StaleCookie(5)));
    t.expect_nothing();
    assert!(t.assoc().is_established(), "§5.2.6");
    assert_eq!(t.events(), []);
}

#[test]
fn unexpected_init_ack_and_cookie_ack_are_dropped_silently() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(cookie_ack());
    t.expect_nothing();
    assert!(!t.assoc().is_established(), "§5.2.5: not in COOKIE-WAIT");
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    t.peer(init_ack().tag(99));
    t.expect_nothing();
    t.peer(cookie_ack());
    t.peer(init_ack().tag(99));
    t.peer(cookie_ack());
    t.expect_nothing();
    t.send(1);
    t.expect("DATA 1");
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG, "§5.2.3");
}

#[test]
fn before_the_peers_tag_is_known_nothing_is_answered() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer([heartbeat(b"early"), unknown(0xff), data(1), sack(5), shutdown(0)]);
    t.expect_nothing();
}

#[test]
fn a_heartbeat_is_answered_from_cookie_echoed_on() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    t.peer(heartbeat(b"early"));
    t.expect("HEARTBEAT ACK"); // §8.3
}

#[test]
fn data_and_sacks_are_dropped_until_cookie_ack() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    t.peer([data(1), sack(3)]);
    t.expect_nothing();
    t.peer(cookie_ack());
    t.peer(data(1));
    t.expect("SACK 1");
}

#[test]
fn a_refusal_is_an_abort_with_the_initiate_tag() {
    let mut t = Setup::client().start();
    t.peer(init());
    t.expect("ABORT");
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG, "§8.4, rule 3");

    let mut t = Setup::server().max_associations(1).established();
    let other = ([10, 0, 0, 1], PORT).into();
    t.peer_from((other, ([10, 0, 9, 9], PORT).into()), init());
    t.expect("ABORT 4");
}

#[test]
fn a_cookie_for_more_associations_than_allowed_is_refused() {
    let mut t = Setup::server().max_associations(1).start();
    let other = (t.pairs[0].0, ([10, 0, 9, 9], PORT).into());
    t.peer_from(other, init().tag(5));
    let cookie = t.expect_init_ack();
    let tag = t.tag();
    t.accept(init());
    t.peer_with_tag(other, tag, cookie_echo(&cookie));
    t.expect("ABORT 4");
    assert_eq!(t.endpoint.associations().count(), 1);
    t.with(|a, now| a.abort(now, b""));
    t.expect("ABORT 12");
    t.peer_with_tag(other, tag, cookie_echo(&cookie));
    t.expect("COOKIE ACK");
}

#[test]
fn connect_says_what_is_wrong_with_the_request() {
    let mut t = Setup::client().max_associations(1).start();
    let to = |paths: &[_], sctp_port| ConnectTo::new(paths.to_vec(), sctp_port);
    let now = t.now();
    let pairs = t.pairs.clone();
    assert_eq!(t.endpoint.connect(now, to(&[], 5000)), Err(ConnectError::NoPath));
    assert_eq!(t.endpoint.connect(now, to(&pairs, 0)), Err(ConnectError::ZeroPort));
    t.connect();
    let result = t.endpoint.connect(now, to(&pairs, 5001));
    assert_eq!(result, Err(ConnectError::TooMany { limit: 1 }));
    let mut t = Setup::client().start();
    t.connect();
    // §5.2.4: the peer would take a second association for a restart of the first.
    assert_eq!(t.endpoint.connect(now, to(&pairs, PEER_PORT)), Err(ConnectError::Exists));
}

#[test]
fn an_init_ack_from_another_address_opens_a_second_path() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    let elsewhere = (t.pairs[0].0, ([10, 0, 7, 7], PORT).into());
    t.peer_from(elsewhere, init_ack());
    t.expect("COOKIE ECHO");
    assert_eq!(t.last().remote, t.pairs[0].1, "§5.4: the other is not verified");
    t.peer(cookie_ack());
    assert!(t.assoc().is_established());
    assert_eq!(t.assoc().paths().count(), 2, "§5.1.2: the source address counts too");
    t.answer_heartbeats();
    assert_eq!(t.path_state(2), PathState::Active);
}

#[test]
fn a_handshake_over_ipv6() {
    let mut t = Setup::client().v6().established();
    t.send(1);
    t.expect("DATA 1");
    assert!(t.last().remote.is_ipv6());
    let mut t = Setup::server().paths(2).v6().start();
    let listed: IpAddr = "2001:db8:1::2".parse().expect("an address");
    t.accept(init().param(listed.into()));
    assert_eq!(t.path_state(2), PathState::Active);
}

#[test]
fn an_association_given_up_before_it_is_open_tells_nobody() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.with(|a, now| a.abort(now, b"never mind"));
    t.expect_nothing();
    assert_eq!(t.events().pop(), Some(Event::Closed(AssocClosed::Aborted)));
    t.run_ms(10 * MIN);
    t.expect_nothing();
}

#[test]
fn an_abort_in_answer_to_init_ends_the_attempt() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(abort(&[ErrorCause::OutOfResource]));
    t.expect_nothing();
    let closed = AssocClosed::PeerAborted { cause: 4, reason: vec![] };
    assert_eq!(t.events().pop(), Some(Event::Closed(closed)));
}
