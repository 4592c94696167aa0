//! A deterministic network in virtual time that runs the manypath engine.

mod host;
mod ledger;
mod link;
mod network;
mod packet;
mod packet_log;
mod pair;
mod paths;
mod queue;
mod result;
mod schedule;
mod spec;
pub mod testing;
mod trace_hash;
mod traffic;

pub use host::{Host, HostConfig};
pub use link::LinkStats;
pub use network::{Happening, LinkId, Network, NodeId, RouteId, RouteSpec};
pub use packet::{Delivery, DropCause, PacketPool};
pub use packet_log::{Fate, LoggedPacket, PacketLog, Sent};
pub use pair::{Pair, PairBuilder, millis, path_state, secs};
pub use paths::{PathControl, PathEnds};
pub use result::{PathResult, StateChange, TransferResult};
pub use spec::{HopSpec, LinkChange, LinkSpec, Outage, PathSpec, QueueLimit, Rate};
pub use trace_hash::TraceHash;
pub use traffic::LONGEST_MESSAGE;

pub use manypath_wire::chunk_type;
