//! Timestamps (retransmission policies paper, section 4.2): the TIMESTAMP chunk and what it
//! measures.

use std::time::Duration;

use manypath_proto::testing::*;
use manypath_wire::{Chunk, Parameter, Timestamp, chunk_type};

fn announcement() -> Parameter {
    Parameter::SupportedExtensions(vec![chunk_type::TIMESTAMP].into())
}

fn setup(timestamp: &str) -> Setup {
    let setup = Setup::client().paths(2).preset("all-rtx-alt").set("timestamp", timestamp);
    setup.set("max_burst", "0").set("initial_cwnd", "20 pmdcs")
}

/// A client whose peer has timestamps too.
fn client() -> Script {
    let mut t = setup("true").start();
    t.connect_to(init_ack().param(announcement()));
    t
}

fn chunk(timestamp: u32, echo: Option<u32>) -> PeerChunk {
    PeerChunk::Plain(Chunk::Timestamp(Timestamp { timestamp, echo }))
}

/// The TIMESTAMP chunk that the packet of the latest expectation begins with.
fn last_timestamp(t: &Script) -> Timestamp {
    match t.last_chunks().first() {
        Some(Chunk::Timestamp(timestamp)) => *timestamp,
        other => panic!("{other:?} is no TIMESTAMP"),
    }
}

#[test]
fn both_ends_must_announce_timestamps() {
    let sent = |timestamp: &str, peer: PeerChunk| {
        let mut t = setup(timestamp).start();
        t.connect_to(peer);
        t.send(10);
        t.all_sent()
    };
    let both = sent("true", init_ack().param(announcement()));
    assert_eq!(both, ["P1 TIMESTAMP, DATA 1"]);
    assert_eq!(sent("true", init_ack()), ["P1 DATA 1"]);
    assert_eq!(sent("false", init_ack().param(announcement())), ["P1 DATA 1"]);
}

#[test]
fn a_server_learns_of_them_from_its_cookie() {
    let mut t = Setup::server().set("timestamp", "true").start();
    t.accept(init().param(announcement()));
    t.send(10);
    t.expect("TIMESTAMP, DATA 1");
}

#[test]
fn a_full_chunk_leaves_room_for_its_timestamp() {
    let mut t = Setup::client().profile("2006").set("timestamp", "true").start();
    t.connect_to(init_ack().param(announcement()));
    t.send(5000);
    t.expect("TIMESTAMP, DATA 1");
    assert_eq!(t.last_data()[0].payload.len(), 1440, "the 2006 profile's 1452 less 12");
    assert_eq!(t.last().packet.bytes().len(), 1480, "the MTU less the IP header");
}

#[test]
fn a_retransmission_measures_the_rtt_and_ends_the_back_off() {
    let mut t = client();
    t.send(10);
    t.expect("P1 TIMESTAMP, DATA 1");
    let original = last_timestamp(&t).timestamp;
    let rto = t.path(1).rto;
    t.run(rto);
    t.expect("P2 TIMESTAMP, DATA 1");
    let again = last_timestamp(&t).timestamp;
    assert_eq!(again.wrapping_sub(original), u32::try_from(rto.as_micros()).expect("small"));
    t.run_ms(70);
    let before = t.path(2).srtt.expect("measured by a heartbeat");
    t.peer_on(2, [chunk(5, Some(again)), sack(1)]);
    let expected = before.mul_f64(0.875) + Duration::from_millis(70).mul_f64(0.125);
    let srtt = t.path(2).srtt.expect("measured");
    assert!(srtt.abs_diff(expected) < Duration::from_micros(1), "{srtt:?}, not {expected:?}");
}

#[test]
fn an_echo_of_the_original_or_of_nothing_measures_no_retransmission() {
    for late in [true, false] {
        let mut t = client();
        t.send(10);
        t.expect("P1 TIMESTAMP, DATA 1");
        let original = last_timestamp(&t).timestamp;
        t.run(t.path(1).rto);
        t.expect("P2 TIMESTAMP, DATA 1");
        t.run_ms(70);
        let before = (t.path(1).srtt, t.path(2).srtt);
        let echo = if late { original } else { original.wrapping_add(12_345) };
        t.peer_on(2, [chunk(5, Some(echo)), sack(1)]);
        assert_eq!((t.path(1).srtt, t.path(2).srtt), before, "late: {late}");
        assert_eq!(t.assoc().unacked_bytes(), 0, "the SACK counts all the same");
    }
}

#[test]
fn a_sack_echoes_the_first_packet_that_it_answers() {
    let mut t = client();
    t.peer([chunk(100, None), data(1)]);
    t.expect("P1 TIMESTAMP, SACK 1");
    assert_eq!(last_timestamp(&t).echo, Some(100));
    t.peer([chunk(200, None), data(2)]);
    t.run_ms(30);
    t.peer([chunk(300, None), data(3)]);
    t.expect("P1 TIMESTAMP, SACK 3");
    assert_eq!(last_timestamp(&t).echo, Some(200), "the delay of the SACK counts");
    t.peer([chunk(400, None), data(5)]);
    t.expect("P1 TIMESTAMP, SACK 3 gaps 5");
    assert_eq!(last_timestamp(&t).echo, Some(400));
}

#[test]
fn a_timestamp_alone_or_of_another_length_is_ignored() {
    let mut t = client();
    t.peer(chunk(1, Some(2)));
    t.expect_nothing();
    t.peer([PeerChunk::Raw(chunk_type::TIMESTAMP, 0, b"mine".to_vec()), data(1)]);
    t.expect("P1 TIMESTAMP, SACK 1"); // skipped in silence
    assert_eq!(last_timestamp(&t).echo, None);
}
