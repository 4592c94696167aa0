//! Hosts that are renumbered or change their network while data flows.

use std::net::SocketAddr;
use std::time::Duration;

use manypath_proto::PathState::{Active, Unconfirmed};
use manypath_proto::{Event, Instant, PathId};
use manypath_sim::chunk_type::{DATA, HEARTBEAT, HEARTBEAT_ACK};
use manypath_sim::{End, LinkSpec, Pair, PairBuilder, Pauses, QueueLimit, RouteSpec, millis, secs};

use crate::MIB;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn fast(pair: PairBuilder) -> PairBuilder {
    pair.profile("fast").rate_mbps(20.0).delay_ms(20.0)
}

fn address(net: u8, host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, net, host], 9899))
}

/// How long after `since` host `z`, or `a` if it receives, had data again.
fn pause_after(t: &mut Pair, since: Instant, to_a: bool) -> f64 {
    let received = |t: &Pair| if to_a { t.a.received_bytes() } else { t.z.received_bytes() };
    t.run_until(since);
    // What was on its way when the address went does not count.
    let before = received(t);
    let again = t.run_until_true(since + Duration::from_secs(60), |t| received(t) > before);
    assert!(again, "nothing for a minute; paths {:#?} and {:#?}", t.a.paths(), t.z.paths());
    (t.net.now() - since).as_secs_f64()
}

/// One path is renumbered 3 s after the start, without an address for `away`. How long after the
/// new address came data flowed again.
fn only_path_renumbered(end: End, away: u64, to_a: bool, seed: u64) -> f64 {
    let mut t = fast(Pair::one_path("cmt-pf")).seed(seed).connect();
    t.net.path(0).at(secs(3)).renumber(end, ms(away), None);
    let sender = if to_a { &mut t.z } else { &mut t.a };
    sender.send_file(40 * MIB);
    let pause = pause_after(&mut t, secs(3) + ms(away.max(30)), to_a);
    let result = t.run_to_end(secs(200));
    let received = if to_a { result.a.received_bytes() } else { result.z.received_bytes() };
    assert_eq!(received, 40 * MIB, "{end:?} away for {away} ms");
    assert_eq!((t.a.epoch(), t.z.epoch()), (0, 0), "one association throughout");
    pause
}

#[test]
fn the_only_path_renumbered_goes_on_within_a_second_of_the_new_address() {
    for end in [End::Near, End::Far] {
        for to_a in [false, true] {
            for away in [0, 200, 1000, 5000, 30_000] {
                let pause = only_path_renumbered(end, away, to_a, away + 1);
                assert!(pause < 1.0, "{end:?}, to a: {to_a}, away {away} ms: {pause} s");
            }
        }
    }
}

#[test]
fn a_path_renumbered_beside_another_is_back_within_a_second_and_the_other_keeps_its_pace() {
    for end in [End::Near, End::Far] {
        let mut t = fast(Pair::two_paths("cmt-pf")).connect();
        t.net.path(1).at(secs(3)).renumber(end, ms(2000), Some(address(2, 77)));
        t.a.send_file(60 * MIB);
        let is_new = |t: &Pair| {
            t.a.paths().iter().any(|p| {
                [p.local, p.remote].contains(&address(2, 77)) && p.counters.acked_bytes > 0
            })
        };
        assert!(t.run_until_true(secs(6), is_new), "{end:?}: {:#?}", t.a.paths());
        let result = t.run_to_end(secs(60)).result();
        assert!(result.completed);
        assert!(result.max_delivery_gap_s < 0.5, "{end:?}: {}", result.max_delivery_gap_s);
    }
}

/// A path of 100 Mbit/s is renumbered beside another one. Its first packets from the new address
/// wait for a second, as for the hardware address of the router when its first answer is lost
/// (ARP). How long after that the path carried as much data as a slow disk gives it.
fn carries_data_after_held(send_buffer: &str, seed: u64) -> f64 {
    let pauses = Pauses { first: ms(3500), length: ms(1000), every: Duration::from_secs(1000) };
    let mut t = Pair::two_paths("adaptive")
        .profile("fast")
        .rate_mbps(100.0)
        .delay_ms(1.0)
        .path(1, |path| path.each(|link| link.pauses = Some(pauses)))
        .set("send_buffer_initial", send_buffer)
        .set("send_buffer", send_buffer)
        .seed(seed)
        .connect();
    t.net.path(1).at(secs(3)).renumber(End::Near, ms(500), Some(address(2, 77)));
    t.a.send_file(200 * MIB);
    let carries = |t: &Pair| {
        t.a.paths().iter().any(|p| p.local == address(2, 77) && p.counters.acked_bytes > 500_000)
    };
    assert!(t.run_until_true(secs(20), carries), "{send_buffer}: {:#?}", t.a.paths());
    (t.net.now() - millis(4500)).as_secs_f64()
}

#[test]
fn a_path_whose_first_heartbeats_were_held_carries_data_as_soon_as_they_are_answered() {
    for send_buffer in ["8 MiB", "1 MiB", "256 KiB"] {
        for seed in 1..=3 {
            let waited = carries_data_after_held(send_buffer, seed);
            assert!(waited < 0.5, "{send_buffer}, seed {seed}: {waited} s");
        }
    }
}

#[test]
fn an_address_that_returns_is_the_same_path_again() {
    let mut t = fast(Pair::one_path("cmt-pf")).connect();
    t.net.path(0).at(secs(3)).renumber(End::Near, ms(4000), Some(address(1, 1)));
    t.a.send_file(20 * MIB);
    let pause = pause_after(&mut t, secs(7), false);
    assert!(pause < 1.0, "{pause} s");
    t.run_to_end(secs(60));
    assert_eq!(t.z.received_bytes(), 20 * MIB);
    assert_eq!((t.a.paths().len(), t.z.paths().len()), (1, 1));
}

#[test]
fn from_one_network_to_another_and_back_ten_times_the_file_is_whole() {
    for seed in 1..=5 {
        let mut t = fast(Pair::one_path("cmt-pf")).loss(0.01).seed(seed).connect();
        for n in 0..20 {
            let to = [address(1, 201), address(1, 1)][n % 2];
            let at = secs(2 + 3 * n as u64);
            t.net.path(0).at(at).renumber(End::Near, ms(300 * (n as u64 % 4)), Some(to));
        }
        t.a.send_file(60 * MIB);
        t.z.send_file(MIB);
        let result = t.run_to_end(secs(300)).result();
        assert!(result.completed, "seed {seed}: {result:#?}");
        assert!(result.max_delivery_gap_s < 2.5, "seed {seed}: {}", result.max_delivery_gap_s);
        assert_eq!((t.a.received_bytes(), t.a.epoch(), t.z.epoch()), (MIB, 0, 0));
    }
}

#[test]
fn new_addresses_without_end_fill_no_table() {
    let mut t = fast(Pair::one_path("cmt-pf")).set("max_paths", "3").connect();
    for n in 0..40 {
        t.net.path(0).at(secs(2 + n)).renumber(End::Near, ms(100), None);
    }
    t.a.send_file(60 * MIB);
    let mut most = (0, 0);
    let done = t.run_until_true(secs(120), |t| {
        most = (most.0.max(t.a.paths().len()), most.1.max(t.z.paths().len()));
        t.z.received_bytes() == 60 * MIB
    });
    assert!(done, "{:#?}", t.z.paths());
    assert!(most.0 <= 2 && most.1 <= 3, "paths at most: {most:?}");
}

#[test]
fn nothing_but_heartbeats_goes_to_an_address_before_it_is_verified() {
    let mut t = fast(Pair::one_path("cmt-pf")).connect();
    let new = address(1, 77);
    t.net.path(0).at(secs(3)).renumber(End::Near, ms(500), Some(new));
    t.z.send_file(20 * MIB);
    let knows = |t: &Pair| t.z.paths().iter().any(|p| p.remote == new);
    assert!(t.run_until_true(secs(5), knows));
    let known = t.net.now();
    let is_verified = |t: &Pair| t.z.paths().iter().any(|p| p.remote == new && p.state == Active);
    assert!(t.run_until_true(secs(5), is_verified));
    let verified = t.net.now();
    assert!(verified - known >= ms(40), "a round trip: {:?}", verified - known);
    let by_z = |chunk| t.sent(chunk).by(t.z.node()).since(known).until(verified).count();
    assert_eq!(by_z(DATA), 0, "nothing else works, and yet no data");
    assert!(by_z(HEARTBEAT) >= 1 && by_z(HEARTBEAT_ACK) >= 1);
    t.run_to_end(secs(60));
    assert_eq!(t.a.received_bytes(), 20 * MIB);
}

#[test]
fn while_the_only_address_is_gone_nothing_is_sent_and_nothing_backs_off() {
    let mut t = fast(Pair::one_path("cmt-pf")).connect();
    t.net.path(0).at(secs(3)).renumber(End::Near, ms(20_000), None);
    t.a.send_file(20 * MIB);
    t.run_until(millis(3001));
    let gone = |(_, event): &(Instant, Event)| matches!(event, Event::AddressGone { .. });
    assert!(t.a.events().iter().any(gone), "{:?}", t.a.events());
    let before = t.net.packets_sent();
    t.run_until(millis(22_999));
    let by_a = t.sent(DATA).by(t.a.node()).since(millis(3001)).count();
    assert_eq!(by_a, 0, "{} packets in all", t.net.packets_sent() - before);
    assert!(t.a.is_established());
    t.run_until(secs(25));
    let paths = t.a.paths();
    assert_eq!((paths.len(), paths[0].state), (1, Active), "the old path is gone: {paths:#?}");
}

#[test]
fn an_address_that_never_returns_ends_the_association_after_its_timeout() {
    let mut t = fast(Pair::one_path("cmt-pf")).set("association_timeout", "20 s").connect();
    t.net.path(0).at(secs(3)).take_address(End::Near);
    t.a.send_file(100 * MIB);
    t.run_until(secs(22));
    assert!(t.a.is_established() && t.z.is_established());
    t.run_until(secs(35));
    assert!(t.a.closed().is_some() && t.z.closed().is_some());
}

#[test]
fn renumbered_while_it_associates_it_begins_from_the_new_address() {
    for at in [1, 30, 50, 70] {
        let mut t = fast(Pair::one_path("cmt-pf")).start();
        t.net.path(0).at(millis(at)).renumber(End::Near, ms(100), None);
        t.a.send_file(MIB);
        let established = |t: &Pair| t.a.is_established() && t.z.is_established();
        assert!(t.run_until_true(secs(4), established), "at {at} ms: {:#?}", t.a.paths());
        t.run_to_end(secs(20));
        assert_eq!(t.z.received_bytes(), MIB, "at {at} ms: {:#?}", t.z.paths());
    }
}

#[test]
fn told_of_a_change_a_host_asks_its_paths_at_once() {
    let mut t = fast(Pair::one_path("cmt-pf")).connect();
    t.a.send_file(40 * MIB);
    t.run_until(secs(3));
    t.net.path(0).cut_for(Duration::from_secs(20));
    t.run_until(secs(23));
    let before = t.z.received_bytes();
    let now = t.net.now();
    t.a.network_changed(now);
    let flows = t.run_until_true(millis(23_300), |t| t.z.received_bytes() > before);
    assert!(flows, "a heartbeat, its answer, and data: {:#?}", t.a.paths());
}

#[test]
fn a_route_that_flaps_costs_two_round_trips_beyond_the_flap() {
    for away in [20, 60, 80, 100, 120, 250, 600, 1500, 4000] {
        let mut t = fast(Pair::one_path("cmt-pf")).connect();
        t.a.send_file(40 * MIB);
        t.run_until(secs(3));
        t.net.path(0).forward().cut_for(ms(away));
        t.run_until(secs(3) + ms(away));
        let now = t.net.now();
        t.a.network_changed(now);
        let cut_off = t.z.received_bytes();
        // What entered before the cut has arrived 20 ms later.
        t.run_until(now.max(millis(3100)));
        let before = t.z.received_bytes().max(cut_off);
        let flows = |t: &Pair| t.z.received_bytes() > before;
        assert!(t.run_until_true(now + ms(1000), flows), "away {away} ms");
        let pause = (t.net.now() - now).as_secs_f64();
        // Two round trips are 0.12 s. If the flap hits the tail-loss probe, T3-rtx decides.
        assert!(pause < 0.22, "away {away} ms: {pause} s");
    }
}

#[test]
fn a_new_path_that_loses_its_first_packets_is_asked_again_soon() {
    let mut t = fast(Pair::one_path("cmt-pf")).connect();
    t.a.send_file(20 * MIB);
    t.net.path(0).at(secs(3)).renumber(End::Near, ms(1000), None);
    t.net.path(0).at(secs(3)).cut_for(ms(1600));
    let pause = pause_after(&mut t, millis(4600), false);
    assert!(pause < 0.6, "the network works 600 ms after the address came, data {pause} s later");
}

#[test]
fn a_change_says_nothing_to_paths_that_work() {
    let mut t = fast(Pair::two_paths("cmt-pf")).connect();
    t.a.send_file(40 * MIB);
    t.run_until(secs(3));
    let before = t.sent(HEARTBEAT).by(t.a.node()).since(secs(3)).count();
    for n in 0..100 {
        t.run_until(secs(3) + ms(10 * n));
        let now = t.net.now();
        t.a.network_changed(now);
    }
    let after = t.sent(HEARTBEAT).by(t.a.node()).since(secs(3)).count();
    assert!(after - before <= 1, "{after} heartbeats");
}

#[test]
fn an_idle_path_is_asked_once_in_20_ms_however_often_a_change_is_reported() {
    let mut t = fast(Pair::two_paths("cmt-pf")).connect();
    t.run_until(millis(1000));
    for n in 0..1000 {
        t.run_until(millis(1000 + n));
        let now = t.net.now();
        t.a.network_changed(now);
    }
    let asked = t.sent(HEARTBEAT).by(t.a.node()).on(PathId(0)).since(millis(1000)).count();
    assert!((2..=51).contains(&asked), "{asked} heartbeats in a second");
    assert!(t.a.paths().iter().all(|p| p.state != Unconfirmed));
}

/// Somebody who sees the packets of `a`, and repeats each that has been sent in the last 20 ms from
/// an address of his own; also while `a` has none.
#[test]
fn repeated_packets_from_elsewhere_draw_no_data_and_steal_nothing() {
    let mut t = fast(Pair::one_path("cmt-pf")).connect();
    let (his, server) = (SocketAddr::from(([203, 0, 113, 66], 9899)), address(1, 2));
    let hostile = t.net.add_node();
    let link = |t: &mut Pair| t.net.add_link(LinkSpec::mbps_ms(100.0, 1.0), QueueLimit::Unlimited);
    let (there, back) = (link(&mut t), link(&mut t));
    let z = t.z.node();
    for (from, source, destination, links, to) in
        [(hostile, his, server, vec![there], z), (z, server, his, vec![back], hostile)]
    {
        t.net.add_route(RouteSpec { from, source, destination, links, to });
    }
    let to_him = t.net.find_route_of(z, server, his).expect("just added");
    t.net.path(0).at(secs(3)).renumber(End::Near, ms(1500), None);
    t.a.send_file(10 * MIB);
    t.z.send_file(10 * MIB);
    for step in 0..500 {
        let now = t.net.now();
        let seen: Vec<_> = t.net.packet_log().map_or_else(Vec::new, |log| {
            let since = log.packets().partition_point(|p| p.at + ms(20) < now);
            let own = log.packets()[since..].iter().filter(|p| p.from == t.a.node());
            own.map(|p| p.bytes.clone()).take(50).collect()
        });
        for packet in seen {
            t.net.send(hostile, his, server, packet);
        }
        t.run_until(secs(1) + ms(20 * step));
    }
    let knew_him =
        |(_, e): &(Instant, Event)| matches!(e, Event::PathAdded { remote, .. } if *remote == his);
    assert!(t.z.events().iter().any(knew_him), "he tried");
    let log = t.net.packet_log().expect("kept");
    let drawn: Vec<_> = log.packets().iter().filter(|p| p.route == Some(to_him)).collect();
    for packet in &drawn {
        let harmless = |ty| [HEARTBEAT, HEARTBEAT_ACK].contains(&ty);
        assert!(packet.chunks().iter().all(|chunk| harmless(chunk.ty())), "{packet:?}");
    }
    let bytes: usize = drawn.iter().map(|packet| packet.bytes.len()).sum();
    let sent: usize =
        log.packets().iter().filter(|p| p.from == hostile).map(|p| p.bytes.len()).sum();
    assert!(bytes < sent / 10, "{bytes} bytes drawn by {sent}");
    t.run_to_end(secs(60));
    assert_eq!((t.z.received_bytes(), t.a.received_bytes()), (10 * MIB, 10 * MIB));
}
