use proptest::prelude::*;

use super::*;
use crate::{
    COMMON_HEADER_LEN, Checksum, Chunk, CommonHeader, DataFlags, DecodeErrorKind, Packet, Ssn,
    StreamId, Tsn, chunks_of, fill_checksum,
};

const HEADER: CommonHeader =
    CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };

/// A packet with these bytes as its chunks.
fn packet(chunks: &[u8]) -> Packet {
    let bytes = [&HEADER.encode(), chunks].concat();
    Packet::parse(bytes.into(), Checksum::Ignore).expect("a valid header")
}

fn first(packet: &Packet) -> Dtls {
    let Some(Ok(Chunk::Dtls(chunk))) = packet.chunks().next() else { panic!("DTLS") };
    chunk
}

/// A record with this many bytes of content.
fn record(content: usize) -> Vec<u8> {
    (0..DTLS_RECORD_MIN_LEN + content).map(|i| 0x2f ^ i as u8).collect()
}

#[test]
fn the_numbers_are_those_of_the_draft() {
    assert_eq!(DTLS_RECORD_OFFSET, 4 + 1);
    assert_eq!(DTLS_CONTENT_OFFSET, 4 + 1 + 3);
    assert_eq!(DTLS_RECORD_MIN_LEN, 3 + 1 + 16);
    assert_eq!((DTLS_OVERHEAD, DTLS_PADDED_OVERHEAD), (4 + 1 + 3 + 1 + 16, 28));
}

#[test]
fn a_chunk_is_laid_out_as_the_draft_draws_it() {
    for (restart, flags) in [(false, 0), (true, 1)] {
        let mut out = Vec::new();
        let mut builder = PacketBuilder::new(&mut out, HEADER, 100);
        assert!(builder.push_dtls(restart, &record(4)));
        assert_eq!(builder.finish(false), COMMON_HEADER_LEN + 4 + DTLS_PADDED_OVERHEAD);
        let expected = [&[0x41, flags, 0, 29, 0], &record(4)[..], &[0; 3]].concat();
        assert_eq!(out[COMMON_HEADER_LEN..], expected);
        assert_eq!(first(&packet(&expected)), Dtls { restart, record: record(4).into() });
    }
}

#[test]
fn reserved_flags_and_both_paddings_are_ignored() {
    let bytes = [&[0x41, 0xfe, 0, 25, 0xee], &record(0)[..], &[0xaa, 0xbb, 0xcc]].concat();
    let expected = Dtls { restart: false, record: record(0).into() };
    assert_eq!(first(&packet(&bytes)), expected);
    for end in 25..=28 {
        assert_eq!(first(&packet(&bytes[..end])), expected, "{end} bytes");
    }
}

#[test]
fn a_record_is_a_slice_of_the_datagram_and_encrypted_from_a_multiple_of_four() {
    let packet = packet(&[&[0x41, 0, 0, 28, 0], &record(3)[..]].concat());
    let chunk = first(&packet);
    let start = packet.bytes().as_ptr() as usize;
    let record = chunk.record.as_ptr() as usize;
    assert_eq!(record - start, COMMON_HEADER_LEN + DTLS_RECORD_OFFSET, "no copy");
    assert!((record + DTLS_RECORD_HEADER_LEN - start).is_multiple_of(4));
}

#[test]
fn a_chunk_without_room_for_header_content_type_and_tag_is_malformed() {
    for length in 4..25_u16 {
        let [l0, l1] = length.to_be_bytes();
        let bytes = [&[0x41, 0, l0, l1, 0], &record(0)[..], &[0; 3]].concat();
        let error = packet(&bytes).chunks().next().expect("an item").expect_err("too short");
        let (ty, length) = (0x41, usize::from(length));
        let expected = DecodeErrorKind::ChunkTooShort { ty, length, minimum: 25 };
        assert_eq!(error, expected.at(COMMON_HEADER_LEN));
    }
    let error = packet(&[0x41, 0, 0, 29, 0]).chunks().next().expect("an item");
    let kind = error.expect_err("past the end").kind;
    assert_eq!(kind, DecodeErrorKind::ChunkPastEnd { ty: 0x41, length: 29, available: 5 });
}

#[test]
fn a_record_of_a_length_that_no_chunk_has_is_refused() {
    let longest = 65535 - DTLS_RECORD_OFFSET;
    for (length, fits) in
        [(0, false), (19, false), (20, true), (longest, true), (longest + 1, false)]
    {
        let mut out = Vec::new();
        let mut builder = PacketBuilder::new(&mut out, HEADER, 1 << 20);
        assert_eq!(builder.push_dtls(true, &vec![7; length]), fits, "{length}");
        assert_eq!(builder.is_empty(), !fits, "a refused chunk leaves nothing behind");
        builder.finish(false);
        let expected = fits.then(|| out[COMMON_HEADER_LEN..][..DTLS_RECORD_OFFSET].to_vec());
        assert_eq!(Dtls::header(true, length).map(Vec::from), expected);
    }
    assert_eq!(Dtls::header(false, usize::MAX), None);
}

#[test]
fn it_becomes_an_unknown_chunk_with_all_its_bytes() {
    let bytes = [&[0x41, 1, 0, 27, 0], &record(2)[..]].concat();
    let unknown = UnknownChunk::from(first(&packet(&bytes)));
    assert_eq!(unknown.raw(), &bytes);
    assert_eq!((unknown.ty(), unknown.flags()), (0x41, 1));
    assert!(unknown.action().stop && unknown.action().report);

    let long = Dtls { restart: false, record: vec![0; 70_000].into() };
    let unknown = UnknownChunk::from(long);
    assert_eq!(unknown.raw()[..5], [0x41, 0, 0xff, 0xff, 0]);
}

/// Stands for a cipher: the same again decrypts.
fn scramble(bytes: &mut [u8]) {
    bytes.iter_mut().for_each(|byte| *byte ^= 0xa5);
}

#[test]
fn a_chunk_is_built_and_read_in_place() {
    // What precedes the packet in the buffer does not matter.
    for batch in [0, 3, 40] {
        let max = COMMON_HEADER_LEN + 16 + 4 + 4 + DTLS_PADDED_OVERHEAD;
        let mut out = vec![9; batch + DTLS_CONTENT_OFFSET];
        let mut plain = PacketBuilder::new(&mut out, HEADER, max - DTLS_PADDED_OVERHEAD);
        assert!(plain.push_data(Tsn(1), StreamId(2), Ssn(3), 4, DataFlags::END, b"x"));
        assert!(plain.push_cookie_ack() && !plain.push_cookie_ack());
        plain.finish(false);

        let moved = batch + DTLS_CONTENT_OFFSET;
        out.copy_within(moved..moved + COMMON_HEADER_LEN, batch);
        let content = moved + COMMON_HEADER_LEN;
        out.push(23); // application_data
        out.resize(out.len() + DTLS_TRAILER_LEN - 1, 0x7a);
        scramble(&mut out[content..]);
        let chunk = batch + COMMON_HEADER_LEN;
        let header = Dtls::header(false, out.len() - chunk - DTLS_RECORD_OFFSET).expect("fits");
        out[chunk..chunk + DTLS_RECORD_OFFSET].copy_from_slice(&header);
        out[chunk + DTLS_RECORD_OFFSET..content].copy_from_slice(&[0x2f, 0, 1]);
        out.resize(batch + padded(out.len() - batch), 0);
        fill_checksum(&mut out[batch..]);
        assert_eq!(out.len() - batch, max);

        let packet = Packet::parse(out.split_off(batch).into(), Checksum::Verify).expect("valid");
        assert_eq!(packet.header, HEADER);
        assert_eq!(packet.chunks().count(), 1);
        let record = first(&packet).record;
        assert_eq!(record[..DTLS_RECORD_HEADER_LEN], [0x2f, 0, 1]);
        let mut opened = record[DTLS_RECORD_HEADER_LEN..].to_vec();
        scramble(&mut opened);
        opened.truncate(opened.len() - 16);
        assert_eq!(opened.pop(), Some(23));
        let opened = Bytes::from(opened);
        let chunks: Vec<_> = chunks_of(&opened).map(|chunk| chunk.expect("valid")).collect();
        let [Chunk::Data(data), Chunk::CookieAck] = &chunks[..] else { panic!("{chunks:?}") };
        assert_eq!((data.tsn, &data.payload[..]), (Tsn(1), &b"x"[..]));
    }
}

proptest! {
    /// The record of a packet is found without decoding exactly where decoding finds it.
    #[test]
    fn a_lone_chunk_is_where_it_is_decoded(
        mut chunks in prop::collection::vec(any::<u8>(), 0..80),
        is_dtls in prop::bool::weighted(0.9),
        flags in 0u8..3,
        length in prop::option::of(0u16..90),
    ) {
        if is_dtls && chunks.len() >= 4 {
            let length = length.unwrap_or(chunks.len() as u16).to_be_bytes();
            chunks[..4].copy_from_slice(&[chunk_type::DTLS, flags, length[0], length[1]]);
        }
        let packet = packet(&chunks);
        let decoded: Vec<_> = packet.chunks().collect();
        let expected = match &decoded[..] {
            [Ok(Chunk::Dtls(dtls))] if !dtls.restart => Some(dtls.record.clone()),
            _ => None,
        };
        let found = Dtls::alone_in(packet.bytes()).map(|range| packet.bytes().slice(range));
        prop_assert_eq!(found, expected);
    }
}
