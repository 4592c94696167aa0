use manypath::measure::{Trace, TraceHop};
use manypath::overlay::Probes;

use super::*;

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn trace(hops: &[(&str, u64)], reached: bool) -> Trace {
    let hop = |&(address, rtt): &(&str, u64)| TraceHop {
        answer: (!address.is_empty()).then(|| (ip(address), ms(rtt))),
    };
    Trace { hops: hops.iter().map(hop).collect(), reached }
}

fn probed(local: &str, relay: Option<usize>, rtt: u64) -> ProbedPath {
    let mut probes = Probes::default();
    (0..10).for_each(|_| probes.add(Some(ms(rtt))));
    let remote = "192.0.2.9:9899".parse().unwrap();
    ProbedPath { local: local.parse().unwrap(), remote, relay, probes }
}

fn relay(address: &str) -> Relay {
    let address = address.parse().unwrap();
    Relay { name: "r".into(), address, user: String::new(), password: String::new() }
}

fn plan() -> Plan {
    Plan { probes: 10, interval: ms(10), routes: true, beta: 0.5, max_paths: 5 }
}

#[test]
fn a_relay_beside_the_direct_way_is_left_out_and_one_elsewhere_is_used() {
    // The first relay stands behind most of the direct path, the second has a way of its own.
    // Sources of the legs do not exist here, so that they are the paths' local addresses.
    let relays = [relay("192.0.2.1:3478"), relay("192.0.2.2:3478")];
    let paths = [
        probed("10.0.0.1:5", None, 20),
        probed("192.0.2.1:50000", Some(0), 24),
        probed("192.0.2.2:50000", Some(1), 30),
    ];
    let mut routes = Routes::new();
    for (path, trace) in paths.iter().zip([
        trace(&[("10.0.0.254", 1), ("10.1.0.1", 16), ("192.0.2.9", 20)], true),
        trace(&[("10.0.0.254", 1), ("10.1.0.77", 16), ("", 0), ("192.0.2.1", 18)], true),
        trace(&[("10.0.0.254", 1), ("10.2.0.1", 12)], false),
    ]) {
        routes.insert(first_leg(path, &relays), trace);
    }
    // The second router has another address on each way.
    routes.join(ip("10.1.0.1"), ip("10.1.0.77"));
    let remotes = [paths[0].remote];
    let report = report(&plan(), &remotes, &relays, &paths, &routes, Vec::new());
    let chosen: Vec<_> = report.paths.iter().map(|p| p.selected).collect();
    assert_eq!(chosen, [true, false, true], "{report:#?}");
    assert!(report.paths[1].why.contains("path 1 is 0.20"), "{}", report.paths[1].why);
    let links = &report.paths[1].shares[0].links;
    assert_eq!(links.len(), 2);
    assert!(links.iter().any(|l| l.from == "here" && l.to == "10.0.0.254"), "{links:?}");
    // 192.0.2.2 did not answer: it is as far as the last router.
    let relay = &report.paths[2].hops[2];
    assert_eq!((relay.address.as_deref(), relay.rtt_s), (Some("192.0.2.2"), Some(0.012)));
    assert!(
        report.notes[0].starts_with("not visible: the route from r, r to"),
        "{:?}",
        report.notes
    );
}

#[test]
fn relays_whose_far_halves_are_one_link_are_not_both_used() {
    let relays = [relay("192.0.2.1:3478"), relay("192.0.2.2:3478")];
    let paths = [probed("192.0.2.1:50000", Some(0), 30), probed("192.0.2.2:50000", Some(1), 32)];
    let mut routes = Routes::new();
    routes.insert(first_leg(&paths[0], &relays), trace(&[("10.1.0.1", 2), ("192.0.2.1", 3)], true));
    routes.insert(first_leg(&paths[1], &relays), trace(&[("10.2.0.1", 2), ("192.0.2.2", 4)], true));
    let beyond = |far: u64| trace(&[("10.3.0.1", 1), ("10.3.0.2", far), ("192.0.2.9", far)], true);
    let remotes = [paths[0].remote];
    let alone = report(&plan(), &remotes, &relays, &paths, &routes, Vec::new());
    assert!(alone.paths.iter().all(|path| path.selected), "nothing is seen to be shared");
    routes.insert_beyond(ip("192.0.2.1"), ip("192.0.2.9"), beyond(26));
    routes.insert_beyond(ip("192.0.2.2"), ip("192.0.2.9"), beyond(27));
    let whole = report(&plan(), &remotes, &relays, &paths, &routes, Vec::new());
    let chosen: Vec<_> = whole.paths.iter().map(|path| path.selected).collect();
    assert_eq!((chosen, whole.notes.len()), (vec![true, false], 0), "{whole:#?}");
    let hops: Vec<_> = whole.paths[0].hops.iter().flat_map(|hop| hop.address.clone()).collect();
    assert_eq!(hops, ["10.1.0.1", "192.0.2.1", "10.3.0.1", "10.3.0.2", "192.0.2.9"]);
}

#[test]
fn a_slow_answer_of_a_router_makes_it_no_farther_than_the_destination() {
    let path = probed("10.0.0.1:5", None, 20);
    let slow = trace(&[("10.0.0.254", 400), ("10.1.0.1", 12), ("192.0.2.9", 21)], true);
    let leg = first_leg(&path, &[]);
    let mut routes = Routes::new();
    routes.insert(leg, slow);
    let paths = [path];
    let report = report(&plan(), &[paths[0].remote], &[], &paths, &routes, Vec::new());
    let times: Vec<_> = report.paths[0].hops.iter().filter_map(|hop| hop.rtt_s).collect();
    assert_eq!(times, [0.006, 0.012, 0.020]);
}

#[test]
fn without_routes_all_count_as_disjoint() {
    let relays = [relay("192.0.2.1:3478")];
    let paths = [probed("10.0.0.1:5", None, 20), probed("192.0.2.1:50000", Some(0), 24)];
    let plan = Plan { routes: false, ..plan() };
    let remotes = [paths[0].remote];
    let report = report(&plan, &remotes, &relays, &paths, &Routes::new(), Vec::new());
    assert!(report.paths.iter().all(|p| p.selected && p.shares.is_empty()), "{report:?}");
}
