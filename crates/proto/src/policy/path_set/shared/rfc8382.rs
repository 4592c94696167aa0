//! Shared bottlenecks by summary statistics of delays and losses (RFC 8382).

use std::collections::VecDeque;
use std::time::Duration;

use smallvec::SmallVec;

use super::delay_stats::{DelayStats, N, P_L, Summary};
use super::{SharedEvidence, SharedPolicy, SharedSign};
use crate::policy::PolicyCx;
use crate::time::Instant;
use crate::view::PathId;

/// T: the base interval (RFC 8382, section 2.2).
const T: Duration = Duration::from_millis(350);
/// p_f, p_mad, p_s, p_d: the most by which the statistics of paths with one bottleneck differ (same
/// section).
const P_F: f64 = 0.1;
const P_MAD: f64 = 0.1;
const P_S: f64 = 0.15;
const P_D: f64 = 0.1;
/// The share of the latest intervals in which two paths must be in one group for a verdict, and the
/// number of these intervals. The 90 % are an example of RFC 8382, section 3.3.2; the number is
/// ours.
const STABLE: f64 = 0.9;
const JUDGED: usize = 10;

/// Paths share a bottleneck if the delays on them have the same shape, as RFC 8382 measures it for
/// RTP media.
///
/// Every T each path gets four statistics of the data sent in the last M or N intervals. Paths with
/// signs of a bottleneck are sorted by one statistic after the other, and divided where neighbours
/// differ too much. No events need to coincide, so paths of any latency can be compared.
///
/// The RFC takes one-way delays. Here a delay is the RTT of the newest chunk that a SACK
/// acknowledges on a path. If all SACKs take one path (`ack_path = primary`), its backward delay is
/// part of all RTTs alike. While that varies little, differences between RTTs are those of the
/// forward delays. Losses are chunks that SACKs show missing.
#[derive(Debug, Default)]
pub struct Rfc8382 {
    /// By path; `None` for those that carry no data.
    paths: Vec<Option<DelayStats>>,
    /// When the current interval ends.
    ends: Instant,
    pairs: Vec<Pair>,
}

/// Two paths that were compared.
#[derive(Debug)]
struct Pair {
    paths: (PathId, PathId),
    /// For each of the latest intervals, true if both paths were in one group; the latest is last.
    together: VecDeque<bool>,
}

impl Rfc8382 {
    /// A detector while no path carries data.
    pub fn new() -> Rfc8382 {
        Rfc8382::default()
    }

    fn of(&mut self, path: PathId) -> Option<&mut DelayStats> {
        self.paths.get_mut(path.index())?.as_mut()
    }

    /// Paths that were measured for long enough to be compared.
    fn ready(&self) -> impl Iterator<Item = (PathId, &DelayStats)> + Clone {
        let used = self.paths.iter().enumerate();
        let used = used.filter_map(|(index, stats)| Some((PathId(index as u8), stats.as_ref()?)));
        used.filter(|(_, stats)| stats.is_ready())
    }

    fn judge(&mut self, paths: (PathId, PathId), is_together: bool) -> SharedEvidence {
        let at = self.pairs.iter().position(|pair| pair.paths == paths).unwrap_or_else(|| {
            self.pairs.push(Pair { paths, together: VecDeque::new() });
            self.pairs.len() - 1
        });
        let together = &mut self.pairs[at].together;
        if together.len() == JUDGED {
            together.pop_front();
        }
        together.push_back(is_together);
        let judged = together.len() as u32;
        let matched = together.iter().filter(|yes| **yes).count() as u32;
        let mut evidence = SharedEvidence {
            paths,
            sign: SharedSign::DelayStatistics,
            events: (judged, judged),
            matched,
            lag_s: 0.0,
            threshold: STABLE,
            needed: Some(JUDGED as u32),
            chance: 1.0,
            is_shared: false,
        };
        evidence.is_shared = together.len() == JUDGED && evidence.ratio() >= STABLE;
        evidence
    }
}

type Member = (PathId, Summary);

/// Divides paths with bottlenecks into groups (RFC 8382, section 3.3.1, steps 2 to 5).
fn groups(members: Vec<Member>) -> Vec<Vec<Member>> {
    let by_freq = divide(vec![members], |s| s.freq, |high, low| high - low < P_F);
    let by_var = divide(by_freq, |s| s.var, |high, low| high - low < P_MAD * high);
    let by_skew = divide(by_var, |s| s.skew, |high, low| high - low < P_S);
    divide(by_skew, |s| s.loss, |high, low| high <= P_L || high - low < P_D * high)
}

/// Sorts each group by a statistic, from high to low, and divides it where neighbours are not
/// alike.
fn divide(
    groups: Vec<Vec<Member>>,
    of: impl Fn(&Summary) -> f64,
    are_alike: impl Fn(f64, f64) -> bool,
) -> Vec<Vec<Member>> {
    let mut divided: Vec<Vec<Member>> = Vec::new();
    for mut group in groups {
        group.sort_by(|a, b| of(&b.1).total_cmp(&of(&a.1)));
        let parts = group.chunk_by(|high, low| are_alike(of(&high.1), of(&low.1)));
        divided.extend(parts.map(<[Member]>::to_vec));
    }
    divided
}

impl SharedPolicy for Rfc8382 {
    fn begin(&mut self, now: Instant, path: PathId) {
        self.end(path);
        if self.paths.iter().all(Option::is_none) {
            self.ends = now + T;
        }
        if self.paths.len() <= path.index() {
            self.paths.resize_with(path.index() + 1, || None);
        }
        self.paths[path.index()] = Some(DelayStats::default());
    }

    fn end(&mut self, path: PathId) {
        if let Some(stats) = self.paths.get_mut(path.index()) {
            *stats = None;
        }
        self.pairs.retain(|pair| pair.paths.0 != path && pair.paths.1 != path);
    }

    fn on_fast_retransmit(&mut self, _cx: &PolicyCx<'_>, _path: PathId) -> Vec<SharedEvidence> {
        Vec::new()
    }

    fn watches_delays(&self) -> bool {
        true
    }

    fn on_fates(&mut self, path: PathId, arrived: usize, lost: usize) {
        if let Some(stats) = self.of(path) {
            stats.note_fates(arrived, lost);
        }
    }

    fn on_delay(&mut self, now: Instant, path: PathId, sent_at: Instant) -> bool {
        let has_ended = now >= self.ends;
        if has_ended {
            // N intervals replace all earlier ones, so never end more at once.
            let ended = (now - self.ends).as_nanos() / T.as_nanos() + 1;
            let ended = ended.min(N as u128) as u32;
            for stats in self.paths.iter_mut().flatten() {
                (0..ended).for_each(|_| stats.end_interval());
            }
            self.ends += T * ended;
            if self.ends <= now {
                self.ends = now + T;
            }
        }
        if let Some(stats) = self.of(path) {
            stats.note(now - sent_at);
        }
        has_ended
    }

    fn review(&mut self, _cx: &mut PolicyCx<'_>) -> Vec<SharedEvidence> {
        let members = self.ready().filter_map(|(id, stats)| Some((id, stats.bottleneck()?)));
        let groups = groups(members.collect());
        let group_of =
            |id| groups.iter().position(|group| group.iter().any(|member| member.0 == id));
        let ready: SmallVec<[_; 8]> = self.ready().map(|(id, _)| (id, group_of(id))).collect();
        let mut found = Vec::new();
        for (i, (a, group)) in ready.iter().enumerate() {
            for (b, other) in &ready[i + 1..] {
                found.push(self.judge((*a, *b), group.is_some() && group == other));
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::cx;

    fn member(id: u8, freq: f64, var: f64, skew: f64, loss: f64) -> Member {
        (PathId(id), Summary { skew, var, freq, loss })
    }

    /// The groups, as ids.
    fn ids(members: &[Member]) -> Vec<Vec<u8>> {
        let groups = groups(members.to_vec()).into_iter();
        let mut ids: Vec<Vec<u8>> = groups.map(|g| g.iter().map(|m| m.0.0).collect()).collect();
        ids.iter_mut().for_each(|group| group.sort_unstable());
        ids.sort();
        ids
    }

    #[test]
    fn each_statistic_divides() {
        let like = member(0, 0.3, 0.010, 0.0, 0.02);
        let other = |freq, var, skew, loss| ids(&[like, member(1, freq, var, skew, loss)]);
        let (one, two) = (vec![vec![0, 1]], vec![vec![0], vec![1]]);
        assert_eq!(other(0.38, 0.0105, -0.14, 0.05), one);
        assert_eq!(other(0.42, 0.0105, -0.14, 0.05), two, "oscillation: p_f");
        assert_eq!(other(0.38, 0.0112, -0.14, 0.05), two, "variability: p_mad of the higher");
        assert_eq!(other(0.38, 0.0105, -0.16, 0.05), two, "skewness: p_s");
        assert_eq!(other(0.38, 0.0105, -0.14, 0.11), two, "losses, if one has many: p_d");
        assert_eq!(other(0.3, 0.0, 0.0, 0.02), two);
    }

    #[test]
    fn neighbours_make_a_group_in_any_order() {
        let chain = [0.30, 0.10, 0.22, 0.60, 0.15];
        let members: Vec<_> =
            (0..5).map(|id| member(id, chain[usize::from(id)], 0.01, 0.0, 0.0)).collect();
        assert_eq!(ids(&members), [vec![0, 1, 2, 4], vec![3]]);
    }

    #[test]
    fn paths_that_do_not_vary_are_in_no_group() {
        let still = |id| member(id, 0.0, 0.0, 0.0, 0.0);
        assert_eq!(ids(&[still(0), still(1)]), [[0], [1]]);
    }

    /// Delays of one path every 10 ms, in milliseconds by the time in seconds.
    type Delay = fn(f64) -> f64;

    /// A queue that fills for two seconds and is empty for a moment, below other latencies.
    fn queue(latency: f64, period: f64, at: f64) -> f64 {
        latency + 40.0 * (at / period).fract()
    }

    /// The evidence after `seconds`, and when the first came.
    fn after(seconds: u64, delays: &[Delay]) -> (Vec<SharedEvidence>, Option<f64>) {
        let mut policy = Rfc8382::new();
        assert!(policy.watches_delays());
        let mut rng = crate::Rng::from_number(1);
        (0..delays.len()).for_each(|id| policy.begin(Instant::ZERO, PathId(id as u8)));
        let (mut last, mut first) = (Vec::new(), None);
        for ms in (200..seconds * 1000).step_by(10) {
            let now = Instant::from_millis(ms);
            for (id, delay) in delays.iter().enumerate() {
                let took = Duration::from_secs_f64(delay(now.as_secs_f64()) / 1e3);
                policy.on_fates(PathId(id as u8), 1, 0);
                if policy.on_delay(now, PathId(id as u8), now.saturating_sub(took)) {
                    let mut cx = cx(&[], 0, &mut rng);
                    cx.now = now;
                    last = policy.review(&mut cx);
                    first = first.or((!last.is_empty()).then_some(now.as_secs_f64()));
                }
            }
        }
        (last, first)
    }

    #[test]
    fn paths_through_one_queue_are_found_after_seventy_intervals() {
        let delays: [Delay; 3] = [
            |at| queue(30.0, 2.0, at),
            |at| queue(90.0, 2.0, at - 0.06),
            |at| queue(30.0, 0.9, at),
        ];
        let (found, first) = after(26, &delays);
        let first = first.expect("compared");
        assert!((21.0..21.1).contains(&first), "after 2 M intervals of 350 ms: {first}");
        let shared: Vec<_> = found.iter().map(|e| (e.paths, e.is_shared)).collect();
        let pair = |a, b| (PathId(a), PathId(b));
        assert_eq!(shared, [(pair(0, 1), true), (pair(0, 2), false), (pair(1, 2), false)]);
        assert_eq!(
            found[0].to_string(),
            "path 1 and path 2 share a bottleneck: in 10 of the latest 10 intervals the delays of both had the same \
             statistics (100 %; at least 90 % of 10 were needed)"
        );
        assert_eq!((found[0].sign.name(), found[0].lag_s), ("delay_statistics", 0.0));
        let (early, _) = after(24, &delays);
        assert!(early[0].matched == early[0].events.0 && !early[0].is_shared, "too few: {early:?}");
    }

    #[test]
    fn a_path_without_a_bottleneck_shares_none() {
        // Mostly empty: far more delays below the mean than above it.
        let idle: Delay = |at| if at.fract() < 0.2 { 50.0 } else { 30.0 };
        let (found, _) = after(26, &[idle, idle]);
        assert_eq!((found.len(), found[0].matched), (1, 0), "{found:?}");
    }

    #[test]
    fn a_verdict_takes_nine_of_the_latest_ten_intervals() {
        let mut policy = Rfc8382::new();
        let paths = (PathId(0), PathId(1));
        let mut judge = |together: &[bool]| {
            let last = together.iter().map(|yes| policy.judge(paths, *yes)).last().expect("some");
            (last.matched, last.is_shared)
        };
        assert_eq!(judge(&[true; 9]), (9, false), "too few");
        assert_eq!(judge(&[false]), (9, true));
        assert_eq!(judge(&[false]), (8, false));
        assert_eq!(judge(&[true; 9]), (9, true), "the first of the two is forgotten");
    }

    #[test]
    fn a_path_that_ends_is_forgotten() {
        let mut policy = Rfc8382::new();
        let [a, b, c] = [0, 1, 2].map(PathId);
        policy.begin(Instant::ZERO, b);
        policy.judge((a, b), true);
        policy.judge((b, c), true);
        policy.judge((a, c), true);
        policy.end(b);
        assert_eq!(policy.pairs.len(), 1);
        assert!(!policy.on_delay(Instant::from_millis(10), b, Instant::ZERO), "of no path");
    }

    #[test]
    fn a_long_silence_costs_little() {
        let mut policy = Rfc8382::new();
        policy.begin(Instant::ZERO, PathId(0));
        let late = Instant::ZERO + Duration::from_secs(1 << 33);
        assert!(policy.on_delay(late, PathId(0), Instant::ZERO));
        assert!(!policy.on_delay(late + T / 2, PathId(0), late));
        assert!(policy.on_delay(late + T, PathId(0), late), "intervals go on");
    }
}
