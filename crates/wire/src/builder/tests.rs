use bytes::Bytes;

use super::*;
use crate::{Checksum, Chunk, DataFlags, ErrorCause, Init, Packet, Params, Ssn, StreamId, Tsn};

const HEADER: CommonHeader =
    CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };

fn push_data(packet: &mut PacketBuilder<'_>, payload: &[u8]) -> bool {
    packet.push_data(Tsn(1), StreamId(0), Ssn(0), 0, DataFlags::END, payload)
}

#[test]
fn a_packet_is_laid_out_as_the_rfc_draws_it() {
    let mut out = Vec::new();
    let mut packet = PacketBuilder::new(&mut out, HEADER, 100);
    let flags = DataFlags::BEGIN | DataFlags::UNORDERED;
    assert!(packet.push_data(Tsn(0x0102_0304), StreamId(5), Ssn(6), 7, flags, &[0xaa]));
    assert_eq!(packet.finish(false), 32);
    #[rustfmt::skip]
    let expected = [
        0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0,
        0, 6, 0, 17, 1, 2, 3, 4, 0, 5, 0, 6, 0, 0, 0, 7, 0xaa, 0, 0, 0,
    ];
    assert_eq!(out, expected);
}

#[test]
fn the_checksum_is_sent_least_significant_byte_first() {
    let mut out = Vec::new();
    let mut packet = PacketBuilder::new(&mut out, HEADER, 100);
    assert!(packet.push_cookie_ack());
    packet.finish(true);
    let mut zeroed = out.clone();
    zeroed[8..12].fill(0);
    assert_eq!(out[8..12], crc_fast::crc32_iscsi(&zeroed).to_le_bytes());
    assert_ne!(out[8..12], [0; 4]);
    assert!(Packet::parse(out.into(), Checksum::Verify).is_ok());
}

#[test]
fn padding_counts_against_the_limit() {
    let mut out = Vec::new();
    let mut packet = PacketBuilder::new(&mut out, HEADER, 12 + 16 + 7);
    assert_eq!(packet.remaining(), 20);
    assert!(!push_data(&mut packet, b"12345"), "needs 24 bytes with its padding");
    assert!(packet.is_empty());
    assert!(push_data(&mut packet, b"123"));
    assert!(!packet.is_empty());
    assert_eq!((packet.len(), packet.remaining()), (32, 0));
    assert!(!packet.push_cookie_ack());
}

#[test]
fn a_limit_below_the_header_holds_nothing() {
    let mut out = Vec::new();
    let mut packet = PacketBuilder::new(&mut out, HEADER, 3);
    assert_eq!(packet.remaining(), 0);
    assert!(!packet.push_cookie_ack());
    assert!(!packet.push_sack(Tsn(0), 0, 0, std::iter::empty(), std::iter::empty()));
    assert!(!packet.push_abort(false, &[]));
}

#[test]
fn packets_follow_one_another_in_one_buffer() {
    let mut out = Vec::with_capacity(200);
    let begin = out.as_ptr();
    let mut lengths = Vec::new();
    for payload in [&b"first"[..], b"the second"] {
        let mut packet = PacketBuilder::new(&mut out, HEADER, 100);
        assert!(push_data(&mut packet, payload));
        lengths.push(packet.finish(true));
    }
    let mut discarded = PacketBuilder::new(&mut out, HEADER, 100);
    assert!(discarded.push_cookie_ack());
    discarded.discard();
    assert_eq!(out.as_ptr(), begin, "no allocation but the caller's");
    assert_eq!(lengths, [36, 40]);
    assert_eq!(out.len(), 76);
    let mut second = Bytes::from(out);
    let first = second.split_to(36);
    for packet in [first, second] {
        let packet = Packet::parse(packet, Checksum::Verify).expect("valid");
        assert!(matches!(packet.chunks().next(), Some(Ok(Chunk::Data(_)))));
    }
}

#[test]
fn a_sack_holds_the_gaps_that_fit_and_then_the_duplicates() {
    let built = |max_len| {
        let mut out = Vec::new();
        let mut packet = PacketBuilder::new(&mut out, HEADER, max_len);
        let gaps = (1..=4u16).map(|i| (3 * i, 3 * i + 1));
        if !packet.push_sack(Tsn(9), 1500, 2, gaps, [Tsn(4), Tsn(5)].into_iter()) {
            assert!(packet.is_empty());
            return None;
        }
        assert!(packet.finish(false) <= max_len);
        let packet = Packet::parse(out.into(), Checksum::Ignore).expect("valid");
        let Some(Ok(Chunk::Sack(sack))) = packet.chunks().next() else { panic!("SACK") };
        assert_eq!((sack.cum_tsn_ack, sack.a_rwnd, sack.flags), (Tsn(9), 1500, 2));
        Some((sack.gap_ack_blocks().len(), sack.duplicate_tsns().len()))
    };
    assert_eq!(built(27), None, "the fixed part alone has 16 bytes");
    assert_eq!(built(28), Some((0, 0)));
    assert_eq!(built(39), Some((2, 0)));
    assert_eq!(built(48), Some((4, 1)));
    assert_eq!(built(1000), Some((4, 2)));
}

#[test]
fn a_sack_never_outgrows_its_length_field() {
    let mut out = Vec::new();
    let mut packet = PacketBuilder::new(&mut out, HEADER, 1 << 20);
    let gaps = (0..u16::MAX).map(|i| (i, i));
    assert!(packet.push_sack(Tsn(0), 0, 0, gaps, std::iter::repeat(Tsn(1))));
    assert_eq!(packet.finish(false), 12 + 65532);
    let packet = Packet::parse(out.into(), Checksum::Ignore).expect("valid");
    let Some(Ok(Chunk::Sack(sack))) = packet.chunks().next() else { panic!("SACK") };
    assert_eq!((sack.gap_ack_blocks().len(), sack.duplicate_tsns().len()), (16379, 0));
}

#[test]
fn a_chunk_too_long_for_its_length_field_is_refused() {
    let mut out = Vec::new();
    let mut packet = PacketBuilder::new(&mut out, HEADER, 1 << 20);
    let long = vec![0; 65536];
    assert!(!push_data(&mut packet, &long[..65520]));
    assert!(!packet.push_cookie_echo(&long[..65532]));
    assert!(!packet.push_heartbeat(&long[..65528]));
    assert!(!packet.push_heartbeat(&long));
    let reason = ErrorCause::UserInitiatedAbort(long.clone().into());
    assert!(!packet.push_abort(false, std::slice::from_ref(&reason)));
    assert!(!packet.push_error(&[reason]));
    let params: Params = [crate::Parameter::StateCookie(long.clone().into())].into_iter().collect();
    let init = Init {
        initiate_tag: 1,
        a_rwnd: 1500,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(0),
        params,
    };
    assert!(!packet.push_init(&init));
    assert!(packet.is_empty(), "a refused chunk leaves nothing behind");
    assert!(push_data(&mut packet, &long[..65519]));
    assert_eq!(packet.len(), 12 + 65536, "the longest chunk, padded");
}

#[test]
fn causes_are_padded_between_but_not_after() {
    let mut out = Vec::new();
    let mut packet = PacketBuilder::new(&mut out, HEADER, 100);
    let causes = [
        ErrorCause::UserInitiatedAbort(Bytes::from_static(b"why")),
        ErrorCause::ProtocolViolation(Bytes::from_static(b"x")),
    ];
    assert!(packet.push_abort(true, &causes));
    packet.finish(false);
    let expected = [6, 1, 0, 17, 0, 12, 0, 7, b'w', b'h', b'y', 0, 0, 13, 0, 5, b'x', 0, 0, 0];
    assert_eq!(out[12..], expected);
}
