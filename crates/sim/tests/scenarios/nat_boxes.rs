//! Hosts behind NATs: associations that the NATs let through, and what a reboot does to them.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use manypath_proto::PathState;
use manypath_proto::config::Config;
use manypath_sim::{
    Flow, FlowNats, FlowSpec, LinkSpec, NatId, NatSpec, PathLinks, PortAssignment, QueueLimit,
    ReflexiveAddress, World, millis, secs,
};

use crate::MIB;

fn spec(public: [u8; 4]) -> NatSpec {
    let ports = PortAssignment::Random;
    NatSpec { ports, timeout: Duration::from_secs(30), ..NatSpec::new(IpAddr::from(public)) }
}

/// A flow over paths of 20 Mbit/s and 20 ms.
fn world(paths: usize, place: impl FnOnce(&mut World) -> FlowNats) -> (World, Flow) {
    let mut world = World::new(1, 28);
    let nats = place(&mut world);
    let config = Arc::new(Config::build("fast", "adaptive", &[]).expect("a preset"));
    let mut link = || world.net.add_link(LinkSpec::mbps_ms(20.0, 20.0), QueueLimit::Packets(100));
    let paths = (0..paths).map(|_| PathLinks { forward: vec![link()], reverse: vec![link()] });
    let spec = FlowSpec {
        name: "flow".to_owned(),
        sender: Arc::clone(&config),
        receiver: config,
        paths: paths.collect(),
        start: secs(0),
        keys: None,
        has_ledger: true,
    };
    let flow = world.add_flow_behind(spec, &nats);
    (world, flow)
}

/// A client behind a NAT and a server on the Internet.
fn client_and_server(paths: usize) -> (World, Flow, NatId) {
    let mut nat = None;
    let (world, flow) = world(paths, |world| {
        nat = Some(world.net.add_nat(spec([198, 51, 100, 1])));
        FlowNats { near: nat, ..FlowNats::default() }
    });
    (world, flow, nat.expect("just added"))
}

#[test]
fn a_client_behind_a_nat_uses_all_its_paths() {
    let (mut world, flow, nat) = client_and_server(2);
    world.host_mut(flow.from).send_file(8 * MIB);
    world.host_mut(flow.to).send_file(MIB);
    assert!(world.run_to_end(secs(20)));
    let result = world.result(flow.from, flow.to);
    assert!(result.completed && result.goodput_bps > 30e6, "{result:#?}");
    for path in &result.paths {
        assert!(path.return_packets_sent > 100, "{path:#?}");
        assert_eq!(path.return_packets_dropped, 0);
    }
    let stats = world.net.nat_stats(nat);
    assert_eq!((stats.mappings, stats.dropped()), (2, 0), "one for each address: {stats:?}");
    // The private addresses that the client lists in its INIT lead nowhere.
    let paths = world.host(flow.to).paths();
    let active = paths.iter().filter(|path| path.state == PathState::Active);
    let remotes: Vec<IpAddr> = active.map(|path| path.remote.ip()).collect();
    assert_eq!(remotes, [IpAddr::from([198, 51, 100, 1]); 2]);
}

/// The client's NAT reboots. Its answers are lost until it sends again, and then go where that
/// comes from; a server that sends has to wait for that.
#[test]
fn a_transfer_goes_on_when_the_nat_has_rebooted() {
    for is_upload in [true, false] {
        let (mut world, flow, nat) = client_and_server(1);
        world.net.reboot_nat_at(millis(1500), nat);
        let sender = if is_upload { flow.from } else { flow.to };
        world.host_mut(sender).send_file(8 * MIB);
        assert!(world.run_to_end(secs(30)), "upload: {is_upload}");
        let result = world.result(sender, if is_upload { flow.to } else { flow.from });
        assert!(result.completed && result.max_delivery_gap_s < 5.0, "{result:#?}");
        assert_eq!(world.net.nat_stats(nat).mappings, 2, "upload: {is_upload}");
    }
}

/// Both hosts are behind NATs of their own; only an address that a relay lends is known at first.
#[test]
fn two_private_hosts_meet_through_a_relay() {
    let mut nats = Vec::new();
    let (mut world, flow) = world(2, |world| {
        nats = [[198, 51, 100, 1], [203, 0, 113, 1]].map(|ip| world.net.add_nat(spec(ip))).into();
        FlowNats { near: Some(nats[0]), far: Some(nats[1]), relayed: vec![0] }
    });
    world.host_mut(flow.from).send_file(2 * MIB);
    assert!(world.run_to_end(secs(20)));
    let result = world.result(flow.from, flow.to);
    assert!(result.completed);
    let (from, to) = (world.host(flow.from), world.host(flow.to));
    let relayed = to.addresses()[0];
    let path = world.net.find_path(from.node(), from.addresses()[0], relayed);
    assert_eq!(path, Some(flow.paths[0]));
    // The relay's path and the direct way start from one socket.
    assert_eq!((from.addresses().len(), to.addresses().len()), (1, 2));
    // The hosts have to tell each other these, to get on without the relay.
    let seen = [flow.from, flow.to].map(|host| world.reflexive_addresses(host));
    let ips = |seen: &[ReflexiveAddress]| seen.iter().map(|one| one.seen.ip()).collect::<Vec<_>>();
    assert_eq!(ips(&seen[0]), [IpAddr::from([198, 51, 100, 1])]);
    assert_eq!(ips(&seen[1]), [relayed.ip(), IpAddr::from([203, 0, 113, 1])]);
}
