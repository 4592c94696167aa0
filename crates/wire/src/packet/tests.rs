use super::*;
use crate::{DataFlags, Mid, PacketBuilder, Ssn, StreamId, Tsn, chunk_type};

const HEADER: [u8; 12] = [0, 9, 0, 10, 1, 2, 3, 4, 0, 0, 0, 0];

/// A packet with these bytes as its chunks, and a checksum of zero.
fn packet(chunks: &[u8]) -> Packet {
    let bytes: Bytes = HEADER.iter().chain(chunks).copied().collect();
    Packet::parse(bytes, Checksum::Ignore).expect("a valid header")
}

/// The only item, an error, of a packet with these chunk bytes.
fn only_error(chunks: &[u8]) -> DecodeError {
    let packet = packet(chunks);
    let mut chunks = packet.chunks();
    let error = chunks.next().expect("an item").expect_err("malformed");
    assert_eq!(chunks.next(), None, "an error ends the chunks");
    let taken: Vec<_> = packet.clone().into_chunks().collect();
    assert_eq!(taken, [Err(error)]);
    error
}

#[test]
fn a_last_data_chunk_takes_the_bytes_of_the_packet() {
    let header = CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };
    let whole = DataFlags::BEGIN | DataFlags::END;
    for data in [&["alone"][..], &["one", "two"], &["three", "", "padded"]] {
        let mut bytes = Vec::new();
        let mut builder = PacketBuilder::new(&mut bytes, header, 1200);
        for (tsn, data) in (7..).zip(data) {
            let data = data.as_bytes();
            assert!(builder.push_data(Tsn(tsn), StreamId(1), Ssn(2), 3, whole, data));
        }
        builder.finish(false);
        let packet = Packet::parse(Bytes::from(bytes), Checksum::Ignore).expect("a valid header");
        let expected: Vec<_> = packet.chunks().collect();
        assert_eq!(packet.clone().into_chunks().collect::<Vec<_>>(), expected);
        drop(expected);
        let Some(Ok(Chunk::Data(last))) = packet.into_chunks().last() else { panic!("DATA") };
        assert!(last.payload.is_unique(), "no other reference to {:?}", last.payload);
    }
}

#[test]
fn a_packet_needs_a_header_and_ports() {
    let parse = |bytes: &'static [u8]| Packet::parse(bytes.into(), Checksum::Ignore);
    let error = parse(&[0; 11]).expect_err("11 bytes");
    assert_eq!(error.kind, DecodeErrorKind::PacketTooShort { length: 11 });
    let error = parse(&[0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0]).expect_err("source port 0");
    assert_eq!(error.kind, DecodeErrorKind::ZeroPort);
    let error = parse(&[0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]).expect_err("destination port 0");
    assert_eq!(error.kind, DecodeErrorKind::ZeroPort);
    let packet = packet(&[]);
    assert_eq!(packet.header.source_port, 9);
    assert_eq!(packet.header.destination_port, 10);
    assert_eq!(packet.header.verification_tag, 0x0102_0304);
    assert_eq!(packet.chunks().next(), None);
}

#[test]
fn a_wrong_checksum_is_found_before_anything_else() {
    let error = Packet::parse(Bytes::from_static(&[0; 12]), Checksum::Verify).expect_err("zero");
    let DecodeErrorKind::BadChecksum { found: 0, computed } = error.kind else {
        panic!("{error}");
    };
    assert_ne!(computed, 0);
}

#[test]
fn chunk_lengths_are_checked() {
    let error = only_error(&[0, 3, 0, 3]);
    assert_eq!(error.kind, DecodeErrorKind::ChunkLengthTooSmall { ty: 0, length: 3 });
    assert_eq!(error.offset, 12);
    let error = only_error(&[0xc0, 0, 0, 9, 1, 2, 3, 4]);
    let expected = DecodeErrorKind::ChunkPastEnd { ty: 0xc0, length: 9, available: 8 };
    assert_eq!(error.kind, expected);
    assert_eq!(
        only_error(&[11, 0, 0]).kind,
        DecodeErrorKind::ChunkHeaderTruncated { available: 3 }
    );
    let error = only_error(&[7, 0, 0, 7, 0, 0, 0, 0]);
    let expected = DecodeErrorKind::ChunkTooShort { ty: 7, length: 7, minimum: 8 };
    assert_eq!(error.kind, expected);
}

#[test]
fn what_precedes_a_malformed_chunk_is_still_read() {
    let packet = packet(&[11, 0, 0, 4, 8, 0, 0, 4, 3, 0, 0, 4, 11, 0, 0, 4]);
    let mut chunks = packet.chunks();
    assert_eq!(chunks.next(), Some(Ok(Chunk::CookieAck)));
    assert_eq!(chunks.next(), Some(Ok(Chunk::ShutdownAck)));
    let error = chunks.next().expect("an item").expect_err("a SACK without fields");
    let kind = DecodeErrorKind::ChunkTooShort { ty: 3, length: 4, minimum: 16 };
    assert_eq!(error, DecodeError { offset: 20, kind });
    assert_eq!(
        error.to_string(),
        "at byte 20 of the packet: chunk type 3 of length 4, its type needs 16"
    );
    assert_eq!(chunks.next(), None);
    assert_eq!(chunks.next(), None);
}

#[test]
fn the_last_chunk_may_lack_its_padding() {
    for padding in 0..=3 {
        let mut bytes = vec![10, 0, 0, 5, 0xee];
        bytes.extend_from_slice(&[0; 3][..padding]);
        let packet = packet(&bytes);
        let chunks: Vec<_> = packet.chunks().collect();
        assert_eq!(chunks, [Ok(Chunk::CookieEcho(Bytes::from_static(&[0xee])))], "{padding}");
    }
}

#[test]
fn padding_is_skipped_whatever_it_holds() {
    let packet = packet(&[10, 0, 0, 5, 0xee, 1, 2, 3, 11, 0, 0, 4]);
    assert_eq!(packet.chunks().last(), Some(Ok(Chunk::CookieAck)));
}

#[test]
fn chunks_without_a_common_header_follow_the_same_rules() {
    let valid = [10, 0, 0, 5, 0xee, 1, 2, 3, 0, 3, 0, 17, 0, 0, 0, 1, 0, 2, 0, 3, 0, 0, 0, 4, 0xdd];
    for (chunks, count) in [
        (&valid[..], 2),                                          // without its last padding
        (&[], 0),                                                 // nothing
        (&[11, 0, 0], 1),                                         // half a chunk header
        (&[11, 0, 0, 4, 8, 0, 0, 3, 11, 0, 0, 4], 2),             // a length below the header
        (&[11, 0, 0, 4, 0xc0, 0, 0, 9, 1, 2, 3, 4], 2),           // a length beyond the end
        (&[11, 0, 0, 4, 3, 0, 0, 4, 11, 0, 0, 4], 2),             // a SACK without fields
        (&[11, 0, 0, 4, 4, 0, 0, 8, 0, 7, 0, 4, 11, 0, 0, 4], 2), // a HEARTBEAT without information
    ] {
        let shift = |chunk: Result<Chunk, DecodeError>| {
            chunk.map_err(|error| error.kind.at(error.offset - COMMON_HEADER_LEN))
        };
        let expected: Vec<_> = packet(chunks).chunks().map(shift).collect();
        assert_eq!(expected.len(), count, "{chunks:?}");
        let content = Bytes::copy_from_slice(chunks);
        assert_eq!(chunks_of(&content).collect::<Vec<_>>(), expected);
        assert_eq!(into_chunks_of(content).collect::<Vec<_>>(), expected);
    }

    let content = Bytes::copy_from_slice(&valid);
    let payload = content[24..].as_ptr();
    let Some(Ok(Chunk::Data(data))) = into_chunks_of(content).last() else { panic!("DATA") };
    assert_eq!(data.payload.as_ptr(), payload, "no copy");
    assert!(data.payload.is_unique(), "no other reference");
}

#[test]
fn data_without_payload_decodes() {
    let packet = packet(&[0, 7, 0, 16, 0, 0, 0, 1, 0, 2, 0, 3, 0, 0, 0, 4]);
    let Some(Ok(Chunk::Data(data))) = packet.chunks().next() else { panic!("DATA") };
    assert!(data.payload.is_empty());
    assert_eq!((data.tsn, data.stream, data.ssn, data.ppid), (Tsn(1), StreamId(2), Ssn(3), 4));
    assert!(data.flags.unordered() && data.flags.begin() && data.flags.end());
    assert!(!data.flags.immediate());
    let error = only_error(&[0, 7, 0, 15, 0, 0, 0, 1, 0, 2, 0, 3, 0, 0, 0, 4]);
    let expected = DecodeErrorKind::ChunkTooShort { ty: 0, length: 15, minimum: 16 };
    assert_eq!(error.kind, expected);
}

#[test]
fn a_payload_is_a_slice_of_the_datagram() {
    let mut bytes = Vec::new();
    let header = packet(&[]).header;
    let mut builder = PacketBuilder::new(&mut bytes, header, 100);
    assert!(builder.push_data(Tsn(1), StreamId(0), Ssn(0), 0, DataFlags::IMMEDIATE, b"payload"));
    builder.finish(true);
    let bytes = Bytes::from(bytes);
    let packet = Packet::parse(bytes.clone(), Checksum::Verify).expect("valid");
    let Some(Ok(Chunk::Data(data))) = packet.chunks().next() else { panic!("DATA") };
    assert_eq!(data.payload, "payload");
    assert_eq!(data.payload.as_ptr(), bytes[28..].as_ptr(), "no copy");
    assert!(data.flags.immediate());
    assert_eq!(packet.bytes(), &bytes);
}

#[test]
fn sack_counts_must_match_its_length() {
    let counts = |gaps: u8, dups: u8, items: usize| {
        let mut sack =
            vec![3, 0, 0, 16 + 4 * items as u8, 0, 0, 0, 9, 0, 0, 1, 0, 0, gaps, 0, dups];
        sack.extend(std::iter::repeat_n([0, 2, 0, 3], items).flatten());
        sack
    };
    let valid = packet(&counts(1, 2, 3));
    let Some(Ok(Chunk::Sack(sack))) = valid.chunks().next() else { panic!("SACK") };
    assert_eq!((sack.gap_ack_blocks().len(), sack.duplicate_tsns().len()), (1, 2));
    assert_eq!(sack.duplicate_tsns().collect::<Vec<_>>(), [Tsn(0x0002_0003); 2]);
    for (gaps, dups, items) in [(1, 2, 2), (1, 2, 4), (0, 0, 1), (255, 255, 1)] {
        let kind = only_error(&counts(gaps, dups, items)).kind;
        assert!(matches!(kind, DecodeErrorKind::SackCounts { .. }), "{gaps} {dups} {items}");
    }
}

#[test]
fn gap_ack_blocks_that_do_not_ascend_are_told_apart() {
    let ascend = |gaps: &[(u16, u16)]| {
        let mut bytes = Vec::new();
        let mut builder = PacketBuilder::new(&mut bytes, packet(&[]).header, 100);
        assert!(builder.push_sack(Tsn(0), 0, 0, gaps.iter().copied(), std::iter::empty()));
        builder.finish(false);
        let packet = Packet::parse(bytes.into(), Checksum::Ignore).expect("valid");
        let Some(Ok(Chunk::Sack(sack))) = packet.chunks().next() else { panic!("SACK") };
        sack.gap_ack_blocks_ascend()
    };
    assert!(ascend(&[]));
    assert!(ascend(&[(2, 2), (4, 9), (11, u16::MAX)]));
    assert!(!ascend(&[(0, 2)]), "offset 0 is the cumulative TSN ack itself");
    assert!(!ascend(&[(3, 2)]), "ends before it starts");
    assert!(!ascend(&[(5, 6), (2, 3)]), "out of order");
    assert!(!ascend(&[(2, 4), (4, 5)]), "overlap");
}

#[test]
fn heartbeats_carry_heartbeat_information() {
    let packet = packet(&[4, 0, 0, 9, 0, 1, 0, 5, 0xab, 0, 0, 0]);
    let Some(Ok(Chunk::Heartbeat(info))) = packet.chunks().next() else { panic!("HEARTBEAT") };
    assert_eq!(info.0, [0xab][..]);
    let error = only_error(&[5, 0, 0, 8, 0, 7, 0, 4]);
    assert_eq!(error, DecodeErrorKind::NoHeartbeatInfo { ty: 7 }.at(16));
    let error = only_error(&[4, 0, 0, 4]);
    assert_eq!(error.kind, DecodeErrorKind::TlvHeaderTruncated { available: 0 });
    let error = only_error(&[4, 0, 0, 8, 0, 1, 0, 5]);
    let expected = DecodeErrorKind::TlvLength { ty: 1, length: 5, available: 4 };
    assert_eq!(error.kind, expected);
}

#[test]
fn types_of_no_chunk_are_unknown() {
    for ty in [17, 62, 63] {
        let packet = packet(&[ty, 3, 0, 4]);
        let Some(Ok(Chunk::Unknown(chunk))) = packet.chunks().next() else { panic!("unknown") };
        assert_eq!((chunk.ty(), chunk.flags()), (ty, 3));
        assert_eq!(chunk.raw().len(), 4);
        assert!(chunk.action().stop && !chunk.action().report);
    }
}

#[test]
fn every_known_type_decodes_to_itself() {
    let known = (0..=11).filter(|ty| *ty != 9).chain([9, 12, 13, 14]);
    for ty in known {
        let mut bytes = vec![ty, 0, 0, 20, 0, 1, 0, 16];
        bytes.resize(20, 0);
        if ty == chunk_type::SACK {
            bytes[4..8].fill(0);
            bytes[13] = 1;
        }
        let packet = packet(&bytes);
        let chunk = packet.chunks().next().expect("a chunk").expect("valid");
        assert_eq!(chunk.ty(), ty);
        assert_ne!(chunk.name(), "unknown");
    }
}

#[test]
fn a_private_chunk_of_another_length_is_unknown_and_skipped() {
    let timestamp = packet(&[chunk_type::TIMESTAMP, 1, 0, 12, 0, 0, 0, 1, 0, 0, 0, 2]);
    let expected = crate::Timestamp { timestamp: 1, echo: Some(2) };
    assert_eq!(timestamp.chunks().next(), Some(Ok(Chunk::Timestamp(expected))));
    let other = packet(&[chunk_type::TIMESTAMP, 1, 0, 8, 0, 0, 0, 1]);
    let Some(Ok(Chunk::Unknown(chunk))) = other.chunks().next() else { panic!("unknown") };
    assert_eq!(chunk.action(), crate::UnknownAction { stop: false, report: false });
}

#[test]
fn a_sack_path_chunk_of_another_length_is_unknown_and_skipped() {
    for failed in [false, true] {
        let path = packet(&[chunk_type::SACK_PATH, failed.into(), 0, 8, 0, 0, 1, 2]);
        let expected = crate::SackPath { serial: 258, failed };
        assert_eq!(path.chunks().next(), Some(Ok(Chunk::SackPath(expected))));
    }
    let other = packet(&[chunk_type::SACK_PATH, 0, 0, 4]);
    let Some(Ok(Chunk::Unknown(chunk))) = other.chunks().next() else { panic!("unknown") };
    assert_eq!(chunk.action(), crate::UnknownAction { stop: false, report: false });
}

#[test]
fn candidates_end_where_their_addresses_do() {
    #[rustfmt::skip]
    let bytes = [
        chunk_type::CANDIDATES, 3, 0, 52, 0, 0, 0, 7, 0, 0, 0, 3,
        0x14, 2, 0x26, 0xab, 203, 0, 113, 5, // reflexive, IPv4
        0x36, 0, 0, 1, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9, // relayed, IPv6
        0x94, 0, 0, 1, 203, 0, 113, 6, 0x04, 1, 0, 2, // of a kind that is not known; a host
    ];
    let mut whole = bytes.to_vec();
    whole.extend_from_slice(&[10, 0, 0, 1]);
    whole[3] = whole.len() as u8;
    let named = |kind, base, address: &str| crate::NamedAddress {
        kind,
        base,
        address: address.parse().expect("an address"),
    };
    let list = vec![
        named(crate::CandidateKind::Reflexive, 2, "203.0.113.5:9899"),
        named(crate::CandidateKind::Relayed, 0, "[2001:db8::9]:1"),
        named(crate::CandidateKind::Host, 1, "10.0.0.1:2"),
    ];
    let expected = crate::Candidates { asks: true, direct_only: true, serial: 7, seen: 3, list };
    assert_eq!(packet(&whole).chunks().next(), Some(Ok(Chunk::Candidates(expected))));
    let ends = [12, 20, 40, 48, 56];
    for length in 4..whole.len() {
        let mut cut = whole[..length].to_vec();
        cut[3] = length as u8;
        let found = packet(&cut).chunks().next();
        let is_list = matches!(found, Some(Ok(Chunk::Candidates(_))));
        assert_eq!(is_list, ends.contains(&length), "{length} bytes: {found:?}");
    }
    whole[12] = 0x17;
    let family = packet(&whole).chunks().next();
    assert!(matches!(family, Some(Ok(Chunk::Unknown(_)))), "a family that is none: {family:?}");
}

#[test]
fn an_nr_sack_has_both_kinds_of_blocks_and_a_sack_only_one() {
    #[rustfmt::skip]
    let bytes = [
        chunk_type::NR_SACK, 0, 0, 32, 0, 0, 0, 9, 0, 1, 0, 0,
        0, 1, 0, 1, 0, 1, 0, 0, // one block, one non-renegable one, one duplicate, reserved
        0, 6, 0, 7, 0, 2, 0, 4, 0, 0, 0, 8,
    ];
    let packet_of_it = packet(&bytes);
    let Some(Ok(chunk @ Chunk::NrSack(sack))) = &packet_of_it.chunks().next() else {
        panic!("an NR-SACK")
    };
    let pairs =
        |blocks: crate::GapAckBlocks<'_>| blocks.map(|b| (b.start, b.end)).collect::<Vec<_>>();
    assert_eq!((sack.cum_tsn_ack, sack.a_rwnd), (crate::Tsn(9), 65_536));
    assert_eq!(pairs(sack.gap_ack_blocks()), [(6, 7)]);
    assert_eq!(pairs(sack.nr_gap_ack_blocks()), [(2, 4)]);
    assert_eq!(sack.duplicate_tsns().collect::<Vec<_>>(), [crate::Tsn(8)]);
    assert_eq!((chunk.ty(), chunk.name()), (16, "NR-SACK"));

    let mut short = bytes;
    short[13] = 2; // claims one block more
    let error = packet(&short).chunks().next().expect("a chunk").expect_err("too short");
    assert!(error.to_string().contains("2 gap ack blocks, 1 non-renegable"), "{error}");
}

#[test]
fn an_nr_sack_is_cut_to_fit_with_its_non_renegable_blocks_first() {
    let gaps = [(8, 8), (10, 10)];
    let (nr, dups) = ([(2, 2), (4, 4)], [crate::Tsn(1)]);
    let fitting = |max: usize| {
        let mut out = Vec::new();
        let header =
            crate::CommonHeader { source_port: 1, destination_port: 1, verification_tag: 1 };
        let mut builder = crate::PacketBuilder::new(&mut out, header, max);
        let pushed = builder.push_nr_sack(crate::Tsn(0), 0, 0, [&gaps, &nr], dups.iter().copied());
        builder.finish(true);
        let packet = Packet::parse(out.into(), Checksum::Verify).expect("valid");
        match packet.chunks().next() {
            Some(Ok(Chunk::NrSack(s))) => Some([
                s.nr_gap_ack_blocks().len(),
                s.gap_ack_blocks().len(),
                s.duplicate_tsns().len(),
            ]),
            _ => {
                assert!(!pushed);
                None
            }
        }
    };
    let fixed = 12 + 4 + 16;
    assert_eq!(fitting(fixed - 4), None);
    assert_eq!(fitting(fixed), Some([0, 0, 0]));
    assert_eq!(fitting(fixed + 4), Some([1, 0, 0]));
    assert_eq!(fitting(fixed + 12), Some([2, 1, 0]));
    assert_eq!(fitting(fixed + 100), Some([2, 2, 1]));
}

#[test]
fn i_data_is_laid_out_as_rfc_8260_draws_it() {
    const BEGIN: &[u8] =
        &[64, 2, 0, 22, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, b'h', b'i', 0, 0];
    const END: &[u8] =
        &[64, 1, 0, 21, 0, 0, 0, 2, 0, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, b'!', 0, 0, 0];
    let content = Bytes::from([BEGIN, END].concat());
    let payload = content[44..].as_ptr();
    let mut out = Vec::new();
    let mut builder = PacketBuilder::new(&mut out, packet(&[]).header, 100);
    for (chunk, (tsn, ppid, fsn)) in chunks_of(&content).zip([(1, Some(4), 0), (2, None, 1)]) {
        let Ok(Chunk::IData(data)) = &chunk else { panic!("I-DATA: {chunk:?}") };
        assert_eq!((data.tsn, data.stream, data.mid), (Tsn(tsn), StreamId(2), Mid(3)));
        assert_eq!((data.ppid(), data.fsn()), (ppid, fsn), "RFC 8260 §2.1: the B bit says which");
        assert!(builder.push(&Chunk::IData(data.clone())));
    }
    builder.finish(false);
    assert_eq!(&out[COMMON_HEADER_LEN..], &content[..]);
    let Some(Ok(Chunk::IData(data))) = into_chunks_of(content).last() else { panic!("I-DATA") };
    assert_eq!(data.payload.as_ptr(), payload, "no copy");
    assert!(data.payload.is_unique(), "no other reference");

    let mut short = BEGIN[..20].to_vec();
    short[3] = 19;
    let expected = DecodeErrorKind::ChunkTooShort { ty: 64, length: 19, minimum: 20 };
    assert_eq!(only_error(&short).kind, expected);
}
