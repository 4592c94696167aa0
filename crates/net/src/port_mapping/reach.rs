//! Addresses that peers elsewhere can reach.

use std::net::{IpAddr, Ipv4Addr};

/// True for an address of the space that carriers share between their NATs and customers (RFC
/// 6598), or of the other end of DS-Lite (RFC 7335).
pub fn is_shared(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            (a == 100 && b & 0xc0 == 64) || [a, b, c] == [192, 0, 0]
        }
        IpAddr::V6(_) => false,
    }
}

/// True unless the address has a meaning only within some network: private, shared, link-local,
/// loopback, multicast or reserved (RFC 6890).
pub fn is_reachable_from_elsewhere(ip: IpAddr) -> bool {
    match ip.to_canonical() {
        IpAddr::V4(v4) => is_public(v4) && !is_shared(ip),
        IpAddr::V6(ip) => {
            !ip.is_unspecified()
                && !ip.is_loopback()
                && !ip.is_multicast()
                && !ip.is_unicast_link_local()
                && !ip.is_unique_local()
        }
    }
}

fn is_public(ip: Ipv4Addr) -> bool {
    let [first, ..] = ip.octets();
    // 0/8 is this network, 240/4 is reserved.
    let is_reserved = first == 0 || first >= 240;
    !is_reserved
        && !ip.is_private()
        && !ip.is_loopback()
        && !ip.is_link_local()
        && !ip.is_multicast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_and_shared_addresses_are_of_no_use_to_peers_elsewhere() {
        for (text, is_reachable) in [
            ("203.0.113.7", true),
            ("100.63.255.255", true),
            ("100.64.0.1", false),
            ("100.127.255.255", false),
            ("100.128.0.0", true),
            ("10.0.0.1", false),
            ("172.16.0.1", false),
            ("192.168.1.1", false),
            ("192.0.0.2", false),
            ("169.254.1.1", false),
            ("127.0.0.1", false),
            ("0.0.0.0", false),
            ("224.0.0.1", false),
            ("255.255.255.255", false),
            ("::ffff:10.0.0.1", false),
            ("2001:db8::1", true),
            ("fd00::1", false),
            ("fe80::1", false),
            ("::", false),
        ] {
            assert_eq!(is_reachable_from_elsewhere(text.parse().unwrap()), is_reachable, "{text}");
        }
        assert!(is_shared("100.64.0.1".parse().unwrap()));
        assert!(!is_shared("192.168.0.1".parse().unwrap()));
    }
}
