//! The set of sockets of one endpoint.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::task::{Context, Poll};

use manypath_proto::is_raw_ip;
use quinn_udp::{UdpSockRef, UdpSocketState};
use socket2::SockRef;
use tokio::net::UdpSocket;

use crate::bind::{self, BindError, BindTo, Bound, Place, PlaceKind};
use crate::interfaces::{HostAddress, InterfaceAddress, preferred_source};
use crate::raw::{self, IcmpReport, RawIp, SctpPort};
use crate::refused::{Refused, SendFailures};
use crate::uplinks::reachable;

/// One socket and what quinn-udp knows of it.
#[derive(Debug)]
pub(crate) struct Socket {
    /// The type is that of UDP for raw sockets, too: quinn-udp and the runtime treat them alike.
    pub(crate) io: UdpSocket,
    pub(crate) state: UdpSocketState,
    /// Beside a raw socket, one that takes nothing: the kernel does not call SCTP unknown while
    /// buffers are full.
    pub(crate) _keeper: Option<socket2::Socket>,
    /// The bound address; unspecified for a socket on every address. The port of a raw socket is 0.
    pub(crate) local: SocketAddr,
    /// Where it was opened.
    pub(crate) place: Place,
    /// The kernel's number of its interface, if it is of one.
    pub(crate) interface: u32,
    /// Its address is not this host's any more.
    pub(crate) is_lost: bool,
    /// IP may cut all its packets.
    pub(crate) fragments: bool,
}

impl Socket {
    pub(crate) fn new(bound: Bound) -> Result<Socket, BindError> {
        let address = bound.local;
        let system = |source| BindError::System { address, source };
        let state = UdpSocketState::new(UdpSockRef::from(&bound.socket)).map_err(system)?;
        let io = UdpSocket::from_std(bound.socket).map_err(system)?;
        let place = bound.place;
        let (interface, is_lost, fragments) = (0, false, false);
        let _keeper = bound.keeper;
        Ok(Socket { io, state, _keeper, local: address, place, interface, is_lost, fragments })
    }

    pub(crate) fn is_wildcard(&self) -> bool {
        self.local.ip().is_unspecified()
    }

    /// True for a socket of SCTP over IP itself.
    pub(crate) fn is_raw(&self) -> bool {
        self.place.is_raw()
    }

    /// True if somebody reads from it.
    pub(crate) fn is_read(&self) -> bool {
        self.place.kind != PlaceKind::RawMute
    }

    /// True if IP may cut all its packets.
    pub(crate) fn fragments(&self) -> bool {
        self.fragments
    }

    /// Forgets what was concluded from failed sends (no GSO, no ECN).
    pub(crate) fn reset_state(&mut self) {
        if let Ok(state) = UdpSocketState::new(UdpSockRef::from(&self.io)) {
            self.state = state;
        }
        if self.fragments {
            let _ = self.let_fragment(true); // as when it was first asked for
        }
    }
}

/// The local UDP sockets of one endpoint, all on one port (RFC 6951 knows one encapsulation port a
/// host), each on an address, an interface, or everything; and raw sockets beside them, if SCTP
/// over IP itself is wanted.
#[derive(Debug)]
pub struct UdpSockets {
    pub(crate) sockets: Vec<Socket>,
    pub(crate) failures: SendFailures,
    /// Packets that were too long, since the driver last asked.
    pub(crate) refused: Vec<Refused>,
    /// IP may cut all packets of all sockets.
    lets_fragment: bool,
    bound: BoundAddresses,
    /// The common UDP port.
    pub(crate) port: u16,
    /// Set if there are raw sockets.
    pub(crate) raw: Option<Box<RawIp>>,
    /// The addresses of this host at the last look.
    pub(crate) seen: Option<Vec<HostAddress>>,
    /// Sockets on every address get others beside them for the uplinks of what is connected to.
    follows_uplinks: bool,
    notes: Vec<String>,
}

/// The addresses that the sockets of an endpoint are bound to, and what follows from them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundAddresses {
    list: Vec<SocketAddr>,
    /// Addresses of uplinks, whose sockets are beside one on every address.
    uplinks: Vec<SocketAddr>,
    port: u16,
    /// Each address is one of SCTP over IP itself, too.
    has_raw: bool,
}

impl BoundAddresses {
    /// The address of each UDP socket that this host has; the IP address is unspecified for a
    /// socket on every address.
    pub fn as_slice(&self) -> &[SocketAddr] {
        &self.list
    }

    /// The addresses of the uplinks that [`UdpSockets::open_uplinks`] opened sockets for.
    pub fn uplinks(&self) -> &[SocketAddr] {
        &self.uplinks
    }

    /// The common UDP port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// True if SCTP over IP itself is sent and taken at the same addresses.
    pub fn has_raw_ip(&self) -> bool {
        self.has_raw
    }

    /// The addresses that are one address each, those of SCTP over IP itself (with port 0)
    /// included.
    pub fn concrete_of_all(&self) -> Vec<SocketAddr> {
        let mut all: Vec<_> = self.concrete().collect();
        if self.has_raw {
            all.extend(self.concrete().map(over_ip));
        }
        all
    }

    /// Those that are one address each.
    pub fn concrete(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.list.iter().copied().filter(|a| !a.ip().is_unspecified())
    }

    fn wildcards(&self) -> impl Iterator<Item = SocketAddr> + '_ {
        self.list.iter().copied().filter(|a| a.ip().is_unspecified())
    }

    /// The addresses that this endpoint can be reached at: the bound ones, and for a socket on
    /// every address those that [`reachable`](crate::reachable) finds (loopback if there are none).
    pub fn reachable(&self) -> Vec<SocketAddr> {
        let mut list: Vec<_> = self.concrete().collect();
        if self.wildcards().next().is_none() {
            return list;
        }
        let up = reachable().unwrap_or_default().addresses;
        for any in self.wildcards() {
            let ips = up.iter().map(|i| i.ip).filter(|ip| ip.is_ipv6() == any.is_ipv6());
            list.extend(ips.map(|ip| SocketAddr::new(ip, any.port())));
        }
        if list.is_empty() {
            list.push(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), self.port()));
        }
        list
    }

    /// The addresses to send from when connecting to `remotes`: the bound ones; for a socket on
    /// every address, what the kernel prefers for each remote. Remotes without a UDP port are
    /// reached over IP itself.
    pub fn sources_for(&self, remotes: &[SocketAddr]) -> Vec<SocketAddr> {
        let (raw, udp): (Vec<_>, Vec<_>) = remotes.iter().partition(|remote| is_raw_ip(**remote));
        let mut list = Vec::new();
        if raw.is_empty() || !udp.is_empty() {
            list = self.udp_sources_for(&udp);
        }
        if self.has_raw && !raw.is_empty() {
            list.extend(self.udp_sources_for(&raw).into_iter().map(over_ip));
        }
        list
    }

    /// The UDP addresses at the IP addresses to send from.
    fn udp_sources_for(&self, remotes: &[SocketAddr]) -> Vec<SocketAddr> {
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

/// An address of SCTP over IP itself.
fn over_ip(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip(), 0)
}

impl UdpSockets {
    /// Opens a socket for each of `wanted` ([`BindTo::Any`] if there is none) on UDP port `port`, 0
    /// for one that is free on all of them. Must be called within a tokio runtime.
    pub fn bind(wanted: &[BindTo], port: u16) -> Result<UdpSockets, BindError> {
        let places = bind::places(wanted)?;
        let mut bound = bind::open(&places, port)?;
        let notes = bound.iter_mut().filter_map(|b| b.note.take()).collect();
        let list: Vec<_> = bound.iter().map(|b| b.local).collect();
        let port = list.first().map_or(0, SocketAddr::port);
        let follows_uplinks = wanted.is_empty() || wanted.contains(&BindTo::Auto);
        let sockets = bound.into_iter().map(Socket::new).collect::<Result<_, _>>()?;
        Ok(UdpSockets {
            sockets,
            failures: SendFailures::default(),
            refused: Vec::new(),
            lets_fragment: false,
            bound: BoundAddresses { list, uplinks: Vec::new(), port, has_raw: false },
            port,
            raw: None,
            seen: None,
            follows_uplinks,
            notes,
        })
    }

    /// Opens a raw socket beside each of the UDP sockets, at once and later: SCTP over IP itself
    /// (protocol 132) is sent and taken, too. They get all SCTP packets for their addresses, so the
    /// SCTP port must be one that no other stack of this host has. That is checked among endpoints
    /// of this crate. A port of 0 takes a free one; the answer is the port. Must be called within a
    /// tokio runtime.
    ///
    /// # Errors
    /// Without CAP_NET_RAW, on systems other than Linux, or if another endpoint has the port.
    pub fn add_raw_ip(&mut self, sctp_port: u16) -> Result<u16, BindError> {
        let ips: Vec<_> = self.sockets.iter().map(|s| s.local.ip()).collect();
        let places: Vec<_> = self.sockets.iter().map(|s| s.place.clone()).collect();
        let places: Vec<_> = places.into_iter().map(|place| place.raw_beside(&ips)).collect();
        let bound = bind::open_all(&places, 0)?;
        let port = SctpPort::take(sctp_port, &ips)?;
        let number = port.number;
        let notes = bound.iter().filter_map(|b| b.note.clone()).chain(raw::note_of_kernel());
        for note in notes.collect::<Vec<_>>() {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        for bound in bound {
            self.sockets.push(Socket::new(bound)?);
        }
        self.raw = Some(Box::new(RawIp { port, icmp: raw::IcmpSockets::open() }));
        self.bound.has_raw = true;
        self.keep_fragments();
        Ok(number)
    }

    /// The SCTP port of the raw sockets, if there are some.
    pub fn raw_ip_port(&self) -> Option<u16> {
        self.raw.as_ref().map(|raw| raw.port.number)
    }

    /// Reads ICMP messages about packets over IP itself. The task is woken when there are more.
    pub fn poll_icmp(&mut self, cx: &mut Context<'_>, out: &mut Vec<IcmpReport>) -> Poll<()> {
        self.raw.as_mut().map_or(Poll::Pending, |raw| raw.icmp.poll(cx, out))
    }

    /// The place of the socket at an address that is for UDP or for IP itself.
    pub(crate) fn place_for(&self, place: Place, is_raw: bool) -> Place {
        let udp: Vec<_> =
            self.sockets.iter().filter(|s| !s.is_raw()).map(|s| s.local.ip()).collect();
        if is_raw { place.raw_beside(&udp) } else { place }
    }

    /// The kinds of sockets at each address: UDP, and raw ones if there are some.
    pub(crate) fn kinds(&self) -> &'static [bool] {
        if self.raw.is_some() { &[false, true] } else { &[false] }
    }

    /// Lets IP cut all packets into fragments: for an engine that does not look for their size.
    pub fn let_fragment(&mut self) {
        self.lets_fragment = true;
        self.keep_fragments();
    }

    /// The same for sockets that were opened since, if it was asked for.
    pub(crate) fn keep_fragments(&mut self) {
        if self.lets_fragment {
            for socket in &mut self.sockets {
                socket.fragments = socket.let_fragment(true).is_ok();
            }
        }
    }

    /// The packets that were longer than their interface takes, since the last call; not all, if
    /// there were many.
    pub fn take_refused(&mut self) -> Vec<Refused> {
        std::mem::take(&mut self.refused)
    }

    /// The number of sockets; they are numbered from 0.
    pub fn count(&self) -> usize {
        self.sockets.len()
    }

    /// Notes for the user on how the sockets were opened, such as that one could not be kept to its
    /// interface.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The addresses the sockets are bound to.
    pub fn bound(&self) -> &BoundAddresses {
        &self.bound
    }

    /// Leaves those out whose address is gone.
    pub(crate) fn renew_bound(&mut self) {
        let present = self.sockets.iter().filter(|s| !s.is_lost && !s.is_raw());
        let (uplinks, others): (Vec<_>, Vec<_>) = present.partition(|s| s.place.is_uplink);
        self.bound.list = others.iter().map(|s| s.local).collect();
        self.bound.uplinks = uplinks.iter().map(|s| s.local).collect();
    }

    /// True if sockets for uplinks may be opened: it is bound by [`BindTo::Auto`].
    pub fn follows_uplinks(&self) -> bool {
        self.follows_uplinks
    }

    /// Opens sockets for uplinks that have none. One that cannot be opened is left to the socket on
    /// every address. Must be called within a tokio runtime.
    pub fn open_uplinks(&mut self, wanted: &[InterfaceAddress]) {
        if !self.follows_uplinks {
            return;
        }
        for InterfaceAddress { name, ip } in wanted {
            for &is_raw in self.kinds() {
                let is_there = |s: &Socket| {
                    s.is_raw() == is_raw && s.local.ip() == *ip && s.place.device.is_some()
                };
                if self.sockets.iter().any(is_there) {
                    continue;
                }
                let place = self.place_for(Place::of_uplink(*ip, name), is_raw);
                if let Ok(socket) = self.open_beside(&place) {
                    self.sockets.push(socket);
                }
            }
        }
        self.note_interfaces();
        self.keep_fragments();
        self.renew_bound();
    }

    /// Closes the sockets of uplinks whose address is not among these: what is sent from there
    /// leaves where the system's routes say from now on.
    pub fn keep_uplinks(&mut self, wanted: &[InterfaceAddress]) {
        let is_wanted = |s: &Socket| wanted.iter().any(|w| w.ip == s.local.ip());
        self.sockets.retain(|s| !s.place.is_uplink || is_wanted(s));
        self.renew_bound();
    }

    /// Opens a socket on a port that a socket on every address has.
    pub(crate) fn open_beside(&self, place: &Place) -> Result<Socket, BindError> {
        let any = || self.sockets.iter().filter(|s| s.is_wildcard() && !s.is_raw());
        any().for_each(|s| drop(bind::share_port(SockRef::from(&s.io), true)));
        let opened = bind::open_one(place, self.port).and_then(Socket::new);
        any().for_each(|s| drop(bind::share_port(SockRef::from(&s.io), false)));
        opened
    }

    /// True if `local` is sent from by a socket on every address.
    pub fn is_on_any(&self, local: SocketAddr) -> bool {
        self.socket_for(local).is_some_and(|index| self.sockets[index].is_wildcard())
    }

    /// The number of the socket that sends from `local`: the one bound to it, or else one on every
    /// address of its family; a raw one if the port is 0.
    pub fn socket_for(&self, local: SocketAddr) -> Option<usize> {
        let fits = |s: &Socket| s.is_raw() == is_raw_ip(local);
        let at = |s: &Socket| fits(s) && s.local.ip() == local.ip();
        let present = self.sockets.iter().position(|s| !s.is_lost && at(s));
        let exact = present.or_else(|| self.sockets.iter().position(at));
        exact.or_else(|| {
            self.sockets
                .iter()
                .position(|s| fits(s) && s.is_wildcard() && s.local.is_ipv6() == local.is_ipv6())
        })
    }

    /// The most packets one [`Outgoing`](crate::Outgoing) batch may hold: 1 where the system or a
    /// driver does not segment (GSO).
    pub fn max_segments(&self) -> usize {
        self.sockets.iter().map(|s| s.state.max_gso_segments()).max().unwrap_or(1)
    }

    /// Waits until socket `index` takes another batch.
    pub fn poll_writable(&self, index: usize, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.sockets[index].io.poll_send_ready(cx)
    }

    /// Packets that could not be sent so far.
    pub fn send_failures(&self) -> SendFailures {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopback() -> InterfaceAddress {
        InterfaceAddress { name: "lo".to_owned(), ip: Ipv4Addr::LOCALHOST.into() }
    }

    #[tokio::test]
    #[cfg(target_os = "linux")]
    async fn an_uplink_has_the_port_of_the_socket_on_every_address_and_gives_it_back() {
        let mut sockets = UdpSockets::bind(&[BindTo::Auto], 0).unwrap();
        let (any, port) = (sockets.count(), sockets.bound().port());
        let local = SocketAddr::new(loopback().ip, port);
        assert!(sockets.is_on_any(local));
        sockets.open_uplinks(&[loopback()]);
        assert_eq!(sockets.bound().uplinks(), [local]);
        assert!(!sockets.is_on_any(local), "its own socket sends from there");
        assert_eq!(sockets.bound().as_slice().len(), any, "the others are as they were");

        let in_use = UdpSockets::bind(&[BindTo::Any], port).err().unwrap();
        assert!(matches!(in_use, BindError::InUse(_)), "nobody else may share it: {in_use}");

        sockets.keep_uplinks(&[]);
        assert_eq!((sockets.count(), sockets.is_on_any(local)), (any, true));
    }

    #[tokio::test]
    async fn sockets_that_were_named_get_no_uplinks() {
        let mut sockets = UdpSockets::bind(&[BindTo::Any], 0).unwrap();
        let before = sockets.count();
        sockets.open_uplinks(&[loopback()]);
        assert_eq!(sockets.count(), before);
    }
}
