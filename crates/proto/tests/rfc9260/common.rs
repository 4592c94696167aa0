//! Steps that several subjects share.

use manypath_proto::testing::*;
use manypath_wire::{Chunk, Init};

/// Payload of a DATA chunk that fills a packet of 1500 bytes in UDP over IPv4.
pub(crate) const FULL: usize = 1444;
/// The path maximum DATA chunk size there.
pub(crate) const PMDCS: usize = 1460;

/// Sends `packets` full packets and acknowledges each by itself, 10 ms later, so that cwnd grows in
/// slow start. The endpoint must not have sent anything before. Answers the last TSN.
pub(crate) fn grow(t: &mut Script, packets: u32) -> u32 {
    t.send_packets(packets as usize);
    for tsn in 1..=packets {
        t.run_ms(10);
        t.peer(sack(tsn));
    }
    t.all_sent();
    assert_eq!(t.assoc().unacked_bytes(), 0);
    packets
}

/// The packets sent, without heartbeats.
pub(crate) fn without_heartbeats(t: &mut Script) -> Vec<String> {
    t.all_sent().into_iter().filter(|words| !words.ends_with("HEARTBEAT")).collect()
}

/// The INIT or INIT ACK that was expected last.
pub(crate) fn last_init(t: &Script) -> Init {
    match t.last_chunks().pop() {
        Some(Chunk::Init(init) | Chunk::InitAck(init)) => init,
        other => panic!("{other:?} is neither INIT nor INIT ACK"),
    }
}
