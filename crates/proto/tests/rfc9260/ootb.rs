//! Packets out of the blue and verification tags (RFC 9260 §8.4, §8.5).

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use manypath_proto::testing::*;
use manypath_proto::{AssocClosed, Event};
use manypath_wire::{CommonHeader, ErrorCause, Parameter, UnknownParameter, parameter_type};

/// Answer of an endpoint without associations to a packet with tag 42.
fn answer(chunks: impl Into<Chunks>) -> Vec<String> {
    let mut t = Setup::server().start();
    t.peer_with_tag(t.pairs[0], 42, chunks);
    let words = t.all_sent();
    if !words.is_empty() {
        assert_eq!(t.last().packet.header.verification_tag, 42, "the tag is reflected");
        assert_eq!(t.last().remote, t.pairs[0].1);
        assert_eq!(t.last().packet.header.destination_port, PEER_PORT);
    }
    assert_eq!(t.endpoint.associations().count(), 0);
    words
}

#[test]
fn a_packet_from_no_single_host_is_dropped() {
    let mut t = Setup::server().start();
    for ip in [[224, 0, 0, 1], [255, 255, 255, 255], [0, 0, 0, 0]] {
        let from = (t.pairs[0].0, (ip, PORT).into());
        t.peer_with_tag(from, 42, data(1));
        t.peer_from(from, init());
    }
    t.expect_nothing(); // rule 1
}

#[test]
fn an_abort_is_never_answered() {
    assert!(answer(abort(&[])).is_empty(), "rule 2");
    assert!(answer([data(1), abort(&[]).reflected()]).is_empty(), "rule 2: anywhere in the packet");
}

#[test]
fn an_init_for_a_port_where_nobody_listens_is_aborted_with_its_tag() {
    let mut t = Setup::server().start();
    let header = CommonHeader { source_port: 7, destination_port: 8, verification_tag: 0 };
    let bytes = t.packet(header, init());
    t.peer_bytes(t.pairs[0], bytes);
    t.expect("ABORT"); // rule 3: T bit clear
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG);
    assert_eq!(t.last().packet.header.source_port, 8);
}

#[test]
fn an_init_with_a_tag_is_out_of_the_blue() {
    assert_eq!(answer(init()), ["ABORT T"], "rule 3 is for tag 0 only, so rule 8");
}

#[test]
fn a_shutdown_ack_is_answered_with_shutdown_complete() {
    assert_eq!(answer(shutdown_ack()), ["SHUTDOWN COMPLETE T"], "rule 5");
    assert_eq!(answer([sack(0), shutdown_ack()]), ["SHUTDOWN COMPLETE T"], "wherever it stands");
}

#[test]
fn shutdown_complete_cookie_ack_and_stale_cookie_are_dropped() {
    assert!(answer(shutdown_complete()).is_empty(), "rule 6");
    assert!(answer(cookie_ack()).is_empty(), "rule 7");
    assert!(answer(error(ErrorCause::StaleCookie(1))).is_empty(), "rule 7");
}

#[test]
fn anything_else_is_answered_with_a_reflected_abort() {
    let others = [
        data(1),
        sack(1),
        heartbeat(b"?"),
        shutdown(0),
        init_ack(),
        error(ErrorCause::OutOfResource),
        unknown(0xff),
        PeerChunk::Raw(0x41, 0, vec![0; 44]),
    ];
    for chunk in others {
        assert_eq!(answer(chunk.clone()), ["ABORT T"], "rule 8: {chunk:?}");
    }
}

#[test]
fn a_damaged_packet_is_dropped() {
    let mut t = Setup::server().established();
    let header =
        CommonHeader { source_port: PEER_PORT, destination_port: PORT, verification_tag: t.tag() };
    let mut bytes = t.packet(header, data(1));
    *bytes.last_mut().expect("not empty") ^= 1;
    t.peer_bytes(t.pairs[0], bytes);
    t.expect_nothing(); // §6.8
}

#[test]
fn a_wrong_tag_from_a_peer_is_dropped_silently() {
    let mut t = Setup::server().established();
    let wrong = t.tag() ^ 1;
    for chunk in [data(1), sack(0), shutdown(0), abort(&[]), heartbeat(b"?"), cookie_ack()] {
        t.peer_with_tag(t.pairs[0], wrong, chunk);
    }
    t.expect_nothing(); // §8.5
    assert!(t.assoc().is_established());
    assert_eq!(t.recv(), None);
}

#[test]
fn an_abort_counts_with_our_tag_or_with_the_peers_and_the_t_bit() {
    let closes = |tag: fn(&Script) -> u32, chunk: PeerChunk| {
        let mut t = Setup::server().established();
        let tag = tag(&t);
        t.peer_with_tag(t.pairs[0], tag, chunk);
        t.expect_nothing(); // §9.1: an ABORT is never answered
        t.assoc().closed().is_some()
    };
    assert!(closes(Script::tag, abort(&[])), "§8.5.1 B");
    assert!(closes(|_| PEER_TAG, abort(&[]).reflected()), "§8.5.1 B");
    assert!(!closes(Script::tag, abort(&[]).reflected()));
    assert!(!closes(|_| PEER_TAG, abort(&[])));
    assert!(!closes(|_| 42, abort(&[]).reflected()));
}

#[test]
fn a_shutdown_complete_counts_with_our_tag_or_with_the_peers_and_the_t_bit() {
    let closes = |tag: fn(&Script) -> u32, chunk: PeerChunk| {
        let mut t = Setup::server().established();
        t.peer(shutdown(0));
        t.expect("SHUTDOWN ACK");
        let tag = tag(&t);
        t.peer_with_tag(t.pairs[0], tag, chunk);
        t.expect_nothing();
        t.assoc().closed() == Some(&AssocClosed::Shutdown)
    };
    assert!(closes(Script::tag, shutdown_complete()), "§8.5.1 C");
    assert!(closes(|_| PEER_TAG, shutdown_complete().reflected()), "§8.5.1 C");
    assert!(!closes(Script::tag, shutdown_complete().reflected()));
    assert!(!closes(|_| PEER_TAG, shutdown_complete()));
}

#[test]
fn a_shutdown_ack_while_opening_belongs_to_an_older_association() {
    let mut t = Setup::client().start();
    t.connect();
    t.expect_init();
    t.peer_with_tag(t.pairs[0], 42, shutdown_ack());
    t.expect("SHUTDOWN COMPLETE T"); // §8.5.1 E, §9.2
    assert_eq!(t.last().packet.header.verification_tag, 42);
    t.peer(shutdown_ack());
    t.expect("SHUTDOWN COMPLETE T");
    t.peer(init_ack());
    t.expect("COOKIE ECHO");
    t.peer(shutdown_ack());
    t.expect("SHUTDOWN COMPLETE T");
    t.peer(cookie_ack());
    assert!(t.assoc().is_established(), "the attempt went on");
}

#[test]
fn the_peers_port_is_part_of_the_association() {
    let mut t = Setup::server().established();
    let header =
        CommonHeader { source_port: 4000, destination_port: PORT, verification_tag: t.tag() };
    let bytes = t.packet(header, data(1));
    t.peer_bytes(t.pairs[0], bytes);
    t.expect("ABORT T");
    assert_eq!(t.recv(), None);
}

#[test]
fn a_closed_association_is_out_of_the_blue() {
    let mut t = Setup::server().established();
    t.with(|a, now| a.abort(now, b"bye"));
    t.expect("ABORT 12");
    t.peer(data(1));
    t.expect("ABORT T");
    t.peer(shutdown_ack());
    t.expect("SHUTDOWN COMPLETE T");
    assert_eq!(t.events().pop(), Some(Event::Closed(AssocClosed::Aborted)));
}

#[test]
fn a_flood_of_strangers_is_answered_within_a_bound() {
    let mut t = Setup::server().start();
    let header =
        CommonHeader { source_port: PEER_PORT, destination_port: PORT, verification_tag: 42 };
    let payload = bytes::Bytes::from(t.packet(header, data(1)));
    let (local, remote) = t.pairs[0];
    for _ in 0..100_000 {
        let payload = payload.clone();
        let datagram = manypath_proto::Datagram::new(local, remote, payload);
        t.endpoint.handle_datagram(t.now(), datagram);
    }
    t.settle();
    let answers = t.all_sent().len();
    assert!((1..=1000).contains(&answers), "{answers} answers wait at most");
}

/// Strangers forge 20,000 INITs a second, each from another address, and repeat each half a second
/// later, as honest clients do. An answer that is no longer than its question gains them nothing.
#[test]
fn a_padded_init_is_answered_beside_forgeries_that_are_repeated() {
    let mut t = Setup::server().profile("fast").start();
    let (local, honest) = t.pairs[0];
    let forged = |n: u32| SocketAddr::from((Ipv4Addr::from(0x0b00_0000 + n * 7919), PORT));
    let short = |tag: u32| init().tag(tag);
    let padded = |tag: u32| {
        let padding = UnknownParameter::new(parameter_type::PADDING, &[0; 512]);
        init().tag(tag).param(Parameter::Unknown(padding))
    };
    for n in 1..30_000 {
        t.peer_from((local, forged(n)), short(n));
        if n > 10_000 {
            t.peer_from((local, forged(n - 10_000)), short(n - 10_000));
        }
        if n % 20 == 0 {
            t.run(Duration::from_millis(1));
        }
    }
    t.all_sent();
    t.peer_from((local, honest), short(900));
    t.peer_from((local, honest), short(900));
    t.expect_nothing();
    for n in 40_000..41_000 {
        t.peer_from((local, forged(n)), padded(n));
        t.expect("INIT ACK");
        assert!(t.last().packet.bytes().len() <= 548, "no more bytes than came");
    }
    t.peer_from((local, honest), padded(900));
    t.expect("INIT ACK");
    assert_eq!(t.last().remote, honest);
}
