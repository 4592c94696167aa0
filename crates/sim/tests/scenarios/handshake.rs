//! Beginning, restart and end of an association (RFC 9260 §5 and §9).

use std::time::Duration;

use manypath_proto::PathState::{Active, Inactive, Unconfirmed};
use manypath_proto::{AssocClosed, Event, PathId};
use manypath_sim::chunk_type::{
    ABORT, COOKIE_ACK, COOKIE_ECHO, DATA, INIT, INIT_ACK, SHUTDOWN_ACK,
};
use manypath_sim::{Pair, PathSpec, millis, secs};

fn is_restart(event: &Event) -> bool {
    *event == Event::Restarted
}

#[test]
fn the_handshake_takes_four_packets_and_two_round_trips() {
    let t = Pair::one_path("sctp").connect();
    let count = |chunk| t.sent(chunk).count();
    let all = [INIT, INIT_ACK, COOKIE_ECHO, COOKIE_ACK].map(count);
    assert_eq!(all, [1, 1, 1, 1], "RFC 9260 §5.1");
    assert!(
        (180..190).contains(&t.net.now().as_nanos().div_euclid(1_000_000)),
        "{:?}",
        t.net.now()
    );
}

#[test]
fn data_waits_for_the_handshake_and_then_goes() {
    let mut t = Pair::one_path("sctp").start();
    t.a.send(0, 1000);
    t.run_to_end(secs(10));
    assert_eq!(t.z.received_messages(), 1);
    assert!(t.sent(DATA).first() >= t.sent(COOKIE_ECHO).first(), "RFC 9260 §5.1, C");
}

#[test]
fn a_lost_init_is_repeated_after_rto_initial() {
    let mut t = Pair::one_path("sctp").start();
    t.net.path(0).cut();
    t.run_until(millis(500));
    t.net.path(0).restore();
    t.run_until(secs(3));
    assert!(t.a.is_established());
    let inits = t.sent(INIT).times();
    assert_eq!(inits[1] - inits[0], Duration::from_secs(1), "RFC 9260 §5.1, A: T1-init");
}

#[test]
fn a_lost_cookie_echo_is_repeated() {
    let mut t = Pair::one_path("sctp").start();
    t.run_until(millis(80));
    t.net.path(0).forward().cut_for(Duration::from_millis(500));
    t.run_until(secs(5));
    assert!(t.a.is_established() && t.z.is_established());
    assert_eq!((t.sent(COOKIE_ECHO).count(), t.sent(INIT).count()), (2, 1), "RFC 9260 §5.1, C");
}

#[test]
fn a_lost_cookie_ack_leaves_one_association() {
    let mut t = Pair::one_path("sctp").start();
    t.run_until(millis(100));
    t.net.path(0).reverse().cut_for(Duration::from_millis(500));
    t.a.send(0, 100);
    t.run_to_end(secs(10));
    assert!(t.a.is_established() && t.z.is_established());
    assert_eq!(t.z.epoch(), 0, "RFC 9260 §5.2.4, action D: a repeated cookie is no restart");
    assert_eq!(t.z.received_messages(), 1);
}

#[test]
fn with_a_dead_first_path_the_handshake_takes_the_second() {
    let mut t = Pair::two_paths("cmt-pf").start();
    t.net.path(0).cut();
    t.a.send_file(100_000);
    t.run_to_end(secs(60));
    assert_eq!(t.z.received_bytes(), 100_000);
    assert!(t.sent(INIT).on(PathId(1)).first() < Some(secs(5)));
}

#[test]
fn nobody_there_ends_the_attempt() {
    let mut t = Pair::two_paths("cmt-pf").start();
    t.net.path(0).cut();
    t.net.path(1).cut();
    t.run_until(secs(600));
    assert_eq!(
        t.a.closed(),
        Some(&AssocClosed::HandshakeTimedOut),
        "RFC 9260 §5.1: Max.Init.Retransmits"
    );
    assert_eq!(t.sent(INIT).count(), 9, "the first and eight repetitions");
    assert_eq!(t.net.next_event(), None, "no timer is left");
}

#[test]
fn a_server_with_one_address_is_reached_over_both_paths() {
    let mut t = Pair::two_paths("cmt").one_far_address().connect();
    t.a.send_file(1_000_000);
    let result = t.run_to_end(secs(30)).result();
    assert!(result.completed);
    assert!(
        result.paths.iter().all(|path| path.stats.counters.data_chunks_sent > 100),
        "{result:?}"
    );
}

#[test]
fn a_peer_that_restarts_is_noticed_and_served_anew() {
    let mut t = Pair::two_paths("cmt").connect();
    t.a.send_file(200_000);
    t.run_to_end(secs(20));
    t.a.kill_and_restart();
    t.a.send_file(300_000);
    t.run_to_end(secs(60));
    let restarts = t.z.events().iter().filter(|(_, event)| is_restart(event)).count();
    assert_eq!(restarts, 1, "RFC 9260 §5.2.4, action A");
    assert_eq!(t.z.received_bytes(), 300_000, "counted from the restart");
}

#[test]
fn a_server_that_lost_its_state_aborts_what_it_does_not_know() {
    let mut t = Pair::one_path("sctp").connect();
    t.z.kill_and_restart();
    t.a.send(0, 1000);
    t.run_until(secs(5));
    assert!(matches!(t.a.closed(), Some(AssocClosed::PeerAborted { .. })), "{:?}", t.a.closed());
    assert_eq!(t.sent(ABORT).by(t.z.node()).count(), 1, "RFC 9260 §8.4, point 8");
}

#[test]
fn an_association_lost_by_the_server_is_rebuilt() {
    let mut t = Pair::two_paths("cmt").set("send_buffer", "128 KiB").connect();
    t.a.reconnect_when_lost(true);
    t.a.send_file(2_000_000);
    t.run_until(millis(900));
    t.z.kill_and_restart();
    t.run_to_end(secs(60));
    assert_eq!((t.a.epoch(), t.z.epoch()), (1, 1));
    assert!(t.has_delivered_all());
    assert!(
        t.z.received_bytes() > 0 && t.z.received_bytes() < 2_000_000,
        "the rest was lost before"
    );
}

fn assert_shut_down(t: &Pair) {
    for host in [&t.a, &t.z] {
        assert_eq!(host.closed(), Some(&AssocClosed::Shutdown), "RFC 9260 §9.2");
    }
    assert_eq!(t.net.next_event(), None, "no timer is left");
}

#[test]
fn shutdown_delivers_what_both_sides_sent_before() {
    let mut t = Pair::two_paths("cmt").loss(0.05).connect();
    t.a.send_file(500_000);
    t.z.send_file(200_000);
    t.run_for(Duration::from_millis(500));
    t.a.shutdown();
    t.run_to_end(secs(120));
    assert_eq!((t.z.received_bytes(), t.a.received_bytes()), (500_000, 200_000));
    t.run_until(secs(200));
    assert_shut_down(&t);
}

#[test]
fn the_side_that_was_called_may_end_it() {
    let mut t = Pair::two_paths("cmt").connect();
    t.z.shutdown();
    t.run_until(secs(20));
    assert_shut_down(&t);
}

#[test]
fn both_sides_may_end_it_at_once() {
    for loss in [0.0, 0.3] {
        let mut t = Pair::two_paths("cmt").connect();
        t.net.path(0).set_loss(loss);
        t.net.path(1).set_loss(loss);
        t.a.shutdown();
        t.z.shutdown();
        t.run_until(secs(300));
        assert_shut_down(&t);
    }
}

/// Path 1 was never verified, but may carry data under the rules of 2006, and the primary has
/// failed. All answers to SHUTDOWN went to path 1.
#[test]
fn a_shutdown_is_answered_on_a_path_that_works() {
    let paths = Pair::paths("cmt", vec![PathSpec::new(); 3]).profile("2006");
    let mut t = paths.set("verify_all_paths_first", "true").start();
    t.net.path(1).cut();
    let states = |t: &Pair| t.a.paths().iter().map(|p| p.state).collect::<Vec<_>>();
    let are_verified = |t: &Pair| states(t) == [Active, Unconfirmed, Active];
    assert!(t.run_until_true(secs(60), are_verified), "{:?}", states(&t));
    t.net.path(0).cut();
    t.a.send_file(100_000);
    let has_failed = |t: &Pair| states(t)[0] == Inactive && t.a.has_been_acked_all();
    assert!(t.run_until_true(secs(600), has_failed), "{:?}", states(&t));
    assert_eq!(states(&t), [Inactive, Unconfirmed, Active]);
    t.z.shutdown();
    t.run_for(Duration::from_secs(300));
    assert_shut_down(&t);
    let answers = || t.sent(SHUTDOWN_ACK).by(t.a.node());
    assert_eq!((answers().count(), answers().on(PathId(2)).count()), (1, 1), "RFC 9260 §6.4");
}

#[test]
fn an_abort_reaches_the_peer_with_its_reason() {
    let mut t = Pair::one_path("sctp").connect();
    t.a.send_file(1_000_000);
    t.run_for(Duration::from_millis(300));
    t.a.abort("enough");
    t.run_until(secs(10));
    assert_eq!(t.a.closed(), Some(&AssocClosed::Aborted));
    let peer_aborted = AssocClosed::PeerAborted { cause: 12, reason: b"enough".to_vec() };
    assert_eq!(t.z.closed(), Some(&peer_aborted), "RFC 9260 §3.3.10.12");
    assert_eq!(t.net.next_event(), None, "no timer is left");
}

#[test]
fn an_association_left_with_an_unverified_path_learns_that_its_peer_is_gone() {
    let mut t = Pair::two_paths("cmt").start();
    t.net.path(1).cut();
    t.run_until(secs(1));
    let now = t.net.now();
    t.a.command(|assoc| assoc.remove_path(now, PathId(0)));
    t.z.kill_and_restart();
    t.run_until(secs(2));
    t.net.path(1).restore();
    t.a.send_file(10_000);
    t.run_until(secs(900));
    assert!(t.a.closed().is_some(), "RFC 9260 §8.4, point 8: {:?}", t.a.paths());
}
