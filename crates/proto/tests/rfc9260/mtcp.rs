//! mTCP (Zhang et al.): one path for SACKs and the SACK PATH chunk, failure by silence, what is
//! sent where.

use manypath_proto::testing::*;
use manypath_proto::{ElectReason, Event, PathId, PathState};
use manypath_wire::{Chunk, Parameter, SackPath, chunk_type};

use super::common::announced;

fn announcement() -> Parameter {
    Parameter::SupportedExtensions(vec![chunk_type::SACK_PATH].into())
}

fn setup() -> Setup {
    Setup::client().paths(2).preset("mtcp").set("max_burst", "0").set("initial_cwnd", "4 pmdcs")
}

/// A client whose peer knows SACK PATH, too.
fn client() -> Script {
    let mut t = setup().start();
    t.connect_to(init_ack().param(announcement()));
    t
}

fn sack_path(serial: u32, failed: bool) -> PeerChunk {
    PeerChunk::Plain(Chunk::SackPath(SackPath { serial, failed }))
}

#[test]
fn sacks_take_the_primary_and_say_so_to_a_peer_that_knows() {
    let mut t = client();
    t.peer_on(2, data(1));
    t.expect("P1 SACK PATH, SACK 1");
    let mut t = setup().start();
    t.connect_to(init_ack());
    t.peer_on(2, data(1));
    t.expect("P1 SACK 1");
    let mut t = setup().set("ack_path", "last_received").set("failure", "pf").start();
    t.connect_to(init_ack().param(announcement()));
    t.peer_on(2, data(1));
    t.expect("P2 SACK 1");
}

#[test]
fn a_server_learns_of_it_from_its_cookie() {
    let mut t = Setup::server().preset("mtcp").start();
    t.accept(init().param(announcement()));
    t.peer(data(1));
    t.expect("SACK PATH, SACK 1");
}

#[test]
fn a_server_that_does_as_asked_does_so_for_those_who_ask() {
    let answer = |preset: &str, init: fn() -> PeerChunk| {
        let setup = || Setup::server().preset(preset).set("ack_path_as_asked", "true").paths(2);
        let setup = || setup().set("partial_reliability", "false");
        let mut t = setup().start();
        t.peer(init());
        t.expect_init_ack();
        let Some(Chunk::InitAck(answer)) = t.last_chunks().pop() else { unreachable!() };
        let extensions = announced(&answer);
        let mut t = setup().start();
        t.accept(init());
        t.peer_on(2, data(1));
        (extensions, t.next_sent().expect("a SACK"))
    };
    let list = vec![chunk_type::SACK_PATH];
    let asks = || init().param(announcement());
    assert_eq!(answer("cmt-pf", asks), (list.clone(), "P1 SACK PATH, SACK 1".to_owned()));
    assert_eq!(answer("cmt-pf", init), (vec![], "P2 SACK 1".to_owned()));
    assert_eq!(answer("mtcp", init), (list, "P1 SACK 1".to_owned()));
}

#[test]
fn what_was_agreed_on_is_told_and_the_configuration_stays() {
    let agreed = |preset: &str, init: fn() -> PeerChunk| {
        let mut t = Setup::server().preset(preset).set("ack_path_as_asked", "true").start();
        t.accept_without_verification(init());
        let configured = t.assoc().config().get("ack_path").expect("a parameter");
        assert_eq!(configured == "primary", preset == "mtcp");
        t.events().into_iter().find_map(|event| match event {
            Event::SackPathAgreed { ours, as_asked } => Some((ours, as_asked)),
            _ => None,
        })
    };
    let asks = || init().param(announcement());
    assert_eq!(agreed("cmt-pf", asks), Some((true, true)));
    assert_eq!(agreed("mtcp", asks), Some((true, false)));
    assert_eq!((agreed("cmt-pf", init), agreed("mtcp", init)), (None, None));
}

#[test]
fn a_client_asks_for_nothing_that_it_is_not_configured_for() {
    let mut t = Setup::client().preset("cmt-pf").set("ack_path_as_asked", "true").paths(2).start();
    t.connect_to(init_ack().param(announcement()));
    t.peer_on(2, data(1));
    t.expect("P2 SACK 1");
}

#[test]
fn a_path_on_which_nothing_is_acknowledged_for_two_rto_has_failed() {
    let mut t = client();
    t.peer_on(1, [sack_path(0, false), sack(0)]);
    t.send_packets(8);
    let all = t.all_sent();
    let on_1: Vec<u32> =
        all.iter().filter_map(|w| w.strip_prefix("P1 DATA ")?.parse().ok()).collect();
    assert_eq!(on_1.len(), 4, "as much room on each: {all:?}");
    let acked = on_1[1]; // not 1
    let rto = t.path(2).rto;
    t.run(rto);
    assert_eq!(t.path_state(2), PathState::Active, "one timeout is no failure");
    t.peer_on(1, [sack_path(0, false), sack(0).gap(acked, acked)]);
    t.run(rto);
    assert_eq!(t.path_state(2), PathState::PotentiallyFailed, "mTCP paper, section 3.5.1");
}

/// It would move what is outstanding elsewhere again and again, whose timers would never expire.
#[test]
fn a_peer_that_keeps_its_window_closed_is_not_silent() {
    let mut t = client();
    t.peer_on(1, [sack_path(0, false), sack(0)]);
    t.send_packets(2);
    t.all_sent();
    t.peer_on(1, [sack_path(0, false), sack(2).rwnd(0)]);
    t.send_packets(1);
    for _ in 0..100 {
        t.run_ms(100);
        for words in t.all_sent() {
            assert!(!words.contains("SACK PATH"), "nothing has failed: {words}");
            if words.ends_with("DATA 3") {
                t.peer_on(1, [sack_path(0, false), sack(2).rwnd(0)]);
            }
        }
        assert_eq!(t.path_state(1), PathState::Active, "RFC 9260 §6.1, A");
    }
}

#[test]
fn when_the_path_of_the_sacks_fails_the_others_are_taken_back_and_the_peer_is_told() {
    let mut t = client();
    t.peer_on(1, [sack_path(7, false), sack(0)]);
    t.send_packets(8);
    t.all_sent();
    let since = t.now();
    while t.path_state(1) == PathState::Active {
        t.run_to_timer();
        assert!((t.now() - since).as_millis() < 2500, "section 3.5.2");
    }
    assert_eq!(t.path_state(2), PathState::Active, "its silence has the same cause");
    let told = t.all_sent().into_iter().filter(|words| words == "P2 SACK PATH").count();
    assert!(told >= 1, "the peer is told where it can hear it");
    t.events();
    t.peer_on(2, [sack_path(8, false), sack(0)]);
    let reason = ElectReason::Failed;
    let elected = Event::PrimaryElected { path: PathId(1), by_peer: true, reason };
    assert!(t.events().contains(&elected));
    t.peer_on(1, [sack_path(7, false), sack(0)]);
    assert_eq!(t.events(), [], "a late packet changes nothing");
}

#[test]
fn a_peer_that_reports_the_failure_of_our_path_gets_its_sack_on_another() {
    let mut t = client();
    t.peer_on(2, data(1));
    t.expect("P1 SACK PATH, SACK 1");
    t.peer_on(2, [sack_path(3, true)]);
    t.expect_nothing(); // of a choice that was never made
    t.peer_on(2, [sack_path(0, true)]);
    t.expect("P2 SACK PATH, SACK 1");
    let chunk = t.last_chunks().into_iter().next();
    assert_eq!(chunk, Some(Chunk::SackPath(SackPath { serial: 1, failed: false })));
    let reason = ElectReason::Failed;
    let elected = Event::PrimaryElected { path: PathId(1), by_peer: false, reason };
    assert!(t.events().contains(&elected));
    t.peer_on(2, [sack_path(0, true)]);
    t.expect_nothing(); // it was sent before the peer knew
}

#[test]
fn a_pipe_full_of_lost_chunks_is_emptied_by_a_timeout() {
    let setup = Setup::client().preset("mtcp").set("max_burst", "0");
    let mut t = setup.set("initial_cwnd", "12 pmdcs").start();
    t.connect_to(init_ack());
    t.send_packets(12);
    t.all_sent();
    for last in 10..=12 {
        t.peer(sack(0).gap(10, last));
    }
    t.expect("DATA 1"); // fast retransmit; nine lost chunks against a window of six packets
    t.expect_nothing();
    t.peer(sack(1).gap(10, 12));
    t.expect_nothing(); // eight lost chunks fill it, and nothing is in flight that could be acknowledged
    assert_eq!((t.path(1).flight_size, t.path(1).counters.t3_expirations), (0, 0));
    let rto = t.path(1).rto;
    t.run(rto);
    t.expect("DATA 2");
    t.expect_nothing(); // cwnd is one packet
    assert_eq!((t.path(1).counters.t3_expirations, t.path(1).error_count), (1, 1));
    t.peer(sack(2).gap(10, 12));
    t.expect_all(&["DATA 3", "DATA 4"]); // slow start
}

#[test]
fn a_chunk_that_is_lost_on_one_path_and_under_way_on_another_is_watched_there() {
    let mut t = setup().start();
    t.connect_to(init_ack());
    t.send_packets(8);
    let all = t.all_sent();
    let on = |path: &str| -> Vec<u32> {
        let of_path = format!("P{path} DATA ");
        all.iter().filter_map(|w| w.strip_prefix(&of_path)?.parse().ok()).collect()
    };
    let (on_1, on_2) = (on("1"), on("2"));
    assert_eq!((&on_1[..], &on_2[..]), (&[1, 4, 6, 7][..], &[2, 3, 5, 8][..]), "as the seed says");
    t.run_ms(10);
    t.peer_on(2, sack(0).gap(2, 3).gap(5, 5));
    for last in [4, 6, 7] {
        t.run_ms(10);
        t.peer_on(1, sack(0).gap(2, last));
    }
    t.expect("P2 DATA 1");
    let before = t.path(1);
    assert_eq!(before.flight_size, 0);
    t.run_to_timer(); // T3-rtx of path 1
    t.expect_nothing();
    let after = t.path(1);
    assert_eq!(
        (after.counters.t3_expirations, after.cwnd),
        (0, before.cwnd),
        "nothing says that path 1 fails"
    );
    t.run_to_timer();
    assert_eq!(t.path(2).counters.t3_expirations, 1, "it was under way there");
}
