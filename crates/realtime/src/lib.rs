//! Transfers in real time: two real endpoints on loopback sockets, and between them emulated links.
//!
//! [`emulator`] is the links: the simulator's own, driven by the real clock. [`transfer`] runs what a
//! scenario describes over them, and [`planner`] does so for the laboratory's experiments of kind
//! `realtime`, many at a time, since a transfer mostly waits. Their results have the fields of
//! simulated ones.

pub mod emulator;
pub mod planner;
mod result;
pub mod transfer;
