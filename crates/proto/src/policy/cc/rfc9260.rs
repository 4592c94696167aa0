//! Slow start and congestion avoidance of SCTP (RFC 9260 §7.2).

use super::{AckFacts, CongestionControl, Limits, Window};

/// The standard controller, per path and independent of the others.
#[derive(Debug, Default)]
pub struct Rfc9260;

impl CongestionControl for Rfc9260 {
    fn on_ack(&mut self, mut w: Window, limits: &Limits, ack: &AckFacts) -> Window {
        let was_full = ack.flight_before >= w.cwnd;
        if w.cwnd <= w.ssthresh {
            // §7.2.1: grow only if cwnd was used up, and not in fast recovery.
            if was_full && !ack.in_fast_recovery {
                w.cwnd += ack.acked_bytes.min(limits.slow_start_increase_max);
            }
        } else {
            // §7.2.2: one packet per cwnd acknowledged.
            w.partial_bytes_acked += ack.acked_bytes;
            if w.partial_bytes_acked >= w.cwnd {
                if was_full && !ack.in_fast_recovery {
                    w.partial_bytes_acked -= w.cwnd;
                    w.cwnd += limits.packet;
                } else {
                    w.partial_bytes_acked = w.cwnd;
                }
            }
        }
        if ack.flight_after == 0 {
            w.partial_bytes_acked = 0;
        }
        w
    }

    fn on_fast_retransmit(&mut self, w: Window, limits: &Limits) -> Window {
        // §7.2.3
        let ssthresh = (w.cwnd / 2).max(limits.ssthresh_floor);
        Window { cwnd: ssthresh, ssthresh, partial_bytes_acked: 0 }
    }

    fn on_timeout(&mut self, w: Window, limits: &Limits) -> Window {
        // §7.2.3
        let ssthresh = (w.cwnd / 2).max(limits.ssthresh_floor);
        Window { cwnd: limits.packet, ssthresh, partial_bytes_acked: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { packet: 1000, ssthresh_floor: 4000, slow_start_increase_max: 1000 };

    fn window(cwnd: usize, ssthresh: usize, partial_bytes_acked: usize) -> Window {
        Window { cwnd, ssthresh, partial_bytes_acked }
    }

    #[test]
    fn slow_start_grows_by_what_was_acked_up_to_one_packet_per_sack() {
        let grown =
            |acked| Rfc9260.on_ack(window(4000, 9000, 0), &LIMITS, &AckFacts::of(acked, 4000)).cwnd;
        assert_eq!((grown(500), grown(2000)), (4500, 5000), "§7.2.1");
    }

    #[test]
    fn a_window_that_was_not_used_up_does_not_grow() {
        let w = window(4000, 9000, 0);
        assert_eq!(Rfc9260.on_ack(w, &LIMITS, &AckFacts::of(1000, 3999)), w);
        let recovering = AckFacts { in_fast_recovery: true, ..AckFacts::of(1000, 4000) };
        assert_eq!(Rfc9260.on_ack(w, &LIMITS, &recovering), w, "nor in fast recovery");
    }

    #[test]
    fn congestion_avoidance_grows_by_one_packet_per_window() {
        let w = Rfc9260.on_ack(window(8000, 4000, 0), &LIMITS, &AckFacts::of(2000, 8000));
        assert_eq!(w, window(8000, 4000, 2000));
        let w = Rfc9260.on_ack(window(8000, 4000, 7000), &LIMITS, &AckFacts::of(2000, 8000));
        assert_eq!(w, window(9000, 4000, 1000), "§7.2.2");
        let idle = Rfc9260.on_ack(window(8000, 4000, 3000), &LIMITS, &AckFacts::of(1000, 1000));
        assert_eq!(idle.partial_bytes_acked, 0, "all acknowledged");
    }

    #[test]
    fn losses_halve_the_window_and_timeouts_collapse_it() {
        let w = window(20_000, 30_000, 500);
        assert_eq!(Rfc9260.on_fast_retransmit(w, &LIMITS), window(10_000, 10_000, 0));
        assert_eq!(Rfc9260.on_timeout(w, &LIMITS), window(1000, 10_000, 0));
        let small = window(3000, 30_000, 0);
        assert_eq!(Rfc9260.on_fast_retransmit(small, &LIMITS).ssthresh, 4000, "the floor");
    }
}
