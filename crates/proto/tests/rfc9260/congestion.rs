//! cwnd, ssthresh, Max.Burst and idle paths (RFC 9260 §6.1, §7.2).

use manypath_proto::testing::*;

use super::common::{PMDCS, grow};

fn client() -> Script {
    Setup::client().established()
}

#[test]
fn the_initial_cwnd_depends_on_the_packet_size_and_the_family() {
    let cwnd = |setup: Setup| setup.established().path(1).cwnd;
    assert_eq!(cwnd(Setup::client()), 4404, "§7.2.1");
    assert_eq!(cwnd(Setup::client().v6()), 4344, "§7.2.1");
    assert_eq!(cwnd(Setup::client().set("mtu", "576")), 4 * 536);
    assert_eq!(cwnd(Setup::client().set("mtu", "9000")), 2 * (9000 - 28 - 12));
}

#[test]
fn slow_start_adds_what_was_acknowledged_up_to_one_packet_per_sack() {
    let mut t = client();
    t.send_packets(4);
    t.all_sent();
    t.peer(sack(2));
    assert_eq!(t.path(1).cwnd, 4404 + PMDCS, "§7.2.1: two packets acked, one added");
    t.send_packets(8);
    t.all_sent();
    let before = t.path(1).cwnd;
    t.peer(sack(3));
    assert_eq!(t.path(1).cwnd, before + PMDCS);
}

#[test]
fn a_window_that_is_not_used_up_does_not_grow() {
    let mut t = client();
    for tsn in 1..=10 {
        t.send_packets(1);
        t.peer(sack(tsn));
    }
    assert_eq!(t.path(1).cwnd, 4404, "§7.2.1");
}

#[test]
fn congestion_avoidance_adds_one_packet_per_window() {
    let mut t = Setup::client().set("initial_ssthresh", "3000 B").established();
    t.send_packets(30);
    let mut windows = vec![t.path(1).cwnd];
    for tsn in 1..=20 {
        t.peer(sack(tsn));
        windows.push(t.path(1).cwnd);
    }
    windows.dedup();
    assert_eq!(windows[..4], [4404, 4404 + PMDCS, 4404 + 2 * PMDCS, 4404 + 3 * PMDCS]);
    // 4404 bytes are four packets, 5864 five, 7324 six (with what is left over).
    assert!(windows.len() <= 6, "§7.2.2: {windows:?}");
}

#[test]
fn max_burst_limits_what_one_sack_releases() {
    let mut t = client();
    grow(&mut t, 30);
    t.send_packets(30);
    assert_eq!(t.all_sent().len(), 4, "§6.1 D");
    t.peer(sack(31));
    assert_eq!(t.all_sent().len(), 4);
    let mut t = Setup::client().set("max_burst", "0").established();
    grow(&mut t, 30);
    t.send_packets(15);
    assert_eq!(t.all_sent().len(), 15, "no limit");
}

#[test]
fn an_idle_window_halves_once_per_rto() {
    let mut t = client();
    grow(&mut t, 80);
    let before = t.path(1).cwnd;
    assert!(before > 40 * PMDCS, "{before}");
    t.run_ms(1050); // one RTO
    t.send(10);
    assert_eq!(t.path(1).cwnd, before / 2, "§7.2.1");
    assert_eq!(t.path(1).ssthresh, before, "§7.2.1: set before the first adjustment");
    t.peer(sack(81));
    t.run_ms(2050); // two RTOs
    t.send(10);
    assert_eq!(t.path(1).cwnd, before / 8);
    t.peer(sack(82));
    t.run_ms(100_000);
    t.send(10);
    assert_eq!(t.path(1).cwnd, 4 * PMDCS, "the floor");
}

#[test]
fn a_window_in_use_does_not_decay() {
    let mut t = client();
    let mut tsn = grow(&mut t, 40);
    let before = t.path(1).cwnd;
    for _ in 0..20 {
        t.run_ms(500);
        t.send(10);
        tsn += 1;
        t.peer(sack(tsn));
    }
    assert_eq!(t.path(1).cwnd, before);
}

#[test]
fn a_path_that_waits_beside_a_busy_one_decays_once_per_rto() {
    let mut t = Setup::client().paths(2).established();
    t.with(|a, now| a.set_primary(now, manypath_proto::PathId(1)));
    grow(&mut t, 40);
    let before = t.path(2).cwnd;
    t.with(|a, now| a.set_primary(now, manypath_proto::PathId(0)));
    let mut tsn = 40;
    for _ in 0..105 {
        t.run_ms(10);
        t.send(10);
        tsn += 1;
        t.peer(sack(tsn));
    }
    assert_eq!(t.path(2).cwnd, before / 2, "§7.2.1: once in 1.05 s");
}

#[test]
fn partial_bytes_acked_is_forgotten_when_all_is_acknowledged() {
    let mut t = Setup::client().set("initial_ssthresh", "3000 B").established();
    for tsn in [4, 8, 12, 16] {
        t.send_packets(4);
        t.all_sent();
        t.peer(sack(tsn));
    }
    // Each flight of four packets fills 4404 bytes: one packet more each, and nothing carried over.
    assert_eq!(t.path(1).cwnd, 4404 + PMDCS, "§7.2.2: then flights no longer fill cwnd");
}

#[test]
fn each_moment_is_an_opportunity_for_max_burst_packets() {
    let mut t = client();
    for _ in 0..12 {
        t.run_ms(1);
        t.send(100);
    }
    assert_eq!(t.all_sent().len(), 12, "§6.1 D: cwnd has room, and they are no burst");
}
