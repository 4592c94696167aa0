//! Failure policies against paths written by hand.

use std::time::Duration;

use super::*;
use crate::config::Config;
use crate::policy::tests::view;
use crate::time::Instant;

fn config(overrides: &[(&str, &str)]) -> Config {
    let owned: Vec<_> = overrides.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    Config::build("rfc9260", "cmt-pf", &owned).expect("valid")
}

/// The states a path goes through as timeouts add up.
fn states(policy: &mut dyn FailurePolicy, timeouts: u32) -> Vec<PathState> {
    let mut p = view(0);
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
    let states = states(&mut Pmr::new(&config(&[("path_max_retrans", "2")])), 4);
    assert_eq!(states, [Active, Active, Inactive, Inactive], "RFC 9260 §8.2");
}

#[test]
fn one_timeout_makes_a_path_potentially_failed_and_pmr_more_make_it_inactive() {
    use PathState::{Inactive, PotentiallyFailed as Pf};
    let states = states(&mut PotentiallyFailed::new(&config(&[("path_max_retrans", "2")])), 4);
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
    let c = config(&[("path_max_retrans", "0")]);
    assert_eq!(
        states(&mut PotentiallyFailed::new(&c), 2),
        states(&mut Pmr::new(&c), 2),
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

#[test]
fn an_unverified_path_carries_no_data_unless_the_profile_says_so() {
    let mut paths = [view(0), view(1)];
    paths[1].state = PathState::Unconfirmed;
    assert!(!Pmr::new(&config(&[])).is_usable(&paths[1], &paths), "RFC 9260 §5.4");
    let papers = config(&[("data_before_verification", "true")]);
    assert!(Pmr::new(&papers).is_usable(&paths[1], &paths));
}
