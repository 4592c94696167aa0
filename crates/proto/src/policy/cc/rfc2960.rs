//! Slow start and congestion avoidance of SCTP as it was when the papers were written (RFC 2960
//! §7.2).

use super::{AckFacts, CongestionControl, Limits, Rfc9260, Window};

/// As RFC 2960 has it: fast recovery does not hold cwnd back, and bytes acknowledged beyond one
/// cwnd count for later growth.
#[derive(Debug, Default)]
pub struct Rfc2960;

impl CongestionControl for Rfc2960 {
    fn on_ack(&mut self, mut w: Window, limits: &Limits, ack: &AckFacts) -> Window {
        let was_full = ack.flight_before >= w.cwnd;
        if w.cwnd <= w.ssthresh {
            // §7.2.1
            if was_full {
                w.cwnd += ack.acked_bytes.min(limits.slow_start_increase_max);
            }
        } else {
            // §7.2.2
            w.partial_bytes_acked += ack.counted_bytes;
            if w.partial_bytes_acked >= w.cwnd && was_full {
                w.partial_bytes_acked -= w.cwnd;
                w.cwnd += limits.packet;
            }
        }
        if ack.flight_after == 0 {
            w.partial_bytes_acked = 0;
        }
        w
    }

    fn on_fast_retransmit(&mut self, w: Window, limits: &Limits) -> Window {
        Rfc9260.on_fast_retransmit(w, limits)
    }

    fn on_timeout(&mut self, w: Window, limits: &Limits) -> Window {
        Rfc9260.on_timeout(w, limits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { packet: 1000, ssthresh_floor: 2000, slow_start_increase_max: 1000 };

    fn window(cwnd: usize, ssthresh: usize, partial_bytes_acked: usize) -> Window {
        Window { cwnd, ssthresh, partial_bytes_acked }
    }

    fn ack(acked_bytes: usize, flight_before: usize) -> AckFacts<'static> {
        AckFacts { in_fast_recovery: true, ..AckFacts::of(acked_bytes, flight_before) }
    }

    #[test]
    fn fast_recovery_does_not_hold_growth_back() {
        let w = Rfc2960.on_ack(window(4000, 9000, 0), &LIMITS, &ack(2000, 4000));
        assert_eq!(w.cwnd, 5000, "§7.2.1");
        let w = Rfc2960.on_ack(window(8000, 4000, 7000), &LIMITS, &ack(2000, 8000));
        assert_eq!(w, window(9000, 4000, 1000), "§7.2.2");
    }

    #[test]
    fn bytes_acknowledged_while_the_window_was_not_used_up_count_later() {
        let w = Rfc2960.on_ack(window(8000, 4000, 7000), &LIMITS, &ack(2000, 7999));
        assert_eq!(w, window(8000, 4000, 9000));
        let w = Rfc2960.on_ack(w, &LIMITS, &ack(1000, 8000));
        assert_eq!(w, window(9000, 4000, 2000));
    }
}
