//! The receive side of an association, as plain values: no socket, no clock.
//!
//! - [`TsnTracker`] knows which TSNs have arrived, and writes the body of a SACK.
//! - [`DelayedAck`] knows when a SACK is due.
//! - [`Inbound`] turns DATA or I-DATA chunks into messages, within a bound on memory.
//!
//! For each DATA chunk of a packet the engine calls [`Inbound::accept`], which consults and updates
//! the tracker; after the last chunk of the packet it tells [`DelayedAck`] what it saw.

mod delayed_ack;
mod held;
mod message;
mod reassembly;
mod retain;
mod tsn_tracker;
mod violation;

pub(crate) use delayed_ack::{DelayedAck, PacketFacts, SackConfig};
pub use message::{Message, Payload};
pub(crate) use reassembly::{Inbound, Limits};
pub(crate) use tsn_tracker::{Arrival, MAX_TSN_AHEAD, TsnTracker};
pub(crate) use violation::ProtocolViolation;
