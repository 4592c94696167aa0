//! A route: the links between two addresses.

use std::net::SocketAddr;

use crate::ids::{LinkId, NodeId};

/// Describes a route: the links that packets from one address to another cross.
#[derive(Clone, Debug)]
pub struct RouteSpec {
    /// The node that sends.
    pub from: NodeId,
    /// The address it sends from.
    pub source: SocketAddr,
    /// The address it sends to.
    pub destination: SocketAddr,
    /// The links the packets cross, in order.
    pub links: Vec<LinkId>,
    /// The node that receives.
    pub to: NodeId,
}

#[derive(Debug)]
pub(super) struct Route {
    pub(super) spec: RouteSpec,
    /// Destination and source as the receiving node sees them.
    pub(super) seen_ends: (SocketAddr, SocketAddr),
    /// False once a NAT has dropped the mapping behind it.
    pub(super) is_mapped: bool,
    /// Its packets are cross-traffic, of which only the size counts, and end on the last link.
    pub(super) is_blank: bool,
    /// The number of the path it belongs to, and whether it leads forward.
    pub(super) path: Option<(usize, bool)>,
}
