//! Two private hosts that meet through a relay, and look for direct paths.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use manypath_keys::psk::SharedKey;
use manypath_proto::config::Config;
use manypath_proto::{Instant, KeyManagement, PathRank, PathState, PathStats};
use manypath_sim::{
    Flow, FlowNats, FlowSpec, LinkSpec, NatBehaviour, NatId, NatSpec, PathLinks, PathResult,
    PortAssignment, QueueLimit, World, millis, secs,
};

use crate::MIB;

use NatBehaviour::{AddressAndPortDependent, AddressDependent, EndpointIndependent};

/// A kind of NAT, as a user would call it.
#[derive(Copy, Clone, Debug)]
struct Kind {
    mapping: NatBehaviour,
    filtering: NatBehaviour,
}

const FULL_CONE: Kind = Kind { mapping: EndpointIndependent, filtering: EndpointIndependent };
const ADDRESS: Kind = Kind { mapping: EndpointIndependent, filtering: AddressDependent };
const PORT: Kind = Kind { mapping: EndpointIndependent, filtering: AddressAndPortDependent };
const SYMMETRIC: Kind =
    Kind { mapping: AddressAndPortDependent, filtering: AddressAndPortDependent };

/// The index of the relay's path in [`scene`].
const RELAY: usize = 0;
const DIRECT: usize = 1;

/// Two hosts behind NATs of these kinds, a relay of 20 Mbit/s and a direct way of 200 Mbit/s.
struct Scene {
    world: World,
    flow: Flow,
    nats: [NatId; 2],
}

fn spec(public: [u8; 4], Kind { mapping, filtering }: Kind) -> NatSpec {
    let ports = PortAssignment::Random;
    let timeout = Duration::from_secs(30);
    NatSpec { mapping, filtering, ports, timeout, ..NatSpec::new(IpAddr::from(public)) }
}

fn scene(near: Kind, far: Kind, is_protected: bool) -> Scene {
    let place = |world: &mut World| {
        let near = world.net.add_nat(spec([198, 51, 100, 1], near));
        [near, world.net.add_nat(spec([203, 0, 113, 1], far))]
    };
    build(is_protected, place)
}

/// A scene with a protected association, behind NATs in other places.
fn scene_of(place: impl FnOnce(&mut World) -> [NatId; 2]) -> Scene {
    build(true, place)
}

fn build(is_protected: bool, place: impl FnOnce(&mut World) -> [NatId; 2]) -> Scene {
    let mut world = World::new(7, 28);
    let nats = place(&mut world);
    let config = Arc::new(Config::build("fast", "adaptive", &[]).expect("a preset"));
    let mut links = |mbps, ms| {
        let mut link = || world.net.add_link(LinkSpec::mbps_ms(mbps, ms), QueueLimit::Packets(200));
        PathLinks { forward: vec![link()], reverse: vec![link()] }
    };
    let paths = vec![links(20.0, 25.0), links(200.0, 20.0)];
    let keys = is_protected.then(|| {
        let key = SharedKey::new(&[7; 32]).expect("long enough");
        Arc::new(key) as Arc<dyn KeyManagement>
    });
    let spec = FlowSpec {
        name: "flow".to_owned(),
        sender: Arc::clone(&config),
        receiver: config,
        paths,
        start: secs(0),
        keys,
        has_ledger: true,
    };
    let behind = FlowNats { near: Some(nats[0]), far: Some(nats[1]), relayed: vec![RELAY] };
    let flow = world.add_flow_behind(spec, &behind);
    Scene { world, flow, nats }
}

impl Scene {
    /// The sender's direct paths that work.
    fn direct(&self) -> Vec<PathStats> {
        let host = self.world.host(self.flow.from);
        let is_direct = |p: &PathStats| {
            let number = self.world.net.find_path(host.node(), p.local, p.remote);
            p.state == PathState::Active && number == Some(self.flow.paths[DIRECT])
        };
        host.paths().into_iter().filter(is_direct).collect()
    }

    /// Runs until the sender has a direct path that works; when that was.
    fn time_to_direct(&mut self, limit: Instant) -> Option<Instant> {
        while self.direct().is_empty() && self.world.net.now() < limit {
            let until = self.world.net.now() + Duration::from_millis(5);
            self.world.run_until(until);
        }
        (!self.direct().is_empty()).then(|| self.world.net.now())
    }

    /// Bytes that the receiver gets in a second from now.
    fn rate(&mut self) -> f64 {
        let before = self.world.host(self.flow.to).received_bytes();
        let until = self.world.net.now() + Duration::from_secs(1);
        self.world.run_until(until);
        (self.world.host(self.flow.to).received_bytes() - before) as f64 * 8.0
    }
}

#[test]
fn cones_have_a_direct_path_within_two_seconds() {
    for near in [FULL_CONE, ADDRESS, PORT] {
        for far in [FULL_CONE, ADDRESS, PORT] {
            for is_protected in [false, true] {
                let mut scene = scene(near, far, is_protected);
                scene.world.host_mut(scene.flow.from).send_file(1000 * MIB);
                let at = scene.time_to_direct(secs(3));
                assert!(at.is_some_and(|at| at < secs(2)), "{near:?} {far:?} {at:?}");
            }
        }
    }
}

#[test]
fn a_symmetric_nat_and_one_that_filters_by_address_have_a_direct_path_within_five_seconds() {
    for other in [FULL_CONE, ADDRESS] {
        for (near, far) in [(SYMMETRIC, other), (other, SYMMETRIC)] {
            let mut scene = scene(near, far, false);
            scene.world.host_mut(scene.flow.from).send_file(1000 * MIB);
            let at = scene.time_to_direct(secs(6));
            assert!(at.is_some_and(|at| at < secs(5)), "{near:?} {far:?} {at:?}");
        }
    }
}

/// Nobody can know the port that such a NAT takes. The relay carries everything.
#[test]
fn a_symmetric_nat_and_one_that_filters_by_port_stay_with_the_relay() {
    for (near, far) in [(SYMMETRIC, PORT), (PORT, SYMMETRIC), (SYMMETRIC, SYMMETRIC)] {
        let mut scene = scene(near, far, false);
        scene.world.host_mut(scene.flow.from).send_file(20 * MIB);
        assert!(scene.world.run_to_end(secs(30)), "{near:?} {far:?}");
        assert!(scene.direct().is_empty());
        let stats = scene.world.host(scene.flow.from).stats().expect("an association");
        assert!((10..=1000).contains(&stats.checks_sent), "{}", stats.checks_sent);
    }
}

#[test]
fn the_direct_path_carries_the_data_and_the_relay_is_the_backup() {
    let mut scene = scene(PORT, PORT, true);
    scene.world.host_mut(scene.flow.from).send_file(1000 * MIB);
    scene.world.run_until(secs(3));
    let rate = scene.rate();
    assert!(rate > 0.9 * 200e6 * 0.95, "{:.1} Mbit/s", rate / 1e6);
    let host = scene.world.host(scene.flow.from);
    let relayed = host.paths().into_iter().find(|p| p.remote.ip() == IpAddr::from([192, 0, 2, 9]));
    let relayed = relayed.expect("the path stays");
    assert_eq!(host.assoc().and_then(|a| a.path_rank(relayed.id)), Some(PathRank::Backup));
    assert_eq!(relayed.state, PathState::Active);
    let result = scene.world.result(scene.flow.from, scene.flow.to);
    let has_failed = |p: &PathResult| p.potentially_failed_at_s.is_some();
    assert!(!result.paths.iter().any(has_failed), "{result:#?}");
}

/// The router of either host loses its mappings in mid-transfer.
#[test]
fn a_transfer_goes_on_within_two_seconds_after_a_router_has_rebooted_and_is_direct_within_five() {
    for kind in [ADDRESS, PORT] {
        for end in 0..2 {
            let mut scene = scene(kind, kind, true);
            scene.world.host_mut(scene.flow.from).send_file(1000 * MIB);
            scene.world.run_until(secs(5));
            let before = scene.direct();
            assert_eq!(before.len(), 1, "{before:#?}");
            scene.world.net.reboot_nat_at(millis(5001), scene.nats[end]);
            scene.world.run_until(secs(7));
            let rate = scene.rate();
            assert!(rate > 10e6, "{kind:?} end {end}: {:.1} Mbit/s after 2 s", rate / 1e6);
            scene.world.run_until(secs(10));
            let rate = scene.rate();
            assert!(rate > 100e6, "{kind:?} end {end}: {:.1} Mbit/s after 5 s", rate / 1e6);
        }
    }
}

#[test]
fn nobody_notices_that_the_relay_dies_once_a_direct_path_works() {
    let mut scene = scene(PORT, PORT, true);
    scene.world.host_mut(scene.flow.from).send_file(200 * MIB);
    scene.world.run_until(secs(3));
    let relay = scene.flow.paths[RELAY];
    scene.world.net.path(relay).cut();
    assert!(scene.world.run_to_end(secs(30)));
    let result = scene.world.result(scene.flow.from, scene.flow.to);
    assert!(result.completed && result.max_delivery_gap_s < 1.0, "{}", result.max_delivery_gap_s);
}

/// The home router of a host is behind its carrier's NAT.
#[test]
fn a_carrier_nat_around_a_home_router_does_not_keep_from_a_direct_path() {
    let mut scene = scene_of(|world| {
        let carrier = world.net.add_nat(spec([198, 51, 100, 1], PORT));
        let home = world.net.add_nat_behind(spec([100, 64, 0, 9], PORT), carrier);
        [home, world.net.add_nat(spec([203, 0, 113, 1], PORT))]
    });
    scene.world.host_mut(scene.flow.from).send_file(1000 * MIB);
    assert!(scene.time_to_direct(secs(5)).is_some_and(|at| at < secs(2)));
}

/// Their router does not lead packets for its public address back inside.
#[test]
fn hosts_behind_one_nat_without_hairpin_use_the_local_way() {
    let mut scene = scene_of(|world| [world.net.add_nat(spec([198, 51, 100, 1], SYMMETRIC)); 2]);
    scene.world.host_mut(scene.flow.from).send_file(1000 * MIB);
    assert!(scene.time_to_direct(secs(5)).is_some_and(|at| at < secs(2)));
    let local = scene.direct().first().expect("it is there").remote;
    assert!(scene.world.host(scene.flow.to).addresses().contains(&local), "{local}");
    scene.world.run_until(secs(3));
    let rate = scene.rate();
    assert!(rate > 150e6, "{:.1} Mbit/s", rate / 1e6);
}

/// No packet of the sender gets anywhere: neither to the relay nor to the receiver.
#[test]
fn without_udp_the_association_is_given_up() {
    let mut scene = scene(PORT, PORT, true);
    let ways = [RELAY, DIRECT].map(|way| scene.flow.paths[way]);
    ways.into_iter().for_each(|way| scene.world.net.path(way).cut());
    scene.world.host_mut(scene.flow.from).send_file(MIB);
    assert!(scene.world.run_to_end(secs(120)), "it does not wait for ever");
    assert!(!scene.world.result(scene.flow.from, scene.flow.to).completed);
    assert_eq!(scene.world.host(scene.flow.to).received_bytes(), 0);
}
