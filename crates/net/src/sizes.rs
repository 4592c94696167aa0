//! The packets that interfaces take, and sockets that let IP cut a packet into fragments.
//!
//! quinn-udp opens sockets so that packets have the DF bit and the kernel's own idea of a path's
//! MTU does not count (IP_PMTUDISC_PROBE): the engine finds the sizes. A packet that it cannot make
//! shorter is sent with that off.

use std::io;
use std::net::IpAddr;

use crate::sockets::Socket;

/// MTU of the interface of each address of this host, in bytes of an IP packet, loopback included.
/// Addresses whose MTU the system does not tell are missing.
pub fn interface_mtus() -> Vec<(IpAddr, usize)> {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    all.into_iter().filter_map(|i| Some((i.ip(), mtu_of(&i.name)?))).collect()
}

#[cfg(target_os = "linux")]
fn mtu_of(interface: &str) -> Option<usize> {
    if interface.contains('/') {
        return None; // a label that is no name of a directory
    }
    // An address label such as eth0:1 is of eth0.
    let device = interface.split(':').next().unwrap_or(interface);
    let text = std::fs::read_to_string(format!("/sys/class/net/{device}/mtu")).ok()?;
    text.trim().parse().ok().filter(|mtu| (68..=1 << 20).contains(mtu))
}

#[cfg(not(target_os = "linux"))]
fn mtu_of(_: &str) -> Option<usize> {
    None
}

/// The size to which fragments over IPv6 are cut, in bytes.
#[cfg(target_os = "linux")]
const FRAGMENT: nix::libc::c_int = manypath_proto::sizes::IPV6_MIN_MTU as nix::libc::c_int;

#[cfg(target_os = "linux")]
mod option {
    use nix::libc;

    /// The size to which this host cuts packets of a socket; 0 for what the route says.
    #[derive(Copy, Clone, Debug)]
    pub(super) struct Ipv6Mtu;

    nix::setsockopt_impl!(
        Ipv6Mtu,
        libc::IPPROTO_IPV6,
        libc::IPV6_MTU,
        libc::c_int,
        nix::sys::socket::sockopt::SetStruct<'_, libc::c_int>
    );
}

impl Socket {
    /// Sets whether IP may fragment packets sent from now on. Sends fail where the system cannot do
    /// that; then the packet is lost like any other that is too long.
    #[cfg(target_os = "linux")]
    pub(crate) fn let_fragment(&self, may: bool) -> io::Result<()> {
        use nix::sys::socket::{setsockopt, sockopt::Ipv6DontFrag};
        use rustix::net::sockopt::{self, Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery};
        if self.local.is_ipv4() {
            let mode = if may { Ipv4PathMtuDiscovery::DONT } else { Ipv4PathMtuDiscovery::PROBE };
            return Ok(sockopt::set_ip_mtu_discover(&self.io, mode)?);
        }
        let mode = if may { Ipv6PathMtuDiscovery::DONT } else { Ipv6PathMtuDiscovery::PROBE };
        sockopt::set_ipv6_mtu_discover(&self.io, mode)?;
        // Routers do not cut IPv6 packets: this host does, to what every link takes (RFC 8200 §5).
        setsockopt(&self.io, option::Ipv6Mtu, &if may { FRAGMENT } else { 0 })?;
        Ok(setsockopt(&self.io, Ipv6DontFrag, &!may)?)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn let_fragment(&self, _: bool) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn loopback_takes_long_packets() {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        let all = interface_mtus();
        let found = all.iter().find(|(ip, _)| *ip == loopback);
        assert!(found.is_some_and(|(_, mtu)| *mtu >= 1500), "{all:?}");
        assert_eq!((mtu_of("no-such0"), mtu_of("../net/lo")), (None, None));
    }
}
