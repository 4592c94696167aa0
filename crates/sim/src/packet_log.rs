//! Every packet of a run, to ask questions of.

use bytes::Bytes;
use manypath_proto::Instant;
use manypath_wire::{Checksum, Chunk, Packet};

use crate::ids::{NodeId, RouteId};
use crate::packet::DropCause;

/// Fate of a packet.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is on its way.
    Underway,
    /// It arrived; the first time, if it was duplicated.
    Delivered(Instant),
    /// The network dropped it.
    Dropped(Instant, DropCause),
}

/// A packet of a run.
#[derive(Clone, Debug)]
pub struct LoggedPacket {
    /// When it was sent.
    pub at: Instant,
    /// The node that sent it.
    pub from: NodeId,
    /// The route it took; `None` if there was none.
    pub route: Option<RouteId>,
    /// Its fate.
    pub fate: Fate,
    /// The SCTP packet.
    pub bytes: Bytes,
}

impl LoggedPacket {
    /// Its chunks; none if it does not parse. The checksum is not looked at.
    pub fn chunks(&self) -> Vec<Chunk> {
        match Packet::parse(self.bytes.clone(), Checksum::Ignore) {
            Ok(packet) => packet.chunks().filter_map(Result::ok).collect(),
            Err(_) => Vec::new(),
        }
    }

    /// True if the network dropped it.
    pub fn is_dropped(&self) -> bool {
        matches!(self.fate, Fate::Dropped(..))
    }
}

/// All packets since the log was begun, in the order they were sent.
#[derive(Clone, Debug)]
pub struct PacketLog {
    first: u64,
    packets: Vec<LoggedPacket>,
}

impl PacketLog {
    pub(crate) fn new(first: u64) -> PacketLog {
        PacketLog { first, packets: Vec::new() }
    }

    /// All packets.
    pub fn packets(&self) -> &[LoggedPacket] {
        &self.packets
    }

    pub(crate) fn sent(
        &mut self,
        at: Instant,
        from: NodeId,
        route: Option<RouteId>,
        bytes: &Bytes,
    ) {
        let bytes = bytes.clone();
        self.packets.push(LoggedPacket { at, from, route, fate: Fate::Underway, bytes });
    }

    pub(crate) fn delivered(&mut self, at: Instant, id: u64) {
        self.settle(id, Fate::Delivered(at));
    }

    pub(crate) fn dropped(&mut self, at: Instant, id: u64, cause: DropCause) {
        self.settle(id, Fate::Dropped(at, cause));
    }

    /// The first of a packet and its copies to get through, or else to be dropped, decides.
    fn settle(&mut self, id: u64, fate: Fate) {
        let Some(index) = id.checked_sub(self.first) else { return };
        let known = &mut self.packets[index as usize].fate;
        if matches!((*known, fate), (Fate::Underway, _) | (Fate::Dropped(..), Fate::Delivered(_))) {
            *known = fate;
        }
    }
}
