//! From the record of a real transfer to the network that it crossed, and to other transfers over
//! that network.
//!
//! 1. [`Record::read`] reads what [`manypath_trace::Recorder`] wrote.
//! 2. [`Network::estimate`] finds delays, rates over time, queues, losses, outages and shared
//!    bottlenecks.
//! 3. [`scenario`] writes that as a scenario of the simulator, and [`Replay`] runs it: with the
//!    recorded preset to see how true it is, and with others.
//!
//! Everything here is a function of its input. `docs/replay.md` says what cannot be known.

mod curve;
mod delay;
mod loss;
mod network;
mod outage;
mod rate;
mod record;
mod replay;
pub mod scenario;
mod segment;
mod shared;

pub use loss::LossPiece;
pub use network::{EstimateError, Network, PathEstimate, Queue, SharedLink};
pub use outage::Outage;
pub use rate::{RatePiece, Rates};
pub use record::{PathRecord, Record, RecordError};
pub use replay::{Replay, ReplayError, Replayed};
