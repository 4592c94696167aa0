//! Transfers in real time: two real endpoints on loopback sockets, and between them emulated links.
//!
//! [`emulator`] runs the simulator's links by the real clock. [`transfer`] runs a scenario's
//! transfer over them. [`planner`] does so for the laboratory's experiments of kind `realtime`,
//! many at a time because a transfer mostly waits. Their results have the fields of simulated ones.

pub mod emulator;
pub mod planner;
mod result;
pub mod transfer;
