//! Commands that run at a planned time.

use manypath_proto::Instant;

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
    StopSending,
    Shutdown,
}
