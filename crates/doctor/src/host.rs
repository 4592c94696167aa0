//! A snapshot of this host's network.

mod firewall;
mod parse;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use firewall::{Ruleset, Trial, Verdict};

use manypath_net::LinkKind;

use crate::finding::Unseen;
use crate::system::{RunError, System};

/// An address and the length of its network.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The address.
    pub ip: IpAddr,
    /// Bits of the network.
    pub len: u8,
}

impl Prefix {
    /// True if `ip` is in this network.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let (own, other, width) = match (self.ip, ip) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                (u128::from(a.to_bits()), u128::from(b.to_bits()), 32)
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits(), b.to_bits(), 128),
            _ => return false,
        };
        let shift = width - u32::from(self.len).min(width);
        shift >= 128 || own >> shift == other >> shift
    }

    /// The network itself, such as `10.1.0.0/24`.
    pub fn network(&self) -> Prefix {
        let ip = match self.ip {
            IpAddr::V4(ip) => {
                let shift = 32 - u32::from(self.len).min(32);
                let bits = u64::from(ip.to_bits()) >> shift << shift;
                Ipv4Addr::from_bits(u32::try_from(bits).unwrap_or_default()).into()
            }
            IpAddr::V6(ip) => {
                let shift = 128 - u32::from(self.len).min(128);
                let bits = ip.to_bits().checked_shr(shift).unwrap_or(0);
                Ipv6Addr::from_bits(bits.checked_shl(shift).unwrap_or(0)).into()
            }
        };
        Prefix { ip, len: self.len }
    }

    /// The first address of the network after that of the network itself: where most routers are.
    pub fn first_host(&self) -> IpAddr {
        let network = self.network();
        match network.ip {
            // The two ends of a point-to-point network are 0 and 1 (RFC 3021).
            IpAddr::V4(ip) if self.len < 31 => Ipv4Addr::from_bits(ip.to_bits() | 1).into(),
            IpAddr::V4(ip) => {
                let bits = if self.ip == network.ip { ip.to_bits() | 1 } else { ip.to_bits() };
                Ipv4Addr::from_bits(bits).into()
            }
            IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() | 1).into(),
        }
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.ip, self.len)
    }
}

/// An address of an interface.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address and its network.
    pub prefix: Prefix,
    /// True if peers elsewhere could use it.
    pub is_global: bool,
    /// True if it must not be used for new associations any more, or not yet.
    pub is_unfit: bool,
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The kernel's number.
    pub index: u32,
    /// Switched on.
    pub is_up: bool,
    /// Something is at the other end of the cable.
    pub has_carrier: bool,
    /// It is this host's loopback.
    pub is_loopback: bool,
    /// Bytes of an IP packet at most.
    pub mtu: usize,
    /// The kernel's kind of it, of virtual ones.
    pub kind: Option<String>,
    /// The bridge or bond that it belongs to.
    pub master: Option<String>,
    /// There is a device behind it.
    pub is_device: bool,
    /// `half` or `full`, of an Ethernet device that says it.
    pub duplex: Option<String>,
    /// Its addresses.
    pub addresses: Vec<Address>,
}

impl Link {
    /// True if packets inside it leave through another interface.
    pub fn is_tunnel(&self) -> bool {
        self.kind.as_deref().map(LinkKind::of) == Some(LinkKind::Tunnel)
    }

    fn is_inside(&self) -> bool {
        self.kind.as_deref().map(LinkKind::of) == Some(LinkKind::Inside)
    }

    /// The addresses that peers elsewhere could use.
    pub fn usable(&self) -> impl Iterator<Item = &Address> {
        self.addresses.iter().filter(|a| a.is_global && !a.is_unfit)
    }
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destinations.
    pub to: Prefix,
    /// The router.
    pub gateway: Option<IpAddr>,
    /// The interface.
    pub dev: Option<String>,
    /// The table.
    pub table: String,
    /// True unless packets are refused or swallowed.
    pub is_unicast: bool,
}

/// A rule of policy routing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its priority.
    pub priority: u32,
    /// The source addresses it is for; `None` for all.
    pub from: Option<Prefix>,
    /// IPv6.
    pub is_v6: bool,
    /// The table that it leads to.
    pub table: Option<String>,
    /// The interface that packets are kept to, if it is for those only.
    pub oif: Option<String>,
    /// It has further conditions.
    pub is_narrow: bool,
}

/// A neighbour: an address on an interface's network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The address.
    pub ip: IpAddr,
    /// The interface.
    pub dev: String,
    /// Its hardware address, if it answered.
    pub hardware: Option<String>,
    /// It was asked for and did not answer.
    pub is_silent: bool,
    /// It says that it is a router (IPv6).
    pub is_router: bool,
}

/// The kernel's choice of a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lookup {
    /// The interface.
    pub dev: Option<String>,
    /// The router.
    pub gateway: Option<IpAddr>,
    /// The kernel's error, such as "Network is unreachable".
    pub error: Option<String>,
}

/// Features of an interface by their names in ethtool.
pub type Offloads = BTreeMap<String, bool>;

/// A snapshot of this host's network.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// The interfaces.
    pub links: Vec<Link>,
    /// The routes of all tables; `None` if they could not be read.
    pub routes: Option<Vec<Route>>,
    /// The rules.
    pub rules: Vec<Rule>,
    /// The neighbours.
    pub neighbours: Vec<Neighbour>,
    /// Values below `/proc/sys`, by their path.
    pub sysctls: BTreeMap<String, String>,
    /// Features of interfaces.
    pub offloads: BTreeMap<String, Offloads>,
    /// The rules of nftables, if they could be read.
    pub firewall: Option<Ruleset>,
    /// iptables of old has rules, which are not read.
    pub has_iptables: bool,
    /// The program that looks after the network: `networkctl`, `nmcli`, or nothing that is known.
    pub manager: Option<&'static str>,
    /// Hosts that the clock is set by.
    pub time_servers: Vec<String>,
    /// Subjects that could not be looked at.
    pub unseen: Vec<Unseen>,
}

impl Host {
    /// Looks at interfaces, routes and rules.
    pub fn look(system: &dyn System) -> Host {
        let mut host = Host::default();
        match system.run("ip", &["-j", "-d", "address", "show"]) {
            Ok(text) => host.links = parse::links(&text),
            Err(error) => host.without_ip(&error),
        }
        for link in &mut host.links {
            let file = |name: &str| format!("/sys/class/net/{}/{name}", link.name);
            link.is_device = system.has(&file("device"));
            link.duplex = system.read(&file("duplex")).ok().map(|text| text.trim().to_owned());
        }
        let mut routes = Vec::new();
        let mut all = !host.links.is_empty();
        for family in ["-4", "-6"] {
            match system.run("ip", &["-j", family, "route", "show", "table", "all"]) {
                Ok(text) => routes.extend(parse::routes(&text, family == "-6")),
                // A kernel without IPv6 has no routes of it.
                Err(_) if family == "-6" => {}
                Err(_) => all = false,
            }
            if let Ok(text) = system.run("ip", &["-j", family, "rule", "show"]) {
                host.rules.extend(parse::rules(&text, family == "-6"));
            }
        }
        host.routes = all.then_some(routes);
        host.manager = match () {
            () if system.has("/run/NetworkManager") => Some("nmcli"),
            () if system.has("/run/systemd/netif/state") => Some("networkctl"),
            () => None,
        };
        host.time_servers = parse::time_servers(system);
        host
    }

    /// Without the command `ip`: the addresses that the C library knows, and no more.
    fn without_ip(&mut self, error: &RunError) {
        let why = match (cfg!(target_os = "linux"), error) {
            (false, _) => "it is looked at on Linux only".to_owned(),
            (true, RunError::Missing) => "the command ip is not installed".to_owned(),
            (true, error) => format!("the command ip gave nothing: {error}"),
        };
        let mut unseen = Unseen::new("interfaces, routes and rules", why);
        if cfg!(target_os = "linux") && *error == RunError::Missing {
            unseen = unseen.mend("sudo apt-get install iproute2");
        }
        self.unseen.push(unseen);
        for found in if_addrs::get_if_addrs().unwrap_or_default() {
            let len = match &found.addr {
                if_addrs::IfAddr::V4(v4) => v4.prefixlen,
                if_addrs::IfAddr::V6(v6) => v6.prefixlen,
            };
            let is_global = !found.is_loopback() && !found.is_link_local();
            let prefix = Prefix { ip: found.ip(), len };
            let address = Address { prefix, is_global, is_unfit: false };
            let is_up = found.is_oper_up();
            let (is_loopback, index) = (found.is_loopback(), found.index.unwrap_or(0));
            match self.links.iter_mut().find(|link| link.name == found.name) {
                Some(link) => link.addresses.push(address),
                None => self.links.push(Link {
                    name: found.name,
                    index,
                    is_up,
                    has_carrier: is_up,
                    is_loopback,
                    addresses: vec![address],
                    ..Link::default()
                }),
            }
        }
    }

    /// Reads features, kernel settings and the firewall, for these uplinks.
    pub fn look_closer(&mut self, system: &dyn System, uplinks: &[&str]) {
        let mut names: Vec<String> = [
            "net/core/rmem_max",
            "net/core/wmem_max",
            "net/ipv4/conf/all/rp_filter",
            "net/ipv6/conf/all/disable_ipv6",
            "net/ipv6/conf/all/forwarding",
            "net/netfilter/nf_conntrack_count",
            "net/netfilter/nf_conntrack_udp_timeout",
            "net/netfilter/nf_conntrack_udp_timeout_stream",
        ]
        .map(str::to_owned)
        .into();
        for uplink in uplinks {
            names.push(format!("net/ipv4/conf/{uplink}/rp_filter"));
            names.push(format!("net/ipv6/conf/{uplink}/disable_ipv6"));
            names.push(format!("net/ipv6/conf/{uplink}/accept_ra"));
            names.push(format!("net/ipv6/conf/{uplink}/forwarding"));
        }
        for name in names {
            if let Ok(text) = system.read(&format!("/proc/sys/{name}")) {
                self.sysctls.insert(name, text.trim().to_owned());
            }
        }
        for uplink in uplinks {
            match system.run("ethtool", &["-k", uplink]) {
                Ok(text) => {
                    self.offloads.insert((*uplink).to_owned(), parse::offloads(&text));
                }
                Err(error) => self.miss_offloads(&error),
            }
        }
        self.has_iptables =
            system.read("/proc/net/ip_tables_names").is_ok_and(|tables| !tables.trim().is_empty());
        match system.run("nft", &["-j", "list", "ruleset"]) {
            Ok(text) => self.firewall = firewall::Ruleset::parse(&text),
            // Without the command there may be rules that another program made.
            Err(RunError::Missing) if !cfg!(target_os = "linux") => {}
            Err(RunError::Missing) => self.unseen.push(
                Unseen::new("firewall", "the command nft is not installed")
                    .mend("sudo apt-get install nftables"),
            ),
            Err(_) => self.unseen.push(
                Unseen::new(
                    "firewall",
                    "only root may read its rules; whether packets pass was tried",
                )
                .mend("run this command with sudo"),
            ),
        }
    }

    fn miss_offloads(&mut self, error: &RunError) {
        let unseen = match error {
            _ if !cfg!(target_os = "linux") => {
                Unseen::new("GRO and GSO of interfaces", "they are looked at on Linux only")
            }
            RunError::Missing => {
                Unseen::new("GRO and GSO of interfaces", "the command ethtool is not installed")
                    .mend("sudo apt-get install ethtool")
            }
            error => Unseen::new(
                "GRO and GSO of interfaces",
                format!("the command ethtool gave nothing: {error}"),
            ),
        };
        if !self.unseen.contains(&unseen) {
            self.unseen.push(unseen);
        }
    }

    /// Reads the neighbours, and what may have changed while probes were on their way.
    pub fn look_again(&mut self, system: &dyn System) {
        if let Ok(text) = system.run("ip", &["-j", "neighbour", "show"]) {
            self.neighbours = parse::neighbours(&text);
        }
        let count = "net/netfilter/nf_conntrack_count";
        if let Ok(text) = system.read(&format!("/proc/sys/{count}")) {
            self.sysctls.insert(count.to_owned(), text.trim().to_owned());
        }
    }

    /// Asks the kernel for its route to `to`, from `from` if that is given.
    pub fn look_up(system: &dyn System, to: IpAddr, from: Option<IpAddr>) -> Option<Lookup> {
        let (to, from) = (to.to_string(), from.map(|ip| ip.to_string()));
        let mut words = vec!["-j", "route", "get", &to];
        if let Some(from) = &from {
            words.extend(["from", from]);
        }
        match system.run("ip", &words) {
            Ok(text) => Some(parse::lookup(&text)),
            Err(RunError::Failed(said)) => {
                let error = said.trim_start_matches("RTNETLINK answers: ").to_owned();
                Some(Lookup { error: Some(error), ..Lookup::default() })
            }
            Err(_) => None,
        }
    }

    /// The interface of this name.
    pub fn link(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.name == name)
    }

    /// The interface that has this address.
    pub fn link_of(&self, ip: IpAddr) -> Option<&Link> {
        self.links.iter().find(|link| link.addresses.iter().any(|a| a.prefix.ip == ip))
    }

    /// A number below `/proc/sys`.
    pub fn sysctl(&self, name: &str) -> Option<i64> {
        self.sysctls.get(name)?.parse().ok()
    }

    /// The routes through `dev` that packets from `source` to `to` may take: those of the main
    /// table, and of tables that a rule for this source leads to.
    pub fn routes_through<'a>(
        &'a self,
        dev: &'a str,
        source: IpAddr,
        to: IpAddr,
    ) -> impl Iterator<Item = &'a Route> {
        self.routes.iter().flatten().filter(move |route| {
            route.is_unicast
                && route.dev.as_deref() == Some(dev)
                && route.to.contains(to)
                && (route.table == "main" || self.leads_to(dev, source, &route.table))
        })
    }

    fn leads_to(&self, dev: &str, source: IpAddr, table: &str) -> bool {
        self.rules.iter().any(|rule| {
            rule.is_v6 == source.is_ipv6()
                && rule.table.as_deref() == Some(table)
                && rule.from.is_none_or(|from| from.contains(source))
                && rule.oif.as_deref().is_none_or(|oif| oif == dev)
                && !rule.is_narrow
        })
    }

    /// The rule that is for this source address alone.
    pub fn rule_for(&self, source: IpAddr) -> Option<&Rule> {
        self.rules.iter().find(|rule| {
            let is_for = rule.from.is_some_and(|from| from.len > 0 && from.contains(source));
            is_for && rule.oif.is_none() && !rule.is_narrow
        })
    }

    /// True if an interface can be taken for an uplink without being named: it has an address that
    /// peers could use, and is a device, or routes to `to` lead through it.
    pub fn may_be_uplink(&self, link: &Link, to: &[IpAddr]) -> bool {
        if link.is_loopback || link.is_tunnel() || link.usable().next().is_none() {
            return false;
        }
        let routed = || {
            let sources: Vec<IpAddr> = link.usable().map(|a| a.prefix.ip).collect();
            sources.iter().any(|&source| {
                let towards = to.iter().filter(|to| to.is_ipv6() == source.is_ipv6());
                towards
                    .into_iter()
                    .any(|&to| self.routes_through(&link.name, source, to).next().is_some())
            })
        };
        !link.is_inside() || routed()
    }
}

#[cfg(test)]
mod tests;
