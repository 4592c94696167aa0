//! Which targets a side connects to for its peer.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// A host or a range of addresses, and a port or any: `db:5432`, `10.0.0.0/8:22`, `*:443`,
/// `[2001:db8::]/32:*`.
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
}

/// A text that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not HOST:PORT, ADDRESS/BITS:PORT or *:PORT")]
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
            (_, Ok(ip), bits) => {
                let most = if ip.is_ipv4() { 32 } else { 128 };
                let bits = bits.map_or(Ok(most), str::parse).ok().filter(|b| *b <= most);
                Host::Range(ip, bits.ok_or_else(wrong)?)
            }
            (name, Err(_), None) if !name.is_empty() && !name.contains([':', '*']) => {
                Host::Name(name.to_ascii_lowercase())
            }
            _ => return Err(wrong()),
        };
        Ok(Rule { host, port })
    }
}

impl Rule {
    fn names(&self, host: &str, port: u16) -> bool {
        let is_name = matches!(&self.host, Host::Name(name) if name.eq_ignore_ascii_case(host));
        is_name && self.port.is_none_or(|p| p == port)
    }

    fn covers(&self, address: SocketAddr) -> bool {
        let is_inside = match self.host {
            Host::Any => true,
            Host::Name(_) => false,
            Host::Range(range, bits) => is_in(address.ip().to_canonical(), range, bits),
        };
        is_inside && self.port.is_none_or(|p| p == address.port())
    }
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

/// The rules of a side. A target is allowed if no rule denies it, and one allows it or none of
/// those exists.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Only these, if there are any.
    pub allow: Vec<Rule>,
    /// Not these.
    pub deny: Vec<Rule>,
}

impl Rules {
    /// The addresses of `host` that may be connected to. Addresses are checked after the name was
    /// looked up, so a name cannot lead around a rule about addresses.
    pub fn allowed(&self, host: &str, addresses: &[SocketAddr]) -> Vec<SocketAddr> {
        let may = |address: &SocketAddr| {
            let matches = |rule: &Rule| rule.names(host, address.port()) || rule.covers(*address);
            let is_allowed = self.allow.is_empty() || self.allow.iter().any(matches);
            is_allowed && !self.deny.iter().any(matches)
        };
        addresses.iter().copied().filter(may).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str], deny: &[&str]) -> Rules {
        let read = |texts: &[&str]| texts.iter().map(|t| t.parse().unwrap()).collect();
        Rules { allow: read(allow), deny: read(deny) }
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
    fn texts_that_are_no_rules_are_refused() {
        for text in ["", "a", "a:", "a:0", "a:x", ":80", "10.0.0.0/33:1", "a/8:1", "a*:1", "::1"] {
            assert!(text.parse::<Rule>().is_err() || text == "::1", "{text:?}");
        }
    }
}
