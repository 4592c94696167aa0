//! Identifiers of the parts of a network, and the ends of a path.

/// Names a node: a host with addresses and one timer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub(crate) u32);

/// Names one direction of a link.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(pub(crate) u32);

/// Names a route.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RouteId(pub(crate) u32);

/// Names a source of cross-traffic.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub(crate) u32);

/// Names a NAT.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NatId(pub(crate) u32);

/// An end of a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The end from which "forward" leads away: the associating host's.
    Near,
    /// The other end.
    Far,
}
