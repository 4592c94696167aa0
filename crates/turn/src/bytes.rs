//! Bytes of our own attributes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The byte before an IPv4 address, and before an IPv6 address.
const IPV4: u8 = 1;
const IPV6: u8 = 2;

/// Takes the next bytes off.
pub(crate) fn take<'a, const N: usize>(bytes: &mut &'a [u8]) -> Option<&'a [u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(first)
}

/// Takes an address off, behind the byte for its family. `None` if there is no whole one.
pub(crate) fn take_ip(family: u8, bytes: &mut &[u8]) -> Option<IpAddr> {
    match family {
        IPV4 => Some(Ipv4Addr::from(*take(bytes)?).into()),
        IPV6 => Some(Ipv6Addr::from(*take::<16>(bytes)?).into()),
        _ => None,
    }
}

/// Appends an address, with a byte for its family (1: IPv4, 2: IPv6).
pub(crate) fn push_ip(bytes: &mut Vec<u8>, ip: IpAddr) {
    match ip {
        IpAddr::V4(ip) => {
            bytes.push(IPV4);
            bytes.extend(ip.octets());
        }
        IpAddr::V6(ip) => {
            bytes.push(IPV6);
            bytes.extend(ip.octets());
        }
    }
}
