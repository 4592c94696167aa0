use bytes::Bytes;
use proptest::prelude::*;

use super::super::retain::{COPY_BELOW, READY_UNCOPIED};
use super::*;

mod random;
mod retained;

const BEGIN: u8 = 2;
const END: u8 = 1;
const WHOLE: u8 = BEGIN | END;
const UNORDERED: u8 = 4;
const INITIAL: u32 = 100;

/// A chunk with `len` bytes of payload, each the lower byte of its TSN.
fn chunk(tsn: u32, stream: u16, ssn: u16, flags: u8, len: usize) -> Data {
    Data {
        tsn: Tsn(tsn),
        stream: StreamId(stream),
        ssn: Ssn(ssn),
        ppid: tsn,
        flags: DataFlags(flags),
        payload: Bytes::from(vec![tsn as u8; len]),
    }
}

/// A tracker and an `Inbound` of four streams, whose first TSN is `INITIAL`.
struct Receiver {
    tracker: TsnTracker,
    inbound: Inbound,
}

impl Receiver {
    fn new(limits: Limits) -> Receiver {
        Receiver { tracker: TsnTracker::new(Tsn(INITIAL)), inbound: Inbound::new(4, limits) }
    }

    fn ample() -> Receiver {
        Receiver::new(Limits::for_receive_buffer(1 << 20))
    }

    fn accept(&mut self, data: Data) -> Result<Arrival, ProtocolViolation> {
        self.inbound.accept(data, &mut self.tracker)
    }

    /// Takes in a chunk that must be new, of ten bytes.
    fn take(&mut self, tsn: u32, stream: u16, ssn: u16, flags: u8) {
        assert_eq!(self.accept(chunk(tsn, stream, ssn, flags, 10)), Ok(Arrival::New), "TSN {tsn}");
    }

    /// Stream and SSN of what is popped.
    fn popped(&mut self) -> Vec<(u16, u16)> {
        std::iter::from_fn(|| self.inbound.pop()).map(|m| (m.stream.0, m.ssn.0)).collect()
    }

    fn violation(&mut self, tsn: u32, stream: u16, ssn: u16, flags: u8) -> ProtocolViolation {
        self.accept(chunk(tsn, stream, ssn, flags, 10)).expect_err("a violation")
    }
}

#[test]
fn in_order_messages_are_ready_at_once() {
    let mut r = Receiver::ample();
    r.take(100, 0, 0, WHOLE);
    r.take(101, 0, 1, WHOLE);
    assert_eq!(r.inbound.buffered_bytes(), 20);
    let message = r.inbound.pop().unwrap();
    assert_eq!((message.ssn, message.ppid, message.end_of_message), (Ssn(0), 100, true));
    assert_eq!(message.payload.to_vec(), [100; 10]);
    assert_eq!(r.popped(), [(0, 1)]);
    assert_eq!((r.inbound.buffered_bytes(), r.inbound.buffered_chunks()), (0, 0));
}

#[test]
fn a_stream_waits_only_for_its_own_messages() {
    let mut r = Receiver::ample();
    r.take(102, 1, 1, WHOLE);
    r.take(101, 0, 0, WHOLE);
    assert_eq!(r.popped(), [(0, 0)], "RFC 9260 §6.6: no order between streams");
    r.take(103, 1, 2, WHOLE);
    r.take(100, 1, 0, WHOLE);
    assert_eq!(r.popped(), [(1, 0), (1, 1), (1, 2)], "RFC 9260 §6.6: the order of the SSNs");
}

#[test]
fn unordered_messages_are_ready_at_once() {
    let mut r = Receiver::ample();
    r.take(105, 0, 7, WHOLE | UNORDERED);
    assert_eq!(r.popped(), [(0, 7)], "RFC 9260 §6.6: the SSN of an unordered chunk is ignored");
    r.take(100, 0, 0, WHOLE);
    assert_eq!(r.popped(), [(0, 0)]);
}

#[test]
fn fragments_are_joined_in_any_order() {
    let orders = [[0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 3, 1], [1, 3, 0, 2], [2, 1, 3, 0]];
    for order in orders {
        let mut r = Receiver::ample();
        for i in order {
            let flags = [BEGIN, 0, 0, END][i as usize];
            assert_eq!(r.popped(), [], "incomplete, {order:?}");
            r.take(100 + i, 0, 0, flags);
        }
        let message = r.inbound.pop().unwrap();
        let expected: Vec<u8> = (100..104).flat_map(|b| [b; 10]).collect();
        assert_eq!(message.payload.to_vec(), expected, "RFC 9260 §6.9, {order:?}");
        assert_eq!(message.ppid, 100, "that of the first fragment");
        assert_eq!(message.payload.len(), 40);
        assert_eq!(message.payload.into_bytes(), expected);
    }
}

#[test]
fn ssns_wrap_around() {
    let mut r = Receiver::ample();
    let mut popped = Vec::new();
    for i in 0..70_000 {
        // Pairs arrive in reverse.
        let i = i ^ 1;
        r.take(INITIAL + i, 2, i as u16, WHOLE);
        popped.append(&mut r.popped());
    }
    let in_order = popped.iter().zip(0u32..).all(|(&(_, ssn), i)| ssn == i as u16);
    assert!(popped.len() == 70_000 && in_order, "RFC 9260 §6.5: 65535 is followed by 0");
}

#[test]
fn half_the_ssns_can_be_ahead_if_as_many_tsns_are() {
    let mut r = Receiver::ample();
    r.take(INITIAL + 40_000, 0, 40_000, WHOLE);
    let violation = r.violation(INITIAL + 10, 1, 40_000, WHOLE);
    let expected = ProtocolViolation::SsnReused {
        tsn: Tsn(INITIAL + 10),
        stream: StreamId(1),
        ssn: Ssn(40_000),
    };
    assert_eq!(violation, expected, "RFC 9260 §6.5: 40000 is behind 0 by serial arithmetic");
}

#[test]
fn an_invalid_stream_is_acknowledged_and_reported() {
    let mut r = Receiver::ample();
    let violation = r.violation(100, 4, 0, WHOLE);
    assert_eq!(
        violation,
        ProtocolViolation::InvalidStream { tsn: Tsn(100), stream: StreamId(4) },
        "RFC 9260 §6.5"
    );
    assert!(!violation.is_fatal());
    assert_eq!(r.tracker.cum_tsn(), Tsn(100), "RFC 9260 §6.5: acknowledged as usual");
    assert_eq!(r.inbound.buffered_bytes(), 0);
    // All fragments of a message on it, then the next message.
    for (tsn, flags) in [(103, END), (101, BEGIN), (102, 0)] {
        assert!(!r.violation(tsn, 9, 1, flags).is_fatal(), "TSN {tsn}");
    }
    r.take(104, 0, 0, WHOLE);
    assert_eq!(r.popped(), [(0, 0)]);
}

#[test]
fn fragments_that_contradict_each_other_are_a_violation() {
    type Chunk = (u32, u16, u16, u8);
    let cases: [(&str, &[Chunk], Chunk); 16] = [
        ("no BEGIN at the start", &[], (100, 0, 0, END)),
        ("no BEGIN after a delivered message", &[(100, 0, 0, WHOLE)], (101, 0, 1, 0)),
        ("no BEGIN after a held message", &[(102, 0, 2, WHOLE)], (103, 0, 3, END)),
        ("BEGIN inside a message", &[(100, 0, 0, BEGIN)], (101, 0, 1, BEGIN)),
        ("a whole message inside another", &[(100, 0, 0, BEGIN)], (101, 1, 0, WHOLE)),
        ("no END before a held BEGIN", &[(105, 0, 1, BEGIN)], (104, 0, 0, 0)),
        ("no END before a delivered message", &[(101, 1, 0, WHOLE)], (100, 0, 0, BEGIN)),
        ("END before a middle fragment", &[(105, 0, 1, 0)], (104, 0, 0, WHOLE)),
        ("another stream to the right", &[(104, 0, 0, BEGIN)], (105, 1, 0, END)),
        ("another stream to the left", &[(105, 0, 0, END)], (104, 1, 0, BEGIN)),
        ("another SSN", &[(104, 0, 0, BEGIN)], (105, 0, 1, END)),
        ("unordered after ordered", &[(104, 0, 0, BEGIN)], (105, 0, 0, END | UNORDERED)),
        ("an invalid stream inside", &[(104, 0, 0, BEGIN)], (105, 9, 0, END)),
        ("an invalid stream before", &[(105, 0, 0, END)], (104, 9, 0, BEGIN)),
        ("SSN behind", &[(100, 0, 0, WHOLE), (101, 0, 1, WHOLE)], (102, 0, 0, WHOLE)),
        ("SSN twice", &[(103, 0, 3, WHOLE)], (104, 0, 3, WHOLE)),
    ];
    for (name, before, last) in cases {
        let mut r = Receiver::ample();
        for &(tsn, stream, ssn, flags) in before {
            r.take(tsn, stream, ssn, flags);
        }
        let (tsn, stream, ssn, flags) = last;
        assert!(r.violation(tsn, stream, ssn, flags).is_fatal(), "RFC 9260 §6.9: {name}");
    }
}

#[test]
fn unordered_fragments_need_not_agree_on_the_ssn() {
    let mut r = Receiver::ample();
    r.take(100, 0, 3, BEGIN | UNORDERED);
    r.take(101, 0, 4, END | UNORDERED);
    assert_eq!(r.popped().len(), 1, "RFC 9260 §6.6: the SSN of an unordered chunk is ignored");
}

#[test]
fn a_message_too_large_to_hold_is_delivered_in_parts() {
    let limits = Limits { receive_buffer: 100, max_chunks: 64, partial_delivery_point: 30 };
    let mut r = Receiver::new(limits);
    r.take(100, 0, 0, BEGIN);
    r.take(101, 0, 0, 0);
    r.take(103, 0, 0, 0);
    assert_eq!(r.inbound.pop(), None, "20 bytes in a row");
    r.take(102, 0, 0, 0);
    let part = r.inbound.pop().unwrap();
    assert_eq!((part.payload.len(), part.end_of_message), (40, false), "RFC 9260 §6.9");
    for tsn in 104..200 {
        r.take(tsn, 0, 0, 0);
        let part = r.inbound.pop().unwrap();
        assert_eq!(part.payload.to_vec(), [tsn as u8; 10]);
        assert!(!part.end_of_message);
    }
    r.take(201, 0, 0, END);
    assert_eq!(r.inbound.pop(), None);
    r.take(200, 0, 0, 0);
    let last = r.inbound.pop().unwrap();
    assert_eq!((last.payload.len(), last.end_of_message, last.ssn), (20, true, Ssn(0)));
    r.take(202, 0, 1, WHOLE);
    assert_eq!(r.popped(), [(0, 1)]);
}

#[test]
fn only_the_stream_of_a_partial_message_waits_for_its_end() {
    for partial_flags in [0, UNORDERED] {
        let limits = Limits { receive_buffer: 400, max_chunks: 64, partial_delivery_point: 20 };
        let mut r = Receiver::new(limits);
        let ssn = u16::from(partial_flags == 0);
        r.take(100, 0, 0, BEGIN | partial_flags);
        r.take(101, 0, 0, partial_flags);
        assert!(!r.inbound.pop().unwrap().end_of_message);
        r.take(104, 0, 77, WHOLE | UNORDERED);
        r.take(105, 0, ssn, BEGIN);
        r.take(106, 0, ssn, END);
        r.take(107, 0, 78, BEGIN | UNORDERED);
        r.take(108, 0, 78, END | UNORDERED);
        assert_eq!(r.popped(), [], "RFC 9260 §6.9: the message in parts comes first");
        r.take(109, 1, 0, WHOLE);
        r.take(110, 1, 9, WHOLE | UNORDERED);
        assert_eq!(r.popped(), [(1, 0), (1, 9)]);
        r.take(103, 0, 0, END | partial_flags);
        r.take(102, 0, 0, partial_flags);
        let mut popped = r.popped();
        assert_eq!(popped.remove(0), (0, 0));
        popped.sort_unstable();
        assert_eq!(popped, [(0, ssn), (0, 77), (0, 78)]);
        assert_eq!((r.inbound.buffered_bytes(), r.inbound.buffered_chunks()), (0, 0));
    }
}

#[test]
fn a_partial_message_is_followed_by_its_own_fragments_only() {
    for (stream, ssn, flags) in [(1, 0, WHOLE), (0, 0, WHOLE), (0, 1, 0), (1, 0, END), (9, 0, END)]
    {
        let limits = Limits { receive_buffer: 400, max_chunks: 64, partial_delivery_point: 10 };
        let mut r = Receiver::new(limits);
        r.take(100, 0, 0, BEGIN);
        assert_eq!(r.popped(), [(0, 0)]);
        let violation = r.violation(101, stream, ssn, flags);
        assert!(violation.is_fatal(), "RFC 9260 §6.9: {stream} {ssn} {flags}");
    }
}

#[test]
fn a_partial_message_can_begin_when_a_gap_before_it_closes() {
    let limits = Limits { receive_buffer: 100, max_chunks: 64, partial_delivery_point: 30 };
    let mut r = Receiver::new(limits);
    for tsn in 101..104 {
        r.take(tsn, 0, 1, if tsn == 101 { BEGIN } else { 0 });
    }
    assert_eq!(r.inbound.pop(), None, "TSN 100 could be longer still");
    r.take(100, 0, 0, WHOLE);
    assert_eq!(r.popped(), [(0, 0), (0, 1)]);
}

#[test]
fn many_small_fragments_begin_partial_delivery_too() {
    let limits =
        Limits { receive_buffer: 1 << 20, max_chunks: 16, partial_delivery_point: 1 << 19 };
    let mut r = Receiver::new(limits);
    for tsn in 100..200 {
        r.take(tsn, 0, 0, if tsn == 100 { BEGIN } else { 0 });
        while r.inbound.pop().is_some() {}
    }
    assert!(r.inbound.buffered_chunks() < 16);
}

#[test]
fn a_full_buffer_takes_no_higher_tsn() {
    let mut r = Receiver::new(Limits::for_receive_buffer(20));
    r.take(101, 0, 1, WHOLE);
    r.take(102, 0, 2, WHOLE);
    assert_eq!(r.inbound.available_bytes(), 0);
    assert_eq!(r.accept(chunk(103, 0, 3, WHOLE, 10)), Ok(Arrival::Dropped), "RFC 9260 §6.2");
    assert!(!r.tracker.contains(Tsn(103)), "RFC 9260 §6.2: what is dropped is not acknowledged");
}

#[test]
fn a_full_buffer_discards_the_highest_tsn_for_a_lower_one() {
    let mut r = Receiver::new(Limits::for_receive_buffer(20));
    r.take(104, 0, 2, WHOLE);
    r.take(105, 0, 3, BEGIN);
    r.take(102, 0, 1, WHOLE);
    assert!(!r.tracker.contains(Tsn(105)), "RFC 9260 §6.2: the largest TSN is discarded");
    assert!(r.tracker.contains(Tsn(104)));
    r.take(100, 1, 0, WHOLE);
    assert!(!r.tracker.contains(Tsn(104)));
    assert_eq!(r.popped(), [(1, 0)]);
    r.take(101, 0, 0, WHOLE);
    assert_eq!(r.popped(), [(0, 0), (0, 1)]);
    // What was discarded is accepted when it comes again.
    r.take(104, 0, 2, WHOLE);
    assert_eq!(r.popped(), [(0, 2)]);
}

#[test]
fn a_buffer_full_of_ready_messages_waits_for_the_application() {
    let limits = Limits { receive_buffer: 20, max_chunks: 64, partial_delivery_point: 15 };
    let mut r = Receiver::new(limits);
    r.take(100, 0, 0, WHOLE);
    r.take(101, 0, 1, WHOLE);
    assert_eq!(r.accept(chunk(102, 0, 2, WHOLE, 10)), Ok(Arrival::Dropped));
    r.inbound.pop();
    r.take(102, 0, 2, BEGIN);
    assert_eq!(r.accept(chunk(103, 0, 2, END, 10)), Ok(Arrival::Dropped));
    assert_eq!(r.popped(), [(0, 1)], "no reason to deliver in parts");
    r.take(103, 0, 2, END);
    assert_eq!(r.popped(), [(0, 2)]);
}

#[test]
fn an_empty_receiver_takes_a_chunk_of_any_size() {
    let mut r = Receiver::new(Limits::for_receive_buffer(20));
    assert_eq!(r.accept(chunk(100, 0, 0, WHOLE, 1000)), Ok(Arrival::New));
    assert_eq!(r.inbound.available_bytes(), 0);
}

#[test]
fn tiny_chunks_are_bounded_by_their_number() {
    let limits =
        Limits { receive_buffer: 1 << 20, max_chunks: 50, partial_delivery_point: 1 << 19 };
    let mut r = Receiver::new(limits);
    for i in 0..100 {
        let arrival = r.accept(chunk(200 + 2 * i, 0, 1 + i as u16, WHOLE, 1));
        assert_eq!(arrival == Ok(Arrival::New), i < 50, "chunk {i}");
    }
    assert_eq!((r.inbound.buffered_chunks(), r.inbound.available_bytes()), (50, 0));
    assert_eq!(r.tracker.gap_ack_blocks().len(), 50);
}

#[test]
fn part_of_a_complete_message_can_be_discarded() {
    let mut r = Receiver::ample();
    r.take(101, 0, 1, BEGIN);
    r.take(102, 0, 1, END);
    r.take(103, 0, 2, WHOLE);
    assert_eq!(r.inbound.drop_highest(&mut r.tracker), Some(Tsn(103)));
    assert_eq!(r.inbound.drop_highest(&mut r.tracker), Some(Tsn(102)));
    r.take(100, 0, 0, WHOLE);
    assert_eq!(r.popped(), [(0, 0)], "the second message is incomplete again");
    assert_eq!(r.inbound.drop_highest(&mut r.tracker), None, "RFC 9260 §6.2: 101 is acknowledged");
    r.take(102, 0, 1, END);
    assert_eq!(r.popped(), [(0, 1)]);
    r.take(103, 0, 2, WHOLE);
    assert_eq!(r.popped(), [(0, 2)]);
}

#[test]
fn a_discarded_fragment_no_longer_counts_for_partial_delivery() {
    let limits = Limits { receive_buffer: 100, max_chunks: 64, partial_delivery_point: 20 };
    let mut r = Receiver::new(limits);
    r.take(101, 0, 1, BEGIN);
    r.take(102, 0, 1, 0);
    r.inbound.drop_highest(&mut r.tracker);
    r.take(100, 0, 0, WHOLE);
    assert_eq!(r.popped(), [(0, 0)], "10 bytes are held");
    r.take(102, 0, 1, 0);
    assert_eq!(r.popped(), [(0, 1)]);
}

#[test]
fn a_deferred_message_can_be_discarded() {
    let limits = Limits { receive_buffer: 400, max_chunks: 64, partial_delivery_point: 10 };
    let mut r = Receiver::new(limits);
    r.take(100, 0, 0, BEGIN);
    r.take(102, 0, 0, WHOLE | UNORDERED);
    assert_eq!(r.inbound.drop_highest(&mut r.tracker), Some(Tsn(102)));
    r.take(101, 0, 0, END);
    assert_eq!(r.popped(), [(0, 0), (0, 0)], "both parts, and nothing of TSN 102");
    r.take(102, 0, 0, WHOLE | UNORDERED);
    assert_eq!(r.popped(), [(0, 0)]);
}

#[test]
fn a_discarded_message_that_comes_back_as_another_is_not_taken_for_the_first() {
    let limits = Limits { receive_buffer: 400, max_chunks: 64, partial_delivery_point: 10 };
    let mut r = Receiver::new(limits);
    r.take(100, 0, 0, BEGIN);
    r.take(102, 0, 0, WHOLE | UNORDERED);
    r.inbound.drop_highest(&mut r.tracker);
    r.take(102, 0, 2, WHOLE);
    r.take(101, 0, 0, END);
    assert_eq!(r.popped(), [(0, 0), (0, 0)], "RFC 9260 §6.6: SSN 1 is missing");
    r.take(103, 0, 1, WHOLE);
    assert_eq!(r.popped(), [(0, 1), (0, 2)]);
}

#[test]
fn messages_that_can_never_be_delivered_end_in_a_violation() {
    let mut r = Receiver::new(Limits::for_receive_buffer(1000));
    let fatal = (0..200).find_map(|i| {
        // SSN 0 is never sent.
        let result = r.accept(chunk(INITIAL + i, 0, 1 + i as u16, WHOLE, 10));
        assert!(r.inbound.buffered_bytes() <= 1000);
        result.err()
    });
    assert!(matches!(fatal, Some(ProtocolViolation::Undeliverable { .. })), "{fatal:?}");
}

#[test]
fn a_high_partial_delivery_point_does_not_block_a_long_message() {
    let limits = Limits { receive_buffer: 30, max_chunks: 64, partial_delivery_point: 29 };
    let mut r = Receiver::new(limits);
    let (mut tsn, mut received, mut dropped) = (100, 0, 0);
    while tsn < 120 {
        let flags = if tsn == 100 { BEGIN } else { 0 };
        match r.accept(chunk(tsn, 0, 0, flags, 14)).expect("no violation") {
            Arrival::New => tsn += 1,
            _ => dropped += 1,
        }
        received += r.inbound.pop().map_or(0, |part| part.payload.len());
    }
    assert_eq!((received, dropped), (20 * 14, 1));
}

#[test]
fn a_packet_of_missing_chunks_comes_in_where_promises_fill_the_buffer() {
    let limits = Limits { receive_buffer: 100, max_chunks: 64, partial_delivery_point: 99 };
    let mut r = Receiver::new(limits);
    // By chunks of one byte, more TSNs are promised than fit of the larger ones that follow.
    assert_eq!(r.accept(chunk(110, 1, 0, WHOLE, 1)), Ok(Arrival::New));
    r.inbound.keep(&r.tracker);
    assert_eq!(r.popped(), [(1, 0)]);
    for tsn in 111..121 {
        r.take(tsn, 0, tsn as u16, WHOLE);
    }
    assert_eq!(r.inbound.available_bytes(), 0);
    r.inbound.begin_packet(0);
    let packet: Vec<_> =
        (100..105).map(|tsn| r.accept(chunk(tsn, 1, tsn as u16 - 99, WHOLE, 1))).collect();
    assert_eq!(packet, [Ok(Arrival::New); 5]);
    // What is ready makes room for the next packet.
    r.inbound.begin_packet(0);
    assert_eq!(r.accept(chunk(105, 1, 6, WHOLE, 1)), Ok(Arrival::Dropped));
    assert_eq!(r.popped().len(), 5);
    assert_eq!(r.accept(chunk(105, 1, 6, WHOLE, 1)), Ok(Arrival::New));
    // Above a gap nothing comes in.
    assert_eq!(r.accept(chunk(107, 1, 8, WHOLE, 1)), Ok(Arrival::Dropped));
}

#[test]
fn short_payloads_that_wait_do_not_pin_their_packet() {
    let packet = Bytes::from(vec![7; 2000]);
    let within = packet.as_ptr_range();
    let mut r = Receiver::ample();
    for (tsn, len) in [(101, COPY_BELOW - 1), (102, COPY_BELOW)] {
        let data = chunk(tsn, 0, tsn as u16 - 100, WHOLE, 0);
        r.accept(Data { payload: packet.slice(..len), ..data }).unwrap();
    }
    r.take(100, 0, 0, WHOLE);
    let payloads: Vec<Bytes> =
        std::iter::from_fn(|| r.inbound.pop()).skip(1).map(|m| m.payload.into_bytes()).collect();
    assert_eq!(payloads.len(), 2);
    assert!(!within.contains(&payloads[0].as_ptr()), "511 bytes are copied");
    assert!(within.contains(&payloads[1].as_ptr()), "512 bytes are not");
}

#[test]
fn many_short_payloads_that_are_not_popped_do_not_pin_their_packets() {
    let packet = Bytes::from(vec![7; 2000]);
    let mut r = Receiver::ample();
    for i in 0..=READY_UNCOPIED as u32 {
        let data = chunk(INITIAL + i, 0, i as u16, WHOLE, 0);
        r.accept(Data { payload: packet.slice(..100), ..data }).unwrap();
    }
    let copied =
        |message: Message| !packet.as_ptr_range().contains(&message.payload.into_bytes().as_ptr());
    assert_eq!(
        std::iter::from_fn(|| r.inbound.pop().map(copied)).filter(|&copied| copied).count(),
        1
    );
}

#[test]
fn one_chunk_far_ahead_costs_little() {
    let mut r = Receiver::ample();
    r.take(INITIAL + 1, 0, 1, WHOLE);
    r.take(INITIAL + 1 + 32_768, 0, 2, WHOLE);
    r.take(INITIAL + 60_000, 0, 3, WHOLE);
    assert!(r.inbound.held.index_bytes() <= 1 << 18, "{}", r.inbound.held.index_bytes());
    r.take(INITIAL, 0, 0, WHOLE);
    assert_eq!(r.popped(), [(0, 0), (0, 1), (0, 2), (0, 3)]);
}
