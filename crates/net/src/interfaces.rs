//! The addresses of this host.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// One address of one interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct InterfaceAddress {
    /// The interface's name, such as `eth0`.
    pub name: String,
    /// The address.
    pub ip: IpAddr,
}

/// One address of this host, usable or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostAddress {
    /// The interface's name.
    pub(crate) name: String,
    /// The kernel's number of the interface; it changes when the interface is created again.
    pub(crate) index: u32,
    pub(crate) ip: IpAddr,
    has_no_scope: bool,
}

impl HostAddress {
    #[cfg(test)]
    pub(crate) fn new(name: &str, index: u32, ip: IpAddr) -> HostAddress {
        HostAddress { name: name.to_owned(), index, ip, has_no_scope: true }
    }

    /// True unless it is an IPv6 link-local address.
    pub(crate) fn is_usable(&self) -> bool {
        self.has_no_scope
    }
}

/// All addresses of all interfaces, in the order of the system.
pub(crate) fn host_addresses() -> io::Result<Vec<HostAddress>> {
    let all = if_addrs::get_if_addrs()?.into_iter().map(|i| HostAddress {
        index: i.index.unwrap_or(0),
        ip: i.ip(),
        has_no_scope: has_no_scope(&i),
        name: i.name,
    });
    Ok(all.collect())
}

/// The addresses of all interfaces that are up, without loopback and without IPv6 link-local ones
/// (those need a scope, and no peer could use them from elsewhere); IPv4 first, then by name. If
/// none is up, the addresses of all: an interface may work for a second before Linux calls it up.
pub fn interfaces() -> io::Result<Vec<InterfaceAddress>> {
    let all = if_addrs::get_if_addrs()?
        .into_iter()
        .filter(|i| !i.is_loopback() && has_no_scope(i))
        .map(|i| (i.is_oper_up(), InterfaceAddress { ip: i.ip(), name: i.name }))
        .collect();
    Ok(usable(all))
}

/// Of addresses, each with whether its interface is up, those to use in their order.
fn usable(mut all: Vec<(bool, InterfaceAddress)>) -> Vec<InterfaceAddress> {
    let any_up = all.iter().any(|(up, _)| *up);
    all.retain(|(up, _)| *up || !any_up);
    let mut found: Vec<_> = all.into_iter().map(|(_, address)| address).collect();
    found.sort_by(|a, b| (a.ip.is_ipv6(), a).cmp(&(b.ip.is_ipv6(), b)));
    found.dedup();
    found
}

/// False for IPv6 link-local addresses.
fn has_no_scope(address: &if_addrs::Interface) -> bool {
    address.ip().is_ipv4() || !address.is_link_local()
}

/// The addresses of the interface `name`, up or not, loopback included; `None` if there is no such
/// interface or it has no address.
pub fn addresses_of(name: &str) -> io::Result<Option<Vec<IpAddr>>> {
    let mut all: Vec<IpAddr> = if_addrs::get_if_addrs()?
        .into_iter()
        .filter(|i| i.name == name && has_no_scope(i))
        .map(|i| i.ip())
        .collect();
    all.sort_by_key(|ip| ip.is_ipv6());
    all.dedup();
    Ok((!all.is_empty()).then_some(all))
}

/// The name of the interface that has each address of this host, loopback and link-local ones
/// included; empty if the interfaces cannot be listed.
pub fn interface_names() -> BTreeMap<IpAddr, String> {
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    all.into_iter().map(|i| (i.ip(), i.name)).collect()
}

/// Any UDP port: routes do not depend on it, and an address of SCTP over IP has none.
const DISCARD: u16 = 9;

/// The local address that the kernel would send from to reach `remote`; an error if it has no route
/// there. No packet is sent.
pub fn preferred_source(remote: SocketAddr) -> io::Result<IpAddr> {
    let any: IpAddr = match remote {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let probe = UdpSocket::bind((any, 0))?;
    let mut probed = remote;
    probed.set_port(DISCARD);
    probe.connect(probed)?;
    Ok(probe.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_reached_from_loopback() {
        let remote = "127.0.0.1:9899".parse().unwrap();
        assert_eq!(preferred_source(remote).unwrap(), IpAddr::from([127, 0, 0, 1]));
    }

    #[test]
    fn interfaces_that_are_not_up_count_only_if_none_is() {
        let address = |name: &str, ip: &str| InterfaceAddress {
            name: name.to_owned(),
            ip: ip.parse().unwrap(),
        };
        let (a, b, c) = (address("a", "::2"), address("b", "10.0.0.1"), address("c", "10.0.0.2"));
        let some_up = vec![(true, a.clone()), (false, b.clone()), (true, c.clone())];
        assert_eq!(usable(some_up), [c.clone(), a.clone()], "up ones only, IPv4 first");
        let none_up = vec![(false, a.clone()), (false, c.clone()), (false, b.clone())];
        assert_eq!(usable(none_up), [b, c, a]);
    }

    #[test]
    fn the_list_leaves_loopback_out() {
        let list = interfaces().unwrap();
        assert!(list.iter().all(|i| !i.ip.is_loopback()), "{list:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_interface_is_found_by_name() {
        assert!(addresses_of("lo").unwrap().unwrap().contains(&IpAddr::from([127, 0, 0, 1])));
        assert_eq!(addresses_of("no-such-interface").unwrap(), None);
        assert_eq!(interface_names()[&IpAddr::from([127, 0, 0, 1])], "lo");
    }
}
