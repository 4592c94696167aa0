//! The measured speed of a path.

use std::time::Duration;

/// The measured speed of a path.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Bytes of DATA chunks that it delivers per second, as far as is known.
    pub rate: f64,
    /// The round-trip time of the path without a queue.
    pub min_rtt: Duration,
    /// True once the measured rate no longer grows. Before that, the path delivers more than
    /// `rate`.
    pub is_settled: bool,
}

impl Estimate {
    /// The time in which the path delivers `bytes` of DATA chunks, at most an hour.
    pub fn time_of(&self, bytes: usize) -> Duration {
        Duration::from_secs_f64((bytes as f64 / self.rate).min(3600.0))
    }
}
