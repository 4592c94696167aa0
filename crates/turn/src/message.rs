//! The parts of STUN (RFC 8489) and TURN (RFC 8656) that client and server share.

use std::net::{IpAddr, SocketAddr};
use std::ops::Range;

use turn_types::attribute::{Data, XorPeerAddress};
use turn_types::message::DATA;
use turn_types::stun::attribute::{AttributeType, ErrorCode, Nonce, RawAttribute, Realm};
use turn_types::stun::message::{
    IntegrityAlgorithm, IntegrityKey, LongTermKeyCredentials, Message, MessageClass,
    MessageWriteVec,
};
use turn_types::stun::prelude::*;

/// Bytes that a ChannelData message has before its payload: channel number, length.
pub use manypath_proto::sizes::CHANNEL_DATA_HEADER as CHANNEL_HEADER;

/// The numbers that channels may have: RFC 8656 §12 ends them at 0x4fff, clients of RFC 5766 go on
/// to here.
pub(crate) const CHANNELS: std::ops::RangeInclusive<u16> = 0x4000..=0x7fff;

/// REQUESTED-TRANSPORT of a UDP allocation: the protocol number of UDP.
pub(crate) const UDP: u8 = 17;

/// The empty attribute of a request for an open allocation, and of the answer that grants it.
/// Others need not understand it.
const OPEN: AttributeType = AttributeType::new(0xd1a3);

/// RENDEZVOUS-NUMBER: the number of an open allocation, 4 bytes. Others need not understand it.
const RENDEZVOUS_NUMBER: AttributeType = AttributeType::new(0xd1a4);

/// The highest number that an allocation may have.
pub(crate) const NUMBER_MAX: u32 = 999_999;

/// MOBILITY-TICKET (RFC 8016 §4.1): empty in a request for an allocation that is to stay when the
/// address of its client changes.
pub(crate) const MOBILITY_TICKET: AttributeType = AttributeType::new(0x8030);

/// The peers whose packets an allocation lets in.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// The peers that its client has named (RFC 8656 §9).
    #[default]
    Permitted,
    /// All that the relay's rules allow. This is an extension of RFC 8656.
    Open,
}

impl Access {
    /// The access that a request for an allocation asks for, or that its answer grants.
    pub(crate) fn of(message: &Message<'_>) -> Access {
        if message.has_attribute(OPEN) { Access::Open } else { Access::Permitted }
    }

    /// Says so in a message.
    pub(crate) fn add_to(self, message: &mut MessageWriteVec) {
        if self == Access::Open {
            add(message, &RawAttribute::new(OPEN, &[]));
        }
    }
}

/// The value of RENDEZVOUS-NUMBER, if the message has it with the right length.
pub(crate) fn rendezvous_number(message: &Message<'_>) -> Option<u32> {
    let attribute = message.raw_attribute(RENDEZVOUS_NUMBER)?;
    <[u8; 4]>::try_from(&attribute.value[..]).ok().map(u32::from_be_bytes)
}

/// Adds RENDEZVOUS-NUMBER with this value to a message.
pub(crate) fn add_rendezvous_number(message: &mut MessageWriteVec, number: u32) {
    add(message, &RawAttribute::new(RENDEZVOUS_NUMBER, &number.to_be_bytes()));
}

/// The header of a ChannelData message with `len` bytes of payload. Over UDP nothing is padded
/// (RFC 8656 §12.5).
pub fn channel_header(channel: u16, len: usize) -> [u8; CHANNEL_HEADER] {
    let [a, b] = channel.to_be_bytes();
    let [c, d] = u16::try_from(len).unwrap_or(u16::MAX).to_be_bytes();
    [a, b, c, d]
}

/// The channel and where its payload is, if `datagram` is a whole ChannelData message.
pub(crate) fn read_channel(datagram: &[u8]) -> Option<(u16, Range<usize>)> {
    let &[a, b, c, d, ref rest @ ..] = datagram else { return None };
    let channel = u16::from_be_bytes([a, b]);
    let length = usize::from(u16::from_be_bytes([c, d]));
    let whole = CHANNELS.contains(&channel) && length <= rest.len();
    whole.then_some((channel, CHANNEL_HEADER..CHANNEL_HEADER + length))
}

/// The peer and where its payload is, if `message` is a Data indication (RFC 8656 §11.3).
pub(crate) fn read_indication(message: &Message<'_>) -> Option<(SocketAddr, Range<usize>)> {
    if message.class() != MessageClass::Indication || message.method() != DATA {
        return None;
    }
    let peer = message.attribute::<XorPeerAddress>().ok()?;
    Some((canonical(peer.addr(message.transaction_id())), data(message)?))
}

/// The payload of the attribute DATA, as its place in the message.
pub(crate) fn data(message: &Message<'_>) -> Option<Range<usize>> {
    let (offset, data) = message.raw_attribute_and_offset(Data::TYPE)?;
    // The value follows four bytes of type and length.
    let begins = offset + 4;
    Some(begins..begins + usize::from(data.length()))
}

/// The key of the long-term credential mechanism.
pub(crate) fn long_term_key(user: &str, password: &str, realm: &str) -> IntegrityKey {
    LongTermKeyCredentials::new(user.to_owned(), password.to_owned(), realm.to_owned())
        .make_key(IntegrityAlgorithm::Sha1)
}

/// Ends a message with MESSAGE-INTEGRITY.
pub(crate) fn sign(mut message: MessageWriteVec, key: &IntegrityKey) -> Vec<u8> {
    // Fails only for a message that is signed already, or full.
    let _ = message.add_message_integrity_with_key(key, IntegrityAlgorithm::Sha1);
    message.finish()
}

/// Adds an attribute. Ours are short: none can fail to fit.
pub(crate) fn add(message: &mut MessageWriteVec, attribute: &dyn AttributeWrite) {
    let added = message.add_attribute(attribute);
    debug_assert!(added.is_ok(), "{added:?}");
}

/// The realm and nonce that a server challenges with.
pub(crate) fn challenge(message: &Message<'_>) -> Option<(String, String)> {
    let realm = message.attribute::<Realm>().ok()?;
    let nonce = message.attribute::<Nonce>().ok()?;
    Some((realm.realm().to_owned(), nonce.nonce().to_owned()))
}

/// An error answer to `request`, to be signed or finished.
pub(crate) fn error_answer(request: &Message<'_>, code: u16) -> MessageWriteVec {
    let mut answer = Message::builder_error(request, MessageWriteVec::new());
    // Every code used here is within 300 to 699.
    if let Ok(code) = ErrorCode::builder(code).build() {
        add(&mut answer, &code);
    }
    answer
}

/// An IPv4 address written as an IPv6 one is the IPv4 address.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(canonical_ip(address.ip()), address.port())
}

/// The same for an IP address.
pub(crate) fn canonical_ip(ip: IpAddr) -> IpAddr {
    ip.to_canonical()
}
