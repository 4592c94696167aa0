//! What users may ask for.

use std::time::Duration;

use manypath_proto::Instant;

/// The limits of a relay. Memory is bounded by `allocations_total` and `peers_per_allocation`, whatever
/// anybody sends.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Allocations of all users together, at most.
    pub allocations_total: usize,
    /// Allocations of one user, at most.
    pub allocations_per_user: u32,
    /// Peers of one allocation: permissions, and as many channels.
    pub peers_per_allocation: usize,
    /// Bytes a second that one user's allocations forward together, both directions, with 28 bytes for
    /// the headers of each packet; 0 is no limit. What is above is dropped.
    pub user_bytes_per_s: u64,
    /// The same for all users together; 0 is no limit.
    pub total_bytes_per_s: u64,
    /// Time after which an allocation ends that is not refreshed, at most.
    pub lifetime_max: Duration,
}

impl Default for Limits {
    /// 100 allocations, 10 of one user, 32 peers each, 12.5 MB/s (100 Mbit/s) a user, 600 s.
    fn default() -> Limits {
        Limits {
            allocations_total: 100,
            allocations_per_user: 10,
            peers_per_allocation: 32,
            user_bytes_per_s: 12_500_000,
            total_bytes_per_s: 0,
            lifetime_max: Duration::from_secs(600),
        }
    }
}

/// A token bucket that holds a quarter of a second's worth, and at least one large packet.
#[derive(Debug)]
pub(super) struct Bucket {
    /// Tokens a second; 0 is no limit.
    rate: u64,
    depth: u64,
    tokens: u64,
    /// The time that `tokens` is of.
    at: Instant,
}

impl Bucket {
    pub(super) fn new(now: Instant, rate: u64) -> Bucket {
        let depth = (rate / 4).max(1 << 16);
        Bucket { rate, depth, tokens: depth, at: now }
    }

    /// True if `cost` tokens are there at `now`.
    pub(super) fn has(&mut self, now: Instant, cost: u64) -> bool {
        if self.rate == 0 {
            return true;
        }
        let nanos = u64::try_from(now.saturating_since(self.at).as_nanos()).unwrap_or(u64::MAX);
        let new = u128::from(nanos) * u128::from(self.rate) / 1_000_000_000;
        // Without a whole token the time goes on counting.
        if new > 0 {
            let new = u64::try_from(new).unwrap_or(u64::MAX);
            self.tokens = self.tokens.saturating_add(new).min(self.depth);
            self.at = now;
        }
        self.tokens >= cost
    }

    /// Takes tokens that are there.
    pub(super) fn take(&mut self, cost: u64) {
        if self.rate > 0 {
            self.tokens = self.tokens.saturating_sub(cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_passes_its_rate_and_no_more() {
        let rate = 1_000_000;
        let mut bucket = Bucket::new(Instant::ZERO, rate);
        let mut passed = 0;
        for ms in 0..4000 {
            for _ in 0..10 {
                if bucket.has(Instant::from_millis(ms), 1000) {
                    bucket.take(1000);
                    passed += 1000;
                }
            }
        }
        let most = 4 * rate + rate / 4;
        assert!((4 * rate..=most).contains(&passed), "{passed} of 40 MB offered in 4 s");
    }

    #[test]
    fn no_limit_is_no_limit() {
        let mut bucket = Bucket::new(Instant::ZERO, 0);
        assert!(bucket.has(Instant::ZERO, u64::MAX));
    }
}
