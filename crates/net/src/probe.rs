//! The packets of probes: an SCTP INIT, and what answers it.
//!
//! Whoever takes associations answers an INIT with INIT ACK and keeps nothing (RFC 9260 §5.1), so
//! this needs no right to be served and leaves no trace; an ABORT answers as well.

use manypath_wire::{
    COMMON_HEADER_LEN, Checksum, CommonHeader, Init, Packet, PacketBuilder, Params, Tsn, chunk_type,
};

/// An INIT with this tag, from and to this SCTP port. It has `len` bytes, in steps of four, if that
/// is more than it needs.
pub fn init(tag: u32, port: u16, len: usize) -> Vec<u8> {
    let header = CommonHeader { source_port: port, destination_port: port, verification_tag: 0 };
    let mut bytes = Vec::new();
    let mut packet = PacketBuilder::new(&mut bytes, header, usize::from(u16::MAX));
    let init = Init {
        initiate_tag: tag,
        a_rwnd: 65_536,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(tag),
        params: Params::default(),
    };
    packet.push_init(&init.padded_to(len / 4 * 4));
    packet.finish(true);
    bytes
}

/// The tag of the INIT that this answers; `None` for anything else.
pub fn answered(datagram: &[u8]) -> Option<u32> {
    let header = Packet::check(datagram, Checksum::Verify).ok()?;
    match *datagram.get(COMMON_HEADER_LEN)? {
        chunk_type::INIT_ACK | chunk_type::ABORT => Some(header.verification_tag),
        _ => None,
    }
}
