//! The packets of probes and their answers.

use std::net::SocketAddr;

use manypath_net::probe;
use turn_types::stun::attribute::{RawAttribute, XorMappedAddress};
use turn_types::stun::message::{
    BINDING, Message, MessageClass, MessageType, MessageWriteVec, TransactionId,
};
use turn_types::stun::prelude::*;

/// The SCTP port of manypath at both ends.
const SCTP_PORT: u16 = 9899;
/// The attribute that asks for an answer to another port (RFC 5780 §7.5).
pub(super) const RESPONSE_PORT: u16 = 0x0027;
/// The attribute that wants the answer from another port (RFC 5780 §7.2).
pub(super) const CHANGE_REQUEST: u16 = 0x0003;
/// The attribute with the server's other address and port (RFC 5780 §7.4).
pub(super) const OTHER_ADDRESS: u16 = 0x802c;
/// The flag of CHANGE-REQUEST for another port.
const CHANGE_PORT: [u8; 4] = [0, 0, 0, 2];

/// A number that the answer to a probe carries.
pub(super) fn tag() -> u32 {
    // Without randomness probes still work; a forged answer would be believed.
    getrandom::u32().unwrap_or(0x6d61_6e79).max(1)
}

/// An INIT with this tag, of `len` bytes if that is more than it needs, in steps of four.
pub(super) fn init(tag: u32, len: usize) -> Vec<u8> {
    probe::init(tag, SCTP_PORT, len)
}

/// A STUN Binding request whose transaction has this tag.
pub(super) fn binding(tag: u32) -> Vec<u8> {
    request(tag).finish()
}

/// A Binding request that asks for the answer on another `port` of the address that it comes from.
pub(super) fn binding_to(tag: u32, port: u16) -> Vec<u8> {
    let mut message = request(tag);
    let [a, b] = port.to_be_bytes();
    // There is room for it.
    let _ = message.add_attribute(&RawAttribute::new(RESPONSE_PORT.into(), &[a, b, 0, 0]));
    message.finish()
}

/// A Binding request that asks for the answer from the server's other port.
pub(super) fn binding_from_other_port(tag: u32) -> Vec<u8> {
    let mut message = request(tag);
    // There is room for it.
    let _ = message.add_attribute(&RawAttribute::new(CHANGE_REQUEST.into(), &CHANGE_PORT));
    message.finish()
}

fn request(tag: u32) -> MessageWriteVec {
    let id = TransactionId::from(u128::from(tag));
    let kind = MessageType::from_class_method(MessageClass::Request, BINDING);
    Message::builder(kind, id, MessageWriteVec::new())
}

/// The tag of the probe that this answers.
pub(super) fn answered(datagram: &[u8]) -> Option<u32> {
    mapped(datagram).map(|(tag, _)| tag).or_else(|| probe::answered(datagram))
}

/// The answer to a Binding request.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    /// The tag of the request.
    pub(super) tag: u32,
    /// The address that it came from.
    pub(super) seen: SocketAddr,
    /// The server's other port, if it has one.
    pub(super) other_port: Option<u16>,
}

/// Reads an answer to a Binding request.
pub(super) fn bound(datagram: &[u8]) -> Option<Binding> {
    let message = Message::from_bytes(datagram).ok()?;
    if message.class() != MessageClass::Success || message.method() != BINDING {
        return None;
    }
    let id = message.transaction_id();
    let seen = message.attribute::<XorMappedAddress>().ok()?.addr(id);
    let tag = u32::try_from(u128::from(id) & u128::from(u32::MAX)).ok()?;
    let other = message.raw_attribute(OTHER_ADDRESS.into());
    let port = other.and_then(|attribute| match &attribute.value[..] {
        &[_, _, a, b, ..] => Some(u16::from_be_bytes([a, b])),
        _ => None,
    });
    Some(Binding { tag, seen, other_port: port.filter(|&port| port != 0) })
}

/// The tag of a Binding request that this answers, and the address that it came from.
pub(super) fn mapped(datagram: &[u8]) -> Option<(u32, SocketAddr)> {
    bound(datagram).map(|answer| (answer.tag, answer.seen))
}
