//! The manypath engine: SCTP (RFC 9260) over any number of paths at once, without I/O.
//!
//! The engine owns no socket, no clock and no thread. Datagrams, the time and random bits go in;
//! datagrams, events and the next deadline come out. One law drives it: **after any input or
//! command, drain the outputs; then wait until the deadline or the next input.**
//!
//! ```
//! use std::sync::Arc;
//!
//! use bytes::Bytes;
//! use manypath_proto::{
//!     Config, ConnectTo, Datagram, Endpoint, EndpointConfig, Event, Instant, Rng, SendOptions,
//! };
//!
//! let config = Arc::new(Config::build("rfc9260", "cmt-pf", &[])?);
//! let endpoint = |address: &str, accept| {
//!     let config = EndpointConfig {
//!         config: Arc::clone(&config),
//!         sctp_port: 9899,
//!         accept,
//!         max_associations: 10,
//!         local_addresses: vec![address.parse().unwrap()],
//!     };
//!     Endpoint::new(config, Rng::from_number(if accept { 1 } else { 2 }))
//! };
//! let mut client = endpoint("10.0.0.1:9899", false);
//! let mut server = endpoint("10.0.0.2:9899", true);
//!
//! let now = Instant::ZERO;
//! let paths = vec![("10.0.0.1:9899".parse()?, "10.0.0.2:9899".parse()?)];
//! let id = client.connect(now, ConnectTo::new(paths, 9899))?;
//! client.assoc_mut(id).unwrap().send(now, SendOptions::default(), Bytes::from("hello"))?;
//!
//! // A network without delay: what one sends, the other receives at once.
//! let mut buffer = Vec::new();
//! let mut quiet = 0;
//! while quiet < 2 {
//!     quiet += 1;
//!     while let Some(t) = client.poll_transmit(now, 1, &mut buffer) {
//!         let payload = Bytes::copy_from_slice(&buffer);
//!         server.handle_datagram(now, Datagram::new(t.remote, t.local, payload));
//!         quiet = 0;
//!     }
//!     std::mem::swap(&mut client, &mut server);
//! }
//! let mut received = None;
//! for endpoint in [&mut client, &mut server] {
//!     while let Some((id, event)) = endpoint.poll_event() {
//!         if event == Event::Readable {
//!             received = endpoint.assoc_mut(id).unwrap().recv(now);
//!         }
//!     }
//! }
//! assert_eq!(received.unwrap().payload.to_vec(), b"hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Endpoint`] is the surface. [`config`] says everything that can be set, and [`policy`] holds
//! the decisions in which the published multipath systems differ.

mod assoc;
mod auth;
pub mod config;
mod crowd;
mod datagram;
mod endpoint;
mod event;
pub mod overlay;
mod params;
mod path;
pub mod policy;
mod rng;
mod rx;
pub mod sizes;
#[cfg(feature = "testing")]
pub mod testing;
mod time;
mod tx;
mod view;

pub use assoc::{
    AddressError, AssocStats, Association, CHANGEABLE, CHANGEABLE_OF_PATHS, Candidate, Directness,
    ReconfigureError,
};
pub use auth::{AuthKeyError, AuthKeys};
pub use config::{Config, ConfigError};
pub use crowd::{Crowd, CrowdLimits};
pub use datagram::{Datagram, Transmit, is_raw_ip};
pub use endpoint::{
    AssocId, ConnectError, ConnectTo, Endpoint, EndpointConfig, IcmpKind, IcmpMessage, PacketTooBig,
};
pub use event::{
    AddressChange, AddressOutcome, AssocClosed, AuthReport, Event, RequestOutcome, StreamRequest,
};
pub use manypath_dtls::manage::{
    Agreement, KeyAction, KeyFailure, KeyManagement, KeySession, Peer, PeerIdentity, Role, Roles,
};
pub use manypath_wire::{CandidateKind, Ssn, StreamId, Tsn};
pub use path::{MtuReason, PathCounters, PathStats, T3_IN_A_ROW};
pub use policy::path_set::shared::{SharedEvidence, SharedSign};
pub use rng::Rng;
pub use rx::{Message, Payload};
pub use time::Instant;
pub use tx::{SendError, SendOptions};
pub use view::{
    ElectReason, PathId, PathRank, PathState, PathView, RankError, RestoreReason, SuppressReason,
};
