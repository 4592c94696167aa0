//! The same seed gives the same run.

use manypath_sim::{Pair, PairBuilder, millis, secs};

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
