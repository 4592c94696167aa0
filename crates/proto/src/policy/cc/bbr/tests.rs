//! The test cases of the draft's appendix "BBR Example Test Cases", under its titles.

mod bottleneck;

use std::time::Duration;

use super::*;
use bottleneck::{LIMITS, Link, PACKET, Sender, ms};

/// 10 Mbit/s and 40 ms: 50 packets, with room for twice as many in the queue.
const LINK: Link = Link {
    rate: 1_250_000.0,
    rtt: Duration::from_millis(40),
    queue: 100 * PACKET,
    loses_each: 0,
    acks_each: Duration::ZERO,
};

fn sender(link: Link) -> Sender {
    Sender::over(link, Guards::OFF)
}

fn is_near(value: f64, expected: f64, by: f64) -> bool {
    (value / expected - 1.0).abs() <= by
}

#[test]
fn exiting_startup_on_bandwidth_plateau() {
    let mut s = sender(LINK);
    s.run_to(State::Drain);
    assert!(s.bbr.full_pipe.was_reached);
    assert!(is_near(s.bbr.max_bw.max(), LINK.rate, 0.02), "{}", s.bbr.max_bw.max());
    assert!(s.bbr.rounds.count < 12, "{} round trips", s.bbr.rounds.count);
}

#[test]
fn exiting_startup_on_loss_when_application_limited() {
    let mut s = sender(LINK);
    s.run_while(ms(100), |_| true);
    s.write_at(0.4 * LINK.rate);
    s.link.loses_each = 3;
    s.run_while(Duration::from_secs(2), |s| s.state() == State::Startup);
    assert!(s.state() != State::Startup && s.bbr.full_pipe.was_reached);
    assert!(s.bbr.bounds.inflight_longterm < usize::MAX);
}

#[test]
fn exiting_drain_based_on_inflight() {
    let mut s = sender(LINK);
    s.run_to(State::Drain);
    assert_eq!(s.state().pacing_gain(), 0.5);
    let began = s.bbr.rounds.count;
    s.run_while(ms(500), |s| s.state() == State::Drain);
    assert!(s.state().is_probe_bw() && s.bbr.rounds.count - began <= 3);
    assert!(s.in_flight() <= s.bbr.inflight_of(s.bbr.bw, 1.0));
}

#[test]
fn exiting_drain_based_on_time() {
    let mut s = sender(LINK);
    s.run_to(State::Drain);
    let delivery = Delivery {
        now: s.now,
        newly_acked: PACKET,
        total: s.acked,
        in_flight: 2 * s.bdp(),
        rtt: None,
        is_window_limited: false,
        is_report_full: false,
        sample: None,
    };
    for _ in 0..3 {
        s.bbr.rounds.count += 1;
        s.bbr.check_drain_done(&delivery);
        assert_eq!(s.state(), State::Drain, "more is in flight than a BDP");
    }
    s.bbr.rounds.count += 1;
    s.bbr.check_drain_done(&delivery);
    assert_eq!(s.state(), State::ProbeDown);
}

#[test]
fn exiting_probe_up_on_bandwidth_plateau() {
    let mut s = sender(LINK);
    s.run_to(State::ProbeUp);
    let began = s.bbr.rounds.count;
    s.run_to(State::ProbeDown);
    assert!(s.bbr.full_pipe.was_reached && !s.bbr.cycle.prev_probe_too_high);
    assert!((3..=5).contains(&(s.bbr.rounds.count - began)), "{}", s.bbr.rounds.count - began);
}

#[test]
fn exiting_probe_up_on_loss_when_application_limited() {
    let mut s = sender(LINK);
    s.run_to(State::ProbeUp);
    s.write_at(0.5 * LINK.rate);
    s.link.loses_each = 10;
    s.run_to(State::ProbeDown);
    assert!(s.bbr.cycle.prev_probe_too_high, "because of losses");
}

#[test]
fn never_exiting_probe_up_or_startup_when_application_limited_with_no_loss() {
    let mut s = sender(LINK);
    s.write_at(0.1 * LINK.rate);
    s.run(Duration::from_secs(4));
    assert_eq!(s.state(), State::Startup);
    s.resume();
    // ProbeRTT, which has nothing to do with it, is not due again soon.
    s.run_to(State::ProbeRtt);
    s.run_to(State::ProbeUp);
    s.write_at(0.5 * LINK.rate);
    s.run(ms(1500));
    assert_eq!(s.state(), State::ProbeUp);
}

#[test]
fn exiting_probe_down_on_inflight() {
    let mut s = sender(LINK);
    s.run_to(State::ProbeUp);
    s.run_to(State::ProbeDown);
    assert_eq!(s.state().pacing_gain(), 0.9);
    s.run_to(State::ProbeCruise);
    assert!(s.in_flight() <= s.bbr.inflight_with_headroom());
    assert!(s.in_flight() <= s.bbr.inflight_of(s.bbr.max_bw.max(), 1.0));
}

#[test]
fn exiting_probe_down_after_max_time() {
    let mut s = sender(Link { rtt: ms(10), ..LINK });
    s.run_to(State::ProbeUp);
    s.run_to(State::ProbeDown);
    s.link.rate *= 0.8;
    s.run_while(Duration::from_secs(4), |s| s.state() == State::ProbeDown);
    let next = s.state();
    assert_eq!(next, State::ProbeRefill, "not cruising");
}

#[test]
fn entering_and_exiting_probe_rtt() {
    let mut s = sender(LINK);
    s.run_to(State::ProbeDown);
    s.run_to(State::ProbeRtt);
    assert_eq!(s.state().cwnd_gain(), 0.5);
    let began = s.now;
    s.run_to(State::ProbeCruise);
    let took = s.now - began;
    assert!(took >= ms(200) && took < ms(400), "{took:?}");
    assert!(s.bbr.full_pipe.was_reached);
    assert!(s.run(ms(400)) > 0.9, "it goes on");
}

#[test]
fn skipping_probe_rtt_due_to_application_limited_sending() {
    let mut s = sender(LINK);
    s.run_to(State::ProbeDown);
    s.pause();
    s.run(Duration::from_secs(6));
    assert_eq!(s.in_flight(), 0);
    let seen = s.states.len();
    s.resume();
    s.run(Duration::from_secs(2));
    let since = &s.states[seen..];
    assert!(since.iter().all(|(_, state)| *state != State::ProbeRtt), "{since:?}");
}

/// With the guards a path that is seen without a queue needs no ProbeRTT; the draft needs one.
#[test]
fn a_round_trip_time_that_is_seen_again_needs_no_probe_rtt() {
    for (guards, probes) in [(Guards::ON, false), (Guards::OFF, true)] {
        let mut s = Sender::over(LINK, guards);
        s.run(Duration::from_secs(20));
        let probed = s.states.iter().any(|(_, state)| *state == State::ProbeRtt);
        assert_eq!(probed, probes, "{guards:?}: {:?}", s.states);
        assert!(is_near(s.bbr.min_rtt.get().unwrap().as_secs_f64(), 0.04, 0.1));
    }
}

/// A queue that others keep up hides the round-trip time: then it is measured, guards or not.
#[test]
fn a_longer_round_trip_time_is_found_by_probe_rtt() {
    let mut s = Sender::over(LINK, Guards::ON);
    s.run_to(State::ProbeDown);
    s.link.rtt = ms(50);
    s.run(Duration::from_secs(12));
    assert!(s.states.iter().any(|(_, state)| *state == State::ProbeRtt));
    assert!(is_near(s.bbr.min_rtt.get().unwrap().as_secs_f64(), 0.05, 0.1), "{:?}", s.bbr.min_rtt);
    // The queue is there as before: to see the same time again proves nothing.
    let seen = s.states.len();
    s.run(Duration::from_secs(12));
    let probes = s.states[seen..].iter().filter(|(_, state)| *state == State::ProbeRtt).count();
    assert!(probes >= 2, "{:?}", &s.states[seen..]);
}

/// A short path is not held back for the 200 ms that a long one needs.
#[test]
fn probe_rtt_is_short_on_a_short_path() {
    for (guards, least, most) in [(Guards::ON, ms(20), ms(60)), (Guards::OFF, ms(200), ms(240))] {
        let mut s = Sender::over(Link { rtt: ms(2), ..LINK }, guards);
        s.run_to(State::ProbeDown);
        // What others keep in the queue hides the round-trip time.
        s.link.rtt = ms(3);
        s.run_to(State::ProbeRtt);
        let began = s.now;
        s.run_while(Duration::from_secs(1), |s| s.state() == State::ProbeRtt);
        let took = s.now - began;
        assert!((least..most).contains(&took), "{guards:?}: {took:?}");
    }
}

/// A first packet of a few bytes, as COOKIE ECHO carries, says nothing of the rate.
#[test]
fn the_first_rate_is_that_of_the_initial_window() {
    let mut bbr = Bbr::new(Guards::ON);
    let sent = SentPacket {
        now: Instant::ZERO,
        in_flight_before: 0,
        is_app_limited: false,
        cwnd: 10 * PACKET,
    };
    bbr.on_sent(&sent);
    let rtt = ms(100);
    let window = Window { cwnd: 10 * PACKET, ssthresh: usize::MAX, partial_bytes_acked: 0 };
    let delivery = Delivery {
        now: Instant::ZERO + rtt,
        newly_acked: 700,
        total: 700,
        in_flight: 0,
        rtt: Some(rtt),
        is_window_limited: false,
        is_report_full: false,
        sample: Some(RateSample { delivered: 700, rate: 7000.0, ..RateSample::default() }),
    };
    bbr.on_delivery(window, &LIMITS, &delivery);
    let per_rtt = bbr.pace().unwrap().rate * 0.1;
    assert!(
        is_near(per_rtt, State::Startup.pacing_gain() * (10 * PACKET) as f64, 0.1),
        "{per_rtt}"
    );
}

/// It takes over what a removed path has in flight: a rate of 0 would stop it for ever.
#[test]
fn a_path_that_delivers_before_it_has_sent_anything_has_a_rate() {
    let mut bbr = Bbr::new(Guards::ON);
    let window = Window { cwnd: 10 * PACKET, ssthresh: usize::MAX, partial_bytes_acked: 0 };
    let inherited = Delivery {
        now: Instant::ZERO + ms(100),
        newly_acked: PACKET,
        total: PACKET as u64,
        in_flight: 0,
        rtt: None,
        is_window_limited: false,
        is_report_full: false,
        sample: None,
    };
    bbr.on_delivery(window, &LIMITS, &inherited);
    let in_100_ms = bbr.pace().unwrap().rate * 0.1;
    assert!(in_100_ms >= PACKET as f64, "{in_100_ms}");
}

/// A SACK that has no room for more gaps stops a probe: what was lost since cannot be reported.
#[test]
fn a_full_report_ends_probe_up() {
    let mut s = Sender::over(LINK, Guards::ON);
    s.run_to(State::ProbeUp);
    s.run_while(ms(200), |s| !s.bbr.cycle.is_probe_sample);
    let delivery = Delivery {
        now: s.now,
        newly_acked: PACKET,
        total: s.acked,
        in_flight: s.in_flight(),
        rtt: None,
        is_window_limited: false,
        is_report_full: true,
        sample: Some(RateSample { in_flight: s.in_flight(), ..RateSample::default() }),
    };
    s.bbr.on_delivery(s.window, &LIMITS, &delivery);
    assert_eq!(s.state(), State::ProbeDown);
    assert!(s.bbr.bounds.inflight_longterm < usize::MAX);
}

#[test]
fn achieving_expected_startup_bandwidth_on_a_link_with_aggregation() {
    let mut s = sender(Link { acks_each: ms(15), ..LINK });
    s.run_to(State::Drain);
    assert!(is_near(s.bbr.max_bw.max(), LINK.rate, 0.15), "{}", s.bbr.max_bw.max());
    assert!(s.bbr.aggregation.extra > 0);
}

#[test]
fn achieving_expected_cruise_bandwidth_on_a_link_with_aggregation() {
    let mut s = sender(LINK);
    s.run_to(State::ProbeCruise);
    s.link.acks_each = ms(30);
    s.run(Duration::from_secs(1));
    assert!(s.bbr.aggregation.extra > 10 * PACKET, "{}", s.bbr.aggregation.extra);
    let used = s.run(Duration::from_secs(10));
    assert!(used > 0.93, "{used:.3} of the link");
}

#[test]
fn correctly_managing_sub_packet_bdps() {
    // 64 kbit/s and 20 ms: a sixth of a packet.
    let mut s = sender(Link { rate: 8000.0, rtt: ms(20), ..LINK });
    s.run(Duration::from_secs(30));
    assert!(s.window.cwnd >= 4 * PACKET, "{}", s.window.cwnd);
    let used = s.run(Duration::from_secs(60));
    assert!(used > 0.95, "{used:.3} of the link");
}

#[test]
fn increasing_bandwidth_10x_and_ensuring_full_bandwidth_is_reached() {
    let mut s = sender(LINK);
    s.run(Duration::from_secs(5));
    s.link.rate *= 10.0;
    s.link.queue *= 10;
    s.run(Duration::from_secs(10));
    let used = s.run(Duration::from_secs(10));
    assert!(used > 0.9, "{used:.3} of the link");
}

#[test]
fn decreasing_bandwidth_10x_and_ensuring_max_bandwidth_adapts_down() {
    let mut s = sender(Link { rate: 12_500_000.0, queue: 500 * PACKET, ..LINK });
    s.run(Duration::from_secs(5));
    s.link.rate /= 10.0;
    s.link.queue /= 10;
    s.run(Duration::from_secs(1));
    assert!(s.bbr.bounds.bw_shortterm < 6_000_000.0, "{}", s.bbr.bounds.bw_shortterm);
    s.run(Duration::from_secs(8));
    assert!(is_near(s.bbr.max_bw.max(), s.link.rate, 0.1), "{}", s.bbr.max_bw.max());
}

#[test]
fn one_lost_packet_in_a_small_bdp_slows_only_the_draft_down() {
    let used = |guards| {
        let mut s = Sender::over(Link { rtt: ms(20), loses_each: 100, ..LINK }, guards);
        s.run(Duration::from_secs(5));
        s.run(Duration::from_secs(20))
    };
    let (with, without) = (used(Guards::ON), used(Guards::OFF));
    assert!(with > 0.93 && with > without + 0.05, "{with:.3} and {without:.3}");
}

/// A probe that overflows a queue takes from a flow of CUBIC beside it, which has grown back after
/// K seconds. Without a queue nobody needs that time.
#[test]
fn after_a_probe_overflows_a_queue_the_next_waits_until_cubic_has_grown_back() {
    // 150 packets and room for 120 more: K is about 6 s.
    let link = Link { rtt: ms(120), queue: 120 * PACKET, ..LINK };
    let short = (1.9, 3.2);
    for (yields_with_queue, link, (least, most)) in [
        (true, link, (5.5, 6.5)),
        (false, link, short),
        (true, Link { queue: 30 * PACKET, ..link }, short),
    ] {
        let guards = Guards { yields_with_queue, ..Guards::ON };
        let mut s = Sender::over(link, guards);
        s.run_to(State::ProbeUp);
        s.run_to(State::ProbeDown);
        assert!(s.bbr.cycle.prev_probe_too_high, "{link:?}");
        let began = s.now;
        s.run_to(State::ProbeRefill);
        let waited = (s.now - began).as_secs_f64();
        assert!((least..most).contains(&waited), "{waited:.1} s: {yields_with_queue} {link:?}");
    }
}

#[test]
fn handling_spurious_fast_recovery() {
    // In Startup the losses end the state.
    let mut s = sender(LINK);
    s.run_while(ms(150), |_| true);
    s.link.loses_each = 8;
    s.run_to(State::Drain);
    assert!(s.bbr.bounds.inflight_longterm < usize::MAX);
    s.link.loses_each = 0;
    s.undo();
    assert_eq!(s.state(), State::Startup);
    assert!(!s.bbr.full_pipe.was_reached);
    assert_eq!(s.bbr.bounds.inflight_longterm, usize::MAX, "BBR.undo_inflight_longterm");
    // While it probes they end the probe, which begins again with a refill.
    s.run_to(State::ProbeUp);
    let before = s.bbr.bounds.inflight_longterm;
    s.link.loses_each = 10;
    s.run_to(State::ProbeDown);
    assert!(s.bbr.bounds.inflight_longterm < before && s.bbr.cycle.prev_probe_too_high);
    s.link.loses_each = 0;
    s.undo();
    assert_eq!(s.state(), State::ProbeRefill);
    assert!(s.bbr.bounds.inflight_longterm >= before);
    s.run_to(State::ProbeUp);
    // Between probes they lower the short-term bounds.
    s.run_to(State::ProbeCruise);
    let before = s.window.cwnd;
    s.link.loses_each = 10;
    s.run_while(ms(300), |s| s.bbr.bounds.bw_shortterm.is_infinite());
    assert!(s.bbr.bounds.inflight_shortterm < before);
    s.link.loses_each = 0;
    s.undo();
    assert!(s.bbr.bounds.bw_shortterm.is_infinite(), "BBR.undo_bw_shortterm");
    assert_eq!(s.bbr.bounds.inflight_shortterm, usize::MAX, "BBR.undo_inflight_shortterm");
    assert!(s.window.cwnd >= before, "{} of {before}", s.window.cwnd);
    // What is undone is undone once.
    s.bbr.bounds.bw_shortterm = 1.0;
    s.undo();
    assert_eq!(s.bbr.bounds.bw_shortterm, 1.0);
}

#[test]
fn handling_spurious_rto_recovery() {
    let mut s = sender(LINK);
    s.run_to(State::ProbeCruise);
    let before = (s.window.cwnd, s.bbr.bounds.bw_shortterm);
    s.bbr.on_losses(s.window);
    s.window = s.bbr.on_timeout(s.window, &bottleneck::LIMITS);
    assert_eq!(s.window.cwnd, PACKET);
    s.undo();
    assert_eq!((s.window.cwnd, s.bbr.bounds.bw_shortterm), before);
    assert_eq!(s.state(), State::ProbeCruise);
    assert!(s.run(ms(400)) > 0.9, "it goes on");
}

#[test]
fn losses_of_earlier_round_trips_are_undone_too() {
    let mut s = sender(LINK);
    s.run_to(State::ProbeCruise);
    s.bbr.on_losses(s.window);
    for _ in 0..3 {
        // One loss in each round trip, all of one flight.
        s.bbr.note_loss(s.bbr.total);
        s.run(ms(60));
    }
    assert!(s.bbr.bounds.bw_shortterm < f64::INFINITY);
    s.undo();
    assert!(s.bbr.bounds.bw_shortterm.is_infinite());
}

#[test]
fn low_and_missing_samples_do_not_end_startup_if_others_show_growth() {
    let ends = |guards| {
        let mut bbr = Bbr::new(guards);
        bbr.rounds.starts = true;
        bbr.check_full_pipe(&RateSample { rate: 1e6, ..RateSample::default() });
        for round in 1..=4 {
            // Packets overtake each other: the round trip begins with a sample that says nothing.
            bbr.rounds.starts = true;
            bbr.check_full_pipe(&RateSample { rate: 0.0, ..RateSample::default() });
            bbr.rounds.starts = false;
            let rate = 1e6 * f64::from(1 << round);
            bbr.check_full_pipe(&RateSample { rate, ..RateSample::default() });
        }
        bbr.full_pipe.was_reached
    };
    assert!(!ends(Guards::ON));
    assert!(ends(Guards::OFF), "the draft as it is");
}

#[test]
fn after_a_timeout_one_packet_is_sent_and_then_what_was() {
    let mut s = sender(LINK);
    s.run_to(State::ProbeCruise);
    let before = s.window.cwnd;
    s.window = s.bbr.on_timeout(s.window, &bottleneck::LIMITS);
    assert_eq!(s.window.cwnd, PACKET);
    s.run(ms(200));
    assert!(s.window.cwnd * 10 >= before * 9, "{} of {before}", s.window.cwnd);
}

#[test]
fn the_queue_that_it_makes_in_a_deep_buffer_is_one_bdp_at_most() {
    let mut s = sender(Link { queue: 2000 * PACKET, ..LINK });
    s.run(Duration::from_secs(2));
    let bdp = s.bdp();
    s.run_while(Duration::from_secs(20), |s| {
        let queue = s.in_flight().saturating_sub(bdp);
        assert!(queue <= bdp * 5 / 4, "{queue} bytes at {:?}, a BDP is {bdp}", s.state());
        true
    });
}
