use std::collections::BTreeMap;

use bytes::Bytes;
use manypath_wire::DataFlags;
use proptest::prelude::*;

use super::super::Limits;
use super::*;
use crate::rx::message::Message;

const BEGIN: u8 = 2;
const END: u8 = 1;
const WHOLE: u8 = BEGIN | END;
const UNORDERED: u8 = 4;
const INITIAL: u32 = 100;
const STREAMS: u16 = 4;

/// A fragment of `len` bytes, each the lower byte of its TSN. A first one has the PPID 70.
fn chunk(tsn: u32, (stream, mid, fsn): (u16, u32, u32), flags: u8, len: usize) -> IData {
    IData {
        tsn: Tsn(tsn),
        stream: StreamId(stream),
        mid: Mid(mid),
        ppid_or_fsn: if flags & BEGIN != 0 { 70 } else { fsn },
        flags: DataFlags(flags),
        payload: Bytes::from(vec![tsn as u8; len]),
    }
}

struct Receiver {
    tracker: TsnTracker,
    inbound: Inbound,
}

impl Receiver {
    fn new(limits: Limits) -> Receiver {
        let mut inbound = Inbound::new(STREAMS, limits);
        inbound.interleave();
        Receiver { tracker: TsnTracker::new(Tsn(INITIAL)), inbound }
    }

    fn ample() -> Receiver {
        Receiver::new(Limits::for_receive_buffer(1 << 20))
    }

    fn accept(&mut self, data: IData) -> Result<Arrival, ProtocolViolation> {
        let arrival = self.inbound.accept_i_data(data, &mut self.tracker);
        if arrival.is_ok() {
            let held = self.inbound.interleaved.as_ref().map_or(0, |i| i.check());
            assert_eq!(held, self.inbound.held_in_reassembly().chunks);
        }
        arrival
    }

    /// Takes in a chunk of ten bytes that must be new.
    fn take(&mut self, tsn: u32, place: (u16, u32, u32), flags: u8) {
        assert_eq!(self.accept(chunk(tsn, place, flags, 10)), Ok(Arrival::New), "TSN {tsn}");
    }

    /// Stream, MID, and the last byte of each of its fragments, of what is popped.
    fn popped(&mut self) -> Vec<(u16, u16, Vec<u8>)> {
        let tsns = |m: &Message| m.payload.chunks().iter().map(|c| c[0]).collect();
        let pops = std::iter::from_fn(|| self.inbound.pop());
        pops.map(|m| (m.stream.0, m.ssn.0, tsns(&m))).collect()
    }

    fn violation(&mut self, data: IData) -> ProtocolViolation {
        let violation = self.accept(data).expect_err("a violation");
        assert!(violation.is_fatal());
        violation
    }
}

#[test]
fn fragments_of_messages_on_several_streams_alternate() {
    let mut r = Receiver::ample();
    r.take(100, (0, 0, 0), BEGIN);
    r.take(101, (1, 0, 0), BEGIN);
    r.take(102, (2, 0, 0), WHOLE);
    assert_eq!(r.popped(), [(2, 0, vec![102])], "it waits for no message of another stream");
    r.take(103, (1, 0, 1), END);
    r.take(104, (0, 0, 1), 0);
    assert_eq!(r.popped(), [(1, 0, vec![101, 103])]);
    r.take(105, (0, 0, 2), END);
    let message = r.inbound.pop().expect("a message");
    assert_eq!((message.ppid, message.end_of_message, message.unordered), (70, true, false));
    assert_eq!(message.payload.len(), 30);
    assert!(r.inbound.is_clear());
    assert_eq!((r.inbound.buffered_bytes(), r.inbound.buffered_chunks()), (0, 0));
}

#[test]
fn fragments_are_joined_by_their_fsn_whatever_their_tsn() {
    let mut r = Receiver::ample();
    for (tsn, fsn, flags) in [(103, 2, 0), (100, 3, END), (102, 0, BEGIN), (101, 1, 0)] {
        assert_eq!(r.popped(), []);
        r.take(tsn, (3, 0, fsn), flags);
    }
    assert_eq!(r.popped(), [(3, 0, vec![102, 101, 103, 100])], "RFC 8260 §2.2.3");
}

#[test]
fn ordered_messages_are_delivered_by_their_mid_and_unordered_ones_at_once() {
    let mut r = Receiver::ample();
    r.take(100, (0, 2, 0), WHOLE);
    r.take(101, (0, 1, 0), BEGIN);
    r.take(102, (0, 0, 0), WHOLE | UNORDERED);
    assert_eq!(r.popped(), [(0, 0, vec![102])]);
    r.take(103, (0, 0, 0), WHOLE);
    r.take(104, (0, 1, 0), BEGIN | UNORDERED);
    assert_eq!(r.popped(), [(0, 0, vec![103])], "MIDs of unordered messages count apart");
    r.take(105, (0, 1, 1), END);
    assert_eq!(r.popped(), [(0, 1, vec![101, 105]), (0, 2, vec![100])]);
    r.take(106, (0, 1, 1), END | UNORDERED);
    assert_eq!(r.popped(), [(0, 1, vec![104, 106])]);
}

#[test]
fn mids_and_fsns_wrap_around() {
    let mut r = Receiver::ample();
    r.inbound.interleaved.as_mut().expect("it is on").stream_mut(StreamId(1)).next_mid =
        Mid(u32::MAX);
    r.take(100, (1, 0, 0), WHOLE);
    r.take(101, (1, u32::MAX, 0), WHOLE);
    assert_eq!(r.popped(), [(1, u16::MAX, vec![101]), (1, 0, vec![100])]);

    let key = Key { stream: StreamId(2), unordered: false, mid: 0 };
    let at = u64::from(u32::MAX);
    let long = Assembly { next: at, reach: at, ..Assembly::default() };
    let i = r.inbound.interleaved.as_mut().expect("it is on");
    i.messages.insert(key, long);
    i.stream_mut(key.stream).partial = Some(key);
    r.take(102, (2, 0, 0), 0);
    assert_eq!(r.popped(), [], "RFC 8260 §2.1: FSN 0 follows 2^32 - 1");
    r.take(103, (2, 0, u32::MAX), 0);
    r.take(104, (2, 0, 1), END);
    assert_eq!(r.popped(), [(2, 0, vec![103, 102]), (2, 0, vec![104])]);
    assert!(r.inbound.is_clear());
}

#[test]
fn fragments_that_contradict_each_other_are_violations() {
    let out_of_place = |tsn| ProtocolViolation::FragmentOutOfPlace { tsn: Tsn(tsn) };
    // A message with FSN 0 to 2 and 5, then: what is sent for it, with a TSN of its own.
    for (fsn, flags, why) in [
        (0, BEGIN, "a second beginning"),
        (2, 0, "an FSN twice"),
        (0, 0, "no B for FSN 0"),
        (2, END, "an end before other fragments"),
        (1 << 31, 0, "an FSN behind"),
    ] {
        let mut r = Receiver::ample();
        for (tsn, at, f) in [(100, 0, BEGIN), (101, 1, 0), (102, 2, 0), (103, 5, 0)] {
            r.take(tsn, (0, 0, at), f);
        }
        assert_eq!(r.violation(chunk(104, (0, 0, fsn), flags, 10)), out_of_place(104), "{why}");
    }
    let mut r = Receiver::ample();
    r.take(100, (0, 0, 3), END);
    assert_eq!(r.violation(chunk(101, (0, 0, 4), 0, 10)), out_of_place(101), "behind the end");
    let mut r = Receiver::ample();
    r.take(100, (0, 0, 3), END);
    assert_eq!(r.violation(chunk(101, (0, 0, 2), END, 10)), out_of_place(101), "a second end");
}

#[test]
fn a_mid_that_was_delivered_is_not_used_again() {
    let mut r = Receiver::ample();
    r.take(100, (1, 0, 0), WHOLE);
    let (tsn, stream, mid) = (Tsn(101), StreamId(1), Mid(0));
    let expected = ProtocolViolation::MidReused { tsn, stream, mid };
    assert_eq!(r.violation(chunk(101, (1, 0, 0), BEGIN, 10)), expected);
}

#[test]
fn an_invalid_stream_is_acknowledged_and_reported() {
    let mut r = Receiver::ample();
    let (tsn, stream) = (Tsn(100), StreamId(STREAMS));
    let violation = r.accept(chunk(100, (STREAMS, 0, 0), WHOLE, 10)).expect_err("no such stream");
    assert_eq!(violation, ProtocolViolation::InvalidStream { tsn, stream });
    assert!(!violation.is_fatal() && r.tracker.contains(tsn));
}

/// Room for 100 chunks of ten bytes.
fn small() -> Limits {
    Limits { receive_buffer: 1000, max_chunks: 1000, partial_delivery_point: 500 }
}

#[test]
fn a_long_message_is_delivered_in_parts_and_nothing_else_of_its_stream_meanwhile() {
    let mut r = Receiver::new(small());
    for fsn in 0..50 {
        assert_eq!(r.popped(), []);
        r.take(100 + fsn, (0, 0, fsn), if fsn == 0 { BEGIN } else { 0 });
    }
    let part = r.inbound.pop().expect("a part");
    assert_eq!((part.payload.len(), part.end_of_message), (500, false));
    r.take(151, (0, 0, 0), WHOLE | UNORDERED);
    r.take(152, (0, 1, 0), WHOLE);
    r.take(153, (1, 0, 0), WHOLE);
    assert_eq!(r.popped(), [(1, 0, vec![153])], "another stream goes on");
    r.take(150, (0, 0, 50), 0);
    assert_eq!(r.popped(), [(0, 0, vec![150])]);
    r.take(154, (0, 0, 51), END);
    assert_eq!(r.popped(), [(0, 0, vec![154]), (0, 0, vec![151]), (0, 1, vec![152])]);
    assert!(r.inbound.is_clear());
}

#[test]
fn many_messages_that_have_begun_do_not_block_each_other() {
    let mut r = Receiver::new(small());
    let mut got = 0;
    // 400 fragments of four messages, in turn: none is long when the buffer is half full.
    for i in 0..400 {
        let flags = if i < 4 { BEGIN } else { 0 } | if i >= 396 { END } else { 0 };
        let place = ((i % 4) as u16, 0, i / 4);
        assert_eq!(r.accept(chunk(100 + i, place, flags, 10)), Ok(Arrival::New), "{i}");
        if i % 40 == 39 {
            got += r.popped().iter().map(|(_, _, tsns)| tsns.len()).sum::<usize>();
        }
    }
    assert_eq!(got, 400);
}

#[test]
fn a_full_buffer_makes_room_for_lower_tsns_and_opens_what_can_be_delivered() {
    let mut r = Receiver::new(Limits { partial_delivery_point: 999, ..small() });
    r.take(100, (0, 0, 0), BEGIN);
    for i in 0..99 {
        r.take(102 + i, (1, 0, 1 + i), 0);
    }
    assert_eq!(r.accept(chunk(300, (2, 0, 0), BEGIN, 10)), Ok(Arrival::Dropped));
    r.take(101, (0, 0, 1), 0);
    assert_eq!(r.inbound.chunks_reneged(), 1, "TSN 200 went for it");
    assert!(!r.tracker.contains(Tsn(200)));
    let refused = r.accept(chunk(200, (1, 0, 99), 0, 10));
    assert_eq!(refused, Ok(Arrival::Dropped), "until the application has read");
    assert_eq!(r.popped(), [(0, 0, vec![100, 101])], "which it can, now");
    r.take(200, (1, 0, 99), 0);
}

#[test]
fn buffers_full_of_messages_without_their_predecessors_are_a_violation() {
    let mut r = Receiver::new(small());
    for i in 0..100 {
        r.take(100 + i, (0, 1 + i, 0), WHOLE);
    }
    let violation = r.violation(chunk(200, (1, 1, 0), WHOLE, 10));
    assert_eq!(violation, ProtocolViolation::Undeliverable { tsn: Tsn(200) });
}

#[test]
fn fragments_without_beginnings_take_no_more_than_the_buffer() {
    let mut r = Receiver::new(small());
    let mut last = Ok(Arrival::New);
    for i in 0..200 {
        last = r.accept(chunk(100 + i, ((i % 4) as u16, i, 7), UNORDERED, 10));
        if last.is_err() {
            break;
        }
    }
    assert_eq!(last, Err(ProtocolViolation::Undeliverable { tsn: Tsn(200) }));
    assert!(r.inbound.buffered_bytes() <= 1000);
}

/// A message to send: its stream, whether it is unordered, and its fragments' lengths.
type Plan = (u16, bool, Vec<usize>);

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let fragments = prop::collection::vec(1usize..40, 1..8);
    prop::collection::vec((0..STREAMS, prop::bool::weighted(0.3), fragments), 1..40)
}

/// The chunks of all messages, of one message at a time on each stream; `turns` choose the stream.
fn chunks_of(plans: &[Plan], turns: &[u16]) -> Vec<IData> {
    let mut queues: BTreeMap<u16, Vec<IData>> = BTreeMap::new();
    let mut next = BTreeMap::new();
    for (number, (stream, unordered, fragments)) in plans.iter().enumerate() {
        let mid: &mut u32 = next.entry((*stream, *unordered)).or_default();
        for (fsn, &len) in fragments.iter().enumerate() {
            let flags = if fsn == 0 { BEGIN } else { 0 }
                | if fsn + 1 == fragments.len() { END } else { 0 }
                | if *unordered { UNORDERED } else { 0 };
            let mut data = chunk(0, (*stream, *mid, fsn as u32), flags, 0);
            if fsn == 0 {
                data.ppid_or_fsn = number as u32;
            }
            data.payload = (0..len).map(|i| (number * 31 + fsn * 7 + i) as u8).collect();
            queues.entry(*stream).or_default().push(data);
        }
        *mid += 1;
    }
    queues.values_mut().for_each(|q| q.reverse());
    let mut chunks = Vec::new();
    for turn in turns.iter().cycle() {
        let left: Vec<u16> =
            queues.iter().filter(|(_, q)| !q.is_empty()).map(|(stream, _)| *stream).collect();
        let Some(&stream) = left.get(usize::from(*turn) % left.len().max(1)) else { break };
        let data = queues.get_mut(&stream).and_then(Vec::pop).expect("one is left");
        chunks.push(IData { tsn: Tsn(INITIAL.wrapping_add(chunks.len() as u32)), ..data });
    }
    chunks
}

fn transfer(plans: &[Plan], turns: &[u16], keys: &[u16], limits: Limits, keeps: bool) {
    let chunks = chunks_of(plans, turns);
    let mut r = Receiver::new(limits);
    let mut bodies: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
    let mut parts: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
    let mut order: BTreeMap<u16, Vec<u32>> = BTreeMap::new();
    for round in 0.. {
        assert!(round < 2000, "no progress");
        let missing: Vec<&IData> =
            chunks.iter().filter(|data| !r.tracker.contains(data.tsn)).collect();
        let Some(first) = missing.first() else { break };
        // A window of them in any order, some of them lost, and the first one last.
        let window = &missing[..missing.len().min(20)];
        let mut keyed: Vec<_> = window
            .iter()
            .zip(keys.iter().cycle().skip(round * 7))
            .filter(|(_, key)| *key % 4 != 0)
            .map(|(data, key)| (*key, (*data).clone()))
            .collect();
        keyed.sort_by_key(|(key, data)| (*key, data.tsn.0));
        let sent = keyed.into_iter().map(|(_, data)| data).chain([(*first).clone()]);
        for data in sent {
            r.inbound.begin_packet(data.payload.len());
            r.accept(data).expect("an honest sender");
            if keeps {
                r.inbound.keep(&r.tracker);
            }
        }
        if round % 2 == 0 {
            continue;
        }
        while let Some(message) = r.inbound.pop() {
            let body = parts.entry(message.stream.0).or_default();
            body.extend_from_slice(&message.payload.to_vec());
            if message.end_of_message {
                let body = parts.remove(&message.stream.0).expect("it was made");
                assert_eq!(bodies.insert(message.ppid, body), None, "twice");
                if !message.unordered {
                    order.entry(message.stream.0).or_default().push(message.ppid);
                }
            }
        }
    }
    while let Some(message) = r.inbound.pop() {
        let body = parts.entry(message.stream.0).or_default();
        body.extend_from_slice(&message.payload.to_vec());
        if message.end_of_message {
            bodies.insert(message.ppid, parts.remove(&message.stream.0).expect("it was made"));
            if !message.unordered {
                order.entry(message.stream.0).or_default().push(message.ppid);
            }
        }
    }
    assert!(order.values().all(|numbers| numbers.is_sorted()), "{order:?}");
    let body = |number: usize, fragments: &[usize]| -> Vec<u8> {
        let fragments = fragments.iter().enumerate();
        let bytes = fragments
            .flat_map(|(fsn, &len)| (0..len).map(move |i| (number * 31 + fsn * 7 + i) as u8));
        bytes.collect()
    };
    let sent = plans.iter().enumerate().map(|(n, (_, _, f))| (n as u32, body(n, f)));
    assert_eq!(bodies, sent.collect::<BTreeMap<_, _>>());
    assert!(r.inbound.is_clear());
    assert_eq!((r.inbound.buffered_bytes(), r.inbound.buffered_chunks()), (0, 0));
}

proptest! {
    #[test]
    fn what_is_sent_arrives_whole_once_and_in_order(
        plans in plans(),
        turns in prop::collection::vec(any::<u16>(), 1..20),
        keys in prop::collection::vec(any::<u16>(), 1..200),
        buffer in prop_oneof![Just(1 << 16), 100usize..600],
        keeps in any::<bool>(),
    ) {
        let limits = Limits {
            receive_buffer: buffer,
            max_chunks: 16.max(buffer / 16),
            partial_delivery_point: buffer / 2,
        };
        transfer(&plans, &turns, &keys, limits, keeps);
    }

    #[test]
    fn no_chunks_whatever_make_it_hold_too_much_or_panic(
        chunks in prop::collection::vec(
            (0u32..150, 0u16..3, 0u32..4, 0u32..6, 0u8..8, 1usize..40),
            1..300,
        ),
    ) {
        let mut r = Receiver::new(Limits { receive_buffer: 300, ..small() });
        for (tsn, stream, mid, fsn, flags, len) in chunks {
            r.inbound.begin_packet(len);
            let arrival = r.accept(chunk(INITIAL + tsn, (stream, mid, fsn), flags, len));
            prop_assert!(r.inbound.buffered_bytes() <= 300 + 40);
            if arrival.is_err() {
                break;
            }
            if len % 5 == 0 {
                r.inbound.pop();
            }
        }
    }
}
