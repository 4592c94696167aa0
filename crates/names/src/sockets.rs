//! A socket on each interface and IP version of this host.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::task::Poll;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use tokio::io::ReadBuf;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::PORT;
use crate::announcer::Link;

/// The groups of multicast DNS (RFC 6762, section 3).
const GROUP_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);
const GROUP_V6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb);
/// RFC 6762, section 11.
const TTL: u32 = 255;
/// Links that are used. Hosts with containers have many.
const LINKS_MAX: usize = 64;
/// How long a datagram may wait for its interface. A lost one is repeated, or asked for.
const SEND_TIME_MAX: Duration = Duration::from_millis(100);
/// Errors of a socket in a row before the next one gets its turn.
const ERRORS_MAX: usize = 4;

/// The place of a socket.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Place {
    /// The source of IPv4.
    v4: Option<Ipv4Addr>,
    is_loopback: bool,
}

/// Sockets on all interfaces.
#[derive(Debug)]
pub(crate) struct Network {
    sockets: BTreeMap<Link, (Place, UdpSocket)>,
    /// The link that is read next: links take turns, so that a busy one does not hide the others.
    next: usize,
}

/// A datagram that came.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Received {
    pub(crate) link: Link,
    pub(crate) is_loopback: bool,
    pub(crate) length: usize,
}

impl Network {
    /// Opens a socket on every interface that takes one. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If none takes one: the first reason.
    pub(crate) fn open() -> io::Result<Network> {
        let mut network = Network { sockets: BTreeMap::new(), next: 0 };
        match network.refresh() {
            Err(error) if network.sockets.is_empty() => Err(error),
            _ => Ok(network),
        }
    }

    /// Follows the interfaces and addresses of this host.
    ///
    /// # Errors
    /// The first reason for which an interface has no socket. Many take none, and others work.
    pub(crate) fn refresh(&mut self) -> io::Result<()> {
        let places = places()?;
        self.sockets.retain(|link, (place, _)| places.get(link) == Some(place));
        let mut result = Ok(());
        for (link, place) in places {
            if self.sockets.contains_key(&link) || self.sockets.len() >= LINKS_MAX {
                continue;
            }
            match open(link, place) {
                Ok(socket) => drop(self.sockets.insert(link, (place, socket))),
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }

    /// The links that have a socket.
    pub(crate) fn links(&self) -> Vec<Link> {
        self.sockets.keys().copied().collect()
    }

    /// The next datagram of any link. One that is longer than the buffer is cut off.
    pub(crate) async fn receive(&mut self, buffer: &mut [u8]) -> Received {
        let count = self.sockets.len();
        self.next = if self.next + 1 < count { self.next + 1 } else { 0 };
        let first = self.next;
        poll_fn(|cx| {
            let in_turn = self.sockets.iter().skip(first).chain(self.sockets.iter().take(first));
            for (&link, (place, socket)) in in_turn {
                for _ in 0..ERRORS_MAX {
                    let mut into = ReadBuf::new(buffer);
                    match socket.poll_recv_from(cx, &mut into) {
                        Poll::Ready(Ok(_)) => {
                            let length = into.filled().len();
                            let is_loopback = place.is_loopback;
                            return Poll::Ready(Received { link, is_loopback, length });
                        }
                        // Of a datagram that was sent before.
                        Poll::Ready(Err(_)) => {}
                        Poll::Pending => break,
                    }
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Sends a datagram to everybody on a link.
    pub(crate) async fn send(&self, link: Link, datagram: &[u8]) {
        let Some((_, socket)) = self.sockets.get(&link) else { return };
        let _ = timeout(SEND_TIME_MAX, socket.send_to(datagram, group(link))).await;
    }
}

/// The group on a link.
fn group(link: Link) -> SocketAddr {
    if link.is_v6 {
        SocketAddrV6::new(GROUP_V6, PORT, 0, link.index).into()
    } else {
        (GROUP_V4, PORT).into()
    }
}

/// The places for sockets.
fn places() -> io::Result<BTreeMap<Link, Place>> {
    let mut places = BTreeMap::new();
    for interface in if_addrs::get_if_addrs()? {
        let (Some(index), is_loopback) = (interface.index, interface.is_loopback()) else {
            continue;
        };
        // The first address of an interface is what it sends from.
        let (is_v6, v4) = match interface.ip() {
            IpAddr::V4(ip) => (false, Some(ip)),
            IpAddr::V6(_) => (true, None),
        };
        places.entry(Link { index, is_v6 }).or_insert(Place { v4, is_loopback });
    }
    Ok(places)
}

fn open(link: Link, place: Place) -> io::Result<UdpSocket> {
    let Link { index, is_v6 } = link;
    let domain = if is_v6 { Domain::IPV6 } else { Domain::IPV4 };
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?;
    // Other programs of this host use the port as well, such as Avahi. Not SO_REUSEPORT on Linux:
    // it would make our sockets a group, of which any may get what came for the link of another.
    socket.set_reuse_address(true)?;
    #[cfg(all(unix, not(target_os = "linux")))]
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    if is_v6 {
        socket.set_only_v6(true)?;
        socket.set_multicast_hops_v6(TTL)?;
        socket.set_multicast_if_v6(index)?;
        #[cfg(target_os = "linux")]
        socket.set_multicast_all_v6(false)?;
    } else {
        socket.set_multicast_ttl_v4(TTL)?;
        // Otherwise each socket would get what comes on the interfaces of all others.
        #[cfg(target_os = "linux")]
        socket.set_multicast_all_v4(false)?;
    }
    socket.bind(&SockAddr::from(bind_to(link)))?;
    match place.v4 {
        Some(ip) => {
            socket.set_multicast_if_v4(&ip)?;
            join_v4(&socket, index, ip)?;
        }
        None => socket.join_multicast_v6(&GROUP_V6, index)?,
    }
    UdpSocket::from_std(socket.into())
}

#[cfg(unix)]
fn join_v4(socket: &Socket, index: u32, _ip: Ipv4Addr) -> io::Result<()> {
    // By its number: several interfaces may have one address.
    socket.join_multicast_v4_n(&GROUP_V4, &socket2::InterfaceIndexOrAddress::Index(index))
}

#[cfg(not(unix))]
fn join_v4(socket: &Socket, _index: u32, ip: Ipv4Addr) -> io::Result<()> {
    socket.join_multicast_v4(&GROUP_V4, &ip)
}

/// The group: so it gets what is sent to that only, and takes no datagrams from other programs,
/// which are sent to the port of this host.
#[cfg(unix)]
fn bind_to(link: Link) -> SocketAddr {
    group(link)
}

/// Other systems allow addresses of the host only.
#[cfg(not(unix))]
fn bind_to(link: Link) -> SocketAddr {
    if link.is_v6 {
        (Ipv6Addr::UNSPECIFIED, PORT).into()
    } else {
        (Ipv4Addr::UNSPECIFIED, PORT).into()
    }
}
