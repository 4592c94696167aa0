//! The sockets from which a router is asked: of the interface that leads to it.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};

use crate::address::is_link_local_v6;
use crate::interfaces::{host_addresses, preferred_source};

/// The port that routers announce a restart to (RFC 6886 §3.2.1, RFC 6887 §14.1.1).
const ANNOUNCEMENTS: u16 = 5350;

/// The local address to be mapped, and the router.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) local: SocketAddr,
    pub(super) gateway: IpAddr,
    /// The interface of the local address.
    device: Option<String>,
    /// The number of the interface, for link-local routers of IPv6.
    scope: u32,
}

impl Place {
    pub(super) fn new(local: SocketAddr, gateway: IpAddr) -> Place {
        let (mut local, gateway) = (crate::unmapped(local), gateway.to_canonical());
        if local.ip().is_unspecified()
            && let Ok(ip) = preferred_source(SocketAddr::new(gateway, super::pcp::PORT))
        {
            local.set_ip(ip);
        }
        let all = host_addresses().unwrap_or_default();
        let home = all.into_iter().find(|address| address.ip == local.ip());
        let scope = home.as_ref().map_or(0, |home| home.index);
        let device = if local.ip().is_loopback() { None } else { home.map(|home| home.name) };
        Place { local, gateway, device, scope }
    }

    /// False if nothing can be asked: without a port a request would be for all ports.
    pub(super) fn is_usable(&self) -> bool {
        self.local.port() != 0
            && !self.local.ip().is_unspecified()
            && self.local.is_ipv4() == self.gateway.is_ipv4()
    }

    /// The router at a port.
    pub(super) fn gateway_at(&self, port: u16) -> SocketAddr {
        match self.gateway {
            IpAddr::V6(ip) if is_link_local_v6(self.gateway) => {
                SocketAddrV6::new(ip, port, 0, self.scope).into()
            }
            ip => SocketAddr::new(ip, port),
        }
    }

    /// A UDP socket on the local address, with a port of its own.
    pub(super) fn udp(&self) -> io::Result<UdpSocket> {
        let address = SocketAddr::new(self.local.ip(), 0);
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        self.keep_to_device(&socket);
        socket.bind(&address.into())?;
        into_tokio(socket)
    }

    /// A UDP socket that only hears the router, at a port.
    pub(super) async fn udp_to_gateway(&self, port: u16) -> io::Result<UdpSocket> {
        let socket = self.udp()?;
        socket.connect(self.gateway_at(port)).await?;
        Ok(socket)
    }

    /// A TCP connection from the local address to the router.
    pub(super) async fn tcp_to_gateway(&self, port: u16) -> io::Result<TcpStream> {
        let address = SocketAddr::new(self.local.ip(), 0);
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        self.keep_to_device(&socket);
        socket.bind(&address.into())?;
        socket.set_nonblocking(true)?;
        TcpSocket::from_std_stream(socket.into()).connect(self.gateway_at(port)).await
    }

    /// A socket that hears what routers announce to all hosts of the network; other programs may
    /// hear it, too.
    pub(super) fn announcements(&self) -> io::Result<UdpSocket> {
        let IpAddr::V4(local) = self.local.ip() else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_reuse_address(true)?;
        #[cfg(all(unix, not(target_os = "linux")))]
        socket.set_reuse_port(true)?;
        self.keep_to_device(&socket);
        socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, ANNOUNCEMENTS)).into())?;
        // Every host is a member of it already; some systems want it said.
        let _ = socket.join_multicast_v4(&Ipv4Addr::new(224, 0, 0, 1), &local);
        into_tokio(socket)
    }

    /// Without permission the routes decide, which mostly lead to the same interface.
    #[cfg(target_os = "linux")]
    fn keep_to_device(&self, socket: &Socket) {
        if let Some(device) = &self.device {
            let _ = socket.bind_device(Some(device.as_bytes()));
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn keep_to_device(&self, _: &Socket) {}
}

fn into_tokio(socket: Socket) -> io::Result<UdpSocket> {
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket.into())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    #[test]
    fn a_place_without_a_port_or_of_two_families_is_not_asked() {
        let usable = |local: &str, gateway: &str| {
            Place::new(local.parse().unwrap(), gateway.parse().unwrap()).is_usable()
        };
        assert!(usable("127.0.0.1:9", "127.0.0.2"));
        assert!(usable("0.0.0.0:9", "127.0.0.2"), "the source is looked up");
        assert!(usable("[::ffff:127.0.0.1]:9", "127.0.0.2"));
        assert!(!usable("127.0.0.1:0", "127.0.0.2"));
        assert!(!usable("[::1]:9", "127.0.0.2"));
    }

    #[test]
    fn a_link_local_router_has_the_number_of_the_interface() {
        let mut place = Place::new("[::1]:9".parse().unwrap(), "fe80::1".parse().unwrap());
        place.scope = 7;
        assert_eq!(place.gateway_at(5351).to_string(), "[fe80::1%7]:5351");
        place.gateway = Ipv6Addr::LOCALHOST.into();
        assert_eq!(place.gateway_at(5351).to_string(), "[::1]:5351");
    }
}
