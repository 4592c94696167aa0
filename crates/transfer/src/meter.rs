//! Measurements of the deliveries of content to a receiver.

use std::time::Duration;

use manypath_files::frame::Summary;
use tokio::time::Instant;

use crate::event::Counts;

/// Measures the deliveries of content to the receiving application.
#[derive(Debug)]
pub(crate) struct DeliveryMeter {
    welcome: Instant,
    first: Option<Instant>,
    last: Option<Instant>,
    max_gap: Duration,
    bytes: u64,
}

impl DeliveryMeter {
    /// Starts when the sender is welcomed.
    pub(crate) fn new(welcome: Instant) -> DeliveryMeter {
        DeliveryMeter { welcome, first: None, last: None, max_gap: Duration::ZERO, bytes: 0 }
    }

    /// Content was delivered.
    pub(crate) fn delivered(&mut self, now: Instant, bytes: usize) {
        if let Some(last) = self.last {
            self.max_gap = self.max_gap.max(now - last);
        }
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.bytes += bytes as u64;
    }

    /// From Welcome to the last delivery.
    pub(crate) fn transfer_time(&self) -> Duration {
        self.last.map_or(Duration::ZERO, |last| last - self.welcome)
    }

    /// The summary for the sender at `now`.
    pub(crate) fn summary(&self, now: Instant, files: &Counts) -> Summary {
        Summary {
            stored: files.total - files.failed,
            failed: files.failed,
            bytes: self.bytes,
            first_byte_ns: self.first.map_or(0, |first| nanos(first - self.welcome)),
            max_delivery_gap_ns: nanos(self.max_gap),
            settle_ns: nanos(now - self.last.unwrap_or(self.welcome)),
        }
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_longest_pause_is_between_deliveries_only() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut meter = DeliveryMeter::new(start);
        for (ms, bytes) in [(900, 10), (950, 20), (1150, 30), (1200, 40)] {
            meter.delivered(at(ms), bytes);
        }
        let summary = meter.summary(at(5000), &Counts::default());
        assert_eq!(summary.max_delivery_gap_ns, 200_000_000);
        assert_eq!(summary.first_byte_ns, 900_000_000);
        assert_eq!(summary.settle_ns, 3_800_000_000);
        assert_eq!(summary.bytes, 100);
        assert_eq!(meter.transfer_time(), Duration::from_millis(1200));
    }
}
