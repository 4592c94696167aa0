//! A NAT by itself: what RFC 4787 asks of it.

use std::collections::BTreeSet;

use manypath_proto::Rng;
use proptest::prelude::*;

use super::*;

const PUBLIC: &str = "198.51.100.1";

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// A NAT behind which nothing was sent yet; mappings last 30 s.
fn nat(change: impl FnOnce(&mut NatSpec)) -> NatBox {
    let timeout = Duration::from_secs(30);
    let mut spec = NatSpec { timeout, ..NatSpec::new(PUBLIC.parse().expect("an address")) };
    change(&mut spec);
    NatBox::new(spec, Rng::from_number(1))
}

fn at(seconds: u64) -> Instant {
    Instant::from_millis(seconds * 1000)
}

const START: Instant = Instant::ZERO;

/// Sends from 10.0.0.2:5000 to each of these peers and returns the ports that they see.
fn ports_seen_by(nat: &mut NatBox, peers: &[&str]) -> Vec<u16> {
    let inside = address("10.0.0.2:5000");
    let seen = peers.iter().map(|peer| nat.outbound(START, inside, address(peer)));
    seen.map(|seen| seen.expect("room in the table").port()).collect()
}

const THREE_PEERS: [&str; 3] = ["192.0.2.1:10", "192.0.2.1:11", "192.0.2.2:10"];

/// RFC 4787 §4.1: from one inner endpoint to three peers, of which two share an address.
#[test]
fn mappings_are_reused_for_the_peers_that_their_behaviour_says() {
    let seen = |mapping| {
        let ports = ports_seen_by(&mut nat(|spec| spec.mapping = mapping), &THREE_PEERS);
        ports.into_iter().map(|port| port - 5000).collect::<Vec<_>>()
    };
    assert_eq!(seen(NatBehaviour::EndpointIndependent), [0, 0, 0]);
    assert_eq!(seen(NatBehaviour::AddressDependent), [0, 0, 1]);
    assert_eq!(seen(NatBehaviour::AddressAndPortDependent), [0, 1, 2]);
}

/// RFC 4787 §5: who may answer to a packet that went to 192.0.2.1:10.
#[test]
fn filters_admit_the_peers_that_their_behaviour_says() {
    let admitted = |filtering| {
        let mut nat = nat(|spec| spec.filtering = filtering);
        let inside = address("10.0.0.2:5000");
        let outside = nat.outbound(START, inside, address("192.0.2.1:10")).expect("room");
        THREE_PEERS.map(|peer| match nat.inbound(START, outside, address(peer)) {
            Ok(to) => to == inside,
            Err(cause) => {
                assert_eq!(cause, DropCause::Filtered);
                false
            }
        })
    };
    assert_eq!(admitted(NatBehaviour::EndpointIndependent), [true, true, true]);
    assert_eq!(admitted(NatBehaviour::AddressDependent), [true, true, false]);
    assert_eq!(admitted(NatBehaviour::AddressAndPortDependent), [true, false, false]);
}

#[test]
fn a_port_without_mapping_and_a_foreign_address_lead_nowhere() {
    let mut nat = nat(|spec| spec.filtering = NatBehaviour::EndpointIndependent);
    ports_seen_by(&mut nat, &["192.0.2.1:10"]);
    let peer = address("192.0.2.1:10");
    for outside in ["198.51.100.1:5001", "198.51.100.2:5000"] {
        assert_eq!(nat.inbound(START, address(outside), peer), Err(DropCause::Unmapped));
    }
    assert_eq!(nat.stats(), NatStats { mappings: 1, outbound: 1, unmapped: 2, ..nat.stats() });
}

/// RFC 4787 §4.2.1: two hosts use one inner port; each keeps a port of its own (REQ-3: no
/// overloading).
#[test]
fn a_preserved_port_that_is_taken_gives_way_to_the_next() {
    let mut nat = nat(|_| {});
    let peer = address("192.0.2.1:10");
    let mut seen = |inside: &str| nat.outbound(START, address(inside), peer).expect("room").port();
    assert_eq!(seen("10.0.0.2:5000"), 5000);
    assert_eq!(seen("10.0.0.3:5000"), 5001);
    assert_eq!(seen("10.0.0.4:5001"), 5002);
    assert_eq!(seen("10.0.0.2:65535"), 65_535);
    assert_eq!(seen("10.0.0.3:65535"), 1024, "behind the last port comes the first");
    assert_eq!(seen("10.0.0.2:123"), 123);
    assert_eq!(seen("10.0.0.3:123"), 1025, "no port of the system");
}

#[test]
fn random_ports_are_random_and_the_same_in_each_run() {
    let ports = |seed| {
        let mut spec = NatSpec::new(PUBLIC.parse().expect("an address"));
        spec.ports = PortAssignment::Random;
        let mut nat = NatBox::new(spec, Rng::from_number(seed));
        let inner = (1..=100).map(|host| SocketAddr::from(([10, 0, 0, host], 5000)));
        let seen = inner.map(|inside| nat.outbound(START, inside, address("192.0.2.1:10")));
        seen.map(|seen| seen.expect("room").port()).collect::<Vec<_>>()
    };
    let first = ports(1);
    assert_eq!(first, ports(1));
    assert_ne!(first, ports(2));
    assert!(first.iter().all(|port| *port >= LOWEST_PORT));
    assert!(first.iter().max() > Some(&60_000) && first.iter().min() < Some(&5000), "{first:?}");
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 100, "each mapping has its own");
}

/// RFC 4787 §4.3: what leaves refreshes a mapping; what comes in need not, and does not here.
#[test]
fn a_mapping_that_nothing_is_sent_from_is_over() {
    let mut nat = nat(|_| {});
    let (inside, peer) = (address("10.0.0.2:5000"), address("192.0.2.1:10"));
    let outside = nat.outbound(at(0), inside, peer).expect("room");
    nat.outbound(at(20), inside, peer);
    assert_eq!(nat.inbound(at(49), outside, peer), Ok(inside));
    assert_eq!(nat.holder(at(49), outside), Some(inside));
    assert_eq!(nat.inbound(at(50), outside, peer), Err(DropCause::Unmapped));
    assert_eq!(nat.holder(at(50), outside), None);
    assert_eq!(nat.outbound(at(50), inside, peer), Some(outside), "the port is free again");
    assert_eq!(nat.stats().mappings, 2);
}

#[test]
fn the_permission_of_a_peer_ends_by_itself() {
    let mut nat = nat(|_| {});
    let inside = address("10.0.0.2:5000");
    let [old, new] = ["192.0.2.1:10", "192.0.2.2:10"].map(address);
    let outside = nat.outbound(at(0), inside, old).expect("room");
    nat.outbound(at(20), inside, new);
    assert_eq!(nat.inbound(at(30), outside, old), Err(DropCause::Filtered));
    assert_eq!(nat.inbound(at(30), outside, new), Ok(inside), "the mapping lives on");
}

#[test]
fn a_reboot_forgets_all_mappings() {
    let mut nat = nat(|spec| spec.ports = PortAssignment::Random);
    let (inside, peer) = (address("10.0.0.2:5000"), address("192.0.2.1:10"));
    let before = nat.outbound(START, inside, peer).expect("room");
    nat.forget();
    assert_eq!(nat.inbound(START, before, peer), Err(DropCause::Unmapped));
    assert_ne!(nat.outbound(START, inside, peer).expect("room"), before, "another port");
    assert_eq!(nat.stats().reboots, 1);
}

/// A host that sends from ever new ports can fill the table; nobody loses a mapping to it, and the
/// table is free again when its mappings are over.
#[test]
fn the_table_is_bounded() {
    let mut nat = nat(|_| {});
    let peer = address("192.0.2.1:10");
    let first = address("10.0.0.2:5000");
    nat.outbound(at(0), first, peer).expect("room");
    let flood = (0..20_000).map(|n| SocketAddr::from(([10, 0, 1, 1], 2000 + n)));
    let passed = flood.filter(|inside| nat.outbound(at(10), *inside, peer).is_some()).count();
    assert_eq!(passed, MOST_MAPPINGS - 1);
    assert_eq!(nat.stats().refused, 20_000 - passed as u64);
    assert!(nat.outbound(at(29), first, peer).is_some(), "its mapping is there");
    let new = address("10.0.0.3:1");
    assert_eq!(nat.outbound(at(39), new, peer), None);
    assert!(nat.outbound(at(40), new, peer).is_some(), "the flood is over");
}

/// A host that sends to ever new peers can fill their list. Its mapping stays.
#[test]
fn the_list_of_peers_is_bounded() {
    let mut nat = nat(|_| {});
    let inside = address("10.0.0.2:5000");
    let peers = (0..70_000_u32).map(|n| {
        let [.., a, b, c] = n.to_be_bytes();
        SocketAddr::from(([100, a, b, c], 10))
    });
    let passed = peers.filter(|peer| nat.outbound(START, inside, *peer).is_some()).count();
    assert_eq!(passed, MOST_CONTACTS);
    assert!(nat.outbound(at(29), inside, address("100.0.0.1:10")).is_some(), "it is known");
    assert_eq!(nat.outbound(at(29), inside, address("192.0.2.1:10")), None);
    assert!(nat.outbound(at(30), inside, address("192.0.2.1:10")).is_some());
}

/// Somebody behind the NAT sends, or a peer does, some time after the event before.
#[derive(Clone, Debug)]
enum Act {
    Out { inside: u8, peer: u8 },
    In { port: u8, peer: u8 },
    Reboot,
}

fn acts() -> impl Strategy<Value = Vec<(u64, Act)>> {
    let act = prop_oneof![
        10 => (0..3_u8, 0..6_u8).prop_map(|(inside, peer)| Act::Out { inside, peer }),
        10 => (0..20_u8, 0..6_u8).prop_map(|(port, peer)| Act::In { port, peer }),
        1 => Just(Act::Reboot),
    ];
    proptest::collection::vec((0..12_u64, act), 1..120)
}

fn specs() -> impl Strategy<Value = NatSpec> {
    let behaviour = || proptest::sample::select(NatBehaviour::ALL.to_vec());
    let ports = proptest::sample::select(vec![PortAssignment::Preserved, PortAssignment::Random]);
    (behaviour(), behaviour(), ports).prop_map(|(mapping, filtering, ports)| NatSpec {
        mapping,
        filtering,
        ports,
        timeout: Duration::from_secs(30),
        ..NatSpec::new(PUBLIC.parse().expect("an address"))
    })
}

/// A packet that left, as an observer outside would write it down.
#[derive(Clone, Debug)]
struct Left {
    at: Instant,
    inside: SocketAddr,
    peer: SocketAddr,
    port: u16,
}

proptest! {
    /// An observer who only sees what leaves can tell by RFC 4787 what may enter, and which port a
    /// packet leaves from if it need not be a new one.
    #[test]
    fn what_left_tells_what_may_enter(spec in specs(), acts in acts()) {
        let (mapping, filtering) = (spec.mapping, spec.filtering);
        let mut nat = NatBox::new(spec, Rng::from_number(7));
        let insides = ["10.0.0.2:5000", "10.0.0.2:5001", "10.0.0.3:5000"].map(address);
        let peers = ["192.0.2.1:10", "192.0.2.1:11", "192.0.2.2:10", "192.0.2.2:11",
            "192.0.2.3:10", "192.0.2.3:11"].map(address);
        let (mut now, mut left): (Instant, Vec<Left>) = (START, Vec::new());
        let mut seen = BTreeSet::from([5000]);
        for (pause, act) in acts {
            now += Duration::from_secs(pause);
            left.retain(|old| now.saturating_since(old.at) < Duration::from_secs(30));
            match act {
                Act::Out { inside, peer } => {
                    let (inside, peer) = (insides[usize::from(inside)], peers[usize::from(peer)]);
                    let port = nat.outbound(now, inside, peer).expect("room").port();
                    let is_same = |old: &Left| {
                        old.inside == inside && mapping.part_of(old.peer) == mapping.part_of(peer)
                    };
                    for old in &left {
                        prop_assert_eq!(old.port == port, is_same(old), "{:?}", old);
                    }
                    seen.insert(port);
                    left.push(Left { at: now, inside, peer, port });
                }
                Act::In { port, peer } => {
                    let port = seen.iter().copied().nth(usize::from(port)).unwrap_or(9);
                    let peer = peers[usize::from(peer)];
                    let mut of_port = left.iter().filter(|old| old.port == port).peekable();
                    let is_mapped = of_port.peek().is_some();
                    let admits = |old: &&Left| {
                        filtering.part_of(old.peer) == filtering.part_of(peer)
                    };
                    let outside = SocketAddr::new(nat.spec().public, port);
                    let expected = match of_port.find(admits) {
                        Some(old) => Ok(old.inside),
                        None if is_mapped => Err(DropCause::Filtered),
                        None => Err(DropCause::Unmapped),
                    };
                    prop_assert_eq!(nat.inbound(now, outside, peer), expected);
                }
                Act::Reboot => {
                    nat.forget();
                    left.clear();
                }
            }
        }
    }
}
