//! Multipath transport for applications: SCTP (RFC 9260) over UDP (RFC 6951), on several paths at
//! once, with tokio.
//!
//! An [`Endpoint`] is a set of UDP sockets and everything that goes through them. It opens
//! associations with [`connect`](Endpoint::connect) and takes those that peers open with
//! [`accept`](Endpoint::accept). An [`Association`] carries messages on numbered streams, each
//! stream in order and independent of the others, over all of its paths together; or, through
//! [`stream`](Association::stream), bytes.
//!
//! Sockets and paths follow this host's network while they last
//! ([`EndpointOptions::follow_network`]): an address or an interface that goes and comes, another
//! route, the only path renumbered.
//!
//! ```toml
//! [dependencies]
//! manypath = { git = "https://github.com/manypath/manypath" }
//! tokio = { version = "1", features = ["macros", "rt"] }
//! ```
//!
//! Packets are encrypted and authenticated with keys from TLS 1.3, or from a secret that both ends
//! have ([`Security`]). Here the client knows the fingerprint of the server's public key, and the
//! server takes every client. Each binds two addresses, so there are two paths; without `bind` an
//! endpoint uses all addresses of its host.
//!
//! ```
//! use manypath::keys::{Identity, PeerKeys, TlsKeys};
//! use manypath::{BindTo, ConnectTarget, Endpoint, EndpointOptions, SendOptions};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let identity = Identity::generate()?; // or `from_pem`, to be the same after a restart
//! let known = PeerKeys::Pinned(vec![identity.fingerprint()]);
//! let of_server = TlsKeys::raw_public_keys(&identity, PeerKeys::Any);
//! let of_client = TlsKeys::raw_public_keys(&Identity::generate()?, known);
//!
//! let bind = || [1, 2].map(|n| BindTo::Address([127, 0, 0, n].into())).to_vec();
//! let options = EndpointOptions { bind: bind(), ..EndpointOptions::server(of_server) };
//! # // A port that is free, as tests run at once.
//! # let options = EndpointOptions { udp_port: 0, ..options };
//! let server = Endpoint::bind(options)?;
//! let options = EndpointOptions { bind: bind(), ..EndpointOptions::client(of_client) };
//! let client = Endpoint::bind(options)?;
//!
//! let target = ConnectTarget::new(server.local_addresses());
//! let (out, incoming) = tokio::join!(client.connect(target), server.accept());
//! let (out, incoming) = (out?, incoming.expect("the server accepts"));
//! assert!(out.is_protected());
//! assert_eq!(out.paths().len(), 2);
//!
//! out.send(SendOptions::default(), "hello".into()).await?;
//! let message = incoming.recv().await?.expect("the stream goes on");
//! assert_eq!(message.payload.to_vec(), b"hello");
//!
//! out.shutdown().await?;                          // returns when everything is delivered
//! assert!(incoming.recv().await?.is_none());      // the end, as the other side sees it
//! # Ok(())
//! # }
//! ```
//!
//! Three features are off by default. `relay` adds paths through TURN relays, and a relay for
//! others. `measure` adds probes of paths and the tracing of their routers. `port-mapping` has a
//! home router forward a UDP port to this host.
//!
//! One task per endpoint moves the packets, in batches: it runs the sans-IO engine of
//! `manypath-proto` over the sockets of `manypath-net`. It is spawned on the runtime that
//! [`Endpoint::bind`] is called in, and ends with the last handle and association.

mod admission;
mod association;
#[cfg(feature = "relay")]
mod direct;
mod driver;
mod endpoint;
mod error;
mod events;
mod inbox;
mod late;
mod memory;
mod options;
mod ranks;
mod reading;
mod relay_use;
mod roaming;
#[cfg(feature = "measure")]
mod routes;
mod security;
mod shared;
mod strangers;
mod stream;
mod uplinks;
mod wakers;

pub use association::Association;
pub use endpoint::Endpoint;
pub use error::{BindError, ConnectError, DirectPathError, OpenStreamError, SendError};
pub use events::EventStream;
pub use options::{ConnectTarget, DEFAULT_PORT, EndpointOptions, RelayedAddress};
pub use ranks::RankPlaceError;
#[cfg(feature = "relay")]
pub use relay_use::RelayUse;
#[cfg(feature = "measure")]
pub use routes::RouteWatch;
pub use security::Security;
pub use strangers::StrangerLimits;
pub use stream::{RecvStream, SendStream};

/// Measuring paths without an association: probes, and the routers on the way.
#[cfg(feature = "measure")]
pub mod measure {
    pub use manypath_net::{
        Leg, ProbeOptions, ProbedPath, Prober, Routes, Seen, Trace, TraceHop, TraceOptions,
        answers_from, route, traceroute,
    };
}

/// A UDP port that a home router forwards to this host: PCP, NAT-PMP, UPnP IGD.
#[cfg(feature = "port-mapping")]
pub mod port_mapping {
    pub use manypath_net::gateway_of;
    pub use manypath_net::port_mapping::{
        MappedBy, MappedPort, MappingState, NotMapped, PortMapping, is_reachable_from_elsewhere,
        is_shared,
    };
}

/// A relay for others: a TURN server (RFC 8656) with its sockets.
#[cfg(feature = "relay")]
pub mod relay {
    pub use manypath_net::{
        Limits, MeshRelay, PeerRules, RelayServer, RelayServerOptions, ServerConfig, ServerStats,
        StunPort, User,
    };
}

/// Policies of a program's own: the path of new data, the path of a retransmission, when dear paths
/// carry data, the congestion window, loss recovery, and what is sent twice.
///
/// A policy is one decision. It reads [views](policy::PathView) of the paths and returns a small
/// value; the engine acts on it. The task that drives the endpoint asks it for each packet or each
/// SACK, so it must neither block nor take long. Implement the trait, wrap it in a
/// [`Factory`](policy::Factory), and put that in the configuration:
///
/// ```
/// use manypath::policy::{Factory, PolicyCx, Scheduler};
/// use manypath::{Config, PathId};
///
/// /// The path with the shortest round-trip time that has room.
/// #[derive(Debug)]
/// struct Shortest;
///
/// impl Scheduler for Shortest {
///     fn choose(&mut self, cx: &mut PolicyCx<'_>) -> Option<PathId> {
///         let with_room = cx.paths.iter().filter(|path| path.usable && path.cwnd_space > 0);
///         with_room.min_by_key(|path| path.srtt).map(|path| path.id)
///     }
/// }
///
/// let mut config = Config::default();
/// config.scheduler = Factory::<dyn Scheduler>::new("shortest", |_| Box::new(Shortest))?;
/// config.validate()?;
/// # Ok::<(), manypath::config::ConfigError>(())
/// ```
///
/// `examples/own-policy` in the repository is a whole program.
pub mod policy {
    pub use manypath_proto::PathView;
    pub use manypath_proto::policy::cc::{
        AckFacts, CongestionControl, Limits, NeededFacts, PathWindow, Window,
    };
    pub use manypath_proto::policy::rank::{Ceiling, RankCx, RankPolicy};
    pub use manypath_proto::policy::recovery::{
        Exit, Flight, HeartbeatRules, LossRecovery, PathFacts, PathVerdict, ReportScope, Rfc9260,
        RoomRules, Rules, SackRules, Sfr, SfrCompares, Silence, T3Rules, T3Watches,
    };
    pub use manypath_proto::policy::redundant::{
        ChunkCopy, CopyTurn, Cover, FlightPath, Flights, NextLook, RedundancyPolicy, SentChunk,
    };
    pub use manypath_proto::policy::rtx::{LossCause, RtxCandidate, RtxPolicy};
    pub use manypath_proto::policy::sched::Scheduler;
    pub use manypath_proto::policy::stream_sched::{DEFAULT_PRIORITY, StreamScheduler, Turn};
    pub use manypath_proto::policy::{Factory, Needs, PolicyCx};
}

/// Key management: where the keys of protected associations come from.
pub mod keys {
    pub use manypath_keys::key_log::{
        KeyLineError, KeyLog, KeyLogError, KeyLogFile, NotOpened, Opener,
    };
    pub use manypath_keys::psk::{SecretTooShort, SharedKey};
    pub use manypath_keys::tls::{
        Certificates, ClientAuth, ConfigError, Fingerprint, FingerprintError, Identity,
        IdentityError, IdentityKind, PeerKeys, Roots, TlsKeys, rustls,
    };
    pub use manypath_proto::{
        Agreement, KeyAction, KeyFailure, KeyManagement, KeySession, Peer, Role, Roles,
    };
}

pub use bytes::Bytes;
pub use manypath_net::{
    BindError as SocketError, BindTo, InterfaceAddress, LeftOut, LinkKind, NotUsed, RELAY_OVERHEAD,
    Reachable, SendFailures, Uplink, Uplinks, addresses_of, interface_names, interfaces,
    is_link_local_v6, pair, preferred_source, reachable, unmapped,
};
#[cfg(feature = "relay")]
pub use manypath_net::{LookupError, Relay, RelayStatus, look_up_number};
pub use manypath_proto::{
    AddressChange, AddressError, AddressOutcome, AssocClosed, AssocId, AssocStats, AuthKeyError,
    AuthKeys, AuthReport, CHANGEABLE, CHANGEABLE_OF_PATHS, Config, ElectReason, Event, Instant,
    Message, MtuReason, PathId, PathRank, PathState, PathStats, Payload, PeerIdentity, RankError,
    ReconfigureError, RequestOutcome, RestoreReason, Rng, SendOptions, SharedEvidence, SharedSign,
    Ssn, StreamId, StreamRequest, SuppressReason, config, is_raw_ip, overlay, sizes,
};
