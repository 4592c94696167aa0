//! NATs of a network, and ways that lead through them.
//!
//! Each NAT has a network inside, which is another realm of addresses than the one outside. A way
//! joins two addresses of hosts, wherever they are, by links. Which packets take it is found out
//! one by one: the NATs at the sender's end translate a packet when it is sent, those at the
//! receiver's end when it arrives ([`translation`](super::translation)). A route is made for each
//! pair of addresses that comes up by that, so that between its ends a packet is like any other.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use manypath_proto::Instant;

use crate::ids::{NatId, NodeId, RouteId};
use crate::nat::NatBox;
use crate::packet::DropCause;

/// The STUN server unless another is set: STUN's port (RFC 8489 §8.1) of an address for
/// documentation (RFC 5737).
const STUN_SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 9)), 3478);

/// An address of a node. Two nodes in different networks may have the same.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HostAddress {
    pub(super) node: NodeId,
    pub(super) address: SocketAddr,
}

/// An address in the network inside a NAT.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct InnerAddress {
    pub(super) nat: NatId,
    pub(super) address: SocketAddr,
}

/// Says whose packets go where.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pair {
    pub(super) node: NodeId,
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
}

/// A NAT in its place.
#[derive(Debug)]
pub(super) struct PlacedNat {
    pub(super) nat: NatBox,
    /// The NAT inside whose network its public address is, if any.
    pub(super) outer: Option<NatId>,
}

/// Where a route leads that ends at a NAT.
#[derive(Copy, Clone, Debug)]
pub(super) struct Entrance {
    pub(super) nat: NatId,
    /// The direction of a way that it takes.
    pub(super) way: RouteId,
}

/// Identifies a route that was made.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Made {
    /// The direction of a way that its packets take.
    pub(super) way: RouteId,
    pub(super) destination: SocketAddr,
    /// As of [`Route::seen_ends`].
    pub(super) seen: (SocketAddr, SocketAddr),
    /// The NAT that they come to, before it translated them.
    pub(super) entry: Option<NatId>,
    pub(super) to: NodeId,
}

/// Where an address of a host shows in a realm.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Face {
    /// As it is.
    Itself,
    /// As this NAT's public address.
    Nat(NatId),
}

/// The NATs of a network, who is behind them, and the ways between those.
#[derive(Debug)]
pub(super) struct Nats {
    pub(super) placed: Vec<PlacedNat>,
    /// The innermost NAT of each address that is behind one.
    pub(super) behind: BTreeMap<HostAddress, NatId>,
    /// Nodes by their addresses inside a NAT.
    pub(super) inside: BTreeMap<InnerAddress, NodeId>,
    /// The ways that lead away from an address, by the routes that describe them.
    pub(super) ways: BTreeMap<HostAddress, Vec<RouteId>>,
    pub(super) made: BTreeMap<Made, RouteId>,
    /// The routes of [`Self::made`] that lead to a NAT.
    pub(super) entrances: BTreeMap<RouteId, Entrance>,
    /// The route that the last packet took.
    pub(super) latest: BTreeMap<Pair, RouteId>,
    pub(super) stun_server: SocketAddr,
}

impl Default for Nats {
    fn default() -> Nats {
        Nats {
            placed: Vec::new(),
            behind: BTreeMap::new(),
            inside: BTreeMap::new(),
            ways: BTreeMap::new(),
            made: BTreeMap::new(),
            entrances: BTreeMap::new(),
            latest: BTreeMap::new(),
            stun_server: STUN_SERVER,
        }
    }
}

impl Nats {
    /// True if there are ways through NATs.
    #[inline]
    pub(super) fn have_ways(&self) -> bool {
        !self.ways.is_empty()
    }

    /// The route that the last packet between these addresses took.
    #[inline]
    pub(super) fn latest(
        &self,
        node: NodeId,
        local: &SocketAddr,
        remote: &SocketAddr,
    ) -> Option<RouteId> {
        if !self.have_ways() {
            return None;
        }
        self.latest.get(&Pair { node, local: *local, remote: *remote }).copied()
    }

    /// The routes that describe the ways away from an address.
    pub(super) fn ways_from(&self, node: NodeId, address: SocketAddr) -> &[RouteId] {
        self.ways.get(&HostAddress { node, address }).map_or(&[], Vec::as_slice)
    }

    /// The routes that describe all ways away from a node.
    pub(super) fn ways_of(&self, node: NodeId) -> impl Iterator<Item = RouteId> {
        let own = self.ways.iter().filter(move |(from, _)| from.node == node);
        own.flat_map(|(_, ways)| ways.iter().copied())
    }

    pub(super) fn placed(&self, nat: NatId) -> &PlacedNat {
        &self.placed[nat.0 as usize]
    }

    pub(super) fn placed_mut(&mut self, nat: NatId) -> &mut PlacedNat {
        &mut self.placed[nat.0 as usize]
    }

    /// The realm of an address: inside this NAT, or the Internet.
    pub(super) fn realm_of(&self, host: HostAddress) -> Option<NatId> {
        self.behind.get(&host).copied()
    }

    /// Where a host's address shows in a realm; `None` if nowhere.
    pub(super) fn face(&self, host: HostAddress, realm: Option<NatId>) -> Option<Face> {
        let mut at = self.realm_of(host);
        if at == realm {
            return Some(Face::Itself);
        }
        loop {
            let nat = at?;
            at = self.placed(nat).outer;
            if at == realm {
                return Some(Face::Nat(nat));
            }
        }
    }

    /// The NAT with this public address in a realm.
    pub(super) fn nat_at(&self, realm: Option<NatId>, public: IpAddr) -> Option<NatId> {
        let found = self
            .placed
            .iter()
            .position(|placed| placed.outer == realm && placed.nat.spec().public == public);
        found.map(|index| NatId(index as u32))
    }

    /// The host that a mapping of a NAT, or of NATs behind it, belongs to, whoever may send to it.
    pub(super) fn holder(
        &self,
        now: Instant,
        mut nat: NatId,
        mut outside: SocketAddr,
    ) -> Option<HostAddress> {
        loop {
            outside = self.placed(nat).nat.holder(now, outside)?;
            if let Some(&node) = self.inside.get(&InnerAddress { nat, address: outside }) {
                return Some(HostAddress { node, address: outside });
            }
            nat = self.nat_at(Some(nat), outside.ip())?;
        }
    }

    /// Takes a packet in through a NAT and those behind it. Returns the host that it is for.
    pub(super) fn let_in(
        &mut self,
        now: Instant,
        mut nat: NatId,
        mut destination: SocketAddr,
        source: SocketAddr,
    ) -> Result<HostAddress, DropCause> {
        loop {
            destination = self.placed_mut(nat).nat.inbound(now, destination, source)?;
            if let Some(&node) = self.inside.get(&InnerAddress { nat, address: destination }) {
                return Ok(HostAddress { node, address: destination });
            }
            nat = self.nat_at(Some(nat), destination.ip()).ok_or(DropCause::Unmapped)?;
        }
    }

    /// An address of a node was replaced.
    pub(super) fn rename(&mut self, old: HostAddress, new: HostAddress) {
        if let Some(nat) = self.behind.remove(&old) {
            self.behind.insert(new, nat);
            self.inside.remove(&InnerAddress { nat, address: old.address });
            self.inside.insert(InnerAddress { nat, address: new.address }, new.node);
        }
        if let Some(ways) = self.ways.remove(&old) {
            self.ways.insert(new, ways);
        }
    }
}
