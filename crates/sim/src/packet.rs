//! Packets under way, and where their bytes live.

use std::collections::VecDeque;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use manypath_proto::Ecn;
use serde::Serialize;

use crate::network::{NodeId, RouteId};

/// A packet inside the network.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Numbers the packets of a run from 0; a copy made by the network keeps its original's.
    pub(crate) id: u64,
    pub(crate) payload: Bytes,
    pub(crate) route: RouteId,
    /// Length on the wire: the payload and the configured headers.
    pub(crate) size: u32,
    /// Links of the route it has crossed or is crossing.
    pub(crate) hop: u16,
    pub(crate) ecn: Option<Ecn>,
    /// Why the next link will not take it, if that is known already.
    pub(crate) fate: Option<DropCause>,
}

/// Names a packet inside the network until it leaves.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handle(u32);

/// The packets inside the network. Links pass handles on: a packet stays where it is.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    packets: Vec<Packet>,
    free: Vec<Handle>,
}

impl Packets {
    pub(crate) fn add(&mut self, packet: Packet) -> Handle {
        if let Some(handle) = self.free.pop() {
            self.packets[handle.0 as usize] = packet;
            return handle;
        }
        self.packets.push(packet);
        Handle(self.packets.len() as u32 - 1)
    }

    #[inline]
    pub(crate) fn get(&self, handle: Handle) -> &Packet {
        &self.packets[handle.0 as usize]
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, handle: Handle) -> &mut Packet {
        &mut self.packets[handle.0 as usize]
    }

    /// True if none is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.packets.len()
    }

    pub(crate) fn copy(&mut self, handle: Handle) -> Handle {
        let copy = self.get(handle).clone();
        self.add(copy)
    }

    /// Forgets a packet and returns its bytes.
    pub(crate) fn remove(&mut self, handle: Handle) -> Bytes {
        self.free.push(handle);
        std::mem::take(&mut self.get_mut(handle).payload)
    }
}

/// A packet that reached its destination.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The node it is for.
    pub node: NodeId,
    /// The address it was sent to, as that node knows it.
    pub local: SocketAddr,
    /// The address it seems to come from; behind a NAT not the one it was sent from.
    pub remote: SocketAddr,
    /// The route it took.
    pub route: RouteId,
    /// Numbers the packets of a run from 0, in the order they were sent.
    pub id: u64,
    /// The ECN field of the IP header.
    pub ecn: Option<Ecn>,
    /// The UDP payload.
    pub payload: Bytes,
}

/// Why the network dropped a packet.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum DropCause {
    /// At random.
    Loss = 1,
    /// A queue was full.
    QueueFull = 2,
    /// The link was down.
    Cut = 3,
    /// No route leads from its source to its destination.
    NoRoute = 4,
    /// The NAT's mapping it was addressed to is gone.
    Unmapped = 5,
    /// Random early detection.
    Early = 6,
}

impl DropCause {
    /// The name in results and traces: `loss`, `queue_full`, `cut`, `no_route`, `unmapped`,
    /// `early`.
    pub fn name(self) -> &'static str {
        match self {
            DropCause::Loss => "loss",
            DropCause::QueueFull => "queue_full",
            DropCause::Cut => "cut",
            DropCause::NoRoute => "no_route",
            DropCause::Unmapped => "unmapped",
            DropCause::Early => "early",
        }
    }
}

/// Bytes a block of the pool holds: some forty full packets.
const BLOCK: usize = 64 * 1024;

/// Most blocks kept for reuse.
const KEPT_BLOCKS: usize = 64;

/// Storage for packets: one copy in, shared slices out, and blocks that come back when all their
/// packets are gone, so that a long run allocates nothing.
#[derive(Debug, Default)]
pub struct PacketPool {
    current: BytesMut,
    /// False until `current` is a block.
    has_block: bool,
    /// Used-up blocks; each is free once no packet of it is left.
    used: VecDeque<BytesMut>,
}

impl PacketPool {
    /// Copies `bytes` into the pool.
    pub fn store(&mut self, bytes: &[u8]) -> Bytes {
        if self.current.capacity() - self.current.len() < bytes.len() {
            self.next_block(bytes.len());
        }
        self.current.extend_from_slice(bytes);
        self.current.split().freeze()
    }

    fn next_block(&mut self, length: usize) {
        let wanted = BLOCK.max(length);
        let spent = std::mem::take(&mut self.current);
        if self.has_block && self.used.len() < KEPT_BLOCKS {
            self.used.push_back(spent);
        }
        self.has_block = true;
        if let Some(mut oldest) = self.used.pop_front() {
            if oldest.try_reclaim(wanted) {
                self.current = oldest;
                return;
            }
            // A packet of it is still somewhere; it gets its turn again after the others.
            self.used.push_back(oldest);
        }
        self.current = BytesMut::with_capacity(wanted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_reuses_blocks_and_never_a_live_one() {
        let mut pool = PacketPool::default();
        let mut alive: VecDeque<(Bytes, u8)> = VecDeque::new();
        let mut blocks = std::collections::BTreeSet::new();
        for i in 0..20_000_u32 {
            let fill = i as u8;
            let packet = pool.store(&[fill; 1400]);
            blocks.insert(packet.as_ptr() as usize / BLOCK);
            alive.push_back((packet, fill));
            if alive.len() > 200 {
                let (old, fill) = alive.pop_front().expect("just filled");
                assert!(old.iter().all(|&b| b == fill), "packet overwritten while alive");
            }
        }
        assert!(blocks.len() < 40, "{} blocks for 200 packets alive", blocks.len());
    }
}
