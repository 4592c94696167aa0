//! Which targets a side connects to for its peer.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The word for all addresses of this host.
const THIS_HOST: &str = "this-host";
/// The prefix of IPv6 addresses behind which a gateway reaches an IPv4 address (RFC 6052 §2.1).
const NAT64: IpAddr = IpAddr::V6(Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0));
/// Ranges that reach this host, its networks or a cloud's metadata, and no host of the internet.
const PRIVATE: [(IpAddr, u8); 18] = [
    (v4(0, 0, 0, 0), 8),
    (v4(10, 0, 0, 0), 8),
    (v4(100, 64, 0, 0), 10),
    (v4(127, 0, 0, 0), 8),
    (v4(168, 63, 129, 16), 32), // metadata of Azure
    (v4(169, 254, 0, 0), 16),   // link-local, metadata of most clouds
    (v4(172, 16, 0, 0), 12),
    (v4(192, 0, 0, 0), 24),
    (v4(192, 168, 0, 0), 16),
    (v4(224, 0, 0, 0), 4),
    (v4(255, 255, 255, 255), 32),
    (IpAddr::V6(Ipv6Addr::UNSPECIFIED), 128),
    (IpAddr::V6(Ipv6Addr::LOCALHOST), 128),
    (v6(0x64, 0xff9b, 1), 48), // NAT64 of one network (RFC 8215)
    (v6(0xfc00, 0, 0), 7),
    (v6(0xfe80, 0, 0), 10),
    (v6(0xfec0, 0, 0), 10),
    (v6(0xff00, 0, 0), 8),
];

const fn v4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

const fn v6(a: u16, b: u16, c: u16) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
}

/// A host or a range of addresses, and a port or any: `db:5432`, `10.0.0.0/8:22`, `*:443`,
/// `[2001:db8::]/32:*`, `this-host:*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    host: Host,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Host {
    Any,
    Name(String),
    Range(IpAddr, u8),
    /// Loopback, and the addresses of the interfaces.
    This,
}

/// A text that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not HOST:PORT, ADDRESS/BITS:PORT, this-host:PORT or *:PORT")]
pub struct RuleError(String);

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Rule, RuleError> {
        let wrong = || RuleError(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = match port {
            "*" => None,
            port => Some(port.parse().ok().filter(|p| *p != 0).ok_or_else(wrong)?),
        };
        // [ADDRESS] and [ADDRESS]/BITS.
        let bare = host.replace(['[', ']'], "");
        let (address, bits) = match bare.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (bare.as_str(), None),
        };
        let host = match (address, address.parse::<IpAddr>(), bits) {
            ("*", _, None) => Host::Any,
            (THIS_HOST, _, None) => Host::This,
            (_, Ok(ip), bits) => {
                let most = if ip.is_ipv4() { 32 } else { 128 };
                let bits = bits.map_or(Ok(most), str::parse).ok().filter(|b| *b <= most);
                range(ip, bits.ok_or_else(wrong)?)
            }
            (name, Err(_), None) if !name.is_empty() && !name.contains([':', '*']) => {
                Host::Name(plain(name).to_ascii_lowercase())
            }
            _ => return Err(wrong()),
        };
        Ok(Rule { host, port })
    }
}

/// A range of addresses. IPv4 addresses written as IPv6 give a range of IPv4.
fn range(ip: IpAddr, bits: u8) -> Host {
    match (ip.to_canonical(), bits.checked_sub(96)) {
        (canonical, Some(bits)) if canonical.is_ipv4() && ip.is_ipv6() => {
            Host::Range(canonical, bits)
        }
        _ => Host::Range(ip, bits),
    }
}

/// A name without the dot that may end it.
fn plain(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

impl Rule {
    fn names(&self, host: &str, port: u16) -> bool {
        let host = plain(host);
        let is_name = matches!(&self.host, Host::Name(name) if name.eq_ignore_ascii_case(host));
        is_name && self.port.is_none_or(|p| p == port)
    }

    fn covers(&self, ip: IpAddr, port: u16, own: &[IpAddr]) -> bool {
        let is_inside = match self.host {
            Host::Any => true,
            Host::Name(_) => false,
            Host::Range(range, bits) => is_in(ip, range, bits),
            Host::This => ip.is_loopback() || ip.is_unspecified() || own.contains(&ip),
        };
        is_inside && self.port.is_none_or(|p| p == port)
    }
}

/// The address that a connection to `ip` leads to. The system takes an unspecified one for
/// loopback.
fn meant(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

/// All addresses that a connection to `ip` could lead to, on some system or in some network. A rule
/// that denies any of them denies it.
fn possible(ip: IpAddr) -> Vec<IpAddr> {
    let canonical = ip.to_canonical();
    let mut all = vec![meant(ip), canonical];
    if let IpAddr::V6(v6) = canonical {
        if v6.is_unspecified() {
            all.push(Ipv4Addr::LOCALHOST.into());
        }
        if is_in(canonical, NAT64, 96) {
            let [.., a, b, c, d] = v6.octets();
            all.push(meant(v4(a, b, c, d)));
        }
    }
    all
}

fn is_private(ip: IpAddr) -> bool {
    PRIVATE.iter().any(|(range, bits)| is_in(ip, *range, *bits))
}

/// The addresses of this host's interfaces.
fn own_addresses() -> Vec<IpAddr> {
    // A host that does not tell has loopback all the same.
    let all = if_addrs::get_if_addrs().unwrap_or_default();
    all.iter().map(if_addrs::Interface::ip).collect()
}

fn is_in(ip: IpAddr, range: IpAddr, bits: u8) -> bool {
    let same = |a: u128, b: u128, width: u8| {
        let ignored = u32::from(width - bits);
        a.checked_shr(ignored).unwrap_or(0) == b.checked_shr(ignored).unwrap_or(0)
    };
    match (ip, range) {
        (IpAddr::V4(ip), IpAddr::V4(range)) => {
            same(ip.to_bits().into(), range.to_bits().into(), 32)
        }
        (IpAddr::V6(ip), IpAddr::V6(range)) => same(ip.to_bits(), range.to_bits(), 128),
        _ => false,
    }
}

/// The rules of a side. A target is allowed if no rule of `deny` matches it, and one of `allow`
/// does or `allow` is empty.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Only these, if there are any.
    pub allow: Vec<Rule>,
    /// Not these.
    pub deny: Vec<Rule>,
    /// Denies this host, private networks, link-local addresses and the metadata addresses of
    /// clouds.
    pub deny_private: bool,
}

impl Rules {
    /// The addresses of `host` that may be connected to. Addresses are checked after the name was
    /// looked up, so a name cannot lead around a rule about addresses.
    pub fn allowed(&self, host: &str, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        let is_this = |rule: &Rule| rule.host == Host::This;
        let own = if self.deny_private || self.allow.iter().chain(&self.deny).any(is_this) {
            own_addresses()
        } else {
            Vec::new()
        };
        addresses.iter().copied().filter(|address| self.may(host, *address, &own)).collect()
    }

    /// `own` are the addresses of this host's interfaces.
    fn may(&self, host: &str, address: SocketAddr, own: &[IpAddr]) -> bool {
        let port = address.port();
        let possible = possible(address.ip());
        let denies = |rule: &Rule| {
            rule.names(host, port) || possible.iter().any(|ip| rule.covers(*ip, port, own))
        };
        let allows =
            |rule: &Rule| rule.names(host, port) || rule.covers(meant(address.ip()), port, own);
        let is_private = || possible.iter().any(|ip| is_private(*ip) || own.contains(ip));
        (self.allow.is_empty() || self.allow.iter().any(allows))
            && !self.deny.iter().any(denies)
            && !(self.deny_private && is_private())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> Rules {
        let read = |texts: &[&str]| texts.iter().map(|t| t.parse().unwrap()).collect();
        Rules { allow: read(allow), deny: read(deny), deny_private: false }
    }

    fn may(rules: &Rules, host: &str, address: &str) -> bool {
        !rules.allowed(host, &[address.parse().unwrap()]).is_empty()
    }

    #[test]
    fn rules_name_hosts_ranges_and_ports() {
        let some = rules(&["db:5432", "10.0.0.0/8:22", "[2001:db8::]/32:*", "*:443"], &[]);
        for (host, address, allowed) in [
            ("DB", "192.0.2.1:5432", true),
            ("db", "192.0.2.1:5433", false),
            ("x", "10.255.0.1:22", true),
            ("x", "11.0.0.1:22", false),
            ("x", "[::ffff:10.0.0.1]:22", true),
            ("x", "[2001:db8:1::1]:9", true),
            ("x", "[2001:db9::1]:9", false),
            ("x", "192.0.2.1:443", true),
        ] {
            assert_eq!(may(&some, host, address), allowed, "{host} {address}");
        }
    }

    #[test]
    fn a_denied_address_stays_denied_whatever_name_leads_there() {
        let denying = rules(&[], &["127.0.0.0/8:*", "secret:80"]);
        assert!(!may(&denying, "innocent.example", "127.0.0.1:80"));
        assert!(!may(&denying, "secret", "192.0.2.1:80"));
        assert!(may(&denying, "other", "192.0.2.1:80"));
        assert!(!may(&rules(&["*:*"], &["0.0.0.0/0:*"]), "x", "192.0.2.1:80"), "deny wins");
    }

    #[test]
    fn unspecified_addresses_are_loopback() {
        let no_loopback = rules(&[], &["127.0.0.0/8:*"]);
        let this_host = rules(&[], &["this-host:*"]);
        let all = ["0.0.0.0:80", "[::]:80", "[::ffff:0.0.0.0]:80", "[::ffff:127.0.0.1]:80"];
        for address in all {
            assert!(!may(&no_loopback, "x", address), "{address}");
            assert!(!may(&this_host, "x", address), "{address}");
        }
        assert!(!may(&rules(&[], &["[::1]:*"]), "x", "[::]:80"));
        assert!(!may(&rules(&[], &["0.0.0.0/8:*"]), "x", "0.0.0.0:80"));
        assert!(may(&rules(&["127.0.0.1:80"], &[]), "x", "0.0.0.0:80"));
        assert!(!may(&rules(&["127.0.0.1:80"], &[]), "x", "[::]:80"), "that is [::1]:80");
    }

    #[test]
    fn rules_for_ipv4_written_as_ipv6_count_for_both() {
        for rule in ["[::ffff:127.0.0.0]/104:*", "[::ffff:127.0.0.1]:*"] {
            let denying = rules(&[], &[rule]);
            assert!(!may(&denying, "x", "127.0.0.1:80"), "{rule}");
            assert!(!may(&denying, "x", "[::ffff:127.0.0.1]:80"), "{rule}");
            assert!(may(&denying, "x", "128.0.0.1:80"), "{rule}");
        }
    }

    #[test]
    fn this_host_has_the_addresses_of_its_interfaces() {
        let own = own_addresses();
        let (this, none) = (rules(&[], &["this-host:22"]), rules(&["this-host:22"], &[]));
        for ip in own.iter().copied().chain([Ipv4Addr::new(127, 9, 9, 9).into()]) {
            let at = |port| SocketAddr::new(ip, port);
            assert!(this.allowed("x", &[at(22)]).is_empty(), "{ip}");
            assert_eq!(this.allowed("x", &[at(23)]), [at(23)]);
            assert_eq!(none.allowed("x", &[at(22)]), [at(22)]);
        }
        assert!(may(&this, "x", "192.0.2.77:22") && !may(&none, "x", "192.0.2.77:22"));
        // It is a name nowhere else.
        assert!("this-host/8:1".parse::<Rule>().is_err());
    }

    #[test]
    fn private_addresses_can_be_denied_together() {
        let public = Rules { deny_private: true, ..rules(&[], &[]) };
        for address in [
            "127.0.0.1:1",
            "0.0.0.0:1",
            "10.1.2.3:1",
            "172.31.0.1:1",
            "192.168.1.1:1",
            "169.254.169.254:80",
            "100.100.100.200:80",
            "168.63.129.16:80",
            "192.0.0.192:80",
            "224.0.0.251:5353",
            "255.255.255.255:9",
            "[::]:1",
            "[::1]:1",
            "[fd00:ec2::254]:80",
            "[fe80::1]:1",
            "[ff02::fb]:5353",
            "[::ffff:10.0.0.1]:1",
            "[::ffff:0.0.0.0]:1",
            "[64:ff9b::10.0.0.1]:1",
            "[64:ff9b:1::8.8.8.8]:1",
        ] {
            assert!(!may(&public, "innocent.example", address), "{address}");
        }
        for address in ["8.8.8.8:53", "172.32.0.1:1", "[2606:4700::1]:443", "[64:ff9b::8.8.8.8]:1"]
        {
            assert!(may(&public, "x", address), "{address}");
        }
        let allowing = Rules { deny_private: true, ..rules(&["10.0.0.1:80"], &[]) };
        assert!(!may(&allowing, "x", "10.0.0.1:80"), "deny wins");
    }

    /// The first and the last address of each range are inside, their neighbours outside.
    #[test]
    fn ranges_of_private_addresses_end_where_they_should() {
        let public = Rules { deny_private: true, ..rules(&[], &[]) };
        for (inside, outside) in [
            (["0.0.0.0", "0.255.255.255"], ["1.0.0.0", "1.0.0.0"]),
            (["10.0.0.0", "10.255.255.255"], ["9.255.255.255", "11.0.0.0"]),
            (["100.64.0.0", "100.127.255.255"], ["100.63.255.255", "100.128.0.0"]),
            (["127.0.0.0", "127.255.255.255"], ["126.255.255.255", "128.0.0.0"]),
            (["168.63.129.16", "168.63.129.16"], ["168.63.129.15", "168.63.129.17"]),
            (["169.254.0.0", "169.254.255.255"], ["169.253.255.255", "169.255.0.0"]),
            (["172.16.0.0", "172.31.255.255"], ["172.15.255.255", "172.32.0.0"]),
            (["192.0.0.0", "192.0.0.255"], ["191.255.255.255", "192.0.1.0"]),
            (["192.168.0.0", "192.168.255.255"], ["192.167.255.255", "192.169.0.0"]),
            (["224.0.0.0", "239.255.255.255"], ["223.255.255.255", "240.0.0.0"]),
            (["255.255.255.255", "255.255.255.255"], ["255.255.255.254", "255.255.255.254"]),
            (["::", "::1"], ["::1:0:0:2", "::1:0:0:2"]),
            (["64:ff9b:1::", "64:ff9b:1:ffff::1"], ["64:ff9b:0:ffff::1", "64:ff9b:2::"]),
            (["fc00::", "fdff::1"], ["fbff::1", "fe00::"]),
            (["fe80::", "febf::1"], ["fe7f::1", "fe00::1"]),
            (["fec0::", "feff::1"], ["fe7f::2", "fe00::2"]),
            (["ff00::", "ffff::1"], ["fe7f::3", "fe00::3"]),
        ] {
            let at = |ip: &str| SocketAddr::new(ip.parse().unwrap(), 80);
            // None of this host's own, which are denied wherever they are.
            let may = |ip: &str| public.may("x", at(ip), &[]);
            assert!(!inside.iter().any(|ip| may(ip)), "{inside:?}");
            assert!(outside.iter().all(|ip| may(ip)), "{outside:?}");
        }
    }

    #[test]
    fn a_dot_at_the_end_of_a_name_leads_around_no_rule() {
        let denying = rules(&[], &["secret.example:80"]);
        assert!(!may(&denying, "secret.example.", "192.0.2.1:80"));
        assert!(!may(&rules(&[], &["secret.example.:80"]), "Secret.example", "192.0.2.1:80"));
    }

    #[test]
    fn texts_that_are_no_rules_are_refused() {
        for text in ["", "a", "a:", "a:0", "a:x", ":80", "10.0.0.0/33:1", "a/8:1", "a*:1", "::1"] {
            assert!(text.parse::<Rule>().is_err() || text == "::1", "{text:?}");
        }
    }

    #[test]
    fn a_public_address_of_this_host_is_denied_with_the_private_ones() {
        let public = Rules { deny_private: true, ..rules(&[], &[]) };
        let [own, other]: [IpAddr; 2] =
            ["198.51.100.7", "198.51.100.8"].map(|ip| ip.parse().unwrap());
        assert!(!public.may("x", SocketAddr::new(own, 80), &[own]));
        assert!(public.may("x", SocketAddr::new(other, 80), &[own]));
    }
}
