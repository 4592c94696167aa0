//! The forms of an address that mean the same one.

use std::net::{IpAddr, SocketAddr};

/// An IPv4 address that is written as an IPv6 one (`::ffff:192.0.2.1`, RFC 4291 §2.5.5.2) as the
/// IPv4 address that it is; any other address as it is. Sockets of IPv6 send and receive no IPv4
/// here, so that a path has one name.
pub fn unmapped(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip if ip == address.ip() => address,
        ip => SocketAddr::new(ip, address.port()),
    }
}

/// True for a link-local address of IPv6, which means a host only on one link (RFC 4291 §2.5.6).
pub fn is_link_local_v6(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
}
