//! Random operations on two engines: `MANYPATH_RANDOM_RUNS` runs from `MANYPATH_SEED` on (200 from
//! 1 unless said). The example `random_ops` runs many more, on several cores.

use std::time::Duration;

use manypath_sim::testing::{Ending, Family, Op, PathSetting, Plan, Setting, Side, catch_panics};

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|error| panic!("{name}={text}: {error}")),
        Err(_) => default,
    }
}

/// Runs all plans of a family.
fn run_all(family: Family) {
    let (runs, seed) = (number("MANYPATH_RANDOM_RUNS", 200), number("MANYPATH_SEED", 1));
    let (mut losses, mut abandoned) = (0, 0);
    for seed in seed..seed.saturating_add(runs) {
        match Plan::of_family(family, seed).run() {
            Ok(outcome) => {
                losses += outcome.losses;
                abandoned += outcome.abandoned;
            }
            Err(failure) => {
                catch_panics();
                let least = Plan::of_family(family, seed).shrink();
                let _ = std::panic::take_hook();
                panic!(
                    "{family:?}: {failure}\nRepeat with MANYPATH_SEED={seed} MANYPATH_RANDOM_RUNS=1, or run the plan\n{least:#?}"
                );
            }
        }
    }
    assert!(runs < 100 || losses > 0, "no run lost and rebuilt an association: too tame");
    let gives_up = matches!(family, Family::Limited | Family::Extended);
    assert_eq!(abandoned > runs as usize, gives_up && runs > 0, "{abandoned} messages given up");
}

#[test]
fn random_operations_break_nothing_and_lose_nothing() {
    run_all(Family::Plain);
}

#[test]
fn random_operations_with_nr_sack_lose_nothing() {
    run_all(Family::NrSack);
}

#[test]
fn random_operations_with_a_redundant_path_lose_nothing() {
    run_all(Family::Redundant);
}

#[test]
fn random_operations_with_combined_policies_lose_nothing() {
    run_all(Family::Combined);
}

#[test]
fn random_operations_with_ranks_of_paths_lose_nothing() {
    run_all(Family::Ranked);
}

#[test]
fn random_operations_with_candidates_lose_nothing() {
    run_all(Family::Candidates);
}

#[test]
fn random_operations_on_slow_paths_give_up_no_peer_that_is_heard() {
    run_all(Family::Slow);
}

#[test]
fn random_operations_with_messages_that_are_given_up_lose_no_others() {
    run_all(Family::Limited);
}

#[test]
fn random_operations_with_all_extensions_lose_nothing_that_is_reliable() {
    run_all(Family::Extended);
}

#[test]
fn random_operations_with_protected_packets_lose_nothing() {
    run_all(Family::Protected);
}

#[test]
fn random_operations_with_streams_that_begin_again_lose_nothing() {
    run_all(Family::Reconfigured);
}

#[test]
fn the_combined_family_has_all_combinations_in_a_row() {
    let settings = (1000..1160).map(|seed| {
        let setting = Plan::of_family(Family::Combined, seed).setting;
        format!("{} {:?}", setting.preset, &setting.overrides[..5])
    });
    let all: std::collections::BTreeSet<_> = settings.collect();
    assert_eq!(all.len(), 160, "5 presets and 5 switches");
    assert!(all.iter().all(|text| text.contains("nr_sack") && text.contains("ack_path")));
}

/// With Max.Burst 1 by SACK, a path whose last chunk was retransmitted on another stayed without a
/// burst.
#[test]
fn an_idle_path_gets_a_new_burst() {
    for seed in [2555, 7220] {
        if let Err(failure) = Plan::from_seed(seed).run() {
            panic!("{failure}");
        }
    }
}

/// With `pipe_accounting` an overdue retransmission that was copied, and then acknowledged, stayed
/// in the pipe of the path that had lost it.
#[test]
fn a_retransmission_that_was_copied_leaves_the_pipe() {
    for seed in [21, 602, 1162] {
        if let Err(failure) = Plan::of_family(Family::Adaptive, seed).run() {
            panic!("{failure}");
        }
    }
}

/// `a` restarts while its COOKIE ECHO is under way, and that arrives after the association which
/// its second attempt made was shut down: it began another one.
#[test]
fn a_cookie_of_an_attempt_before_the_one_that_succeeded_begins_nothing() {
    let path = PathSetting { rate_mbps: 2, delay_ms: 150, loss_percent: 0, queue: 5 };
    let ms = Duration::from_millis;
    for at in [303, 310, 315, 320, 323, 330, 340, 360, 400] {
        for (profile, preset) in [("2006", "mtcp"), ("rfc9260", "cmt"), ("fast", "sctp")] {
            for is_protected in [false, true] {
                let setting = Setting {
                    profile,
                    preset,
                    overrides: Vec::new(),
                    paths: vec![path.clone()],
                    has_one_far_address: false,
                    dead_addresses: 0,
                    max_segments: 1,
                    is_protected,
                };
                let steps = vec![(Op::Rate(0, 50_000), ms(at)), (Op::Restart(Side::A), ms(0))];
                let plan = Plan { seed: 50_622, setting, steps, ending: Ending::ByZ };
                if let Err(failure) = plan.run() {
                    panic!("{profile}, {preset}, protected {is_protected}, {at} ms: {failure}");
                }
            }
        }
    }
}

/// The peer answered that a request waits, and its last answer went to an address that was gone.
/// The request was then repeated on that path alone.
#[test]
fn a_request_that_waits_leaves_a_dead_path() {
    if let Err(failure) = Plan::of_family(Family::Reconfigured, 3654).run() {
        panic!("{failure}");
    }
}

/// A closed window seemed silence of the path of SACKs, and a dead path was never found out.
#[test]
fn a_closed_window_is_no_silence() {
    let plan = Plan::of_family(Family::Combined, 202_611_270_025_536);
    if let Err(failure) = plan.run() {
        panic!("{failure}");
    }
}

/// An end that moved after it had closed keeps nothing from arriving, and the other end takes no
/// more data by then: what its program had left over was counted as lost.
#[test]
fn what_is_left_over_in_a_shutdown_is_not_lost() {
    if let Err(failure) = Plan::of_family(Family::Plain, 2_026_112_800_000_254_269).run() {
        panic!("{failure}");
    }
}

/// The only verified path was gone, and the new one was not asked during the shutdown.
#[test]
fn an_address_that_changes_during_a_shutdown_does_not_stop_it() {
    let known = [(Family::Plain, 207_840_001_846), (Family::NrSack, 202_611_270_044_434)];
    for (family, seed) in known {
        if let Err(failure) = Plan::of_family(family, seed).run() {
            panic!("{family:?}: {failure}");
        }
    }
}

/// The only verified path was dead, and those that the peer's data came on were not asked during
/// the shutdown.
#[test]
fn a_shutdown_asks_the_paths_that_the_peer_is_heard_on() {
    if let Err(failure) = Plan::of_family(Family::Protected, 2_026_112_810_000_031_650).run() {
        panic!("{failure}");
    }
}

/// Both ends repeated DATA and heartbeats at the same moment, and sent all SACKs on dead paths.
#[test]
fn sacks_leave_a_dead_path_for_one_in_doubt() {
    if let Err(failure) = Plan::of_family(Family::Plain, 2_026_112_810_000_150_982).run() {
        panic!("{failure}");
    }
}

/// The only path that worked failed by silence again and again, as the peer dropped what it had no
/// room for, and each time the silence of the dead one, which had what was missing, began again.
#[test]
fn a_closed_window_that_drops_is_no_silence() {
    if let Err(failure) = Plan::of_family(Family::Adaptive, 2_026_112_850_000_175_822).run() {
        panic!("{failure}");
    }
}

/// An end that had aborted, and had another address then, was refused by the association that the
/// other end still had, and tried again without a pause.
#[test]
fn an_end_that_is_refused_is_heard_once_the_old_association_is_given_up() {
    if let Err(failure) = Plan::of_family(Family::Plain, 2_026_112_851_000_076_831).run() {
        panic!("{failure}");
    }
}

/// With all chunks copied, DATA measures no round trip. The only one known was of 47 s, and BBR
/// believed no rate that was measured in less.
#[test]
fn heartbeats_measure_a_path_where_all_chunks_are_copied() {
    if let Err(failure) = Plan::of_family(Family::Adaptive, 2_026_112_852_000_109_708).run() {
        panic!("{failure}");
    }
}

/// Of the same kind, found among 180,000 runs.
#[test]
fn an_association_that_is_over_has_no_ghost() {
    for (family, seeds) in
        [(Family::Plain, &[11_881, 50_622][..]), (Family::Adaptive, &[11_881, 33_020, 50_622])]
    {
        for &seed in seeds {
            if let Err(failure) = Plan::of_family(family, seed).run() {
                panic!("{family:?}: {failure}");
            }
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

/// So does the man in the middle.
#[test]
fn a_plan_with_protected_packets_repeats_exactly() {
    for seed in 1..20 {
        let plan = Plan::of_family(Family::Protected, seed);
        assert_eq!(plan, Plan::of_family(Family::Protected, seed));
        assert_eq!(plan.run(), plan.run(), "seed {seed}");
    }
}

/// Who is in the middle may do anything but take part in the operations of the other families.
#[test]
fn only_the_protected_family_is_tampered_with() {
    let tampers = |family, seed| {
        let plan = Plan::of_family(family, seed);
        plan.steps.iter().any(|(op, _)| matches!(op, Op::Tamper(..)))
    };
    for (name, family) in Family::ALL {
        let count = (1..200).filter(|&seed| tampers(family, seed)).count();
        assert_eq!(count > 100, family == Family::Protected, "{name}: {count} of 199 plans");
    }
}
