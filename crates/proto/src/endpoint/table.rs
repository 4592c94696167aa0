//! The associations of an endpoint, and the tables that find the association of a packet.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::SocketAddr;
use std::ops::Range;

use manypath_wire::{Chunk, CommonHeader, Packet};

use crate::assoc::Association;
use crate::datagram::is_raw_ip;

/// Identifies an association of an endpoint; never used again for another one.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AssocId {
    index: u32,
    generation: u32,
}

impl AssocId {
    /// The id as a number, for records and messages.
    pub fn number(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }
}

/// The owner of a packet.
pub(super) enum Owner {
    /// The association in this slot.
    Association(u32),
    /// No association: it is out of the blue.
    Nobody,
    /// None: the addresses are an association's, but the tag is not, so the packet is dropped (RFC
    /// 9260 §8.5).
    Other,
}

#[derive(Default)]
struct Slot {
    generation: u32,
    assoc: Option<Box<Association>>,
    /// True if the association is in `by_tag` and `by_peer`.
    registered: bool,
    /// The keys of the association in `by_peer`.
    peers: Vec<(SocketAddr, u16)>,
}

/// The associations, each in a slot, with the tables by which their packets are found. Packets for
/// an association that is not registered are out of the blue.
#[derive(Default)]
pub(super) struct AssocTable {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_tag: BTreeMap<u32, u32>,
    by_peer: BTreeMap<(SocketAddr, u16), u32>,
}

impl AssocTable {
    // ---- Slots ----

    /// Registers an association in a free slot.
    pub(super) fn insert(&mut self, assoc: Association) -> u32 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            (self.slots.len() - 1) as u32
        });
        self.put(index, assoc);
        index
    }

    /// Registers an association in an empty slot, by its tag. Its peer's addresses follow with
    /// [`update_peers`](Self::update_peers).
    pub(super) fn put(&mut self, index: u32, assoc: Association) {
        self.by_tag.insert(assoc.identity().local_tag, index);
        let slot = &mut self.slots[index as usize];
        slot.assoc = Some(Box::new(assoc));
        slot.registered = true;
    }

    /// Gives an association another tag.
    pub(super) fn set_tag(&mut self, index: u32, tag: u32) {
        let slot = &mut self.slots[index as usize];
        let Some(assoc) = slot.assoc.as_mut() else { return };
        let old = assoc.set_local_tag(tag);
        if slot.registered {
            self.by_tag.remove(&old);
            self.by_tag.insert(tag, index);
        }
    }

    /// Takes an association out of its slot, for the association that replaces it.
    pub(super) fn take(&mut self, index: u32) -> Option<Box<Association>> {
        self.unregister(index);
        self.slots[index as usize].assoc.take()
    }

    /// Drops an association; its slot is free.
    pub(super) fn remove(&mut self, index: u32) {
        self.take(index);
        self.slots[index as usize].generation += 1;
        self.free.push(index);
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> Option<&Association> {
        self.slots.get(index as usize)?.assoc.as_deref()
    }

    #[inline]
    pub(super) fn get_mut(&mut self, index: u32) -> Option<&mut Association> {
        self.slots[index as usize].assoc.as_deref_mut()
    }

    /// All slots, also those without an association.
    pub(super) fn slots(&self) -> Range<u32> {
        0..self.slots.len() as u32
    }

    /// The slot of an association that was not removed.
    #[inline]
    pub(super) fn index(&self, id: AssocId) -> Option<u32> {
        let slot = self.slots.get(id.index as usize)?;
        (slot.generation == id.generation && slot.assoc.is_some()).then_some(id.index)
    }

    /// The name of the association in a slot.
    pub(super) fn id(&self, index: u32) -> AssocId {
        AssocId { index, generation: self.slots[index as usize].generation }
    }

    /// All associations that were not removed.
    pub(super) fn ids(&self) -> impl Iterator<Item = AssocId> + '_ {
        self.slots().filter(|&index| self.get(index).is_some()).map(|index| self.id(index))
    }

    // ---- Registered associations ----

    /// The number of registered associations.
    pub(super) fn registered(&self) -> usize {
        self.by_tag.len()
    }

    /// The slots of the registered associations, in the order of their tags.
    pub(super) fn registered_slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.by_tag.values().copied()
    }

    pub(super) fn is_registered(&self, index: u32) -> bool {
        self.slots[index as usize].registered
    }

    /// The association that expects this verification tag.
    pub(super) fn by_tag(&self, tag: u32) -> Option<u32> {
        self.by_tag.get(&tag).copied()
    }

    /// The association with the peer at this address and port.
    pub(super) fn by_peer(&self, remote: SocketAddr, port: u16) -> Option<u32> {
        self.by_peer.get(&(remote, port)).copied()
    }

    /// The association with the peer at this IP address and SCTP port in the other encapsulation:
    /// in UDP, or over IP itself. Encapsulation is no part of an SCTP address (RFC 6951 §5.4).
    /// Several hosts behind a NAT may have one address and differ in the UDP port; then nobody is
    /// found.
    fn by_peer_otherwise(&self, remote: SocketAddr, port: u16) -> Option<u32> {
        let ip = remote.ip();
        if !is_raw_ip(remote) {
            return self.by_peer(SocketAddr::new(ip, 0), port);
        }
        let over_udp = (SocketAddr::new(ip, 1), 0)..=(SocketAddr::new(ip, u16::MAX), u16::MAX);
        let mut found = self.by_peer.range(over_udp);
        let (&(_, known), &index) = found.next()?;
        (known == port && found.next().is_none()).then_some(index)
    }

    /// Unregisters an association: packets for it are out of the blue from now on.
    pub(super) fn unregister(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if !slot.registered {
            return;
        }
        let Some(assoc) = slot.assoc.as_ref() else { return };
        slot.registered = false;
        self.by_tag.remove(&assoc.identity().local_tag);
        for key in slot.peers.drain(..) {
            self.by_peer.remove(&key);
        }
    }

    /// Renews the addresses that identify an association if a packet carries none of its tags.
    ///
    /// Only verified addresses count, and none that another association has. Otherwise a peer could
    /// list a victim's address and be taken for the victim.
    pub(super) fn update_peers(&mut self, index: u32) {
        let slot = &mut self.slots[index as usize];
        if !slot.registered {
            return;
        }
        let Some(assoc) = slot.assoc.as_ref() else { return };
        let port = assoc.identity().peer_port;
        let new: Vec<_> = assoc.known_remotes().map(|remote| (remote, port)).collect();
        for key in slot.peers.drain(..) {
            self.by_peer.remove(&key);
        }
        for key in new {
            if let Entry::Vacant(entry) = self.by_peer.entry(key) {
                entry.insert(index);
                slot.peers.push(key);
            }
        }
    }

    /// The protected association that a packet with this header belongs to, if it is sealed.
    #[inline]
    pub(super) fn of_sealed(&self, header: &CommonHeader) -> Option<u32> {
        let index = self.by_tag(header.verification_tag)?;
        let assoc = self.get(index)?;
        let is_its = assoc.identity().peer_port == header.source_port && assoc.is_protected();
        is_its.then_some(index)
    }

    /// The owner of a packet (RFC 9260 §8.5).
    pub(super) fn find(&self, remote: SocketAddr, packet: &Packet) -> Owner {
        let header = &packet.header;
        // §8.5.1, E: the chunk ends an association older than one that is still being opened.
        let is_older = |index| {
            let ends = |c| matches!(c, Ok(Chunk::ShutdownAck));
            self.get(index).is_some_and(|a| !a.is_established()) && packet.chunks().any(ends)
        };
        if let Some(index) = self.by_tag(header.verification_tag) {
            let has_port =
                self.get(index).is_some_and(|a| a.identity().peer_port == header.source_port);
            let owned = has_port && !is_older(index);
            return if owned { Owner::Association(index) } else { Owner::Nobody };
        }
        let Some(index) = self
            .by_peer(remote, header.source_port)
            .or_else(|| self.by_peer_otherwise(remote, header.source_port))
        else {
            return Owner::Nobody;
        };
        // §8.5.1, B and C: ABORT and SHUTDOWN COMPLETE may reflect the tag that we sent.
        let reflects =
            self.get(index).is_some_and(|a| a.identity().peer_tag == header.verification_tag)
                && matches!(
                    packet.chunks().next(),
                    Some(Ok(Chunk::Abort(_) | Chunk::ShutdownComplete { .. }))
                );
        if reflects {
            Owner::Association(index)
        } else if is_older(index) {
            Owner::Nobody
        } else {
            Owner::Other
        }
    }
}
