//! Cookies that are late, of a restarted peer, or of an attacker (RFC 9260 §5.2.1, §5.2.4).

use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use manypath_proto::Event;
use manypath_proto::testing::*;
use manypath_wire::{Chunk, Parameter, Tsn};

/// A cookie, with what its owner goes by: our tag, and the TSN that counts as 0.
type Answered = (Bytes, (u32, Tsn));

fn listed(ip: [u8; 4]) -> Parameter {
    Parameter::from(IpAddr::from(ip))
}

/// A server with the cookies of two INITs of one client, which restarted between them; what the
/// client goes by after each INIT ACK.
fn restarted_within_its_handshake(mut t: Script) -> (Script, [Answered; 2]) {
    t.peer(init().tag(900));
    let first = (t.expect_init_ack(), t.view());
    t.run_ms(10);
    t.peer(init().tag(901).tsn(5000));
    let second = (t.expect_init_ack(), t.view());
    t.run_ms(10);
    (t, [first, second])
}

#[test]
fn a_client_that_restarts_within_its_handshake_is_served() {
    let (mut t, [first, second]) = restarted_within_its_handshake(Setup::server().start());
    t.set_view(first.1);
    t.peer(cookie_echo(&first.0));
    t.expect("COOKIE ACK");
    assert_eq!(t.last().packet.header.verification_tag, 900, "nobody has this tag any more");
    t.events();
    // The cookie is newer than that of the association. §5.2.4 has no action, as it has no tie
    // tags: the client would repeat it until it gives up.
    t.set_view(second.1);
    t.peer(cookie_echo(&second.0));
    t.expect("COOKIE ACK");
    assert_eq!(t.last().packet.header.verification_tag, 901);
    assert!(t.events().contains(&Event::Restarted));
    assert_eq!(t.endpoint.associations().count(), 1);
    t.peer(data(5000).stream(0, 0));
    t.expect("SACK 5000");
    // The first cookie is superseded now, and the second a duplicate.
    t.set_view(first.1);
    t.peer(cookie_echo(&first.0));
    t.expect_nothing();
    t.set_view(second.1);
    t.peer(cookie_echo(&second.0));
    t.expect("COOKIE ACK");
    assert_eq!(t.events().iter().filter(|e| **e == Event::Restarted).count(), 0);
}

#[test]
fn a_client_that_restarts_twice_while_its_cookie_is_on_the_way_is_served() {
    let mut t = Setup::server().established();
    let mut cookies = Vec::new();
    for tag in [900, 901] {
        t.peer(init().tag(tag).tsn(5000));
        cookies.push((t.expect_init_ack(), t.view()));
        t.run_ms(10);
    }
    // Both have the tie tags of the first association, which the first cookie ends.
    for (cookie, view) in &cookies {
        t.set_view(*view);
        t.peer(cookie_echo(cookie));
        t.expect("COOKIE ACK");
    }
    assert_eq!(t.last().packet.header.verification_tag, 901);
    assert_eq!(t.endpoint.associations().count(), 1);
}

#[test]
fn a_restart_within_the_handshake_adds_no_address_and_comes_from_a_verified_one() {
    for (from, listed_ip) in [(1, [10, 9, 9, 9]), (2, [10, 0, 0, 2])] {
        let mut t = Setup::server().paths(2).start();
        t.peer(init());
        let first = (t.expect_init_ack(), t.view());
        t.run_ms(10);
        t.peer_on(from, init().tag(901).param(listed(listed_ip)));
        let second = (t.expect_init_ack(), t.view());
        t.set_view(first.1);
        t.peer(cookie_echo(&first.0));
        assert!(t.all_sent()[0].ends_with("COOKIE ACK"));
        t.events();
        t.set_view(second.1);
        t.peer(cookie_echo(&second.0));
        assert!(!t.events().contains(&Event::Restarted), "§5.2.2: {listed_ip:?}");
        t.set_view(first.1);
        t.peer(data(1));
        assert!(t.all_sent().iter().any(|words| words.ends_with("SACK 1")));
    }
}

#[test]
fn a_restart_within_the_handshake_waits_for_the_last_shutdown_ack() {
    let (mut t, [first, second]) = restarted_within_its_handshake(Setup::server().start());
    t.set_view(first.1);
    t.peer(cookie_echo(&first.0));
    t.expect("COOKIE ACK");
    t.peer(shutdown(0));
    t.expect("SHUTDOWN ACK");
    t.set_view(second.1);
    t.peer(cookie_echo(&second.0));
    assert_eq!(t.all_sent(), ["SHUTDOWN ACK", "ERROR 10"], "§5.2.4, action A");
}

/// A host that is not the peer of the endpoint, and knows the addresses and ports of both.
fn attacker(t: &Script) -> (SocketAddr, SocketAddr) {
    (t.pairs[0].0, ([10, 6, 6, 6], PORT).into())
}

#[test]
fn nobody_but_the_peer_learns_the_tag_of_an_association_that_is_being_opened() {
    let mut t = Setup::client().paths(2).start();
    t.connect();
    let ours = t.expect_init();
    let (claimed, attacker) = (t.pairs[0].1, attacker(&t));
    let claim = |ip| init().tag(666).param(Parameter::from(ip));
    t.peer_from(attacker, claim(claimed.ip()));
    // §5.2.1: INIT ACK goes to an address that the application gave and that INIT reports.
    assert_eq!(t.next_sent().as_deref(), Some("P1 INIT ACK"));
    assert_eq!((t.last().remote, last_tag(&t)), (claimed, ours.initiate_tag));
    t.expect_nothing();
    // The peer's own INIT is answered where it came from, on each of its addresses.
    t.peer_on(2, init());
    t.expect("P2 INIT ACK");
    assert_eq!(last_tag(&t), ours.initiate_tag);
    // Addresses that only the peer lists are no excuse once the handshake has begun.
    t.peer(init_ack());
    t.expect("P1 COOKIE ECHO");
    t.peer_from(attacker, claim(claimed.ip()));
    assert_eq!(t.all_sent(), ["P? ABORT 11"]);
}

/// The initiate tag of the INIT ACK that was expected last.
fn last_tag(t: &Script) -> u32 {
    let Some(Chunk::InitAck(answer)) = t.last_chunks().pop() else { panic!("an INIT ACK") };
    answer.initiate_tag
}

#[test]
fn the_tag_of_an_association_goes_to_its_candidates_too() {
    let pair = |last| (([10, 0, 0, 1], PORT).into(), ([10, 0, 0, last], PORT).into());
    let mut t = Setup::client().candidates(&[pair(9)]).start();
    t.connect();
    let ours = t.expect_init();
    t.peer_from(pair(9), init().param(listed([10, 0, 0, 2])));
    let answer = t.next_sent().expect("the application gave this address");
    assert!(answer.ends_with("INIT ACK"), "{answer}");
    assert_eq!((t.last().remote, last_tag(&t)), (pair(9).1, ours.initiate_tag));
}

/// The cookie that an attacker gets for his own INIT from his own address, in which he lists the
/// peer's address too.
fn cookie_of_attacker(t: &mut Script) -> Answered {
    let (from, claimed) = (attacker(t), t.pairs[0].1.ip());
    t.peer_from(from, init().tag(666).param(Parameter::from(claimed)));
    (t.expect_init_ack(), t.view())
}

#[test]
fn a_cookie_of_an_attacker_moves_no_association_whatever_address_he_forges() {
    // He asks before and after the INIT of the victim, and echoes when the victim is established.
    for asks_first in [true, false] {
        let mut t = Setup::server().start();
        let early = asks_first.then(|| cookie_of_attacker(&mut t));
        t.run_ms(10);
        t.peer(init());
        let (cookie, own) = (t.expect_init_ack(), t.view());
        t.run_ms(10);
        let (his, his_view) = early.unwrap_or_else(|| cookie_of_attacker(&mut t));
        t.set_view(own);
        t.peer(cookie_echo(&cookie));
        t.expect("COOKIE ACK");
        t.events();
        let victim = t.id();
        t.set_view(his_view);
        t.peer(cookie_echo(&his)); // from the victim's address
        assert_eq!((t.all_sent(), t.events()), (vec![], vec![]), "asks first: {asks_first}");
        // From his own address he opens an association of his own, which takes nothing over.
        let from = attacker(&t);
        t.peer_from(from, cookie_echo(&his));
        t.all_sent();
        t.events();
        t.set_view(own);
        t.peer(data(1));
        t.expect("SACK 1");
        assert_eq!(t.last().packet.header.verification_tag, PEER_TAG);
        assert!(t.endpoint.assoc(victim).is_some_and(|a| a.is_established()));
    }
}

#[test]
fn a_cookie_of_an_attacker_opens_no_association_in_the_name_of_another() {
    let mut t = Setup::server().start();
    let (his, his_view) = cookie_of_attacker(&mut t);
    t.connect();
    t.expect_init();
    let own = t.view();
    t.set_view(his_view);
    t.peer(cookie_echo(&his)); // in COOKIE-WAIT, from the peer's address
    t.expect_nothing();
    t.set_view(own);
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    t.set_view(his_view);
    t.peer(cookie_echo(&his)); // in COOKIE-ECHOED
    t.expect_nothing();
    assert!(!t.assoc().is_established());
    t.set_view(own);
    t.peer(cookie_ack());
    t.send(1);
    t.expect("DATA 1");
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG);
}

/// A client whose INIT crosses that of a peer, which then restarts and sends another. Also the
/// cookies for both INITs of the peer.
fn crossed_by_a_peer_that_restarts() -> (Script, Bytes, Bytes) {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(init().tag(500).tsn(900));
    let old = t.expect_init_ack();
    t.run_ms(10);
    t.peer(init());
    let new = t.expect_init_ack();
    (t, old, new)
}

#[test]
fn a_late_cookie_of_a_crossing_init_does_not_change_the_tag_of_an_open_association() {
    let (mut t, old, new) = crossed_by_a_peer_that_restarts();
    t.peer(cookie_echo(&new)); // §5.2.4, case B
    t.expect("COOKIE ACK");
    t.peer(data(1));
    t.expect("SACK 1");
    t.peer(cookie_echo(&old));
    t.expect("ERROR 3");
    assert_eq!(t.last().packet.header.verification_tag, 500, "whoever waits with it begins again");
    t.send(1);
    t.expect("DATA 1");
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG);
    t.peer([data(2), sack(1)]);
    t.run_ms(200);
    t.expect("SACK 2"); // the expected TSN has not moved either
}

#[test]
fn a_peer_that_restarted_while_both_opened_begins_again_by_a_stale_cookie() {
    let (mut t, old, new) = crossed_by_a_peer_that_restarts();
    // The first cookie arrives first. Its association has received data of the first attempt.
    t.peer([cookie_echo(&old), data(900).stream(0, 0)]);
    t.expect_all(&["COOKIE ACK", "SACK 900"]);
    t.events();
    t.peer(cookie_echo(&new));
    t.expect("ERROR 3");
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG);
    t.peer(init()); // §5.2.6, with the same tag as some peers do
    let third = t.expect_init_ack();
    t.peer(cookie_echo(&third)); // §5.2.4, case A
    t.expect("COOKIE ACK");
    assert!(t.events().contains(&Event::Restarted));
    t.peer(data(1));
    t.expect("SACK 1");
}

#[test]
fn a_cookie_from_before_the_init_ack_does_not_change_the_tag_that_this_named() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer(init().tag(500).tsn(900));
    let old = t.expect_init_ack();
    t.run_ms(10);
    t.peer(init_ack()); // of the peer after a restart
    t.expect("COOKIE ECHO");
    t.peer(cookie_echo(&old));
    t.expect("ERROR 3");
    assert!(!t.assoc().is_established());
    // A peer that is still there repeats INIT. This cookie is newer than the INIT ACK.
    t.peer(init().tag(501).tsn(900));
    let new = t.expect_init_ack();
    t.peer(cookie_echo(&new)); // §5.2.4, case B
    t.expect("COOKIE ACK");
    assert_eq!(t.last().packet.header.verification_tag, 501);
    t.peer(data(900).stream(0, 0));
    t.expect("SACK 900");
}

#[test]
fn a_cookie_begins_no_second_association_with_a_tag_in_use() {
    let pair = |last| (([10, 0, 0, 1], PORT).into(), ([10, 0, 0, last], PORT).into());
    let mut t = Setup::server().candidates(&[pair(9)]).start();
    t.connect();
    t.expect_init();
    t.peer_from(pair(9), init().param(listed([10, 0, 0, 2])));
    t.next_sent();
    let Some(Chunk::InitAck(answer)) = t.last_chunks().pop() else { panic!("an INIT ACK") };
    let cookie = answer.params.iter().find_map(|p| match p {
        Ok(Parameter::StateCookie(cookie)) => Some(cookie),
        _ => None,
    });
    t.peer_from(pair(9), cookie_echo(&cookie.expect("a cookie")));
    assert_eq!(t.endpoint.associations().count(), 1);
}
