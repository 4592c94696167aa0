//! RFC 8382's summary statistics of the delays and losses of one path (its sections 3.2, 3.4 and
//! 3.5).

use std::collections::VecDeque;
use std::time::Duration;

/// N: base intervals over which crossings and losses are counted (RFC 8382, section 2.2).
pub(super) const N: usize = 50;
/// M: base intervals over which delays are averaged (same section).
pub(super) const M: usize = 30;
/// F: the newest of these M intervals, which have equal weights. The weights of earlier ones
/// decline (same section).
const F: usize = 20;
/// c_s: a skewness below this shows a bottleneck (same section).
const C_S: f64 = 0.1;
/// c_h: the bound of the skewness for a path that had a bottleneck an interval ago (same section).
const C_H: f64 = 0.3;
/// p_v: the delay crosses its mean only by more than this many mean deviations (same section).
const P_V: f64 = 0.7;
/// p_l: the least fraction of losses that is compared (same section).
pub(super) const P_L: f64 = 0.1;

/// Statistics of a path that RFC 8382 compares with those of another.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub(super) struct Summary {
    /// skew_est, -1 to 1: how many more delays are below the mean than above it.
    pub(super) skew: f64,
    /// var_est, in seconds: the mean absolute deviation.
    pub(super) var: f64,
    /// freq_est, 0 to 1: how often the delay crosses its mean.
    pub(super) freq: f64,
    /// pkt_loss, 0 to 1.
    pub(super) loss: f64,
}

/// The statistics of one path since it began to carry data.
#[derive(Debug, Default)]
pub(super) struct DelayStats {
    /// The intervals that have ended, at most N; the newest is last.
    ended: VecDeque<Interval>,
    current: Interval,
    /// The long-term mean delay (`mean_delay`) and the mean of the last interval with delays, in
    /// seconds.
    means: Option<(f64, f64)>,
    /// The side of `mean_delay` on which the delay last clearly was; true is above.
    is_above: Option<bool>,
    /// PB: true if the path had a bottleneck at the end of the last interval.
    has_bottleneck: bool,
    summary: Summary,
    /// Number of intervals with delays.
    measured: usize,
}

/// A base interval, T long.
#[derive(Clone, Debug, Default)]
struct Interval {
    sum_s: f64,
    count: u64,
    /// Delays that were compared with means: all but those of the first interval.
    compared: u64,
    /// skew_base_T: the number of delays below `mean_delay` less the number above.
    skew: i64,
    /// var_base_T, in seconds: sum of the distances from the mean of the interval before.
    var_s: f64,
    /// The path had a bottleneck at the beginning of the interval, so its deviations count (RFC
    /// 8382, section 3.4.1).
    var_counts: bool,
    has_crossed: bool,
    arrived: u64,
    lost: u64,
}

impl DelayStats {
    /// Adds the delay of a packet.
    pub(super) fn note(&mut self, delay: Duration) {
        let delay = delay.as_secs_f64();
        let now = &mut self.current;
        now.sum_s += delay;
        now.count += 1;
        if let Some((long, last)) = self.means {
            now.compared += 1;
            now.skew += i64::from(delay < long) - i64::from(delay > long);
            now.var_s += (delay - last).abs();
        }
    }

    /// Takes note that `arrived` packets have arrived and `lost` packets are lost.
    pub(super) fn note_fates(&mut self, arrived: usize, lost: usize) {
        self.current.arrived += arrived as u64;
        self.current.lost += lost as u64;
    }

    /// True if the path was measured for long enough to be compared: 2 M intervals (RFC 8382,
    /// section 3.3.2).
    pub(super) fn is_ready(&self) -> bool {
        self.measured >= 2 * M
    }

    /// Statistics to compare; `None` if the path has no bottleneck (RFC 8382, section 3.3.1, step
    /// 1).
    pub(super) fn bottleneck(&self) -> Option<Summary> {
        self.has_bottleneck.then_some(self.summary)
    }

    /// The interval ends.
    pub(super) fn end_interval(&mut self) {
        let mut ended = std::mem::take(&mut self.current);
        ended.var_counts = self.has_bottleneck;
        let mean = ended.mean();
        self.measured += usize::from(mean.is_some());
        if self.ended.len() == N {
            self.ended.pop_front();
        }
        self.ended.push_back(ended);
        let over_m = || self.ended.iter().rev().zip(weights());
        let skew = mean_of(over_m().map(|(i, weight)| (i.skew as f64, i.compared, weight)));
        let valid = over_m().filter(|(i, _)| i.var_counts);
        let var = mean_of(valid.map(|(i, weight)| (i.var_s, i.compared, weight)));
        if let (Some(mean), Some((long, _)), Some(var)) = (mean, self.means, var)
            && self.crosses(mean, long, P_V * var)
            && let Some(newest) = self.ended.back_mut()
        {
            newest.has_crossed = true;
        }
        let crossings = self.ended.iter().filter(|i| i.has_crossed).count();
        let fates = self.ended.iter().map(|i| (i.lost as f64, i.arrived + i.lost, 1.0));
        self.summary = Summary {
            skew: skew.unwrap_or_default(),
            var: var.unwrap_or_default(),
            freq: crossings as f64 / N as f64,
            loss: mean_of(fates).unwrap_or_default(),
        };
        let highest = if self.has_bottleneck { C_H } else { C_S };
        self.has_bottleneck = skew.is_some_and(|skew| skew < highest || self.summary.loss > P_L);
        let means = self.ended.iter().rev().take(M).filter_map(Interval::mean);
        let long = mean_of(means.map(|mean| (mean, 1, 1.0)));
        self.means = long.and_then(|long| Some((long, mean.or(self.means.map(|m| m.1))?)));
    }

    /// True if an interval's mean is more than `margin` away from the long-term mean, on the other
    /// side than at the last such interval (RFC 8382, section 3.2.4).
    fn crosses(&mut self, mean: f64, long: f64, margin: f64) -> bool {
        if !self.has_bottleneck || (mean - long).abs() <= margin {
            return false;
        }
        let is_above = mean > long;
        self.is_above.replace(is_above).is_some_and(|was_above| was_above != is_above)
    }
}

impl Interval {
    /// E_T, the mean delay of the interval in seconds.
    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum_s / self.count as f64)
    }
}

/// The weighted mean of the sums; `None` without samples.
fn mean_of(parts: impl Iterator<Item = (f64, u64, f64)>) -> Option<f64> {
    let add =
        |(sum, count), (value, of, weight)| (sum + weight * value, count + weight * of as f64);
    let (sum, count) = parts.fold((0.0, 0.0), add);
    (count > 0.0).then(|| sum / count)
}

/// Weights of the intervals, the newest first: equal for F intervals, then declining to 1 for the
/// M-th (RFC 8382, section 3.5).
fn weights() -> impl Iterator<Item = f64> {
    (1..=M).map(|age| (M - age.max(F) + 1) as f64)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Ends an interval with these delays, in milliseconds.
    fn interval(stats: &mut DelayStats, delays_ms: &[f64]) {
        delays_ms.iter().for_each(|ms| stats.note(Duration::from_secs_f64(ms / 1e3)));
        stats.end_interval();
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn skewness_counts_delays_below_the_mean_and_above_it() {
        let mut s = DelayStats::default();
        interval(&mut s, &[10.0, 20.0]);
        assert_eq!(s.bottleneck(), None, "no mean to compare with");
        interval(&mut s, &[10.0, 10.0, 10.0, 30.0]);
        assert!(near(s.summary.skew, 0.5), "three below 15 ms, one above: {s:?}");
        assert_eq!(s.bottleneck(), None, "most delays are below the mean: an empty queue");
        interval(&mut s, &[10.0, 20.0, 20.0, 20.0, 15.0]);
        assert!(near(s.summary.skew, 0.0), "two more above; one of 9 like the mean: {s:?}");
        assert_eq!(s.bottleneck(), Some(s.summary));
    }

    #[test]
    fn what_was_measured_last_has_most_weight() {
        let mut s = DelayStats::default();
        interval(&mut s, &[200.0]);
        // Each above all before, then each below: first -1, then +1 per interval.
        let rising = (0..10).map(|i| f64::from(201 + i));
        let falling = (0..20).map(|i| f64::from(100 - i));
        rising.chain(falling).for_each(|ms| interval(&mut s, &[ms]));
        // 20 of weight 11 less those of weights 10 to 1, over the sum of all weights.
        assert!(near(s.summary.skew, (220.0 - 55.0) / 275.0), "{}", s.summary.skew);
        interval(&mut s, &[]);
        // The oldest has weight 0 now, those from the twentieth on one less each.
        assert!(near(s.summary.skew, (19.0 * 11.0 + 10.0 - 45.0) / 264.0), "{}", s.summary.skew);
    }

    #[test]
    fn variability_is_that_from_the_interval_before_while_there_is_a_bottleneck() {
        let mut s = DelayStats::default();
        interval(&mut s, &[10.0, 20.0]);
        interval(&mut s, &[10.0, 20.0]);
        assert!(s.has_bottleneck && s.summary.var == 0.0, "none yet when it began: {s:?}");
        interval(&mut s, &[15.0, 19.0]);
        assert!(near(s.summary.var, 2e-3), "0 and 4 ms from 15 ms: {s:?}");
        interval(&mut s, &[17.0, 7.0, 14.0]);
        assert!(near(s.summary.var, 17e-3 / 5.0), "and 0, 10 and 3 from 17 ms: {s:?}");
    }

    /// Intervals of one delay each: `half` low ones, `half` high ones, and so on.
    fn oscillating(half: usize) -> DelayStats {
        let mut s = DelayStats::default();
        for i in 0..2 * N {
            interval(&mut s, &[if (i / half).is_multiple_of(2) { 10.0 } else { 20.0 }]);
        }
        s
    }

    #[test]
    fn oscillation_counts_crossings_that_go_far_enough() {
        let s = oscillating(5);
        assert!(near(s.summary.freq, 10.0 / 50.0), "one in five intervals: {s:?}");
        assert!(near(oscillating(10).summary.freq, 5.0 / 50.0));
        // A step in each interval: a mean deviation of 10 ms, of which 0.7 are more than the 5 ms
        // to the mean.
        assert_eq!(oscillating(1).summary.freq, 0.0);
    }

    #[test]
    fn losses_count_over_n_intervals_and_show_a_bottleneck_by_themselves() {
        let mut s = DelayStats::default();
        interval(&mut s, &[10.0, 20.0]);
        let skewed = [10.0, 10.0, 10.0, 30.0];
        s.note_fates(9, 1);
        interval(&mut s, &skewed);
        assert!(near(s.summary.loss, 0.1) && !s.has_bottleneck, "not above p_l: {s:?}");
        s.note_fates(7, 3);
        interval(&mut s, &skewed);
        assert!(near(s.summary.loss, 0.2) && s.has_bottleneck, "{s:?}");
        (0..N - 1).for_each(|_| interval(&mut s, &skewed));
        assert!(near(s.summary.loss, 0.3), "the latest N: {s:?}");
        interval(&mut s, &skewed);
        assert!(s.summary.loss == 0.0 && !s.has_bottleneck, "{s:?}");
    }

    #[test]
    fn a_bottleneck_stays_one_up_to_a_higher_skewness() {
        // A mean of 15 ms, and 0.2 for the skewness: between c_s and c_h.
        let between = [10.0, 10.0, 10.0, 22.5, 22.5];
        let mut never = DelayStats::default();
        interval(&mut never, &[15.0]);
        let mut was = DelayStats::default();
        interval(&mut was, &[15.0]);
        interval(&mut was, &[15.0]);
        assert!(was.has_bottleneck && !never.has_bottleneck);
        for _ in 0..2 * M {
            interval(&mut never, &between);
            interval(&mut was, &between);
        }
        assert!(near(never.summary.skew, 0.2) && near(was.summary.skew, 0.2));
        assert!(was.has_bottleneck && !never.has_bottleneck);
    }

    #[test]
    fn after_a_silence_it_begins_anew() {
        let mut s = oscillating(5);
        (0..M).for_each(|_| s.end_interval());
        assert_eq!((s.means, s.bottleneck()), (None, None));
        (0..N - M).for_each(|_| s.end_interval());
        assert_eq!(s.summary, Summary::default());
        interval(&mut s, &[10.0, 20.0]);
        assert_eq!(s.means, Some((0.015, 0.015)));
    }

    proptest! {
        #[test]
        fn statistics_are_finite_whatever_is_measured(
            intervals in prop::collection::vec(
                (prop::collection::vec(any::<u64>(), 0..5), 0..usize::MAX / 256, 0..usize::MAX / 256),
                0..120,
            ),
        ) {
            let mut s = DelayStats::default();
            for (delays, arrived, lost) in intervals {
                delays.into_iter().for_each(|ns| s.note(Duration::from_nanos(ns)));
                s.note_fates(arrived, lost);
                s.end_interval();
                let Summary { skew, var, freq, loss } = s.summary;
                prop_assert!((-1.0..=1.0).contains(&skew) && (0.0..=1.0).contains(&freq));
                prop_assert!((0.0..=1.0).contains(&loss) && var >= 0.0 && var.is_finite());
                prop_assert!(s.ended.len() <= N);
            }
        }
    }
}
