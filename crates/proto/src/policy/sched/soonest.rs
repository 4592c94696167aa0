//! New data on the path that delivers it soonest.

use std::time::Duration;

use super::Scheduler;
use crate::policy::PolicyCx;
use crate::view::{PathId, PathView};

/// The path that delivers a packet soonest among those with room. If a faster path has no room now
/// but would deliver all waiting data before a slower one delivers a packet, the data waits for it.
/// So a slow path helps a long transfer without delaying its end (as ECF and BLEST do).
///
/// If congestion control measures the rate of a path, data in flight beyond its bandwidth-delay
/// product counts as its queue. Otherwise SRTT contains all that is known of the queue, and cwnd /
/// SRTT serves as the rate.
#[derive(Debug, Default)]
pub struct Soonest;

/// The one-way time of a packet that is sent now.
pub(in crate::policy) fn one_way(path: &PathView) -> Duration {
    let Some(estimate) = path.estimate else {
        return path.srtt.unwrap_or(path.rto) / 2;
    };
    let min_rtt = estimate.min_rtt;
    min_rtt / 2 + estimate.time_of(path.flight_size).saturating_sub(min_rtt)
}

/// The time to deliver `bytes` that are sent from now on.
fn takes(path: &PathView, bytes: usize) -> Duration {
    let of_window = |srtt: Duration| path.cwnd.max(1) as f64 / srtt.as_secs_f64().max(1e-6);
    let rate = match path.estimate {
        Some(estimate) => estimate.rate,
        None => of_window(path.srtt.unwrap_or(path.rto)),
    };
    one_way(path) + seconds(bytes as f64 / rate)
}

/// A duration of at most an hour.
fn seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.min(3600.0))
}

impl Scheduler for Soonest {
    fn choose(&mut self, cx: &mut PolicyCx<'_>) -> Option<PathId> {
        let usable = || cx.paths.iter().filter(|p| p.usable);
        let best = usable().filter(|p| p.cwnd_space > 0).min_by_key(|p| one_way(p))?;
        let is_worth_waiting_for = |p: &PathView| {
            p.srtt.is_some() && p.id != best.id && takes(p, cx.waiting) < one_way(best)
        };
        (!usable().any(is_worth_waiting_for)).then_some(best.id)
    }

    fn compares_rtts(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::cc::Estimate;
    use crate::policy::tests::{cx, view};

    fn path(id: u8, rtt_ms: u64, cwnd_space: usize) -> PathView {
        let srtt = Some(Duration::from_millis(rtt_ms));
        PathView { srtt, cwnd: 100_000, cwnd_space, ..view(id) }
    }

    fn choice(paths: &[PathView], waiting: usize) -> Option<u8> {
        let mut rng = crate::Rng::from_number(1);
        let mut cx = cx(paths, 0, &mut rng);
        cx.waiting = waiting;
        Soonest.choose(&mut cx).map(|id| id.0)
    }

    #[test]
    fn the_fastest_path_with_room_is_taken() {
        assert_eq!(choice(&[path(0, 30, 1), path(1, 20, 1)], 1 << 20), Some(1));
        assert_eq!(choice(&[path(0, 30, 1), path(1, 20, 0)], 1 << 20), Some(0));
    }

    /// 10 Mbit/s, whose queue is empty with 25 kB in flight.
    fn measured(id: u8, flight_size: usize, cwnd_space: usize) -> PathView {
        let estimate =
            Some(Estimate { rate: 1.25e6, min_rtt: Duration::from_millis(20), is_settled: true });
        PathView { estimate, flight_size, ..path(id, 20, cwnd_space) }
    }

    #[test]
    fn what_is_in_flight_beyond_the_bandwidth_delay_product_delays_a_packet() {
        let choose = |first, second| choice(&[measured(0, first, 1), measured(1, second, 1)], 1);
        assert_eq!(choose(25_000, 0), Some(0), "as soon as the other");
        assert_eq!(choose(27_000, 25_000), Some(1));
        assert_eq!(choose(27_000, 28_000), Some(0));
        // A packet takes 10 ms on it, and 50 ms with 50 kB in the queue.
        assert_eq!(choice(&[measured(0, 75_000, 1), path(1, 90, 1)], 1), Some(1));
        assert_eq!(choice(&[measured(0, 65_000, 1), path(1, 90, 1)], 1), Some(0));
    }

    #[test]
    fn a_slow_path_is_left_idle_at_the_end() {
        // The fast path needs 10 ms and 20 ms for each 100 kB: 290 ms for 1.4 MB.
        let paths = [path(0, 20, 0), path(1, 600, 1)];
        assert_eq!(choice(&paths, 1_500_000), Some(1));
        assert_eq!(choice(&paths, 1_400_000), None);
    }

    #[test]
    fn a_path_that_was_not_measured_is_not_waited_for() {
        let unmeasured = PathView { srtt: None, ..path(0, 0, 0) };
        assert_eq!(choice(&[unmeasured, path(1, 600, 1)], 10), Some(1));
    }
}
