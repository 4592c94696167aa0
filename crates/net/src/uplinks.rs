//! The interfaces that lead to a destination, and those that peers can reach.
//!
//! An uplink is an interface with a route to the destination, whichever route the system prefers:
//! a default route of any metric, a route of its own, a rule by source. A tunnel (VPN) that the
//! system's own route leaves through is the only uplink, because what its owner wants inside it
//! must not leave beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use crate::address::is_link_local_v6;
use crate::interfaces::{InterfaceAddress, interfaces};
#[cfg(target_os = "linux")]
use crate::rtnetlink::Kernel;

/// Kinds of interfaces whose packets leave inside packets of another interface.
const TUNNELS: [&str; 14] = [
    "tun",
    "wireguard",
    "ipip",
    "sit",
    "gre",
    "gretap",
    "ip6gre",
    "ip6gretap",
    "ip6tnl",
    "vti",
    "vti6",
    "xfrm",
    "vxlan",
    "geneve",
];

/// Kinds that connect parts of this host, unless a route says otherwise.
const INSIDE: [&str; 4] = ["bridge", "dummy", "ifb", "nlmon"];

/// The table of routes into IPsec tunnels that strongSwan fills. They have no interface of their
/// own: packets with another source address would leave unprotected.
const IPSEC_TABLE: u32 = 220;

/// The sort of an interface.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkKind {
    /// This host itself.
    Loopback,
    /// Packets inside it leave through another interface, as in a VPN.
    Tunnel,
    /// A bridge or dummy of this host, which leads outside only if a route says so.
    Inside,
    /// Any other: a device, or something on top of one.
    Plain,
}

impl LinkKind {
    /// The sort of the kernel's kind, such as `wireguard` or `bridge`.
    pub fn of(kind: &str) -> LinkKind {
        match kind {
            _ if TUNNELS.contains(&kind) => LinkKind::Tunnel,
            _ if INSIDE.contains(&kind) => LinkKind::Inside,
            _ => LinkKind::Plain,
        }
    }
}

/// An interface, as the choice of uplinks sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// The kernel's number.
    pub(crate) index: u32,
    pub(crate) name: String,
    pub(crate) kind: LinkKind,
    /// Switched on, with something at its other end.
    pub(crate) is_up: bool,
}

/// The route that the system itself chooses.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct SystemRoute {
    pub(crate) link: u32,
    pub(crate) source: Option<IpAddr>,
    pub(crate) table: u32,
}

/// Questions about routes.
pub(crate) trait Routes {
    /// The system's route to an address.
    fn of_system(&mut self, to: IpAddr) -> Option<SystemRoute>;

    /// The source of packets to an address that are kept to an interface, which has the addresses
    /// `own`; `None` if the interface has no route there.
    fn source_through(&mut self, to: IpAddr, link: u32, own: &[IpAddr]) -> Option<IpAddr>;

    /// True if a route of this interface leads beyond its own network: to a gateway, or anywhere.
    fn leads_elsewhere(&mut self, link: u32) -> bool;
}

/// An interface that leads to some of the destination's addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uplink {
    /// The interface, such as `wlan0`.
    pub interface: String,
    /// The address that packets leave from.
    pub ip: IpAddr,
    /// The destination's addresses that it has a route to.
    pub remotes: Vec<SocketAddr>,
    /// The system calls it [metered](crate::metered_interfaces); false until that was asked.
    pub is_metered: bool,
}

/// An interface that is not used, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The interface.
    pub interface: String,
    /// The first address of the interface.
    pub ip: IpAddr,
    /// The reason.
    pub why: NotUsed,
}

/// Why an interface is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotUsed {
    /// It has no route to the destination.
    NoRoute,
    /// It is a tunnel, and the system's route does not leave through it.
    Tunnel,
    /// The system's route leaves through this tunnel.
    BesideTunnel(String),
    /// It has no route beyond its own network, and another interface has one.
    NoWayOut,
    /// It is a bridge inside this host.
    Inside,
}

impl fmt::Display for NotUsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotUsed::NoRoute => f.write_str("no route there"),
            NotUsed::Tunnel => f.write_str("a tunnel"),
            NotUsed::BesideTunnel(tunnel) => {
                write!(f, "the system's route leaves through the tunnel {tunnel}")
            }
            NotUsed::NoWayOut => f.write_str("no route beyond its network"),
            NotUsed::Inside => f.write_str("a bridge inside this host"),
        }
    }
}

/// The interfaces that lead to a destination.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Uplinks {
    /// The system's choice first.
    pub used: Vec<Uplink>,
    /// Interfaces with an address that are not used.
    pub left_out: Vec<LeftOut>,
    /// Addresses of this host that nothing is to leave from: the system's route leaves through a
    /// tunnel instead.
    pub beside_tunnel: BTreeSet<IpAddr>,
}

/// The addresses that peers may reach this host at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reachable {
    /// IPv4 first, then by interface.
    pub addresses: Vec<InterfaceAddress>,
    /// Interfaces with an address that only this host or its neighbours can reach.
    pub left_out: Vec<LeftOut>,
}

impl Uplinks {
    /// The uplinks to some of the remotes.
    pub(crate) fn towards(&self, remotes: &[SocketAddr]) -> Uplinks {
        let mut some = self.clone();
        for uplink in &mut some.used {
            uplink.remotes.retain(|remote| remotes.contains(remote));
        }
        some.used.retain(|uplink| !uplink.remotes.is_empty());
        some
    }

    /// Looks at this host's routes to `remotes`. No packet is sent. Empty where routes cannot be
    /// read, as on systems other than Linux.
    pub fn to(remotes: &[SocketAddr]) -> Uplinks {
        #[cfg(target_os = "linux")]
        if let Ok((links, mut kernel)) = look() {
            return choose(&links, remotes, &mut kernel);
        }
        let _ = remotes;
        Uplinks::default()
    }

    /// The interfaces that are used, each once.
    pub fn interfaces(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for uplink in &self.used {
            if !names.contains(&uplink.interface.as_str()) {
                names.push(&uplink.interface);
            }
        }
        names
    }

    /// The addresses to open sockets on, each kept to its interface, beside the one on every
    /// address. None if there is one uplink only: the system's route leads there.
    pub fn places(&self) -> Vec<InterfaceAddress> {
        if self.interfaces().len() < 2 {
            return Vec::new();
        }
        let place = |u: &Uplink| InterfaceAddress { name: u.interface.clone(), ip: u.ip };
        self.used.iter().map(place).collect()
    }

    /// Notes which of the uplinks are metered.
    pub fn set_metered(&mut self, metered: &BTreeSet<String>) {
        for uplink in &mut self.used {
            uplink.is_metered = metered.contains(&uplink.interface);
        }
    }

    /// The uplinks to spare: those that are metered, unless all are.
    pub fn spared(&self) -> Vec<&str> {
        let is_spared = |name: &&str| self.is_metered(name);
        let spared: Vec<&str> = self.interfaces().into_iter().filter(is_spared).collect();
        if spared.len() == self.interfaces().len() { Vec::new() } else { spared }
    }

    fn is_metered(&self, interface: &str) -> bool {
        self.used.iter().any(|uplink| uplink.interface == interface && uplink.is_metered)
    }

    /// The tunnel that the system's route leaves through, if interfaces are left out for it.
    pub fn tunnel(&self) -> Option<&str> {
        self.left_out.iter().find_map(|left| match &left.why {
            NotUsed::BesideTunnel(tunnel) => Some(tunnel.as_str()),
            _ => None,
        })
    }
}

/// The addresses to tell peers: of interfaces with a route beyond their own network, or of all
/// plain ones if none has one. Bridges without such a route and tunnels are left out.
pub fn reachable() -> io::Result<Reachable> {
    #[cfg(target_os = "linux")]
    if let Ok((links, mut kernel)) = look()
        && !links.is_empty()
    {
        return Ok(keep_reachable(&links, &mut kernel));
    }
    Ok(Reachable { addresses: interfaces()?, left_out: Vec::new() })
}

/// An interface that is up, with the addresses that peers elsewhere could use.
#[derive(Debug)]
struct Home {
    link: Link,
    own: Vec<IpAddr>,
}

#[cfg(target_os = "linux")]
fn look() -> io::Result<(Vec<Home>, Kernel)> {
    let mut own: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    for address in interfaces()? {
        own.entry(address.name).or_default().push(address.ip);
    }
    let mut kernel = Kernel::open()?;
    let links = kernel.links()?.into_iter().filter(|link| link.is_up);
    let homes = links.map(|link| Home { own: own.remove(&link.name).unwrap_or_default(), link });
    Ok((homes.filter(|home| !home.own.is_empty()).collect(), kernel))
}

/// True if some plain interface leads elsewhere, so that a tunnel leaves through it. In a container
/// whose only interface is a tunnel, that one is an uplink like any other.
fn has_underlay(homes: &[Home], routes: &mut impl Routes) -> bool {
    let mut plain = homes.iter().filter(|home| home.link.kind == LinkKind::Plain);
    plain.any(|home| routes.leads_elsewhere(home.link.index))
}

fn choose(homes: &[Home], remotes: &[SocketAddr], routes: &mut impl Routes) -> Uplinks {
    let mut found = Uplinks::default();
    let is_tunnel = |home: &Home| home.link.kind == LinkKind::Tunnel;
    let has_tunnels = homes.iter().any(is_tunnel) && has_underlay(homes, routes);
    for &remote in remotes.iter().filter(|remote| is_elsewhere(remote.ip())) {
        let system = routes.of_system(remote.ip());
        let of_system = system.and_then(|s| homes.iter().find(|home| home.link.index == s.link));
        if system.is_some() && of_system.is_none() {
            // An address of this host, or an interface without addresses: the system knows.
            continue;
        }
        let is_alone = system.is_some_and(|system| system.table == IPSEC_TABLE)
            || of_system.is_some_and(|home| is_tunnel(home) && has_tunnels);
        let first = of_system.into_iter();
        let others = homes.iter().filter(|h| of_system.is_none_or(|first| first.link != h.link));
        for home in first.chain(others) {
            let is_first = of_system.is_some_and(|first| first.link == home.link);
            let Some(ip) = routes.source_through(remote.ip(), home.link.index, &home.own) else {
                continue;
            };
            let why = match of_system {
                Some(tunnel) if is_alone && !is_first => {
                    Some(NotUsed::BesideTunnel(tunnel.link.name.clone()))
                }
                _ if is_tunnel(home) && has_tunnels && !is_first => Some(NotUsed::Tunnel),
                _ => None,
            };
            // The source that the system prefers can be one of a policy, as with IPsec.
            let preferred = if is_first { system.and_then(|s| s.source) } else { None };
            if let Some(NotUsed::BesideTunnel(_)) = why {
                found.note_beside_tunnel(&home.own, remote);
            }
            match why {
                Some(why) => found.leave_out(&home.link.name, home.own[0], why),
                None => found.add(&home.link.name, preferred.unwrap_or(ip), remote),
            }
        }
    }
    found.note_without_route(homes);
    found
}

impl Uplinks {
    /// Adds a route from an interface to an address of the destination.
    pub fn add(&mut self, interface: &str, ip: IpAddr, remote: SocketAddr) {
        let known = self.used.iter_mut().find(|u| u.interface == interface && u.ip == ip);
        match known {
            Some(uplink) => uplink.remotes.push(remote),
            None => self.used.push(Uplink {
                interface: interface.to_owned(),
                ip,
                remotes: vec![remote],
                is_metered: false,
            }),
        }
    }

    /// Notes an interface that is not used; the first reason stays.
    pub fn leave_out(&mut self, interface: &str, ip: IpAddr, why: NotUsed) {
        if self.left_out.iter().all(|left| left.interface != interface) {
            self.left_out.push(LeftOut { interface: interface.to_owned(), ip, why });
        }
    }

    /// Notes the addresses of an interface that do not lead to a remote because a tunnel does.
    fn note_beside_tunnel(&mut self, own: &[IpAddr], remote: SocketAddr) {
        let same_family = own.iter().filter(|ip| ip.is_ipv6() == remote.is_ipv6());
        self.beside_tunnel.extend(same_family);
    }

    /// Notes the interfaces that lead to none of the addresses; nobody expects that of a bridge.
    fn note_without_route(&mut self, homes: &[Home]) {
        for home in homes.iter().filter(|home| home.link.kind == LinkKind::Plain) {
            if self.used.iter().all(|uplink| uplink.interface != home.link.name) {
                self.leave_out(&home.link.name, home.own[0], NotUsed::NoRoute);
            }
        }
        let used: Vec<_> = self.used.iter().map(|uplink| uplink.interface.clone()).collect();
        self.left_out.retain(|left| !used.contains(&left.interface));
    }
}

fn keep_reachable(homes: &[Home], routes: &mut impl Routes) -> Reachable {
    let leads: Vec<bool> =
        homes.iter().map(|home| routes.leads_elsewhere(home.link.index)).collect();
    let has_underlay = has_underlay(homes, routes);
    let any_leads = leads.contains(&true);
    let has_others = homes.iter().any(|home| home.link.kind != LinkKind::Inside);
    let mut found = Reachable::default();
    for (home, leads) in homes.iter().zip(&leads) {
        let why = match home.link.kind {
            // An address of a router itself, which its routes lead others to.
            LinkKind::Loopback => None,
            LinkKind::Tunnel if has_underlay => Some(NotUsed::Tunnel),
            LinkKind::Inside if !leads && has_others => Some(NotUsed::Inside),
            _ if !leads && any_leads => Some(NotUsed::NoWayOut),
            _ => None,
        };
        let name = home.link.name.clone();
        match why {
            Some(why) => found.left_out.push(LeftOut { interface: name, ip: home.own[0], why }),
            None => found
                .addresses
                .extend(home.own.iter().map(|&ip| InterfaceAddress { name: name.clone(), ip })),
        }
    }
    found.addresses.sort_by(|a, b| (a.ip.is_ipv6(), a).cmp(&(b.ip.is_ipv6(), b)));
    found
}

/// False for addresses that mean this host, or several hosts, and for those that name their
/// interface: every interface has a route to link-local addresses.
fn is_elsewhere(ip: IpAddr) -> bool {
    !ip.is_loopback() && !ip.is_unspecified() && !ip.is_multicast() && !is_link_local_v6(ip)
}

#[cfg(test)]
mod tests;
