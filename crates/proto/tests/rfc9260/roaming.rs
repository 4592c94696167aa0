//! Local addresses that go and come while an association lasts.

use std::net::SocketAddr;

use manypath_proto::testing::*;
use manypath_proto::{AssocClosed, Event, PathId, PathState};

const P1: PathId = PathId(0);
const P2: PathId = PathId(1);

fn client(paths: u8) -> Script {
    Setup::client().paths(paths).preset("cmt").set("rtx_when_path_answers", "true").established()
}

fn local(last: u8) -> SocketAddr {
    ([10, 0, 9, last], PORT).into()
}

#[test]
fn with_another_path_one_whose_address_is_gone_is_removed() {
    let mut t = client(2);
    t.send_packets(8);
    t.all_sent();
    t.events();
    let gone = t.pairs[0].0;
    t.with(|a, now| a.local_gone(now, gone));
    let told = [Event::AddressGone { path: P1, local: gone }, Event::PathRemoved { path: P1 }];
    assert_eq!(t.events(), told);
    t.peer_on(2, sack(0).gap(5, 8));
    assert_eq!(t.all_sent(), ["P2 DATA 1", "P2 DATA 2", "P2 DATA 3", "P2 DATA 4"]);
    t.with(|a, now| a.local_gone(now, gone));
    assert_eq!(t.events(), [], "gone is gone");
}

#[test]
fn a_late_answer_revives_no_path_whose_address_is_gone() {
    let mut t = Setup::client()
        .paths(1)
        .set("rtx_when_path_answers", "true")
        .set("association_timeout", "60 s")
        .set("association_max_retrans", "off")
        .established();
    t.send_packets(3);
    t.all_sent();
    let gone = t.pairs[0].0;
    t.with(|a, now| a.local_gone(now, gone));
    t.events();
    t.peer(sack(2));
    assert_eq!(t.path_state(1), PathState::Inactive);
    t.run_ms(61_000);
    assert!(t.events().contains(&Event::Closed(AssocClosed::PathsFailed)), "it waits for ever");
}

#[test]
fn the_last_path_waits_in_silence_and_hands_over_to_a_verified_one() {
    let mut t = client(1);
    t.send_packets(3);
    t.all_sent();
    let (gone, remote) = t.pairs[0];
    t.with(|a, now| a.local_gone(now, gone));
    assert_eq!(t.path_state(1), PathState::Inactive);
    for _ in 0..20 {
        t.run_ms(1000);
        t.expect_nothing();
    }
    assert!(
        t.assoc().is_established(),
        "association_max_retrans counts timeouts, and there are none"
    );
    assert_eq!(t.with(|a, now| a.add_path(now, local(1), remote)), Some(P2));
    t.expect("HEARTBEAT"); // at once
    assert_eq!((t.last().local, t.last().remote), (local(1), remote));
    t.expect_nothing(); // RFC 9260 §5.4
    let info = t.last_heartbeat();
    t.peer_from((local(1), remote), heartbeat_ack(&info));
    let sent = t.take_sent();
    assert!(!sent.is_empty() && sent.iter().all(|packet| packet.local == local(1)));
    assert_eq!(t.assoc().paths().map(|p| p.id).collect::<Vec<_>>(), [P2], "the old one went");
}

#[test]
fn an_address_that_is_back_is_verified_anew() {
    let mut t = client(1);
    t.send_packets(1);
    t.expect("DATA 1");
    let (own, remote) = t.pairs[0];
    t.with(|a, now| a.local_gone(now, own));
    t.run_ms(5000);
    t.expect_nothing();
    assert_eq!(t.with(|a, now| a.add_path(now, own, remote)), Some(P1), "the same path");
    t.expect("HEARTBEAT");
    let info = t.last_heartbeat();
    t.peer(heartbeat_ack(&info));
    t.expect("DATA 1");
    assert_eq!(t.path_state(1), PathState::Active);
}

#[test]
fn a_late_answer_brings_no_path_back_whose_address_is_gone() {
    let mut t = client(1);
    let (own, remote) = t.pairs[0];
    t.with(|a, now| a.network_changed(now));
    let info = match t.next_sent() {
        Some(_) => t.last_heartbeat(),
        None => {
            t.run_ms(50);
            t.with(|a, now| a.network_changed(now));
            t.expect("HEARTBEAT");
            t.last_heartbeat()
        }
    };
    t.with(|a, now| a.local_gone(now, own));
    t.peer_from((own, remote), heartbeat_ack(&info));
    assert_eq!(t.path_state(1), PathState::Inactive);
    t.expect_nothing();
}

#[test]
fn a_path_moves_to_a_source_that_routes_prefer_once_that_is_verified() {
    let mut t = client(1);
    let (own, remote) = t.pairs[0];
    assert_eq!(t.with(|a, now| a.move_path(now, P1, own)), None, "there it is");
    assert_eq!(t.with(|a, now| a.move_path(now, P1, local(1))), Some(P2));
    t.expect("HEARTBEAT");
    let info = t.last_heartbeat();
    t.send_packets(1);
    t.expect("DATA 1");
    assert_eq!(t.last().local, own, "until the new one is known to work");
    t.peer_from((local(1), remote), heartbeat_ack(&info));
    assert_eq!(t.assoc().paths().map(|p| (p.id, p.local)).collect::<Vec<_>>(), [(P2, local(1))]);
    // What was in flight goes over the new one; and back again while both are there.
    t.expect("DATA 1");
    assert_eq!(t.with(|a, now| a.move_path(now, P2, own)), Some(P1));
    assert_eq!(t.with(|a, now| a.move_path(now, P1, local(1))), Some(P2), "it never left");
    assert_eq!(t.assoc().paths().map(|p| p.id).collect::<Vec<_>>(), [P2]);
}

#[test]
fn no_packet_of_the_peer_makes_a_path_from_an_address_that_a_tunnel_replaces() {
    let mut t = client(1);
    let (own, remote) = t.pairs[0];
    t.with(|a, _| a.avoid_locals([own.ip()].into()));
    t.with(|a, now| a.move_path(now, P1, local(1)));
    t.expect("HEARTBEAT");
    let info = t.last_heartbeat();
    t.peer_from((local(1), remote), heartbeat_ack(&info));
    let locals = |t: &Script| t.assoc().paths().map(|p| p.local).collect::<Vec<_>>();
    assert_eq!(locals(&t), [local(1)]);
    t.events();
    // The peer does not know yet.
    t.peer_from((own, remote), heartbeat(b"are you there?"));
    t.expect_nothing();
    assert_eq!(t.events(), []);
    assert_eq!(locals(&t), [local(1)]);
    t.with(|a, _| a.avoid_locals([].into()));
    t.peer_from((own, remote), heartbeat(b"are you there?"));
    assert_eq!(locals(&t), [own, local(1)], "the tunnel is gone");
}

#[test]
fn a_change_begins_the_back_off_anew() {
    let mut t = client(1);
    t.send_packets(1);
    t.expect("DATA 1");
    for _ in 0..3 {
        t.run_to_timer();
        while t.next_sent().is_some() {}
    }
    assert!(t.path(1).rto.as_secs() >= 4, "{:?}", t.path(1).rto);
    t.with(|a, now| a.network_changed(now));
    t.expect("HEARTBEAT");
    assert!(t.path(1).rto.as_secs() <= 1, "{:?}", t.path(1).rto);
    let info = t.last_heartbeat();
    t.peer(heartbeat_ack(&info));
    t.expect("DATA 1");
}

#[test]
fn a_change_repeats_an_attempt_to_open_at_once() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.with(|a, now| a.network_changed(now));
    t.run_ms(1);
    t.expect_init();
    t.with(|a, now| a.network_changed(now));
    t.run_ms(1);
    t.expect_nothing();
    t.run_ms(25);
    t.with(|a, now| a.network_changed(now));
    t.run_ms(1);
    t.expect_init();
}

#[test]
fn strangers_that_never_answer_are_forgotten() {
    let mut t = Setup::server().set("path_max_retrans", "2").established();
    for host in 1..=3 {
        t.peer_from((t.pairs[0].0, ([10, 6, 6, host], PORT).into()), heartbeat(b"hello"));
    }
    assert_eq!(t.assoc().paths().count(), 4);
    let asked = |t: &mut Script| {
        let own = t.pairs[0].1;
        t.take_sent().iter().filter(|packet| packet.remote != own).count()
    };
    asked(&mut t);
    t.run_ms(20_000);
    assert!(asked(&mut t) <= 3 * 3, "each path_max_retrans times more");
    assert_eq!(t.assoc().paths().count(), 1);
    t.run_ms(20_000);
    assert_eq!(asked(&mut t), 0);
}

#[test]
fn an_address_that_stays_away_ends_the_association_by_time() {
    let mut t = Setup::client().set("association_timeout", "7 s").established();
    let own = t.pairs[0].0;
    t.with(|a, now| a.local_gone(now, own));
    t.run_ms(6_900);
    assert!(t.assoc().is_established());
    t.run_ms(200);
    assert_eq!(t.assoc().closed(), Some(&AssocClosed::PathsFailed));
}
