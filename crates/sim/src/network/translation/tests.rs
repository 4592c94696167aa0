//! Packets through NATs, without engines: who sends what, what the NATs do, what must arrive.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use manypath_proto::Rng;
use proptest::prelude::*;

use super::*;
use crate::nat::NatBehaviour::{AddressDependent, EndpointIndependent};
use crate::network::Happening;
use crate::packet_log::Fate;
use crate::spec::{LinkSpec, QueueLimit};

mod hole_punching;

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn ip(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// The delay of a way in one direction.
const DELAY: Duration = Duration::from_millis(20);

/// A packet that arrived, as its receiver sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Arrived {
    node: NodeId,
    local: SocketAddr,
    remote: SocketAddr,
}

/// Links of 20 ms join hosts.
struct Internet {
    net: Network,
}

impl Internet {
    fn new() -> Internet {
        let mut net = Network::new(Rng::from_number(1), 28);
        net.keep_packet_log();
        Internet { net }
    }

    fn join(&mut self, near: HostAddress, far: HostAddress) -> usize {
        let mut link = || {
            let spec = LinkSpec::new(crate::spec::Rate::INFINITE, DELAY);
            self.net.add_link(spec, QueueLimit::Unlimited)
        };
        let links = PathLinks { forward: vec![link()], reverse: vec![link()] };
        let [near, far] = [near, far].map(|end| (end.node, end.address));
        self.net.add_way(PathEnds { near, far }, links)
    }

    /// A host with an address that is behind a NAT, if one is given.
    fn host(&mut self, text: &str, nat: Option<NatId>) -> HostAddress {
        let (node, address) = (self.net.add_node(), address(text));
        nat.into_iter().for_each(|nat| self.net.put_behind(node, address, nat));
        HostAddress { node, address }
    }

    /// A NAT with endpoint-independent mapping whose mappings last 30 s.
    fn nat(&mut self, public: &str, change: impl FnOnce(&mut NatSpec)) -> NatId {
        self.net.add_nat(spec(public, change))
    }

    fn send(&mut self, from: HostAddress, to: SocketAddr) {
        self.net.send(from.node, from.address, to, Bytes::from_static(b"hello"));
    }

    /// Runs so long and returns what arrived.
    fn run(&mut self, length: Duration) -> Vec<Arrived> {
        let limit = self.net.now() + length;
        let mut arrived = Vec::new();
        while let Some(happening) = self.net.poll(limit) {
            let Happening::Packet(packet) = happening else { panic!("no timer is set") };
            let (local, remote) = self.net.seen_ends(packet.route);
            arrived.push(Arrived { node: packet.node, local, remote });
        }
        arrived
    }

    /// Sends a packet and returns how it arrives, which it must.
    fn pass(&mut self, from: HostAddress, to: SocketAddr) -> Arrived {
        self.send(from, to);
        let mut arrived = self.run(DELAY);
        assert_eq!(arrived.len(), 1, "from {from:?} to {to}: {arrived:?}");
        arrived.remove(0)
    }

    /// Sends a packet, which must not arrive, and returns why it does not.
    fn lose(&mut self, from: HostAddress, to: SocketAddr) -> DropCause {
        self.send(from, to);
        assert_eq!(self.run(DELAY), [], "from {from:?} to {to}");
        self.last_drop()
    }

    /// Why the last packet was dropped.
    fn last_drop(&self) -> DropCause {
        let log = self.net.packet_log().expect("kept").packets();
        match log.last().expect("just sent").fate {
            Fate::Dropped(_, cause) => cause,
            fate => panic!("{fate:?}"),
        }
    }
}

fn spec(public: &str, change: impl FnOnce(&mut NatSpec)) -> NatSpec {
    let mut spec = NatSpec { timeout: Duration::from_secs(30), ..NatSpec::new(ip(public)) };
    change(&mut spec);
    spec
}

/// A private host behind a NAT, and a server on the Internet.
struct Client {
    internet: Internet,
    nat: NatId,
    client: HostAddress,
    server: HostAddress,
    path: usize,
}

fn client(change: impl FnOnce(&mut NatSpec)) -> Client {
    let mut internet = Internet::new();
    let nat = internet.nat("198.51.100.1", change);
    let client = internet.host("10.0.0.2:5000", Some(nat));
    let server = internet.host("192.0.2.80:80", None);
    let path = internet.join(client, server);
    Client { internet, nat, client, server, path }
}

const PUBLIC: &str = "198.51.100.1:5000";

#[test]
fn a_server_sees_and_answers_the_translated_source() {
    let Client { mut internet, nat, client, server, path } = client(|_| {});
    let arrived = internet.pass(client, server.address);
    let (node, local, remote) = (server.node, server.address, address(PUBLIC));
    assert_eq!(arrived, Arrived { node, local, remote });
    let answer = internet.pass(server, arrived.remote);
    let (node, local, remote) = (client.node, client.address, server.address);
    assert_eq!(answer, Arrived { node, local, remote });
    let NatStats { mappings, outbound, inbound, .. } = internet.net.nat_stats(nat);
    assert_eq!((mappings, outbound, inbound), (1, 1, 1));
    let found = internet.net.find_path(client.node, client.address, server.address);
    assert_eq!(found, Some(path));
    assert_eq!(internet.net.find_path(server.node, server.address, address(PUBLIC)), Some(path));
}

#[test]
fn nobody_reaches_a_private_host_unasked() {
    let Client { mut internet, nat, client, server, path } = client(|_| {});
    let none = internet.net.find_path(server.node, server.address, address(PUBLIC));
    assert_eq!(none, None, "no packet has come up");
    assert_eq!(internet.lose(server, address(PUBLIC)), DropCause::Unmapped);
    assert_eq!(internet.lose(server, client.address), DropCause::NoRoute, "a private address");
    let stranger = internet.host("192.0.2.81:80", None);
    internet.join(client, stranger);
    internet.pass(client, server.address);
    assert_eq!(internet.lose(stranger, address(PUBLIC)), DropCause::Filtered);
    let stats = internet.net.nat_stats(nat);
    assert_eq!((stats.unmapped, stats.filtered, stats.dropped()), (1, 1, 2));
    let (forward, reverse) = internet.net.dropped_on_path(path);
    assert_eq!((forward.packets, reverse.packets), (0, 1), "a drop at a NAT is one of the path");
}

/// The packet is not refused when it is sent, but where it arrives, at the time it does.
#[test]
fn a_filter_judges_when_a_packet_arrives() {
    let Client { mut internet, client, server, .. } = client(|_| {});
    internet.send(server, address(PUBLIC));
    assert_eq!(internet.run(DELAY / 2), []);
    internet.send(client, server.address);
    let arrived = internet.run(DELAY);
    assert_eq!(arrived.len(), 2, "the hole was open in time: {arrived:?}");
}

#[test]
fn a_mapping_that_rests_is_over_and_the_next_packet_makes_another() {
    let Client { mut internet, nat, client, server, .. } = client(|spec| {
        spec.ports = crate::nat::PortAssignment::Random;
    });
    let first = internet.pass(client, server.address).remote;
    internet.run(Duration::from_secs(29));
    internet.pass(server, first);
    assert_eq!(internet.run(Duration::from_secs(2)), []);
    assert_eq!(internet.lose(server, first), DropCause::Unmapped);
    let second = internet.pass(client, server.address).remote;
    assert_ne!(second, first);
    internet.pass(server, second);
    assert_eq!(internet.net.nat_stats(nat).mappings, 2);
}

#[test]
fn a_reboot_takes_the_answers_that_are_under_way() {
    let Client { mut internet, nat, client, server, .. } = client(|spec| {
        spec.ports = crate::nat::PortAssignment::Random;
    });
    let first = internet.pass(client, server.address).remote;
    internet.net.reboot_nat_at(internet.net.now() + DELAY / 2, nat);
    assert_eq!(internet.lose(server, first), DropCause::Unmapped);
    let second = internet.pass(client, server.address).remote;
    assert_ne!(second, first);
    assert_eq!(internet.lose(server, first), DropCause::Unmapped);
    internet.pass(server, second);
    assert_eq!(internet.net.nat_stats(nat).reboots, 1);
}

/// A home NAT behind a carrier's: both translate, and both can forget.
#[test]
fn a_chain_of_nats_translates_twice() {
    let mut internet = Internet::new();
    let carrier = internet.nat("198.51.100.1", |spec| spec.filtering = EndpointIndependent);
    let home = internet.net.add_nat_behind(spec("100.64.0.1", |_| {}), carrier);
    let client = internet.host("10.0.0.2:5000", Some(home));
    let server = internet.host("192.0.2.80:80", None);
    internet.join(client, server);
    assert_eq!(internet.net.nats_of(client.node, client.address), [home, carrier]);
    let seen = internet.pass(client, server.address).remote;
    assert_eq!(seen, address(PUBLIC));
    let answer = internet.pass(server, seen);
    let (node, local, remote) = (client.node, client.address, server.address);
    assert_eq!(answer, Arrived { node, local, remote });
    internet.net.reboot_nat(home);
    assert_eq!(internet.lose(server, seen), DropCause::Unmapped, "the home's is gone");
    assert_eq!(internet.net.nat_stats(carrier).inbound, 2, "the carrier's is not");
    internet.pass(client, server.address);
    internet.pass(server, seen);
}

/// Hosts behind one NAT: by their own addresses always, by their public ones if it does
/// hairpinning (RFC 4787 §6).
#[test]
fn neighbours_behind_a_nat_need_it_only_for_its_own_address() {
    for hairpin in [false, true] {
        let mut internet = Internet::new();
        let nat = internet.nat("198.51.100.1", |spec| spec.hairpin = hairpin);
        let [a, b] = ["10.0.0.2:5000", "10.0.0.3:6000"].map(|text| internet.host(text, Some(nat)));
        internet.join(a, b);
        let direct = internet.pass(a, b.address);
        assert_eq!((direct.node, direct.local, direct.remote), (b.node, b.address, a.address));
        assert_eq!(internet.net.nat_stats(nat), NatStats::default(), "not by the NAT");

        let [to_a, to_b] = [a, b].map(|host| {
            internet.net.reflexive(host.node, host.address).expect("it has the address")
        });
        if hairpin {
            assert_eq!(internet.lose(a, to_b), DropCause::Filtered, "b has not sent to a");
            let arrived = internet.pass(b, to_a);
            assert_eq!((arrived.node, arrived.local, arrived.remote), (a.node, a.address, to_b));
            assert_eq!(internet.pass(a, to_b).remote, to_a, "RFC 4787 REQ-9: as seen outside");
        } else {
            assert_eq!(internet.lose(a, to_b), DropCause::NoRoute);
            assert_eq!(internet.net.nat_stats(nat).refused, 1);
        }
    }
}

/// Two homes behind one carrier's NAT meet in its network, by the addresses of the homes' NATs
/// there, and outside only if it does hairpinning.
#[test]
fn homes_behind_one_carrier_meet_inside_its_network() {
    for hairpin in [false, true] {
        let mut internet = Internet::new();
        let carrier = internet.nat("198.51.100.1", |spec| {
            (spec.hairpin, spec.filtering) = (hairpin, EndpointIndependent);
        });
        let [a, b] = ["100.64.0.1", "100.64.0.2"].map(|public| {
            let change = |spec: &mut NatSpec| spec.filtering = EndpointIndependent;
            let home = internet.net.add_nat_behind(spec(public, change), carrier);
            internet.host("10.0.0.2:5000", Some(home))
        });
        internet.join(a, b);
        let [_, public] = [a, b].map(|host| {
            internet.net.reflexive(host.node, host.address).expect("it has the address")
        });
        assert_eq!(public, address("198.51.100.1:5001"), "5000 is a's");
        let arrived = internet.pass(a, address("100.64.0.2:5000"));
        assert_eq!((arrived.node, arrived.remote), (b.node, address("100.64.0.1:5000")));
        if hairpin {
            let arrived = internet.pass(a, public);
            assert_eq!((arrived.node, arrived.remote), (b.node, address(PUBLIC)));
        } else {
            assert_eq!(internet.lose(a, public), DropCause::NoRoute);
        }
    }
}

/// Two hosts in different homes have one private address. Each gets what is its own.
#[test]
fn private_addresses_may_occur_twice() {
    let mut internet = Internet::new();
    let nats = ["198.51.100.1", "203.0.113.1"]
        .map(|public| internet.nat(public, |spec| spec.filtering = EndpointIndependent));
    let [a, b] = nats.map(|nat| internet.host("10.0.0.2:5000", Some(nat)));
    internet.join(a, b);
    let seen = [a, b].map(|host| internet.net.reflexive(host.node, host.address));
    let [to_a, to_b] = seen.map(|seen| seen.expect("it has the address"));
    assert_eq!(internet.pass(a, to_b).node, b.node);
    assert_eq!(internet.pass(b, to_a).node, a.node);
    assert_eq!(internet.lose(a, b.address), DropCause::NoRoute, "that is itself");
}

/// A relay lends b an address. Whoever knows it reaches b there, and no NAT of b's has a say.
#[test]
fn a_relayed_address_is_reached_past_the_nats_of_its_owner() {
    let mut internet = Internet::new();
    let near = internet.nat("198.51.100.1", |_| {});
    let far = internet.nat("203.0.113.1", |_| {});
    let a = internet.host("10.0.0.2:5000", Some(near));
    let b = internet.host("10.0.1.2:5000", Some(far));
    let relayed = HostAddress { node: b.node, address: address("192.0.2.9:50000") };
    let direct = internet.join(a, b);
    let by_relay = internet.join(a, relayed);
    let arrived = internet.pass(a, relayed.address);
    let (node, local) = (b.node, relayed.address);
    assert_eq!(arrived, Arrived { node, local, remote: address(PUBLIC) });
    let answer = internet.pass(relayed, arrived.remote);
    assert_eq!((answer.node, answer.remote), (a.node, relayed.address));
    assert_eq!(internet.net.nat_stats(far), NatStats::default());
    let path = |to| internet.net.find_path(a.node, a.address, to);
    assert_eq!((path(relayed.address), direct), (Some(by_relay), 0));
}

/// A host takes its address along into another network: what comes to its old NAT has nobody there.
#[test]
fn a_host_that_changes_its_network_is_behind_the_new_nat_only() {
    let Client { mut internet, client, server, .. } = client(|_| {});
    let first = internet.pass(client, server.address).remote;
    let other = internet.nat("203.0.113.1", |_| {});
    internet.send(server, first);
    internet.net.put_behind(client.node, client.address, other);
    assert_eq!(internet.run(DELAY), []);
    assert_eq!(internet.last_drop(), DropCause::Unmapped);
    assert_eq!(internet.lose(server, first), DropCause::NoRoute, "no way leads there any more");
    let second = internet.pass(client, server.address).remote;
    assert_eq!(second, address("203.0.113.1:5000"));
    assert_eq!(internet.pass(server, second).local, client.address);
}

/// STUN from the very address in use: with mappings that depend on peers, peers see another address
/// than the server does.
#[test]
fn the_oracle_says_what_a_stun_server_would_see() {
    for (mapping, port) in [(EndpointIndependent, 5000), (AddressDependent, 5001)] {
        let Client { mut internet, nat, client, server, .. } = client(|spec| {
            spec.mapping = mapping;
        });
        let net = &mut internet.net;
        assert_eq!(net.reflexive(client.node, client.address), Some(address(PUBLIC)));
        assert_eq!(net.nat_stats(nat).mappings, 1, "the request made it");
        assert_eq!(net.reflexive(server.node, server.address), Some(server.address), "no NAT");
        assert_eq!(net.reflexive(client.node, address("10.0.0.2:5001")), None, "not its address");
        assert_eq!(internet.pass(client, server.address).remote.port(), port);
        assert_eq!(internet.lose(server, address("198.51.100.1:5002")), DropCause::Unmapped);
    }
}

/// The server that is asked lies where the peer does: then even an address-dependent mapping is the
/// one that the peer sees.
#[test]
fn the_oracle_asks_the_server_that_is_set() {
    let Client { mut internet, client, server, .. } = client(|spec| {
        spec.mapping = AddressDependent;
    });
    internet.net.set_stun_server(SocketAddr::new(server.address.ip(), 3478));
    let seen = internet.net.reflexive(client.node, client.address);
    assert_eq!(Some(internet.pass(client, server.address).remote), seen);
}

#[test]
fn a_host_that_moves_behind_its_nat_gets_another_mapping() {
    let Client { mut internet, client, server, .. } = client(|_| {});
    let first = internet.pass(client, server.address).remote;
    internet.send(server, first);
    let net = &mut internet.net;
    net.take_address(client.node, client.address);
    assert_eq!(net.reflexive(client.node, client.address), None, "gone");
    assert_eq!(internet.run(DELAY), [], "what is under way is lost");
    assert_eq!(internet.last_drop(), DropCause::Unmapped);
    assert_eq!(internet.lose(client, server.address), DropCause::NoRoute);
    let new = HostAddress { address: address("10.0.0.3:5000"), ..client };
    let came = internet.net.give_address(client.node, client.address, new.address);
    let super::super::AddressChange::Came { remotes, .. } = came else { panic!("{came:?}") };
    assert_eq!(remotes, [server.address]);
    let second = internet.pass(new, server.address).remote;
    assert_eq!(second, address("198.51.100.1:5001"), "the port of the old mapping is taken");
    assert_eq!(internet.pass(server, second).local, new.address);
    assert_eq!(internet.lose(server, first), DropCause::Unmapped, "its host is not there");
}

/// The server's address comes back: all that was sent before is lost, what is sent then is not.
#[test]
fn a_server_that_comes_back_is_reached_through_the_nat() {
    let Client { mut internet, client, server, .. } = client(|_| {});
    internet.pass(client, server.address);
    internet.net.take_address(server.node, server.address);
    assert_eq!(internet.lose(client, server.address), DropCause::Unmapped);
    internet.net.give_address(server.node, server.address, server.address);
    let arrived = internet.pass(client, server.address);
    internet.pass(server, arrived.remote);
}

/// A host on the Internet tries all ports of a NAT, from three addresses: routes are made as
/// packets come up, but not without bound.
#[test]
fn the_number_of_routes_is_bounded() {
    let mut internet = Internet::new();
    let nat = internet.nat("198.51.100.1", |_| {});
    let victim = internet.host("10.0.0.2:5000", Some(nat));
    let node = internet.net.add_node();
    let sources =
        [1, 2, 3].map(|port| HostAddress { node, address: address(&format!("192.0.2.66:{port}")) });
    for source in sources {
        internet.join(source, victim);
    }
    let mut sent = 0;
    for source in sources {
        for port in 0..=u16::MAX {
            let to = SocketAddr::new(ip("198.51.100.1"), port);
            let payload = Bytes::from_static(b"x");
            sent += usize::from(internet.net.send(node, source.address, to, payload).is_some());
        }
        assert_eq!(internet.run(DELAY), []);
    }
    assert_eq!(sent, MOST_MADE);
}

proptest! {
    /// Whatever NATs stand in a row, a server on the Internet is reached and answers, until one of
    /// them reboots; then the next packet opens the way again.
    #[test]
    fn answers_come_back_through_any_row_of_nats(row in prop::collection::vec(0..9_usize, 1..5)) {
        let kinds: Vec<NatSpec> = hole_punching::kinds().collect();
        let mut internet = Internet::new();
        let mut innermost: Option<NatId> = None;
        for (number, kind) in row.into_iter().enumerate() {
            let public = IpAddr::from([100, 64, 0, number as u8]);
            let spec = NatSpec { public, ..kinds[kind].clone() };
            innermost = Some(match innermost {
                Some(outer) => internet.net.add_nat_behind(spec, outer),
                None => internet.net.add_nat(spec),
            });
        }
        let client = internet.host("10.0.0.2:5000", innermost);
        let server = internet.host("192.0.2.80:80", None);
        internet.join(client, server);
        for nat in internet.net.nats_of(client.node, client.address) {
            let seen = internet.pass(client, server.address).remote;
            prop_assert_eq!(seen.ip(), ip("100.64.0.0"));
            let answer = internet.pass(server, seen);
            prop_assert_eq!(answer.node, client.node);
            prop_assert_eq!((answer.local, answer.remote), (client.address, server.address));
            internet.net.reboot_nat(nat);
            prop_assert_eq!(internet.lose(server, seen), DropCause::Unmapped);
        }
    }
}
