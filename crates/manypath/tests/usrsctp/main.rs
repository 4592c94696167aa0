//! manypath against other SCTP stacks over UDP encapsulation on loopback, or over IP itself between
//! namespaces. They are played by the programs of `tests/interop`, which these tests build: usrsctp
//! in C, and pion in Go.
//!
//! `MANYPATH_SKIP_USRSCTP=1` and `MANYPATH_SKIP_PION=1` skip the cases of one and say so. Tests
//! with several addresses on the C side need network namespaces; where there are none they are
//! skipped and say so, unless `CI=true` or `MANYPATH_REQUIRE_NETNS=1` makes that a failure.
#![cfg(target_os = "linux")]
#![allow(unreachable_pub, reason = "a program of tests; nobody uses it from outside")]

mod addresses;
mod authentication;
mod closing;
mod handshake;
mod harness;
mod immediate;
mod interleaving;
mod losses;
mod nr_sack;
mod partial;
mod pion;
mod raw_ip;
mod reconfiguration;
mod transfer;
mod two_addresses;
