//! Tells if the window, or something else, limits the data in flight on a path.

use super::{AckFacts, Window};

/// The last time that the window was seen used up.
#[derive(Debug, Default)]
pub(super) struct UsedUp {
    /// The latest transmission at that time.
    at: Option<u64>,
}

impl UsedUp {
    /// Takes note of a SACK. True if the window was used up while the acknowledged chunks were in
    /// flight. Between two SACKs pacing may leave some of it unused.
    pub(super) fn is_limit(&mut self, window: Window, ack: &AckFacts) -> bool {
        let is_used_up = ack.flight_before >= window.cwnd;
        if is_used_up {
            self.at = Some(ack.latest_sent);
        }
        match (self.at, ack.latest_acked) {
            (Some(at), Some(acked)) => acked <= at,
            _ => is_used_up,
        }
    }
}
