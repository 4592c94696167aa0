//! Paths that carry packets of fewer than 1500 bytes, or of more (RFC 8899): how soon that is
//! found, and what is left.

use std::time::Duration;

use manypath_proto::{Event, Instant, MtuReason, PathId, PathState};
use manypath_sim::{Pair, PathSpec, secs};

/// When the size falls.
const FALL: Instant = secs(5);

/// Pairs of hosts on the profile of the command line.
fn fast(paths: Vec<PathSpec>) -> manypath_sim::PairBuilder {
    let preset = if paths.len() == 1 { "sctp-pf" } else { "cmt-pf" };
    Pair::paths(preset, paths).profile("fast").delay_ms(20.0).lean()
}

/// `count` paths of 10 Mbit/s, on which only packets of up to `mtu` bytes pass.
fn narrow(count: usize, mtu: u32, icmp: bool) -> Vec<PathSpec> {
    vec![PathSpec::new().mtu(mtu, icmp); count]
}

/// User bytes from `a` to `z` in ten seconds, from five after `FALL` on: well after the changes.
fn later(t: &mut Pair) -> u64 {
    t.run_until(FALL + Duration::from_secs(5));
    let before = t.z.received_bytes();
    t.run_for(Duration::from_secs(10));
    t.z.received_bytes() - before
}

/// The same where both ends know the size from the start, and need not look for it.
fn known(count: usize, mtu: u32) -> u64 {
    let t = fast(narrow(count, mtu, true)).set("pmtu_discovery", "false");
    let mut t = t.set("mtu", &mtu.to_string()).connect();
    t.a.send_file(u64::MAX);
    later(&mut t)
}

/// How often a path changed its state after that time.
fn flips(t: &Pair, since: Instant) -> usize {
    let events = t.a.events().iter().filter(|(at, _)| *at >= since);
    events.filter(|(_, event)| matches!(event, Event::PathState { .. })).count()
}

/// The sizes that a path had at the sender, one after the other.
fn sizes(t: &Pair, of: PathId) -> Vec<(Instant, usize, MtuReason)> {
    let size = |(at, event): &(Instant, Event)| match event {
        Event::PathMtu { path, mtu, reason } if *path == of => Some((*at, *mtu, *reason)),
        _ => None,
    };
    t.a.events().iter().filter_map(size).collect()
}

const ALL: [(u32, bool); 6] =
    [(1420, true), (1420, false), (1280, true), (1280, false), (576, true), (576, false)];

#[test]
fn a_path_that_is_narrow_from_the_start_gives_nine_tenths_of_what_it_can() {
    for count in [1, 2] {
        for (mtu, icmp) in ALL {
            let case = format!("{count} paths, {mtu} bytes, ICMP {icmp}");
            let mut t = fast(narrow(count, mtu, icmp)).connect();
            t.a.send_file(u64::MAX);
            let (got, can) = (later(&mut t), known(count, mtu));
            assert!(got * 10 >= can * 9, "{case}: {got} of {can} bytes");
            let result = t.result();
            assert!(result.max_delivery_gap_s <= 3.0, "{case}: {result:#?}");
            for path in &result.paths {
                let near = mtu as usize - 8..=mtu as usize;
                assert!(near.contains(&path.stats.mtu), "{case}: {} found", path.stats.mtu);
                assert_eq!(path.stats.state, PathState::Active, "{case}");
            }
            assert_eq!(flips(&t, secs(2)), 0, "{case}: {:?}", t.a.events());
        }
    }
}

/// The size of the last of `count` paths falls while data flows.
fn falls(count: usize, mtu: u32, icmp: bool) -> Pair {
    let mut t = fast(vec![PathSpec::new().each(|link| link.icmp = icmp); count]).connect();
    t.net.path(count - 1).at(FALL).set_mtu(mtu);
    t.a.send_file(u64::MAX);
    t
}

#[test]
fn a_size_that_falls_in_mid_transfer_costs_a_pause_and_no_path() {
    for count in [1, 2] {
        for (mtu, icmp) in ALL {
            let case = format!("{count} paths, {mtu} bytes, ICMP {icmp}");
            let mut t = falls(count, mtu, icmp);
            let (got, can) = (later(&mut t), known(count, mtu));
            assert!(got * 10 >= can * 9, "{case}: {got} of {can} bytes");
            let gap = t.result().max_delivery_gap_s;
            assert!(gap <= 3.0, "{case}: a pause of {gap} s");
            let last = PathId(count as u8 - 1);
            let found = sizes(&t, last).last().expect("it was found").1;
            assert!((mtu as usize - 8..=mtu as usize).contains(&found), "{case}: {found} found");
            // The first timeout may look like a failure, and the answers to the probes end it.
            assert!(flips(&t, FALL) <= 2, "{case}: {:?}", t.a.events());
            assert_eq!(t.a.paths()[last.0 as usize].state, PathState::Active, "{case}");
        }
    }
}

#[test]
fn through_a_relay_alone_packets_are_found_that_pass() {
    // A relay's header of four bytes is carried on links of 1500; what is too long is lost in
    // silence, as the relay does.
    let mut t = fast(narrow(1, 1496, false)).connect();
    t.a.send_file(u64::MAX);
    t.z.send_file(u64::MAX);
    let (got, can) = (later(&mut t), known(1, 1496));
    assert!(got * 10 >= can * 9, "{got} of {can} bytes");
    let found = [&t.a, &t.z].map(|host| host.paths()[0].mtu);
    assert_eq!(found, [1496, 1496], "neither end was told");
}

#[test]
fn sizes_of_9000_and_1280_bytes_are_used_together() {
    let wide = PathSpec::new().each(|link| link.mtu = Some(9000));
    let mut t = fast(vec![wide, PathSpec::new().mtu(1280, false)]).packet_log(true).connect();
    t.a.send_file(u64::MAX);
    t.run_until(secs(10));
    let mtus: Vec<_> = t.a.paths().iter().map(|path| path.mtu).collect();
    assert_eq!(mtus, [9000, 1280]);
    // Both are used to the full: chunks for 1280 bytes, several of them in each packet of the other
    // path.
    let result = t.result();
    let mean = |path: usize| {
        result.paths[path].stats.counters.bytes_sent
            / result.paths[path].stats.counters.packets_sent
    };
    assert!(mean(0) > 6000, "{} bytes in a packet of path 1", mean(0));
    assert!((900..=1252).contains(&mean(1)), "{} bytes in a packet of path 2", mean(1));
    assert!(result.goodput_bps > 0.85 * 20e6, "{}", result.goodput_bps);
}

#[test]
fn a_size_that_grows_again_is_found_within_ten_minutes() {
    let mut t = falls(1, 1280, false);
    t.run_until(secs(10));
    t.a.send(0, 1);
    t.net.path(0).set_mtu(None);
    t.run_until(secs(12));
    assert_eq!(t.a.paths()[0].mtu, 1280);
    let found = t.run_until_event(|event| matches!(event, Event::PathMtu { mtu: 1500, .. }));
    assert!(found <= secs(620), "{found:?}");
}

#[test]
fn what_was_cut_for_larger_packets_arrives_in_fragments_or_on_another_path() {
    for count in [1, 2] {
        let mut t = falls(count, 1280, false);
        t.run_until(secs(8));
        let fragmented: u64 =
            t.net.path_stats(count - 1).0.iter().map(|link| link.fragmented).sum();
        assert!(fragmented <= 400, "no more than was in flight: {fragmented}");
        if count == 1 {
            assert!(fragmented > 0, "there is no other way for it");
        }
    }
}

#[test]
fn the_papers_profiles_send_packets_of_one_size_and_no_probes() {
    for profile in ["rfc9260", "2006", "ns2", "ns2-3.7", "ns2-3.5", "ns2-3.4"] {
        let mut t = Pair::one_path("sctp").profile(profile).lean().connect();
        t.a.send_file(1_000_000);
        t.run_to_end(secs(100));
        let path = &t.a.paths()[0];
        assert_eq!((path.mtu, path.counters.size_probes_sent), (1500, 0), "{profile}");
    }
}

#[test]
fn a_clean_path_is_as_fast_as_one_whose_size_is_known() {
    for count in [1, 2] {
        let run = |discovers: &str| {
            let t = fast(vec![PathSpec::new(); count]).set("pmtu_discovery", discovers);
            let mut t = t.connect();
            t.a.send_file(8_000_000);
            t.run_to_end(secs(100)).result().transfer_time_s
        };
        let (with, without) = (run("true"), run("false"));
        assert!(with < without * 1.02, "{count} paths: {with} s, not {without} s");
    }
}
