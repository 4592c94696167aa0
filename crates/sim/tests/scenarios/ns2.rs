//! Runs without loss against the SCTP module of ns-2 2.35, which is deterministic then: the same
//! transfers, its times to the millisecond. What differs by more is a difference of mechanism.

use std::time::Duration;

use manypath_proto::{Event, Instant, PathId, PathState};
use manypath_sim::{LinkSpec, Pair, PairBuilder, PathSpec, QueueLimit, secs};

use crate::MIB;

/// Paths of 10 Mbit/s and 45 ms in three hops, on the profile `ns2`.
fn builder(preset: &str, paths: usize, receive_buffer: &str) -> PairBuilder {
    let edge = LinkSpec::mbps_ms(100.0, 10.0).queue(QueueLimit::Packets(200));
    let core = LinkSpec::mbps_ms(10.0, 25.0).queue(QueueLimit::Packets(50));
    Pair::paths(preset, vec![PathSpec::hops([edge.clone(), core, edge]); paths])
        .profile("ns2")
        .set("receive_buffer", receive_buffer)
}

/// Associates and sends at once; path 2 fails at 5 s, if `back_at` is given until then.
fn fails_at_5_s(preset: &str, back_at: Option<u64>) -> Pair {
    let mut t = builder(preset, 2, "64 KiB").start();
    t.a.send_file(8 * MIB);
    t.net.path(1).hop(1).at(secs(5)).cut();
    if let Some(at) = back_at {
        t.net.path(1).hop(1).at(secs(at)).restore();
    }
    t
}

/// Seconds from the first DATA to the SACK of the last.
pub(crate) fn acknowledged_after(t: &mut Pair) -> f64 {
    t.run_until_true(secs(200), |t| {
        t.has_delivered_all() && t.a.stats().is_some_and(|s| s.bytes_acked == t.a.sent_bytes())
    });
    let is_empty = |(_, e): &&(Instant, Event)| matches!(e, Event::SendBufferEmpty);
    let (at, _) = t.a.events().iter().rev().find(is_empty).expect("everything is acknowledged");
    let begin = t.a.stats().and_then(|s| s.first_data_sent).expect("DATA was sent");
    (*at - begin).as_secs_f64()
}

fn assert_near(ours: f64, theirs: f64, tolerance: f64, what: &str) {
    assert!((ours - theirs).abs() <= tolerance, "{what}: {ours} s, ns-2 {theirs} s");
}

#[test]
fn data_waits_until_every_path_has_answered() {
    let mut t = builder("cmt", 2, "64 KiB").start();
    t.a.send_file(MIB);
    t.run_until(secs(1));
    let begin = t.a.stats().and_then(|s| s.first_data_sent).expect("DATA was sent");
    // Two round trips of the handshake and one of the heartbeats; our handshake packets are longer.
    assert_near((begin - Instant::ZERO).as_secs_f64(), 0.2703, 0.0005, "first DATA");
}

#[test]
fn without_a_limit_windows_grow_as_in_ns2() {
    let mut t = builder("cmt", 2, "8 MiB").start();
    t.a.send_file(8 * MIB);
    assert_near(acknowledged_after(&mut t), 4.473_523, 0.0005, "slow start and avoidance");
}

#[test]
fn the_receive_buffer_limits_a_transfer_as_in_ns2() {
    let mut t = builder("cmt", 2, "64 KiB").start();
    t.a.send_file(8 * MIB);
    // Packets of the two paths that arrive at the same instant are taken in another order.
    assert_near(acknowledged_after(&mut t), 12.428_632, 0.003, "two paths, 64 KiB");
    let mut t = builder("sctp", 1, "64 KiB").start();
    t.a.send_file(4 * MIB);
    assert_near(acknowledged_after(&mut t), 6.603_051, 0.0005, "one path, 64 KiB");
}

#[test]
fn cmt_needs_six_timeouts_to_find_a_failure() {
    let mut t = fails_at_5_s("cmt", None);
    assert_near(acknowledged_after(&mut t), 76.849, 0.005, "CMT-PF paper, Fig. 6: CMT");
    let is_inactive =
        |e: &Event| matches!(e, Event::PathState { path: PathId(1), to: PathState::Inactive, .. });
    let found = t.a.events().iter().find(|(_, e)| is_inactive(e)).expect("found");
    assert_near((found.0 - Instant::ZERO).as_secs_f64(), 69.29, 0.01, "detection");
}

#[test]
fn cmt_pf_loses_one_timeout_to_a_failure() {
    let mut t = fails_at_5_s("cmt-pf", None);
    assert_near(acknowledged_after(&mut t), 13.480, 0.005, "CMT-PF paper, Fig. 6: CMT-PF");
}

#[test]
fn after_a_short_failure_cmt_is_behind_and_cmt_pf_is_not() {
    let mut cmt = fails_at_5_s("cmt", Some(10));
    assert_near(acknowledged_after(&mut cmt), 20.151, 0.006, "CMT-PF paper, Fig. 8: CMT");
    let mut pf = fails_at_5_s("cmt-pf", Some(10));
    assert_near(acknowledged_after(&mut pf), 13.480, 0.005, "CMT-PF paper, Fig. 8: CMT-PF");
    let timeouts = |t: &Pair| t.a.paths()[1].counters.t3_expirations;
    assert_eq!((timeouts(&cmt), timeouts(&pf)), (3, 1), "one path is given up at once");
}

#[test]
fn a_heartbeat_ack_opens_the_window_by_one_or_two_packets() {
    for packets in [1, 2] {
        let mut t =
            builder("cmt-pf", 2, "64 KiB").set("pf_recovery_cwnd", &packets.to_string()).start();
        t.a.send_file(32 * MIB);
        t.net.path(1).hop(1).at(secs(5)).cut_for(Duration::from_secs(2));
        t.run_until(secs(6));
        let is_back = |e: &Event| {
            matches!(e, Event::PathState { path: PathId(1), to: PathState::Active, .. })
        };
        t.run_until_event(is_back);
        assert_eq!(t.a.paths()[1].cwnd, packets * 1468, "CMT-PF{packets}");
    }
}

/// Starts and sends 2 MiB; path 1 fails in both directions for `length` s, `after` s from the first
/// DATA.
fn loses_a_burst(builder: PairBuilder, after: f64, length: f64) -> Pair {
    let mut t = builder.set("rtx_policy", "cwnd").start();
    t.a.send_file(2 * MIB);
    t.run_until_true(secs(1), |t| t.a.stats().is_some_and(|s| s.first_data_sent.is_some()));
    let begin = t.a.stats().and_then(|s| s.first_data_sent).expect("DATA was sent");
    let from = begin + Duration::from_secs_f64(after);
    t.net.path(0).hop(1).at(from).cut_for(Duration::from_secs_f64(length));
    t
}

/// Failures of path 1, as receive buffer, after and for how many seconds, and what ns-2 takes then.
fn assert_bursts(
    builder: impl Fn(&str) -> PairBuilder,
    tolerance: f64,
    cases: &[(&str, f64, f64, f64)],
) {
    for &(buffer, after, length, theirs) in cases {
        let mut t = loses_a_burst(builder(buffer), after, length);
        let what = format!("{buffer}, {length} s lost after {after} s");
        assert_near(acknowledged_after(&mut t), theirs, tolerance, &what);
    }
}

#[test]
fn bursts_of_losses_on_one_of_two_paths_cost_as_much_as_in_ns2() {
    let cases = [
        ("64 KiB", 0.55, 0.03, 3.660_996),
        ("64 KiB", 0.58, 0.03, 3.663_385),
        ("64 KiB", 1.03, 0.01, 3.660_962),
        ("1 MiB", 0.52, 0.01, 2.087_360),
        ("1 MiB", 0.55, 0.03, 2.127_571),
        ("1 MiB", 0.58, 0.01, 2.093_741),
        ("1 MiB", 0.58, 0.03, 2.144_534),
        ("1 MiB", 1.03, 0.01, 1.998_651),
        ("1 MiB", 1.03, 0.03, 2.045_441),
    ];
    assert_bursts(|buffer| builder("cmt", 2, buffer), 0.005, &cases);
}

#[test]
fn losses_that_end_in_timeouts_cost_as_much_as_in_ns2() {
    let cases = [
        ("32 KiB", 0.52, 0.1, 7.549_637),
        ("32 KiB", 0.58, 0.2, 7.336_751),
        ("32 KiB", 1.03, 0.1, 7.344_235),
        ("64 KiB", 1.03, 0.05, 4.399_340),
        ("64 KiB", 1.03, 0.1, 4.594_083),
        ("128 KiB", 0.3, 0.2, 3.260_314),
        ("128 KiB", 0.58, 0.1, 3.375_128),
        ("128 KiB", 1.03, 0.1, 3.245_053),
        ("128 KiB", 1.5, 0.1, 3.288_668),
    ];
    let longer = |link: &mut LinkSpec| {
        if link.delay == Duration::from_millis(25) {
            link.delay += Duration::from_micros(370);
        }
    };
    // Path 2 is a little longer, so that packets of the two never arrive at the same instant.
    let unequal = |buffer: &str| builder("cmt", 2, buffer).path(1, |path| path.each(longer));
    assert_bursts(unequal, 0.001, &cases);
}

/// How often the window of path 1 shrank in a run to the end.
fn cuts(t: &mut Pair) -> usize {
    let (mut cuts, mut last) = (0, 0);
    t.run_until_true(secs(200), |t| {
        let cwnd = t.a.paths().first().map_or(0, |p| p.cwnd);
        cuts += usize::from(cwnd < last);
        last = cwnd;
        t.has_delivered_all()
    });
    cuts
}

/// Loses two packets of one flight, `later` ms apart, and counts how often that cuts the window.
fn cuts_of_two_losses(profile: &str, later: u64, once: bool) -> usize {
    let mut t = builder("cmt", 1, "64 KiB")
        .profile(profile)
        .set("cut_once_per_flight", &once.to_string())
        .start();
    t.a.send_file(2 * MIB);
    t.run_until(secs(2));
    // A flight takes 54 ms of an RTT of 91 ms.
    let sends = |t: &Pair| t.a.paths()[0].counters.packets_sent;
    let before = sends(&t);
    t.run_until_true(secs(3), |t| sends(t) > before);
    let now = t.net.now();
    for after in [10, 10 + later] {
        let at = now + Duration::from_millis(after);
        t.net.path(0).hop(1).forward().at(at).cut_for(Duration::from_millis(2));
    }
    let cuts = cuts(&mut t);
    let again = t.a.paths()[0].counters.retransmissions;
    assert!((1..=6).contains(&again), "{again} chunks were lost");
    cuts
}

#[test]
fn losses_of_one_window_cut_it_once_wherever_in_it_they_are() {
    let places = || (10..=50).step_by(2);
    for profile in ["2006", "ns2"] {
        for later in places() {
            let cuts = cuts_of_two_losses(profile, later, true);
            assert_eq!(cuts, 1, "{profile}: the second loss {later} ms after the first");
        }
    }
    let twice = places().filter(|&later| cuts_of_two_losses("2006", later, false) > 1).count();
    assert!(twice > 0, "the last losses of a flight are found as its recovery ends");
}

/// The path is silent for 3.5 s: two timeouts, 1 s and 3 s after its last acknowledgement. The
/// ssthresh after them.
fn ssthresh_after_two_timeouts(keeps: bool) -> usize {
    let mut t = builder("all-rtx-same", 1, "64 KiB")
        .set("recovery_without", if keeps { "none" } else { "repeated_timeout_keeps_ssthresh" })
        .start();
    t.a.send_file(4 * MIB);
    t.net.path(0).hop(1).at(secs(3)).cut_for(Duration::from_millis(3500));
    t.run_until(Instant::from_millis(6400));
    let path = &t.a.paths()[0];
    assert_eq!(path.counters.t3_expirations, 2);
    path.ssthresh
}

#[test]
fn a_timeout_after_a_timeout_leaves_ssthresh_as_in_ns2() {
    assert!(ssthresh_after_two_timeouts(true) > 20_000, "half of what was in flight");
    assert_eq!(ssthresh_after_two_timeouts(false), 4 * 1468, "RFC 9260 §7.2.3: the floor");
}
