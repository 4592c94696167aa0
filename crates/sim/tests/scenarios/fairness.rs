//! The shares of flows over one link: beside CUBIC, beside each other, and of two paths that are
//! one.

use std::sync::Arc;

use manypath_proto::config::Config;
use manypath_sim::{
    Flow, FlowSpec, LinkSpec, Pair, PathLinks, PathSpec, QueueLimit, World, millis, secs,
};

/// The link's rate in Mbit/s, its delay each way in ms, and its bandwidth-delay product in packets
/// of 1500 bytes.
const RATE: f64 = 20.0;
const DELAY: f64 = 20.0;
const BDP: usize = 67;

/// A transfer over the link: with a preset and a congestion control, on this number of paths.
type Sender<'a> = (&'a str, &'a str, usize);

const ADAPTIVE: Sender<'_> = ("adaptive", "bbr", 1);
const CUBIC: Sender<'_> = ("cmt-pf", "cubic", 1);

/// These transfers over the link, each without end. One begins every 200 ms.
fn flows_over_one_link(senders: &[Sender<'_>], queue: usize, seed: u64) -> (World, Vec<Flow>) {
    let mut world = World::new(seed, 28);
    let link = LinkSpec::mbps_ms(RATE, DELAY);
    let there = world.net.add_link(link.clone(), QueueLimit::Packets(queue));
    let back = world.net.add_link(link, QueueLimit::Packets(queue));
    let begin = |(n, &(preset, control, paths)): (usize, &Sender<'_>)| -> Flow {
        let set = [("congestion_control", control), ("cut_once_per_flight", "true")];
        let set = set.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let config = Arc::new(Config::build("fast", preset, &set).expect("valid"));
        let start = millis(200 * n as u64);
        let flow = world.add_flow(FlowSpec {
            name: format!("flow {n}"),
            sender: Arc::clone(&config),
            receiver: config,
            paths: vec![PathLinks { forward: vec![there], reverse: vec![back] }; paths],
            start,
            keys: None,
            has_ledger: false,
        });
        world.host_mut(flow.from).send_file_at(start, 1 << 32);
        flow
    };
    let flows = senders.iter().enumerate().map(begin).collect();
    (world, flows)
}

/// The bytes that each of these transfers gets over the link between `from` and `until` seconds.
fn received(
    senders: &[Sender<'_>],
    queue: usize,
    seed: u64,
    (from, until): (u64, u64),
) -> Vec<f64> {
    let (mut world, flows) = flows_over_one_link(senders, queue, seed);
    let counts = |world: &World| -> Vec<f64> {
        flows.iter().map(|flow| world.host(flow.to).received_bytes() as f64).collect()
    };
    world.run_until(secs(from));
    let before = counts(&world);
    world.run_until(secs(until));
    let bytes: Vec<_> = counts(&world).iter().zip(before).map(|(end, begin)| end - begin).collect();
    let used = bytes.iter().sum::<f64>() * 8.0 / ((until - from) as f64 * RATE * 1e6);
    assert!(used > 0.85, "the link is used: {used:.2} of it");
    bytes
}

/// The share of the last of these transfers from 10 s to 70 s: the mean of three seeds.
fn share_of_last(senders: &[Sender<'_>], queue: usize) -> f64 {
    let share = |seed| {
        let bytes = received(senders, queue, seed, (10, 70));
        bytes[bytes.len() - 1] / bytes.iter().sum::<f64>()
    };
    (1..=3).map(share).sum::<f64>() / 3.0
}

/// Jain's index of fairness: 1 if all get the same, 1/n if one gets everything.
fn jain(bytes: &[f64]) -> f64 {
    let sum: f64 = bytes.iter().sum();
    sum * sum / (bytes.len() as f64 * bytes.iter().map(|b| b * b).sum::<f64>())
}

#[test]
fn a_flow_of_cubic_keeps_its_share() {
    let draft = share_of_last(&[("adaptive", "bbr-draft", 1), CUBIC], BDP);
    assert!(draft < 0.4, "{draft:.3} beside the draft without guards");
    for queue in [BDP, 4 * BDP] {
        let cubic = share_of_last(&[ADAPTIVE, CUBIC], queue);
        assert!((0.4..=0.6).contains(&cubic), "{cubic:.3} with a queue of {queue} packets");
    }
}

#[test]
fn flows_share_alike() {
    for flows in [2, 8, 32] {
        let index = |seed| jain(&received(&vec![ADAPTIVE; flows], BDP, seed, (10, 40)));
        let mean = (1..=3).map(index).sum::<f64>() / 3.0;
        assert!(mean >= 0.95, "Jain's index of {flows} flows is {mean:.3}");
    }
}

/// They are found to share it after some seconds, and one of them carries all.
#[test]
fn two_paths_over_one_link_leave_a_flow_of_cubic_its_share() {
    let two = [("adaptive", "bbr", 2), CUBIC];
    for queue in [BDP, 4 * BDP] {
        let cubic = share_of_last(&two, queue);
        assert!((0.4..=0.6).contains(&cubic), "{cubic:.3} with a queue of {queue} packets");
    }
}

/// The row "found in 10 s": in half of the runs at least, whether others use the link or not.
#[test]
fn two_paths_over_one_link_are_found_within_ten_seconds() {
    let two = ("adaptive", "bbr", 2);
    let runs = [(vec![two], BDP), (vec![two, CUBIC], BDP), (vec![two, CUBIC], 4 * BDP)];
    for (senders, queue) in runs {
        let found = |seed| {
            let (mut world, flows) = flows_over_one_link(&senders, queue, seed);
            world.run_until(secs(10));
            world.host(flows[0].from).shared_pairs().iter().any(|pair| pair.is_shared)
        };
        let runs = (1..=16).filter(|&seed| found(seed)).count();
        assert!(runs >= 8, "{runs} of 16 beside {} with {queue} packets", senders.len() - 1);
    }
}

/// The queue that a transfer keeps in a path whose buffer would hold a second.
#[test]
fn a_deep_buffer_is_not_filled() {
    let path = PathSpec::default().rate_mbps(RATE).delay_ms(DELAY);
    let path = path.queue(QueueLimit::Packets(1667));
    let mut t = Pair::paths("adaptive", vec![path]).profile("fast").lean().connect();
    t.a.send_file(1 << 30);
    t.run_until(secs(5));
    let (mut sum, mut most, mut samples) = (0.0, 0.0_f64, 0);
    for tenth in 50..200 {
        t.run_until(millis(100 * tenth));
        let rtts = t.a.paths()[0].flight_size as f64 / (RATE * 1e6 / 8.0);
        let queue = (rtts / (2.0 * DELAY / 1000.0) - 1.0).max(0.0);
        (sum, most, samples) = (sum + queue, most.max(queue), samples + 1);
    }
    let mean = sum / f64::from(samples);
    assert!(mean < 0.5 && most <= 1.3, "{mean:.2} BDP on average, {most:.2} at most");
}
