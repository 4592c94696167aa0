//! Where a relay forwards to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// The peers' addresses to which a relay forwards.
///
/// By default these are public ones only. A relay is inside some network, often beside services
/// that trust every host there. Forwarding to loopback or private addresses would give its users,
/// who are outside, access to these services. An operator opens further ranges by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerRules {
    /// Ranges that are forwarded to although they are not public.
    pub allow: Vec<Range>,
}

/// A range of addresses, written `10.0.0.0/8` or as one address.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Range {
    start: IpAddr,
    bits: u8,
}

impl FromStr for Range {
    type Err = String;

    fn from_str(text: &str) -> Result<Range, String> {
        let wrong =
            || format!("{text:?} is not a range of addresses such as 10.0.0.0/8 or fd00::/8");
        let (ip, bits) = match text.split_once('/') {
            Some((ip, bits)) => (ip, Some(bits.parse::<u8>().map_err(|_| wrong())?)),
            None => (text, None),
        };
        let start: IpAddr = ip.parse().map_err(|_| wrong())?;
        let most = if start.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        if bits > most {
            return Err(wrong());
        }
        // IPv4 addresses written as IPv6 give a range of IPv4.
        Ok(match (start.to_canonical(), bits.checked_sub(96)) {
            (canonical, Some(bits)) if canonical != start => Range { start: canonical, bits },
            _ => Range { start, bits },
        })
    }
}

impl Range {
    fn contains(&self, ip: IpAddr) -> bool {
        let differ = |a: u128, b: u128, size: u32| {
            let shift = size - u32::from(self.bits);
            a.checked_shr(shift).unwrap_or(0) != b.checked_shr(shift).unwrap_or(0)
        };
        match (self.start, ip) {
            (IpAddr::V4(a), IpAddr::V4(b)) => !differ(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => !differ(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

impl PeerRules {
    /// True if the relay forwards to `ip`.
    pub fn permits(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        is_public(ip) || (is_unicast(ip) && self.allow.iter().any(|range| range.contains(ip)))
    }
}

/// True if a relay at `by` may lead those who use it to another one at `other`. A public relay
/// leads to public ones only: a private address is one of the network of whoever follows. A
/// link-local address means nothing elsewhere, and loopback is every host's own.
pub fn may_lead_to(by: IpAddr, other: IpAddr) -> bool {
    let (by, other) = (by.to_canonical(), other.to_canonical());
    let is_link_local = match other {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    let is_near = !is_public(by) && (by.is_loopback() || !other.is_loopback());
    is_public(other) || (is_near && is_unicast(other) && !is_link_local)
}

fn is_unicast(ip: IpAddr) -> bool {
    let broadcast = ip == IpAddr::V4(Ipv4Addr::BROADCAST);
    !ip.is_unspecified() && !ip.is_multicast() && !broadcast
}

/// Addresses that hosts of other networks may have (the registries of RFC 6890, IPv4 and IPv6).
fn is_public(ip: IpAddr) -> bool {
    is_unicast(ip)
        && match ip {
            IpAddr::V4(ip) => is_public_v4(ip),
            IpAddr::V6(ip) => is_public_v6(ip),
        }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, _] = ip.octets();
    let shared = a == 100 && (64..128).contains(&b);
    let benchmarking = a == 198 && (18..20).contains(&b);
    let protocols = a == 192 && b == 0 && c == 0;
    let special = shared || benchmarking || protocols || a == 0 || a >= 240;
    !(special || ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_documentation())
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let segments = ip.segments();
    // Global unicast is 2000::/3; of it, not documentation, and not what carries an IPv4 address
    // inside (6to4, Teredo), which may be a private one. 64:ff9b::/96 (NAT64) is outside of it.
    let documentation = segments[0] == 0x2001 && segments[1] == 0x0db8;
    let carries_v4 = segments[0] == 0x2002 || (segments[0] == 0x2001 && segments[1] == 0);
    segments[0] & 0xe000 == 0x2000 && !documentation && !carries_v4
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_ipv4_written_as_ipv6_is_the_range_of_ipv4() {
        let rules = |text: &str| PeerRules { allow: vec![text.parse().unwrap()] };
        for text in ["::ffff:10.0.0.0/104", "::ffff:10.0.0.1"] {
            assert!(rules(text).permits("10.0.0.1".parse().unwrap()), "{text}");
            assert!(!rules(text).permits("192.168.0.1".parse().unwrap()), "{text}");
        }
        let all = rules("::/0");
        assert!(all.permits("fd00::1".parse().unwrap()));
        assert!(!all.permits("10.0.0.1".parse().unwrap()), "a range of IPv6 has no IPv4");
        assert!("::ffff:10.0.0.0/129".parse::<Range>().is_err());
    }

    #[test]
    fn a_public_relay_leads_to_public_ones_only() {
        let may = |by: &str, other: &str| may_lead_to(by.parse().unwrap(), other.parse().unwrap());
        for (by, other, is_good) in [
            ("8.8.8.8", "9.9.9.9", true),
            ("8.8.8.8", "10.0.0.1", false),
            ("::ffff:8.8.8.8", "::ffff:192.168.1.1", false),
            ("8.8.8.8", "127.0.0.1", false),
            ("8.8.8.8", "224.0.0.1", false),
            ("10.0.0.1", "10.0.0.2", true),
            ("10.0.0.1", "9.9.9.9", true),
            ("10.0.0.1", "127.0.0.1", false),
            ("10.0.0.1", "::1", false),
            ("10.0.0.1", "169.254.169.254", false),
            ("10.0.0.1", "255.255.255.255", false),
            ("10.0.0.1", "0.0.0.0", false),
            ("127.0.0.1", "127.0.0.2", true),
            ("fd00::1", "fd00::2", true),
            ("fd00::1", "fe80::1", false),
        ] {
            assert_eq!(may(by, other), is_good, "{by} {other}");
        }
    }

    #[test]
    fn only_public_addresses_are_forwarded_to_unless_allowed() {
        let rules = PeerRules::default();
        for ip in ["8.8.8.8", "193.0.6.139", "2a00:1450::1", "::ffff:8.8.8.8"] {
            assert!(rules.permits(ip.parse().unwrap()), "{ip}");
        }
        for ip in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "192.0.2.1",
            "198.18.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "ff02::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "64:ff9b::a00:1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
        ] {
            assert!(!rules.permits(ip.parse().unwrap()), "{ip}");
        }
    }

    #[test]
    fn ranges_open_what_they_say_and_never_multicast() {
        let allow =
            ["10.0.0.0/8", "127.0.0.1", "fd00::/8", "0.0.0.0/0"].map(|r| r.parse().unwrap());
        let rules = PeerRules { allow: allow[..3].to_vec() };
        for (ip, permitted) in [
            ("10.255.0.1", true),
            ("11.0.0.1", true),
            ("127.0.0.1", true),
            ("127.0.0.2", false),
            ("fd12::1", true),
            ("fe80::1", false),
        ] {
            assert_eq!(rules.permits(ip.parse().unwrap()), permitted, "{ip}");
        }
        let all = PeerRules { allow: allow[3..].to_vec() };
        assert!(all.permits("192.168.0.1".parse().unwrap()));
        assert!(!all.permits("224.0.0.1".parse().unwrap()));
        for text in ["", "10.0.0.0/33", "10.0.0/8", "x", "::/129", "10.0.0.0/-1"] {
            assert!(text.parse::<Range>().is_err(), "{text:?}");
        }
    }
}
