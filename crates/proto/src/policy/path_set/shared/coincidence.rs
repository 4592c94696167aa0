//! Fast retransmits of two paths that come together (mTCP paper, section 3.2.1).

use std::collections::VecDeque;
use std::time::Duration;

use super::{SharedEvidence, SharedSign};
use crate::policy::PolicyCx;
use crate::time::Instant;
use crate::view::PathId;

/// Most fast retransmits remembered per path; only the latest count. The paper has no bound; its
/// longest run has about 300.
const EVENTS_MAX: usize = 512;

/// Most steps of the search for the lag, to each side. A longer RTT makes the steps longer.
const STEPS_MAX: u32 = 24;

/// Times at which paths entered fast retransmit, and the number that match on two paths.
///
/// - The matching is one to one and of maximum size.
/// - For paths of different latency, one sequence is shifted by up to one RTT in steps of
///   `shared_lag_step`. The shift with the most matches counts.
/// - A pair of paths costs at most 2 · 512 · (2 · 24 + 1) comparisons.
#[derive(Debug)]
pub(super) struct FastRetransmits {
    /// Two events match if they are less than this apart.
    interval: Duration,
    lag_step: Duration,
    /// By path; `None` for those that carry no data.
    seen: Vec<Option<LossTimes>>,
}

/// The fast retransmits of a path.
#[derive(Debug)]
struct LossTimes {
    /// When the path began to carry data.
    begun: Instant,
    /// The times are complete from here on.
    since: Instant,
    times: VecDeque<Instant>,
}

impl LossTimes {
    /// The times from `since` on, in nanoseconds.
    fn from(&self, since: Instant) -> Vec<i128> {
        let times = self.times.iter().filter(|&&at| at >= since);
        times.map(|at| i128::from(at.as_nanos())).collect()
    }
}

/// Comparison of the fast retransmits of two paths.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Coincidence {
    /// The two paths, the lower id first.
    pub(super) paths: (PathId, PathId),
    /// Number of fast retransmits on each of the two paths, since both carry data.
    pub events: (u32, u32),
    /// Number of matching pairs; each event is in one pair at most.
    pub matched: u32,
    /// The lag of the second path's events in seconds, at which that many match.
    pub lag_s: f64,
    /// The time over which events were counted, in seconds; at least one interval.
    pub elapsed_s: f64,
    /// The longer of the two smoothed RTTs, in seconds.
    pub rtt_s: f64,
}

impl Coincidence {
    /// The events of the path that has fewer of them.
    pub(super) fn fewer(&self) -> u32 {
        self.events.0.min(self.events.1)
    }

    /// Events per second on the path that has more of them.
    pub(super) fn rate(&self) -> f64 {
        f64::from(self.events.0.max(self.events.1)) / self.elapsed_s
    }

    /// The evidence before a rule has judged it. `threshold` is the rule's ratio, `needed` its
    /// number of events.
    pub(super) fn evidence(&self, threshold: f64, needed: Option<u32>) -> SharedEvidence {
        SharedEvidence {
            paths: self.paths,
            sign: SharedSign::FastRetransmits,
            events: self.events,
            matched: self.matched,
            lag_s: self.lag_s,
            threshold,
            needed,
            chance: 1.0,
            is_shared: false,
        }
    }
}

impl FastRetransmits {
    /// No events yet.
    pub(super) fn new(interval: Duration, lag_step: Duration) -> FastRetransmits {
        FastRetransmits { interval, lag_step, seen: Vec::new() }
    }

    /// A path begins to carry data. Its earlier events no longer count.
    pub(super) fn begin(&mut self, now: Instant, path: PathId) {
        if self.seen.len() <= path.index() {
            self.seen.resize_with(path.index() + 1, || None);
        }
        self.seen[path.index()] =
            Some(LossTimes { begun: now, since: now, times: VecDeque::new() });
    }

    /// A path carries no data any more.
    pub(super) fn end(&mut self, path: PathId) {
        if let Some(seen) = self.seen.get_mut(path.index()) {
            *seen = None;
        }
    }

    /// Since when a path carries data, and its latest event.
    pub(super) fn latest(&self, path: PathId) -> Option<(Instant, Option<Instant>)> {
        let seen = self.seen.get(path.index())?.as_ref()?;
        Some((seen.begun, seen.times.back().copied()))
    }

    /// Lets the events of a path count only from now on.
    pub(super) fn count_from(&mut self, now: Instant, path: PathId) {
        if let Some(Some(seen)) = self.seen.get_mut(path.index()) {
            seen.since = now;
            seen.times.clear();
        }
    }

    /// A path enters fast retransmit. False if it carries no data.
    pub(super) fn note(&mut self, now: Instant, path: PathId) -> bool {
        let Some(Some(seen)) = self.seen.get_mut(path.index()) else { return false };
        if seen.times.len() == EVENTS_MAX
            && let Some(oldest) = seen.times.pop_front()
        {
            seen.since = oldest + Duration::from_nanos(1);
        }
        seen.times.push_back(now);
        true
    }

    /// Compares a path with each other path, as far as both have events.
    pub(super) fn pairs(&self, cx: &PolicyCx<'_>, path: PathId) -> Vec<Coincidence> {
        let srtt = |id| cx.path(id).and_then(|p| p.srtt).unwrap_or_default();
        let others = cx.paths.iter().map(|p| p.id).filter(|&id| id != path);
        let pairs = others.map(|id| (id.min(path), id.max(path)));
        pairs.filter_map(|(a, b)| self.compare(cx.now, (a, b), srtt(a).max(srtt(b)))).collect()
    }

    fn compare(&self, now: Instant, pair: (PathId, PathId), rtt: Duration) -> Option<Coincidence> {
        let seen = |id: PathId| self.seen.get(id.index())?.as_ref();
        let (a, b) = (seen(pair.0)?, seen(pair.1)?);
        let since = a.since.max(b.since);
        let (s, t) = (a.from(since), b.from(since));
        if s.is_empty() || t.is_empty() {
            return None;
        }
        let best = self.best_match(&s, &t, rtt);
        let count = |times: &[i128]| u32::try_from(times.len()).unwrap_or(u32::MAX);
        Some(Coincidence {
            paths: pair,
            events: (count(&s), count(&t)),
            matched: best.matched,
            lag_s: best.lag as f64 / 1e9,
            elapsed_s: (now - since).max(self.interval).as_secs_f64(),
            rtt_s: rtt.as_secs_f64(),
        })
    }

    /// The lag of `t` behind `s`, at most one RTT, with the most matches; of equal ones, the lag
    /// nearest to zero.
    fn best_match(&self, s: &[i128], t: &[i128], rtt: Duration) -> Best {
        let step = self.lag_step.max(rtt / STEPS_MAX).as_nanos() as i128;
        let (rtt, interval) = (rtt.as_nanos() as i128, self.interval.as_nanos() as i128);
        let (matched, mut steps) = matches(s, t, 0, interval);
        let (mut most, mut at, mut lag) = (matched, 0, step);
        while lag < rtt && most < s.len().min(t.len()) {
            for lag in [lag, -lag] {
                let (matched, more) = matches(s, t, lag, interval);
                steps += more;
                if matched > most {
                    (most, at) = (matched, lag);
                }
            }
            lag += step;
        }
        Best { matched: most as u32, lag: at, steps }
    }
}

/// The best matching of two sequences.
struct Best {
    matched: u32,
    /// In nanoseconds.
    lag: i128,
    /// Comparisons that it took; the test of the bound reads it.
    #[cfg_attr(not(test), expect(dead_code))]
    steps: usize,
}

/// The largest number of disjoint pairs (s, t) with |s - (t - lag)| < interval, and the comparisons
/// that it took: at most as many as there are times. For times in order, the earliest that fit each
/// other can always be paired.
fn matches(s: &[i128], t: &[i128], lag: i128, interval: i128) -> (usize, usize) {
    let (mut i, mut j, mut found, mut steps) = (0, 0, 0, 0);
    while i < s.len() && j < t.len() {
        steps += 1;
        let apart = s[i] - (t[j] - lag);
        if apart.abs() < interval {
            (i, j, found) = (i + 1, j + 1, found + 1);
        } else if apart < 0 {
            i += 1;
        } else {
            j += 1;
        }
    }
    (found, steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_matched_once_and_as_many_as_can_be() {
        let found = |s: &[i128], t: &[i128], lag, interval| matches(s, t, lag, interval).0;
        // Greedy from the left: 100 with 250, 300 with 350; 900 has nobody within 200 ms.
        assert_eq!(found(&[100, 300, 900], &[250, 350], 0, 200), 2);
        assert_eq!(found(&[100, 101, 102], &[100], 0, 200), 1, "one to one");
        assert_eq!(found(&[0], &[200], 0, 200), 0, "less than the interval apart");
        assert_eq!(found(&[0, 1000], &[300, 1300], 300, 10), 2, "shifted by the lag");
    }

    #[test]
    fn the_work_for_a_pair_is_bounded_whatever_happens() {
        let ms = Duration::from_millis;
        let mut all = FastRetransmits::new(ms(1), ms(1));
        let paths = (PathId(0), PathId(1));
        for path in [paths.0, paths.1] {
            all.begin(Instant::ZERO, path);
        }
        // Nothing matches, so that every lag is tried to its end; far more events than are kept;
        // the finest step; an RTT of a minute.
        for n in 0..3000 {
            all.note(Instant::from_millis(n * 500_000), paths.0);
            all.note(Instant::from_millis(n * 500_000 + 250_000), paths.1);
        }
        let times =
            |path: PathId| all.seen[path.index()].as_ref().expect("in use").from(Instant::ZERO);
        let (s, t) = (times(paths.0), times(paths.1));
        assert_eq!((s.len(), t.len()), (EVENTS_MAX, EVENTS_MAX));
        let best = all.best_match(&s, &t, Duration::from_secs(60));
        assert_eq!(best.matched, 0);
        let bound = 2 * EVENTS_MAX * (2 * STEPS_MAX as usize + 1);
        assert!(best.steps <= bound, "{} comparisons, more than {bound}", best.steps);
        assert!(best.steps > bound / 2, "{} comparisons: not the worst case", best.steps);
        let since =
            all.compare(Instant::from_millis(1_500_000_000), paths, ms(100)).expect("events");
        assert!(since.elapsed_s < 257_000.0, "counted from the oldest event kept: {since:?}");
    }
}
