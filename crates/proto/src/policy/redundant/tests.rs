use std::time::Duration;

use super::rank::Ranking;
use super::*;
use crate::Rng;
use crate::config::{RedundancyCycle, RedundancyOrder};
use crate::policy::tests::{cx, view};
use crate::view::PathView;

/// Paths with these round-trip times in milliseconds.
fn paths(rtts: &[u64]) -> Vec<PathView> {
    let path =
        |(id, &rtt): (u8, &u64)| PathView { srtt: Some(Duration::from_millis(rtt)), ..view(id) };
    (0..).zip(rtts).map(path).collect()
}

fn cover(policy: &mut dyn RedundancyPolicy, paths: &[PathView]) -> Option<(u8, u8)> {
    let mut rng = Rng::from_number(1);
    policy.cover(&mut cx(paths, 0, &mut rng)).map(|c| (c.redundant.0, c.covered.0))
}

fn ranked(paths: &[PathView]) -> Vec<u8> {
    ranked_by(1, paths)
}

fn ranked_by(seed: u64, paths: &[PathView]) -> Vec<u8> {
    ranked_with(RedundancyOrder::Rtt, seed, paths)
}

fn ranked_with(first: RedundancyOrder, seed: u64, paths: &[PathView]) -> Vec<u8> {
    let (mut rng, mut ranking) = (Rng::from_number(seed), Ranking::by(first));
    ranking.renew(&mut cx(paths, 0, &mut rng));
    ranking.order.into_iter().map(|id| id.0).collect()
}

/// One flight of each of these paths succeeds.
fn succeed(policy: &mut dyn RedundancyPolicy, ids: &[u8]) {
    ids.iter().for_each(|&id| policy.flight_succeeded(PathId(id)));
}

#[test]
fn paths_are_ranked_by_rtt_then_rto_cwnd_ssthresh_and_loss_rate() {
    assert_eq!(ranked(&paths(&[90, 50, 70])), [1, 2, 0]);
    let mut equal = paths(&[51, 57, 53, 55]);
    equal[0].loss_rate = 0.01;
    equal[1].ssthresh = 9000;
    equal[2].cwnd = 9000;
    assert_eq!(ranked(&equal), [2, 1, 3, 0], "51 to 57 ms are similar");
    equal[2].rto = Duration::from_secs(2);
    equal[3].srtt = None;
    assert_eq!(ranked(&equal), [1, 0, 2, 3], "what was never measured comes last");
    equal[1].usable = false;
    assert_eq!(ranked(&equal), [0, 2, 3]);
}

#[test]
fn another_quality_may_come_first() {
    let mut three = paths(&[50, 70, 90]);
    three[1].loss_rate = 0.01;
    three[2].cwnd = 9000;
    three[1].ssthresh = three[2].ssthresh + 1;
    let ranked = |first| ranked_with(first, 1, &three);
    assert_eq!(ranked(RedundancyOrder::Rtt), [0, 1, 2]);
    assert_eq!(ranked(RedundancyOrder::Cwnd), [2, 0, 1], "equal windows: by the RTT");
    assert_eq!(ranked(RedundancyOrder::Ssthresh), [1, 0, 2]);
    assert_eq!(ranked(RedundancyOrder::Loss), [0, 2, 1]);
}

#[test]
fn equal_paths_are_in_a_random_order() {
    let equal = paths(&[50, 50, 50]);
    let orders: std::collections::BTreeSet<Vec<u8>> =
        (0..50).map(|seed| ranked_by(seed, &equal)).collect();
    assert_eq!(orders.len(), 6, "every order of three comes up");
}

#[test]
fn rt_duplicates_the_best_path_on_the_worst_for_ever() {
    let mut policy = MsacmtRt::new(RedundancyOrder::Rtt);
    let mut three = paths(&[50, 70, 90]);
    assert_eq!(cover(&mut policy, &three), Some((2, 0)));
    for _ in 0..100 {
        succeed(&mut policy, &[0, 1, 2]);
    }
    three[1].srtt = Some(Duration::from_millis(200));
    assert_eq!(cover(&mut policy, &three), Some((2, 0)), "no reason to rank them anew");
    policy.flight_failed(PathId(0));
    assert_eq!(cover(&mut policy, &three), Some((1, 0)));
    three[1].usable = false;
    assert_eq!(cover(&mut policy, &three), Some((2, 0)));
    three[0].usable = false;
    assert_eq!(cover(&mut policy, &three), None, "one path is left");
}

#[test]
fn rt_that_ranks_once_keeps_its_first_order() {
    let mut policy = MsacmtRtOnce::new(RedundancyOrder::Rtt);
    let unmeasured = [view(0), view(1), view(2)];
    assert!(cover(&mut policy, &unmeasured).is_some(), "some order");
    let mut three = paths(&[50, 90, 70]);
    assert_eq!(cover(&mut policy, &three), Some((1, 0)), "the first whole order");
    three[0].srtt = Some(Duration::from_millis(200));
    policy.flight_failed(PathId(0));
    assert_eq!(cover(&mut policy, &three), Some((1, 0)), "no timeout changes it");
    three[0].usable = false;
    assert_eq!(cover(&mut policy, &three), Some((1, 2)), "a failed path has no role");
    three[0].usable = true;
    assert_eq!(cover(&mut policy, &three), Some((1, 0)), "and returns to its place");
    three[0].usable = false;
    three[2].usable = false;
    assert_eq!(cover(&mut policy, &three), None, "one path is left");
}

/// RTv2 with three paths that have proved themselves for the first time, in the phase of all paths.
fn rtv2_of_all_paths(cycle: RedundancyCycle, three: &[PathView]) -> MsacmtRtv2 {
    let mut policy = MsacmtRtv2::new(2, cycle, RedundancyOrder::Rtt);
    assert_eq!(cover(&mut policy, three), Some((2, 1)));
    succeed(&mut policy, &[0, 0, 1, 1, 2]);
    assert_eq!(cover(&mut policy, three), Some((2, 1)), "path 3 has one success only");
    succeed(&mut policy, &[2]);
    assert_eq!(cover(&mut policy, three), None, "all carry new data");
    policy
}

#[test]
fn rtv2_keeps_all_paths_after_a_review_and_ranks_them_anew() {
    let mut three = paths(&[50, 70, 90]);
    let mut policy = rtv2_of_all_paths(RedundancyCycle::Keep, &three);
    for _ in 0..3 {
        succeed(&mut policy, &[0, 0, 1, 1, 2]);
        assert_eq!(cover(&mut policy, &three), None);
        three[0].srtt = Some(Duration::from_millis(80));
        assert_eq!(policy.ranking.order[0], PathId(0), "the review is not over");
        succeed(&mut policy, &[2]);
        assert_eq!(cover(&mut policy, &three), None, "Algorithm 1, step 11: to step 8");
        assert_eq!(policy.ranking.order[0], PathId(1), "ranked anew");
        assert_eq!(policy.successes, [0, 0, 0], "and counted anew");
        three[0].srtt = Some(Duration::from_millis(50));
        succeed(&mut policy, &[0, 0, 1, 1, 2, 2]);
        assert_eq!(cover(&mut policy, &three), None);
    }
    policy.flight_failed(PathId(0));
    assert_eq!(cover(&mut policy, &three), Some((2, 1)), "step 10: to step 1");
}

#[test]
fn rtv2_may_restart_with_redundancy_after_a_review() {
    let mut three = paths(&[50, 70, 90]);
    let mut policy = rtv2_of_all_paths(RedundancyCycle::Restart, &three);
    succeed(&mut policy, &[1, 1, 2, 2, 0]);
    assert_eq!(cover(&mut policy, &three), None);
    three[0].srtt = Some(Duration::from_millis(80));
    succeed(&mut policy, &[0]);
    assert_eq!(cover(&mut policy, &three), Some((2, 0)), "ranked anew");
}

/// Flights of each path until all carry new data no more.
fn flights_of_all_paths(policy: &mut MsacmtRtv2, three: &[PathView]) -> u32 {
    let mut flights = 0;
    while cover(policy, three).is_none() {
        succeed(policy, &[0, 1, 2]);
        flights += 1;
        assert!(flights < 100, "a review that never comes");
    }
    succeed(policy, &[0, 1, 2]);
    succeed(policy, &[0, 1, 2]);
    assert_eq!(cover(policy, three), None, "two flights prove two paths, however often");
    flights
}

#[test]
fn rtv2_reviews_paths_less_often_that_stay_as_they_are() {
    let mut three = paths(&[50, 70, 90]);
    let mut policy = rtv2_of_all_paths(RedundancyCycle::Dynamic, &three);
    assert_eq!(flights_of_all_paths(&mut policy, &three), 2);
    assert_eq!(flights_of_all_paths(&mut policy, &three), 4);
    assert_eq!(flights_of_all_paths(&mut policy, &three), 8);
    three[0].srtt = Some(Duration::from_millis(80));
    assert_eq!(flights_of_all_paths(&mut policy, &three), 16, "another order is not known yet");
    assert_eq!(flights_of_all_paths(&mut policy, &three), 2, "the order changed");
    policy.flight_failed(PathId(0));
    assert!(cover(&mut policy, &three).is_some());
    succeed(&mut policy, &[0, 0, 1, 1, 2, 2]);
    assert_eq!(flights_of_all_paths(&mut policy, &three), 2, "and so does a failure");
}

#[test]
fn rtv2_starts_over_after_any_failure() {
    let mut policy = MsacmtRtv2::new(1, RedundancyCycle::Keep, RedundancyOrder::Rtt);
    let mut three = paths(&[50, 70, 90]);
    assert_eq!(cover(&mut policy, &three), Some((2, 1)));
    succeed(&mut policy, &[1]);
    policy.flight_failed(PathId(0));
    assert_eq!(cover(&mut policy, &three), Some((2, 1)));
    succeed(&mut policy, &[2]);
    assert_eq!(cover(&mut policy, &three), Some((2, 1)), "the count began anew");
    succeed(&mut policy, &[1]);
    assert_eq!(cover(&mut policy, &three), None);
    three[2].usable = false;
    assert_eq!(cover(&mut policy, &three), Some((1, 0)), "a path failed");
    three[2].usable = true;
    assert_eq!(cover(&mut policy, &three), Some((2, 1)), "and came back");
}

#[test]
fn roles_are_given_anew_once_the_paths_are_measured() {
    let mut policy = MsacmtRt::new(RedundancyOrder::Rtt);
    let unmeasured = [view(0), view(1), view(2)];
    assert!(cover(&mut policy, &unmeasured).is_some(), "some order");
    assert_eq!(cover(&mut policy, &paths(&[50, 90, 70])), Some((1, 0)));
    assert_eq!(cover(&mut policy, &paths(&[90, 50, 70])), Some((1, 0)), "once");
}

#[test]
fn of_two_paths_the_worse_duplicates_the_better() {
    let two = paths(&[90, 50]);
    assert_eq!(cover(&mut MsacmtRt::new(RedundancyOrder::Rtt), &two), Some((0, 1)));
    let rtv2 = || MsacmtRtv2::new(10, RedundancyCycle::Keep, RedundancyOrder::Rtt);
    assert_eq!(cover(&mut rtv2(), &two), Some((0, 1)));
    assert_eq!(cover(&mut rtv2(), &two[..1]), None);
}

#[test]
fn off_is_never_asked() {
    assert!(!Off.needs().roles);
    assert_eq!(cover(&mut Off, &paths(&[50, 70])), None);
}
