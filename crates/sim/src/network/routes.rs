//! Routes: packets from one address to another cross the links of their route.

use std::net::SocketAddr;

use super::Network;
use super::path::PathDrops;
use super::route::{NatRole, PathDirection, Route, RouteSpec};
use crate::ids::{LinkId, NodeId, RouteId};

impl Network {
    /// Adds a route over at least one link. It hides an earlier one between the same addresses from
    /// the same node.
    pub fn add_route(&mut self, spec: RouteSpec) -> RouteId {
        let (source, destination) = (spec.source, spec.destination);
        self.add_translated_route(spec, (destination, source))
    }

    pub(super) fn add_translated_route(
        &mut self,
        spec: RouteSpec,
        seen_ends: (SocketAddr, SocketAddr),
    ) -> RouteId {
        self.release_links();
        assert!(!spec.links.is_empty(), "a route needs at least one link");
        let id = RouteId(self.routes.len() as u32);
        let known = (spec.source, spec.destination, id);
        self.nodes[spec.from.0 as usize].routes.insert(0, known);
        let (is_mapped, is_blank, role, path) = (true, false, NatRole::None, None);
        self.routes.push(Route { spec, seen_ends, is_mapped, is_blank, role, path });
        id
    }

    /// Gives the source of `forward` a new address in the eyes of its destination, as a NAT does
    /// when it forgets a mapping: packets from now on come from `public`, answers reach the source
    /// when sent to `public`, and answers sent to the old address are dropped. Returns the new
    /// routes, forward and back.
    ///
    /// # Panics
    ///
    /// If the routes are a [way](Self::add_way): its NATs translate.
    pub fn rebind(
        &mut self,
        forward: RouteId,
        reverse: RouteId,
        public: SocketAddr,
    ) -> (RouteId, RouteId) {
        let there = &self.routes[forward.0 as usize];
        assert!(there.role == NatRole::None, "reboot the NATs of a way instead");
        let (there, (seen_destination, _)) = (there.spec.clone(), there.seen_ends);
        let old = &mut self.routes[reverse.0 as usize];
        old.is_mapped = false;
        let mut back = old.spec.clone();
        back.destination = public;
        let seen_back = old.seen_ends;
        let forward = self.add_translated_route(there, (seen_destination, public));
        (forward, self.add_translated_route(back, seen_back))
    }

    /// The links of a route.
    pub fn route_links(&self, route: RouteId) -> &[LinkId] {
        &self.routes[route.0 as usize].spec.links
    }

    /// The number of the path that a route belongs to, if any.
    pub fn route_path(&self, route: RouteId) -> Option<usize> {
        self.routes[route.0 as usize].path.map(|direction| direction.path)
    }

    /// The destination and source of a route's packets as the receiving node sees them. Behind a
    /// NAT the source is not the address they were sent from.
    #[inline]
    pub fn seen_ends(&self, route: RouteId) -> (SocketAddr, SocketAddr) {
        self.routes[route.0 as usize].seen_ends
    }

    /// The node that sends over a route.
    pub(crate) fn route_source(&self, route: RouteId) -> NodeId {
        self.routes[route.0 as usize].spec.from
    }

    /// The route that packets from `local` to `remote` take; through NATs, the one that the last
    /// such packet took.
    pub fn find_route_of(
        &self,
        node: NodeId,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Option<RouteId> {
        self.find_route(node, &local, &remote)
    }

    /// The number of the path that packets from `local` to `remote` take.
    pub fn find_path(&self, node: NodeId, local: SocketAddr, remote: SocketAddr) -> Option<usize> {
        self.route_path(self.find_route(node, &local, &remote)?)
    }

    /// The number of the path that packets from `local` to `remote` take, and the drops of packets
    /// that took it in this direction.
    pub(crate) fn path_drops(
        &self,
        node: NodeId,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Option<(usize, PathDrops)> {
        let route = self.find_route(node, &local, &remote)?;
        let PathDirection { path: number, is_forward } = self.routes[route.0 as usize].path?;
        let path = &self.paths[number];
        Some((number, if is_forward { path.forward_drops } else { path.reverse_drops }))
    }

    #[inline]
    pub(super) fn find_route(
        &self,
        node: NodeId,
        local: &SocketAddr,
        remote: &SocketAddr,
    ) -> Option<RouteId> {
        let known = self.find_plain_route(node, local, remote);
        known.or_else(|| self.nats.latest(node, local, remote))
    }

    /// The route that leads through no NAT.
    #[inline]
    pub(super) fn find_plain_route(
        &self,
        node: NodeId,
        local: &SocketAddr,
        remote: &SocketAddr,
    ) -> Option<RouteId> {
        let known = &self.nodes[node.0 as usize].routes;
        let found = known.iter().find(|(source, to, _)| source == local && to == remote);
        found.map(|&(.., route)| route)
    }

    pub(crate) fn mark_routes(&mut self, path: usize, forward: RouteId, reverse: RouteId) {
        self.routes[forward.0 as usize].path = Some(PathDirection { path, is_forward: true });
        self.routes[reverse.0 as usize].path = Some(PathDirection { path, is_forward: false });
    }
}
