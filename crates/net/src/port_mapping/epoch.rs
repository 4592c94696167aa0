//! The age that a router gives with each answer: it tells of a restart, which loses mappings.

use manypath_proto::Instant;

/// Seconds by which clocks may differ (RFC 6887 §8.5).
const SLACK_S: u64 = 2;
/// Clocks run at a speed of at least 15/16 of each other (RFC 6887 §8.5).
const DRIFT: u64 = 16;

/// The last age of a router, and when it was heard.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Epoch {
    at: Instant,
    seconds: u32,
}

impl Epoch {
    /// The age `seconds`, heard now.
    pub(super) fn new(now: Instant, seconds: u32) -> Epoch {
        Epoch { at: now, seconds }
    }

    /// True if the router has restarted since this age was heard, judged by the age `seconds` that
    /// it gives now (RFC 6887 §8.5; the rule of RFC 6886 §3.6 is more lenient).
    pub(super) fn is_lost(&self, now: Instant, seconds: u32) -> bool {
        // An answer may overtake the one before it.
        if u64::from(seconds) + 1 < u64::from(self.seconds) {
            return true;
        }
        let ours = now.saturating_since(self.at).as_secs();
        let theirs = u64::from(seconds.saturating_sub(self.seconds));
        ours + SLACK_S < theirs - theirs / DRIFT || theirs + SLACK_S < ours - ours / DRIFT
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_router_that_restarts_is_told_from_one_whose_clock_drifts() {
        let at = |s| Instant::ZERO + Duration::from_secs(s);
        let epoch = Epoch::new(at(100), 5000);
        for (now, seconds, is_lost) in [
            (100, 5000, false),
            (100, 4999, false),
            (100, 4998, true),
            (700, 5600, false),
            (700, 5570, false),
            (700, 5640, false),
            (700, 5550, true),
            (700, 5650, true),
            (101, 5000, false),
            (700, 3, true),
            (700, u32::MAX, true),
        ] {
            assert_eq!(epoch.is_lost(at(now), seconds), is_lost, "{seconds} after {now}");
        }
        assert!(!Epoch::new(at(5), u32::MAX).is_lost(at(0), u32::MAX));
    }
}
