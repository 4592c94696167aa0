//! The size of packets (RFC 8899): its probes on the wire, and what routers and the system say.
//! `docs/rfc8899.md` names the test for each rule.

use bytes::Bytes;
use manypath_proto::testing::{
    Script, Setup, cookie_ack, heartbeat, heartbeat_ack, init, init_ack, sack,
};
use manypath_proto::{Event, MtuReason, PacketTooBig, PathId, PathState, Rng};
use manypath_wire::{Chunk, HeartbeatInfo};

/// The length of IPv4 and UDP headers.
const HEADERS: usize = 28;

/// A probe that the endpoint sent.
struct Probe {
    /// Bytes of its IP packet.
    size: usize,
    info: Bytes,
}

/// The latest expected packet, which is a probe.
fn last_probe(t: &Script) -> Probe {
    let Some(Chunk::Heartbeat(HeartbeatInfo(info))) = t.last_chunks().into_iter().next() else {
        panic!("a HEARTBEAT")
    };
    Probe { size: t.last().packet.bytes().len() + HEADERS, info }
}

fn probe(t: &mut Script) -> Probe {
    t.expect("HEARTBEAT, PAD");
    last_probe(t)
}

/// A client whose association is open; the first probe of its one path is not answered yet.
fn opened() -> (Script, Probe) {
    let mut t = Setup::client().profile("fast").preset("sctp").start();
    t.connect();
    t.expect_init();
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    t.peer(cookie_ack());
    let first = probe(&mut t);
    t.expect_nothing();
    t.events();
    (t, first)
}

/// The same when the path is known to carry packets of 1500 bytes.
fn known() -> Script {
    let (mut t, first) = opened();
    t.run_ms(20);
    t.peer(heartbeat_ack(&first.info));
    t.events();
    t
}

/// The part of the endpoint's latest packet that a router quotes.
fn quote(t: &Script) -> Vec<u8> {
    t.last().packet.bytes()[..8].to_vec()
}

/// A router's message about a packet on path 1.
fn tell(t: &mut Script, mtu: usize, quoted: &[u8]) {
    let ((local, remote), now) = (t.pairs[0], t.now());
    t.endpoint.packet_too_big(now, PacketTooBig { local, remote, mtu, quoted });
    t.settle();
    t.assoc().check_invariants();
}

#[test]
fn a_path_begins_with_1280_bytes_and_1500_are_asked_for_at_once() {
    let (mut t, first) = opened();
    assert_eq!((first.size, t.path(1).mtu), (1500, 1280));
    t.run_ms(20);
    t.peer(heartbeat_ack(&first.info));
    assert_eq!(t.path(1).mtu, 1500);
    let told = Event::PathMtu { path: PathId(0), mtu: 1500, reason: MtuReason::Confirmed };
    assert_eq!(t.events(), [told]);
    t.expect_nothing();
}

#[test]
fn only_its_own_nonce_answers_a_probe() {
    let (mut t, first) = opened();
    let mut forged = first.info.to_vec();
    forged[3] ^= 1;
    t.peer(heartbeat_ack(&forged.into()));
    assert_eq!(t.path(1).mtu, 1280);
}

#[test]
fn a_lost_probe_is_no_timeout_and_no_sign_of_congestion() {
    let (mut t, _) = opened();
    let before = t.path(1);
    let mut sizes = Vec::new();
    for _ in 0..5 {
        t.run_to_timer();
        sizes.push(probe(&mut t).size);
    }
    let after = t.path(1);
    assert_eq!(sizes, [1500, 1500, 1280, 1280, 1280], "MAX_PROBES, then what is in use");
    assert_eq!((after.state, after.error_count, after.rto), (PathState::Active, 0, before.rto));
    assert_eq!((after.cwnd, after.ssthresh), (before.cwnd, before.ssthresh));
    assert_eq!(after.counters.heartbeats_sent, before.counters.heartbeats_sent);
}

#[test]
fn an_address_that_nobody_named_gets_no_long_packets_before_it_is_verified() {
    let mut t = Setup::server().profile("fast").paths(2).start();
    t.accept_without_verification(init());
    t.take_sent();
    t.peer_on(2, heartbeat(b"of the peer"));
    let sent = t.all_sent();
    assert!(sent.iter().all(|packet| !packet.contains("PAD")), "{sent:?}");
    assert!(sent.iter().any(|packet| packet.contains("HEARTBEAT")), "{sent:?}");
}

#[test]
fn after_a_timeout_of_long_packets_three_sizes_are_asked_for_and_the_answer_decides() {
    let mut t = known();
    t.send(1400);
    t.expect("DATA 1");
    let mut sizes = Vec::new();
    let mut infos = Vec::new();
    for _ in 0..10 {
        t.run_to_timer();
        while let Some(words) = t.next_sent() {
            if words.ends_with("HEARTBEAT, PAD") {
                let probe = last_probe(&t);
                sizes.push(probe.size);
                infos.push(probe.info);
            }
        }
        if !sizes.is_empty() {
            break;
        }
    }
    assert_eq!(sizes, [1500, 1280, 576]);
    t.peer(heartbeat_ack(&infos[1]));
    assert_eq!(t.path(1).mtu, 1280);
    let lower = Event::PathMtu { path: PathId(0), mtu: 1280, reason: MtuReason::BlackHole };
    assert!(t.events().contains(&lower));
    t.peer(heartbeat_ack(&infos[0]));
    assert_eq!(t.path(1).mtu, 1500, "it had only been late");
}

#[test]
fn what_cannot_be_cut_again_goes_alone_and_may_be_fragmented() {
    let mut t = known();
    t.send_messages(3, 1400);
    t.expect_all(&["DATA 1", "DATA 2", "DATA 3"]);
    let ((local, remote), now) = (t.pairs[0], t.now());
    let quoted = quote(&t);
    t.endpoint.packet_too_big(now, PacketTooBig { local, remote, mtu: 1300, quoted: &quoted });
    let (mut buf, mut seen) = (Vec::new(), Vec::new());
    while let Some(to) = t.endpoint.poll_transmit(now, 10, &mut buf) {
        seen.push((buf.len() + HEADERS, to.may_fragment));
    }
    // The probe of what the router named; then the chunks, which it did not take.
    assert_eq!(seen[0], (1300, false));
    assert_eq!(seen[1..], [(1456, true); 3], "one in a packet, however many may leave at once");
    assert_eq!(t.path(1).cwnd, known().path(1).cwnd, "no sign of congestion");
}

#[test]
fn a_message_of_a_router_counts_only_with_our_ports_and_the_peers_tag() {
    let mut t = known();
    t.send(1000);
    t.expect("DATA 1");
    let right = quote(&t);
    for at in 0..8 {
        for bit in 0..8 {
            let mut wrong = right.clone();
            wrong[at] ^= 1 << bit;
            tell(&mut t, 1300, &wrong);
            assert_eq!(t.path(1).mtu, 1500, "byte {at}, bit {bit}");
        }
    }
    for len in 0..8 {
        tell(&mut t, 1300, &right[..len]);
        assert_eq!(t.path(1).mtu, 1500, "a quote of {len} bytes");
    }
    let ((local, remote), now) = (t.pairs[0], t.now());
    let elsewhere = "192.0.2.77:9899".parse().expect("an address");
    for (local, remote) in [(elsewhere, remote), (local, elsewhere)] {
        let message = PacketTooBig { local, remote, mtu: 1300, quoted: &right };
        t.endpoint.packet_too_big(now, message);
        assert_eq!(t.path(1).mtu, 1500, "about another pair of addresses");
    }
    tell(&mut t, 1300, &right);
    assert_eq!(t.path(1).mtu, 1280);
    assert_eq!(probe(&mut t).size, 1300, "what it named is checked before it is used");
}

#[test]
fn whatever_routers_say_a_path_keeps_the_base_size_and_its_invariants() {
    let mut t = known();
    t.send(1000);
    t.expect("DATA 1");
    t.peer(sack(1));
    let right = quote(&t);
    let mut rng = Rng::from_number(8899);
    for _ in 0..5_000 {
        let mtu = match rng.below(4) {
            0 => rng.below(68),
            1 => rng.below(1300),
            2 => 1280 + rng.below(300),
            _ => rng.below(1 << 40),
        };
        let mut quoted = right.clone();
        if rng.chance(0.2) {
            quoted[rng.below(8) as usize] ^= 1 << rng.below(8);
        }
        tell(&mut t, mtu as usize, &quoted);
        assert!(t.path(1).mtu >= 1280, "{} after a message of {mtu}", t.path(1).mtu);
        assert_eq!(t.path(1).state, PathState::Active);
        if rng.chance(0.5) {
            t.run_ms(rng.below(400));
        }
        // The peer is there, and everything arrives.
        for sent in t.take_sent() {
            for chunk in sent.packet.chunks() {
                if let Ok(Chunk::Heartbeat(info)) = chunk {
                    t.peer(heartbeat_ack(&info.0));
                }
            }
        }
    }
}

#[test]
fn what_the_system_does_not_take_is_believed() {
    let mut t = known();
    let ((local, remote), now) = (t.pairs[0], t.now());
    t.endpoint.packet_refused(now, local, remote, 1500 - HEADERS);
    assert_eq!(t.path(1).mtu, 1280);
    t.endpoint.set_link_mtu(now, local, 1000);
    assert_eq!(t.path(1).mtu, 1000, "also below the base");
    t.settle();
    t.assoc().check_invariants();
}
