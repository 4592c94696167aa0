//! Packets on their way through NATs.
//!
//! A packet climbs from its sender's network through one NAT after the other, until it is where its
//! destination means something: an address of a host, or the public one of a NAT. It takes the way
//! to the host behind that, and descends at the other end from NAT to NAT.

use std::net::SocketAddr;

use super::Network;
use super::nats::{Entrance, Face, HostAddress, InnerAddress, Made, Pair, PlacedNat};
use super::path::Path;
use super::route::{NatRole, Route, RouteSpec};
use crate::ids::{NatId, NodeId, RouteId};
use crate::nat::{NatBox, NatSpec, NatStats};
use crate::packet::{DropCause, Handle};
use crate::paths::{PathEnds, PathLinks};
use crate::schedule::Change;
use manypath_proto::Instant;

#[cfg(test)]
mod tests;

/// Routes at most that packets through NATs make. A packet that needs one more has none.
const MOST_MADE: usize = 1 << 17;

/// How a packet leaves.
#[derive(Copy, Clone, Debug)]
struct Exit {
    /// The direction of a way that it takes.
    way: RouteId,
    /// The packet's source once the NATs on the sender's side have translated it.
    source: SocketAddr,
    /// The first NAT on the receiver's side, if any.
    entry: Option<NatId>,
}

impl Network {
    /// Adds a NAT whose public address is on the Internet, where hosts are unless they are put
    /// [behind](Self::put_behind) a NAT.
    ///
    /// # Panics
    ///
    /// If another NAT there has this public address.
    pub fn add_nat(&mut self, spec: NatSpec) -> NatId {
        self.place_nat(spec, None)
    }

    /// Adds a NAT inside the network of another: a home's behind a carrier's.
    ///
    /// # Panics
    ///
    /// If another NAT there has this public address.
    pub fn add_nat_behind(&mut self, spec: NatSpec, outer: NatId) -> NatId {
        self.place_nat(spec, Some(outer))
    }

    fn place_nat(&mut self, spec: NatSpec, outer: Option<NatId>) -> NatId {
        self.release_links();
        let taken = self.nats.nat_at(outer, spec.public);
        assert!(taken.is_none(), "two NATs have the address {}", spec.public);
        let id = NatId(self.nats.placed.len() as u32);
        let rng = self.rng.fork(&format!("NAT {}", id.0));
        self.nats.placed.push(PlacedNat { nat: NatBox::new(spec, rng), outer });
        id
    }

    /// Puts an address of a node into the network inside a NAT, out of that of another NAT if it
    /// was there. Only ways that are [added](Self::add_way) lead to it.
    ///
    /// # Panics
    ///
    /// If another node there has the address.
    pub fn put_behind(&mut self, node: NodeId, address: SocketAddr, nat: NatId) {
        let old = self.nats.inside.insert(InnerAddress { nat, address }, node);
        assert!(old.is_none_or(|old| old == node), "two hosts behind a NAT have {address}");
        let before = self.nats.behind.insert(HostAddress { node, address }, nat);
        if let Some(before) = before.filter(|before| *before != nat) {
            self.nats.inside.remove(&InnerAddress { nat: before, address });
        }
    }

    /// Joins two addresses, each of which may be behind NATs, by links in both directions. Returns
    /// its number as a path.
    ///
    /// It is the way of what an end sends to the other's address where it can be seen: to the
    /// address itself within one network and on the Internet, and else to any port of the public
    /// address of the outermost NAT between them. The NATs on the sender's side translate a packet
    /// when it is sent, those on the receiver's side when it arrives there. If both are behind one
    /// NAT, they reach each other without it, and by its public address only if it does
    /// hairpinning.
    ///
    /// An address that a relay lends to a host is an address of the host that is behind no NAT.
    ///
    /// # Panics
    ///
    /// If there are no links.
    pub fn add_way(&mut self, ends: PathEnds, links: PathLinks) -> usize {
        let ((near, source), (far, destination)) = (ends.near, ends.far);
        let PathLinks { forward, mut reverse } = links;
        let away = RouteSpec { from: near, source, destination, links: forward.clone(), to: far };
        let home = RouteSpec {
            from: far,
            source: destination,
            destination: source,
            links: reverse.clone(),
            to: near,
        };
        reverse.reverse();
        let routes = (self.add_direction(away), self.add_direction(home));
        let number = self.paths.len();
        let (forward_drops, reverse_drops) = Default::default();
        self.paths.push(Path { forward, reverse, routes, forward_drops, reverse_drops });
        self.mark_routes(number, routes.0, routes.1);
        number
    }

    /// Adds one direction of a way.
    fn add_direction(&mut self, spec: RouteSpec) -> RouteId {
        self.release_links();
        assert!(!spec.links.is_empty(), "a way needs at least one link");
        let id = RouteId(self.routes.len() as u32);
        let from = HostAddress { node: spec.from, address: spec.source };
        self.nats.ways.entry(from).or_default().push(id);
        let (seen_ends, role) = ((spec.destination, spec.source), NatRole::Way);
        let (is_mapped, is_blank, path) = (true, false, None);
        self.routes.push(Route { spec, seen_ends, is_mapped, is_blank, role, path });
        id
    }

    /// Makes a NAT forget its mappings, as it does when it reboots.
    pub fn reboot_nat(&mut self, nat: NatId) {
        self.nats.placed_mut(nat).nat.forget();
    }

    /// Plans a reboot of a NAT.
    pub fn reboot_nat_at(&mut self, at: Instant, nat: NatId) {
        self.plan(at, Change::RebootNat(nat));
    }

    /// Counters of a NAT so far.
    pub fn nat_stats(&self, nat: NatId) -> NatStats {
        self.nats.placed(nat).nat.stats()
    }

    /// The NATs that an address of a node is behind, the innermost first.
    pub fn nats_of(&self, node: NodeId, local: SocketAddr) -> Vec<NatId> {
        let first = self.nats.realm_of(HostAddress { node, address: local });
        std::iter::successors(first, |nat| self.nats.placed(*nat).outer).collect()
    }

    /// Sets the STUN server that [`reflexive`](Self::reflexive) asks: 192.0.2.9:3478 unless said.
    /// It is on the Internet, and mappings that depend on peers depend on its address, too.
    pub fn set_stun_server(&mut self, server: SocketAddr) {
        self.nats.stun_server = server;
    }

    /// The address that a STUN server would see if the node asked it from this address now; the
    /// request and the answer take no time. As the request would, this makes or refreshes the
    /// mappings toward the server. `None` if the node does not have the address, or a NAT's table
    /// is full.
    pub fn reflexive(&mut self, node: NodeId, local: SocketAddr) -> Option<SocketAddr> {
        let has_way = !self.nats.ways_from(node, local).is_empty();
        let mut routes = self.nodes[node.0 as usize].routes.iter();
        let has_address = has_way || routes.any(|(source, ..)| *source == local);
        if !has_address || self.gone.contains(&(node, local)) {
            return None;
        }
        let (now, server) = (self.queue.now(), self.nats.stun_server);
        let mut seen = local;
        for nat in self.nats_of(node, local) {
            seen = self.nats.placed_mut(nat).nat.outbound(now, seen, server)?;
        }
        Some(seen)
    }

    /// True if hosts at `from` reach one at `to`, each behind that NAT or on the Internet, by the
    /// address that it has itself.
    pub(crate) fn sees(&self, from: Option<NatId>, to: Option<NatId>) -> bool {
        let outwards = std::iter::successors(from, |nat| self.nats.placed(*nat).outer);
        to.is_none() || outwards.into_iter().any(|nat| Some(nat) == to)
    }

    /// The route that a packet takes now through the NATs on its sender's side, which translate it.
    #[cold]
    pub(super) fn route_outwards(
        &mut self,
        node: NodeId,
        local: SocketAddr,
        remote: SocketAddr,
    ) -> Option<RouteId> {
        let from = HostAddress { node, address: local };
        if self.nats.ways_from(node, local).is_empty() || self.gone.contains(&(node, local)) {
            return None;
        }
        let Exit { way, source, entry } = self.find_exit(from, remote)?;
        let to = self.routes[way.0 as usize].spec.to;
        let seen = (remote, source);
        let route = self.make_route(Made { way, destination: remote, seen, entry, to })?;
        self.nats.latest.insert(Pair { node, local, remote }, route);
        Some(route)
    }

    /// Climbs from NAT to NAT to where `remote` is.
    fn find_exit(&mut self, from: HostAddress, remote: SocketAddr) -> Option<Exit> {
        let now = self.queue.now();
        let mut source = from.address;
        let mut realm = self.nats.realm_of(from);
        loop {
            if let Some((way, entry)) = self.find_way(from, realm, remote) {
                return Some(Exit { way, source, entry });
            }
            let inner = realm?;
            let PlacedNat { nat, outer } = self.nats.placed_mut(inner);
            let turns_round = nat.spec().public == remote.ip();
            if turns_round && !nat.spec().hairpin {
                nat.refuse();
                return None;
            }
            realm = *outer;
            source = nat.outbound(now, source, remote)?;
            if turns_round {
                let way = self.way_through(from, inner, remote)?;
                return Some(Exit { way, source, entry: Some(inner) });
            }
        }
    }

    /// The way from an address to `remote`, which is looked up in a realm, and the NAT that it
    /// leads to, if it does to one.
    fn find_way(
        &self,
        from: HostAddress,
        realm: Option<NatId>,
        remote: SocketAddr,
    ) -> Option<(RouteId, Option<NatId>)> {
        let ways = self.nats.ways_from(from.node, from.address);
        let itself = ways.iter().find(|way| {
            let far = self.far_end(**way);
            far.address == remote && self.nats.face(far, realm) == Some(Face::Itself)
        });
        if let Some(way) = itself {
            return Some((*way, None));
        }
        let nat = self.nats.nat_at(realm, remote.ip())?;
        Some((self.way_through(from, nat, remote)?, Some(nat)))
    }

    /// The way from an address to a host behind a NAT: to the one that `remote` is a mapping of,
    /// else to any, since the NAT drops the packet only when it arrives.
    fn way_through(&self, from: HostAddress, nat: NatId, remote: SocketAddr) -> Option<RouteId> {
        let ways = self.nats.ways_from(from.node, from.address);
        let is_behind = |way: &&RouteId| self.nats.face(self.far_end(**way), Some(nat)).is_some();
        let holder = self.nats.holder(self.queue.now(), nat, remote);
        let to_holder = ways.iter().find(|way| Some(self.far_end(**way)) == holder);
        to_holder.or_else(|| ways.iter().find(is_behind)).copied()
    }

    fn far_end(&self, way: RouteId) -> HostAddress {
        let spec = &self.routes[way.0 as usize].spec;
        HostAddress { node: spec.to, address: spec.destination }
    }

    /// The route that this describes; `None` if there are too many.
    fn make_route(&mut self, made: Made) -> Option<RouteId> {
        if let Some(known) = self.nats.made.get(&made) {
            return Some(*known);
        }
        if self.nats.made.len() >= MOST_MADE {
            return None;
        }
        let Made { way, destination, seen, entry, to } = made;
        let base = &self.routes[way.0 as usize];
        let spec = RouteSpec { destination, to, ..base.spec.clone() };
        let path = base.path;
        let id = RouteId(self.routes.len() as u32);
        let (mut role, mut is_mapped) = (NatRole::Made, !self.gone.contains(&(to, seen.0)));
        if let Some(nat) = entry {
            self.nats.entrances.insert(id, Entrance { nat, way });
            (role, is_mapped) = (NatRole::Entrance, false);
        }
        self.routes.push(Route { spec, seen_ends: seen, is_mapped, is_blank: false, role, path });
        self.nats.made.insert(made, id);
        Some(id)
    }

    /// Takes a packet in through the NATs at the end of its way, and gives it the route that its
    /// receiver sees. Returns why it is dropped instead, if it is.
    pub(super) fn take_inwards(&mut self, packet: Handle) -> Option<DropCause> {
        let number = self.packets.get(packet).route;
        let Some(&Entrance { nat, way }) = self.nats.entrances.get(&number) else {
            return Some(DropCause::Unmapped); // a mapping that is gone
        };
        let (destination, source) = self.routes[number.0 as usize].seen_ends;
        let host = match self.nats.let_in(self.queue.now(), nat, destination, source) {
            Ok(host) => host,
            Err(cause) => return Some(cause),
        };
        let HostAddress { node: to, address } = host;
        let seen = (address, source);
        match self.make_route(Made { way, destination, seen, entry: None, to }) {
            Some(route) => {
                self.packets.get_mut(packet).route = route;
                (!self.routes[route.0 as usize].is_mapped).then_some(DropCause::Unmapped)
            }
            None => Some(DropCause::NoRoute),
        }
    }

    /// Forgets the routes that packets made from or to an address which a node loses or gets.
    pub(super) fn forget_made(&mut self, node: NodeId, address: SocketAddr) {
        let is_concerned = |id: &RouteId| {
            let Route { spec, seen_ends, .. } = &self.routes[id.0 as usize];
            (spec.from, spec.source) == (node, address) || (spec.to, seen_ends.0) == (node, address)
        };
        self.nats.made.retain(|_, id| !is_concerned(id));
        self.nats.latest.retain(|_, id| !is_concerned(id));
    }

    /// Replaces an address of a node at the ends of ways. Returns the addresses of others that are
    /// reached from it as they are.
    pub(super) fn move_ways(
        &mut self,
        node: NodeId,
        old: SocketAddr,
        new: SocketAddr,
    ) -> Vec<SocketAddr> {
        self.forget_made(node, new);
        self.nats.rename(HostAddress { node, address: old }, HostAddress { node, address: new });
        for Route { spec, seen_ends, role, is_mapped, .. } in &mut self.routes {
            if *role != NatRole::Way {
                continue;
            }
            if (spec.from, spec.source) == (node, old) {
                spec.source = new;
            }
            if (spec.to, spec.destination) == (node, old) {
                (spec.destination, *is_mapped) = (new, true);
            }
            *seen_ends = (spec.destination, spec.source);
        }
        let realm = self.nats.realm_of(HostAddress { node, address: new });
        let ends = self.nats.ways_from(node, new).iter().map(|way| self.far_end(*way));
        let seen = ends.filter(|far| {
            let is_there = !self.gone.contains(&(far.node, far.address));
            is_there && self.sees(realm, self.nats.realm_of(*far))
        });
        seen.map(|far| far.address).collect()
    }
}
