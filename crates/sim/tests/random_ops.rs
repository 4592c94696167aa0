//! Random operations on two engines: `MANYPATH_RANDOM_RUNS` runs from `MANYPATH_SEED` on (200 from 1
//! unless said). The example `random_ops` runs many more, on several cores.

use manypath_sim::testing::{Plan, catch_panics};

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")),
        Err(_) => default,
    }
}

#[test]
fn random_operations_break_nothing_and_lose_nothing() {
    let (runs, seed) = (number("MANYPATH_RANDOM_RUNS", 200), number("MANYPATH_SEED", 1));
    let mut losses = 0;
    for seed in seed..seed.saturating_add(runs) {
        match Plan::from_seed(seed).run() {
            Ok(outcome) => losses += outcome.losses,
            Err(failure) => {
                catch_panics();
                let least = Plan::from_seed(failure.seed).shrink();
                let _ = std::panic::take_hook();
                panic!(
                    "{failure}\nRepeat with MANYPATH_SEED={seed} MANYPATH_RANDOM_RUNS=1, or run the plan\n{least:#?}"
                );
            }
        }
    }
    assert!(runs < 100 || losses > 0, "no run lost and rebuilt an association: too tame");
}

/// The same with NR-SACK, and little memory on both sides: what a receiver discards to make room for a lower TSN
/// must still be with the sender.
#[test]
fn random_operations_with_nr_sack_lose_nothing() {
    let (runs, seed) = (number("MANYPATH_RANDOM_RUNS", 200), number("MANYPATH_SEED", 1));
    for seed in seed..seed.saturating_add(runs) {
        let mut plan = Plan::from_seed(seed);
        let names = ["nr_sack", "receive_buffer", "send_buffer"];
        plan.setting.overrides.retain(|(name, _)| !names.contains(name));
        let values = ["true", if seed % 2 == 0 { "8 KiB" } else { "64 KiB" }, "128 KiB"];
        plan.setting.overrides.extend(names.into_iter().zip(values));
        if let Err(failure) = plan.run() {
            panic!("{failure}\nRepeat with MANYPATH_SEED={seed} MANYPATH_RANDOM_RUNS=1");
        }
    }
}

/// The same with paths that duplicate others.
#[test]
fn random_operations_with_a_redundant_path_lose_nothing() {
    let (runs, seed) = (number("MANYPATH_RANDOM_RUNS", 200), number("MANYPATH_SEED", 1));
    for seed in seed..seed.saturating_add(runs) {
        let mut plan = Plan::from_seed(seed);
        plan.setting.preset = if seed % 2 == 0 { "msacmt-rt" } else { "msacmt-rtv2" };
        plan.setting.overrides.push(("redundancy_review", if seed % 3 == 0 { "1" } else { "10" }));
        if let Err(failure) = plan.run() {
            panic!("{failure}\nRepeat with MANYPATH_SEED={seed} MANYPATH_RANDOM_RUNS=1");
        }
    }
}

/// With Max.Burst 1 by SACK, a path whose last chunk was retransmitted on another stayed without a burst.
#[test]
fn an_idle_path_gets_a_new_burst() {
    for seed in [2555, 7220] {
        if let Err(failure) = Plan::from_seed(seed).run() {
            panic!("{failure}");
        }
    }
}

#[test]
fn a_plan_repeats_exactly() {
    for seed in 1..20 {
        let plan = Plan::from_seed(seed);
        assert_eq!(plan, Plan::from_seed(seed));
        assert_eq!(plan.run(), plan.run(), "seed {seed}");
    }
}
