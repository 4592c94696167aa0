//! Pacing: spreads a window over its round-trip time, in bursts that batching still makes worthwhile.

use std::time::Duration;

use crate::time::Instant;

/// A token bucket per path, in bytes.
///
/// Its rate is somewhat above cwnd per SRTT, so that pacing never limits throughput, only bursts. The
/// bucket holds what the rate yields in [`BURST_TIME`], because a driver's timers are no finer.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    /// Bytes that may be sent; negative after a burst. `None` until a rate is known.
    tokens: Option<i64>,
    refilled_at: Instant,
    /// Bytes per second.
    rate: f64,
    capacity: i64,
}

/// How much time's worth of data may leave at once.
const BURST_TIME: Duration = Duration::from_millis(2);
/// A burst is at least this many packets.
const MIN_BURST_PACKETS: usize = 10;

impl Pacer {
    /// True unless the bucket is empty.
    pub(crate) fn may_send(&self) -> bool {
        self.tokens.is_none_or(|t| t > 0)
    }

    /// Sets the rate from the window and refills the bucket up to `now`.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        cwnd: usize,
        slow_start: bool,
        srtt: Option<Duration>,
        packet: usize,
    ) {
        let Some(srtt) = srtt else { return };
        let gain = if slow_start { 2.0 } else { 1.25 };
        self.rate = gain * cwnd as f64 / srtt.as_secs_f64().max(1e-6);
        let burst = (self.rate * BURST_TIME.as_secs_f64()) as i64;
        self.capacity = burst.max((MIN_BURST_PACKETS * packet) as i64);
        let earned = (now - self.refilled_at).as_secs_f64() * self.rate;
        let tokens = self.tokens.unwrap_or(self.capacity);
        self.tokens = Some(tokens.saturating_add(earned as i64).min(self.capacity));
        self.refilled_at = now;
    }

    /// Takes the tokens for a packet.
    pub(crate) fn spend(&mut self, bytes: usize) {
        if let Some(t) = &mut self.tokens {
            *t -= bytes as i64;
        }
    }

    /// When at least half a burst may be sent again, if the bucket is empty now.
    pub(crate) fn ready_at(&self) -> Option<Instant> {
        let missing = self.tokens.filter(|&t| t <= 0).map(|t| self.capacity / 2 - t)?;
        Some(self.refilled_at + Duration::from_secs_f64(missing as f64 / self.rate.max(1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_leaves_over_its_round_trip_time() {
        let mut p = Pacer::default();
        let (cwnd, srtt) = (1_000_000, Some(Duration::from_millis(100)));
        let mut now = Instant::ZERO;
        let mut sent = 0;
        while now < Instant::from_millis(100) {
            p.update(now, cwnd, false, srtt, 1400);
            while p.may_send() {
                p.spend(1400);
                sent += 1400;
            }
            now = p.ready_at().expect("the bucket is empty");
        }
        let ratio = sent as f64 / cwnd as f64;
        assert!((1.2..1.35).contains(&ratio), "1.25 windows in one SRTT, got {ratio}");
    }

    #[test]
    fn before_the_first_measurement_nothing_is_held_back() {
        let mut p = Pacer::default();
        p.update(Instant::ZERO, 10_000, true, None, 1400);
        p.spend(1_000_000);
        assert!(p.may_send());
        assert_eq!(p.ready_at(), None);
    }
}
