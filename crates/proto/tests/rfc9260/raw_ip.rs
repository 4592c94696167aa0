//! SCTP over IP itself (protocol 132), beside UDP: packets out of the blue, encapsulation that
//! changes (RFC 6951 §5.4), sizes, and ICMP (RFC 9260 §10). `docs/raw-ip.md` names the test for
//! each rule.

use std::net::SocketAddr;

use manypath_proto::testing::*;
use manypath_proto::{AssocClosed, Event, IcmpKind, IcmpMessage, PathId};
use manypath_wire::{CommonHeader, Parameter};

/// A pair of addresses over IP itself.
fn raw((mut local, mut remote): (SocketAddr, SocketAddr)) -> (SocketAddr, SocketAddr) {
    local.set_port(0);
    remote.set_port(0);
    (local, remote)
}

/// Pairs of addresses over UDP.
fn udp(count: u8) -> Vec<(SocketAddr, SocketAddr)> {
    let at = |i, last| SocketAddr::from(([10, 0, i, last], 9899));
    (0..count).map(|i| (at(i, 1), at(i, 2))).collect()
}

/// An endpoint with an association over IP itself.
fn over_ip(setup: Setup) -> Setup {
    setup.pairs(&[raw(udp(1)[0])])
}

/// A client that waits for the answer to its INIT, and the INIT's packet.
fn opening() -> (Script, Vec<u8>) {
    let mut t = over_ip(Setup::client()).start();
    t.connect();
    t.expect_init();
    let init = t.last().packet.bytes().to_vec();
    (t, init)
}

/// A host says of a packet that it has no SCTP.
fn no_such_protocol(t: &mut Script, quoted: &[u8]) {
    let ((local, remote), now) = (t.pairs[0], t.now());
    let kind = IcmpKind::NoSuchProtocol;
    t.endpoint.handle_icmp(now, IcmpMessage { local, remote, kind, quoted });
    t.settle();
}

fn is_ended(t: &Script) -> bool {
    t.assoc().closed() == Some(&AssocClosed::NoSuchProtocol)
}

// ---- Packets out of the blue ----

#[test]
fn over_ip_nothing_is_answered_for_ports_of_others() {
    for chunks in [init(), data(1), shutdown_ack(), heartbeat(b"?"), unknown(0xff)] {
        let mut t = Setup::server().start();
        let tag =
            if matches!(&chunks, PeerChunk::Plain(manypath_wire::Chunk::Init(_))) { 0 } else { 42 };
        let header =
            CommonHeader { source_port: 7, destination_port: PORT + 1, verification_tag: tag };
        let bytes = t.packet(header, chunks);
        t.peer_bytes(raw(t.pairs[0]), bytes.clone());
        t.expect_nothing(); // another stack of this host may have the port
        t.peer_bytes(t.pairs[0], bytes);
        assert!(t.next_sent().is_some(), "the UDP port is ours alone");
    }
}

#[test]
fn over_ip_packets_out_of_the_blue_for_our_port_are_answered() {
    let mut t = Setup::server().start();
    let from = raw(t.pairs[0]);
    t.peer_with_tag(from, 42, data(1));
    t.expect("ABORT T");
    assert_eq!((t.last().local, t.last().remote), from, "as it was asked");
    t.peer_with_tag(from, 42, shutdown_ack());
    t.expect("SHUTDOWN COMPLETE T");
    t.peer_with_tag(from, 42, abort(&[]));
    t.expect_nothing();
}

#[test]
fn a_packet_with_udp_port_0_at_one_end_only_is_dropped() {
    let mut t = Setup::server().start();
    let (local, remote) = t.pairs[0];
    for from in [(local, raw((local, remote)).1), (raw((local, remote)).0, remote)] {
        t.peer_with_tag(from, 42, data(1));
        t.peer_from(from, init());
        t.expect_nothing();
    }
}

// ---- Opening ----

#[test]
fn an_association_is_opened_over_ip_and_every_address_of_the_peer_is_reached_over_ip() {
    let pairs: Vec<_> = udp(2).into_iter().map(raw).collect();
    let mut t = Setup::server().pairs(&pairs).start();
    let other = pairs[1].1.ip();
    t.accept_without_verification(init().param(Parameter::from(other)));
    let remotes: Vec<_> = t.assoc().paths().map(|p| (p.local, p.remote)).collect();
    assert_eq!(remotes, pairs, "no path leads from IP to UDP");
}

#[test]
fn an_address_over_udp_and_over_ip_is_listed_once() {
    let udp = udp(2);
    let both = [udp[0], raw(udp[0])];
    let mut t = Setup::client().pairs(&both).start();
    t.connect();
    let init = t.expect_init();
    let listed = init.params.iter().flatten().filter(|p| matches!(p, Parameter::Ipv4(_)));
    assert_eq!(listed.count(), 0, "one address is none to list");

    let all = [udp[0], udp[1], raw(udp[0]), raw(udp[1])];
    let mut t = Setup::client().pairs(&all).start();
    t.connect();
    let init = t.expect_init();
    let listed = init.params.iter().flatten().filter(|p| matches!(p, Parameter::Ipv4(_)));
    assert_eq!(listed.count(), 2);
}

#[test]
fn no_path_leads_from_udp_to_ip() {
    let mut t = Setup::client().established();
    let (local, remote) = t.pairs[0];
    let elsewhere = SocketAddr::new([10, 0, 9, 2].into(), 0);
    assert_eq!(t.with(|assoc, now| assoc.add_path(now, local, elsewhere)), None);
    let here = raw((local, remote)).0;
    assert_eq!(t.with(|assoc, now| assoc.add_path(now, here, remote)), None);
    assert_eq!(t.assoc().paths().count(), 1);
}

// ---- Encapsulation that changes ----

#[test]
fn a_path_sends_as_the_peer_last_sent_with_a_valid_tag() {
    let mut t = Setup::server().established();
    let (over_udp, over_ip) = (t.pairs[0], raw(t.pairs[0]));
    t.events();
    for (nth, from) in [over_ip, over_udp, over_ip].into_iter().enumerate() {
        t.peer_from(from, [data(2 * nth as u32 + 1), data(2 * nth as u32 + 2)]);
        t.run_ms(200); // SACKs may wait
        while t.next_sent().is_some() {}
        assert_eq!((t.last().local, t.last().remote), from, "the SACK");
        t.send(10);
        while t.next_sent().is_some() {}
        assert_eq!((t.last().local, t.last().remote), from, "and data of ours");
        let (local, remote) = from;
        let changed = Event::PathAdded { path: PathId(0), local, remote };
        assert!(t.events().contains(&changed));
        assert_eq!(t.assoc().paths().count(), 1, "it is the same path");
        t.peer_from(from, sack(nth as u32 + 1));
        t.assoc().check_invariants();
    }
}

#[test]
fn a_packet_with_a_wrong_tag_changes_no_encapsulation() {
    let mut t = Setup::server().established();
    let (wrong, over_ip) = (t.tag() ^ 1, raw(t.pairs[0]));
    t.peer_with_tag(over_ip, wrong, data(1));
    t.send(10);
    t.expect("DATA 1");
    assert_eq!((t.last().local, t.last().remote), t.pairs[0]);
}

#[test]
fn a_cookie_echo_over_ip_opens_what_an_init_over_udp_began() {
    let mut t = Setup::server().start();
    let over_ip = raw(t.pairs[0]);
    t.peer(init());
    let cookie = t.expect_init_ack();
    t.peer_from(over_ip, cookie_echo(&cookie));
    t.expect("COOKIE ACK");
    assert_eq!((t.last().local, t.last().remote), over_ip);
    let paths: Vec<_> = t.endpoint.associations().collect();
    assert_eq!(paths.len(), 1);
}

// ---- Sizes ----

#[test]
fn packets_over_ip_are_8_bytes_longer() {
    let longest = |pair| {
        let setup = Setup::client().pairs(&[pair]).set("pmtu_discovery", "false");
        let mut t = setup.established();
        t.send(2000);
        t.settle();
        let mut lengths = Vec::new();
        while let Some(sent) = t.next_sent() {
            if sent.starts_with("DATA") {
                lengths.push(t.last().packet.bytes().len());
            }
        }
        lengths.into_iter().max()
    };
    assert_eq!(longest(udp(1)[0]), Some(1472));
    assert_eq!(longest(raw(udp(1)[0])), Some(1480));
}

// ---- ICMP ----

#[test]
fn a_host_without_sctp_ends_the_attempt() {
    let (mut t, init) = opening();
    no_such_protocol(&mut t, &init);
    assert!(is_ended(&t), "RFC 9260 §10, ICMP8: as an ABORT");
    t.expect_nothing();
    assert!(t.events().contains(&Event::Closed(AssocClosed::NoSuchProtocol)));
}

#[test]
fn a_message_about_another_init_counts_for_nothing() {
    let (mut t, init) = opening();
    no_such_protocol(&mut t, &init[..8]);
    no_such_protocol(&mut t, &init[..19]); // without the Initiate Tag
    no_such_protocol(&mut t, &[]);
    for at in [0, 1, 2, 3, 12, 16, 17, 18, 19] {
        let mut wrong = init.clone();
        wrong[at] ^= 1;
        no_such_protocol(&mut t, &wrong);
    }
    assert_eq!(t.assoc().closed(), None, "ICMP6: the Initiate Tag is not ours");
    no_such_protocol(&mut t, &init[..20]);
    assert!(is_ended(&t), "the least that says whose INIT it is");
}

#[test]
fn the_tag_of_a_quoted_packet_is_compared() {
    let mut t = over_ip(Setup::client()).established();
    t.send(10);
    t.expect("DATA 1");
    let quoted = t.last().packet.bytes()[..8].to_vec();
    for at in 0..8 {
        let mut wrong = quoted.clone();
        wrong[at] ^= 1;
        no_such_protocol(&mut t, &wrong);
    }
    let mut none = quoted.clone();
    none[4..].fill(0);
    none.extend([0; 4]);
    none.extend([1, 0, 0, 20]);
    let own_tag = t.tag().to_be_bytes();
    none.extend(own_tag);
    no_such_protocol(&mut t, &none); // an INIT is only quoted while it is unanswered
    assert_eq!(t.assoc().closed(), None, "ICMP6");
    no_such_protocol(&mut t, &quoted);
    assert_eq!(t.assoc().closed(), None, "the peer was heard a moment ago");
    t.run_ms(1000);
    while t.next_sent().is_some() {}
    no_such_protocol(&mut t, &quoted);
    assert!(is_ended(&t), "ICMP8: as an ABORT with the T bit");
    t.expect_nothing();
}

#[test]
fn a_message_about_another_address_counts_for_nothing() {
    let mut t = over_ip(Setup::client()).established();
    t.send(10);
    t.expect("DATA 1");
    let quoted = t.last().packet.bytes()[..8].to_vec();
    let (local, now) = (t.pairs[0].0, t.now());
    let remote = "10.9.9.9:0".parse().expect("an address");
    let kind = IcmpKind::NoSuchProtocol;
    t.endpoint.handle_icmp(now, IcmpMessage { local, remote, kind, quoted: &quoted });
    assert_eq!(t.assoc().closed(), None, "ICMP5: no association is found");
}

#[test]
fn a_router_that_takes_only_shorter_packets_makes_them_shorter() {
    let mut t = over_ip(Setup::client()).set("pmtu_discovery", "true").established();
    t.answer_heartbeats();
    t.send(10);
    t.settle();
    while t.next_sent().is_some() {}
    let quoted = t.last().packet.bytes()[..8].to_vec();
    let ((local, remote), now) = (t.pairs[0], t.now());
    let before = t.path(1).mtu;
    let kind = IcmpKind::TooBig { mtu: 600 };
    t.endpoint.handle_icmp(now, IcmpMessage { local, remote, kind, quoted: &quoted });
    t.settle();
    let probe = t.next_sent();
    assert!(
        probe.is_some_and(|p| p.contains("PAD")),
        "ICMP7: what it named is asked for ({before})"
    );
}

#[test]
fn a_host_whose_program_has_ended_after_a_shutdown_is_no_failure() {
    let mut t = over_ip(Setup::server()).established();
    t.peer(shutdown(0));
    t.expect("SHUTDOWN ACK");
    let quoted = t.last().packet.bytes()[..8].to_vec();
    no_such_protocol(&mut t, &quoted);
    assert_eq!(t.assoc().closed(), Some(&AssocClosed::Shutdown), "both ends have everything");
}
