//! The set of sockets of one endpoint.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::task::{Context, Poll};

use quinn_udp::{UdpSockRef, UdpSocketState};
use tokio::net::UdpSocket;

use crate::bind::{self, BindError, BindTo, Bound};
use crate::interfaces::{self, preferred_source};
use crate::send::SendFailures;

/// One socket and what quinn-udp knows of it.
#[derive(Debug)]
pub(crate) struct Socket {
    pub(crate) io: UdpSocket,
    pub(crate) state: UdpSocketState,
    /// The bound address; unspecified for a socket on every address.
    pub(crate) local: SocketAddr,
}

impl Socket {
    fn new(bound: Bound) -> Result<Socket, BindError> {
        let address = bound.local;
        let system = |source| BindError::System { address, source };
        let state = UdpSocketState::new(UdpSockRef::from(&bound.socket)).map_err(system)?;
        let io = UdpSocket::from_std(bound.socket).map_err(system)?;
        Ok(Socket { io, state, local: address })
    }

    pub(crate) fn is_wildcard(&self) -> bool {
        self.local.ip().is_unspecified()
    }

    /// Forgets what was concluded from failed sends (no GSO, no ECN).
    pub(crate) fn reset_state(&mut self) {
        if let Ok(state) = UdpSocketState::new(UdpSockRef::from(&self.io)) {
            self.state = state;
        }
    }
}

/// The local UDP sockets of one endpoint, all on one port (RFC 6951 knows one encapsulation port a
/// host), each on an address, an interface, or everything.
#[derive(Debug)]
pub struct UdpSockets {
    pub(crate) sockets: Vec<Socket>,
    pub(crate) failures: SendFailures,
    bound: BoundAddresses,
    notes: Vec<String>,
}

/// The addresses that the sockets of an endpoint are bound to, and what follows from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundAddresses(Vec<SocketAddr>);

impl BoundAddresses {
    /// One per socket; the IP address is unspecified for a socket on every address.
    pub fn as_slice(&self) -> &[SocketAddr] {
        &self.0
    }

    /// The common UDP port.
    pub fn port(&self) -> u16 {
        self.0.first().map_or(0, SocketAddr::port)
    }

    /// Those that are one address each.
    pub fn concrete(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.0.iter().copied().filter(|a| !a.ip().is_unspecified())
    }

    fn wildcards(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.0.iter().copied().filter(|a| a.ip().is_unspecified())
    }

    /// The addresses that this endpoint can be reached at: the bound ones, and for a socket on every
    /// address those of the interfaces that are up now (loopback if there are none).
    pub fn reachable(&self) -> Vec<SocketAddr> {
        let mut list: Vec<_> = self.concrete().collect();
        let up = interfaces::interfaces().unwrap_or_default();
        for any in self.wildcards() {
            let ips = up.iter().map(|i| i.ip).filter(|ip| ip.is_ipv6() == any.is_ipv6());
            list.extend(ips.map(|ip| SocketAddr::new(ip, any.port())));
        }
        if list.is_empty() {
            list.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), self.port()));
        }
        list
    }

    /// The addresses to send from when connecting to `remotes`: the bound ones; for a socket on every
    /// address, what the kernel prefers for each remote.
    pub fn sources_for(&self, remotes: &[SocketAddr]) -> Vec<SocketAddr> {
        let mut list: Vec<_> = self.concrete().collect();
        for any in self.wildcards() {
            for &remote in remotes.iter().filter(|r| r.is_ipv6() == any.is_ipv6()) {
                let Ok(ip) = preferred_source(remote) else { continue };
                let local = SocketAddr::new(ip, any.port());
                if !list.contains(&local) {
                    list.push(local);
                }
            }
        }
        list
    }
}

impl UdpSockets {
    /// Opens a socket for each of `wanted` ([`BindTo::Any`] if there is none) on UDP port `port`, 0 for
    /// one that is free on all of them. Must be called within a tokio runtime.
    pub fn bind(wanted: &[BindTo], port: u16) -> Result<UdpSockets, BindError> {
        let places = bind::places(wanted)?;
        let mut bound = bind::open(&places, port)?;
        let notes = bound.iter_mut().filter_map(|b| b.note.take()).collect();
        let addresses = BoundAddresses(bound.iter().map(|b| b.local).collect());
        let sockets = bound.into_iter().map(Socket::new).collect::<Result<_, _>>()?;
        Ok(UdpSockets { sockets, failures: SendFailures::default(), bound: addresses, notes })
    }

    /// The number of sockets; they are numbered from 0.
    pub fn count(&self) -> usize {
        self.sockets.len()
    }

    /// What a user should know of the way the sockets were opened, such as that one could not be kept
    /// to its interface.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The addresses the sockets are bound to.
    pub fn bound(&self) -> &BoundAddresses {
        &self.bound
    }

    /// The number of the socket that sends from `local`: the one bound to it, or else one on every
    /// address of its family.
    pub fn socket_for(&self, local: SocketAddr) -> Option<usize> {
        let exact = self.sockets.iter().position(|s| s.local.ip() == local.ip());
        exact.or_else(|| {
            self.sockets
                .iter()
                .position(|s| s.is_wildcard() && s.local.is_ipv6() == local.is_ipv6())
        })
    }

    /// The most packets one [`Outgoing`](crate::Outgoing) batch may hold: 1 where the system or a driver
    /// does not segment (GSO).
    pub fn max_segments(&self) -> usize {
        self.sockets.iter().map(|s| s.state.max_gso_segments()).max().unwrap_or(1)
    }

    /// Waits until socket `index` takes another batch.
    pub fn poll_writable(&self, index: usize, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sockets[index].io.poll_send_ready(cx)
    }

    /// What could not be sent so far.
    pub fn send_failures(&self) -> SendFailures {
        self.failures
    }
}
