//! TURN (RFC 8656) over UDP, without I/O: datagrams and the time go in, datagrams and decisions
//! come out.
//!
//! A relay gives a host another transport address, on another network: packets sent to it come to
//! the host through the relay, and packets the host sends through the relay come from it. To the
//! engine it is one more local address, so a host with one uplink has as many paths as it has
//! relays, plus one.
//!
//! An [open](Access::Open) allocation, which this adds to RFC 8656, lets in peers that its client
//! has not named: a host that waits for others can be reached through a relay.
//!
//! Such an allocation may have a number, and everybody who knows the number can [look up](Lookup)
//! the address.
//!
//! [`Client`] holds one allocation on one relay and a channel for each peer, and keeps both alive.
//! [`Server`] is a relay for authorised users, with a limit for everything that they can ask for.
//! Both speak to other implementations; what they support is UDP between all parties and the
//! long-term credential mechanism of RFC 8489 (HMAC-SHA1). STUN messages are read and written by
//! `turn-types`.

mod bytes;
mod client;
mod credentials;
mod header;
mod lookup;
mod mesh;
mod message;
mod reflexive;
mod route;
mod server;

pub use client::{Client, ClientError, ClientEvent, ClientOptions, Received, WantedNumber};
pub use header::{Header, SEND_HEADER_V4, SEND_HEADER_V6};
pub use lookup::{Lookup, LookupError};
pub use mesh::{Listed, MeshRelay, MeshTransmit};
pub use message::{Access, CHANNEL_HEADER, channel_header};
pub use reflexive::{Question, Reflexive};
pub use route::{RelayRoute, RouteHop};
pub use server::{
    AllocationId, Forward, Limits, PeerRules, Prefix, Reply, Server, ServerConfig, ServerStats,
    Sockets, TraceWanted, User, Wanted, may_lead_to,
};

#[cfg(test)]
mod testing;
