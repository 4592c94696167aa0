//! The receiver's SACKs and window (RFC 9260 §6.2, §6.7; CMT paper, §III-C for DAC).

use manypath_proto::testing::*;
use manypath_wire::{Chunk, CommonHeader, ErrorCause};

fn server() -> Script {
    Setup::server().established()
}

#[test]
fn the_first_data_is_acknowledged_at_once_then_every_second_packet() {
    let mut t = server();
    t.peer(data(1));
    t.expect("SACK 1"); // §5.1
    t.peer(data(2));
    t.expect_nothing();
    t.peer(data(3));
    t.expect("SACK 3"); // §6.2
    t.peer([data(4), data(5), data(6)]);
    t.expect_nothing(); // packets count, not chunks
    t.peer(data(7));
    t.expect("SACK 7");
}

#[test]
fn a_lone_packet_is_acknowledged_after_200_ms() {
    let mut t = server();
    t.peer(data(1));
    t.expect("SACK 1");
    t.run_ms(50);
    let start = t.now();
    t.peer(data(2));
    t.run_ms(199);
    t.expect_nothing();
    t.run_ms(2);
    t.expect_after_ms(start, 200, "SACK 2"); // §6.2
}

#[test]
fn gaps_are_reported_at_once_until_they_are_filled() {
    let mut t = server();
    t.peer(data(1));
    t.expect("SACK 1");
    t.peer(data(3));
    t.expect("SACK 1 gaps 3"); // §6.7
    t.peer([data(4), data(6), data(7), data(8)]);
    t.expect("SACK 1 gaps 3-4 6-8");
    t.peer(data(5));
    t.expect("SACK 1 gaps 3-8");
    t.peer(data(2));
    t.expect("SACK 8"); // the packet that fills the gap
    t.peer(data(9));
    t.expect_nothing();
}

#[test]
fn duplicates_are_reported_at_once_and_once() {
    let mut t = server();
    t.peer(data(1));
    t.expect("SACK 1");
    t.peer(data(1));
    t.expect("SACK 1 dups 1"); // §6.2
    t.peer([data(1), data(3), data(3)]);
    t.expect("SACK 1 gaps 3 dups 1 3");
    t.peer(data(2));
    t.expect("SACK 3");
}

/// A sender that sends chunks on two paths would take those for lost that no SACK reports.
#[test]
fn all_duplicates_of_a_packet_are_reported_if_need_be_in_several_sacks() {
    let mut t = server();
    let sack = |reported: std::ops::RangeInclusive<u32>| {
        let tsns: Vec<_> = reported.map(|tsn| tsn.to_string()).collect();
        format!("SACK 500 dups {}", tsns.join(" "))
    };
    t.peer((1..=500).map(data).collect::<Vec<_>>());
    t.expect("SACK 500");
    t.peer((1..=70).map(data).collect::<Vec<_>>());
    t.expect(&sack(1..=70));
    t.peer((1..=500).map(data).collect::<Vec<_>>());
    t.expect(&sack(1..=361)); // an IP packet of 1500 bytes, with UDP
    t.expect(&sack(362..=500));
    t.expect_nothing();
}

#[test]
fn one_packet_draws_one_sack() {
    let mut t = server();
    t.peer([data(1), data(3), data(3), data(7), data(2)]);
    t.expect("SACK 3 gaps 7 dups 3");
    t.expect_nothing(); // §6.2
}

#[test]
fn the_i_bit_asks_for_a_sack_now() {
    let mut t = server();
    t.peer(data(1));
    t.expect("SACK 1");
    t.peer(data(2).flags("BEI"));
    t.expect("SACK 2"); // §6.2
}

#[test]
fn with_dac_reordering_does_not_hurry_sacks_which_count_packets() {
    let mut t = Setup::server().paths(2).preset("cmt").established();
    t.peer(data(1));
    t.expect("P1 SACK 1");
    t.peer(data(3));
    t.expect("P1 SACK 1 gaps 3"); // one path so far: missing data is lost, not reordered
    t.peer_on(2, data(2));
    t.peer(data(5));
    t.expect("P1 SACK 3 gaps 5 flags 80"); // the first flag bit: two packets
    t.peer_on(2, data(6));
    t.expect_nothing();
    t.run_ms(200);
    t.expect("P2 SACK 3 gaps 5-6"); // one packet
    t.peer(data(6));
    t.expect("P1 SACK 3 gaps 5-6 dups 6");
}

#[test]
fn a_sack_returns_on_the_path_of_the_last_data() {
    let mut t = Setup::server().paths(2).established();
    t.peer_on(1, data(1));
    t.expect("P1 SACK 1");
    t.peer_on(1, data(2));
    t.peer_on(2, data(3));
    t.expect("P2 SACK 3"); // §6.4, §6.7
}

#[test]
fn no_sack_goes_to_an_address_that_is_not_verified() {
    let mut t = server();
    t.peer(data(1));
    t.expect("SACK 1");
    let other_port = (t.pairs[0].0, ([10, 0, 0, 2], 4444).into());
    t.peer_from(other_port, data(2));
    t.peer_from(other_port, data(3));
    let (mut remotes, mut info) = (Vec::new(), None);
    while let Some(words) = t.next_sent() {
        if words == "HEARTBEAT" {
            info = Some(t.last_heartbeat());
        }
        remotes.push((words, t.last().remote));
    }
    let old = t.pairs[0].1;
    // §5.4
    assert_eq!(remotes, [("HEARTBEAT".to_owned(), other_port.1), ("SACK 3".to_owned(), old)]);
    t.peer_from(other_port, heartbeat_ack(&info.expect("a probe")));
    t.expect("SACK 3"); // the first may have gone to an address that a NAT has forgotten
    assert_eq!(t.last().remote, other_port.1);
}

#[test]
fn a_sack_travels_with_data() {
    let mut t = server();
    t.peer(data(1));
    t.expect("SACK 1");
    t.peer(data(2));
    t.send(10);
    t.expect("SACK 2, DATA 1"); // §6.1
    t.run_ms(300);
    t.expect_nothing();
}

#[test]
fn as_many_gap_ack_blocks_are_reported_as_fit_the_packet_from_the_lowest_up() {
    let mut t = server();
    t.peer(data(1));
    t.all_sent();
    for tsn in (3..2003).step_by(2) {
        t.peer(data(tsn).stream(0, (tsn - 1) as u16));
        t.all_sent();
    }
    t.peer(data(3));
    let words = t.next_sent().expect("a SACK");
    let blocks = (1472 - 12 - 16) / 4;
    assert!(words.starts_with("SACK 1 gaps 3 5 7 "), "{words}");
    assert_eq!(words.split(' ').count() - 3, blocks, "§6.2, §6.7");
    assert!(t.last().packet.bytes().len() <= 1472);
}

#[test]
fn the_window_shrinks_by_what_is_held_and_opens_by_what_is_read() {
    let mut t = Setup::server().set("receive_buffer", "64 KiB").established();
    t.peer(data(1).len(1000));
    t.expect("SACK 1");
    assert_eq!(t.last_rwnd(), 65_536 - 1000, "§6.2");
    t.peer(data(3).len(500));
    t.expect("SACK 1 gaps 3");
    assert_eq!(t.last_rwnd(), 65_536 - 1500, "held out of order");
    assert_eq!(t.recv().map(|m| m.len()), Some(1000));
    t.peer(data(4));
    t.expect("SACK 1 gaps 3-4");
    assert_eq!(t.last_rwnd(), 65_536 - 501);
}

/// Fills a receive buffer of 10 kB with messages of 1000 bytes; answers the last TSN.
fn fill(t: &mut Script) -> u32 {
    for tsn in 1..=10 {
        t.peer(data(tsn).len(1000));
        t.all_sent();
    }
    t.run_ms(300);
    t.all_sent();
    10
}

#[test]
fn a_window_smaller_than_a_packet_is_advertised_as_zero() {
    let mut t = Setup::server().set("receive_buffer", "10000").established();
    for tsn in 1..=9 {
        t.peer(data(tsn).len(1000));
        t.all_sent();
    }
    t.peer(data(9));
    t.expect("SACK 9 dups 9");
    assert_eq!(t.last_rwnd(), 0, "§6.2: silly window avoidance");
}

#[test]
fn data_beyond_a_full_buffer_is_dropped_and_answered_at_once() {
    let mut t = Setup::server().set("receive_buffer", "10000").established();
    let last = fill(&mut t);
    t.peer(data(last + 1).len(1000));
    t.expect("SACK 10");
    assert_eq!(t.last_rwnd(), 0, "§6.2");
}

#[test]
fn a_lower_tsn_displaces_the_highest_when_the_buffer_is_full() {
    let mut t = Setup::server().set("receive_buffer", "10000").established();
    for tsn in 2..=11 {
        t.peer(data(tsn).len(1000));
        t.all_sent();
    }
    t.peer(data(1).len(1000));
    t.expect("SACK 10"); // §6.2: TSN 11 is given up and no longer reported
}

#[test]
fn a_window_that_opened_is_announced_once_it_is_worth_it() {
    let mut t = Setup::server().set("receive_buffer", "10000").established();
    fill(&mut t);
    t.recv();
    t.expect_nothing(); // too small a step
    t.recv();
    t.recv();
    t.expect("SACK 10"); // §6.2: window update
    assert_eq!(t.last_rwnd(), 3000);
    while t.recv().is_some() {}
    let updates = t.all_sent().len();
    assert!(updates <= 2, "{updates} more updates");
}

#[test]
fn data_on_a_stream_that_does_not_exist_is_acknowledged_and_reported() {
    let mut t = Setup::server().set("inbound_streams", "4").established();
    t.peer(data(1).stream(4, 0));
    let mut sent = t.all_sent();
    sent.sort();
    assert_eq!(sent, ["ERROR 1", "SACK 1"], "§6.5");
    assert_eq!(t.recv(), None);
    t.peer(data(2).stream(3, 0));
    assert!(t.recv().is_some());
}

#[test]
fn data_without_user_data_aborts() {
    let mut t = server();
    t.peer(data(1).len(0));
    t.expect("ABORT 9"); // §6.2
    assert_eq!(t.last().packet.header.verification_tag, PEER_TAG);
    t.expect_nothing();
}

#[test]
fn fragments_that_contradict_each_other_abort_and_leave_no_timer() {
    let mut t = server();
    t.peer(data(1));
    t.expect("SACK 1");
    t.peer([data(2), data(3).flags("B").stream(0, 2), data(4).flags("B").stream(0, 3)]);
    t.expect("ABORT 13"); // §6.9
    assert_eq!(t.endpoint.poll_timeout(), None);
}

#[test]
fn messages_are_put_together_from_fragments_in_any_order() {
    let mut t = server();
    t.peer(data(3).flags("E").stream(0, 0).payload("c"));
    t.peer(data(1).flags("B").stream(0, 0).payload("a"));
    assert_eq!(t.recv(), None);
    t.peer(data(2).flags("").stream(0, 0).payload("b"));
    assert_eq!(t.recv().as_deref(), Some(&b"abc"[..]), "§6.9");
}

#[test]
fn a_stream_keeps_its_order_and_holds_up_no_other() {
    let mut t = server();
    t.peer(data(2).stream(0, 1).payload("second"));
    t.peer(data(3).stream(5, 0).payload("other stream"));
    t.peer(data(4).flags("BEU").payload("unordered"));
    assert_eq!(t.recv().as_deref(), Some(&b"other stream"[..]), "§6.6");
    assert_eq!(t.recv().as_deref(), Some(&b"unordered"[..]), "§6.6");
    assert_eq!(t.recv(), None);
    t.peer(data(1).stream(0, 0).payload("first"));
    assert_eq!(t.recv().as_deref(), Some(&b"first"[..]));
    assert_eq!(t.recv().as_deref(), Some(&b"second"[..]));
}

#[test]
fn a_message_larger_than_the_buffer_comes_in_parts() {
    let mut t = Setup::server().set("receive_buffer", "10000").established();
    let mut got = 0;
    for tsn in 1..=30 {
        let flags = match tsn {
            1 => "B",
            30 => "E",
            _ => "",
        };
        t.peer(data(tsn).flags(flags).stream(0, 0).len(1000));
        got += std::iter::from_fn(|| t.recv()).map(|part| part.len()).sum::<usize>();
    }
    assert_eq!(got, 30_000, "§6.9: partial delivery");
}

#[test]
fn a_partial_chunk_is_dropped_and_what_came_before_it_counts() {
    let mut t = server();
    let header =
        CommonHeader { source_port: PEER_PORT, destination_port: PORT, verification_tag: t.tag() };
    let mut whole = t.packet(header, [data(1), data(2).len(100)]);
    whole.truncate(whole.len() - 40);
    whole[8..12].fill(0);
    let crc = crc32c(&whole);
    whole[8..12].copy_from_slice(&crc.to_le_bytes());
    t.peer_bytes(t.pairs[0], whole);
    t.expect("SACK 1"); // §6.10
}

/// CRC32c bit by bit, for a packet that no builder would write.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, _| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), step))
}

#[test]
fn unknown_chunks_are_handled_by_their_upper_bits() {
    // §3.2: type, whether it is reported, whether the rest of the packet counts.
    for (ty, reported, goes_on) in
        [(0x3f, false, false), (0x7e, true, false), (0xbe, false, true), (0xfe, true, true)]
    {
        let mut t = server();
        t.peer([unknown(ty), data(1)]);
        let mut expected = Vec::new();
        expected.extend(reported.then_some("ERROR 6"));
        expected.extend(goes_on.then_some("SACK 1"));
        assert_eq!(t.all_sent(), expected, "type {ty:#x}");
    }
}

#[test]
fn a_dtls_chunk_is_reported_as_unknown_and_ends_its_packet() {
    let mut t = server();
    let value = [&[0, 0x2f, 0, 1], &[7; 40][..]].concat();
    let expected = [&[0x41, 1, 0, 48], &value[..]].concat();
    t.peer([PeerChunk::Raw(0x41, 1, value.clone()), data(1)]);
    t.expect("ERROR 6");
    let Some(Ok(Chunk::Error(report))) = t.last().packet.chunks().next() else { panic!("ERROR") };
    let causes: Vec<_> = report.causes.iter().collect();
    assert_eq!(causes, [Ok(ErrorCause::UnrecognizedChunkType(expected.into()))], "whole");
    t.peer(vec![PeerChunk::Raw(0x41, 0, value); 2]);
    t.expect("ERROR 6");
    t.expect_nothing();
    assert!(t.assoc().is_established());
    // One that is too short for a record is as any chunk that is too short.
    t.peer([unknown(0x41), data(1)]);
    t.expect_nothing();
    assert!(t.assoc().is_established());
}

#[test]
fn an_error_is_reported_and_harms_nothing() {
    let mut t = server();
    t.peer(error(ErrorCause::UnrecognizedChunkType(bytes::Bytes::from_static(&[0xc1, 0, 0, 4]))));
    t.expect_nothing();
    assert_eq!(t.events(), [manypath_proto::Event::PeerError { cause: 6 }]);
    assert!(t.assoc().is_established(), "§3.3.10");
}

#[test]
fn a_flood_of_control_chunks_is_answered_within_a_bound() {
    let mut t = server();
    let header =
        CommonHeader { source_port: PEER_PORT, destination_port: PORT, verification_tag: t.tag() };
    let payload = bytes::Bytes::from(t.packet(header, vec![heartbeat(b"0123456789"); 50]));
    let (local, remote) = t.pairs[0];
    for _ in 0..1000 {
        let payload = payload.clone();
        let datagram = manypath_proto::Datagram::new(local, remote, payload);
        t.endpoint.handle_datagram(t.now(), datagram);
    }
    t.settle();
    let answers = t.all_sent().len();
    assert!((1..=100).contains(&answers), "{answers} answers wait at most");
}

#[test]
fn one_heartbeat_and_one_unknown_chunk_of_a_packet_are_answered() {
    let mut t = server();
    t.peer(vec![heartbeat(b"again"); 20]);
    t.expect("HEARTBEAT ACK");
    t.expect_nothing();
    t.peer(vec![unknown(0xfe); 20]);
    t.expect("ERROR 6");
    t.expect_nothing();
}
