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
    /// False once a NAT has dropped the mapping behind it, and at an entrance, where NATs look for
    /// one for each packet.
    pub(super) is_mapped: bool,
    /// Its packets are cross-traffic, of which only the size counts, and end on the last link.
    pub(super) is_blank: bool,
    /// The part that NATs have in it.
    pub(super) role: NatRole,
    /// The direction of a path that it is.
    pub(super) path: Option<PathDirection>,
}

/// The part that NATs have in a route.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum NatRole {
    /// Nothing.
    None,
    /// It describes one direction of a way through NATs; no packet takes it itself.
    Way,
    /// A packet made it, and no NAT is at its far end any more.
    Made,
    /// A packet made it, and at its far end a NAT says whose it is.
    Entrance,
}

/// A direction of a path.
#[derive(Copy, Clone, Debug)]
pub(crate) struct PathDirection {
    /// The number of the path.
    pub(crate) path: usize,
    /// True away from the near end.
    pub(crate) is_forward: bool,
}
