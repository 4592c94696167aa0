//! The linked increases of RFC 6356: all paths of an association together take no more of a shared
//! bottleneck than one flow would, and at least what the best of them alone could have.
//!
//! Only the growth in congestion avoidance is linked (§3). Slow start and the cuts are those of RFC
//! 9260, for each path.

use super::coupled::{Coupled, rates};
use super::{AckFacts, CongestionControl, Limits, NeededFacts, PathWindow, Rfc9260, Window};

/// The controller of one path. The other paths have controllers of the same kind.
#[derive(Debug, Default)]
pub struct Lia {
    coupled: Coupled,
}

impl CongestionControl for Lia {
    fn on_ack(&mut self, window: Window, limits: &Limits, ack: &AckFacts) -> Window {
        self.coupled.on_ack(window, limits, ack, || per_byte(window.cwnd, ack.paths))
    }

    fn on_fast_retransmit(&mut self, window: Window, limits: &Limits) -> Window {
        Rfc9260.on_fast_retransmit(window, limits)
    }

    fn on_timeout(&mut self, window: Window, limits: &Limits) -> Window {
        Rfc9260.on_timeout(window, limits)
    }

    fn needs(&self) -> NeededFacts {
        Coupled::needs()
    }
}

/// The growth in packets per acknowledged byte on a path with this window (§3): that of a single
/// flow, or the linked growth if that is less. The linked growth is `alpha` over the sum of the
/// windows, and the sum cancels out.
fn per_byte(cwnd: usize, paths: &[PathWindow]) -> f64 {
    let alone = 1.0 / cwnd.max(1) as f64;
    let (mut greatest, mut sum) = (0.0_f64, 0.0);
    for (rate, rtt) in rates(paths) {
        greatest = greatest.max(rate / rtt);
        sum += rate;
    }
    if sum > 0.0 { alone.min(greatest / (sum * sum)) } else { alone }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::coupled::tests::{LIMITS, growth_of, paths};
    use super::*;

    fn growth(of: &[(usize, u64)]) -> f64 {
        growth_of(Box::<Lia>::default(), of)
    }

    #[test]
    fn s3_one_path_grows_by_a_packet_per_window() {
        let grown = growth(&[(100, 50)]);
        assert!((0.98..=1.0).contains(&grown), "{grown}");
    }

    #[test]
    fn s3_equal_paths_grow_together_as_one_flow_with_their_whole_window_would() {
        // alpha is 1/2, and so 1/4 of a packet on each of two paths.
        let grown = growth(&[(100, 50), (100, 50)]);
        assert!((grown - 0.25).abs() < 0.01, "{grown}");
        let grown = growth(&[(100, 50), (100, 50), (100, 50)]);
        assert!((grown - 1.0 / 9.0).abs() < 0.01, "{grown}");
    }

    #[test]
    fn s3_round_trip_times_weigh_the_windows() {
        let grown = growth(&[(10, 10), (10, 100)]);
        // 10/0.01² over (10/0.01 + 10/0.1)², times 10 packets.
        assert!((grown - 0.826).abs() < 0.03, "{grown}");
    }

    #[test]
    fn s3_no_path_grows_faster_than_a_flow_of_its_own() {
        // Its link alone would let it grow by 50 packets.
        let grown = growth(&[(100, 100), (2, 1)]);
        assert!(grown <= 1.0, "{grown}");
    }

    #[test]
    fn a_path_that_was_not_measured_does_not_count() {
        let mut of = paths(&[(100, 50), (100, 50)]);
        of[1].srtt = None;
        assert!((per_byte(of[0].cwnd, &of) * 1e5 - 1.0).abs() < 1e-9);
        of[0].srtt = Some(Duration::ZERO);
        assert!((per_byte(0, &of) - 1.0).abs() < 1e-9, "nor divides by zero");
    }

    #[test]
    fn slow_start_and_cuts_are_those_of_rfc_9260() {
        let mut lia = Lia::default();
        let of = paths(&[(4, 50), (100, 50)]);
        let window = Window { cwnd: 4000, ssthresh: 4500, partial_bytes_acked: 0 };
        let ack = AckFacts { paths: &of, ..AckFacts::of(1000, 4000) };
        assert_eq!(lia.on_ack(window, &LIMITS, &ack).cwnd, 4500, "up to ssthresh");
        let unused = AckFacts { paths: &of, ..AckFacts::of(1000, 3000) };
        assert_eq!(Lia::default().on_ack(window, &LIMITS, &unused), window);
        let recovers = AckFacts { in_fast_recovery: true, ..ack };
        assert_eq!(lia.on_ack(window, &LIMITS, &recovers), window);
        let large = Window { cwnd: 20_000, ..window };
        assert_eq!(lia.on_fast_retransmit(large, &LIMITS).cwnd, 10_000);
        assert_eq!(lia.on_timeout(large, &LIMITS).cwnd, 1000);
    }
}
