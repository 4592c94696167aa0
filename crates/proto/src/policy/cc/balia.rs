//! BALIA, the balanced linked adaptation (draft-walid-mptcp-congestion-control-04): as
//! [`Lia`](super::Lia), but faster to notice that a path has become better. A path that is slower
//! than the best grows faster than with linked increases, and is cut by more.
//!
//! Slow start and timeouts are those of RFC 9260, for each path.

use super::coupled::{Coupled, rates};
use super::{AckFacts, CongestionControl, Limits, NeededFacts, Rfc9260, Window};

/// The largest cut by a loss, in halves of the window.
const CUT_MAX: f64 = 1.5;

/// The controller of one path. The other paths have controllers of the same kind.
#[derive(Debug)]
pub struct Balia {
    coupled: Coupled,
    /// alpha_r: the rate of the best path over that of this one, as of the latest SACK.
    alpha: f64,
}

impl Default for Balia {
    fn default() -> Balia {
        Balia { coupled: Coupled::default(), alpha: 1.0 }
    }
}

impl CongestionControl for Balia {
    fn on_ack(&mut self, window: Window, limits: &Limits, ack: &AckFacts) -> Window {
        let (mut greatest, mut sum) = (0.0_f64, 0.0);
        for (rate, _) in rates(ack.paths) {
            greatest = greatest.max(rate);
            sum += rate;
        }
        let cwnd = window.cwnd.max(1) as f64;
        let rtt = ack.srtt.map_or(0.0, |srtt| srtt.as_secs_f64());
        if rtt == 0.0 || sum == 0.0 {
            self.alpha = 1.0;
            return self.coupled.on_ack(window, limits, ack, || 1.0 / cwnd);
        }
        let rate = cwnd / rtt;
        let alpha = (greatest / rate).max(1.0);
        self.alpha = alpha;
        let per_byte = rate / (rtt * sum * sum) * ((1.0 + alpha) / 2.0) * ((4.0 + alpha) / 5.0);
        self.coupled.on_ack(window, limits, ack, || per_byte)
    }

    fn on_fast_retransmit(&mut self, window: Window, limits: &Limits) -> Window {
        let cwnd = window.cwnd as f64;
        let left = (cwnd - cwnd / 2.0 * self.alpha.min(CUT_MAX)) as usize;
        let ssthresh = left.max(limits.ssthresh_floor);
        Window { cwnd: ssthresh, ssthresh, partial_bytes_acked: 0 }
    }

    fn on_timeout(&mut self, window: Window, limits: &Limits) -> Window {
        Rfc9260.on_timeout(window, limits)
    }

    fn needs(&self) -> NeededFacts {
        Coupled::needs()
    }
}

#[cfg(test)]
mod tests {
    use super::super::coupled::tests::{LIMITS, PACKET, paths};
    use super::*;

    /// SACKs for a window of the first of these paths, in congestion avoidance. Gives the
    /// controller, and the growth in packets.
    fn after_window(of: &[(usize, u64)]) -> (Balia, f64) {
        let mut balia = Balia::default();
        let paths = paths(of);
        let cwnd = paths[0].cwnd;
        let window = Window { cwnd, ssthresh: cwnd, partial_bytes_acked: 0 };
        let ack = AckFacts { paths: &paths, srtt: paths[0].srtt, ..AckFacts::of(PACKET, 2 * cwnd) };
        let grown: usize =
            (0..of[0].0).map(|_| balia.on_ack(window, &LIMITS, &ack).cwnd - cwnd).sum();
        (balia, grown as f64 / PACKET as f64)
    }

    fn is_near(value: f64, expected: f64) -> bool {
        (value / expected - 1.0).abs() < 0.05
    }

    #[test]
    fn one_path_is_as_in_rfc_9260() {
        let (mut balia, grown) = after_window(&[(20, 50)]);
        assert!(is_near(grown, 1.0), "{grown}");
        let window = Window { cwnd: 20_000, ssthresh: 20_000, partial_bytes_acked: 0 };
        assert_eq!(balia.on_fast_retransmit(window, &LIMITS).cwnd, 10_000);
    }

    #[test]
    fn equal_paths_grow_by_a_quarter_of_a_packet_each() {
        let grown = after_window(&[(20, 50), (20, 50)]).1;
        assert!(is_near(grown, 0.25), "{grown}");
    }

    #[test]
    fn a_slower_path_grows_faster_than_linked_and_is_cut_by_more() {
        // A third of the other's rate: alpha is 3, and 1/16 times 4/2 times 7/5.
        let (mut balia, grown) = after_window(&[(20, 50), (60, 50)]);
        assert!(is_near(grown, 0.0625 * 2.0 * 1.4), "{grown}");
        let window = Window { cwnd: 20_000, ssthresh: 20_000, partial_bytes_acked: 0 };
        assert_eq!(balia.on_fast_retransmit(window, &LIMITS).cwnd, 5000, "min(alpha, 1.5)");
        let small = Window { cwnd: 8000, ..window };
        assert_eq!(balia.on_fast_retransmit(small, &LIMITS).cwnd, LIMITS.ssthresh_floor);
        let (mut best, _) = after_window(&[(60, 50), (20, 50)]);
        assert_eq!(best.on_fast_retransmit(window, &LIMITS).cwnd, 10_000, "alpha is 1 there");
    }

    #[test]
    fn a_path_that_was_not_measured_is_on_its_own() {
        let mut balia = Balia::default();
        let window = Window { cwnd: 20_000, ssthresh: 20_000, partial_bytes_acked: 0 };
        let ack = AckFacts::of(PACKET, 20_000);
        assert_eq!(balia.on_ack(window, &LIMITS, &ack).cwnd, 20_050);
    }
}
