//! Each policy against paths written by hand.

use std::time::Duration;

use super::*;
use crate::Rng;
use crate::config::Config;
use crate::policy::Factory;
use crate::policy::cc::Estimate;
use crate::policy::tests::{cx, view};
use crate::view::PathView;

fn choose(name: &str, paths: &[PathView], last: u8, seed: u64) -> Option<PathId> {
    choose_again(name, paths, (last, 1), seed)
}

/// The choice for a chunk that was last sent on a path, and so often on all paths.
fn choose_again(
    name: &str,
    paths: &[PathView],
    (last, transmissions): (u8, u16),
    seed: u64,
) -> Option<PathId> {
    let cause = LossCause::FastRetransmit;
    let lost = RtxCandidate { last_path: PathId(last), cause, transmissions };
    let factory = Factory::<dyn RtxPolicy>::named(name).expect("a registered name");
    let mut policy = factory.build(&Config::default());
    policy.choose(&mut cx(paths, 0, &mut Rng::from_number(seed)), &lost)
}

#[test]
fn every_policy_follows_its_own_measure() {
    let mut paths = [view(0), view(1), view(2)];
    paths[0] = PathView { cwnd: 9000, ssthresh: 4000, loss_rate: 0.03, ..paths[0].clone() };
    paths[1] = PathView { cwnd: 6000, ssthresh: 8000, loss_rate: 0.02, ..paths[1].clone() };
    paths[2] = PathView { cwnd: 3000, ssthresh: 6000, loss_rate: 0.01, ..paths[2].clone() };
    let expected = [("same", 1), ("cwnd", 0), ("ssthresh", 1), ("lossrate", 2), ("csl", 0)];
    for (name, path) in expected {
        assert_eq!(choose(name, &paths, 1, 1), Some(PathId(path)), "{name}");
    }
    paths[1].cwnd = 9000;
    assert_eq!(
        choose("csl", &paths, 0, 1),
        Some(PathId(1)),
        "ssthresh decides between equal cwnds"
    );
}

#[test]
fn soonest_counts_what_waits_in_queues() {
    // 10 Mbit/s: 25 kB fill the path, what is more waits in its queue.
    let estimate =
        Some(Estimate { rate: 1.25e6, min_rtt: Duration::from_millis(20), is_settled: true });
    let path = |id, flight_size| PathView { estimate, flight_size, cwnd_space: 1, ..view(id) };
    assert_eq!(choose("soonest", &[path(0, 50_000), path(1, 30_000)], 0, 1), Some(PathId(1)));
    assert_eq!(choose("soonest", &[path(0, 30_000), path(1, 50_000)], 1, 1), Some(PathId(0)));
    let srtt = Some(Duration::from_millis(20));
    let full = PathView { cwnd_space: 0, srtt, ..path(0, 25_000) };
    let far = |ms| PathView { srtt: Some(Duration::from_millis(ms)), cwnd_space: 1, ..view(1) };
    assert_eq!(choose("soonest", &[full.clone(), far(40)], 0, 1), Some(PathId(1)));
    assert_eq!(choose("soonest", &[full, far(80)], 0, 1), None, "30 ms there, 40 ms here");
}

#[test]
fn soonest_leaves_a_path_that_loses_a_chunk_again_and_again() {
    let path = |id, ms| {
        let min_rtt = Duration::from_millis(ms);
        let estimate = Some(Estimate { rate: 1.25e6, min_rtt, is_settled: true });
        PathView { estimate, srtt: Some(min_rtt), cwnd_space: 1, ..view(id) }
    };
    // 5 ms on the near path, and 10 ms for each loss of the retransmission; 40 ms on the far one.
    let paths = [path(0, 10), path(1, 80)];
    let sent = |times, last| choose_again("soonest", &paths, (last, times), 1);
    assert_eq!([1, 2, 4].map(|times| sent(times, 0)), [Some(PathId(0)); 3]);
    assert_eq!(sent(5, 0), Some(PathId(1)), "45 ms there");
    assert_eq!(sent(6, 1), Some(PathId(0)), "the far path lost it, too");
    let alone = &paths[..1];
    assert_eq!(choose_again("soonest", alone, (0, 9), 1), Some(PathId(0)), "there is no other");
}

#[test]
fn no_policy_uses_a_path_that_is_not_usable() {
    let mut paths = [view(0), view(1)];
    paths[0] = PathView { cwnd: 9000, ssthresh: 9000, usable: false, ..paths[0].clone() };
    for &name in Factory::<dyn RtxPolicy>::NAMES {
        assert_eq!(choose(name, &paths, 0, 1), Some(PathId(1)), "{name}");
    }
}

#[test]
fn a_ranking_policy_waits_for_the_best_path_and_asap_does_not() {
    let mut paths = [view(0), view(1)];
    paths[0] = PathView { cwnd: 9000, ssthresh: 9000, loss_rate: -1.0, ..paths[0].clone() };
    paths[0].cwnd_space = 0;
    for &name in Factory::<dyn RtxPolicy>::NAMES {
        // AllRtxAlt ranks nothing: path 1 is its choice, and has room.
        let expected =
            matches!(name, "asap" | "all_rtx_alt" | "pipe_cwnd" | "soonest").then_some(PathId(1));
        assert_eq!(choose(name, &paths, 0, 1), expected, "{name}");
    }
}

#[test]
fn an_alternate_is_the_next_usable_path_round_robin() {
    let mut paths = [view(0), view(1), view(2)];
    let turn = |last, cause| {
        let lost = RtxCandidate { last_path: PathId(last), cause, transmissions: 1 };
        let mut rng = Rng::from_number(1);
        FrSameRtoAlt.choose(&mut cx(&paths, 0, &mut rng), &lost).map(|id| id.0)
    };
    let timeouts = [0, 1, 2].map(|last| turn(last, LossCause::Timeout));
    assert_eq!(timeouts, [Some(1), Some(2), Some(0)]);
    let fast = [0, 1, 2].map(|last| turn(last, LossCause::FastRetransmit));
    assert_eq!(fast, [Some(0), Some(1), Some(2)]);
    assert_eq!(choose("all_rtx_alt", &paths, 2, 1), Some(PathId(0)));
    paths[0].usable = false;
    assert_eq!(choose("all_rtx_alt", &paths, 2, 1), Some(PathId(1)));
    paths[1].cwnd_space = 0;
    assert_eq!(choose("all_rtx_alt", &paths, 2, 1), None, "it waits for that path's window");
    paths[1].usable = false;
    assert_eq!(choose("all_rtx_alt", &paths, 2, 1), Some(PathId(2)), "there is no other");
}

#[test]
fn ties_are_broken_at_random_from_the_seed() {
    let paths = [view(0), view(1), view(2)];
    let picks = |name| (0..300).map(|seed| choose(name, &paths, 0, seed)).collect::<Vec<_>>();
    for name in ["asap", "cwnd", "ssthresh", "lossrate", "csl"] {
        let all = picks(name);
        for path in 0..3 {
            let count = all.iter().filter(|&&p| p == Some(PathId(path))).count();
            assert!((60..140).contains(&count), "{name} chose path {path} {count} times of 300");
        }
        assert_eq!(all, picks(name), "the same seeds choose the same paths");
    }
}
