//! OLIA, the opportunistic linked increases (Khalili et al., "MPTCP is not Pareto-optimal", CoNEXT
//! 2012; draft-khalili-mptcp-congestion-control): as [`Lia`](super::Lia), but a path that seems
//! better than its window shows grows faster, at the expense of the paths with the largest windows.
//!
//! Slow start and cuts are those of RFC 9260, for each path.

use super::coupled::{Coupled, rates};
use super::{AckFacts, CongestionControl, Limits, NeededFacts, PathWindow, Rfc9260, Window};
use crate::view::PathId;

/// The controller of one path. The other paths have controllers of the same kind.
#[derive(Debug, Default)]
pub struct Olia {
    coupled: Coupled,
}

impl CongestionControl for Olia {
    fn on_ack(&mut self, window: Window, limits: &Limits, ack: &AckFacts) -> Window {
        self.coupled.on_ack(window, limits, ack, || per_byte(window.cwnd, ack.path, ack.paths))
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

/// The growth in packets per acknowledged byte on a path with this window. It may be negative.
fn per_byte(cwnd: usize, own: PathId, paths: &[PathWindow]) -> f64 {
    let cwnd = cwnd.max(1) as f64;
    let rtt = paths.iter().find(|path| path.path == own).and_then(PathWindow::rtt);
    let sum: f64 = rates(paths).map(|(rate, _)| rate).sum();
    match rtt {
        Some(rtt) if sum > 0.0 => cwnd / (rtt * sum).powi(2) + alpha(own, paths) / cwnd,
        _ => 1.0 / cwnd,
    }
}

/// alpha_r: positive for the best paths whose windows are not the largest. If there are any, it is
/// negative for the paths with the largest windows. The sum is 0.
fn alpha(own: PathId, paths: &[PathWindow]) -> f64 {
    let measured = || paths.iter().filter_map(|path| Some((path, path.rtt()?)));
    // 1/l estimates the loss rate, so this orders paths by what a single flow would get there.
    let quality = |(path, rtt): (&PathWindow, f64)| path.between_losses as f64 / (rtt * rtt);
    let best = measured().map(quality).fold(0.0, f64::max);
    let largest = measured().map(|(path, _)| path.cwnd).max().unwrap_or(0);
    let is_largest = |path: &PathWindow| path.cwnd == largest;
    let is_collected =
        |path: &PathWindow, rtt: f64| !is_largest(path) && quality((path, rtt)) >= best;
    let collected = measured().filter(|(path, rtt)| is_collected(path, *rtt)).count();
    let Some((path, rtt)) = measured().find(|(path, _)| path.path == own) else { return 0.0 };
    let all = measured().count();
    if is_collected(path, rtt) {
        1.0 / (all * collected) as f64
    } else if is_largest(path) && collected > 0 {
        -1.0 / (all * measured().filter(|(path, _)| is_largest(path)).count()) as f64
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::super::coupled::tests::{LIMITS, PACKET, growth_of, paths};
    use super::*;

    /// Paths with these windows in packets, round-trip times in ms, and packets between losses.
    fn with_losses(of: &[(usize, u64, u64)]) -> Vec<PathWindow> {
        let mut windows = paths(&of.iter().map(|&(w, rtt, _)| (w, rtt)).collect::<Vec<_>>());
        for (window, &(_, _, packets)) in windows.iter_mut().zip(of) {
            window.between_losses = packets * PACKET as u64;
        }
        windows
    }

    fn alphas(of: &[(usize, u64, u64)]) -> Vec<f64> {
        let windows = with_losses(of);
        windows.iter().map(|window| alpha(window.path, &windows)).collect()
    }

    #[test]
    fn one_path_is_as_in_rfc_9260() {
        let grown = growth_of(Box::<Olia>::default(), &[(100, 50)]);
        assert!((0.98..=1.0).contains(&grown), "{grown}");
    }

    #[test]
    fn equal_paths_grow_by_a_quarter_of_a_packet_each() {
        let of = with_losses(&[(100, 50, 5000), (100, 50, 5000)]);
        assert!((per_byte(of[0].cwnd, of[0].path, &of) * 100e3 - 0.25).abs() < 1e-9);
    }

    #[test]
    fn the_best_path_grows_at_the_expense_of_the_largest_window() {
        assert_eq!(alphas(&[(100, 50, 9000), (20, 50, 900)]), [0.0, 0.0], "it has it already");
        assert_eq!(alphas(&[(100, 50, 900), (20, 50, 9000)]), [-0.5, 0.5]);
        assert_eq!(alphas(&[(100, 50, 900), (20, 150, 7000)]), [0.0, 0.0], "a longer way");
        let third = 1.0 / 3.0;
        assert_eq!(
            alphas(&[(9, 50, 10), (9, 50, 10), (4, 50, 90)]),
            [-third / 2.0, -third / 2.0, third]
        );
        assert_eq!(
            alphas(&[(9, 50, 10), (4, 50, 90), (3, 50, 90)]),
            [-third, third / 2.0, third / 2.0]
        );
    }

    #[test]
    fn a_window_that_is_too_large_shrinks_to_a_packet_at_most() {
        let of = with_losses(&[(2, 500, 10), (1, 10, 90)]);
        assert!(per_byte(of[0].cwnd, of[0].path, &of) < 0.0);
        let mut olia = Olia::default();
        let mut window = Window { cwnd: 2 * PACKET, ssthresh: PACKET, partial_bytes_acked: 0 };
        let ack = AckFacts { paths: &of, ..AckFacts::of(PACKET, 2 * PACKET) };
        for _ in 0..20 {
            let before = window.cwnd;
            window = olia.on_ack(window, &LIMITS, &ack);
            assert!(window.cwnd <= before);
        }
        assert_eq!(window.cwnd, PACKET);
    }

    #[test]
    fn a_path_that_was_not_measured_is_on_its_own() {
        let mut of = with_losses(&[(100, 50, 10), (20, 50, 90)]);
        of[0].srtt = None;
        assert!((per_byte(of[0].cwnd, of[0].path, &of) * 100e3 - 1.0).abs() < 1e-9);
        assert_eq!(alpha(of[1].path, &of), 0.0);
        assert!(per_byte(0, PathId(9), &[]).is_finite());
    }
}
