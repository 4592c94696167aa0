use std::net::IpAddr;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A route of routers by number, 255 for one that is silent, with the latency of the link to each.
fn route(hops: &[(u8, u64)]) -> Route {
    let hop = |&(router, latency): &(u8, u64)| Hop {
        router: (router != 255).then_some(RouterId(router.into())),
        latency: if router == 255 { Duration::ZERO } else { ms(latency) },
    };
    Route { hops: hops.iter().map(hop).collect() }
}

#[test]
fn the_score_is_the_formula_of_the_paper() {
    let s = score(ms(100), 0.01);
    assert!((s - 1.5f64.sqrt() / (0.1 * 0.1)).abs() < 1e-9, "{s}");
    assert_eq!([score(ms(0), 0.01), score(ms(10), 0.0), score(ms(10), 1.0)], [0.0; 3]);
}

#[test]
fn probes_give_round_trip_time_and_a_loss_above_zero() {
    let mut probes = Probes::default();
    assert_eq!(probes.score(), 0.0);
    for i in 0..20 {
        probes.add((i != 7).then_some(ms(40 + i % 2 * 20)));
    }
    assert_eq!((probes.sent, probes.answered, probes.rtt_min), (20, 19, Some(ms(40))));
    assert_eq!(probes.lost(), 0.05);
    assert!((probes.loss() - 1.5 / 21.0).abs() < 1e-12);
    let rtt = probes.rtt().unwrap();
    assert!(rtt > ms(49) && rtt < ms(51), "{rtt:?}");

    let (mut clean, mut dead) = (Probes::default(), Probes::default());
    for _ in 0..20 {
        clean.add(Some(ms(50)));
        dead.add(None);
    }
    assert!(clean.score() > probes.score());
    assert_eq!((dead.score(), dead.lost()), (0.0, 1.0));
}

#[test]
fn shared_latency_counts_not_the_number_of_shared_links() {
    // Both leave through the same two routers, 1 ms; then 20 ms apart from each other.
    let x = route(&[(0, 0), (1, 1), (2, 0), (3, 20), (9, 4)]);
    let y = route(&[(0, 0), (1, 1), (2, 0), (4, 30), (9, 4)]);
    assert!((disjoint(&x, &y) - (1.0 - 1.0 / 25.0)).abs() < 1e-12);
    assert_eq!(shared_links(&x, &y).len(), 2);
    // The other way round is another link.
    let back = route(&[(3, 0), (2, 20)]);
    assert_eq!(disjoint(&x, &back), 1.0);
}

#[test]
fn silent_routers_between_the_same_two_are_taken_for_the_same() {
    let x = route(&[(0, 0), (255, 0), (5, 10)]);
    let y = route(&[(0, 0), (255, 0), (5, 12)]);
    let z = route(&[(0, 0), (255, 0), (255, 0), (5, 10)]);
    assert_eq!(disjoint(&x, &y), 0.0);
    assert_eq!(disjoint(&x, &z), 1.0, "another number of routers is another way");
}

#[test]
fn where_latencies_are_too_small_links_are_counted() {
    let x = route(&[(0, 0), (1, 0), (2, 0), (3, 0)]);
    let y = route(&[(0, 0), (1, 0), (2, 0), (4, 0)]);
    assert_eq!(disjoint(&x, &y), 0.5, "the uplink, which is in all paths, is not counted");
    assert_eq!(disjoint(&route(&[]), &y), 1.0, "nothing is known of it");
    // All of the measured latency is in the shared links, and it says nothing.
    let mut short = x.clone();
    short.hops[2].latency = RESOLUTION / 2;
    let long = route(&[(0, 0), (1, 1), (2, 1), (4, 20)]);
    assert_eq!((disjoint(&short, &long), disjoint(&short, &short)), (0.5, 0.0));
}

#[test]
fn paths_that_part_at_the_first_router_are_disjoint() {
    let direct = route(&[(0, 0), (1, 0), (9, 0)]);
    let relayed = |relay| route(&[(0, 0), (1, 0), (relay, 0), (9, 0)]);
    assert_eq!((disjoint(&direct, &relayed(2)), disjoint(&relayed(2), &relayed(3))), (1.0, 1.0));
    assert_eq!(disjoint(&direct, &direct), 0.0);
    let uplink = route(&[(0, 0), (1, 0)]);
    assert_eq!(disjoint(&uplink, &relayed(2)), 0.0, "nothing of it is outside of the other one");
}

#[test]
fn the_last_link_that_both_take_is_no_reason_against_a_path() {
    // A destination has one link to its router.
    let direct = route(&[(0, 0), (1, 0), (2, 0), (9, 0)]);
    let relayed = |relay| route(&[(0, 0), (1, 0), (relay, 0), (2, 0), (9, 0)]);
    assert_eq!((disjoint(&direct, &relayed(3)), disjoint(&relayed(3), &relayed(4))), (1.0, 1.0));
    let far_half = |relay| route(&[(0, 0), (1, 0), (relay, 0), (5, 0), (2, 0), (9, 0)]);
    assert_eq!(disjoint(&far_half(3), &far_half(4)), 1.0 - 1.0 / 3.0);
    // A route that passes the same link twice, as no honest relay tells.
    let loops = |by| route(&[(0, 0), (9, 0), (by, 0), (0, 0), (9, 0)]);
    assert_eq!(disjoint(&loops(3), &loops(4)), 1.0);
}

#[test]
fn latencies_come_from_round_trip_times() {
    let id = |n| Some(RouterId(n));
    let rtts = [(id(0), ms(0)), (id(1), ms(2)), (None, ms(0)), (id(2), ms(1)), (id(3), ms(12))];
    let latencies: Vec<_> = Route::from_rtts(rtts).hops.iter().map(|h| h.latency).collect();
    assert_eq!(latencies, [ms(0), ms(1), ms(0), ms(0), ms(5)]);
}

#[test]
fn aliases_are_one_router() {
    let ip = |n: u8| IpAddr::from([192, 0, 2, n]);
    let mut aliases = Aliases::new();
    let before = aliases.router(ip(1));
    assert_ne!(before, aliases.router(ip(2)));
    aliases.join(ip(3), ip(2));
    aliases.join(ip(1), ip(3));
    for n in [1, 2, 3] {
        assert_eq!(aliases.router(ip(n)), before);
    }
    assert_ne!(aliases.router(ip(4)), before);
}

#[test]
fn selection_is_greedy_by_score_and_says_why() {
    let candidate = |score, hops: &[(u8, u64)]| Candidate { score, route: route(hops) };
    let candidates = [
        candidate(10.0, &[(0, 0), (1, 10), (9, 10)]),
        candidate(30.0, &[(0, 0), (2, 10), (9, 10)]),
        candidate(20.0, &[(0, 0), (2, 10), (3, 2), (9, 9)]),
        candidate(0.0, &[(0, 0), (4, 10), (9, 10)]),
        candidate(5.0, &[(0, 0), (5, 10), (9, 10)]),
        candidate(1.0, &[(0, 0), (6, 10), (9, 10)]),
    ];
    let choices = select(&candidates, 0.5, 3);
    assert_eq!(choices[1], Choice::Selected { rank: 1 });
    assert_eq!(choices[2], Choice::Overlaps { with: 1, disjoint: 0.5 });
    assert_eq!(choices[0], Choice::Selected { rank: 2 });
    assert_eq!(choices[4], Choice::Selected { rank: 3 });
    assert_eq!(choices[5], Choice::Enough);
    assert_eq!(choices[3], Choice::Dead);
}

fn any_route() -> impl Strategy<Value = Route> {
    let hop = (prop_oneof![0u8..8, Just(255)], 0u64..50);
    prop::collection::vec(hop, 0..8).prop_map(|hops| route(&hops))
}

fn any_candidate() -> impl Strategy<Value = Candidate> {
    (prop_oneof![Just(0.0), 0.0..100.0], any_route())
        .prop_map(|(score, route)| Candidate { score, route })
}

proptest! {
    #[test]
    fn disjointness_is_symmetric_and_within_0_and_1(x in any_route(), y in any_route()) {
        let d = disjoint(&x, &y);
        prop_assert!((0.0..=1.0).contains(&d), "{d}");
        prop_assert!((d - disjoint(&y, &x)).abs() < 1e-12);
    }

    #[test]
    fn a_route_whose_routers_all_answered_overlaps_with_itself(
        hops in prop::collection::vec((0u8..8, 1u64..50), 2..8)
    ) {
        let mut hops = hops;
        // The source has no latency, and no router follows itself.
        hops[0].1 = 0;
        hops.dedup_by_key(|h| h.0);
        prop_assume!(hops.len() > 1);
        let x = route(&hops);
        prop_assert!(disjoint(&x, &x) < 1e-12);
    }

    #[test]
    fn a_selection_is_small_disjoint_and_cannot_be_added_to(
        candidates in prop::collection::vec(any_candidate(), 0..10),
        beta in 0.0f64..1.0,
        k in 0usize..6,
    ) {
        let choices = select(&candidates, beta, k);
        prop_assert_eq!(choices.len(), candidates.len());
        let chosen: Vec<usize> = (0..choices.len())
            .filter(|&i| matches!(choices[i], Choice::Selected { .. }))
            .collect();
        prop_assert!(chosen.len() <= k);
        for (n, &a) in chosen.iter().enumerate() {
            for &b in &chosen[n + 1..] {
                prop_assert!(disjoint(&candidates[a].route, &candidates[b].route) > beta);
            }
        }
        for (index, candidate) in candidates.iter().enumerate() {
            match choices[index] {
                Choice::Dead => prop_assert!(candidate.score == 0.0),
                Choice::Enough => prop_assert_eq!(chosen.len(), k),
                Choice::Overlaps { with, disjoint: d } => {
                    prop_assert!(chosen.contains(&with) && d <= beta);
                    prop_assert!(candidates[with].score >= candidate.score);
                }
                Choice::Selected { rank } => prop_assert!((1..=chosen.len()).contains(&rank)),
            }
        }
        let best = candidates.iter().map(|c| c.score).fold(0.0, f64::max);
        if k > 0 && best > 0.0 {
            prop_assert!(chosen.iter().any(|&i| candidates[i].score == best));
        }
    }
}
