//! Steps that several subjects share.

use bytes::Bytes;
use manypath_proto::testing::*;
use manypath_wire::{Chunk, Init, Parameter};

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

/// A client that is established, and whose second path has been asked and not answered; the
/// Heartbeat Information of that question.
pub(crate) fn with_unverified_path() -> (Script, Bytes) {
    let mut t = Setup::client().paths(2).start();
    t.connect();
    t.expect_init();
    t.peer(init_ack());
    t.expect("P1 COOKIE ECHO");
    t.peer(cookie_ack());
    t.expect("P2 HEARTBEAT");
    let info = t.last_heartbeat();
    (t, info)
}

/// The packets sent, without heartbeats.
pub(crate) fn without_heartbeats(t: &mut Script) -> Vec<String> {
    t.all_sent().into_iter().filter(|words| !words.ends_with("HEARTBEAT")).collect()
}

/// The chunk types in Supported Extensions of INIT or INIT ACK, or none if that is left out.
pub(crate) fn announced(init: &Init) -> Vec<u8> {
    let types = |p| match p {
        Ok(Parameter::SupportedExtensions(types)) => Some(types.to_vec()),
        _ => None,
    };
    init.params.iter().find_map(types).unwrap_or_default()
}

/// The INIT or INIT ACK that was expected last.
pub(crate) fn last_init(t: &Script) -> Init {
    match t.last_chunks().pop() {
        Some(Chunk::Init(init) | Chunk::InitAck(init)) => init,
        other => panic!("{other:?} is neither INIT nor INIT ACK"),
    }
}
