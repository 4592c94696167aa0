//! The network of a scenario without its transfers, for programs that are not simulated.

use std::net::SocketAddr;

use manypath_proto::sizes::ETHERNET_MTU;
use manypath_proto::{Instant, Rng};

use super::model::{After, CompiledScenario, PlannedChange};
use super::wiring::Wiring;
use crate::ids::{End, LinkId, NodeId};
use crate::network::{Network, RouteSpec};

/// A network whose packets come from outside.
///
/// Its packets are IP packets, header included, so no bytes are added for headers. Addresses have
/// port 0.
#[derive(Debug)]
pub struct BareNetwork {
    /// The links, and routes between the ends of each path.
    pub net: Network,
    /// The nodes at which flows begin or end, in the order of the scenario.
    pub hosts: Vec<BareHost>,
    /// The paths of all flows.
    pub paths: Vec<BarePath>,
    /// The links, in the order of the scenario.
    pub links: Vec<BareLink>,
    wiring: Wiring,
    /// Changes that count from the first data.
    waiting: Vec<PlannedChange>,
}

/// A host of a [`BareNetwork`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BareHost {
    /// Its name; `a` and `z` in the short form of a scenario.
    pub name: String,
    /// Its node.
    pub node: NodeId,
}

/// A path of a [`BareNetwork`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarePath {
    /// The flow that it belongs to.
    pub flow: String,
    /// Its name in the scenario.
    pub name: String,
    /// The near and the far end.
    pub ends: [BareEnd; 2],
}

/// An end of a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BareEnd {
    /// The host, as an index of [`BareNetwork::hosts`].
    pub host: usize,
    /// Its address on this path.
    pub address: SocketAddr,
    /// The MTU of its interface in bytes: 1500, or more if its first link takes longer packets.
    pub mtu: u32,
}

/// A link of a [`BareNetwork`], both directions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BareLink {
    /// Its name in the scenario.
    pub name: String,
    /// Its forward direction.
    pub forward: LinkId,
    /// Its reverse direction.
    pub reverse: LinkId,
}

impl CompiledScenario {
    /// The scenario's network, with its cross-traffic and planned changes and without its
    /// transfers. `address` gives the address of an end of a path, by the number of the path among
    /// all flows, counted from 0. The links draw from `seed` as in a run of the simulator.
    ///
    /// # Errors
    ///
    /// The reason why such a network cannot have it, in words: changes of addresses, NATs and
    /// relays.
    pub fn bare(
        &self,
        seed: u64,
        address: impl Fn(usize, End) -> SocketAddr,
    ) -> Result<BareNetwork, String> {
        if let Some(what) = self.beyond_links() {
            return Err(what.to_owned());
        }
        let mut net = Network::new(Rng::from_number(seed).fork("network"), 0);
        let wiring = Wiring::add(self, &mut net);
        let mut hosts: Vec<BareHost> = Vec::new();
        // The hosts of the file, by their numbers there.
        let mut numbers = vec![None; self.nodes.len()];
        for (node, name) in self.nodes.iter().enumerate() {
            if self.flows.iter().any(|flow| flow.ends.0 == node || flow.ends.1 == node) {
                numbers[node] = Some(hosts.len());
                hosts.push(BareHost { name: name.clone(), node: net.add_node() });
            }
        }
        let mut paths = Vec::new();
        for flow in &self.flows {
            let (Some(near), Some(far)) = (numbers[flow.ends.0], numbers[flow.ends.1]) else {
                continue;
            };
            for path in &flow.paths {
                let number = paths.len();
                let links = wiring.path(&path.crossings);
                let end = |host, end, first: LinkId| BareEnd {
                    host,
                    address: address(number, end),
                    mtu: net.link_spec(first).mtu.unwrap_or(0).max(ETHERNET_MTU as u32),
                };
                let (Some(&there), Some(&back)) = (links.forward.first(), links.reverse.first())
                else {
                    continue;
                };
                let ends = [end(near, End::Near, there), end(far, End::Far, back)];
                let route = |from: BareEnd, to: BareEnd, links| RouteSpec {
                    from: hosts[from.host].node,
                    source: from.address,
                    destination: to.address,
                    links,
                    to: hosts[to.host].node,
                };
                net.add_route(route(ends[0], ends[1], links.forward));
                net.add_route(route(ends[1], ends[0], links.reverse));
                paths.push(BarePath { flow: flow.name.clone(), name: path.name.clone(), ends });
            }
        }
        let links = self.cables.iter().zip(wiring.links());
        let links = links.map(|(cable, &[forward, reverse])| BareLink {
            name: cable.name.clone(),
            forward,
            reverse,
        });
        let links = links.collect();
        let mut bare = BareNetwork { net, hosts, paths, links, wiring, waiting: Vec::new() };
        for change in &self.changes {
            match change.after {
                After::Start => bare.wiring.plan(&mut bare.net, change, Instant::ZERO),
                After::FirstData => bare.waiting.push(change.clone()),
            }
        }
        Ok(bare)
    }
}

impl BareNetwork {
    /// Plans the changes whose times count from the first data: from now. Later calls do nothing.
    pub fn note_first_data(&mut self) {
        let now = self.net.now();
        for change in std::mem::take(&mut self.waiting) {
            self.wiring.plan(&mut self.net, &change, now);
        }
    }
}

#[cfg(test)]
mod tests;
