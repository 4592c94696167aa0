//! Addresses that nodes lose and get while packets are under way.

use std::net::{IpAddr, SocketAddr};

use super::route::NatRole;
use super::{Network, PathDirection, Route};
use crate::ids::{End, NodeId, RouteId};

/// An address that a node lost or got. Its driver tells the node; nobody tells the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressChange {
    /// Nothing leaves from this address, or arrives at it, any more.
    Gone {
        /// Whose it was.
        node: NodeId,
        /// The address.
        address: SocketAddr,
    },
    /// The node has this address, over the links of the one it lost.
    Came {
        /// Whose it is.
        node: NodeId,
        /// The address that it lost.
        old: SocketAddr,
        /// The address.
        address: SocketAddr,
        /// The addresses of others that packets can reach from it.
        remotes: Vec<SocketAddr>,
    },
}

impl AddressChange {
    /// The node whose address it is.
    pub fn node(&self) -> NodeId {
        match self {
            AddressChange::Gone { node, .. } | AddressChange::Came { node, .. } => *node,
        }
    }
}

impl Network {
    /// Takes an address from a node, for all paths that have it: what it sends from there has no
    /// route, and what comes there is dropped, with all that is on its way already.
    pub fn take_address(&mut self, node: NodeId, address: SocketAddr) -> AddressChange {
        self.release_links();
        self.gone.push((node, address));
        self.nodes[node.0 as usize].routes.retain(|(source, ..)| *source != address);
        for route in &mut self.routes {
            // Its own end of the route: behind a NAT the sender knows another address.
            route.is_mapped &= (route.spec.to, route.seen_ends.0) != (node, address);
        }
        self.forget_made(node, address);
        AddressChange::Gone { node, address }
    }

    /// Gives a node an address in place of one that was [taken](Self::take_address), with routes
    /// over the same links. It may be the same.
    pub fn give_address(
        &mut self,
        node: NodeId,
        old: SocketAddr,
        address: SocketAddr,
    ) -> AddressChange {
        self.release_links();
        self.gone.retain(|gone| *gone != (node, address));
        let (mut seen, mut remotes) = (Vec::new(), Vec::new());
        // The newest of those between the same addresses is the one that was in use.
        for number in (0..self.routes.len()).rev() {
            let route = &self.routes[number];
            if route.role != NatRole::None {
                continue;
            }
            let (mut spec, path) = (route.spec.clone(), route.path);
            let is_there = (spec.from, spec.source) == (node, old);
            if !is_there && (spec.to, spec.destination) != (node, old) || route.is_blank {
                continue;
            }
            *(if is_there { &mut spec.source } else { &mut spec.destination }) = address;
            let ends = (spec.source, spec.destination);
            if seen.contains(&ends) {
                continue;
            }
            seen.push(ends);
            let is_mapped = !self.gone.contains(&(spec.to, spec.destination));
            let is_known = !self.gone.contains(&(spec.from, spec.source));
            if is_there && is_mapped {
                remotes.push(spec.destination);
            }
            let id = RouteId(self.routes.len() as u32);
            if is_known {
                self.nodes[spec.from.0 as usize].routes.insert(0, (ends.0, ends.1, id));
            }
            let seen_ends = (spec.destination, spec.source);
            let (is_blank, role) = (false, NatRole::None);
            self.routes.push(Route { spec, seen_ends, is_mapped, is_blank, role, path });
            if let Some(PathDirection { path, is_forward }) = path {
                self.paths[path].set_route(is_forward, id);
            }
        }
        remotes.reverse();
        remotes.extend(self.move_ways(node, old, address));
        AddressChange::Came { node, old, address, remotes }
    }

    /// The node at an end of a path, and the address it has, or had last, there.
    pub(crate) fn path_end(&self, path: usize, end: End) -> (NodeId, SocketAddr) {
        let (forward, _) = self.paths[path].routes();
        let spec = &self.routes[forward.0 as usize].spec;
        match end {
            End::Near => (spec.from, spec.source),
            End::Far => (spec.to, spec.destination),
        }
    }

    /// An address of the same network that nobody ever had; the same if there is none left.
    pub(crate) fn fresh_address(&self, old: SocketAddr) -> SocketAddr {
        let is_used = |address: &SocketAddr| {
            self.routes.iter().any(|r| [r.spec.source, r.spec.destination].contains(address))
        };
        let IpAddr::V4(ip) = old.ip() else { return old };
        let [a, b, c, _] = ip.octets();
        let host = |last: u8| SocketAddr::from(([a, b, c, last], old.port()));
        (1..=254).map(host).find(|address| !is_used(address)).unwrap_or(old)
    }
}
