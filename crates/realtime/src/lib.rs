//! Links in real time: between sockets of one program, and between programs.
//!
//! [`emulator`] runs the simulator's links by the real clock. [`transfer`] runs a scenario's
//! transfer over them, between two real endpoints on loopback sockets. [`planner`] does so for the
//! laboratory's experiments of kind `realtime`, many at a time because a transfer mostly waits.
//! Their results have the fields of simulated ones.
//!
//! [`hosts`] (Linux) puts the hosts of a scenario into network namespaces with its links between
//! them, so that any program runs over them.

pub mod emulator;
#[cfg(target_os = "linux")]
pub mod hosts;
pub mod planner;
mod result;
pub mod transfer;
