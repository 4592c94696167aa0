//! Requests of a client, and the messages that carry them.

use std::net::SocketAddr;

use turn_types::AddressFamily;
use turn_types::attribute::{
    ChannelNumber, Lifetime, RequestedAddressFamily, RequestedTransport, XorPeerAddress,
};
use turn_types::message::{ALLOCATE, CHANNEL_BIND, REFRESH};
use turn_types::stun::message::{Message, MessageWriteVec};
use turn_types::stun::prelude::*;

use super::channels::Channel;
use crate::mesh::OVERLAY;
use crate::message::{UDP, add};
use crate::route::TRACE;

/// A request to the relay.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Allocate,
    Refresh,
    /// Refresh with a lifetime of 0.
    Delete,
    Bind(Channel),
    /// The route from the relay to a peer.
    Trace(SocketAddr),
    /// The other relays that the relay knows.
    Overlay,
}

impl Request {
    /// The message without credentials. `family` is that of the address to allocate.
    pub(super) fn message(self, family: AddressFamily) -> MessageWriteVec {
        let method = match self {
            Request::Allocate => ALLOCATE,
            Request::Refresh | Request::Delete => REFRESH,
            Request::Bind(_) => CHANNEL_BIND,
            Request::Trace(_) => TRACE,
            Request::Overlay => OVERLAY,
        };
        let mut message = Message::builder_request(method, MessageWriteVec::new());
        let id = message.transaction_id();
        match self {
            Request::Allocate => {
                add(&mut message, &RequestedTransport::new(UDP));
                if family == AddressFamily::IPV6 {
                    add(&mut message, &RequestedAddressFamily::new(family));
                }
            }
            Request::Refresh | Request::Overlay => {}
            Request::Delete => add(&mut message, &Lifetime::new(0)),
            Request::Bind(channel) => {
                add(&mut message, &ChannelNumber::new(channel.number));
                add(&mut message, &XorPeerAddress::new(channel.peer, id));
            }
            Request::Trace(peer) => add(&mut message, &XorPeerAddress::new(peer, id)),
        }
        message
    }
}
