//! Failure policies against paths written by hand.

use std::time::Duration;

use super::*;
use crate::config::Config;
use crate::policy::Factory;
use crate::policy::tests::{cx, view};
use crate::time::Instant;

fn config(overrides: &[(&str, &str)]) -> Config {
    let owned: Vec<_> = overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    Config::build("rfc9260", "cmt-pf", &owned).expect("valid")
}

/// The states that a path with this path_max_retrans goes through as timeouts add up.
fn states(policy: &mut dyn FailurePolicy, path_max_retrans: u32, timeouts: u32) -> Vec<PathState> {
    let mut p = PathView { path_max_retrans, ..view(0) };
    (1..=timeouts)
        .map(|n| {
            p.error_count = n;
            p.state = policy.after_timeout(&p);
            p.state
        })
        .collect()
}

#[test]
fn pmr_fails_a_path_after_more_than_path_max_retrans_timeouts() {
    use PathState::{Active, Inactive};
    let states = states(&mut Pmr::new(&config(&[])), 2, 4);
    assert_eq!(states, [Active, Active, Inactive, Inactive], "RFC 9260 §8.2");
}

#[test]
fn one_timeout_makes_a_path_potentially_failed_and_pmr_more_make_it_inactive() {
    use PathState::{Inactive, PotentiallyFailed as Pf};
    let states = states(&mut PotentiallyFailed::new(&config(&[])), 2, 4);
    assert_eq!(states, [Pf, Pf, Inactive, Inactive], "CMT-PF paper, section III-A");
}

#[test]
fn an_unverified_path_that_carries_data_becomes_potentially_failed_too() {
    let mut p = view(0);
    (p.state, p.error_count) = (PathState::Unconfirmed, 1);
    let mut policy = PotentiallyFailed::new(&config(&[("data_before_verification", "true")]));
    assert_eq!(policy.after_timeout(&p), PathState::PotentiallyFailed, "CMT-PF paper, III-A");
}

#[test]
fn with_path_max_retrans_zero_pf_behaves_as_pmr() {
    let c = config(&[]);
    assert_eq!(
        states(&mut PotentiallyFailed::new(&c), 0, 2),
        states(&mut Pmr::new(&c), 0, 2),
        "CMT-PF paper, section IV-A"
    );
}

#[test]
fn when_no_path_is_active_the_one_with_the_fewest_timeouts_carries_data() {
    let policy = PotentiallyFailed::new(&config(&[]));
    let mut paths = [view(0), view(1), view(2)];
    for (p, (errors, active_ms)) in paths.iter_mut().zip([(2, 5), (1, 3), (1, 4)]) {
        p.state = PathState::PotentiallyFailed;
        p.error_count = errors;
        p.last_active = Instant::ZERO + Duration::from_millis(active_ms);
    }
    let usable = |paths: &[PathView]| -> Vec<bool> {
        paths.iter().map(|p| policy.is_usable(p, paths)).collect()
    };
    assert_eq!(usable(&paths), [false, false, true], "a tie goes to the last active path");
    paths[0].state = PathState::Active;
    assert_eq!(usable(&paths), [true, false, false], "one active path is enough");
}

/// The consequences at 10 s if nothing was acknowledged on path 0 for 2 s.
fn silence(policy: &mut Silence, paths: &[PathView], sack_path: Option<PathId>) -> Vec<Silenced> {
    let mut rng = crate::Rng::from_number(1);
    let mut cx = cx(paths, 0, &mut rng);
    cx.now = Instant::from_millis(10_000);
    let silent = Silent { path: PathId(0), waited: Duration::from_secs(2), sack_path };
    policy.on_silence(&cx, &silent)
}

#[test]
fn a_silent_path_fails_alone_unless_all_sacks_take_it() {
    let mut policy = Silence::new(&config(&[]));
    assert_eq!(policy.silence_max(Duration::from_secs(1)), Some(Duration::from_secs(2)));
    let paths = [view(0), view(1)];
    let alone = [Silenced::Fail(PathId(0))];
    assert_eq!(silence(&mut policy, &paths, None), alone, "it does not say which they take");
    assert_eq!(silence(&mut policy, &paths, Some(PathId(1))), alone);
    let all = [Silenced::AwaitSacks, Silenced::Fail(PathId(0)), Silenced::StartOver(PathId(1))];
    assert_eq!(silence(&mut policy, &paths, Some(PathId(0))), all, "mTCP paper, section 3.5.2");
}

#[test]
fn what_seems_to_have_failed_with_the_path_of_the_sacks_is_taken_back() {
    let mut policy = Silence::new(&config(&[]));
    let mut rng = crate::Rng::from_number(1);
    let mut paths = [view(0), view(1), view(2)];
    for (path, ms) in [(1, 7900), (2, 8100)] {
        let mut cx = cx(&paths, 0, &mut rng);
        cx.now = Instant::from_millis(ms);
        let silent = Silent { path: PathId(path), waited: Duration::ZERO, sack_path: None };
        policy.on_silence(&cx, &silent);
    }
    paths[1].state = PathState::PotentiallyFailed;
    paths[2].state = PathState::PotentiallyFailed;
    let made = silence(&mut policy, &paths, Some(PathId(0)));
    let back = [Silenced::TakeBack(PathId(2)), Silenced::StartOver(PathId(2))];
    assert_eq!(made[2..], back, "path 1 was silent before: it has failed itself");
}

#[test]
fn paths_in_doubt_are_treated_as_configured_by_every_policy() {
    let settings = [("probe_with_data", "true"), ("rtx_when_path_answers", "true")];
    let expected =
        InDoubt { probed_with_data: true, answered_elsewhere: false, carry_when_answered: true };
    for name in Factory::<dyn FailurePolicy>::NAMES {
        let of = |settings: &[(&str, &str)]| {
            let factory = Factory::<dyn FailurePolicy>::named(name).expect("a policy");
            factory.build(&config(settings)).in_doubt()
        };
        assert_eq!(of(&settings), expected, "{name}");
        assert_eq!(of(&[]), InDoubt::default(), "{name}: the profile rfc9260 has none of it");
        assert!(of(&[("one_way_paths", "true")]).answered_elsewhere, "{name}");
    }
}

#[test]
fn an_unverified_path_carries_no_data_unless_the_profile_says_so() {
    let mut paths = [view(0), view(1)];
    paths[1].state = PathState::Unconfirmed;
    assert!(!Pmr::new(&config(&[])).is_usable(&paths[1], &paths), "RFC 9260 §5.4");
    let papers = config(&[("data_before_verification", "true")]);
    assert!(Pmr::new(&papers).is_usable(&paths[1], &paths));
}
