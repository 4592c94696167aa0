//! The packets of probes and their answers.

use std::net::SocketAddr;

use manypath_wire::{
    COMMON_HEADER_LEN, Checksum, CommonHeader, Init, Packet, PacketBuilder, Parameter, Params, Tsn,
    UnknownParameter, chunk_type,
};
use turn_types::stun::attribute::{RawAttribute, XorMappedAddress};
use turn_types::stun::message::{
    BINDING, Message, MessageClass, MessageType, MessageWriteVec, TransactionId,
};
use turn_types::stun::prelude::*;

/// The SCTP port of manypath at both ends.
const SCTP_PORT: u16 = 9899;
/// The parameter that makes an INIT longer (RFC 4820 §4); who does not know it skips it silently.
const PADDING: u16 = 0x8005;
/// The attribute that asks for an answer to another port (RFC 5780 §7.5).
pub(super) const RESPONSE_PORT: u16 = 0x0027;
/// Bytes of an INIT without parameters, with the common header, and of a parameter without value.
const INIT_LEN: usize = COMMON_HEADER_LEN + 20;
const PARAMETER_LEN: usize = 4;

/// A number that the answer to a probe carries.
pub(super) fn tag() -> u32 {
    // Without randomness probes still work; a forged answer would be believed.
    getrandom::u32().unwrap_or(0x6d61_6e79).max(1)
}

/// An INIT with this tag, of `len` bytes if that is more than it needs, in steps of four.
pub(super) fn init(tag: u32, len: usize) -> Vec<u8> {
    let padding = len.checked_sub(INIT_LEN + PARAMETER_LEN);
    let padding = padding
        .map(|bytes| Parameter::Unknown(UnknownParameter::new(PADDING, &vec![0; bytes / 4 * 4])));
    let header =
        CommonHeader { source_port: SCTP_PORT, destination_port: SCTP_PORT, verification_tag: 0 };
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

/// A STUN Binding request whose transaction has this tag.
pub(super) fn binding(tag: u32) -> Vec<u8> {
    request(tag).finish()
}

/// The same; the answer is to go to another port of the address that it comes from.
pub(super) fn binding_to(tag: u32, port: u16) -> Vec<u8> {
    let mut message = request(tag);
    let [a, b] = port.to_be_bytes();
    // There is room for it.
    let _ = message.add_attribute(&RawAttribute::new(RESPONSE_PORT.into(), &[a, b, 0, 0]));
    message.finish()
}

fn request(tag: u32) -> MessageWriteVec {
    let id = TransactionId::from(u128::from(tag));
    let kind = MessageType::from_class_method(MessageClass::Request, BINDING);
    Message::builder(kind, id, MessageWriteVec::new())
}

/// The tag of the probe that this answers.
pub(super) fn answered(datagram: &[u8]) -> Option<u32> {
    if let Some((tag, _)) = mapped(datagram) {
        return Some(tag);
    }
    let header = Packet::check(datagram, Checksum::Verify).ok()?;
    match *datagram.get(COMMON_HEADER_LEN)? {
        chunk_type::INIT_ACK | chunk_type::ABORT => Some(header.verification_tag),
        _ => None,
    }
}

/// The tag of a Binding request that this answers, and the address that it came from.
pub(super) fn mapped(datagram: &[u8]) -> Option<(u32, SocketAddr)> {
    let message = Message::from_bytes(datagram).ok()?;
    if message.class() != MessageClass::Success || message.method() != BINDING {
        return None;
    }
    let id = message.transaction_id();
    let seen = message.attribute::<XorMappedAddress>().ok()?.addr(id);
    let tag = u32::try_from(u128::from(id) & u128::from(u32::MAX)).ok()?;
    Some((tag, seen))
}
