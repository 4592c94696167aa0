//! A token-bucket policer: drops what comes faster than its rate, and holds nothing.

use std::time::Duration;

use manypath_proto::Instant;

use crate::spec::Rate;

/// A token bucket: it lets through a rate in the long run, and a burst after a time without
/// packets.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Policer {
    /// The rate of its tokens, IP headers included.
    pub rate: Rate,
    /// Size of the bucket in bytes: what may come at once.
    pub burst: u32,
}

/// A bucket. It is full at first.
#[derive(Copy, Clone, Debug)]
pub(super) struct Bucket {
    byte_time: u64,
    /// The time in which an empty bucket fills up.
    depth: Duration,
    /// When it will be full.
    full_at: Instant,
}

impl Bucket {
    pub(super) fn new(policer: Policer) -> Bucket {
        let byte_time = policer.rate.byte_time();
        let depth = super::scaled(byte_time, policer.burst);
        Bucket { byte_time, depth: Duration::from_nanos(depth), full_at: Instant::ZERO }
    }

    /// True if there are tokens for a packet, which takes them.
    pub(super) fn admits(&mut self, now: Instant, size: u32) -> bool {
        let full_at = super::later(self.full_at.max(now), super::scaled(self.byte_time, size));
        let has_tokens = full_at.saturating_since(now) <= self.depth;
        if has_tokens {
            self.full_at = full_at;
        }
        has_tokens
    }
}
