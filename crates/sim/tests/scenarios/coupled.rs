//! Coupled windows (LIA of RFC 6356, OLIA, BALIA): what paths over one bottleneck leave to others,
//! and what disjoint ones reach.

use std::sync::Arc;

use manypath_proto::config::Config;
use manypath_sim::{FlowSpec, LinkSpec, Pair, PathLinks, PathSpec, QueueLimit, World, secs};

/// The share of a link of 20 Mbit/s that one flow gets beside an association with two paths over
/// it, from 10 s to 70 s.
fn share_of_one_flow(control: &str, seed: u64) -> f64 {
    let mut world = World::new(seed, 28);
    let link = LinkSpec::mbps_ms(20.0, 20.0);
    let there = world.net.add_link(link.clone(), QueueLimit::Packets(70));
    let back = world.net.add_link(link, QueueLimit::Packets(70));
    let flow = |preset, control: &str, paths, name: &str| {
        let set = [("congestion_control", control), ("cut_once_per_flight", "true")];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = Arc::new(Config::build("fast", preset, &set).expect("valid"));
        FlowSpec {
            name: name.to_owned(),
            sender: Arc::clone(&config),
            receiver: config,
            paths: vec![PathLinks { forward: vec![there], reverse: vec![back] }; paths],
            start: secs(0),
            keys: None,
            has_ledger: false,
        }
    };
    let ours = world.add_flow(flow("cmt-pf", control, 2, "ours"));
    let other = world.add_flow(flow("sctp", "rfc9260", 1, "other"));
    for from in [ours.from, other.from] {
        world.host_mut(from).send_file_at(secs(0), 1 << 30);
    }
    let received = |world: &World| [ours.to, other.to].map(|to| world.host(to).received_bytes());
    world.run_until(secs(10));
    let begun = received(&world);
    world.run_until(secs(70));
    let [ours, other] = received(&world).map(|bytes| bytes as f64);
    let (ours, other) = (ours - begun[0] as f64, other - begun[1] as f64);
    assert!(ours + other > 0.85 * 20e6 / 8.0 * 60.0, "the link is used: {ours} and {other}");
    other / (ours + other)
}

fn mean(of: impl Fn(u64) -> f64) -> f64 {
    (1..=3).map(of).sum::<f64>() / 3.0
}

#[test]
fn two_paths_over_one_bottleneck_leave_others_more_than_uncoupled_ones() {
    let uncoupled = mean(|seed| share_of_one_flow("rfc9260", seed));
    for control in ["lia", "olia", "balia"] {
        let coupled = mean(|seed| share_of_one_flow(control, seed));
        assert!((0.38..0.60).contains(&coupled), "RFC 6356 §2, goal 2: {coupled:.3}, {control}");
    }
    assert!(uncoupled < 0.38, "two flows against one: {uncoupled:.3}");
}

#[test]
fn disjoint_paths_reach_more_than_the_best_of_them() {
    let share = |control, seed| {
        let spec = |delay| {
            let spec = PathSpec::default().rate_mbps(20.0).delay_ms(delay);
            spec.queue(QueueLimit::Bytes(64 << 10))
        };
        let mut t = Pair::paths("cmt-pf", vec![spec(10.0), spec(40.0)])
            .profile("fast")
            .set("congestion_control", control)
            .seed(seed)
            .lean()
            .connect();
        t.a.send_file(50_000_000);
        t.run_to_end(secs(120));
        t.result().goodput_bps / 40e6
    };
    let uncoupled = mean(|seed| share("rfc9260", seed));
    for control in ["lia", "olia", "balia"] {
        let coupled = mean(|seed| share(control, seed));
        assert!(coupled > 0.8, "RFC 6356 §2, goal 1: {coupled:.3}, {control}");
        assert!(coupled > uncoupled - 0.08, "{control}: {coupled:.3} and {uncoupled:.3}");
    }
}
