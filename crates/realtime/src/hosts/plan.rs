//! Hosts, interfaces and addresses of a scenario.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use manypath_sim::End;
use manypath_sim::scenario::{BareNetwork, CompiledScenario};

/// Most paths: each has a number of one byte in its addresses.
const MOST_PATHS: usize = 250;
/// The network of all addresses: 10.77.PATH.1 and 10.77.PATH.2.
const NETWORK: [u8; 2] = [10, 77];

/// Why a scenario cannot run between namespaces.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Part of it has no counterpart.
    #[error("the scenario cannot be emulated: {0}")]
    Unsupported(String),
    /// It has more than 250 paths.
    #[error("the scenario has {0} paths, more than {MOST_PATHS}")]
    TooManyPaths(usize),
}

/// A host: a network namespace with an interface for each of its paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// Its name in the scenario.
    pub name: String,
    /// Its interfaces, in the order of the paths.
    pub interfaces: Vec<InterfacePlan>,
}

/// An interface of a host: the end of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterfacePlan {
    /// The number of this end among all: twice the number of its path, and one more if it is the
    /// far end.
    pub(super) number: usize,
    /// Its name: `path1` for the first path of the scenario.
    pub device: String,
    /// Its address.
    pub address: Ipv4Addr,
    /// The address at the other end of the path.
    pub peer: Ipv4Addr,
    /// Longest packet in bytes.
    pub mtu: u32,
}

/// A scenario ready to be built.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) bare: BareNetwork,
    pub(super) hosts: Vec<HostPlan>,
}

/// The address of an end of a path.
fn address(path: usize, end: End) -> Ipv4Addr {
    let [a, b] = NETWORK;
    // Paths are counted before addresses are used.
    let path = u8::try_from(path + 1).unwrap_or(u8::MAX);
    Ipv4Addr::new(a, b, path, if end == End::Near { 1 } else { 2 })
}

impl Plan {
    pub(super) fn new(scenario: &CompiledScenario, seed: u64) -> Result<Plan, PlanError> {
        let bare = scenario.bare(seed, |path, end| SocketAddr::new(address(path, end).into(), 0));
        let bare = bare.map_err(PlanError::Unsupported)?;
        if bare.paths.len() > MOST_PATHS {
            return Err(PlanError::TooManyPaths(bare.paths.len()));
        }
        let mut hosts: Vec<HostPlan> = bare
            .hosts
            .iter()
            .map(|host| HostPlan { name: host.name.clone(), interfaces: Vec::new() })
            .collect();
        for (path, model) in bare.paths.iter().enumerate() {
            let both = [(End::Near, End::Far), (End::Far, End::Near)];
            for (side, (end, other)) in both.into_iter().enumerate() {
                hosts[model.ends[side].host].interfaces.push(InterfacePlan {
                    number: 2 * path + side,
                    device: format!("path{}", path + 1),
                    address: address(path, end),
                    peer: address(path, other),
                    // Linux allows TUN devices at most this.
                    mtu: model.ends[side].mtu.min(65_535),
                });
            }
        }
        Ok(Plan { bare, hosts })
    }
}

/// `name` with only the characters that `is_allowed` allows, and `other` for the rest.
fn replaced(name: &str, other: char, is_allowed: impl Fn(char) -> bool) -> String {
    name.chars().map(|c| if is_allowed(c) { c } else { other }).collect()
}

impl HostPlan {
    /// Its name for resolvers: letters, digits and `-`.
    pub fn host_name(&self) -> String {
        let name = replaced(&self.name, '-', |c| c.is_ascii_alphanumeric());
        // The longest that Linux takes.
        name.chars().take(60).collect()
    }

    /// The environment variable with its addresses: `MANYPATH_ADDRESSES_Z` for the host `z`.
    pub fn variable(&self) -> String {
        let name = replaced(&self.name, '_', |c| c.is_ascii_alphanumeric());
        format!("MANYPATH_ADDRESSES_{}", name.to_ascii_uppercase())
    }

    /// True if an interface is its own, or at the other end of a path of its own.
    fn reaches(&self, other: &InterfacePlan) -> bool {
        self.interfaces.iter().any(|own| own.address == other.address || own.peer == other.address)
    }

    /// Its addresses that `other` reaches, in the order of the paths.
    pub fn addresses_from(&self, other: &HostPlan) -> Vec<String> {
        let reached = self.interfaces.iter().filter(|interface| other.reaches(interface));
        reached.map(|interface| interface.address.to_string()).collect()
    }

    /// The commands of `ip -batch` that configure its interfaces, which exist already.
    ///
    /// Packets leave through the interface that has their source address. A source address reaches
    /// the other end of its path only.
    pub(super) fn commands(&self, mptcp: bool) -> String {
        let mut text = String::from("link set lo up\n");
        for (i, interface) in self.interfaces.iter().enumerate() {
            let InterfacePlan { device, address, peer, mtu, .. } = interface;
            let table = 100 + i;
            // Writing to a String does not fail.
            let _ = write!(
                text,
                "link set {device} mtu {mtu} txqueuelen 10000 up\n\
                 addr add {address}/32 dev {device}\n\
                 route add {peer}/32 dev {device} src {address}\n\
                 route add {peer}/32 dev {device} src {address} table {table}\n\
                 route add unreachable default table {table}\n\
                 rule add from {address} lookup {table}\n"
            );
            if mptcp {
                let _ = writeln!(text, "mptcp endpoint add {address} dev {device} signal");
            }
        }
        if mptcp {
            text += "mptcp limits set subflows 8 add_addr_accepted 8\n";
        }
        text
    }
}

/// Lines for /etc/hosts of `own`: the name of each host with all addresses that `own` reaches, and
/// `NAME-1`, `NAME-2` with its first and second address of all.
pub(super) fn hosts_file(own: &HostPlan, hosts: &[HostPlan]) -> String {
    let mut text = String::new();
    for host in hosts {
        let name = host.host_name();
        for (i, interface) in host.interfaces.iter().enumerate() {
            if own.reaches(interface) {
                let _ = writeln!(text, "{} {name} {name}-{}", interface.address, i + 1);
            }
        }
    }
    text
}

/// The address at which packets of an interface arrive or leave.
pub(super) fn as_socket_addr(address: Ipv4Addr) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(address), 0)
}

#[cfg(test)]
mod tests;
