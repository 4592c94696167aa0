//! manypath against another SCTP stack: usrsctp, over UDP encapsulation on loopback, played by the
//! C program of `tests/interop`, which these tests build.
//!
//! `MANYPATH_SKIP_USRSCTP=1` skips all of it and says so. Tests with several addresses on the C
//! side need network namespaces; where there are none they are skipped and say so, unless `CI=true`
//! or `MANYPATH_REQUIRE_NETNS=1` makes that a failure.
#![cfg(target_os = "linux")]
#![allow(unreachable_pub, reason = "a program of tests; nobody uses it from outside")]

mod authentication;
mod closing;
mod handshake;
mod harness;
mod immediate;
mod interleaving;
mod losses;
mod nr_sack;
mod partial;
mod reconfiguration;
mod transfer;
mod two_addresses;
