//! Retransmission policies of a primary and its alternates, and their extensions (retransmission
//! policies paper): AllRtxAlt, AllRtxSame, FrSameRtoAlt; HAR and MFR.

use std::time::Duration;

use manypath_proto::PathState;
use manypath_proto::policy::recovery::Rule;
use manypath_proto::testing::*;

use super::common::{PMDCS, grow};

/// Verified paths, the first of which carries new data, with a window for everything.
fn paths(count: u8, preset: &str) -> Setup {
    let setup = Setup::client().paths(count).preset(preset).set("max_burst", "0");
    setup.set("initial_cwnd", "20 pmdcs")
}

/// Sends `packets` packets, of which 1 is lost. Missing reports of 2 to 4 reveal the loss.
fn lose_first(setup: Setup, packets: usize) -> Script {
    let mut t = setup.established();
    t.send_packets(packets);
    assert_eq!(t.all_sent().len(), packets);
    for last in 2..=4 {
        t.run_ms(10);
        t.peer(sack(0).gap(2, last));
    }
    t
}

/// Runs until T3-rtx of a path (counted from 1) expires. What was sent meanwhile, without
/// heartbeats.
fn until_timeout(t: &mut Script, path: u8) -> Vec<String> {
    let before = t.path(path).counters.t3_expirations;
    while t.path(path).counters.t3_expirations == before {
        t.run_to_timer();
    }
    let sent = t.all_sent();
    sent.into_iter().filter(|words| !words.ends_with("HEARTBEAT")).collect()
}

#[test]
fn all_rtx_alt_sends_every_retransmission_to_the_next_path() {
    let mut t = lose_first(paths(3, "all-rtx-alt"), 4);
    t.expect("P2 DATA 1");
    // Round-robin from the path of the last transmission, as in the paper's three-path section.
    assert_eq!(until_timeout(&mut t, 2), ["P3 DATA 1"]);
    assert_eq!(until_timeout(&mut t, 3), ["P1 DATA 1"]);
    t.peer(sack(4));
    t.send_packets(1);
    t.expect("P1 DATA 5"); // new data stays on the primary
}

#[test]
fn all_rtx_same_never_leaves_a_path_that_works() {
    let mut t = lose_first(paths(2, "all-rtx-same"), 4);
    t.expect("P1 DATA 1");
    assert_eq!(until_timeout(&mut t, 1), ["P1 DATA 1"]);
}

#[test]
fn fr_same_rto_alt_leaves_the_path_after_a_timeout_only() {
    let mut t = lose_first(paths(2, "fr-same-rto-alt"), 4);
    t.expect("P1 DATA 1");
    assert_eq!(until_timeout(&mut t, 1), ["P2 DATA 1"], "fast retransmitted before, now timed out");
    assert_eq!(until_timeout(&mut t, 2), ["P1 DATA 1"]);
}

#[test]
fn the_only_path_takes_its_own_retransmissions() {
    for preset in ["all-rtx-alt", "fr-same-rto-alt"] {
        let mut t = lose_first(paths(1, preset), 4);
        t.expect("DATA 1");
        assert_eq!(until_timeout(&mut t, 1), ["DATA 1"], "{preset}");
    }
}

#[test]
fn retransmissions_obey_the_window_of_the_alternate() {
    let mut t = paths(2, "all-rtx-alt").set("initial_cwnd", "2 pmdcs").established();
    grow(&mut t, 6);
    t.send_packets(5);
    assert_eq!(t.all_sent().len(), 5, "the primary has grown");
    assert_eq!(until_timeout(&mut t, 1), ["P2 DATA 7", "P2 DATA 8"], "two fill the alternate");
    assert_eq!(t.path(1).flight_size, 0, "the rest is marked, and waits for that window");
    t.run_ms(10);
    t.peer_on(2, sack(8));
    assert_eq!(t.all_sent(), ["P2 DATA 9", "P2 DATA 10", "P2 DATA 11"], "it has grown by one");
}

#[test]
fn har_asks_for_the_rtt_at_once_after_a_timeout() {
    let mut t = paths(2, "all-rtx-alt").set("har", "true").established();
    t.send(10);
    t.expect("P1 DATA 1");
    let rto = t.path(1).rto;
    t.run(rto);
    let mut sent = t.all_sent();
    sent.sort();
    assert_eq!(sent, ["P1 HEARTBEAT", "P2 DATA 1"], "section 4.1: beside the retransmission");
    assert_eq!(t.path(1).rto, 2 * rto, "backed off");
}

#[test]
fn the_answer_to_har_ends_the_back_off() {
    let mut t = paths(2, "all-rtx-alt").set("har", "true").established();
    t.send(10);
    let rto = t.path(1).rto;
    t.run(rto);
    while t.next_sent().is_some_and(|words| words != "P1 HEARTBEAT") {}
    let info = t.last_heartbeat();
    t.run_ms(50);
    t.peer(heartbeat_ack(&info));
    assert!(t.path(1).rto <= Duration::from_secs(1), "{:?}", t.path(1).rto);
    assert_eq!(t.path(1).error_count, 0, "it works");
}

#[test]
fn without_another_path_har_sends_nothing_more() {
    let mut t = paths(1, "all-rtx-alt").set("har", "true").established();
    t.send(10);
    t.expect("DATA 1");
    t.run(t.path(1).rto);
    assert_eq!(t.all_sent(), ["DATA 1"], "the retransmission itself goes there");
}

/// Loses 1 and its fast retransmission; 5, under way before that, and 6 to 9, sent after it,
/// arrive.
fn lose_again(preset: &str, mfr: &str) -> Script {
    let mut t = lose_first(paths(2, preset).set("mfr", mfr), 5);
    t.expect("P1 DATA 1");
    t.peer(sack(0).gap(2, 5));
    t.send_packets(4);
    t.all_sent();
    t
}

#[test]
fn mfr_counts_reports_of_what_was_sent_after_the_fast_retransmission() {
    for preset in ["all-rtx-same", "fr-same-rto-alt", "sctp"] {
        let mut t = lose_again(preset, "true");
        for last in 6..=7 {
            t.run_ms(10);
            t.peer(sack(0).gap(2, last));
        }
        t.expect_nothing(); // the report of 5 does not count: section 4.3
        t.run_ms(10);
        t.peer(sack(0).gap(2, 8));
        t.expect("P1 DATA 1");
        // And a third time, with chunks sent later still.
        t.send_packets(3);
        t.all_sent();
        for last in [9, 10, 11] {
            t.peer(sack(0).gap(2, last));
        }
        t.expect_nothing(); // 9 was under way
        t.peer(sack(0).gap(2, 12));
        t.expect("P1 DATA 1");
    }
}

#[test]
fn without_mfr_a_lost_retransmission_waits_for_its_timeout() {
    let mut t = lose_again("all-rtx-same", "false");
    for last in 6..=9 {
        t.peer(sack(0).gap(2, last));
    }
    t.expect_nothing(); // RFC 9260 §7.2.4
    assert_eq!(until_timeout(&mut t, 1), ["P1 DATA 1"]);
}

#[test]
fn a_path_with_retransmissions_only_is_idle() {
    // The alternate of AllRtxAlt carries retransmissions all the time; only heartbeats measure it.
    let mut t = paths(2, "all-rtx-alt").established();
    let mut heartbeats = 0;
    let mut next = 1;
    for _ in 0..60 {
        t.send_packets(5);
        t.all_sent();
        for last in 1..=4 {
            t.run_ms(10);
            t.peer(sack(next - 1).gap(next + 1, next + last));
        }
        assert!(t.all_sent().contains(&format!("P2 DATA {next}")));
        next += 5;
        t.run_ms(10);
        t.peer_on(2, sack(next - 1));
        let before = [1, 2].map(|path| t.path(path).counters.heartbeats_sent);
        t.run_ms(950);
        t.answer_heartbeats();
        t.all_sent();
        let after = [1, 2].map(|path| t.path(path).counters.heartbeats_sent);
        assert_eq!(after[0], before[0], "it carries new data");
        heartbeats += after[1] - before[1];
    }
    assert!((1..=2).contains(&heartbeats), "RFC 9260 §8.3: after 30 s, not {heartbeats} times");
}

#[test]
fn new_data_fails_over_round_robin_and_returns_with_the_primary() {
    let mut t = paths(3, "all-rtx-same").set("path_max_retrans", "1").established();
    t.send_packets(1);
    t.expect("P1 DATA 1");
    until_timeout(&mut t, 1);
    assert_eq!(t.path_state(1), PathState::Active);
    // The second timeout is one more than Path.Max.Retrans.
    assert_eq!(until_timeout(&mut t, 1), ["P2 DATA 1"], "section 6.1");
    assert_eq!(t.path_state(1), PathState::Inactive);
    t.peer_on(2, sack(1));
    t.send_packets(1);
    t.expect("P2 DATA 2");
    while t.next_sent().as_deref() != Some("P1 HEARTBEAT") {
        t.run_to_timer();
    }
    let info = t.last_heartbeat();
    t.peer(heartbeat_ack(&info));
    assert_eq!(t.path_state(1), PathState::Active);
    t.all_sent();
    t.send_packets(1);
    t.expect("P1 DATA 3");
}

// ---- What ns-2's agents of one path do differently ----

/// With these of the rules of ns-2's agents, and no others.
fn only(setup: Setup, rules: &[&str]) -> Setup {
    let others = Rule::ALL.iter().map(|rule| rule.name()).filter(|name| !rules.contains(name));
    let others: Vec<_> = others.collect();
    setup.set("recovery", "ns2").set("recovery_without", &others.join(", "))
}

/// Five packets in flight on the primary, all lost. What is sent at their timeout.
fn all_lost(setup: Setup) -> (Script, Vec<String>) {
    let mut t = setup.established();
    t.send_packets(5);
    assert_eq!(t.all_sent().len(), 5);
    let sent = until_timeout(&mut t, 1);
    (t, sent)
}

#[test]
fn retransmissions_may_wait_for_the_next_sack() {
    let (_, at_once) = all_lost(paths(2, "all-rtx-alt"));
    assert_eq!(at_once.len(), 5, "RFC 9260 §6.3.3 (E3): as soon as cwnd of the alternate allows");
    let (mut t, one) = all_lost(only(paths(2, "all-rtx-alt"), &["rtx_waits_for_sack"]));
    assert_eq!(one, ["P2 DATA 1"]);
    t.run_ms(10);
    t.peer_on(2, sack(1));
    let rest: Vec<_> = (2..=5).map(|tsn| format!("P2 DATA {tsn}")).collect();
    assert_eq!(t.all_sent(), rest);
}

#[test]
fn new_data_may_wait_until_nothing_waits_for_retransmission() {
    let waits = "rtx_waits_for_sack";
    for (rules, expected) in
        [(&[waits][..], &["P1 DATA 6"][..]), (&[waits, "new_data_waits_for_rtx"], &[])]
    {
        let (mut t, _) = all_lost(only(paths(2, "all-rtx-alt"), rules));
        t.send_packets(1);
        assert_eq!(t.all_sent(), expected, "RFC 9260 §6.1 (C): the primary has room");
    }
}

#[test]
fn a_timeout_ends_fast_recovery_or_not() {
    for (rules, grows) in [(&[][..], true), (&["recovery_outlasts_timeout"], false)] {
        let setup = only(paths(1, "all-rtx-same"), rules);
        let mut t = lose_first(setup, 8);
        t.expect("DATA 1");
        until_timeout(&mut t, 1);
        assert_eq!(t.path(1).cwnd, t.path(1).ssthresh.min(t.path(1).cwnd), "one packet");
        let before = t.path(1).cwnd;
        t.run_ms(10);
        t.peer(sack(4)); // 5 to 8 were outstanding when recovery began
        assert_eq!(t.path(1).cwnd > before, grows, "{rules:?}");
    }
}

#[test]
fn a_timeout_may_have_an_ssthresh_floor_of_its_own() {
    let ssthresh = |rules: &[&str], har: &str| {
        let setup = paths(2, "all-rtx-alt").set("initial_cwnd", "5 pmdcs").set("har", har);
        all_lost(only(setup, rules)).0.path(1).ssthresh
    };
    assert_eq!(ssthresh(&[], "true"), 4 * PMDCS, "RFC 9260 §7.2.3");
    assert_eq!(ssthresh(&["har_lowers_floor"], "true"), 5 * PMDCS / 2);
    assert_eq!(ssthresh(&["har_lowers_floor"], "false"), 4 * PMDCS, "not without HAR");
}

#[test]
fn a_sack_without_news_may_count_as_a_missing_report() {
    for (rules, expected) in [(&[][..], &[][..]), (&["reports_by_highest_so_far"], &["DATA 1"])] {
        let mut t = only(paths(1, "all-rtx-same"), rules).established();
        t.send_packets(5);
        t.all_sent();
        t.peer(sack(0).gap(2, 2));
        t.peer(sack(0).gap(2, 3));
        t.peer(sack(0).gap(2, 3)); // nothing that was not known
        assert_eq!(t.all_sent(), expected, "RFC 9260 §7.2.4 counts what is newly acknowledged");
    }
}

#[test]
fn the_first_path_stays_the_primary_if_the_handshake_does_not_move_it() {
    for (moves, path) in [("true", "P2"), ("false", "P1")] {
        let mut t = paths(2, "all-rtx-same").set("handshake_moves_primary", moves).start();
        t.connect();
        t.expect_init();
        t.run_ms(1000);
        t.expect_init();
        t.peer_on(if moves == "true" { 2 } else { 1 }, init_ack());
        t.expect(&format!("{path} COOKIE ECHO"));
    }
}

#[test]
fn the_heartbeat_interval_may_count_from_sending_and_a_repeated_one_take_the_place_of_the_next() {
    for (rules, seconds) in [(&[][..], 30..=34), (&["hb_interval_from_sending"], 58..=66)] {
        let mut t = only(paths(2, "all-rtx-alt"), rules).established();
        let next = |t: &mut Script| {
            while t.next_sent().as_deref() != Some("P2 HEARTBEAT") {
                t.run_to_timer();
            }
            t.now()
        };
        let first = next(&mut t); // lost
        next(&mut t);
        let info = t.last_heartbeat();
        t.peer_on(2, heartbeat_ack(&info));
        let after = (next(&mut t) - first).as_secs();
        assert!(seconds.contains(&after), "RFC 9260 §8.3; {rules:?}: {after} s");
    }
}

#[test]
fn a_path_that_failed_is_probed_after_the_heartbeat_interval_or_at_once_and_each_rto() {
    for (rules, seconds) in [(&[][..], [31, 63, 97]), (&["failed_paths_probed_at_once"], [0, 2, 6])]
    {
        let setup = paths(2, "all-rtx-alt").set("path_max_retrans", "0");
        let mut t = only(setup, rules).established();
        t.send_packets(1);
        t.expect("P1 DATA 1");
        while t.path_state(1) != PathState::Inactive {
            t.run_to_timer();
        }
        let failed = t.now();
        let mut probed = Vec::new();
        while probed.len() < 3 {
            match t.next_sent().as_deref() {
                Some("P1 HEARTBEAT") => probed.push((t.now() - failed).as_secs()),
                Some("P2 DATA 1") => t.peer_on(2, sack(1)),
                Some(_) => {}
                None => _ = t.run_to_timer(),
            }
        }
        assert_eq!(probed, seconds, "RFC 9260 §8.3; {rules:?}");
    }
}
