//! Requests of a client, and the messages that carry them.

use std::net::SocketAddr;

use turn_types::AddressFamily;
use turn_types::attribute::{
    ChannelNumber, Lifetime, RequestedAddressFamily, RequestedTransport, XorPeerAddress,
};
use turn_types::message::{ALLOCATE, CHANNEL_BIND, CREATE_PERMISSION, REFRESH};
use turn_types::stun::attribute::RawAttribute;
use turn_types::stun::message::{Message, MessageWriteVec};
use turn_types::stun::prelude::*;

use super::channels::Channel;
use super::{Client, WantedNumber};
use crate::mesh::OVERLAY;
use crate::message::{Access, MOBILITY_TICKET, UDP, add, add_rendezvous_number};
use crate::route::TRACE;

/// A request to the relay.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Allocate,
    Refresh,
    /// Refresh from another address of ours (RFC 8016 §3.2).
    Move,
    /// Refresh with a lifetime of 0.
    Delete,
    Bind(Channel),
    /// A permission for the address that the relay gave us: for its other users.
    Permit(SocketAddr),
    /// The route from the relay to a peer.
    Trace(SocketAddr),
    /// The other relays that the relay knows.
    Overlay,
}

impl Request {
    /// The message of this client, without credentials.
    pub(super) fn message(self, client: &Client) -> MessageWriteVec {
        let method = match self {
            Request::Allocate => ALLOCATE,
            Request::Refresh | Request::Move | Request::Delete => REFRESH,
            Request::Bind(_) => CHANNEL_BIND,
            Request::Permit(_) => CREATE_PERMISSION,
            Request::Trace(_) => TRACE,
            Request::Overlay => OVERLAY,
        };
        let mut message = Message::builder_request(method, MessageWriteVec::new());
        let id = message.transaction_id();
        match self {
            Request::Allocate => {
                add(&mut message, &RequestedTransport::new(UDP));
                if client.family == AddressFamily::IPV6 {
                    add(&mut message, &RequestedAddressFamily::new(client.family));
                }
                client.access.add_to(&mut message);
                if client.access == Access::Open {
                    client.number.add_to(&mut message);
                    if client.may_ask_for_ticket {
                        add(&mut message, &RawAttribute::new(MOBILITY_TICKET, &[]));
                    }
                }
            }
            Request::Refresh | Request::Overlay => {}
            Request::Move => {
                let ticket = client.ticket.as_deref().unwrap_or_default();
                add(&mut message, &RawAttribute::new(MOBILITY_TICKET, ticket));
            }
            Request::Delete => add(&mut message, &Lifetime::new(0)),
            Request::Bind(channel) => {
                add(&mut message, &ChannelNumber::new(channel.number));
                add(&mut message, &XorPeerAddress::new(channel.peer, id));
            }
            Request::Permit(peer) | Request::Trace(peer) => {
                add(&mut message, &XorPeerAddress::new(peer, id))
            }
        }
        message
    }
}

impl WantedNumber {
    /// Asks for it in an Allocate request.
    fn add_to(self, message: &mut MessageWriteVec) {
        match self {
            WantedNumber::None => {}
            WantedNumber::Any => add_rendezvous_number(message, 0),
            WantedNumber::Wish(number) => add_rendezvous_number(message, number),
        }
    }
}
