//! T3-rtx, RTO, fast retransmit and the processing of SACKs (RFC 9260 §6.2.1, §6.3, §7.2.4).

use std::time::Duration;

use manypath_proto::testing::*;
use manypath_proto::{AssocClosed, Event};
use manypath_wire::ErrorCause;

use super::common::{PMDCS, grow};

fn client() -> Script {
    Setup::client().established()
}

#[test]
fn t3_rtx_retransmits_one_packet_and_starts_slowly() {
    let mut t = client();
    let start = t.now();
    t.send_packets(3);
    t.expect_all(&["DATA 1", "DATA 2", "DATA 3"]);
    t.run_ms(1000);
    t.expect_after_ms(start, 1000, "DATA 1"); // §6.3.3 E3
    t.expect_nothing();
    let p = t.path(1);
    assert_eq!((p.cwnd, p.ssthresh), (PMDCS, 4 * PMDCS), "§6.3.3 E1, §7.2.3");
    assert_eq!((p.rto, p.error_count), (Duration::from_secs(2), 1), "§6.3.3 E2, §8.2");
    t.run_ms(2000);
    t.expect_after_ms(start, 3000, "DATA 1");
    t.peer(sack(1));
    t.expect_all(&["DATA 2", "DATA 3"]); // as cwnd allows
    assert_eq!(t.path(1).error_count, 0, "§8.2");
}

#[test]
fn after_a_timeout_only_one_packet_is_in_flight_until_an_ack() {
    let mut t = client();
    t.send_messages(40, 100);
    t.all_sent();
    t.run_ms(1000);
    assert_eq!(t.all_sent(), ["DATA 1-12"], "§7.2.3: although 1392 bytes leave room in cwnd");
}

#[test]
fn rto_doubles_up_to_its_maximum() {
    let mut t = Setup::client()
        .set("rto_max", "5 s")
        .set("association_max_retrans", "off")
        .set("association_timeout", "10 min")
        .established();
    t.send(1);
    t.expect("DATA 1");
    let mut last = t.now();
    for expected in [1, 2, 4, 5, 5] {
        while t.all_sent().iter().all(|w| w != "DATA 1") {
            t.run_to_timer();
        }
        assert_eq!((t.now() - last).as_secs(), expected);
        last = t.now();
    }
}

#[test]
fn a_new_measurement_ends_the_back_off_and_retransmissions_are_not_measured() {
    let mut t = client();
    t.send(1);
    t.run_ms(1000);
    t.all_sent();
    t.run_ms(100);
    t.peer(sack(1));
    let p = t.path(1);
    assert_eq!((p.srtt, p.rto), (None, Duration::from_secs(2)), "§6.3.1 C5: Karn");
    t.send(1);
    t.run_ms(100);
    t.peer(sack(2));
    let p = t.path(1);
    assert_eq!(p.srtt, Some(Duration::from_millis(100)), "§6.3.1 C2");
    assert_eq!(p.rto, Duration::from_secs(1), "§6.3.1 C6: RTO.Min");
}

#[test]
fn one_chunk_is_measured_each_round_trip() {
    let mut t = client();
    t.send_packets(2);
    t.run_ms(50);
    t.send(1);
    t.run_ms(50);
    t.peer(sack(1)); // 100 ms
    t.peer(sack(3)); // sent later, but not measured: C4
    assert_eq!(t.path(1).srtt, Some(Duration::from_millis(100)));
    t.send(1);
    t.run_ms(180);
    t.peer(sack(4));
    assert_eq!(t.path(1).srtt, Some(Duration::from_millis(110)), "7/8 * 100 + 1/8 * 180");
}

#[test]
fn the_timer_starts_anew_when_the_earliest_chunk_is_acknowledged() {
    let mut t = client();
    let start = t.now();
    t.send_packets(3);
    t.all_sent();
    t.run_ms(500);
    t.peer(sack(1)); // §6.3.2 R3: RTT 500 ms, so RTO 1500 ms
    t.run_ms(1499);
    t.expect_nothing();
    t.run_ms(1);
    t.expect_after_ms(start, 2000, "DATA 2");
}

#[test]
fn the_timer_runs_on_when_later_chunks_are_acknowledged() {
    let mut t = client();
    let start = t.now();
    t.send_packets(3);
    t.all_sent();
    t.run_ms(500);
    t.peer(sack(0).gap(2, 3));
    t.run_ms(500);
    t.expect_after_ms(start, 1000, "DATA 1");
}

#[test]
fn the_timer_stops_when_nothing_is_outstanding() {
    let mut t = Setup::client().set("heartbeats", "false").established();
    t.send_packets(3);
    t.all_sent();
    t.peer(sack(3));
    assert_eq!(t.endpoint.poll_timeout(), None, "§6.3.2 R2");
}

#[test]
fn the_third_missing_report_retransmits() {
    let mut t = client();
    t.send_packets(4);
    t.all_sent();
    t.peer(sack(0).gap(2, 2));
    t.peer(sack(0).gap(2, 3));
    t.expect_nothing();
    t.peer(sack(0).gap(2, 4));
    t.expect("DATA 1"); // §7.2.4
    assert_eq!(t.path(1).counters.fast_retransmits, 1);
    assert_eq!(t.path(1).error_count, 0);
}

#[test]
fn with_the_2006_profile_it_takes_four() {
    let mut t = Setup::client()
        .profile("2006")
        .set("initial_cwnd", "8 mtu")
        .set("max_burst", "0")
        .established();
    t.send_packets(5);
    t.all_sent();
    for last in 2..=4 {
        t.peer(sack(0).gap(2, last));
        t.expect_nothing();
    }
    t.peer(sack(0).gap(2, 5));
    t.expect("DATA 1"); // RFC 2960 §7.2.4
}

#[test]
fn only_what_is_newly_acknowledged_above_a_chunk_counts_against_it() {
    let mut t = Setup::client().set("max_burst", "0").set("initial_cwnd", "20 pmdcs").established();
    t.send_packets(6);
    t.all_sent();
    t.peer(sack(0).gap(6, 6)); // 1 to 5: one report
    t.peer(sack(0).gap(2, 2).gap(6, 6)); // highest newly acknowledged is 2: 1 has two
    t.peer(sack(0).gap(2, 2).gap(6, 6)); // nothing new
    t.peer(sack(0).gap(2, 2).gap(6, 6));
    t.expect_nothing();
    t.peer(sack(0).gap(2, 3).gap(6, 6)); // 1 has three, 4 and 5 still one
    t.expect("DATA 1");
    t.expect_nothing(); // §7.2.4: HTNA
}

#[test]
fn a_chunk_is_fast_retransmitted_once_then_the_timer_must_do() {
    let mut t = Setup::client().set("max_burst", "0").set("initial_cwnd", "20 pmdcs").established();
    t.send_packets(12);
    t.all_sent();
    for last in 2..=4 {
        t.peer(sack(0).gap(2, last));
    }
    t.expect("DATA 1");
    let start = t.now();
    for last in 5..=12 {
        t.peer(sack(0).gap(2, last));
    }
    t.expect_nothing(); // §7.2.4, point 5
    while t.all_sent().is_empty() {
        t.run_to_timer();
    }
    assert_eq!((t.now() - start).as_millis(), 1000, "T3-rtx, restarted by the retransmission");
    assert_eq!(t.path(1).counters.t3_expirations, 1);
}

#[test]
fn cwnd_is_cut_once_per_fast_recovery() {
    let mut t = Setup::client().set("max_burst", "0").established();
    let base = grow(&mut t, 30);
    let before = t.path(1).cwnd;
    assert!(before > 16 * PMDCS, "{before}");
    t.send_packets(12);
    t.all_sent();
    for last in 2..=4 {
        t.run_ms(1);
        t.peer(sack(base).gap(base + 2, base + last));
    }
    t.expect("DATA 31");
    let cut = t.path(1).cwnd;
    assert_eq!(cut, before / 2, "§7.2.3");
    assert_eq!(t.path(1).ssthresh, before / 2);
    // The seventh is lost too, and found in the same recovery.
    for last in 8..=10 {
        t.run_ms(1);
        t.peer(sack(base).gap(base + 2, base + 6).gap(base + 8, base + last));
    }
    assert_eq!(t.path(1).counters.fast_retransmits, 2);
    assert_eq!(t.path(1).cwnd, cut, "§7.2.4, point 6");
    // The exit point is acknowledged; a later loss cuts again.
    let high = base + 12;
    t.peer(sack(high));
    t.all_sent();
    t.send_packets(8);
    t.all_sent();
    for last in 2..=4 {
        t.peer(sack(high).gap(high + 2, high + last));
    }
    assert!(t.path(1).cwnd < cut, "a new recovery");
}

#[test]
fn while_in_fast_recovery_every_missing_chunk_counts_when_the_cumulative_ack_moves() {
    let mut t = Setup::client().set("max_burst", "0").set("initial_cwnd", "20 pmdcs").established();
    t.send_packets(10);
    t.all_sent();
    // 1 and 9 are lost. 9 has had one report.
    t.peer(sack(0).gap(2, 4));
    t.peer(sack(0).gap(2, 6));
    t.peer(sack(0).gap(2, 8).gap(10, 10));
    t.expect("DATA 1");
    // The retransmission arrives: the cumulative ack moves, HTNA is 1, but 9 is counted too.
    t.peer(sack(8).gap(10, 10));
    t.expect_nothing();
    t.send_packets(1);
    t.expect("DATA 11");
    t.peer(sack(8).gap(10, 11));
    t.expect("DATA 9"); // §7.2.4: the third report
}

#[test]
fn a_fast_retransmission_leaves_although_cwnd_is_full() {
    let mut t = Setup::client().set("max_burst", "0").set("initial_cwnd", "12 pmdcs").established();
    t.send_packets(30);
    t.all_sent();
    for last in 2..=4 {
        t.peer(sack(0).gap(2, last));
    }
    let sent = t.all_sent();
    assert!(sent.contains(&"DATA 1".to_owned()), "§7.2.4, point 3: {sent:?}");
    let p = t.path(1);
    assert!(p.flight_size > p.cwnd, "cwnd was halved to {}, in flight {}", p.cwnd, p.flight_size);
}

#[test]
fn a_revoked_chunk_is_retransmitted() {
    let mut t = client();
    t.send_packets(4);
    t.all_sent();
    t.peer(sack(0).gap(2, 4));
    assert_eq!(t.path(1).flight_size, PMDCS);
    t.peer(sack(2)); // 1 arrived; 3 and 4 were given up
    assert_eq!(t.path(1).flight_size, 2 * PMDCS, "§6.2.1 D iii");
    t.run_ms(1000);
    t.expect("DATA 3"); // §6.3.2 R4
}

#[test]
fn shutdown_without_gap_ack_blocks_revokes_nothing() {
    let mut t = client();
    t.send_packets(4);
    t.all_sent();
    t.peer(sack(0).gap(3, 4));
    t.peer(shutdown(1));
    assert_eq!(t.path(1).flight_size, PMDCS, "§3.3.8: 2 alone is outstanding");
}

#[test]
fn a_sack_beside_the_shutdown_that_moved_the_cumulative_ack_revokes() {
    let mut t = client();
    t.send_packets(4);
    t.all_sent();
    t.peer(sack(0).gap(3, 4));
    // The peer has dropped 3 and 4 for 2. It answers each DATA by both chunks (RFC 9260 §9.2), so
    // no SACK of it moves the cumulative TSN ack any more.
    t.peer(shutdown(2));
    assert_eq!(t.path(1).flight_size, 0);
    t.peer(sack(2));
    assert_eq!(t.path(1).flight_size, 2 * PMDCS, "§6.2.1 D iii");
    t.run_ms(1000);
    t.expect("DATA 3");
}

#[test]
fn a_sack_for_what_was_never_sent_aborts() {
    for bad in [sack(3), sack(0).gap(2, 3), sack(1 << 30)] {
        let mut t = client();
        t.send_packets(2);
        t.all_sent();
        t.peer(bad.clone());
        t.expect("ABORT 13");
        let closed = t.events().pop();
        let violation = matches!(closed, Some(Event::Closed(AssocClosed::ProtocolViolation(_))));
        assert!(violation, "{bad:?}: {closed:?}");
    }
}

#[test]
fn an_old_or_senseless_sack_is_ignored() {
    let mut t = client();
    t.send_packets(4);
    t.all_sent();
    t.peer(sack(2));
    let before = t.path(1);
    let old = [sack(1).gap(3, 4), sack(u32::MAX - 5), sack(3u32.wrapping_add(1 << 31))];
    let malformed = [
        sack(2).gap(3, 3),
        sack(2).gap(4, 3),
        sack(2).gap(4, 4).gap(4, 4),
        sack(3).gap(3, 3).rwnd(0),
    ];
    for chunk in old.into_iter().chain(malformed) {
        t.peer(chunk.clone());
        t.expect_nothing();
        let after = t.path(1);
        assert_eq!(
            (after.flight_size, after.cwnd, after.counters.acked_bytes),
            (before.flight_size, before.cwnd, before.counters.acked_bytes),
            "{chunk:?}"
        );
    }
    t.peer(sack(4));
    assert_eq!(t.path(1).flight_size, 0);
}

#[test]
fn a_sack_half_the_number_space_away_harms_nothing_when_all_is_acknowledged() {
    let mut t = client();
    for chunk in [sack(1 << 31), sack(1 << 31).gap((1 << 31) + 2, (1 << 31) + 9)] {
        t.peer(chunk);
        t.expect_nothing();
    }
    t.send(1);
    t.expect("DATA 1");
    t.peer(sack(1));
    assert_eq!(t.assoc().unacked_bytes(), 0);
}

#[test]
fn a_peer_that_never_answers_is_given_up_after_association_max_retrans() {
    let mut t = Setup::client().set("association_max_retrans", "3").established();
    t.send(1);
    t.events();
    t.run_ms(60_000);
    // One transmission, three retransmissions, and the fourth timeout ends it.
    let sent = super::common::without_heartbeats(&mut t);
    assert_eq!(sent, ["DATA 1", "DATA 1", "DATA 1", "DATA 1", "ABORT"], "§8.1");
    assert_eq!(t.events().pop(), Some(Event::Closed(AssocClosed::PathsFailed)));
}

#[test]
fn retransmissions_and_new_data_share_a_packet_in_the_order_of_tsns() {
    let mut t = client();
    for _ in 0..3 {
        t.send(100);
    }
    t.all_sent();
    t.run_ms(1000);
    t.expect("DATA 1-3"); // §6.10
    t.peer(sack(1));
    t.send(100);
    let sent = t.all_sent();
    assert!(sent.iter().all(|w| w.starts_with("DATA")), "{sent:?}");
}

#[test]
fn an_abort_of_the_peer_ends_it_with_its_reason() {
    let mut t = client();
    t.send_packets(4);
    t.all_sent();
    t.events();
    t.peer(abort(&[ErrorCause::UserInitiatedAbort(bytes::Bytes::from_static(b"enough"))]));
    t.expect_nothing(); // §9.1
    let closed = AssocClosed::PeerAborted { cause: 12, reason: b"enough".to_vec() };
    assert_eq!(t.events(), [Event::Closed(closed)]);
    assert_eq!(t.endpoint.poll_timeout(), None);
}

#[test]
fn a_tail_loss_probe_repeats_the_last_chunk_once_and_t3_rtx_goes_on() {
    let mut t = Setup::client().profile("fast").established();
    t.send_packets(1);
    t.expect("DATA 1");
    t.run_ms(20);
    t.peer(sack(1)); // RTT 20 ms
    t.send_packets(3);
    t.all_sent();
    let start = t.now();
    t.run_ms(50);
    t.expect_after_ms(start, 40, "DATA 4"); // RFC 8985 §7.2: two round trips
    assert_eq!((t.path(1).counters.tail_loss_probes, t.path(1).counters.t3_expirations), (1, 0));
    let rto = t.path(1).rto;
    t.run(rto);
    assert_eq!((t.path(1).counters.tail_loss_probes, t.path(1).counters.t3_expirations), (1, 1));
    t.run_ms(200_000);
    assert!(t.assoc().closed().is_some(), "a peer that is gone is found out");
}
