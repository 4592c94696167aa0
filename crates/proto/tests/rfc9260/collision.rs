//! Both sides open at once, and peers that restart (RFC 9260 §5.2).

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use manypath_keys::psk::SharedKey;
use manypath_proto::testing::*;
use manypath_proto::{AssocClosed, Event};
use manypath_wire::{Chunk, DtlsKeyManagement, DtlsKeyManagementFlags, ErrorCause, Parameter};

fn listed(ip: [u8; 4]) -> Parameter {
    Parameter::from(IpAddr::from(ip))
}

#[test]
fn an_init_that_crosses_ours_is_answered_with_our_own_tag_and_tsn() {
    let mut t = Setup::client().start();
    t.connect();
    let ours = t.expect_init();
    t.peer(init());
    t.expect_init_ack();
    let Some(Chunk::InitAck(answer)) = t.last_chunks().pop() else { panic!("an INIT ACK") };
    assert_eq!(answer.initiate_tag, ours.initiate_tag, "§5.2.1");
    assert_eq!(answer.initial_tsn, ours.initial_tsn, "§5.2.1");
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG);
    assert_eq!(t.run_to_timer().as_secs(), 1, "§5.2.1: T1-init is left running");
    t.expect("INIT");
}

#[test]
fn both_inits_cross_and_the_peers_cookie_arrives_first() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(init());
    let cookie = t.expect_init_ack();
    t.peer(cookie_echo(&cookie)); // §5.2.4, case B with an unknown peer's tag
    t.expect("COOKIE ACK");
    t.expect_nothing();
    assert!(t.assoc().is_established());
    assert_eq!(t.endpoint.associations().count(), 1);
    t.peer(init_ack()); // the answer to our INIT
    t.expect_nothing();
    t.peer([data(1), sack(0)]);
    t.expect("SACK 1");
    t.send(1);
    t.expect("DATA 1");
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG);
}

#[test]
fn both_inits_cross_and_both_cookies_are_echoed() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(init());
    let cookie = t.expect_init_ack();
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    t.peer(cookie_echo(&cookie)); // §5.2.4, case D: both tags match
    t.expect("COOKIE ACK");
    assert!(t.assoc().is_established());
    t.peer(cookie_ack());
    t.expect_nothing();
    let connected = |e: &Event| matches!(e, Event::Connected { .. });
    assert_eq!(t.events().iter().filter(|e| connected(e)).count(), 1);
    t.run_ms(5000);
    t.expect_nothing();
}

#[test]
fn a_peer_that_chose_a_new_tag_after_answering_our_init_is_followed() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(init_ack().tag(500).tsn(900));
    t.expect("COOKIE ECHO");
    t.peer(init()); // it does not remember tag 500
    let cookie = t.expect_init_ack();
    t.peer(cookie_echo(&cookie)); // §5.2.4, case B
    t.expect("COOKIE ACK");
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG, "the new tag");
    t.peer(data(1));
    t.expect("SACK 1");
    t.run_ms(5000);
    t.expect_nothing();
}

#[test]
fn a_late_cookie_of_an_attempt_that_was_given_up_is_dropped() {
    // A server's cookie for the peer's first INIT; then this side opens to the same peer, whose tag
    // is the same, under a tag of its own.
    let mut t = Setup::server().start();
    t.peer(init());
    let late = t.expect_init_ack();
    let late_view = t.view();
    t.connect();
    t.expect_init();
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    let own = t.view();
    t.set_view(late_view);
    t.peer(cookie_echo(&late)); // §5.2.4, case C: local tag differs, peer's matches, no tie tags
    t.expect_nothing();
    assert!(!t.assoc().is_established());
    t.set_view(own);
    t.peer(cookie_ack());
    assert!(t.assoc().is_established(), "its own handshake goes on");
    assert_eq!(t.endpoint.associations().count(), 1);
}

#[test]
fn a_restart_is_recognised_by_its_tie_tags_and_starts_afresh() {
    let mut t = Setup::server().established();
    t.peer(data(1));
    t.expect("SACK 1");
    t.send_packets(2);
    t.all_sent();
    t.events();
    let old_tag = t.tag();
    t.peer(init().tag(900).tsn(5000));
    let cookie = t.expect_init_ack();
    assert_ne!(t.tag(), old_tag, "§5.2.2: a new random tag");
    assert!(t.assoc().is_established());
    assert_eq!(t.events(), [], "§5.2.2: INIT alone changes nothing");
    t.peer(cookie_echo(&cookie)); // §5.2.4, case A
    t.expect("COOKIE ACK");
    assert_eq!(t.last().packet.header.verification_tag, 900);
    let events = t.events();
    assert!(events.contains(&Event::Restarted), "{events:?}");
    assert!(!events.iter().any(|e| matches!(e, Event::Connected { .. } | Event::Closed(_))));
    assert_eq!(t.endpoint.associations().count(), 1);
    assert_eq!(t.path(1).flight_size, 0);
    assert_eq!(t.path(1).cwnd, 4404, "§5.2.4 A: congestion control starts anew");
    t.peer(data(5000).stream(0, 0));
    t.expect("SACK 5000");
    // The old tag is worth nothing now.
    t.peer_with_tag(t.pairs[0], old_tag, data(2));
    t.expect_nothing();
}

/// An association that will be protected, but whose peer has not shown its keys yet: whoever can
/// send from its address could otherwise take its place with keys of his own.
#[test]
fn nobody_restarts_a_protected_association_before_the_peer_has_shown_its_keys() {
    let flags = DtlsKeyManagementFlags::CLIENT | DtlsKeyManagementFlags::SERVER;
    let offer = |tie_breaker| {
        let offer = DtlsKeyManagement::new(tie_breaker, flags, &[0]).expect("a method");
        Parameter::DtlsKeyManagement(offer)
    };
    let mut t = Setup::client().start();
    let keys = SharedKey::new(&[7; 32]).expect("long enough");
    t.endpoint.set_key_management(Some(Arc::new(keys)));
    t.connect();
    t.expect_init();
    t.peer(init_ack().param(offer(1)));
    t.peer(cookie_ack());
    assert!(t.assoc().is_established() && t.assoc().is_protected());
    t.all_sent();
    t.events();
    t.peer(init().tag(900).tsn(5000).param(offer(2)));
    let cookie = t.expect_init_ack();
    t.peer(cookie_echo(&cookie)); // §5.2.4, case A
    t.expect_nothing();
    assert_eq!(t.events(), [], "the association goes on as it was");
    assert!(t.assoc().is_established());
}

#[test]
fn a_restart_with_a_new_address_is_refused_and_the_address_named() {
    let mut t = Setup::server().established();
    t.peer(init().tag(900).param(listed([10, 0, 0, 2])).param(listed([10, 9, 9, 9])));
    t.expect("ABORT 11");
    assert_eq!(t.last().packet.header.verification_tag, 900, "§5.2.2");
    let Some(Chunk::Abort(abort)) = t.last_chunks().pop() else { panic!("an ABORT") };
    let mut address = Vec::new();
    listed([10, 9, 9, 9]).encode(&mut address);
    let named = ErrorCause::RestartWithNewAddresses(address.into());
    assert_eq!(abort.causes.iter().next(), Some(Ok(named)));
    t.peer(data(1));
    t.expect("SACK 1");
    assert!(t.assoc().is_established(), "the association goes on");
}

#[test]
fn an_init_in_cookie_echoed_that_adds_an_address_is_refused() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    t.peer(init().param(listed([10, 9, 9, 9])));
    t.expect("ABORT 11"); // §5.2.1
    t.peer(cookie_ack());
    assert!(t.assoc().is_established());
}

#[test]
fn an_init_from_an_unknown_source_that_lists_a_verified_address_belongs_to_that_association() {
    let mut t = Setup::server().established();
    let stranger = (t.pairs[0].0, ([10, 6, 6, 6], PORT).into());
    t.peer_from(stranger, init().tag(900).param(listed([10, 0, 0, 2])));
    t.expect("ABORT 11"); // §5.1.2, last rule; §5.2.2: its source is a new address
    assert_eq!(t.endpoint.associations().count(), 1);
}

#[test]
fn an_address_that_a_peer_merely_claims_does_not_keep_its_owner_out() {
    let mut t = Setup::server().start();
    t.accept_without_verification(init().param(listed([10, 0, 5, 5])));
    let owner = (t.pairs[0].0, ([10, 0, 5, 5], PORT).into());
    t.peer_from(owner, init().tag(900));
    let cookie = t.expect_init_ack();
    t.peer_from(owner, cookie_echo(&cookie));
    t.expect("COOKIE ACK");
    assert_eq!(t.endpoint.associations().count(), 2);
    assert!(!t.events().contains(&Event::Restarted));
}

#[test]
fn a_restart_while_the_last_shutdown_ack_waits_is_refused() {
    let mut t = Setup::server().established();
    let old = t.view();
    t.peer(init().tag(900));
    let cookie = t.expect_init_ack();
    let new = t.view();
    t.set_view(old);
    t.peer(shutdown(0));
    t.expect("SHUTDOWN ACK");
    // §9.2: an INIT is discarded, and SHUTDOWN ACK sent again.
    t.peer(init().tag(901));
    t.expect("SHUTDOWN ACK");
    t.expect_nothing();
    // §5.2.4 A: a cookie from before sets up nothing either.
    t.set_view(new);
    t.peer(cookie_echo(&cookie));
    assert_eq!(t.all_sent(), ["SHUTDOWN ACK", "ERROR 10"]);
    assert!(t.assoc().closed().is_none());
}

#[test]
fn a_cookie_after_the_association_was_closed_does_not_bring_it_back() {
    let mut t = Setup::server().start();
    t.peer(init());
    let cookie = t.expect_init_ack();
    t.peer(cookie_echo(&cookie));
    t.expect("COOKIE ACK");
    let first = t.id();
    t.events();
    // ABORT and the cookie arrive in one batch, before the outputs are drained.
    let tag = t.tag();
    let header = manypath_wire::CommonHeader {
        source_port: PEER_PORT,
        destination_port: PORT,
        verification_tag: tag,
    };
    let (local, remote) = t.pairs[0];
    for chunk in [abort(&[]), cookie_echo(&cookie)] {
        let payload = Bytes::from(t.packet(header, chunk));
        let datagram = manypath_proto::Datagram::new(local, remote, payload);
        t.endpoint.handle_datagram(t.now(), datagram);
    }
    t.settle();
    let closed = AssocClosed::PeerAborted { cause: 0, reason: vec![] };
    assert_eq!(t.endpoint.assoc(first).expect("kept").closed(), Some(&closed));
    let events = t.events();
    assert_eq!(events[0], Event::Closed(closed));
    assert_eq!(events.len(), 1, "nor does it begin another: {events:?}");
}

#[test]
fn an_application_that_waits_for_room_is_woken_by_a_restart() {
    let mut t = Setup::server().set("send_buffer", "10000").established();
    t.send(10_000);
    assert!(t.try_send(0, 10_000).is_err());
    t.all_sent();
    t.events();
    t.peer(init().tag(900).tsn(5000));
    let cookie = t.expect_init_ack();
    t.peer(cookie_echo(&cookie));
    assert!(t.events().contains(&Event::Writable));
    t.send(10_000);
}

#[test]
fn a_cookie_shows_nobody_the_tags_of_the_association() {
    let mut t = Setup::server().established();
    let tag = t.tag();
    t.peer(init().tag(900));
    let cookie = t.expect_init_ack();
    for secret in [tag, PEER_TAG] {
        let bytes = secret.to_be_bytes();
        assert!(!cookie.windows(4).any(|w| w == bytes), "§5.2.2: tie tags are nonces");
    }
}

/// The peer's first attempt; it restarts before the cookie of that comes back, and its second one
/// succeeds. Answers the first cookie, and what the peer goes by then and now.
fn superseded(mut t: Script, first_on: usize) -> (Script, Bytes, [(u32, manypath_wire::Tsn); 2]) {
    let (local, remote) = t.pairs[first_on - 1];
    t.peer_from((local, remote), init().tag(900));
    let late = t.expect_init_ack();
    let late_view = t.view();
    t.run_ms(10);
    t.accept(init());
    let own = t.view();
    (t, late, [late_view, own])
}

#[test]
fn a_cookie_that_another_has_superseded_begins_nothing_after_the_end() {
    for (paths, first_on) in [(1, 1), (2, 2)] {
        let (mut t, late, [late_view, own]) =
            superseded(Setup::server().paths(paths).start(), first_on);
        t.set_view(late_view);
        t.peer_on(first_on, cookie_echo(&late));
        assert_eq!(t.all_sent(), [] as [&str; 0], "§5.2.4, case C, while it lasts");
        t.set_view(own);
        t.peer(shutdown(0));
        t.peer(shutdown_complete());
        t.all_sent();
        t.events();
        t.set_view(late_view);
        t.peer_on(first_on, cookie_echo(&late));
        let answer = t.next_sent().expect("who waits begins again");
        assert!(answer.ends_with("ERROR 3"), "{answer}");
        assert_eq!(t.last().packet.header.verification_tag, 900);
        assert_eq!((t.all_sent(), t.events()), (vec![], vec![]));
        // The peer's next attempt is as good as its first.
        t.run_ms(10);
        t.accept(init().tag(901));
    }
}

#[test]
fn a_cookie_that_a_restart_has_superseded_begins_nothing_beside_it() {
    let mut t = Setup::server().paths(2).start();
    t.peer_on(2, init().tag(900));
    let late = t.expect_init_ack();
    let late_view = t.view();
    t.run_ms(10);
    t.accept(init()); // it verifies path 2, too
    t.run_ms(10);
    t.accept(init().tag(901)); // a restart, of which path 2 is not known
    t.set_view(late_view);
    t.peer_on(2, cookie_echo(&late));
    assert_eq!(t.endpoint.associations().count(), 1);
}

#[test]
fn a_superseded_cookie_from_an_address_that_is_not_verified_begins_nothing() {
    let mut t = Setup::server().paths(2).start();
    let [first, second] = [t.pairs[0].1.ip(), t.pairs[1].1.ip()].map(Parameter::from);
    t.peer_on(2, init().tag(900).param(first).param(second.clone()));
    let late = t.expect_init_ack();
    let late_view = t.view();
    t.run_ms(10);
    t.accept_without_verification(init().param(second));
    t.all_sent();
    t.set_view(late_view);
    t.peer_on(2, cookie_echo(&late));
    let answer = t.next_sent().expect("who waits begins again");
    assert!(answer.ends_with("ERROR 3"), "{answer}");
    assert_eq!(t.endpoint.associations().count(), 1);
}

#[test]
fn the_cookie_of_a_crossing_init_begins_nothing_after_the_end() {
    let mut t = Setup::server().start();
    t.connect();
    t.expect_init();
    t.peer(init());
    let cookie = t.expect_init_ack();
    t.peer(cookie_echo(&cookie)); // §5.2.4, case B
    t.expect("COOKIE ACK");
    t.with(|a, now| a.abort(now, b""));
    t.expect("ABORT 12");
    t.events();
    t.peer(cookie_echo(&cookie));
    t.expect("ABORT");
    assert_eq!(t.events(), []);
}
