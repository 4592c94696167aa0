//! The mTCP paper: striping, one path for SACKs, failures, and bottlenecks that paths share.

use std::time::Duration;

use manypath_proto::PathState::{Active, PotentiallyFailed};
use manypath_proto::{Event, Instant, PathId, SuppressReason};
use manypath_sim::chunk_type::{DATA, SACK};
use manypath_sim::{Pair, PairBuilder, QueueLimit, path_state, secs};

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
