//! A look at a run while it goes on.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use manypath_proto::{Association, Event, Instant};

use crate::ids::{LinkId, NodeId, RouteId};
use crate::packet::DropCause;

/// A packet as it is sent.
#[derive(Copy, Clone, Debug)]
pub struct SentPacket<'p> {
    /// Numbers the packets of a run from 0, in the order they were sent.
    pub id: u64,
    /// The node that sends it.
    pub node: NodeId,
    /// The address it is sent from.
    pub local: SocketAddr,
    /// The address it is sent to.
    pub remote: SocketAddr,
    /// The route it takes; `None` if there is none, and the packet is gone.
    pub route: Option<RouteId>,
    /// The SCTP packet.
    pub payload: &'p Bytes,
}

/// A packet that reached its destination.
#[derive(Copy, Clone, Debug)]
pub struct DeliveredPacket<'p> {
    /// Its number.
    pub id: u64,
    /// The node it is for.
    pub node: NodeId,
    /// The address it was sent to, as that node knows it.
    pub local: SocketAddr,
    /// The address it seems to come from; behind a NAT not the one it was sent from.
    pub remote: SocketAddr,
    /// The SCTP packet.
    pub payload: &'p Bytes,
}

/// A packet that the network dropped.
#[derive(Copy, Clone, Debug)]
pub struct DroppedPacket {
    /// Its number.
    pub id: u64,
    /// The node that sent it.
    pub node: NodeId,
    /// Why.
    pub cause: DropCause,
    /// The link it was to enter, or came from if it was dropped behind its last; `None` without a
    /// route.
    pub link: Option<LinkId>,
}

/// Sees everything that happens in a run and can change nothing of it: a run with an observer has
/// the trace hash of one without. A network without one pays nothing for the possibility.
///
/// Calls come in the order of time. Of one instant: what arrives or expires, the association it
/// changed, what is sent then, and the association once more.
pub trait Observer: fmt::Debug + Send {
    /// A packet was sent.
    fn packet_sent(&mut self, at: Instant, packet: &SentPacket<'_>);

    /// A packet, or a copy of it that the network made, reached its node.
    fn packet_delivered(&mut self, at: Instant, packet: &DeliveredPacket<'_>);

    /// The network dropped a packet.
    fn packet_dropped(&mut self, at: Instant, packet: &DroppedPacket);

    /// The engine of a node reported something.
    fn event(&mut self, at: Instant, node: NodeId, event: &Event);

    /// An association as it is, whenever it may have changed.
    fn association(&mut self, at: Instant, node: NodeId, association: &Association);

    /// The run is over.
    ///
    /// # Errors
    /// The first error of whatever the observer writes to. It does not stop the run.
    fn finish(&mut self) -> io::Result<()>;
}
