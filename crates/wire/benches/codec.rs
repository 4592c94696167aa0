//! Encoding and decoding of the packets a bulk transfer is made of.
//!
//! `cargo bench -p manypath-wire --bench codec`

#![allow(missing_docs)]

use bytes::Bytes;
use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use manypath_wire::{
    Checksum, Chunk, CommonHeader, DataFlags, Packet, PacketBuilder, Ssn, StreamId, Tsn,
};

const HEADER: CommonHeader =
    CommonHeader { source_port: 9899, destination_port: 9899, verification_tag: 0x1234_5678 };

fn main() {
    divan::main();
}

fn put_data(out: &mut Vec<u8>, chunks: usize, payload: &[u8], checksum: bool) {
    let mut packet = PacketBuilder::new(out, HEADER, 1472);
    for i in 0..chunks {
        let whole = DataFlags::BEGIN | DataFlags::END;
        packet.push_data(Tsn(i as u32), StreamId(0), Ssn(0), 0, whole, payload);
    }
    packet.finish(checksum);
}

fn put_sack(out: &mut Vec<u8>, gaps: u16) {
    let mut packet = PacketBuilder::new(out, HEADER, 1472);
    let blocks = (1..=gaps).map(|i| (4 * i, 4 * i + 1));
    packet.push_sack(Tsn(7), 1 << 20, 0, blocks, std::iter::empty());
    packet.finish(true);
}

fn checksum(on: bool) -> Checksum {
    if on { Checksum::Verify } else { Checksum::Ignore }
}

/// (chunks, user bytes of each)
const SHAPES: [(usize, usize); 2] = [(1, 1400), (12, 100)];

#[divan::bench(args = SHAPES, consts = [true, false])]
fn encode_data<const CHECKSUM: bool>(bencher: Bencher<'_, '_>, shape: (usize, usize)) {
    let (chunks, len) = shape;
    let payload = vec![7u8; len];
    let mut out = Vec::with_capacity(2048);
    bencher.counter(BytesCount::new(chunks * len)).bench_local(|| {
        out.clear();
        put_data(&mut out, chunks, black_box(&payload), CHECKSUM);
        black_box(out.len())
    });
}

#[divan::bench(args = SHAPES, consts = [true, false])]
fn decode_data<const CHECKSUM: bool>(bencher: Bencher<'_, '_>, shape: (usize, usize)) {
    let (chunks, len) = shape;
    let mut out = Vec::new();
    put_data(&mut out, chunks, &vec![7u8; len], true);
    let bytes = Bytes::from(out);
    bencher.counter(BytesCount::new(chunks * len)).bench_local(|| {
        let packet = Packet::parse(bytes.clone(), checksum(CHECKSUM)).expect("valid");
        packet.chunks().map(|c| matches!(c, Ok(Chunk::Data(_))) as usize).sum::<usize>()
    });
}

#[divan::bench(args = [0, 4, 64])]
fn encode_sack(bencher: Bencher<'_, '_>, gaps: u16) {
    let mut out = Vec::with_capacity(2048);
    bencher.bench_local(|| {
        out.clear();
        put_sack(&mut out, black_box(gaps));
        black_box(out.len())
    });
}

#[divan::bench(args = [0, 4, 64])]
fn decode_sack(bencher: Bencher<'_, '_>, gaps: u16) {
    let mut out = Vec::new();
    put_sack(&mut out, gaps);
    let bytes = Bytes::from(out);
    bencher.bench_local(|| {
        let packet = Packet::parse(bytes.clone(), Checksum::Verify).expect("valid");
        match packet.chunks().next() {
            Some(Ok(Chunk::Sack(sack))) => {
                sack.gap_ack_blocks().map(|b| u32::from(b.end)).sum::<u32>()
            }
            _ => 0,
        }
    });
}
