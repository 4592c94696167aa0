//! Message interleaving (RFC 8260): a long message on one stream and messages on others.

use std::collections::BTreeSet;
use std::time::Duration;

use manypath_proto::{Instant, StreamId};
use manypath_sim::chunk_type::{DATA, I_DATA};
use manypath_sim::{Pair, PairBuilder, millis, secs, shared_key};
use manypath_wire::Chunk;

/// Bytes of the long message.
const BULK: usize = 1_000_000;
const BULK_STREAM: u16 = 0;
const SMALL_STREAM: u16 = 1;

/// One path of 10 Mbit/s and 20 ms, or two with CMT.
fn pair(preset: &str, interleaving: &str, scheduler: &str) -> PairBuilder {
    let pair = if preset == "sctp" { Pair::one_path(preset) } else { Pair::two_paths(preset) };
    let pair = pair.profile("fast").delay_ms(20.0).set("message_interleaving", interleaving);
    pair.set("stream_scheduler", scheduler)
}

/// The stream of each chunk of user data that host `a` sent for the first time, from an instant on.
fn new_streams_since(t: &Pair, since: Instant) -> Vec<u16> {
    let of_type = |ty| t.sent(ty).by(t.a.node()).chunks().collect::<Vec<_>>();
    let mut tsns = BTreeSet::new();
    let mut streams = Vec::new();
    for (at, chunk) in [DATA, I_DATA].into_iter().flat_map(of_type) {
        let (tsn, stream) = match chunk {
            Chunk::Data(data) => (data.tsn, data.stream),
            Chunk::IData(data) => (data.tsn, data.stream),
            other => panic!("{other:?} is no user data"),
        };
        if tsns.insert(tsn.0) && at >= since {
            streams.push(stream.0);
        }
    }
    streams
}

/// How many packets with new data leave before a message of 100 bytes, which is given 0.3 s after
/// one of 1 MB on another stream. A long message has a chunk in each packet.
fn packets_before_a_small_message(preset: &str, interleaving: &str, scheduler: &str) -> usize {
    let mut t = pair(preset, interleaving, scheduler).connect();
    t.a.command(|assoc| assoc.set_stream_priority(StreamId(SMALL_STREAM), 512));
    t.a.send(BULK_STREAM, BULK);
    t.run_for(Duration::from_millis(300));
    let begun = t.net.now();
    t.a.send(SMALL_STREAM, 100);
    t.run_to_end(secs(60));
    assert_eq!(t.z.received_messages(), 2);
    let sent = new_streams_since(&t, begun);
    sent.iter().position(|stream| *stream == SMALL_STREAM).expect("it was sent")
}

#[test]
fn a_small_message_leaves_at_once_beside_a_long_one_on_another_stream() {
    for preset in ["sctp", "cmt-pf"] {
        for scheduler in ["rr", "rr_packet", "prio", "fair", "wfq"] {
            let before = packets_before_a_small_message(preset, "true", scheduler);
            assert!(before <= 2, "RFC 8260 §1.1: {preset}, {scheduler}: {before} packets");
        }
    }
}

#[test]
fn without_interleaving_it_waits_for_all_of_the_long_one() {
    for (interleaving, scheduler) in [("false", "rr"), ("false", "prio"), ("true", "fcfs")] {
        let before = packets_before_a_small_message("sctp", interleaving, scheduler);
        assert!(before > 300, "{interleaving}, {scheduler}: {before} packets");
    }
}

#[test]
fn a_peer_without_the_extension_gets_data() {
    for (ours, theirs) in [("true", "false"), ("false", "true")] {
        let pair = Pair::two_paths("cmt-pf").set("stream_scheduler", "rr");
        let pair = pair.set_a("message_interleaving", ours).set_z("message_interleaving", theirs);
        let mut t = pair.connect();
        for stream in 0..4 {
            t.a.send(stream, 200_000);
        }
        t.z.send(3, 100_000);
        t.run_to_end(secs(60));
        assert_eq!((t.z.received_messages(), t.a.received_messages()), (4, 1));
        assert_eq!(t.sent(I_DATA).count(), 0, "RFC 8260 §2.2.1");
        assert!(t.sent(DATA).count() > 100);
    }
}

/// Long and short messages on several streams, ordered and unordered, in both directions, through
/// loss, duplicates and reordering.
fn transfer_through_trouble(pair: PairBuilder) -> Pair {
    let mut t = pair.loss(0.02).connect();
    for path in 0..2 {
        t.net.path(path).set_duplicate(0.05);
        t.net.path(path).set_reorder(0.2, Duration::from_millis(30));
        t.net.path(path).set_jitter(Duration::from_millis(10));
    }
    for i in 0..60_u16 {
        t.a.send(i % 7, 1 + usize::from(i) * 2000);
        t.a.send_unordered(i % 5, 40_000 - usize::from(i) * 600);
        t.z.send(i % 3, 50 + usize::from(i) * 700);
    }
    t.run_to_end(secs(300));
    assert_eq!((t.z.received_messages(), t.a.received_messages()), (120, 60));
    assert_eq!(t.sent(DATA).count(), 0, "RFC 8260 §2.2.1: I-DATA for all user messages");
    t
}

#[test]
fn every_stream_is_whole_and_in_order_over_two_lossy_paths() {
    for (seed, scheduler) in (1..).zip(["fcfs", "rr", "rr_packet", "prio", "fair", "wfq"]) {
        transfer_through_trouble(pair("cmt-pf", "true", scheduler).seed(seed));
    }
    transfer_through_trouble(pair("adaptive", "true", "fair").seed(9));
    transfer_through_trouble(pair("msacmt-rtv2", "true", "fair").seed(10));
}

#[test]
fn small_buffers_hold_messages_of_many_streams_up_no_more_than_one() {
    let time = |streams: u16| {
        let pair = pair("cmt-pf", "true", "fair").set("receive_buffer", "100 KiB");
        let mut t = pair.connect();
        for stream in 0..streams {
            t.a.send(stream % 16, 4_000_000 / usize::from(streams));
        }
        let result = t.run_to_end(secs(120)).result();
        assert!(result.completed, "{result:#?}");
        result.transfer_time_s
    };
    let (few, many) = (time(4), time(16));
    assert!(many < 1.3 * few, "16 messages at a time take {many} s, 4 take {few} s");
}

#[test]
fn messages_of_the_key_management_pass_those_that_have_begun() {
    let pair = pair("cmt-pf", "true", "fair").keys(shared_key()).set("rekey_packets", "50");
    let mut t = pair.connect();
    for stream in 0..4 {
        t.a.send(stream, BULK);
    }
    t.run_until(millis(100));
    assert!(t.a.assoc().is_some_and(|assoc| assoc.interleaves()));
    t.run_to_end(secs(60));
    assert_eq!(t.z.received_messages(), 4);
    assert!(t.a.stats().is_some_and(|stats| stats.keys_replaced > 10), "{:?}", t.a.stats());
}

#[test]
fn a_peer_that_restarts_interleaves_again() {
    let mut t = pair("cmt-pf", "true", "rr").connect();
    t.a.send(0, BULK);
    t.run_for(Duration::from_millis(300));
    t.a.kill_and_restart();
    t.run_for(Duration::from_secs(3));
    t.a.send(1, 3000);
    t.run_to_end(secs(60));
    assert!(t.a.assoc().is_some_and(|assoc| assoc.interleaves()));
    assert_eq!(t.z.received_messages(), 1, "what was sent before is lost");
}
