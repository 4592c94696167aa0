//! The hosts that can reach an end, as its addresses tell.

use std::net::{IpAddr, Ipv4Addr};

/// The widest network that can reach one of an end's addresses, as far as addresses tell: a
/// firewall is not seen.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reach {
    /// Only this host.
    Host,
    /// A private network: RFC 1918, RFC 6598 (carriers), RFC 4193, link-local addresses.
    Private,
    /// The Internet.
    Public,
}

impl Reach {
    /// Of the best of these addresses.
    pub(crate) fn of(addresses: &[IpAddr]) -> Reach {
        addresses.iter().map(|ip| Reach::of_one(*ip)).max().unwrap_or(Reach::Host)
    }

    fn of_one(ip: IpAddr) -> Reach {
        let is_private = match ip {
            _ if ip.is_loopback() || ip.is_unspecified() => return Reach::Host,
            IpAddr::V4(ip) => ip.is_private() || ip.is_link_local() || is_shared(ip),
            IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
        };
        if is_private { Reach::Private } else { Reach::Public }
    }

    /// The word in JSON.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Reach::Host => "host",
            Reach::Private => "private",
            Reach::Public => "public",
        }
    }

    /// A hint for who tried these addresses and had no answer.
    pub(crate) fn doubt(self) -> Option<&'static str> {
        match self {
            Reach::Public => None,
            Reach::Host => Some("only programs on the same host reach this address"),
            Reach::Private => {
                Some("these addresses are private: only hosts in the same network reach them")
            }
        }
    }

    /// A note for the user of a receiver at this port that not everybody can reach.
    pub(crate) fn advice(self, port: u16) -> Option<String> {
        match self {
            Reach::Public => None,
            Reach::Host => {
                Some("Note: only senders on this host can reach this address.".to_owned())
            }
            Reach::Private => Some(format!(
                "Note: these addresses are private: only senders in the same network reach them. From \
                 elsewhere: --via RELAY, or forward UDP port {port} of the router to this host, give \
                 both ends --token-file, and send to ROUTER:PORT."
            )),
        }
    }
}

/// An address that carriers share among customers (RFC 6598).
fn is_shared(ip: Ipv4Addr) -> bool {
    let [first, second, ..] = ip.octets();
    first == 100 && second & 0xc0 == 64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_of_the_addresses_counts() {
        for (addresses, reach) in [
            (&["127.0.0.1", "::1"][..], Reach::Host),
            (&["10.0.0.1"], Reach::Private),
            (&["172.16.0.1", "172.31.255.1", "192.168.1.7", "169.254.3.3"], Reach::Private),
            (&["100.64.0.1", "100.127.255.254"], Reach::Private),
            (&["fd00::1", "fe80::1", "127.0.0.1"], Reach::Private),
            (&["100.128.0.1"], Reach::Public),
            (&["172.32.0.1"], Reach::Public),
            (&["192.168.1.7", "2001:db8::1"], Reach::Public),
        ] {
            let list: Vec<IpAddr> = addresses.iter().map(|ip| ip.parse().unwrap()).collect();
            assert_eq!(Reach::of(&list), reach, "{addresses:?}");
            assert_eq!(reach.advice(7).is_none(), reach == Reach::Public);
            assert_eq!(reach.doubt().is_none(), reach == Reach::Public);
        }
    }
}
