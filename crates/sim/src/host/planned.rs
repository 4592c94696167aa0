//! Commands that run at a planned time.

use std::net::IpAddr;

use manypath_proto::{Instant, PathRank};

use crate::traffic::Pace;

/// A command that runs at a planned time.
#[derive(Copy, Clone, Debug)]
pub(super) enum Planned {
    Associate,
    Send(u64),
    SendUntil(Instant),
    /// Sends `bytes`, one message at a time.
    SendPaced {
        bytes: u64,
        pace: Pace,
    },
    /// The paths from a local address get a rank.
    Rank(IpAddr, PathRank),
    StopSending,
    Shutdown,
}
