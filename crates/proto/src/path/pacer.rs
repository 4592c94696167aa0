//! Pacing: spreads a window over its RTT, in bursts large enough for batching.

use std::time::Duration;

use crate::policy::cc::Pace;
use crate::time::Instant;

/// A token bucket per path, in bytes.
///
/// The rate is somewhat above cwnd per SRTT, so pacing limits bursts and never throughput. The
/// bucket holds what the rate yields in [`BURST_TIME`], because a driver's timers are no finer.
/// While data waits for it, it is not capped: a driver that comes late on a busy host gets all
/// tokens of that time.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    /// Bytes that may be sent; negative after a burst. `None` until a rate is known.
    tokens: Option<i64>,
    refilled_at: Instant,
    /// Bytes per second.
    rate: f64,
    capacity: i64,
    /// True if data waits for tokens and for nothing else.
    holds: bool,
    /// True with a model of the path: an empty bucket gathers half a burst before it gives again.
    in_runs: bool,
    /// True while an empty bucket gathers half a burst.
    gathers: bool,
}

/// Time that a burst lasts at the pacing rate.
const BURST_TIME: Duration = Duration::from_millis(2);
/// Fewest packets in a burst.
const MIN_BURST_PACKETS: usize = 10;
/// Extra time to wait for half a burst, because a timer is rounded and must not expire early.
const ROUNDING: Duration = Duration::from_micros(1);

impl Pacer {
    /// True if tokens are left. With a model of the path, an empty bucket first gathers half a
    /// burst. Otherwise each SACK would draw a packet on every path, and SACKs would need a gap ack
    /// block for each.
    pub(crate) fn may_send(&self) -> bool {
        !self.gathers && self.tokens.is_none_or(|t| t > 0)
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
        let rate = gain * cwnd as f64 / srtt.as_secs_f64().max(1e-6);
        let burst = (rate * BURST_TIME.as_secs_f64()) as usize;
        let quantum = burst.max(MIN_BURST_PACKETS * packet);
        self.in_runs = false;
        self.refill(now, Pace { rate, quantum });
    }

    /// Sets the rate of a model of the path and refills the bucket up to `now`.
    pub(crate) fn follow(&mut self, now: Instant, pace: Pace) {
        self.in_runs = true;
        self.refill(now, pace);
    }

    /// Sets the rate and refills the bucket up to `now`.
    fn refill(&mut self, now: Instant, pace: Pace) {
        self.rate = pace.rate;
        self.capacity = pace.quantum as i64;
        let elapsed = now - self.refilled_at;
        let tokens = self.tokens.unwrap_or(self.capacity);
        let filled = tokens.saturating_add((elapsed.as_secs_f64() * self.rate) as i64);
        self.tokens = Some(if self.holds {
            filled
        } else if elapsed < BURST_TIME {
            filled.min(self.capacity.max(tokens))
        } else {
            // A driver that comes late cannot spend all of its tokens in one call.
            filled.min(self.capacity)
        });
        self.refilled_at = now;
        self.holds = false;
        self.gathers &= self.in_runs && self.tokens.is_some_and(|t| t < self.capacity / 2);
    }

    /// Takes the tokens for a packet.
    pub(crate) fn spend(&mut self, bytes: usize) {
        if let Some(t) = &mut self.tokens {
            *t -= bytes as i64;
        }
    }

    /// If the bucket is empty, returns when at least half a burst may be sent again. Data waits
    /// until then.
    pub(crate) fn hold(&mut self) -> Option<Instant> {
        let tokens = self.tokens.filter(|&t| t <= 0 || self.gathers)?;
        self.gathers = self.in_runs;
        self.holds = true;
        let missing = self.capacity / 2 - tokens;
        let wait = Duration::from_secs_f64(missing as f64 / self.rate.max(1.0));
        Some(self.refilled_at + if self.gathers { wait + ROUNDING } else { wait })
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
            now = p.hold().expect("the bucket is empty");
        }
        let ratio = sent as f64 / cwnd as f64;
        assert!((1.2..1.35).contains(&ratio), "1.25 windows in one SRTT, got {ratio}");
    }

    #[test]
    fn a_late_driver_sends_what_it_was_late_for_and_an_idle_one_a_burst() {
        let mut p = Pacer::default();
        let (cwnd, srtt) = (56_000, Some(Duration::from_millis(50)));
        let mut send = |ms: u64, most: usize| {
            let mut packets = 0;
            while packets < most {
                p.update(Instant::from_millis(ms), cwnd, false, srtt, 1400);
                if !p.may_send() {
                    assert!(p.hold().is_some());
                    break;
                }
                p.spend(1400);
                packets += 1;
            }
            packets
        };
        assert_eq!(send(0, 1000), 10, "a burst");
        // It comes 40 ms later instead of 5: one window in 50 ms, and a quarter more.
        assert!((39..=41).contains(&send(40, 1000)), "what 40 ms yield");
        assert!((39..=41).contains(&send(80, 1000)));
        assert_eq!(send(100, 3), 3, "nothing waits any more");
        assert_eq!(send(200, 1000), 10, "after a pause a burst");
    }

    #[test]
    fn an_empty_bucket_gives_nothing_before_it_holds_half_a_burst() {
        let mut p = Pacer::default();
        let pace = Pace { rate: 1e6, quantum: 20_000 };
        let at = |us| Instant::ZERO + Duration::from_micros(us);
        p.follow(at(0), pace);
        p.spend(20_000);
        let ready = p.hold().expect("the bucket is empty");
        p.follow(at(9_000), pace);
        assert!(!p.may_send(), "9 kB");
        assert!(p.hold().is_some_and(|again| again <= ready + Duration::from_micros(2)));
        p.follow(ready, pace);
        assert!(p.may_send(), "10 kB");
        p.spend(9_000);
        assert!(p.may_send() && p.hold().is_none(), "the rest may follow");
    }

    #[test]
    fn before_the_first_measurement_nothing_is_held_back() {
        let mut p = Pacer::default();
        p.update(Instant::ZERO, 10_000, true, None, 1400);
        p.spend(1_000_000);
        assert!(p.may_send());
        assert_eq!(p.hold(), None);
    }
}
