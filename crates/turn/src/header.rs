//! The header of a payload on its way from a client to the relay.

use std::net::SocketAddr;
use std::ops::Deref;

use turn_types::attribute::{Data, XorPeerAddress};
use turn_types::message::SEND;
use turn_types::stun::message::{Message, MessageWriteVec};
use turn_types::stun::prelude::*;

use crate::message::{CHANNEL_HEADER, add, channel_header};

/// Bytes of the header of a Send indication (RFC 8656 §11.1) to an IPv4 peer: 20 of the message, 12
/// of XOR-PEER-ADDRESS, 4 of DATA.
pub const SEND_HEADER_V4: usize = 36;
/// Bytes of that header to an IPv6 peer, whose address is 12 bytes longer.
pub const SEND_HEADER_V6: usize = 48;
/// Bytes of the header of a STUN message, which its length field does not count.
const STUN_HEADER: usize = 20;

/// The bytes that make a payload a message to the relay: in front of it, and zeros behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    bytes: [u8; SEND_HEADER_V6],
    len: usize,
    padding: usize,
}

impl Deref for Header {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Header {
    /// The header of a ChannelData message.
    pub(crate) fn of_channel(channel: u16, len: usize) -> Header {
        let mut bytes = [0; SEND_HEADER_V6];
        bytes[..CHANNEL_HEADER].copy_from_slice(&channel_header(channel, len));
        Header { bytes, len: CHANNEL_HEADER, padding: 0 }
    }

    /// The header of a Send indication; `None` for a payload that no message can hold.
    pub(crate) fn of_send(peer: SocketAddr, len: usize) -> Option<Header> {
        let mut message = Message::builder_indication(SEND, MessageWriteVec::new());
        let id = message.transaction_id();
        add(&mut message, &XorPeerAddress::new(peer, id));
        add(&mut message, &Data::new(&[]));
        let head = message.finish();
        let mut header =
            Header { bytes: [0; SEND_HEADER_V6], len: head.len(), padding: padding(len) };
        header.bytes.get_mut(..head.len())?.copy_from_slice(&head);
        let whole = head.len() - STUN_HEADER + len + header.padding;
        header.bytes[2..4].copy_from_slice(&u16::try_from(whole).ok()?.to_be_bytes());
        let data = u16::try_from(len).ok()?.to_be_bytes();
        header.bytes[head.len() - 2..head.len()].copy_from_slice(&data);
        Some(header)
    }

    /// Zeros behind the payload: attributes of STUN fill whole words (RFC 8489 §14).
    pub fn padding(&self) -> usize {
        self.padding
    }
}

fn padding(len: usize) -> usize {
    len.next_multiple_of(4) - len
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::data;
    use crate::testing::address;

    #[test]
    fn a_send_indication_is_what_the_library_of_stun_writes() {
        for (peer, size) in
            [("198.51.100.5:9899", SEND_HEADER_V4), ("[2001:db8::5]:9899", SEND_HEADER_V6)]
        {
            let peer = address(peer);
            for len in 0..9 {
                let payload = &b"payload!!"[..len];
                let header = Header::of_send(peer, len).unwrap();
                assert_eq!(header.len(), size);
                let whole = [&header, payload, &[0; 3][..header.padding()]].concat();
                let message = Message::from_bytes(&whole).unwrap();
                let id = message.transaction_id();
                let to = message.attribute::<XorPeerAddress>().unwrap();
                assert_eq!((message.method(), to.addr(id)), (SEND, peer));
                assert_eq!(&whole[data(&message).unwrap()], payload);
            }
        }
    }

    #[test]
    fn a_payload_that_no_message_holds_has_no_header() {
        let peer = address("198.51.100.5:9899");
        assert!(Header::of_send(peer, 65_000).is_some());
        for len in [65_520, 65_535, 65_536, 1 << 20] {
            assert_eq!(Header::of_send(peer, len), None, "{len}");
        }
    }
}
