//! A path as the network keeps it.

use crate::ids::{LinkId, RouteId};

/// A path as built: links and the routes over them.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) forward: Vec<LinkId>,
    /// In the order of `forward`: `reverse[i]` leads back over the hop of `forward[i]`.
    pub(crate) reverse: Vec<LinkId>,
    pub(crate) routes: (RouteId, RouteId),
    pub(crate) forward_drops: PathDrops,
    pub(crate) reverse_drops: PathDrops,
}

impl Path {
    /// Its routes, forward and back.
    pub(crate) fn routes(&self) -> (RouteId, RouteId) {
        self.routes
    }

    pub(crate) fn set_route(&mut self, forward: bool, route: RouteId) {
        *(if forward { &mut self.routes.0 } else { &mut self.routes.1 }) = route;
    }
}

/// Packets that the network dropped on a path in one direction.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct PathDrops {
    /// Packets, copies that the network made included.
    pub packets: u64,
    /// DATA chunks in them.
    pub data_chunks: u64,
}
