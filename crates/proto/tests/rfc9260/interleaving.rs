//! User message interleaving (RFC 8260): who agrees on it, which chunks then carry user data, and
//! how streams share what is sent. `docs/rfc8260.md` names the test for each rule.

use bytes::Bytes;
use manypath_proto::testing::*;
use manypath_proto::{Event, SendOptions, StreamId};
use manypath_wire::{Chunk, Parameter, chunk_type};

use super::common::announced;

/// User data of an I-DATA chunk that fills a packet of 1500 bytes in UDP over IPv4.
const FULL: usize = 1440;

fn announcement() -> Parameter {
    Parameter::SupportedExtensions(vec![chunk_type::I_DATA].into())
}

/// A client with this stream scheduler, whose peer has I-DATA if we have it.
fn client(interleaving: &str, scheduler: &str) -> Script {
    let setup = Setup::client().set("max_burst", "0").set("initial_cwnd", "50 pmdcs");
    let setup = setup.set("message_interleaving", interleaving);
    let mut t = setup.set("stream_scheduler", scheduler).start();
    t.connect_to(init_ack().param(announcement()));
    t
}

/// A server with I-DATA, as its peer.
fn server() -> Script {
    let mut t = Setup::server().set("message_interleaving", "true").start();
    t.accept(init().param(announcement()));
    t
}

/// Queues messages, as pairs of a stream and a length, before any of them is sent.
fn queue(t: &mut Script, messages: &[(u16, usize)]) {
    t.with(|a, now| {
        for &(stream, len) in messages {
            let options = SendOptions {
                stream: StreamId(stream),
                ppid: 7,
                unordered: false,
                ..SendOptions::default()
            };
            a.send(now, options, Bytes::from(vec![0; len])).expect("room");
        }
    });
}

/// The streams of all chunks that were sent, packet by packet.
fn streams(t: &mut Script) -> Vec<Vec<u16>> {
    let stream = |chunk| match chunk {
        Ok(Chunk::Data(data)) => Some(data.stream.0),
        Ok(Chunk::IData(data)) => Some(data.stream.0),
        _ => None,
    };
    let packets = t.take_sent();
    packets.iter().map(|sent| sent.packet.chunks().filter_map(stream).collect()).collect()
}

#[test]
fn i_data_is_announced_only_if_the_user_asked_for_it() {
    let types = |interleaving: &str| {
        let setup = Setup::client().set("message_interleaving", interleaving);
        let mut t = setup.set("partial_reliability", "false").start();
        t.connect();
        announced(&t.expect_init())
    };
    assert_eq!(types("true"), [chunk_type::I_DATA], "RFC 8260 §2.2.1");
    assert_eq!(types("false"), []);
}

#[test]
fn both_ends_must_announce_i_data() {
    let sends = |ours: &str, theirs: PeerChunk| {
        let mut t = Setup::server().set("message_interleaving", ours).start();
        t.accept(theirs);
        t.send(10);
        (t.assoc().interleaves(), t.next_sent().expect("user data"))
    };
    assert_eq!(sends("true", init().param(announcement())), (true, "I-DATA 1".to_owned()));
    assert_eq!(sends("true", init()), (false, "DATA 1".to_owned()), "RFC 8260 §2.2.1");
    assert_eq!(sends("false", init().param(announcement())), (false, "DATA 1".to_owned()));
}

#[test]
fn chunks_that_were_not_agreed_on_end_the_association() {
    let mut interleaves = server();
    interleaves.peer([data(1)]);
    let mut plain = Setup::server().established();
    plain.peer([i_data(1)]);
    for mut t in [interleaves, plain] {
        t.expect("ABORT 13");
        assert!(t.assoc().closed().is_some(), "RFC 8260 §2.2.3");
        assert!(t.recv().is_none());
    }
}

#[test]
fn i_data_without_user_data_ends_the_association() {
    let mut t = server();
    t.peer([i_data(1).payload(Bytes::new())]);
    t.expect("ABORT 9");
}

#[test]
fn a_long_message_is_cut_into_i_data_with_its_mid_and_fsns() {
    let mut t = client("true", "fcfs");
    assert_eq!(t.assoc().fragment_size(), FULL, "its header is 4 bytes longer than that of DATA");
    queue(&mut t, &[(3, 10), (3, 2 * FULL + 1), (5, 1)]);
    let mut sent = Vec::new();
    while t.next_sent().is_some() {
        sent.extend(t.last_i_data());
    }
    let fields: Vec<_> = sent
        .iter()
        .map(|d| (d.stream.0, d.mid.0, d.ppid(), d.fsn(), d.flags.end(), d.payload.len()))
        .collect();
    let expected = [
        (3, 0, Some(7), 0, true, 10),
        (3, 1, Some(7), 0, false, FULL),
        (3, 1, None, 1, false, FULL),
        (3, 1, None, 2, true, 1),
        (5, 0, Some(7), 0, true, 1),
    ];
    assert_eq!(fields, expected, "RFC 8260 §2.1");
    assert!(sent.windows(2).all(|pair| pair[0].tsn.next() == pair[1].tsn), "one TSN for each");
}

#[test]
fn mids_of_unordered_messages_count_apart() {
    let mut t = client("true", "fcfs");
    for unordered in [false, true, true, false] {
        t.with(|a, now| {
            let options =
                SendOptions { stream: StreamId(1), ppid: 0, unordered, ..SendOptions::default() };
            a.send(now, options, Bytes::from_static(b"x")).expect("room");
        });
    }
    let mut mids = Vec::new();
    while t.next_sent().is_some() {
        mids.extend(t.last_i_data().iter().map(|d| (d.flags.unordered(), d.mid.0)));
    }
    assert_eq!(mids, [(false, 0), (true, 0), (true, 1), (false, 1)], "RFC 8260 §2.1");
}

#[test]
fn what_is_sent_again_is_the_same_chunk() {
    let mut t = client("true", "rr");
    queue(&mut t, &[(1, 2 * FULL), (2, FULL)]);
    let mut first = Vec::new();
    while t.next_sent().is_some() {
        first.extend(t.last_i_data());
    }
    t.run_to_timer();
    t.next_sent().expect("a retransmission");
    assert_eq!(t.last_i_data(), first[..1]);
}

#[test]
fn fragments_of_different_streams_alternate_only_with_interleaving() {
    let packets = |interleaving: &str| {
        let mut t = client(interleaving, "rr");
        queue(&mut t, &[(1, 3 * FULL), (2, FULL), (3, 2 * FULL)]);
        streams(&mut t)
    };
    assert_eq!(packets("true"), [[1], [2], [3], [1], [3], [1]], "RFC 8260 §3.2");
    // DATA has four bytes more: the ends of messages share packets.
    assert_eq!(packets("false").concat(), [1, 1, 1, 2, 3, 3], "RFC 9260 §6.9");
}

#[test]
fn by_default_messages_leave_in_the_order_in_which_they_were_given() {
    for interleaving in ["true", "false"] {
        let mut t = client(interleaving, "fcfs");
        queue(&mut t, &[(1, 2 * FULL), (9, 10), (1, 10), (2, FULL)]);
        assert_eq!(streams(&mut t).concat(), [1, 1, 9, 1, 2], "RFC 8260 §3.1");
    }
}

#[test]
fn a_packet_of_rr_packet_has_chunks_of_one_stream() {
    let mut t = client("true", "rr_packet");
    queue(&mut t, &[(1, 10), (2, 10), (1, 10), (3, FULL + 10), (2, 10)]);
    let expected: [&[u16]; 4] = [&[1, 1], &[2, 2], &[3], &[3]];
    assert_eq!(streams(&mut t), expected, "RFC 8260 §3.3");
}

#[test]
fn a_priority_given_while_messages_wait_counts_at_once() {
    let mut t = client("true", "prio");
    t.with(|a, _| a.set_stream_priority(StreamId(2), 100));
    t.with(|a, now| {
        for stream in [1, 2, 3] {
            let options = SendOptions { stream: StreamId(stream), ..SendOptions::default() };
            a.send(now, options, Bytes::from(vec![0; 2 * FULL])).expect("room");
        }
        a.set_stream_priority(StreamId(3), 512);
    });
    assert_eq!(streams(&mut t).concat(), [3, 3, 1, 1, 2, 2], "RFC 8260 §3.4");
}

#[test]
fn wfq_shares_by_the_priorities_of_streams() {
    let mut t = client("true", "wfq");
    t.with(|a, _| a.set_stream_priority(StreamId(2), 512));
    queue(&mut t, &[(1, 20 * FULL), (2, 20 * FULL)]);
    let sent = streams(&mut t).concat();
    let first = |count: usize| sent[..count].iter().filter(|stream| **stream == 2).count();
    assert!((19..=21).contains(&first(30)), "RFC 8260 §3.6: two of three chunks: {sent:?}");
}

#[test]
fn parts_of_messages_on_several_streams_are_delivered_in_turn() {
    let mut t =
        Setup::server().set("message_interleaving", "true").set("receive_buffer", "4000").start();
    t.accept(init().param(announcement()));
    let mut parts = Vec::new();
    let mut tsn = 0;
    for fsn in 0..20 {
        for stream in [1, 2] {
            tsn += 1;
            let flags = ["B", "", "E"][usize::from(fsn > 0) + usize::from(fsn == 19)];
            let chunk = i_data(tsn).message(stream, 0, fsn).flags(flags).len(500);
            t.peer([if fsn == 0 { chunk.message(stream, 0, 70) } else { chunk }]);
            parts.extend(std::iter::from_fn(|| t.with(|a, now| a.recv(now))));
        }
    }
    assert!(t.assoc().closed().is_none(), "{:?}", t.assoc().closed());
    assert!(parts.iter().all(|part| part.ppid == 70), "that of the first fragment");
    let bytes = |stream: u16| {
        let of_it = parts.iter().filter(|part| part.stream.0 == stream);
        of_it.map(|part| part.payload.len()).sum::<usize>()
    };
    assert_eq!([bytes(1), bytes(2)], [10_000, 10_000]);
    let ends = parts.iter().filter(|part| part.end_of_message).count();
    assert!(parts.len() > 4 && ends == 2, "RFC 8260 §2.2.1: the application handles interleaving");
}

#[test]
fn fragments_that_contradict_each_other_end_the_association() {
    let begin = |tsn| i_data(tsn).message(1, 0, 7).flags("B");
    let cases: [(&str, [PeerChunk; 2]); 5] = [
        ("two beginnings", [begin(1), begin(2)]),
        (
            "an FSN twice",
            [i_data(1).message(1, 0, 4).flags(""), i_data(2).message(1, 0, 4).flags("E")],
        ),
        ("FSN 0 without B", [begin(1), i_data(2).message(1, 0, 0).flags("")]),
        (
            "a fragment behind the end",
            [i_data(1).message(1, 0, 2).flags("E"), i_data(2).message(1, 0, 3).flags("")],
        ),
        ("a MID again", [i_data(1), i_data(2).message(0, 0, 7)]),
    ];
    for (what, chunks) in cases {
        let mut t = server();
        t.peer(chunks.to_vec());
        t.expect("ABORT 13");
        assert!(t.events().iter().any(|e| matches!(e, Event::Closed(_))), "{what}");
    }
}
