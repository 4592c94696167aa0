use std::time::Duration;

use super::*;
use crate::MessageKind;
use crate::pair::{Pair, millis, secs};
use crate::spec::{LinkSpec, PathSpec, QueueLimit};

fn config(preset: &str) -> Arc<Config> {
    Arc::new(Config::build("2006", preset, &[]).expect("valid"))
}

fn flow(name: &str, preset: &str, paths: Vec<PathLinks>, start: Instant) -> FlowSpec {
    let (sender, receiver) = (config(preset), config(preset));
    FlowSpec { name: name.to_owned(), sender, receiver, paths, start, keys: None, has_ledger: true }
}

/// A world with one duplex link of 10 Mbit/s, 20 ms each way and 50 packets.
fn world_with_link(seed: u64) -> (World, PathLinks) {
    let mut world = World::new(seed, 20);
    world.check_invariants(true);
    let spec = PathSpec::hops([LinkSpec::mbps_ms(10.0, 20.0).queue(QueueLimit::Packets(50))]);
    let links = world.net.add_path_links(&spec);
    (world, links)
}

#[test]
fn flows_that_share_a_link_share_its_rate_and_its_drops_are_told_apart() {
    let (mut world, links) = world_with_link(3);
    let flows: Vec<Flow> = ["one", "two", "three"]
        .iter()
        .map(|name| world.add_flow(flow(name, "sctp", vec![links.clone()], Instant::ZERO)))
        .collect();
    for flow in &flows {
        world.host_mut(flow.from).send_between(Instant::ZERO, secs(30), MessageKind::default());
    }
    world.run_until(secs(30));
    let results: Vec<_> = flows.iter().map(|flow| world.result(flow.from, flow.to)).collect();
    let total: u64 = results.iter().map(|r| r.bytes).sum();
    let rate = total as f64 * 8.0 / 30.0;
    assert!((8.0e6..9.7e6).contains(&rate), "{rate} bit/s of 10 Mbit/s, headers not counted");
    assert!(results.iter().all(|r| r.bytes > total / 10), "{results:?}");
    let dropped: Vec<u64> = results.iter().map(|r| r.paths[0].packets_dropped).collect();
    let link = world.net.link_stats(links.forward[0]);
    assert!(dropped.iter().all(|&d| d > 0) && link.overflowed > 0, "{dropped:?} {link:?}");
    assert_eq!(dropped.iter().sum::<u64>(), link.dropped());
    let chunks: u64 = results.iter().map(|r| r.paths[0].data_chunks_dropped).sum();
    assert!(chunks > link.dropped() * 9 / 10 && chunks <= link.dropped(), "{chunks} {link:?}");
}

#[test]
fn an_association_begins_with_the_call_to_send() {
    let (mut world, links) = world_with_link(1);
    let f = world.add_flow(flow("late", "sctp", vec![links], millis(2500)));
    world.host_mut(f.from).send_file_at(millis(2500), 100_000);
    world.run_until(millis(2499));
    assert_eq!(world.net.packets_sent(), 0);
    assert!(world.run_to_end(secs(20)));
    let result = world.result(f.from, f.to);
    let start = result.data_start_s.expect("it began");
    // The handshake takes two round trips of 40 ms before data may leave with COOKIE ECHO's answer.
    assert!((0.04..0.13).contains(&start), "first DATA after {start} s");
    let ack = result.ack_time_s.expect("it ended");
    assert!(ack > result.transfer_time_s && ack < 1.0, "{result:?}");
    let last = world.host(f.to).last_received().expect("it got everything");
    let after_last = ack - (last - millis(2500)).as_secs_f64();
    assert!((0.02..0.23).contains(&after_last), "the SACK comes {after_last} s after the data");
}

#[test]
fn several_calls_go_out_in_their_order_and_a_shutdown_ends_them() {
    let (mut world, links) = world_with_link(1);
    let f = world.add_flow(flow("twice", "sctp", vec![links], Instant::ZERO));
    let host = world.host_mut(f.from);
    host.send_file_at(secs(5), 30_000);
    host.send_file_at(secs(1), 20_000);
    host.shutdown_at(secs(6));
    world.run_until(secs(3));
    assert_eq!(world.host(f.to).received_bytes(), 20_000);
    assert!(!world.host(f.from).has_sent_all(), "more is to come");
    world.run_until(secs(8));
    assert_eq!(world.host(f.to).received_bytes(), 50_000);
    assert!(world.host(f.from).closed().is_some());
}

#[test]
fn a_pair_is_a_world_of_two() {
    let spec = || PathSpec::new().loss(0.02);
    let mut pair = Pair::paths("cmt", vec![spec(), spec()]).profile("2006").seed(9).start();
    pair.a.send_file(500_000);
    pair.run_until_true(secs(100), |t| t.a.has_been_acked_all());

    let mut world = World::new(9, 20);
    let (a, z) = (|p: u8| addr(p, 1), |p: u8| addr(p, 2));
    let setup = |world: &World, end: &dyn Fn(u8) -> SocketAddr, connect, name: &str| HostConfig {
        config: config("cmt"),
        addresses: (1..=2).map(end).collect(),
        connect,
        candidates: Vec::new(),
        relayed: Vec::new(),
        max_segments: 1,
        keys: None,
        has_ledger: true,
        rng: world.rng(name),
    };
    let pairs = (1..=2).map(|p| (a(p), z(p))).collect();
    let setup_a = setup(&world, &a, pairs, "host a");
    let from = world.add_host(setup_a);
    let setup_z = setup(&world, &z, Vec::new(), "host z");
    let to = world.add_host(setup_z);
    for p in 1..=2 {
        let (near, far) = (world.host(from).node(), world.host(to).node());
        let ends = PathEnds { near: (near, a(p)), far: (far, z(p)) };
        world.net.add_path(ends, &spec());
    }
    world.host_mut(from).send_file(500_000);
    assert!(world.run_to_end(secs(100)));
    assert_eq!(world.result(from, to), pair.result());
}

fn addr(path: u8, end: u8) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, path, end)), 9899)
}

#[test]
fn a_flow_more_does_not_change_the_numbers_of_another() {
    let run = |others: &[&str]| {
        let (mut world, links) = world_with_link(5);
        let f = world.add_flow(flow("mine", "sctp", vec![links], Instant::ZERO));
        for name in others {
            let apart = world.net.add_path_links(&PathSpec::new());
            let other = world.add_flow(flow(name, "sctp", vec![apart], Instant::ZERO));
            world.host_mut(other.from).send_file(10_000);
        }
        world.host_mut(f.from).send_file(200_000);
        assert!(world.run_to_end(Instant::ZERO + Duration::from_secs(60)));
        let mut result = world.result(f.from, f.to);
        result.trace_hash.clear();
        result
    };
    assert_eq!(run(&[]), run(&["yours", "theirs"]));
}
