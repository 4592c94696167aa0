//! dcsctp, the SCTP of WebRTC, and the engine exchange messages in virtual time, through a network
//! that loses packets.

#![allow(unreachable_pub, reason = "a program of tests; nobody uses it from outside")]

mod closing;
mod exchange;
mod extensions;
mod network;
mod pair;
mod speed;
