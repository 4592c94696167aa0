//! Concurrent multipath transfer (CMT paper): SFR, CUC, CUCv2, DAC, retransmission policies.

use manypath_proto::PathState;
use manypath_proto::testing::*;

use super::common::{PMDCS, grow};

/// Two verified paths with cwnd for 20 packets each and no limit on bursts.
fn cmt() -> Setup {
    Setup::client()
        .paths(2)
        .preset("cmt")
        .set("max_burst", "0")
        .set("initial_cwnd", "4 pmdcs")
        .set("rtx_policy", "same")
}

/// Sends eight packets: 1 to 4 on path 1, 5 to 8 on path 2.
fn eight(setup: Setup) -> Script {
    let mut t = setup.established();
    t.send_packets(8);
    let expected: Vec<_> =
        (1..=8).map(|n| format!("P{} DATA {n}", if n <= 4 { 1 } else { 2 })).collect();
    assert_eq!(
        t.all_sent(),
        expected,
        "section II: a window is filled before the next path is used"
    );
    t
}

/// Loses the first and the last packet of a flight. The last is found missing by what is sent after
/// the cut for the first, in the SACK that leaves nothing else of the flight unknown. Returns cwnd
/// after either.
fn cwnd_after_two_losses(setup: Setup) -> [usize; 2] {
    let mut t = setup.set("max_burst", "0").established();
    let base = grow(&mut t, 30);
    t.send_packets(12);
    t.all_sent();
    for last in [5, 8, 11] {
        t.run_ms(1);
        t.peer(sack(base).gap(base + 2, base + last));
    }
    let first = t.path(1).cwnd;
    t.send_packets(4);
    assert_eq!(t.all_sent(), ["DATA 31", "DATA 43", "DATA 44", "DATA 45", "DATA 46"]);
    for last in 13..=15 {
        t.run_ms(1);
        t.peer(sack(base + 11).gap(base + 13, base + last));
    }
    assert_eq!(t.path(1).counters.fast_retransmits, 2);
    [first, t.path(1).cwnd]
}

#[test]
fn a_flight_that_loses_its_first_and_last_packet_cuts_cwnd_once() {
    let cmt = |once| Setup::client().preset("cmt").set("cut_once_per_flight", once);
    for setup in [Setup::client(), cmt("true")] {
        let [first, second] = cwnd_after_two_losses(setup);
        assert_eq!(second, first, "RFC 9260 §7.2.4 (6): the exit point is not acknowledged");
    }
    let [first, second] = cwnd_after_two_losses(cmt("false"));
    assert!(second < first, "the SACK that finds it ends the recovery of the path");
}

/// Effect of acks of one path on the missing reports of another: with path 1 slow and path 2 fast,
/// SACKs report 5, 6, 7 and 8 one by one while 1 to 4 are still under way.
fn reordered(setup: Setup) -> Vec<String> {
    let mut t = eight(setup);
    for last in 5..=8 {
        t.run_ms(1);
        t.peer_on(2, sack(0).gap(5, last));
    }
    t.all_sent()
}

#[test]
fn sfr_takes_no_reordering_between_paths_for_loss() {
    assert_eq!(reordered(cmt()), [""; 0], "section III-A");
    let spurious = reordered(cmt().set("sfr", "false").set("dac", "false").set("cuc", "off"));
    assert!(spurious.contains(&"P1 DATA 1".to_owned()), "section III: {spurious:?}");
}

#[test]
fn sfr_finds_a_loss_by_what_was_sent_later_on_the_same_path() {
    let mut t = eight(cmt());
    for last in 2..=3 {
        t.run_ms(1);
        t.peer(sack(0).gap(2, last));
    }
    t.peer_on(2, sack(0).gap(2, 3).gap(5, 8)); // the other path: no report
    t.expect_nothing();
    t.peer(sack(0).gap(2, 8));
    t.expect("P1 DATA 1");
    assert_eq!(t.path(2).counters.fast_retransmits, 0);
    assert_eq!(t.path(2).cwnd, 5 * PMDCS, "the other path only grew");
}

#[test]
fn sfr_is_right_under_cycling_changeover() {
    // Data goes to path 1, to path 2, and to path 1 again.
    let mut t = Setup::client()
        .paths(2)
        .preset("cmt")
        .set("scheduler", "primary")
        .set("max_burst", "0")
        .set("initial_cwnd", "20 pmdcs")
        .established();
    t.send_packets(3);
    t.with(|a, now| a.set_primary(now, manypath_proto::PathId(1)));
    t.send_packets(3);
    t.with(|a, now| a.set_primary(now, manypath_proto::PathId(0)));
    t.send_packets(3);
    let paths: String = t.all_sent().iter().map(|words| &words[1..2]).collect();
    assert_eq!(paths, "111222111");
    // Path 2 is slow, path 1 loses nothing: 1-3 and 7-9 arrive.
    for last in 1..=3 {
        t.peer(sack(last));
    }
    for last in 7..=9 {
        t.peer(sack(3).gap(7, last));
    }
    t.expect_nothing(); // section III-A: 4-6 are missing on path 2 only
    // Then 4 is found lost by 5 and 6, with one more on its path.
    t.peer_on(2, sack(3).gap(5, 5).gap(7, 9));
    t.peer_on(2, sack(3).gap(5, 9));
    t.expect_nothing();
}

/// Loses 1 and its fast retransmission, while 9 to 11, sent after that on the same path, arrive.
/// What was sent then.
fn lost_twice(mfr: &str) -> Vec<String> {
    let mut t = eight(cmt().set("mfr", mfr));
    for last in 2..=4 {
        t.peer(sack(0).gap(2, last));
    }
    t.expect("P1 DATA 1");
    t.send_packets(3);
    assert_eq!(t.all_sent(), ["P1 DATA 9", "P1 DATA 10", "P1 DATA 11"]);
    for last in 9..=11 {
        t.run_ms(1);
        t.peer(sack(0).gap(2, 4).gap(9, last));
    }
    t.all_sent()
}

#[test]
fn mfr_finds_a_lost_retransmission_by_what_was_sent_after_it() {
    assert_eq!(lost_twice("true"), ["P1 DATA 1"]);
    assert_eq!(lost_twice("false"), [""; 0], "RFC 9260 §7.2.4: only T3-rtx finds it");
}

#[test]
fn t3_rtx_of_a_path_is_left_to_the_next_chunk_if_the_first_is_lost_and_goes_elsewhere() {
    let mut t = Setup::client()
        .paths(2)
        .preset("cmt")
        .set("scheduler", "primary")
        .set("rtx_policy", "ssthresh")
        .set("max_burst", "0")
        .set("initial_cwnd", "8 pmdcs")
        .established();
    t.send_packets(4);
    t.run_ms(600);
    t.send_packets(4);
    t.all_sent();
    for last in 2..=4 {
        t.peer(sack(0).gap(2, last));
    }
    t.expect("P2 DATA 1");
    t.run_ms(100);
    t.peer_on(2, sack(4));
    t.run_ms(800); // 1.5 s: the RTO of 1 is over, that of 5 to 8 is not
    assert_eq!(t.path(1).counters.t3_expirations, 0);
    assert_eq!(t.path_state(1), PathState::Active);
    t.run_ms(200);
    assert_eq!(t.path(1).counters.t3_expirations, 1, "nothing was heard of 5 to 8");
}

#[test]
fn dac_counts_two_reports_for_a_sack_of_two_packets_of_one_path() {
    let mut t = eight(cmt());
    t.peer(sack(0).gap(2, 3).sack_flags(0x80)); // two packets, both above 1: two reports
    t.expect_nothing();
    t.peer(sack(0).gap(2, 4)); // the third
    t.expect("P1 DATA 1"); // Fig. 4 (i)(b)
}

#[test]
fn dac_counts_one_report_for_a_mixed_sack() {
    let mut t = eight(cmt());
    t.peer(sack(0).gap(2, 2).gap(5, 5).sack_flags(0x80)); // both paths: one report, Fig. 4 (ii)
    t.peer(sack(0).gap(2, 3).gap(5, 5)); // two
    t.expect_nothing();
    t.peer(sack(0).gap(2, 5)); // three
    t.expect("P1 DATA 1");
}

#[test]
fn dac_counts_one_report_when_something_below_is_acknowledged_too() {
    let mut t = eight(cmt());
    t.peer(sack(1).gap(3, 3).sack_flags(0x80)); // 1 below and 3 above: one report for 2, Fig. 4 (i)(a)
    t.peer(sack(1).gap(3, 4)); // two
    t.expect_nothing();
}

#[test]
fn without_dac_a_sack_is_one_report_whatever_its_flags() {
    let mut t = eight(cmt().set("dac", "false"));
    t.peer(sack(0).gap(2, 3).sack_flags(0x80));
    t.peer(sack(0).gap(2, 4));
    t.expect_nothing();
}

#[test]
fn cuc_lets_a_path_grow_while_the_cumulative_ack_waits_for_another() {
    for (cuc, grows) in [("v2", true), ("v1", true), ("off", false)] {
        let mut t = eight(cmt().set("cuc", cuc));
        t.peer_on(2, sack(0).gap(5, 5));
        let grown = t.path(2).cwnd > 4 * PMDCS;
        assert_eq!(grown, grows, "section III-B: {cuc}");
        assert_eq!(t.path(1).cwnd, 4 * PMDCS);
    }
}

#[test]
fn cuc_grows_with_the_pseudo_cumack_only() {
    for cuc in ["v1", "v2"] {
        let mut t = eight(cmt().set("cuc", cuc));
        t.send_packets(8);
        t.peer_on(2, sack(0).gap(6, 6));
        assert_eq!(t.path(2).cwnd, 4 * PMDCS, "{cuc}: 5 is the earliest outstanding there");
        t.peer_on(2, sack(0).gap(5, 6));
        assert_eq!(t.path(2).cwnd, 5 * PMDCS, "{cuc}");
    }
}

#[test]
fn cucv2_grows_past_a_retransmitted_chunk_and_cuc_does_not() {
    for (cuc, grows) in [("v1", false), ("v2", true)] {
        let mut t = eight(cmt().set("cuc", cuc).set("rtx_policy", "ssthresh"));
        t.send_packets(40);
        t.peer_on(2, sack(0).gap(5, 8));
        let new = on_path_2(t.all_sent());
        assert_eq!(new[..4], [9, 10, 11, 12]);
        for last in 2..=4 {
            t.run_ms(1);
            t.peer(sack(0).gap(2, last).gap(5, 8));
        }
        assert_eq!(on_path_2(t.all_sent()), [1], "lost on path 1, retransmitted on path 2");
        // What was sent there before arrives; behind the retransmission goes new data.
        let last = new[new.len() - 1];
        t.peer_on(2, sack(0).gap(2, last));
        let newer = on_path_2(t.all_sent());
        let before = t.path(2).cwnd;
        t.peer_on(2, sack(0).gap(2, last).gap(newer[0], newer[0]));
        assert_eq!(t.path(2).cwnd > before, grows, "section III-B, CMT Fig. 8: {cuc}");
    }
}

#[test]
fn cuc_stays_at_a_chunk_that_is_sent_again_on_its_path() {
    for (cuc, grows) in [("v1", false), ("v2", true)] {
        let mut t = cmt().set("cuc", cuc).set("scheduler", "primary").established();
        // A round trip of 400 ms on path 1.
        t.send(10);
        t.expect("P1 DATA 1");
        t.run_ms(400);
        t.peer(sack(1));
        let rto = t.path(1).rto;
        t.send_packets(1);
        t.run(rto - std::time::Duration::from_millis(100));
        t.send_packets(2);
        t.run_ms(100);
        assert_eq!(t.all_sent(), ["P1 DATA 2", "P1 DATA 3", "P1 DATA 4", "P1 DATA 2"]);
        t.peer(sack(1).gap(3, 3));
        let grown = t.path(1).cwnd > PMDCS;
        assert_eq!(grown, grows, "{cuc}: 2 is the lowest of all, 3 of those sent once");
        t.peer(sack(3));
        assert!(t.path(1).cwnd > PMDCS, "{cuc}: 2 is acknowledged");
    }
}

#[test]
fn cuc_stays_where_a_chunk_was_that_is_sent_again_elsewhere() {
    for (cuc, grows) in [("v1", false), ("v2", true)] {
        let mut t = eight(cmt().set("cuc", cuc).set("rtx_policy", "ssthresh"));
        t.peer_on(2, sack(0).gap(5, 8));
        t.run_ms(1100);
        assert_eq!(on_path_2(t.all_sent()), [1, 2, 3, 4], "lost on path 1");
        t.send_packets(12);
        t.expect("P1 DATA 9");
        let before = t.path(1).cwnd;
        t.peer(sack(0).gap(5, 9));
        let grown = t.path(1).cwnd > before;
        assert_eq!(grown, grows, "section IV-C: CUC cannot track the left edge: {cuc}");
    }
}

/// The TSNs of the DATA packets that went to path 2.
fn on_path_2(sent: Vec<String>) -> Vec<u32> {
    sent.iter().filter_map(|words| words.strip_prefix("P2 DATA ")?.parse().ok()).collect()
}

#[test]
fn each_retransmission_policy_goes_its_own_way() {
    // 1 was sent on path 1 and is lost; path 2 has the larger cwnd and ssthresh.
    let path_of = |policy: &str, seed: u64| {
        let mut t = Setup::client()
            .paths(2)
            .preset("cmt")
            .set("max_burst", "0")
            .set("rtx_policy", policy)
            .set("initial_cwnd", "8 pmdcs")
            .seed(seed)
            .established();
        t.send_packets(16);
        t.all_sent();
        for last in 9..=12 {
            t.run_ms(10);
            t.peer_on(2, sack(0).gap(9, last)); // path 2 grows by four packets
        }
        t.all_sent();
        for last in 2..=4 {
            t.run_ms(10);
            t.peer(sack(0).gap(2, last).gap(9, 12));
        }
        let sent = t.all_sent();
        let rtx: Vec<_> = sent.iter().filter(|w| w.ends_with(" DATA 1")).cloned().collect();
        assert_eq!(rtx.len(), 1, "{policy}, seed {seed}: {sent:?}");
        rtx[0][1..2].parse::<usize>().expect("a path")
    };
    assert_eq!(path_of("same", 1), 1, "RTX-SAME");
    assert_eq!(path_of("cwnd", 1), 2, "RTX-CWND");
    assert_eq!(path_of("ssthresh", 1), 2, "RTX-SSTHRESH: path 1 has just halved its own");
    assert_eq!(path_of("lossrate", 1), 2, "RTX-LOSSRATE: path 1 has lost one");
    assert_eq!(path_of("csl", 1), 2, "RTX-CSL");
    let picks: std::collections::BTreeSet<_> = (0..50).map(|seed| path_of("asap", seed)).collect();
    assert_eq!(picks.len(), 2, "RTX-ASAP: either, at random");
}

#[test]
fn a_tie_between_paths_never_holds_a_retransmission_back() {
    for policy in ["asap", "ssthresh", "cwnd", "lossrate", "csl"] {
        for seed in 0..50 {
            let mut t = Setup::client()
                .paths(2)
                .preset("cmt")
                .set("rtx_policy", policy)
                .set("cuc", "off")
                .set("rtx_age_heuristic", "false")
                .seed(seed)
                .established();
            t.send(10);
            t.expect("P1 DATA 1");
            t.run_ms(1000);
            let sent = t.all_sent();
            let rtx = sent.iter().filter(|w| w.ends_with("DATA 1")).count();
            assert_eq!(rtx, 1, "{policy}, seed {seed}: {sent:?}");
        }
    }
}

#[test]
fn chunks_younger_than_one_round_trip_survive_a_timeout() {
    let marked = |heuristic: &str| {
        let setup = cmt().set("rtx_age_heuristic", heuristic).set("scheduler", "primary");
        let mut t = setup.established();
        // A round trip of 400 ms on path 1.
        t.send(10);
        t.expect("P1 DATA 1");
        t.run_ms(400);
        t.peer(sack(1));
        let rto = t.path(1).rto;
        t.send_packets(1);
        t.expect("P1 DATA 2");
        t.run(rto - std::time::Duration::from_millis(100));
        t.send_packets(1);
        t.expect("P1 DATA 3"); // 100 ms before the timeout of 2
        t.run_ms(100);
        assert_eq!(t.path(1).counters.t3_expirations, 1);
        t.path(1).flight_size
    };
    // 2 is retransmitted at once either way; 3 stays in flight if it is spared.
    assert_eq!(marked("false"), PMDCS, "all that was in flight is marked");
    assert_eq!(marked("true"), 2 * PMDCS, "section IV-C");
}

#[test]
fn a_second_expiry_for_spared_chunks_cuts_ssthresh_no_further() {
    let mut t = cmt().set("initial_cwnd", "16 pmdcs").set("scheduler", "primary").established();
    t.send(10);
    t.expect("P1 DATA 1");
    t.run_ms(400);
    t.peer(sack(1));
    let rto = t.path(1).rto;
    t.send_packets(1);
    t.run(rto - std::time::Duration::from_millis(100));
    t.send_packets(3);
    t.run_ms(100);
    assert_eq!(t.path(1).counters.t3_expirations, 1);
    let ssthresh = t.path(1).ssthresh;
    assert_eq!(ssthresh, 8 * PMDCS);
    t.peer(sack(2)); // the retransmission; those that were spared are lost
    while t.path(1).counters.t3_expirations < 2 {
        t.run_to_timer();
    }
    assert_eq!(t.path(1).ssthresh, ssthresh);
}

#[test]
fn a_forced_retransmission_that_is_not_needed_any_more_blocks_no_path() {
    let mut t = eight(cmt());
    let tag = t.tag();
    let header = manypath_wire::CommonHeader {
        source_port: PEER_PORT,
        destination_port: PORT,
        verification_tag: tag,
    };
    t.send_packets(8); // both windows are full
    t.expect_nothing();
    // 1 is found lost, and acknowledged after all, before anything could be sent.
    let (local, remote) = t.pairs[0];
    for chunk in [sack(0).gap(2, 2), sack(0).gap(2, 3), sack(0).gap(2, 4), sack(4)] {
        let payload = bytes::Bytes::from(t.packet(header, chunk));
        let datagram = manypath_proto::Datagram::new(local, remote, payload);
        t.endpoint.handle_datagram(t.now(), datagram);
    }
    t.settle();
    let sent = t.all_sent();
    assert!(sent.contains(&"P1 DATA 9".to_owned()), "{sent:?}");
}

#[test]
fn the_timer_of_each_path_follows_its_own_earliest_chunk() {
    let mut t = eight(cmt());
    let start = t.now();
    t.run_ms(900);
    t.peer_on(2, sack(0).gap(5, 5));
    let rto = t.path(2).rto;
    t.run_ms(100);
    t.expect_after_ms(start, 1000, "P1 DATA 1");
    t.expect_nothing();
    t.run(rto - std::time::Duration::from_millis(101));
    assert_eq!(t.path(2).counters.t3_expirations, 0, "§6.3.2: path 2 was restarted at 900 ms");
    t.run_ms(2);
    assert_eq!(t.path(2).counters.t3_expirations, 1);
}

#[test]
fn a_fast_retransmission_of_a_paths_earliest_chunk_restarts_its_timer() {
    let mut t = eight(cmt());
    // 5 is the earliest of path 2 and lost; 1 keeps the cumulative ack back.
    t.run_ms(800);
    t.send_packets(8); // more is under way when the loss is found
    for last in 6..=8 {
        t.peer_on(2, sack(0).gap(6, last));
    }
    assert!(t.all_sent().contains(&"P2 DATA 5".to_owned()));
    let rto = t.path(2).rto;
    t.run(rto - std::time::Duration::from_millis(1));
    assert_eq!(
        t.path(2).counters.t3_expirations,
        0,
        "§6.1, §7.2.4, point 4: a whole RTO from then"
    );
    t.run_ms(2);
    assert_eq!(t.path(2).counters.t3_expirations, 1);
}

#[test]
fn a_timer_is_not_left_running_on_a_path_that_was_emptied() {
    // 1 moves from path 1 to path 2, at 900 ms; the new data on path 1 gets a whole RTO.
    let mut t = cmt().set("rtx_policy", "cwnd").established();
    t.send_packets(8);
    t.all_sent();
    t.run_ms(500);
    t.peer_on(2, sack(0).gap(5, 8));
    for last in 2..=4 {
        t.run_ms(100);
        t.peer(sack(0).gap(2, last).gap(5, 8));
    }
    assert_eq!(t.all_sent(), ["P2 DATA 1"]);
    assert_eq!(t.path(1).flight_size, 0);
    t.with(|a, now| a.set_primary(now, manypath_proto::PathId(0)));
    t.run_ms(100);
    t.send_packets(4);
    t.send_packets(4);
    let sent = t.all_sent();
    assert!(sent.iter().any(|w| w.starts_with("P1 DATA")), "{sent:?}");
    t.run_ms(300);
    assert_eq!(t.path(1).counters.t3_expirations, 0);
}

#[test]
fn no_new_data_goes_to_a_pf_path_while_another_is_active() {
    let mut t = Setup::client().paths(2).preset("cmt-pf").established();
    t.send_packets(8);
    t.all_sent();
    t.peer_on(2, sack(0).gap(5, 8));
    t.run_ms(1000);
    assert_eq!(t.path_state(1), PathState::PotentiallyFailed);
    t.all_sent();
    t.send_packets(20);
    for _ in 0..20 {
        t.run_ms(10);
        let sent = t.all_sent();
        assert!(!sent.iter().any(|w| w.starts_with("P1 DATA")), "RFC 7829: {sent:?}");
        t.peer_on(2, sack(0).gap(5, 8));
    }
}

#[test]
fn a_path_whose_acks_keep_coming_does_not_time_out_behind_a_marked_chunk() {
    // 1 is lost and waits for the window of path 2, which is full; path 1 works on.
    let mut t = cmt()
        .set("rtx_policy", "cwnd")
        .set("initial_cwnd", "8 pmdcs")
        .set("rtx_age_heuristic", "false")
        .established();
    t.send_packets(60);
    t.all_sent();
    let mut highest = 8;
    for last in 2..=30 {
        t.run_ms(100);
        t.peer(sack(0).gap(2, last.min(highest)));
        for words in t.all_sent() {
            if let Some(tsn) = words.strip_prefix("P1 DATA ").and_then(|w| w.parse::<u32>().ok()) {
                highest = highest.max(tsn);
            }
        }
    }
    assert!(
        t.path(1).counters.t3_expirations <= 1,
        "{} timeouts",
        t.path(1).counters.t3_expirations
    );
}

#[test]
fn user_bytes_count_on_the_path_on_which_they_came_first() {
    let mut t = Setup::server().paths(2).established();
    let received = |t: &Script| [1, 2].map(|path| t.path(path).counters.data_bytes_received);
    let before = received(&t);
    t.peer_on(1, data(1));
    let [first, nothing] = received(&t);
    let bytes = first - before[0];
    assert!(bytes > 0 && nothing == before[1]);
    t.peer_on(2, [data(2), data(3)]);
    t.peer_on(1, data(3));
    assert_eq!(received(&t), [first, before[1] + 2 * bytes], "duplicates count nowhere");
}

#[test]
fn a_primary_that_only_the_handshake_verified_is_measured_and_carries_data() {
    let mut t = Setup::client().paths(2).set("scheduler", "soonest").start();
    t.connect();
    t.expect_init();
    t.peer(init_ack());
    t.expect("P1 COOKIE ECHO");
    t.peer(cookie_ack());
    for asked in ["P2 HEARTBEAT", "P1 HEARTBEAT"] {
        t.expect(asked);
        let info = t.last_heartbeat();
        t.run_ms(1);
        t.peer_on(if asked.starts_with("P2") { 2 } else { 1 }, heartbeat_ack(&info));
    }
    t.send_packets(40);
    let sent = t.all_sent();
    for path in ["P1 DATA", "P2 DATA"] {
        assert!(sent.iter().any(|w| w.starts_with(path)), "no {path}: {sent:?}");
    }
}
