//! Coming back after outages of every path there is, with the profile `fast`; and paths that work
//! one way only.

use std::time::Duration;

use manypath_proto::{AssocClosed, Instant, PathId};
use manypath_sim::chunk_type::{DATA, HEARTBEAT, SACK};
use manypath_sim::{Pair, PairBuilder, secs};

use crate::MIB;

/// The first of them keeps to its primary until that has had Path.Max.Retrans timeouts, whatever
/// the other path does.
const PRESETS: [&str; 6] = ["sctp", "sctp-pf", "cmt", "cmt-pf", "mtcp", "msacmt-rt"];

fn fast(paths: usize, preset: &str) -> PairBuilder {
    let builder = if paths == 1 { Pair::one_path(preset) } else { Pair::two_paths(preset) };
    builder.profile("fast").rate_mbps(20.0).delay_ms(20.0)
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// How long after `end` the receiver's application gets more.
fn pause_after(t: &mut Pair, end: Instant) -> Duration {
    t.run_until(end);
    let had = t.z.received_bytes();
    assert!(t.run_until_true(end + ms(30_000), |t| t.z.received_bytes() > had), "at {end:?}");
    t.net.now() - end
}

/// Cuts all paths at two seconds for that long. How long data pauses afterwards.
fn pause_after_outage(paths: usize, preset: &str, outage: u64) -> Duration {
    let mut t = fast(paths, preset).connect();
    t.a.send_file(256 * MIB);
    for path in 0..paths {
        t.net.path(path).at(secs(2)).cut_for(ms(outage));
    }
    pause_after(&mut t, secs(2) + ms(outage))
}

#[test]
fn data_flows_a_second_after_the_end_of_an_outage_of_the_only_path() {
    for preset in PRESETS {
        for outage in [500, 1000, 2000, 5000, 10_000, 20_000, 30_000] {
            let pause = pause_after_outage(1, preset, outage);
            println!("{preset}: outage of {outage} ms, {pause:?} more");
            assert!(pause <= ms(1000), "{preset}: {outage} ms out, and {pause:?} more");
        }
    }
}

#[test]
fn data_flows_a_second_after_the_end_of_an_outage_of_both_paths() {
    for preset in &PRESETS[1..] {
        for outage in [500, 2000, 5000, 20_000, 30_000] {
            let pause = pause_after_outage(2, preset, outage);
            println!("{preset}: outage of {outage} ms, {pause:?} more");
            assert!(pause <= ms(1000), "{preset}: {outage} ms out, and {pause:?} more");
        }
    }
}

#[test]
fn the_one_of_two_paths_that_comes_back_carries_everything() {
    for preset in &PRESETS[1..] {
        for returns in 0..2 {
            let mut t = fast(2, preset).connect();
            t.a.send_file(256 * MIB);
            t.net.path(returns).at(secs(2)).cut_for(ms(10_000));
            t.net.path(1 - returns).at(secs(2)).cut();
            let pause = pause_after(&mut t, secs(12));
            println!("{preset}: path {returns}: {pause:?}");
            assert!(pause <= ms(1000), "{preset}: path {returns} is back, and {pause:?} more");
        }
    }
}

#[test]
fn a_default_route_that_flaps_costs_a_second_beyond_each_flap() {
    for (down, up) in [(3000, 4000), (700, 700), (300, 200), (8000, 1500)] {
        let mut t = fast(1, "cmt-pf").connect();
        t.a.send_file(256 * MIB);
        for flap in 0..10 {
            t.net.path(0).at(secs(2) + ms(flap * (down + up))).cut_for(ms(down));
        }
        let mut last = secs(2);
        for flap in 0..10 {
            let end = secs(2) + ms(flap * (down + up) + down);
            t.run_until(end);
            let had = t.z.received_bytes();
            let next = end + ms(up);
            if t.run_until_true(next, |t| t.z.received_bytes() > had) {
                let pause = t.net.now() - end;
                assert!(pause <= ms(1000), "{down} and {up} ms: flap {flap}, {pause:?}");
                last = t.net.now();
            } else {
                assert!(up < 1000, "{down} and {up} ms: nothing between flap {flap} and the next");
            }
        }
        let end = secs(2) + ms(10 * (down + up) - up);
        let pause = t.net.now() - end;
        println!("{down} ms down, {up} ms up: the last data at {last:?}, now {pause:?} after");
        assert!(t.run_until_true(end + ms(1000), |t| t.z.last_received() > Some(end)));
    }
}

#[test]
fn the_lone_path_is_probed_twice_a_second_while_it_carries_data() {
    // Probes of the path's size are heartbeats, too: without them these can be counted.
    let mut t = fast(1, "cmt-pf").set("pmtu_discovery", "false").connect();
    t.a.send_file(64 * MIB);
    t.net.path(0).at(secs(2)).cut_for(ms(10_000));
    t.run_until(secs(12));
    let probes = |from, to| t.sent(HEARTBEAT).by(t.a.node()).since(from).until(to).times();
    let at_first = probes(secs(4), secs(8));
    assert!((7..=9).contains(&at_first.len()), "hb_probe_max 500 ms: {at_first:?}");
    let later = probes(secs(8), secs(12));
    assert!((4..=5).contains(&later.len()), "at most 900 ms apart: {later:?}");
    let data = t.sent(DATA).since(secs(4)).until(secs(12)).count();
    assert!(data <= 4, "T3-rtx backs off all the same: {data}");
}

#[test]
fn a_peer_that_is_gone_is_given_up_after_the_same_time_as_without_probes() {
    for preset in PRESETS {
        let given_up = |probes: &str| {
            let mut t = fast(2, preset).set("probe_with_data", probes).connect();
            t.a.send_file(256 * MIB);
            t.run_until(secs(2));
            t.net.path(0).cut();
            t.net.path(1).cut();
            t.run_until_true(secs(600), |t| t.a.closed().is_some());
            assert_eq!(t.a.closed(), Some(&AssocClosed::PathsFailed));
            t.net.now() - secs(2)
        };
        let (with, without) = (given_up("true"), given_up("false"));
        println!("{preset}: given up after {with:?}, {without:?} without probes");
        assert!(with + ms(10) >= without, "{preset}: {with:?}, and {without:?} without probes");
        assert!(with <= without + ms(10_000), "{preset}: {with:?}, and {without:?} without probes");
    }
}

#[test]
fn what_an_outage_swallowed_arrives_once_and_in_order() {
    let mut t = fast(2, "cmt-pf").connect();
    t.a.send_file(24 * MIB);
    t.z.send_file(4 * MIB);
    for (path, at, length) in [(0, 2, 3000), (1, 3, 3000), (0, 8, 1000), (1, 8, 4000)] {
        t.net.path(path).at(secs(at)).cut_for(ms(length));
    }
    t.run_to_end(secs(60));
    assert_eq!((t.z.received_bytes(), t.a.received_bytes()), (24 * MIB, 4 * MIB));
}

/// Path 1 works away from `a` only, path 2 towards it only.
fn cut_opposite_ways(t: &mut Pair) {
    t.net.path(0).reverse().cut();
    t.net.path(1).forward().cut();
}

#[test]
fn with_opposite_one_way_failures_of_two_paths_the_transfer_goes_on() {
    for preset in PRESETS {
        let mut t = fast(2, preset).connect();
        t.a.send_file(16 * MIB);
        t.run_until(secs(2));
        cut_opposite_ways(&mut t);
        let pause = pause_after(&mut t, secs(2) + ms(100));
        let begin = t.net.now();
        t.run_to_end(secs(60));
        let took = t.net.now() - begin;
        println!("{preset}: pause {pause:?}, the rest in {took:?}");
        assert_eq!(t.z.received_bytes(), 16 * MIB, "{preset}: {:?} {:?}", t.a.paths(), t.z.paths());
        // Retransmissions of `sctp` take the other path, which does not bring them.
        let most = if preset == "sctp" { ms(6000) } else { ms(3000) };
        assert!(pause <= most, "{preset}: {pause:?}");
        assert!(took <= ms(20_000), "{preset}: {took:?}");
        let sacks = t.sent(SACK).by(t.z.node()).on(PathId(1)).since(secs(3)).count();
        // The last of them sends NR-SACKs.
        assert!(
            sacks > 20 || preset == "msacmt-rt",
            "{preset}: {sacks} SACKs on the path that brings them"
        );
    }
}

#[test]
fn with_opposite_one_way_failures_both_ends_send_and_end_well() {
    let mut t = fast(2, "cmt-pf").connect();
    t.a.send_file(8 * MIB);
    t.z.send_file(8 * MIB);
    t.run_until(secs(2));
    cut_opposite_ways(&mut t);
    t.run_to_end(secs(60));
    assert_eq!((t.z.received_bytes(), t.a.received_bytes()), (8 * MIB, 8 * MIB));
    t.a.shutdown();
    t.run_until(secs(120));
    for host in [&t.a, &t.z] {
        assert_eq!(host.closed(), Some(&AssocClosed::Shutdown));
    }
}

#[test]
fn one_way_failures_that_change_sides_do_not_end_the_transfer() {
    let mut t = fast(2, "cmt-pf").connect();
    t.a.send_file(48 * MIB);
    for round in 0..6 {
        t.run_until(secs(2 + 5 * round));
        t.net.path(0).restore();
        t.net.path(1).restore();
        let (one, other) = if round % 2 == 0 { (0, 1) } else { (1, 0) };
        t.net.path(one).reverse().cut();
        t.net.path(other).forward().cut();
    }
    t.run_to_end(secs(120));
    assert_eq!(t.z.received_bytes(), 48 * MIB);
}
