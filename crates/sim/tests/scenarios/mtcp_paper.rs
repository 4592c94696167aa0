//! The mTCP paper: striping, one path for SACKs, failures, and bottlenecks that paths share.

use std::time::Duration;

use manypath_proto::PathState::{Active, PotentiallyFailed};
use manypath_proto::{ElectReason, Event, Instant, PathId, RestoreReason, SuppressReason};
use manypath_sim::chunk_type::{DATA, SACK};
use manypath_sim::scenario::{RunOptions, Scenario};
use manypath_sim::{Pair, PairBuilder, PathSpec, QueueLimit, SharedResult, path_state, secs};

use crate::MIB;

const P0: PathId = PathId(0);
const P1: PathId = PathId(1);

/// Two paths as in the paper's Table 2: round-trip times of 80 and 103 ms.
fn pair() -> PairBuilder {
    let t = Pair::two_paths("mtcp").rate_mbps(10.0).queue(QueueLimit::Packets(60)).seed(7);
    t.path(0, |p| p.delay_ms(40.0)).path(1, |p| p.delay_ms(51.5))
}

fn time_of(t: &Pair, accepts: impl Fn(&Event) -> bool) -> Option<Instant> {
    t.a.events().iter().find(|(_, event)| accepts(event)).map(|(at, _)| *at)
}

fn is_elected(event: &Event) -> bool {
    matches!(event, Event::PrimaryElected { .. })
}

#[test]
fn both_paths_carry_data_and_one_carries_all_sacks() {
    let mut t = pair().connect();
    t.a.send_file(16 * MIB);
    let result = t.run_to_end(secs(60)).result();
    assert!(result.completed && result.goodput_bps > 15e6, "{result:#?}");
    let z = t.z.node();
    assert_eq!(t.sent(SACK).by(z).on(P1).count(), 0, "mTCP paper, section 3.1.5");
    assert!(t.sent(SACK).by(z).on(P0).count() > 1000);
}

#[test]
fn sacks_leave_the_path_of_the_handshake_for_a_better_one_and_stay_there() {
    let t = Pair::two_paths("mtcp").rate_mbps(10.0).queue(QueueLimit::Packets(60)).seed(7);
    let far = |p: PathSpec| p.delay_ms(100.0).loss(0.01);
    let mut t = t.path(0, far).path(1, |p| p.delay_ms(5.0)).connect();
    t.a.send_file(64 * MIB);
    t.run_until(secs(23));
    let z = t.z.node();
    let (first, second) = (t.sent(SACK).by(z).on(P0).count(), t.sent(SACK).by(z).on(P1).count());
    assert!(first < 60 && second > 5000, "mTCP paper, section 3.3: {first} and {second}");
    assert_eq!(t.sent(SACK).by(z).on(P0).since(secs(2)).count(), 0);
    let elections = |host: &manypath_sim::Host| -> Vec<_> {
        host.events().iter().filter(|(_, e)| is_elected(e)).map(|(_, e)| e.clone()).collect()
    };
    let elected =
        |by_peer| [Event::PrimaryElected { path: P1, by_peer, reason: ElectReason::Better }];
    assert_eq!(elections(&t.a), elected(true));
    assert_eq!(elections(&t.z), elected(false));
}

#[test]
fn a_primary_that_fails_is_replaced_within_three_seconds() {
    let mut t = pair().connect();
    t.a.send_file(64 * MIB);
    t.run_until(secs(20));
    t.net.path(0).cut();
    let failed = t.run_until_event(path_state(P0, PotentiallyFailed));
    assert!((21.5..22.7).contains(&failed.as_secs_f64()), "2 RTO of 1 s: {failed:?}");
    let elected = t.run_until_event(is_elected);
    assert!(elected < secs(23), "the paper: about 3 s; here at {elected:?}");
    let result = t.run_to_end(secs(120)).result();
    assert!(result.completed && result.max_delivery_gap_s < 3.2, "{result:#?}");
    assert_eq!(t.sent(DATA).on(P0).since(elected).count(), 0);
    assert!(t.sent(SACK).by(t.z.node()).on(P1).since(elected).count() > 1000);
    assert_eq!(t.z.received_bytes(), 64 * MIB);
}

#[test]
fn an_auxiliary_that_fails_stops_nothing_and_returns() {
    let mut t = pair().connect();
    t.a.send_file(64 * MIB);
    t.run_until(secs(20));
    t.net.path(1).cut_for(Duration::from_secs(6));
    let failed = t.run_until_event(path_state(P1, PotentiallyFailed));
    assert!((21.5..22.7).contains(&failed.as_secs_f64()), "{failed:?}");
    let back = t.run_until_event(path_state(P1, Active));
    assert!(back > secs(26) && back < secs(36), "{back:?}");
    let result = t.run_to_end(secs(120)).result();
    assert!(result.completed && result.max_delivery_gap_s < 3.0, "{result:#?}");
    assert_eq!(time_of(&t, is_elected), None, "the primary works");
    assert!(t.sent(DATA).on(P1).since(back).count() > 500);
}

#[test]
fn both_paths_fail_and_return() {
    let mut t = pair().connect();
    t.a.send_file(16 * MIB);
    t.run_until(secs(5));
    for path in [0, 1] {
        t.net.path(path).cut_for(Duration::from_secs(8));
    }
    let result = t.run_to_end(secs(120)).result();
    assert!(result.completed, "{result:#?}");
}

#[test]
fn with_a_peer_that_knows_nothing_of_it_a_failed_path_is_an_auxiliary() {
    for path in [0, 1] {
        let mut t = pair().set_z("ack_path", "last_received").set_z("failure", "pf").connect();
        t.a.send_file(32 * MIB);
        t.run_until(secs(5));
        t.net.path(path).cut();
        let failed = t.run_until_event(path_state(PathId(path as u8), PotentiallyFailed));
        assert!(failed < secs(8), "path {path}: {failed:?}");
        let result = t.run_to_end(secs(120)).result();
        assert!(result.completed && result.max_delivery_gap_s < 3.2, "path {path}: {result:#?}");
        assert_eq!(time_of(&t, is_elected), None);
    }
}

#[test]
fn the_sacks_of_five_paths_leave_room_on_one() {
    // The paths of the paper's Fig. 3. TSNs of the slower ones are always missing, and a SACK lists
    // about a hundred blocks.
    let run = |sack_gaps_wait: &str| {
        let paths = [26.0, 38.0, 50.0, 62.0, 73.5].map(|ms| PathSpec::new().delay_ms(ms));
        let t = Pair::paths("mtcp", paths.into()).profile("fast").rate_mbps(16.0);
        let t = t.queue(QueueLimit::Bytes(132_768)).set("shared_congestion", "off");
        // The sizes are known: what is compared differs by little more than the moments at which
        // queues overflow.
        let t = t.set("pmtu_discovery", "false");
        let mut t = t.set("sack_gaps_wait", sack_gaps_wait).lean().seed(1).connect();
        t.a.send_file(96 * MIB);
        let result = t.run_to_end(secs(60)).result();
        assert!(result.completed, "{result:#?}");
        let back = &result.paths[0];
        (result.goodput_bps / 80e6, back.return_packets_dropped)
    };
    let ((each, dropped), (few, none)) = (run("false"), run("true"));
    assert!(dropped > 1000, "one for each packet: {each} of the rates, {dropped} lost");
    assert!(few > each + 0.02 && none == 0, "{few} instead of {each} of the rates, {none} lost");
}

#[test]
fn a_path_a_thousand_times_slower_is_given_up_and_the_transfer_goes_on() {
    let slow = |omega: &str| {
        let t = pair().set("suppress_below", omega).set("receive_buffer", "1 MiB");
        let mut t = t.path(1, |p| p.rate_mbps(0.016)).connect();
        t.a.send_file(64 * MIB);
        t.run_until(secs(60));
        t
    };
    let t = slow("10");
    let suppressed =
        |e: &Event| matches!(e, Event::PathSuppressed { path: P1, reason: SuppressReason::Slow });
    let at = time_of(&t, suppressed).expect("suppressed");
    assert!(at < secs(25), "after one review of 10 s: {at:?}");
    let without = slow("off");
    assert_eq!(time_of(&without, suppressed), None);
    let ratio = t.z.received_bytes() as f64 / without.z.received_bytes() as f64;
    assert!(ratio > 1.2, "mTCP paper, Fig. 12: {ratio}");
}

#[test]
fn sacks_leave_a_path_that_is_set_aside_and_both_ends_say_why() {
    let mut t = pair().connect();
    t.a.send_file(64 * MIB);
    t.run_until(secs(2)); // it is elected before it is slow
    t.net.path(0).set_rate_mbps(0.2);
    let set_aside = t.run_until_event(|e| {
        matches!(e, Event::PathSuppressed { path: P0, reason: SuppressReason::Slow })
    });
    t.run_until(set_aside + Duration::from_secs(20));
    let elections = |host: &manypath_sim::Host| -> Vec<_> {
        host.events().iter().filter(|(_, e)| is_elected(e)).map(|(_, e)| e.clone()).collect()
    };
    let elected = |by_peer, reason| [Event::PrimaryElected { path: P1, by_peer, reason }];
    assert_eq!(elections(&t.a), elected(true, ElectReason::SetAside), "it does not fail");
    assert_eq!(
        elections(&t.z),
        elected(false, ElectReason::Silent),
        "as far as the receiver knows"
    );
}

#[test]
fn one_window_for_all_paths_gains_less_than_one_each() {
    let bytes = |combined: &str| {
        let mut t = pair().loss(0.002).set("combined_window", combined).lean().connect();
        t.a.send_file(256 * MIB);
        t.run_until(secs(40));
        t.z.received_bytes() as f64
    };
    let ratio = bytes("true") / bytes("false");
    assert!((0.2..0.75).contains(&ratio), "mTCP paper, Fig. 3: {ratio}");
}

/// RFC 8382's method, and the time that it takes: 60 intervals, and ten comparisons.
const RFC_8382: [(&str, &str); 3] = [
    ("transport.shared_congestion", "rfc8382"),
    ("flow.mtcp.until", "48 s"),
    ("time_limit", "50 s"),
];

/// The verdict on a path whose relay is behind the direct link, with these settings.
fn behind_the_direct_link(settings: &[(&str, &str)], seed: u64) -> SharedResult {
    let text = include_str!("behind_the_direct_link.toml");
    let mut scenario = Scenario::parse("behind_the_direct_link.toml", text).expect("valid");
    for (key, value) in settings {
        scenario.set(key, value).expect("known");
    }
    let point = &scenario.points().expect("one")[0];
    let result = point.run.run(seed, &RunOptions::default()).expect("runs").result;
    result.transfer.shared.expect("looked for")
}

#[test]
fn a_relay_behind_the_direct_path_is_given_up_within_fifteen_seconds() {
    let found = |[rule, verdict, interval]: [&str; 3], seeds: std::ops::RangeInclusive<u64>| {
        let settings = [
            // This is about the verdicts: what skips a TSN moves the losses that they are made of.
            ("transport.ack_tests", "false"),
            ("transport.shared_congestion", rule),
            ("transport.shared_verdict", verdict),
            ("transport.shared_interval", interval),
        ];
        let run = |seed| {
            let shared = behind_the_direct_link(&settings, seed);
            let at = shared.shared_bottleneck_detected_s?;
            assert_eq!(shared.paths_used, 1, "seed {seed}");
            Some(at)
        };
        let mut times: Vec<_> = seeds.filter_map(run).filter(|at| *at < 15.0).collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let by_trial = found(["trial", "sequential", "100 ms"], 1..=10);
    assert!(by_trial.len() == 10 && by_trial[4] < 5.0, "by trial after {by_trial:?} s");
    let by_losses = found(["mtcp", "sequential", "100 ms"], 1..=10);
    assert!(by_losses.len() >= 9 && by_losses[4] > by_trial[4], "by losses after {by_losses:?} s");
    let after_waiting = found(["mtcp", "wait", "200 ms"], 1..=3);
    assert_eq!(after_waiting, [0.0; 0], "the paper's rule waits for longer");
}

#[test]
fn equal_paths_that_lose_at_the_same_times_are_not_taken_for_one() {
    let text = include_str!("equal_ways.toml");
    let runs = |rule: &str| -> Vec<_> {
        let mut scenario = Scenario::parse("equal_ways.toml", text).expect("valid");
        scenario.set("transport.shared_congestion", rule).expect("known");
        let point = &scenario.points().expect("one")[0];
        let run = |seed| point.run.run(seed, &RunOptions::default()).expect("runs").result.transfer;
        (1..=4).map(run).collect()
    };
    for (by_trial, without) in runs("trial").iter().zip(runs("off")) {
        let shared = by_trial.shared.as_ref().expect("looked for");
        assert_eq!((shared.shared_bottlenecks, shared.paths_used), (0, 2));
        let (tried, off) = (by_trial.goodput_bps, without.goodput_bps);
        assert!(tried > 0.95 * off, "trials cost little: {tried} of {off} bit/s");
    }
    let mut by_losses = runs("mtcp").into_iter().filter_map(|r| r.shared);
    assert!(by_losses.any(|shared| shared.paths_used == 1), "by their losses they are");
}

#[test]
fn statistics_of_delays_tell_one_bottleneck_from_two() {
    for seed in 1..=3 {
        let shared = behind_the_direct_link(&RFC_8382, seed);
        let at = shared.shared_bottleneck_detected_s.expect("found");
        assert!(at > 24.0, "seed {seed}: {at}");
        assert_eq!(shared.paths_used, 1, "seed {seed}");
    }
    let mut two = pair().set("shared_congestion", "rfc8382").connect();
    two.a.send_file(128 * MIB);
    two.run_until(secs(45));
    assert_eq!(time_of(&two, |e| matches!(e, Event::SharedBottleneck { .. })), None);
    assert!(two.a.shared_pairs()[0].events.0 == 10, "compared: {:?}", two.a.shared_pairs());
}

#[test]
fn paths_through_one_queue_of_which_one_loses_much_are_two() {
    // RFC 8382, section 3.3.1, step 5: what the delays have in common the losses do not.
    let compared = |loss: &str, seed| {
        let more = [("transport.suppress_below", "off"), ("link.beyond.loss", loss)];
        let shared = behind_the_direct_link(&[&RFC_8382[..], &more].concat(), seed);
        assert_eq!(shared.shared_pairs[0].events, (10, 10), "compared to the end");
        shared.shared_bottlenecks
    };
    for seed in 1..=4 {
        assert_eq!((compared("0 %", seed), compared("15 %", seed)), (1, 0), "seed {seed}");
    }
}

/// Three paths of different RTT, of which two may carry data; compared every two seconds.
fn two_of_three() -> Pair {
    let paths = [20.0, 30.0, 40.0].map(|ms| PathSpec::new().delay_ms(ms));
    let t = Pair::paths("mtcp", paths.into()).rate_mbps(10.0).queue(QueueLimit::Packets(60));
    let mut t = t.seed(3).set("paths_max", "2").set("path_review_interval", "2 s").connect();
    t.a.send_file(64 * MIB);
    t
}

#[test]
fn a_path_that_gets_worse_makes_room_for_a_spare() {
    let mut t = two_of_three();
    t.run_until(secs(15));
    t.net.path(0).set_delay(Duration::from_millis(300));
    let spare =
        |e: &Event| matches!(e, Event::PathSuppressed { path: P0, reason: SuppressReason::Spare });
    t.run_until(secs(30));
    let latest = t.a.events().iter().rev().find(|(_, event)| spare(event)).map(|(at, _)| *at);
    let latest = latest.expect("set aside at some review");
    assert!(latest < secs(23), "within three reviews, and for good: {latest:?}");
    let by = |path| t.sent(DATA).on(PathId(path)).since(latest + Duration::from_secs(1)).count();
    assert_eq!(by(0), 0);
    assert!(by(1) > 1000 && by(2) > 1000, "{} {}", by(1), by(2));
    assert_eq!(t.a.paths().iter().filter(|p| p.suppressed.is_none()).count(), 2);
}

#[test]
fn a_spare_takes_the_place_of_a_path_that_fails_at_once() {
    let mut t = two_of_three();
    t.run_until(secs(5));
    let used: Vec<_> =
        t.a.paths().iter().filter(|p| p.suppressed.is_none()).map(|p| p.id).collect();
    assert_eq!(used.len(), 2);
    t.net.path(used[0].0.into()).cut();
    let failed = t.run_until_event(path_state(used[0], PotentiallyFailed));
    let restored =
        |e: &Event| matches!(e, Event::PathRestored { reason: RestoreReason::TooFew, .. });
    let (at, _) = t.a.events().iter().rev().find(|(_, e)| restored(e)).expect("a spare comes");
    assert_eq!(*at, failed);
    let result = t.run_to_end(secs(200)).result();
    assert!(result.completed && result.max_delivery_gap_s < 3.2, "{result:#?}");
}
