//! A deterministic network in virtual time that runs the manypath engine.
mod link;
mod network;
mod packet;
mod packet_log;
mod paths;
mod queue;
mod schedule;
mod spec;
mod trace_hash;

pub use link::LinkStats;
pub use network::{Happening, LinkId, Network, NodeId, RouteId, RouteSpec};
pub use packet::{Delivery, DropCause, PacketPool};
pub use packet_log::{Fate, LoggedPacket, PacketLog, Sent};
pub use paths::{PathControl, PathEnds};
pub use spec::{HopSpec, LinkChange, LinkSpec, Outage, PathSpec, QueueLimit, Rate};
pub use trace_hash::TraceHash;
