//! Rules that older releases of ns-2's SCTP module had, and those that they did not have yet.

use std::time::Duration;

use manypath_proto::PathStats;
use manypath_sim::{LinkSpec, Pair, PairBuilder, PathSpec, QueueLimit, secs};

use crate::MIB;
use crate::ns2::acknowledged_after;

/// Two paths of 10 Mbit/s and 45 ms in three hops.
fn builder(profile: &str, preset: &str) -> PairBuilder {
    let edge = LinkSpec::mbps_ms(100.0, 10.0).queue(QueueLimit::Packets(200));
    let core = LinkSpec::mbps_ms(10.0, 25.0).queue(QueueLimit::Packets(50));
    Pair::paths(preset, vec![PathSpec::hops([edge.clone(), core, edge]); 2]).profile(profile)
}

fn alternate(t: &Pair) -> PathStats {
    t.a.paths()[1].clone()
}

/// Runs until a HEARTBEAT more is sent on the alternate path, and returns the time since the start
/// in seconds.
fn next_heartbeat(t: &mut Pair) -> f64 {
    let before = alternate(t).counters.heartbeats_sent;
    t.run_until_true(secs(200), |t| alternate(t).counters.heartbeats_sent > before);
    t.net.now().as_secs_f64()
}

#[test]
fn until_3_6_an_idle_path_is_not_measured_before_its_first_interval_is_over() {
    // Seconds from least to most: RTO.Initial of 3 s, and the interval with its jitter.
    let cases = [("ns2-3.6", 31.5, 34.8), ("ns2-3.5", 31.5, 34.8), ("ns2-3.4", 18.1, 18.4)];
    for (profile, least, most) in cases {
        let mut t = builder(profile, "all-rtx-alt").start();
        t.a.send_file(40 * MIB);
        t.run_until(secs(1));
        assert!(t.a.stats().is_some_and(|s| s.first_data_sent.is_some()), "{profile}: no wait");
        assert_eq!(alternate(&t).counters.heartbeats_sent, 0, "{profile}: none at the start");
        assert_eq!(alternate(&t).rto, Duration::from_secs(3), "{profile}: RTO.Initial");
        let at = next_heartbeat(&mut t);
        assert!((least..most).contains(&at), "{profile}: asked after {at} s");
        t.run_for(Duration::from_secs(1));
        assert_eq!(alternate(&t).rto, Duration::from_secs(1), "{profile}: measured");
    }
}

#[test]
fn since_3_7_every_path_is_measured_before_data() {
    for profile in ["ns2-3.7", "ns2-3.8", "ns2"] {
        let mut t = builder(profile, "all-rtx-alt").start();
        t.a.send_file(MIB);
        t.run_until_true(secs(2), |t| t.a.stats().is_some_and(|s| s.first_data_sent.is_some()));
        assert_eq!(alternate(&t).rto, Duration::from_secs(1), "{profile}");
        assert_eq!(alternate(&t).counters.heartbeats_sent, 1, "{profile}");
    }
}

#[test]
fn without_its_rule_3_5_measures_the_alternate_path_at_the_start() {
    let mut t =
        builder("ns2-3.5", "all-rtx-alt").set("recovery_without", "no_heartbeat_at_start").start();
    t.a.send_file(MIB);
    t.run_until(secs(1));
    assert_eq!(alternate(&t).rto, Duration::from_secs(1));
    assert_eq!(alternate(&t).counters.heartbeats_sent, 1);
}

/// Loses all of the alternate path. Seconds between its first two HEARTBEATs.
fn between_heartbeats_when_lost(profile: &str, without: &str) -> f64 {
    let mut t = builder(profile, "all-rtx-same").set("recovery_without", without).start();
    t.a.send_file(60 * MIB);
    t.run_until(secs(1));
    t.net.path(1).hop(1).cut();
    let first = next_heartbeat(&mut t);
    next_heartbeat(&mut t) - first
}

#[test]
fn since_3_5_a_lost_heartbeat_is_repeated_at_once() {
    let close = |gap: f64, to: f64| (gap - to).abs() < 0.01;
    let at_once = between_heartbeats_when_lost("ns2-3.5", "none");
    assert!(close(at_once, 3.0), "after RTO.Initial: {at_once} s");
    let waits = between_heartbeats_when_lost("ns2-3.4", "none");
    assert!(close(waits, 18.0), "after half of HB.interval and RTO: {waits} s");
    let without = between_heartbeats_when_lost("ns2-3.4", "lost_hb_waits");
    assert!(close(without, 3.0), "without the rule: {without} s");
}

/// Loses two packets, the second of them after the fast retransmit of the first and before its
/// recovery ends. How often the window shrank.
fn cuts_of_two_losses(profile: &str, without: &str) -> usize {
    let mut t = builder(profile, "all-rtx-same").set("recovery_without", without).start();
    t.a.send_file(4 * MIB);
    t.run_until(secs(2));
    let sent = |t: &Pair| t.a.paths()[0].counters.packets_sent;
    let before = sent(&t);
    t.run_until_true(secs(3), |t| sent(t) > before);
    // Both are of one flight, which takes 54 ms, so the first is found before the second.
    for after in [10, 50] {
        let at = t.net.now() + Duration::from_millis(after);
        t.net.path(0).hop(1).forward().at(at).cut_for(Duration::from_millis(1));
    }
    let (mut cuts, mut last) = (0, 0);
    let end = t.net.now() + Duration::from_millis(600);
    t.run_until_true(end, |t| {
        let cwnd = t.a.paths()[0].cwnd;
        cuts += usize::from(cwnd < last);
        last = cwnd;
        false
    });
    assert_eq!(t.a.paths()[0].counters.t3_expirations, 0, "{profile}: found by missing reports");
    cuts
}

#[test]
fn before_3_5_each_fast_retransmit_cuts_the_window() {
    assert_eq!(cuts_of_two_losses("ns2-3.5", "none"), 1, "one recovery");
    assert_eq!(cuts_of_two_losses("ns2-3.4", "none"), 2, "none");
    assert_eq!(cuts_of_two_losses("ns2-3.4", "each_fast_rtx_cuts"), 1, "without the rule");
}

#[test]
fn before_3_8_an_odd_number_of_packets_ends_with_a_delayed_sack() {
    // 2889 chunks without loss, from the first DATA to the SACK of the last, in release 3.5.
    let theirs = 6.912_536;
    for profile in ["ns2-3.5", "ns2-3.4"] {
        let mut t = builder(profile, "all-rtx-same").start();
        t.a.send_file(4 * MIB);
        let ours = acknowledged_after(&mut t);
        assert!((ours - theirs).abs() < 0.0005, "{profile}: {ours} s, ns-2 {theirs} s");
    }
}
