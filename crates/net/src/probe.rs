//! The packets of probes: an SCTP INIT, and what answers it.
//!
//! Whoever takes associations answers an INIT with INIT ACK and keeps nothing (RFC 9260 §5.1), so
//! this needs no right to be served and leaves no trace; an ABORT answers as well.

use manypath_wire::{
    COMMON_HEADER_LEN, Checksum, CommonHeader, Init, Packet, PacketBuilder, Parameter, Params, Tsn,
    UnknownParameter, chunk_type,
};

/// The parameter that makes an INIT longer (RFC 4820 §4); who does not know it skips it silently.
const PADDING: u16 = 0x8005;
/// Bytes of an INIT without parameters, with the common header, and of a parameter without value.
const INIT_LEN: usize = COMMON_HEADER_LEN + 20;
const PARAMETER_LEN: usize = 4;

/// An INIT with this tag, from and to this SCTP port. It has `len` bytes, in steps of four, if that
/// is more than it needs.
pub fn init(tag: u32, port: u16, len: usize) -> Vec<u8> {
    let padding = len.checked_sub(INIT_LEN + PARAMETER_LEN);
    let padding = padding
        .map(|bytes| Parameter::Unknown(UnknownParameter::new(PADDING, &vec![0; bytes / 4 * 4])));
    let header = CommonHeader { source_port: port, destination_port: port, verification_tag: 0 };
    let mut bytes = Vec::new();
    let mut packet = PacketBuilder::new(&mut bytes, header, usize::from(u16::MAX));
    packet.push_init(&Init {
        initiate_tag: tag,
        a_rwnd: 65_536,
        outbound_streams: 1,
        inbound_streams: 1,
        initial_tsn: Tsn(tag),
        params: padding.into_iter().collect::<Params>(),
    });
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
