//! Packets under way, and where their bytes live.

use std::net::SocketAddr;

use bytes::Bytes;
use manypath_proto::Rng;
use manypath_wire::{Checksum, Packet as WirePacket, fill_checksum};
use serde::Serialize;

use crate::ids::{NodeId, RouteId};

/// A packet inside the network.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    /// Numbers the packets of a run from 0; a copy made by the network keeps its original's.
    pub(crate) id: u64,
    /// Its bytes, until it leaves the network.
    pub(crate) payload: Option<Bytes>,
    /// Its bytes after a link damaged them, if one did.
    pub(crate) damaged: Option<Box<[u8]>>,
    pub(crate) route: RouteId,
    /// Length on the wire: the payload and the configured headers.
    pub(crate) size: u32,
    /// Links of the route it has crossed or is crossing.
    pub(crate) hop: u16,
    /// Links that it is too long for cut it into fragments.
    pub(crate) may_fragment: bool,
    /// Links may mark it instead of dropping it: its IP header says ECT(0).
    pub(crate) is_ect: bool,
    /// A link has marked it: its IP header says CE.
    pub(crate) has_ce: bool,
    /// Why the next link will not take it, if that is known already.
    pub(crate) fate: Option<DropCause>,
}

/// Names a packet inside the network until it leaves.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Handle(u32);

/// The packets inside the network. Links pass handles on: a packet stays where it is.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    packets: Vec<Packet>,
    free: Vec<Handle>,
}

impl Packets {
    #[inline(always)] // else the packet is written to the stack first
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

    /// The bytes of all that are under way.
    pub(crate) fn bytes(&self) -> usize {
        self.packets.iter().filter_map(|packet| packet.payload.as_ref()).map(Bytes::len).sum()
    }

    /// True if none is under way.
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.packets.len()
    }

    pub(crate) fn copy(&mut self, handle: Handle) -> Handle {
        let copy = self.get(handle).clone();
        self.add(copy)
    }

    /// Flips one to eight bits of a packet. Hosts here leave the checksum out, since few networks
    /// damage anything; it gets the one that its sender would have written.
    pub(crate) fn damage(&mut self, handle: Handle, rng: &mut Rng) {
        let packet = self.get_mut(handle);
        let mut bytes = match (&packet.damaged, &packet.payload) {
            (Some(damaged), _) => damaged.to_vec(),
            (None, Some(payload)) => {
                let mut bytes = payload.to_vec();
                fill_checksum(&mut bytes);
                bytes
            }
            (None, None) => return,
        };
        for _ in 0..=rng.below(8) {
            let bit = rng.below(bytes.len() as u64 * 8) as usize;
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        packet.damaged = Some(bytes.into());
    }

    /// Forgets a packet and returns its bytes.
    #[inline]
    pub(crate) fn remove(&mut self, handle: Handle) -> Bytes {
        self.free.push(handle);
        self.get_mut(handle).payload.take().unwrap_or_default()
    }
}

impl Packet {
    /// True if a link damaged it, and its checksum tells.
    pub(crate) fn is_found_damaged(&self) -> bool {
        let damaged = self.damaged.as_ref();
        damaged.is_some_and(|bytes| {
            WirePacket::parse(Bytes::copy_from_slice(bytes), Checksum::Verify).is_err()
        })
    }
}

/// A packet that reached its destination. Its addresses are those of its route, see
/// [`Network::seen_ends`](crate::Network::seen_ends).
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The node it is for.
    pub node: NodeId,
    /// The route it took.
    pub route: RouteId,
    /// Numbers the packets of a run from 0, in the order they were sent.
    pub id: u64,
    /// The UDP payload.
    pub payload: Bytes,
    /// A link marked it, as it met congestion (CE).
    pub has_ce: bool,
}

/// A link of a packet's way did not take it for its length, and says so: ICMP.
#[derive(Clone, Debug)]
pub struct TooLong {
    /// The node that sent the packet.
    pub node: NodeId,
    /// The address it was sent from.
    pub local: SocketAddr,
    /// The address it was sent to.
    pub remote: SocketAddr,
    /// The longest packet that the link takes, in bytes.
    pub mtu: u32,
    /// How the packet began, behind IP and UDP headers.
    pub quoted: Bytes,
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
    /// The NAT's mapping it was addressed to is gone, or never was.
    Unmapped = 5,
    /// Random early detection.
    Early = 6,
    /// Its receiver found its checksum wrong.
    Corrupt = 7,
    /// It was longer than the link's MTU and had the DF bit.
    TooLong = 8,
    /// It came faster than a policer lets through.
    Policed = 9,
    /// A NAT's mapping did not admit its sender.
    Filtered = 10,
}

impl DropCause {
    /// The name in results and traces: `loss`, `queue_full`, `cut`, `no_route`, `unmapped`,
    /// `early`, `corrupt`, `too_long`, `policed`, `filtered`.
    pub fn name(self) -> &'static str {
        match self {
            DropCause::Loss => "loss",
            DropCause::QueueFull => "queue_full",
            DropCause::Cut => "cut",
            DropCause::NoRoute => "no_route",
            DropCause::Unmapped => "unmapped",
            DropCause::Early => "early",
            DropCause::Corrupt => "corrupt",
            DropCause::TooLong => "too_long",
            DropCause::Policed => "policed",
            DropCause::Filtered => "filtered",
        }
    }
}

/// Most buffers kept for reuse.
const KEPT_BUFFERS: usize = 512;

/// Room of a new buffer, in bytes: more than packets mostly have.
const BUFFER: usize = 2048;

/// A packet that is shorter, in bytes, hardly carries data: a buffer of its own size is cheaper
/// than one that is waited for.
const SHORT_PACKET: usize = 256;

/// Buffers for packets. One is filled, becomes the packet, and comes back when the packet is gone,
/// so that a long run allocates little, and the buffers in use stay in the processor's cache.
#[derive(Debug, Default)]
pub struct PacketPool {
    free: Vec<Vec<u8>>,
}

impl PacketPool {
    /// An empty buffer, for [`seal`](Self::seal): the one that was in use last.
    #[inline]
    pub fn open(&mut self) -> Vec<u8> {
        self.free.pop().unwrap_or_else(|| Vec::with_capacity(BUFFER))
    }

    /// Takes an empty buffer back.
    #[inline]
    pub fn close(&mut self, buffer: Vec<u8>) {
        debug_assert!(buffer.is_empty(), "a packet was written and not sent");
        self.free.push(buffer);
    }

    /// Makes a packet of what was written into a buffer, and leaves an empty buffer in its place.
    #[inline]
    pub fn seal(&mut self, buffer: &mut Vec<u8>) -> Bytes {
        if buffer.len() < SHORT_PACKET {
            let packet = Bytes::copy_from_slice(buffer);
            buffer.clear();
            return packet;
        }
        Bytes::from(std::mem::replace(buffer, self.open()))
    }

    /// Takes the buffer of a packet back if nobody else has a part of it.
    pub fn recycle(&mut self, mut packet: Bytes) {
        if self.free.len() < KEPT_BUFFERS && packet.is_unique() {
            packet.clear();
            let buffer = Vec::from(packet);
            if buffer.capacity() >= BUFFER {
                self.free.push(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pool_reuses_buffers_and_never_a_live_one() {
        let mut pool = PacketPool::default();
        let mut alive: std::collections::VecDeque<(Bytes, u8)> = std::collections::VecDeque::new();
        let mut places = std::collections::BTreeSet::new();
        let mut buffer = Vec::new();
        for i in 0..20_000_u32 {
            let fill = i as u8;
            buffer.extend_from_slice(&[fill; 1400]);
            let packet = pool.seal(&mut buffer);
            assert!(buffer.is_empty());
            places.insert(packet.as_ptr() as usize);
            let part = packet.slice(28..);
            pool.recycle(packet); // in vain: a part of it is alive
            alive.push_back((part, fill));
            if alive.len() > 200 {
                let (old, fill) = alive.pop_front().expect("just filled");
                assert!(old.iter().all(|&b| b == fill), "packet overwritten while alive");
                pool.recycle(old);
            }
        }
        assert!(places.len() < 300, "{} buffers for 200 packets alive", places.len());
    }
}
