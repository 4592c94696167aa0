//! A peer lists addresses that nobody can reach, such as that of a bridge on its host: each path
//! finds one that works.

use std::net::SocketAddr;
use std::time::Duration;

use manypath_proto::PathState::Active;
use manypath_proto::{ConnectTo, Event};
use manypath_sim::chunk_type::INIT;
use manypath_sim::{Pair, PairBuilder, PathSpec, secs};

use crate::MIB;

/// The server's only address that can be reached; the others are dead.
const SERVER: SocketAddr = address([10, 0, 0, 2]);
const BRIDGE: SocketAddr = address([172, 17, 0, 1]);
const WLAN: SocketAddr = address([10, 0, 1, 1]);
const LTE: SocketAddr = address([10, 0, 2, 1]);

const fn address(ip: [u8; 4]) -> SocketAddr {
    let [a, b, c, d] = ip;
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(a, b, c, d)), 9899)
}

/// Two uplinks of 80 and 30 Mbit/s to a server with one address. It cannot ask them itself, as if
/// they were behind a NAT.
fn uplinks(preset: &str) -> PairBuilder {
    let wlan = PathSpec::new().rate_mbps(80.0).delay_ms(10.0);
    let lte = PathSpec::new().rate_mbps(30.0).delay_ms(25.0);
    Pair::paths(preset, vec![wlan, lte])
        .profile("fast")
        .one_far_address()
        .set_a("advertise_addresses", "false")
}

fn over(paths: &[(SocketAddr, SocketAddr)], candidates: &[(SocketAddr, SocketAddr)]) -> ConnectTo {
    let candidates = candidates.to_vec();
    ConnectTo { candidates, ..ConnectTo::new(paths.to_vec(), 9899) }
}

/// Megabits a second of 50 MiB.
fn rate(to: ConnectTo) -> f64 {
    let mut t = uplinks("adaptive").connect_over(to).lean().start();
    t.a.send_file(50 * MIB);
    t.run_to_end(secs(60));
    assert!(t.has_delivered_all());
    let seconds = t.z.last_received().expect("all arrived").as_secs_f64();
    (50 * MIB * 8) as f64 / seconds / 1e6
}

#[test]
fn a_dead_second_address_takes_no_uplink_away() {
    let fine = rate(over(&[(WLAN, SERVER), (LTE, SERVER)], &[]));
    for first in [[SERVER, BRIDGE], [BRIDGE, SERVER], [BRIDGE, BRIDGE]] {
        let paths = [(WLAN, first[0]), (LTE, first[1])];
        let other = |to| if to == SERVER { BRIDGE } else { SERVER };
        let candidates = [(WLAN, other(first[0])), (LTE, other(first[1]))];
        let found = rate(over(&paths, &candidates));
        // A second of one uplink is up to 80 of 420 Mbit.
        assert!(found >= 0.8 * fine, "{first:?}: {found} of {fine} Mbit/s");
    }
    let found = rate(over(&[(WLAN, SERVER), (LTE, BRIDGE)], &[(WLAN, BRIDGE), (LTE, SERVER)]));
    assert!(found >= 0.9 * (80.0 + 30.0) * 0.95, "{found} Mbit/s of both uplinks");
}

#[test]
fn without_candidates_the_uplink_would_be_lost() {
    let found = rate(over(&[(WLAN, SERVER), (LTE, BRIDGE)], &[]));
    assert!(found < 80.0, "{found} Mbit/s");
}

/// The addresses of a server of which one works, with that one at each place of the list.
#[test]
fn one_uplink_finds_the_one_of_eight_addresses_that_works() {
    for place in 0..8_u8 {
        let dead = |n| address([198, 51, 100, n]);
        let mut pairs: Vec<_> = (0..7).map(|n| (WLAN, dead(n))).collect();
        pairs.insert(place.into(), (WLAN, SERVER));
        let mut t = uplinks("adaptive").connect_over(over(&pairs[..1], &pairs[1..])).start();
        t.a.send_file(MIB);
        t.run_to_end(secs(20));
        assert!(t.has_delivered_all(), "place {place}");
        t.run_for(Duration::from_secs(30));
        let paths: Vec<_> = t.a.paths().iter().map(|p| (p.local, p.remote, p.state)).collect();
        assert_eq!(paths, [(WLAN, SERVER, Active)], "place {place}");
        let told = t.a.events().iter().filter(|(_, e)| matches!(e, Event::NoAnswer { .. }));
        assert_eq!(told.count(), usize::from(place), "place {place}");
    }
}

#[test]
fn a_satellite_of_one_and_a_half_seconds_is_not_replaced_again_and_again() {
    let space = PathSpec::new().rate_mbps(10.0).delay_ms(750.0);
    let to = over(&[(WLAN, SERVER)], &[(WLAN, BRIDGE), (WLAN, address([172, 18, 0, 1]))]);
    let mut t = Pair::paths("adaptive", vec![space])
        .profile("fast")
        .one_far_address()
        .connect_over(to)
        .start();
    t.a.send_file(MIB);
    t.run_to_end(secs(60));
    assert!(t.has_delivered_all());
    t.run_for(Duration::from_secs(30));
    assert_eq!(
        t.a.paths().iter().map(|p| (p.remote, p.state)).collect::<Vec<_>>(),
        [(SERVER, Active)]
    );
    let added = t.a.events().iter().filter(|(_, e)| matches!(e, Event::PathAdded { .. })).count();
    assert!(added <= 4, "{added} paths were added: {:#?}", t.a.events());
}

#[test]
fn the_second_uplink_may_be_a_satellite() {
    let space = PathSpec::new().rate_mbps(10.0).delay_ms(750.0);
    let wlan = PathSpec::new().rate_mbps(10.0).delay_ms(10.0);
    let to = over(&[(WLAN, SERVER), (LTE, SERVER)], &[(LTE, BRIDGE), (WLAN, BRIDGE)]);
    let mut t = Pair::paths("adaptive", vec![wlan, space]).profile("fast");
    t = t.one_far_address().connect_over(to);
    let mut t = t.start();
    t.run_until(secs(12));
    let mut paths: Vec<_> = t.a.paths().iter().map(|p| (p.local, p.remote, p.state)).collect();
    paths.sort_unstable_by_key(|(local, ..)| *local);
    assert_eq!(paths, [(WLAN, SERVER, Active), (LTE, SERVER, Active)]);
}

#[test]
fn a_server_with_two_addresses_that_work_keeps_its_pairing() {
    let paths = [(WLAN, address([10, 0, 1, 2])), (LTE, address([10, 0, 2, 2]))];
    let crossed = [(WLAN, paths[1].1), (LTE, paths[0].1)];
    let mut t =
        Pair::two_paths("adaptive").profile("fast").connect_over(over(&paths, &crossed)).start();
    t.a.send_file(10 * MIB);
    t.run_to_end(secs(60));
    assert!(t.has_delivered_all());
    assert_eq!(t.a.paths().iter().map(|p| (p.local, p.remote)).collect::<Vec<_>>(), paths);
    let told = t.a.events().iter().any(|(_, e)| matches!(e, Event::NoAnswer { .. }));
    assert!(!told, "both answered");
}

/// The server's own probes come to an address that INIT lists, before the pair had its turn.
#[test]
fn the_uplink_that_the_server_probes_is_one_path() {
    let to = over(&[(WLAN, SERVER), (LTE, BRIDGE)], &[(LTE, SERVER)]);
    let advertises = uplinks("adaptive").set_a("advertise_addresses", "true");
    let mut t = advertises.connect_over(to).start();
    t.run_until(secs(5));
    let paths: Vec<_> = t.a.paths().iter().map(|p| (p.local, p.remote, p.state)).collect();
    assert_eq!(paths.len(), 2, "{paths:?}");
    assert!(paths.contains(&(LTE, SERVER, Active)), "{paths:?}");
    t.run_until(secs(60));
    assert_eq!(t.sent(INIT).by(t.a.node()).count(), 2);
}
