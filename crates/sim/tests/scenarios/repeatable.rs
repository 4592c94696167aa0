//! The same seed gives the same run.

use manypath_proto::Instant;
use manypath_sim::{LinkSpec, Pair, PairBuilder, PathSpec, QueueLimit, Red, millis, secs};

fn lossy(seed: u64) -> PairBuilder {
    Pair::two_paths("cmt-pf").loss(0.03).seed(seed)
}

fn run(builder: PairBuilder) -> String {
    let mut t = builder.connect();
    t.a.send_file(500_000);
    t.net.path(1).at(millis(700)).cut_for(std::time::Duration::from_secs(3));
    let result = t.run_to_end(secs(600)).result();
    assert!(result.completed);
    result.trace_hash
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    assert_eq!(run(lossy(3)), run(lossy(3)));
}

#[test]
fn another_seed_gives_another_trace() {
    assert_ne!(run(lossy(3)), run(lossy(4)));
}

#[test]
fn watching_changes_nothing() {
    assert_eq!(run(lossy(3)), run(lossy(3).lean()), "packet log, ledger and invariant checks");
}

#[test]
fn stopping_on_the_way_changes_nothing() {
    let whole = run(lossy(3));
    let mut t = lossy(3).connect();
    t.a.send_file(500_000);
    t.net.path(1).at(millis(700)).cut_for(std::time::Duration::from_secs(3));
    for tenth in 1..40 {
        if !t.is_at_end() {
            t.run_until_true(millis(tenth * 100), manypath_sim::Pair::is_at_end);
        }
    }
    assert_eq!(t.run_to_end(secs(600)).result().trace_hash, whole);
}

/// Three paths of three hops, the middle ones narrow: packets are lost at random, by full queues
/// and by RED.
fn three_hops(seed: u64, loss: f64) -> PairBuilder {
    let edge = || LinkSpec::mbps_ms(100.0, 10.0);
    let narrow = LinkSpec::mbps_ms(10.0, 25.0).loss(loss).queue(QueueLimit::Packets(20));
    let hops = |middle: LinkSpec| PathSpec::hops([edge().loss(loss / 4.0), middle, edge()]);
    let paths = vec![hops(narrow.clone()), hops(narrow.clone()), hops(narrow.red(Red::default()))];
    Pair::paths("cmt", paths).set("receive_buffer", "256 KiB").seed(seed)
}

#[test]
fn fixed_links_change_nothing() {
    for (seed, loss) in (1..=6).zip([0.0, 0.0, 0.01, 0.02, 0.05, 0.1]) {
        let run = |builder: PairBuilder| {
            let mut t = builder.connect();
            t.a.send_file(2_000_000);
            t.run_to_end(secs(600)).result()
        };
        let result = run(three_hops(seed, loss));
        assert!(result.completed && result.paths.iter().all(|path| path.packets_dropped > 0));
        assert_eq!(result, run(three_hops(seed, loss).fix_links()), "loss {loss}");
    }
}

#[test]
#[should_panic(expected = "a change on the way of packets")]
fn fixed_links_that_change_are_noticed() {
    let mut t = three_hops(1, 0.0).fix_links().connect();
    t.a.send_file(2_000_000);
    t.run_until(t.net.now() + secs(1).saturating_since(Instant::ZERO));
    t.net.path(1).cut();
}
