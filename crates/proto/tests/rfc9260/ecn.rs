//! Explicit congestion notification (RFC 4960, appendix A). `docs/ecn.md` names the test for each
//! rule.

use manypath_proto::testing::*;
use manypath_wire::{Init, Parameter};

use super::common::last_init;

const CAPABLE: Parameter = Parameter::EcnCapable;

fn on(setup: Setup) -> Setup {
    setup.set("ecn", "true")
}

/// A client whose peer has the extension, too.
fn client() -> Script {
    let mut t = on(Setup::client()).start();
    t.connect_to(init_ack().param(CAPABLE));
    t.take_sent();
    t
}

/// A server whose peer has it; the next TSN of the peer is 1 more than its first.
fn server() -> Script {
    let mut t = on(Setup::server()).start();
    t.accept(init().param(CAPABLE));
    t.take_sent();
    t
}

/// A client with two paths that sends without end.
fn over_two_paths() -> Script {
    let mut t = on(Setup::client()).preset("cmt").paths(2).start();
    t.connect_to(init_ack().param(CAPABLE));
    t.answer_heartbeats();
    t.take_sent();
    t.send_packets(40);
    t
}

/// A client whose window has grown and is used up, and the TSNs that are acknowledged.
fn grown() -> (Script, u32) {
    let mut t = client();
    t.send_packets(200);
    for acked in 1..=20 {
        t.peer(sack(acked));
    }
    t.take_sent();
    (t, 20)
}

fn is_declared(init: &Init) -> bool {
    init.params.iter().any(|p| p == Ok(CAPABLE))
}

fn echoes(packets: &[String]) -> Vec<&str> {
    let chunks = packets.iter().flat_map(|packet| packet.split(", "));
    let words = chunks.filter_map(|chunk| chunk.find("ECNE").map(|at| &chunk[at..]));
    words.collect()
}

#[test]
fn an_end_declares_it_only_if_it_is_on() {
    for set in ["true", "false"] {
        let mut t = Setup::client().set("ecn", set).start();
        t.connect();
        assert_eq!(is_declared(&t.expect_init()), set == "true");
        let mut t = Setup::server().set("ecn", set).start();
        t.peer(init());
        t.expect_init_ack();
        assert_eq!(is_declared(&last_init(&t)), set == "true");
    }
}

#[test]
fn an_init_ack_without_room_for_addresses_still_declares_it() {
    let mut t = on(Setup::server()).paths(8).set("advertise_addresses", "true").start();
    t.peer(init().no_params());
    t.expect_init_ack();
    assert!(is_declared(&last_init(&t)));
}

#[test]
fn both_ends_use_it_if_both_declared_it() {
    assert!(client().assoc().is_ecn_capable() && server().assoc().is_ecn_capable());
    assert!(!on(Setup::client()).established().assoc().is_ecn_capable(), "the peer has none");
    let mut t = Setup::client().start();
    t.connect_to(init_ack().param(CAPABLE));
    assert!(!t.assoc().is_ecn_capable(), "it is off here");
}

#[test]
fn packets_with_data_may_be_marked_and_no_others() {
    let mut t = client();
    t.send_packets(2);
    let sent = t.take_sent();
    assert!(sent.len() == 2 && sent.iter().all(|packet| packet.is_ect), "RFC 3168 §6.1.1");
    t.peer_at_once([data(1), data(2)]);
    let sent = t.take_sent();
    assert!(sent.len() == 1 && !sent[0].is_ect, "a SACK alone");
    let mut t = on(Setup::client()).established();
    t.take_sent();
    t.send_packets(1);
    assert!(!t.take_sent()[0].is_ect, "the peer would not echo marks");
}

#[test]
fn a_path_on_which_no_packet_that_may_be_marked_arrives_gets_others() {
    let mut t = client();
    t.send_packets(1);
    assert!(t.take_sent()[0].is_ect);
    t.run_to_timer();
    assert!(!t.take_sent()[0].is_ect, "a firewall may drop them");
    let mut t = client();
    t.send_packets(1);
    t.peer(sack(1));
    t.send_packets(1);
    t.take_sent();
    t.run_to_timer();
    assert!(t.take_sent()[0].is_ect, "they pass; something else is wrong");
}

#[test]
fn a_mark_is_echoed_at_once_and_with_every_sack_until_it_is_answered() {
    let mut t = client();
    t.peer_marked(1, data(1));
    t.expect("ECNE 1, SACK 1");
    t.peer_at_once([data(2), data(3)]);
    t.expect("ECNE 1, SACK 3");
    t.peer([cwr(1), data(4)]);
    t.peer(data(5));
    t.expect("SACK 5");
}

#[test]
fn a_later_mark_of_the_path_replaces_the_echo() {
    let mut t = client();
    t.peer_marked(1, data(1));
    t.peer_marked(1, data(2));
    t.peer_marked(1, data(3));
    let sent = t.all_sent();
    assert_eq!(echoes(&sent), ["ECNE 1", "ECNE 3"], "{sent:?}");
    t.peer([cwr(1), data(4)]);
    t.peer(data(5));
    t.expect("ECNE 3, SACK 5");
    t.peer([cwr(3), data(6)]);
    t.peer(data(7));
    t.expect("SACK 7");
}

#[test]
fn each_path_with_marks_has_an_echo_of_its_own() {
    let mut t = on(Setup::server()).preset("cmt").paths(2).start();
    t.accept(init().param(CAPABLE));
    t.answer_heartbeats();
    t.take_sent();
    t.peer_marked(1, data(1));
    t.peer_marked(2, data(2));
    let sent = t.all_sent();
    assert_eq!(echoes(&sent), ["ECNE 1", "ECNE 1", "ECNE 2"], "{sent:?}");
}

#[test]
fn marks_of_packets_without_data_or_without_agreement_mean_nothing() {
    let mut t = client();
    t.peer_marked(1, heartbeat(b"x"));
    t.expect("HEARTBEAT ACK");
    let mut t = on(Setup::client()).established();
    t.peer_marked(1, data(1));
    t.peer(data(2));
    assert!(echoes(&t.all_sent()).is_empty());
    assert_eq!(t.assoc().stats().ecn_marks_received, 0);
}

#[test]
fn an_echo_halves_the_window_once_for_all_that_is_in_flight() {
    let (mut t, acked) = grown();
    let before = t.path(1).cwnd;
    t.peer([ecne(acked + 1), sack(acked + 2)]);
    assert_eq!(t.path(1).cwnd, before / 2, "as for a loss (RFC 9260 §7.2.3)");
    assert_eq!(t.path(1).counters.ecn_cuts, 1);
    t.peer([ecne(acked + 3), sack(acked + 3)]);
    assert_eq!(t.path(1).counters.ecn_cuts, 1, "once a window (RFC 3168 §6.1.2)");
    assert_eq!(t.path(1).counters.retransmissions, 0, "nothing was lost");
}

#[test]
fn an_echo_behind_its_sack_cuts_where_there_is_one_path() {
    let (mut t, acked) = grown();
    let before = t.path(1).cwnd;
    t.peer([sack(acked + 2), ecne(acked + 1)]);
    assert_eq!(t.path(1).counters.ecn_cuts, 1);
    assert!(t.path(1).cwnd < before);
}

#[test]
fn a_mark_never_makes_the_window_larger() {
    let mut t = client();
    t.send_packets(20);
    let before = t.path(1).cwnd;
    t.peer(ecne(1));
    assert_eq!(t.path(1).cwnd, before, "half of it is below the least ssthresh, which is more");
    assert_eq!(t.path(1).counters.ecn_cuts, 1);
}

#[test]
fn a_loss_of_the_same_flight_cuts_no_second_time() {
    let (mut t, acked) = grown();
    t.peer([ecne(acked + 2), sack(acked).gap(acked + 2, acked + 2)]);
    let after = t.path(1).cwnd;
    for last in 3..=5 {
        t.peer(sack(acked).gap(acked + 2, acked + last));
    }
    assert_eq!(t.path(1).counters.fast_retransmits, 1);
    assert_eq!(t.path(1).cwnd, after, "RFC 3168 §6.1.2");
}

#[test]
fn an_echo_in_fast_recovery_cuts_no_second_time() {
    let (mut t, acked) = grown();
    for last in 2..=4 {
        t.peer(sack(acked).gap(acked + 2, acked + last));
    }
    let after = t.path(1).cwnd;
    assert_eq!(t.path(1).counters.fast_retransmits, 1);
    t.peer([ecne(acked + 4), sack(acked).gap(acked + 2, acked + 4)]);
    assert_eq!((t.path(1).cwnd, t.path(1).counters.ecn_cuts), (after, 0));
}

#[test]
fn every_echo_is_answered_before_the_next_data() {
    let mut t = client();
    t.send_messages(200, 200);
    t.all_sent();
    t.peer([ecne(1), sack(4)]);
    let sent = t.all_sent();
    assert!(sent[0].starts_with("CWR 1, DATA "), "{sent:?}");
    assert!(!sent[1..].iter().any(|packet| packet.contains("CWR")), "once: {sent:?}");
    t.peer([ecne(1), sack(8)]);
    let sent = t.all_sent();
    assert!(sent[0].starts_with("CWR 1, DATA "), "the answer was lost: {sent:?}");
}

#[test]
fn an_answer_that_leaves_no_room_for_a_chunk_travels_alone() {
    let mut t = client();
    t.send_packets(2);
    t.all_sent();
    t.peer(ecne(2));
    t.run_to_timer();
    let sent = t.all_sent();
    assert_eq!(sent[0], "CWR 2", "{sent:?}");
    assert!(sent[1].starts_with("DATA 1"), "and what is lost follows: {sent:?}");
}

#[test]
fn an_echo_concerns_the_path_on_which_its_tsn_was_sent() {
    let mut t = over_two_paths();
    let base = t.view().1;
    let second = t.pairs[1].1;
    while t.next_sent().is_some() && t.last().remote != second {}
    let data = t.last_data();
    let marked = data.first().expect("both paths carry data").tsn.distance_from(base);
    t.all_sent();
    t.peer(ecne(marked));
    assert_eq!((t.path(1).counters.ecn_cuts, t.path(2).counters.ecn_cuts), (0, 1));
}

#[test]
fn an_echo_repeated_on_another_path_cuts_nothing_there() {
    let mut t = over_two_paths();
    t.all_sent();
    t.peer([ecne(1), sack(4)]);
    let cuts = |t: &Script| [1, 2].map(|path| t.path(path).counters.ecn_cuts);
    let before = cuts(&t);
    assert_eq!(before.iter().sum::<u64>(), 1);
    for path in [1, 2] {
        t.peer_on(path, [ecne(1), sack(4)]);
    }
    assert_eq!(cuts(&t), before, "1 is acknowledged, and has been acted on");
}

#[test]
fn an_echo_of_what_was_never_sent_means_nothing() {
    let mut t = client();
    t.send_packets(3);
    t.all_sent();
    let before = t.path(1).cwnd;
    t.peer([ecne(1000), sack(1)]);
    assert_eq!((t.path(1).cwnd, t.path(1).counters.ecn_cuts), (before, 0));
    assert!(!t.all_sent().iter().any(|packet| packet.contains("CWR")));
}

#[test]
fn without_agreement_both_chunks_end_their_packet() {
    for chunk in [ecne(1), cwr(1)] {
        let mut t = on(Setup::client()).established();
        t.peer([data(1), chunk, data(2)]);
        t.run_ms(300);
        assert_eq!(t.all_sent(), ["SACK 1"], "RFC 9260 §3.2, types that begin with 00");
    }
}

#[test]
fn a_restarted_peer_is_treated_as_it_declares_itself_then() {
    let mut t = server();
    assert!(t.assoc().is_ecn_capable());
    t.peer(init().tag(900).tsn(5000)); // without the parameter
    let cookie = t.expect_init_ack();
    t.peer(cookie_echo(&cookie));
    t.expect("COOKIE ACK");
    assert!(!t.assoc().is_ecn_capable());
}
