//! Which legs are traced and which routes the engine learns, with made-up measurements.

use manypath_net::{Trace, TraceHop};
use manypath_proto::AssocClosed;
use manypath_proto::overlay::disjoint;
use tokio::sync::broadcast;

use super::*;

const P0: PathId = PathId(0);
const P1: PathId = PathId(1);
const P2: PathId = PathId(2);
/// Ours, on an interface that every host has: the system is asked which of ours leads to a relay.
const OURS: [u8; 4] = [127, 0, 0, 1];
const RELAY: [u8; 4] = [127, 0, 0, 2];
const OTHER_RELAY: [u8; 4] = [127, 0, 0, 3];
const PEER: [u8; 4] = [192, 0, 2, 9];

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn leg(to: [u8; 4]) -> Leg {
    (OURS.into(), to.into())
}

/// A relay that gave us port `port`, or none yet.
fn relay(address: [u8; 4], port: Option<u16>) -> RelayStatus {
    let mut status = RelayStatus::new(format!("{address:?}"), (address, 3478).into());
    status.relayed = port.map(|port| (address, port).into());
    status
}

fn direct(id: PathId) -> Way {
    let local = (OURS, 5000).into();
    Way { id, local, remote: (PEER, 9899).into(), rtt_min: Some(ms(20)), of_relay: false }
}

fn through(id: PathId, relay: [u8; 4], port: u16) -> Way {
    let local = (relay, port).into();
    Way { id, local, rtt_min: Some(ms(40)), of_relay: true, ..direct(id) }
}

/// Routers by their last number, and the milliseconds after which they answered.
fn trace(hops: &[(u8, u64)], reached: bool) -> Trace {
    let hop = |&(n, at): &(u8, u64)| TraceHop { answer: Some(([198, 51, 100, n].into(), ms(at))) };
    Trace { hops: hops.iter().map(hop).collect(), reached }
}

/// The direct path by routers 1 and 2; one relay is behind router 2, the other behind router 4.
fn traced() -> Routes {
    let mut routes = Routes::new();
    routes.insert(leg(PEER), trace(&[(1, 2), (2, 15)], false));
    routes.insert(leg(RELAY), trace(&[(1, 2), (2, 15)], false));
    routes.insert(leg(OTHER_RELAY), trace(&[(4, 15)], false));
    routes
}

#[test]
fn looks_come_soon_in_the_beginning_and_then_at_the_interval() {
    let begin = Instant::now();
    let looks = |interval: u64| -> Vec<u64> {
        let mut looks = Looks::new(begin, Duration::from_secs(interval));
        (0..120).filter(|s| looks.take_due(begin + Duration::from_secs(*s))).collect()
    };
    assert_eq!(looks(60), [0, 2, 6, 14, 30, 62]);
    assert_eq!(looks(50), [0, 2, 6, 14, 30, 62, 112]);
    assert_eq!(looks(1)[..4], [0, 1, 2, 3]);
}

#[test]
fn every_leg_is_traced_when_it_is_due_and_only_new_ones_before() {
    let paths = [direct(P0), direct(P1), through(P2, RELAY, 6000)];
    let relays = [relay(RELAY, Some(6000)), relay(OTHER_RELAY, None)];
    let mut routes = Routes::new();
    let all = [leg(RELAY), leg(OTHER_RELAY), leg(PEER)];
    let first = legs_to_trace(&mut routes, &paths, &relays, true);
    assert_eq!(first, all, "one leg of two paths once, and that of a path to come");
    routes.insert(leg(PEER), trace(&[(1, 2)], false));
    let new = legs_to_trace(&mut routes, &paths, &relays, false);
    assert_eq!(new, [leg(RELAY), leg(OTHER_RELAY)]);
    let mut routes = traced();
    assert_eq!(legs_to_trace(&mut routes, &paths, &relays, false), []);
    assert_eq!(legs_to_trace(&mut routes, &paths, &relays, true), all, "each interval again");
}

#[test]
fn what_no_path_uses_any_more_is_forgotten() {
    let mut routes = traced();
    let relays = [relay(OTHER_RELAY, Some(6000))];
    assert_eq!(legs_to_trace(&mut routes, &[direct(P0)], &relays, false), []);
    assert!(!routes.knows(leg(RELAY)), "no path, no relay");
    assert!(routes.knows(leg(PEER)) && routes.knows(leg(OTHER_RELAY)));
}

#[test]
fn a_path_whose_relay_has_another_address_for_us_is_not_traced_and_not_told() {
    let stale = [through(P0, RELAY, 6000)];
    let relays = [relay(RELAY, Some(7000))];
    assert_eq!(stale[0].leg(&relays), None);
    assert_eq!(known_routes(&traced(), &stale, &relays), []);
    assert_eq!(through(P0, RELAY, 7000).leg(&relays), Some(leg(RELAY)));
    assert_eq!(stale[0].leg(&[]), None, "nor one whose relay is gone");
}

#[test]
fn the_engine_is_told_which_paths_share_their_hops() {
    let paths = [direct(P0), through(P1, RELAY, 6000), through(P2, OTHER_RELAY, 6000)];
    let relays = [relay(RELAY, Some(6000)), relay(OTHER_RELAY, Some(6000))];
    let found = known_routes(&traced(), &paths, &relays);
    let ids: Vec<PathId> = found.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [P0, P1, P2]);
    let between = |a: usize, b: usize| disjoint(&found[a].1, &found[b].1);
    assert!(between(0, 1) < 0.5, "15 of 20 ms are the same link: {}", between(0, 1));
    assert_eq!((between(0, 2), between(1, 2)), (1.0, 1.0));
}

#[test]
fn a_path_without_a_round_trip_time_waits() {
    let silent = Way { rtt_min: None, ..direct(P0) };
    let found = known_routes(&traced(), &[silent, direct(P1)], &[]);
    assert_eq!(found.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [P1]);
}

/// Waits while `events` come at the given milliseconds; the association ends after the last of
/// them. Returns whether it goes on, and after how many milliseconds of waiting that is known.
async fn waited(due_ms: u64, events: Vec<(u64, Event)>) -> (bool, u64) {
    let (tx, rx) = broadcast::channel(16);
    let (begin, mut stream) = (Instant::now(), EventStream::new(rx));
    tokio::spawn(async move {
        for (at, event) in events {
            tokio::time::sleep_until(begin + ms(at)).await;
            // Nobody listens any more to those after the end of the wait.
            let _ = tx.send(event);
        }
    });
    let mut relays = watch::channel(Vec::new()).1;
    let goes_on = wait(&mut stream, &mut relays, begin + ms(due_ms)).await;
    (goes_on, (Instant::now() - begin).as_millis() as u64)
}

#[tokio::test(start_paused = true)]
async fn it_looks_again_when_due_or_shortly_after_paths_come() {
    let (local, remote) = ((OURS, 1).into(), (PEER, 2).into());
    let added = || Event::PathAdded { path: P0, local, remote };
    let over = (9000, Event::Closed(AssocClosed::Shutdown));
    let until_over =
        |events: &[(u64, Event)]| waited(5000, [events, std::slice::from_ref(&over)].concat());
    assert_eq!(until_over(&[]).await, (true, 5000));
    assert_eq!(until_over(&[(300, Event::Readable)]).await, (true, 5000));
    assert_eq!(until_over(&[(300, added())]).await, (true, 400));
    let group = [(300, added()), (350, added()), (390, added())];
    assert_eq!(until_over(&group).await, (true, 400), "a group of paths once");
    assert_eq!(until_over(&[(4950, added())]).await, (true, 5000));
    assert_eq!(waited(20_000, vec![over]).await, (false, 9000));
}

#[tokio::test(start_paused = true)]
async fn it_looks_again_when_a_relay_tells_something_new() {
    let (_events, rx) = broadcast::channel(16);
    let (tell, mut relays) = watch::channel(Vec::new());
    let (begin, mut stream) = (Instant::now(), EventStream::new(rx));
    tokio::spawn(async move {
        tokio::time::sleep_until(begin + ms(300)).await;
        tell.send_replace(vec![relay(RELAY, None)]);
        std::future::pending::<()>().await;
    });
    assert!(wait(&mut stream, &mut relays, begin + ms(5000)).await);
    assert_eq!(Instant::now() - begin, ms(400));
}

#[test]
fn the_half_behind_a_relay_is_known_if_the_relay_tells_it() {
    let mut routes = traced();
    let paths = [through(P1, RELAY, 1), through(P2, OTHER_RELAY, 2)];
    let mut relays = [relay(RELAY, Some(1)), relay(OTHER_RELAY, Some(2))];
    let apart = |routes: &Routes, relays: &[RelayStatus]| {
        let found = known_routes(routes, &paths, relays);
        disjoint(&found[0].1, &found[1].1)
    };
    assert_eq!(apart(&routes, &relays), 1.0);
    relays[0].routes.insert(PEER.into(), Some(trace(&[(7, 1), (8, 24)], false)));
    relays[1].routes.insert(PEER.into(), None);
    routes.learn_from(&relays);
    assert_eq!(apart(&routes, &relays), 1.0, "one of them tells nothing");
    relays[1].routes.insert(PEER.into(), Some(trace(&[(7, 1), (8, 24)], false)));
    routes.learn_from(&relays);
    assert!(apart(&routes, &relays) < 0.5);
}
