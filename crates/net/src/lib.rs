//! The sockets under a manypath endpoint: UDP encapsulation of SCTP (RFC 6951), in batches, and
//! beside it SCTP over IP itself.
//!
//! [`UdpSockets`] is a set of local UDP sockets with one port, one per local address or interface.
//! [`UdpReceiver`] reads batches from them (GRO) and hands each datagram out as a slice of the
//! buffer it arrived in; [`UdpSockets::try_send`] sends a batch of equally long packets with one
//! system call (GSO). Nothing here decides anything: which packet leaves from where is the engine's
//! business, and an error on one socket is never an error of another.
//!
//! [`UdpSockets::add_raw_ip`] opens a raw socket (IP protocol 132) beside each UDP socket. Its
//! local address has port 0, and so have the remotes that it sends to.
//!
//! [`Relays`] stands between these and the engine: through TURN servers (RFC 8656) it gives the
//! engine further local addresses. `RelayServer` is such a server; both need the feature `relay`.
//! With the feature `measure`, `Prober` measures paths without an association. [`traceroute`] finds
//! the routers on the way; a relay does so for its users.
//!
//! With the feature `port-mapping`, `PortMapping` has a home router forward a UDP port, so that
//! peers elsewhere reach it.
//!
//! [`NetworkWatch`] tells when this host's network changes, and [`UdpSockets::follow`] brings the
//! sockets up to date with its addresses.
//!
//! Beside them: the interfaces of this host ([`interfaces`]), the source address that the kernel
//! prefers for a remote ([`preferred_source`]), how local and remote addresses are matched into
//! paths ([`pair`]), and the [`Clock`] that gives the engine its time.

mod address;
mod bind;
mod clock;
mod follow;
#[cfg(feature = "port-mapping")]
mod gateway;
mod interfaces;
#[cfg(feature = "measure")]
mod ipid;
#[cfg(feature = "relay")]
mod lookup;
mod metered;
mod pairing;
#[cfg(feature = "port-mapping")]
pub mod port_mapping;
#[cfg(feature = "measure")]
pub mod probe;
#[cfg(feature = "measure")]
mod prober;
mod raw;
mod recv;
mod refused;
#[cfg(feature = "relay")]
mod relay_server;
mod relays;
#[cfg(feature = "measure")]
mod routes;
#[cfg(target_os = "linux")]
mod rtnetlink;
mod send;
mod sizes;
mod sockets;
mod traceroute;
#[cfg(feature = "relay")]
mod turn;
mod uplinks;
mod watch;

pub use address::{is_link_local_v6, unmapped};
pub use bind::{BindError, BindTo, Buffers, granted_buffers};
pub use clock::Clock;
pub use follow::{Followed, NewAddress};
#[cfg(feature = "port-mapping")]
pub use gateway::gateway_of;
pub use interfaces::{
    InterfaceAddress, addresses_of, interface_names, interfaces, preferred_source,
};
#[cfg(feature = "relay")]
pub use lookup::{LookupError, look_up_number};
#[cfg(feature = "relay")]
pub use manypath_turn::{Limits, MeshRelay, PeerRules, Reflexive, ServerConfig, ServerStats, User};
pub use metered::metered_interfaces;
pub use pairing::{Pairs, pair};
#[cfg(feature = "measure")]
pub use prober::{ProbeOptions, ProbedPath, Prober};
pub use raw::IcmpReport;
pub use recv::UdpReceiver;
pub use refused::{Refused, SendFailures};
#[cfg(feature = "relay")]
pub use relay_server::{RelayServer, RelayServerOptions, StunPort};
pub use relays::{
    RELAY_OVERHEAD, RELAY_OVERHEAD_MAX, Relay, RelayChange, RelayStatus, Relays, Way,
};
#[cfg(feature = "measure")]
pub use routes::{Leg, Routes, Seen, route};
pub use send::{Outgoing, Sent};
pub use sizes::interface_mtus;
pub use sockets::{BoundAddresses, UdpSockets};
pub use traceroute::{Trace, TraceHop, TraceOptions, answers_from, traceroute};
pub use uplinks::{LeftOut, LinkKind, NotUsed, Reachable, Uplink, Uplinks, reachable};
pub use watch::NetworkWatch;
