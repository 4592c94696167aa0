//! Paths that share their hops (mTCP paper, section 3.3): what an association does with what its
//! application found of routes.

use std::time::Duration;

use manypath_proto::PathState::{Active, PotentiallyFailed};
use manypath_proto::overlay::{Route, RouterId};
use manypath_proto::{Event, Instant, PathId, RestoreReason, SuppressReason};
use manypath_sim::chunk_type::DATA;
use manypath_sim::{Pair, PathSpec, QueueLimit, path_state, secs};

use crate::MIB;

const P0: PathId = PathId(0);
const P1: PathId = PathId(1);
const P2: PathId = PathId(2);
const P3: PathId = PathId(3);
const HERE: u32 = 100;
const PEER: u32 = 101;

/// Paths with these one-way delays in ms that carry a file. Shared bottlenecks are not looked for,
/// so that nothing but their hops sets a path aside.
fn transfer(delays_ms: &[f64], settings: &[(&str, &str)]) -> Pair {
    let paths = delays_ms.iter().map(|&ms| PathSpec::new().delay_ms(ms)).collect();
    let mut t = Pair::paths("mtcp", paths).rate_mbps(10.0).queue(QueueLimit::Packets(60)).seed(5);
    t = t.set("shared_congestion", "off");
    for (name, value) in settings {
        t = t.set(name, value);
    }
    let mut t = t.connect();
    t.a.send_file(64 * MIB);
    t
}

/// A route through these routers, each with its RTT in ms, to the peer.
fn route(routers: &[(u32, u64)], rtt_ms: u64) -> Route {
    let ends = [(HERE, 0)].into_iter().chain(routers.iter().copied()).chain([(PEER, rtt_ms)]);
    Route::from_rtts(ends.map(|(id, ms)| (Some(RouterId(id)), Duration::from_millis(ms))))
}

/// A direct path over router 1, one through a host behind that router, and one over another router.
fn one_behind_another() -> [(PathId, Route); 3] {
    [(P0, route(&[(1, 38)], 40)), (P1, route(&[(1, 38), (7, 44)], 60)), (P2, route(&[(2, 50)], 80))]
}

fn set_routes(t: &mut Pair, now: Instant, routes: &[(PathId, Route)]) {
    t.a.command(|assoc| assoc.set_routes(now, routes.iter().cloned()));
}

/// The paths set aside for their hops, and those that came back, after `since`.
fn changes(t: &Pair, since: Instant) -> Vec<(PathId, &'static str)> {
    let change = |event: &Event| match event {
        Event::PathSuppressed { path, reason } => Some((*path, reason.name())),
        Event::PathRestored { path, reason } => Some((*path, reason.name())),
        _ => None,
    };
    t.a.events().iter().filter(|(at, _)| *at >= since).filter_map(|(_, e)| change(e)).collect()
}

fn used(t: &Pair) -> Vec<PathId> {
    t.a.paths().iter().filter(|p| p.suppressed.is_none()).map(|p| p.id).collect()
}

#[test]
fn a_path_behind_another_one_carries_no_more_data() {
    let mut t = transfer(&[20.0, 30.0, 40.0], &[]);
    t.run_until(secs(2));
    set_routes(&mut t, secs(2), &one_behind_another());
    t.run_until(secs(10));
    let told = t.a.events().iter().find_map(|(at, event)| match event {
        Event::SharedHops { path, with, disjoint } => Some((*at, *path, *with, *disjoint)),
        _ => None,
    });
    let (at, path, with, disjoint) = told.expect("told");
    assert_eq!((at, path, with), (secs(2), P1, P0));
    assert!((disjoint - 0.05).abs() < 1e-9, "19 of the direct path's 20 ms are shared: {disjoint}");
    assert_eq!(changes(&t, secs(0)), [(P1, "shares_hops")]);
    let by = |path| t.sent(DATA).on(path).since(secs(3)).count();
    assert_eq!(by(P1), 0);
    assert!(by(P0) > 2000 && by(P2) > 2000, "{} {}", by(P0), by(P2));
    assert!(t.run_to_end(secs(120)).result().completed);
}

#[test]
fn it_comes_back_when_that_one_fails_and_goes_when_it_works_again() {
    let mut t = transfer(&[20.0, 30.0, 40.0], &[]);
    t.run_until(secs(2));
    set_routes(&mut t, secs(2), &one_behind_another());
    t.run_until(secs(5));
    t.net.path(0).cut_for(Duration::from_secs(6));
    let failed = t.run_until_event(path_state(P0, PotentiallyFailed));
    assert_eq!(changes(&t, secs(5)), [(P1, "disjoint")], "at {failed:?}");
    let back = t.run_until_event(path_state(P0, Active));
    t.run_until(back + Duration::from_secs(1));
    assert!(t.sent(DATA).on(P1).since(failed).count() > 500);
    assert_eq!(changes(&t, back), [(P0, SuppressReason::SharesHops.name())], "the other one works");
    assert_eq!(used(&t), [P1, P2]);
    assert!(t.run_to_end(secs(120)).result().completed);
}

#[test]
fn a_later_look_at_the_hops_takes_it_back() {
    for later in [route(&[(3, 20), (7, 44)], 60), Route::default()] {
        let mut t = transfer(&[20.0, 30.0, 40.0], &[]);
        t.run_until(secs(2));
        set_routes(&mut t, secs(2), &one_behind_another());
        t.run_until(secs(4));
        assert_eq!(used(&t), [P0, P2]);
        set_routes(&mut t, secs(4), &[(P1, later)]);
        t.run_until(secs(6));
        assert_eq!(changes(&t, secs(4)), [(P1, RestoreReason::Disjoint.name())]);
        assert!(t.sent(DATA).on(P1).since(secs(5)).count() > 200);
    }
}

#[test]
fn paths_min_keeps_paths_whatever_they_share() {
    let mut t = transfer(&[20.0, 30.0, 40.0], &[("paths_min", "3")]);
    t.run_until(secs(2));
    set_routes(&mut t, secs(2), &one_behind_another());
    t.run_until(secs(15));
    assert_eq!(changes(&t, secs(0)), []);
    let mut t = transfer(&[20.0, 30.0], &[("paths_min", "1")]);
    t.run_until(secs(2));
    set_routes(&mut t, secs(2), &one_behind_another()[..2]);
    t.run_until(secs(15));
    assert_eq!(used(&t), [P0]);
}

#[test]
fn a_path_in_use_stays_while_it_works() {
    let mut t = transfer(&[20.0, 30.0, 40.0], &[("path_review_interval", "off")]);
    t.run_until(secs(2));
    let routes = one_behind_another();
    set_routes(&mut t, secs(2), &routes);
    t.net.path(0).set_delay(Duration::from_millis(400));
    t.run_until(secs(10));
    set_routes(&mut t, secs(10), &routes);
    t.run_until(secs(12));
    assert_eq!(changes(&t, secs(0)), [(P1, "shares_hops")]);
    assert!(t.sent(DATA).on(P0).since(secs(10)).count() > 50);
}

#[test]
fn no_spare_takes_a_place_whose_hops_are_used_already() {
    let mut t = transfer(&[20.0, 25.0, 30.0, 60.0], &[("paths_max", "2")]);
    t.run_until(secs(2));
    assert_eq!(used(&t).len(), 2, "{:?}", changes(&t, secs(0)));
    let kept = used(&t)[0];
    let other = used(&t)[1];
    let spares: Vec<PathId> =
        [P0, P1, P2, P3].into_iter().filter(|p| !used(&t).contains(p)).collect();
    // All but the last of the spares go the way of the one that stays.
    let along = |id: PathId| (id, route(&[(1, 38), (10 + u32::from(id.0), 44)], 60));
    let beside = (spares[1], route(&[(2, 50)], 80));
    set_routes(
        &mut t,
        secs(2),
        &[along(kept), along(spares[0]), beside, (other, route(&[(3, 9)], 40))],
    );
    t.run_until(secs(3));
    t.net.path(other.0.into()).cut();
    let failed = t.run_until_event(path_state(other, PotentiallyFailed));
    assert_eq!(changes(&t, failed), [(spares[1], RestoreReason::TooFew.name())]);
}
