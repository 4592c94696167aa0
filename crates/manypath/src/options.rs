//! Options of endpoints and connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use manypath_net::BindTo;
#[cfg(feature = "relay")]
use manypath_net::Relay;
use manypath_proto::{AuthKeys, Config, PathRank};

#[cfg(feature = "relay")]
use crate::relay_use::RelayUse;
use crate::security::Security;
use crate::strangers::StrangerLimits;

/// The UDP port of SCTP encapsulation (RFC 6951 §5.1), and our SCTP port.
pub const DEFAULT_PORT: u16 = 9899;

/// How to open an [`Endpoint`](crate::Endpoint).
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    /// Transport parameters of all its associations. The default is that of the `manypath` command
    /// ([`Config::default`]).
    pub config: Arc<Config>,
    /// How its associations are protected, but for those whose [target](ConnectTarget::security)
    /// says otherwise.
    pub security: Security,
    /// Keys by which its associations authenticate chunks (RFC 4895), if the parameter
    /// `authentication` is on and they are not protected: in the beginning the empty key 0.
    pub auth_keys: AuthKeys,
    /// Addresses and interfaces to bind to, one UDP socket each; an empty list means
    /// [`BindTo::Auto`]: a client has paths from every interface with a route to the peer. With
    /// others, a client has a path per entry, as far as the peer's addresses allow.
    pub bind: Vec<BindTo>,
    /// Ranks of the paths from these addresses and interfaces: which paths carry data before they
    /// do. Of the sockets in `bind`, or of any address of this host; the paths from others are
    /// normal. [`set_rank`](crate::Endpoint::set_rank) changes them later.
    pub ranks: Vec<(BindTo, PathRank)>,
    /// UDP port of all the sockets; 0 takes one that is free on all.
    pub udp_port: u16,
    /// TURN servers (RFC 8656) through which associations that this endpoint opens have further
    /// paths, one each, beside the direct ones. The endpoint asks them for addresses when it is
    /// bound, and a path comes when its relay is ready; a relay that is not reached holds nothing
    /// up. Packets are 4 bytes shorter than `mtu` would allow, for the header that they have up to
    /// a relay.
    ///
    /// An endpoint that [accepts](Self::accept) is reached through them, too, at the addresses that
    /// [`relays`](crate::Endpoint::relays) tells. Packets to a relay are 36 bytes shorter then, 48
    /// to an IPv6 one: so much more have those to peers without a channel (RFC 8656 §11.1).
    #[cfg(feature = "relay")]
    pub relays: Vec<Relay>,
    /// Takes further relays that those in `relays` know of, with the same user and password, up to
    /// eight in all: also those that join later. One that is dead and that no relay lists any more
    /// is left.
    #[cfg(feature = "relay")]
    pub relay_peers: bool,
    /// Asks each relay for a number, under which others find this endpoint at the relay
    /// ([`look_up_number`](crate::look_up_number)), if it [accepts](Self::accept):
    /// [`RelayStatus::number`](crate::RelayStatus::number). A number is short, so that a person can
    /// tell it to another one, and no secret.
    #[cfg(feature = "relay")]
    pub relay_numbers: bool,
    /// Looks for direct paths to peers that a relay connects this endpoint with: those that come
    /// through its own `relays`, if it accepts, and those with [relayed
    /// addresses](ConnectTarget::relayed). Peers learn the addresses of this host. Paths through
    /// relays carry data only while no direct one works.
    #[cfg(feature = "relay")]
    pub direct_paths: bool,
    /// The part that relays play.
    #[cfg(feature = "relay")]
    pub relay_use: RelayUse,
    /// Makes sockets and paths follow this host's network: addresses that come and go, interfaces
    /// that are created again, routes. Off, everything stays as it was when the endpoint was bound,
    /// only the application [adds](crate::Association::add_path) and removes paths, and
    /// [`BindTo::Auto`] means [`BindTo::Any`]. Routes and addresses themselves are never touched.
    pub follow_network: bool,
    /// SCTP port, 1 to 65535. It is inside the packets; any number will do as long as peers know
    /// it. 0 takes [`DEFAULT_PORT`], or with `raw_ip` one that is free, from 49152 to 65535.
    pub sctp_port: u16,
    /// Sends and takes SCTP over IP itself (protocol 132), too, beside UDP: at the same addresses,
    /// without UDP ports. Remote addresses with port 0 are reached in this way, and peers are
    /// answered as they ask (RFC 6951 §5.4). Packets have 8 bytes more for data.
    ///
    /// Needs Linux and CAP_NET_RAW when the endpoint is bound. All raw sockets of a host see all
    /// SCTP packets, so the SCTP port must be this endpoint's alone; another endpoint of this crate
    /// that has it is an error. Packets to other SCTP ports are not answered.
    pub raw_ip: bool,
    /// Lets peers open associations.
    pub accept: bool,
    /// Associations that peers have opened and that wait for [`accept`](crate::Endpoint::accept),
    /// at most; further ones are aborted with a reason that says so.
    pub accept_backlog: usize,
    /// Limits on peers that opened an association and were not
    /// [admitted](crate::Association::admit) yet; `None` takes every peer for one that is known. An
    /// application that sets them must admit its peers.
    pub strangers: Option<StrangerLimits>,
    /// Associations at a time, at most.
    pub max_associations: usize,
    /// Memory, in bytes, that the buffers of all its associations may grow by beyond
    /// `receive_buffer_initial` and `send_buffer_initial`. `None`: a quarter of what the host has
    /// free when the endpoint is bound.
    pub buffer_reserve: Option<usize>,
}

impl EndpointOptions {
    /// Accepts associations on port 9899 of every address.
    pub fn server(security: impl Into<Security>) -> EndpointOptions {
        let client = EndpointOptions::client(security);
        EndpointOptions { udp_port: DEFAULT_PORT, sctp_port: DEFAULT_PORT, accept: true, ..client }
    }

    /// Opens associations only, from a free port of every address.
    pub fn client(security: impl Into<Security>) -> EndpointOptions {
        EndpointOptions {
            config: Arc::new(Config::default()),
            security: security.into(),
            auth_keys: AuthKeys::default(),
            bind: Vec::new(),
            ranks: Vec::new(),
            udp_port: 0,
            #[cfg(feature = "relay")]
            relays: Vec::new(),
            #[cfg(feature = "relay")]
            relay_peers: true,
            #[cfg(feature = "relay")]
            relay_numbers: false,
            #[cfg(feature = "relay")]
            direct_paths: true,
            #[cfg(feature = "relay")]
            relay_use: RelayUse::Beside,
            follow_network: true,
            sctp_port: 0,
            raw_ip: false,
            accept: false,
            accept_backlog: 128,
            strangers: None,
            max_associations: 4096,
            buffer_reserve: None,
        }
    }
}

/// Whom to connect to.
#[derive(Clone, Debug)]
pub struct ConnectTarget {
    /// The peer's UDP addresses; the first is tried first, and `::ffff:192.0.2.1` is 192.0.2.1.
    /// They are matched with the local ones as [`pair`](crate::pair) says. An address with port 0
    /// is reached over IP itself, by an endpoint with [`EndpointOptions::raw_ip`].
    pub remotes: Vec<SocketAddr>,
    /// Addresses that relays gave the peer; these come first, as they are reached from everywhere.
    pub relayed: Vec<RelayedAddress>,
    /// The peer's SCTP port.
    pub sctp_port: u16,
    /// How the association is protected; `None`: as the endpoint's are.
    pub security: Option<Security>,
    /// The time within which the association must be open, and its peer have shown its keys if it
    /// is protected. It counts from the call. The error of an attempt that takes longer says how
    /// far it came. `None`: as long as the configuration allows (`max_init_retransmits`,
    /// `key_timeout`).
    pub limit: Option<Duration>,
}

impl ConnectTarget {
    /// A peer with these UDP addresses and SCTP port 9899.
    pub fn new(remotes: impl IntoIterator<Item = SocketAddr>) -> ConnectTarget {
        let remotes = remotes.into_iter().collect();
        let (relayed, sctp_port) = (Vec::new(), DEFAULT_PORT);
        ConnectTarget { remotes, relayed, sctp_port, security: None, limit: None }
    }

    /// This peer, with further addresses that relays gave it.
    #[must_use]
    pub fn through(self, relayed: impl IntoIterator<Item = RelayedAddress>) -> ConnectTarget {
        ConnectTarget { relayed: relayed.into_iter().collect(), ..self }
    }

    /// The same peer, with a limit in time.
    #[must_use]
    pub fn within(self, limit: Duration) -> ConnectTarget {
        ConnectTarget { limit: Some(limit), ..self }
    }
}

/// An address that a relay gave a peer: packets to it come to the peer through the relay (RFC
/// 8656).
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelayedAddress {
    /// The relayed transport address.
    pub address: SocketAddr,
    /// The UDP address of the relay itself, where it answers STUN requests (RFC 8489).
    pub relay: SocketAddr,
}

impl From<Vec<SocketAddr>> for ConnectTarget {
    fn from(remotes: Vec<SocketAddr>) -> ConnectTarget {
        ConnectTarget::new(remotes)
    }
}

impl From<SocketAddr> for ConnectTarget {
    fn from(remote: SocketAddr) -> ConnectTarget {
        ConnectTarget::new([remote])
    }
}
