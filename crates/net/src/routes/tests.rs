use manypath_proto::overlay::disjoint;

use super::*;

fn ip(n: u8) -> IpAddr {
    [192, 0, 2, n].into()
}

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn trace(hops: &[(u8, u64)], reached: bool) -> Trace {
    let hop = |&(n, rtt): &(u8, u64)| TraceHop { answer: Some((ip(n), ms(rtt))) };
    Trace { hops: hops.iter().map(hop).collect(), reached }
}

/// Direct: routers 1 and 2, 20 ms; a relay behind router 2, and one behind router 4.
fn routes(first_hop_ms: u64) -> Routes {
    let mut routes = Routes::new();
    let q = first_hop_ms;
    routes.insert((ip(0), ip(9)), trace(&[(1, q), (2, q + 20), (9, q + 20)], true));
    routes.insert((ip(0), ip(8)), trace(&[(1, q), (2, q + 20), (8, q + 30)], true));
    routes.insert((ip(0), ip(7)), trace(&[(1, q), (4, q + 20)], false));
    routes
}

#[test]
fn a_relay_behind_the_direct_link_shares_it_and_another_does_not() {
    let routes = routes(0);
    let mut aliases = routes.aliases(&[]);
    let mut of =
        |leg, relay, rtt| route(&routes.hops((ip(0), leg), relay, ip(9), ms(rtt)), &mut aliases);
    let (direct, behind, beside) = (of(ip(9), false, 20), of(ip(8), true, 40), of(ip(7), true, 30));
    assert_eq!(disjoint(&direct, &behind), 0.0);
    assert_eq!(disjoint(&direct, &beside), 1.0);
    // The relay did not answer: it is where the last router before it is.
    assert_eq!(routes.hops((ip(0), ip(7)), true, ip(9), ms(30))[2], Some((ip(7), ms(20))));
}

#[test]
fn a_queue_at_the_first_hop_is_not_a_long_link() {
    // As seen while the uplink's queue held 100 ms, but for one answer.
    let mut loaded = routes(100);
    let hop = &mut loaded.traces.get_mut(&(ip(0), ip(7))).unwrap().hops[0];
    hop.answer = Some((ip(1), ms(1)));
    let mut aliases = loaded.aliases(&[]);
    let mut of =
        |leg, relay| route(&loaded.hops((ip(0), leg), relay, ip(9), ms(121)), &mut aliases);
    let (direct, beside) = (of(ip(9), false), of(ip(7), true));
    assert!(disjoint(&direct, &beside) > 0.95);
}

#[test]
fn times_longer_than_the_path_say_nothing() {
    let mut routes = Routes::new();
    let late = [(1, 2), (2, 90), (3, 95), (4, 12), (5, 80)];
    routes.insert((ip(0), ip(9)), trace(&late, false));
    let hops = routes.hops((ip(0), ip(9)), false, ip(9), ms(20));
    let times: Vec<u128> = hops.iter().flatten().map(|(_, time)| time.as_micros()).collect();
    assert_eq!(times, [2_000, 5_333, 8_666, 12_000, 16_000, 20_000]);
    // All of three paths' first hops seem to be far, and are not.
    let mut aliases = Aliases::new();
    let mut slow = routes.clone();
    slow.insert((ip(0), ip(9)), trace(&[(1, 60), (2, 90), (9, 90)], true));
    slow.insert((ip(0), ip(7)), trace(&[(1, 60), (7, 70)], true));
    let mut of = |leg, relay| route(&slow.hops((ip(0), leg), relay, ip(9), ms(3)), &mut aliases);
    assert!(disjoint(&of(ip(9), false), &of(ip(7), true)) > 0.6);
}

#[test]
fn what_was_nearer_before_is_not_farther_now() {
    let mut now = trace(&[(1, 90), (2, 110), (3, 120)], true);
    keep_shortest(&mut now, &trace(&[(1, 2), (5, 3)], false));
    assert_eq!(now, trace(&[(1, 2), (2, 110), (3, 120)], true));
}

#[test]
fn addresses_of_one_host_are_one() {
    let mut routes = routes(0);
    routes.join(ip(2), ip(4));
    let mut aliases = routes.aliases(&[ip(9), ip(19)]);
    assert_eq!(aliases.router(ip(2)), aliases.router(ip(4)));
    assert_eq!(aliases.router(ip(9)), aliases.router(ip(19)));
    assert_ne!(aliases.router(ip(1)), aliases.router(ip(2)));
}

#[tokio::test]
async fn loopback_is_traced_and_forgotten() {
    let leg: Leg = ([127, 0, 0, 1].into(), [127, 0, 0, 77].into());
    let mut routes = Routes::new();
    let found = routes.find(leg, TraceOptions::default()).await;
    assert_eq!(found.is_ok(), cfg!(target_os = "linux"), "{found:?}");
    assert!(routes.knows(leg));
    routes.find_aliases().await;
    assert!(routes.aliases.is_empty(), "a host answers from the address it is asked at");
    routes.retain(&BTreeSet::new());
    assert!(!routes.knows(leg));
}

fn v4(n: u8) -> Ipv4Addr {
    [192, 0, 2, n].into()
}

/// Routers 1, 2 and 4 of [`routes`] answer, and 3, which only a relay named.
fn answering() -> Routes {
    let mut routes = routes(0);
    routes.insert_beyond(ip(7), ip(9), trace(&[(3, 5)], false));
    routes.answering = (1..=9).map(v4).collect();
    routes
}

#[test]
fn routers_of_different_legs_are_compared_and_each_pair_once() {
    let mut routes = answering();
    let seen = routes.routers_seen();
    assert_eq!(seen.keys().copied().collect::<Vec<_>>(), [v4(1), v4(2), v4(4)]);
    assert_eq!(routes.pairs_to_compare(&seen), [(v4(2), v4(4))]);
    routes.compared.insert((v4(2), v4(4)));
    assert_eq!(routes.pairs_to_compare(&seen), []);
}

#[test]
fn aliases_and_silent_and_distant_routers_are_not_compared() {
    let mut joined = answering();
    joined.join(ip(4), ip(2));
    assert_eq!(joined.pairs_to_compare(&joined.routers_seen()), []);
    let mut silent = answering();
    silent.answering.remove(&v4(4));
    assert_eq!(silent.pairs_to_compare(&silent.routers_seen()), []);
    let mut distant = answering();
    distant.insert((ip(0), ip(7)), trace(&[(1, 0), (11, 0), (12, 0), (13, 0), (4, 20)], false));
    assert_eq!(distant.pairs_to_compare(&distant.routers_seen()), []);
}
