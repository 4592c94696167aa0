//! Shared bottlenecks by trial: one path sends less for a moment, and the delays of all are watched.

use std::collections::VecDeque;
use std::time::Duration;

use smallvec::SmallVec;

use super::delays::Delays;
use super::sequential::{NEEDED_MAX, START_RTTS, all_matched, log_choose};
use super::{SharedEvidence, SharedPolicy, SharedSign};
use crate::config::Config;
use crate::path::{PathId, PathState, PathView};
use crate::policy::PolicyCx;
use crate::time::Instant;

/// How long a path uses half of its window. What was sent with that is acknowledged after one RTT more.
const TRIAL_RTTS: f64 = 2.25;
const JUDGED_RTTS: f64 = 3.0;
/// From the moment without a trial to that with one, from which the queues are as usual again after so long.
const QUIET_RTTS: f64 = 3.0;
const SETTLED_RTTS: f64 = 3.75;
/// The pause between rounds is at least this part of the time since a path last began to carry data: trials become
/// rare. The second value is for when something is undecided.
const PAUSE_SHARES: (f64, f64) = (0.1, 0.02);
/// Moments that are remembered: of so many rounds half.
const MOMENTS_MAX: usize = 32;
/// A smaller change of the delay says nothing, in seconds.
const CHANGE_MIN_S: f64 = 1e-3;
/// Moments with a trial, or with a loss on one of the paths, that a verdict takes at least.
const TRIED_MIN: u32 = 2;
/// A smaller window has no half.
const CWND_MIN: usize = 5600;

/// Paths share a bottleneck if their delays change together, also if only one of them sends less.
#[derive(Debug)]
pub struct Trial {
    delta: f64,
    zeta: f64,
    /// By path; `None` for those that carry no data.
    paths: Vec<Option<Watched>>,
    moments: VecDeque<Moment>,
    /// The longest smoothed RTT of the paths.
    rtt: Duration,
    /// When a review is due.
    due: Instant,
    /// When a path last began to carry data.
    begun: Instant,
    next_round: Instant,
    round: Option<Round>,
}

/// A path that carries data.
#[derive(Debug)]
struct Watched {
    begun: Instant,
    delays: Delays,
    /// At the last review.
    cwnd: usize,
    trials: u32,
}

/// One moment without a trial, and one with.
#[derive(Copy, Clone, Debug)]
struct Round {
    begun: Instant,
    rtt: Duration,
    path: PathId,
    is_holding: bool,
}

impl Round {
    fn quiet(&self) -> Instant {
        self.begun + self.rtt.mul_f64(super::delays::BEFORE.0)
    }

    fn trial(&self) -> Instant {
        self.quiet() + self.rtt.mul_f64(QUIET_RTTS)
    }
}

/// How delays changed around a moment.
#[derive(Debug)]
struct Moment {
    /// By path: by how many seconds the delay fell, and whether the path sent less of itself.
    changes: SmallVec<[Option<Change>; 8]>,
}

#[derive(Copy, Clone, Debug)]
struct Change {
    fell_s: f64,
    acted: bool,
}

impl Trial {
    /// With the parameters of a configuration.
    pub fn new(config: &Config) -> Trial {
        Trial {
            delta: config.shared_delta,
            zeta: config.shared_zeta,
            paths: Vec::new(),
            moments: VecDeque::new(),
            rtt: Duration::ZERO,
            due: Instant::ZERO,
            begun: Instant::ZERO,
            next_round: Instant::ZERO,
            round: None,
        }
    }

    fn watched(&self, path: PathId) -> Option<&Watched> {
        self.paths.get(path.index())?.as_ref()
    }

    fn ids(&self) -> impl Iterator<Item = PathId> + Clone {
        let used = self.paths.iter().enumerate().filter(|(_, w)| w.is_some());
        used.map(|(index, _)| PathId(index as u8))
    }

    fn note_cuts(&mut self, cx: &PolicyCx<'_>) {
        for view in cx.paths {
            let Some(Some(w)) = self.paths.get_mut(view.id.index()) else { continue };
            if view.cwnd < w.cwnd {
                w.delays.note_cut(cx.now);
            }
            w.cwnd = view.cwnd;
        }
    }

    fn may_be_tried(&self, now: Instant, p: &PathView) -> bool {
        let Some(w) = self.watched(p.id) else { return false };
        let srtt = p.srtt.unwrap_or_default();
        p.usable
            && p.state == PathState::Active
            && !srtt.is_zero()
            && now - w.begun >= srtt * START_RTTS
            && p.cwnd >= CWND_MIN
    }

    fn begin_round(&mut self, cx: &mut PolicyCx<'_>) {
        let now = cx.now;
        let this = &*self;
        let tried = |p: &PathView| this.watched(p.id).map_or(0, |w| w.trials);
        let chosen = cx.argmax(|p| this.may_be_tried(now, p), |p| -i64::from(tried(p)));
        let Some(path) = chosen else { return };
        if let Some(Some(w)) = self.paths.get_mut(path.index()) {
            w.trials += 1;
        }
        self.round = Some(Round { path, begun: now, rtt: self.rtt, is_holding: false });
    }

    fn end_round(&mut self, round: Round) -> Vec<SharedEvidence> {
        for (at, tried) in [(round.quiet(), None), (round.trial(), Some(round.path))] {
            let change = |(index, w): (usize, &Option<Watched>)| {
                let w = w.as_ref()?;
                let (fell_s, was_cut) = w.delays.change(at, round.rtt)?;
                Some(Change { fell_s, acted: was_cut || tried == Some(PathId(index as u8)) })
            };
            let changes: SmallVec<_> = self.paths.iter().enumerate().map(change).collect();
            if std::env::var("TRIAL").is_ok() {
                let all: Vec<_> = changes
                    .iter()
                    .flatten()
                    .map(|c: &Change| ((c.fell_s * 1e4).round() / 10.0, c.acted))
                    .collect();
                eprintln!(
                    "{:.3} rtt {:?} {tried:?} {all:?}",
                    at.as_nanos() as f64 / 1e9,
                    round.rtt
                );
            }
            if self.moments.len() == MOMENTS_MAX {
                self.moments.pop_front();
            }
            self.moments.push_back(Moment { changes });
        }
        let ids = self.ids();
        let pairs =
            ids.clone().flat_map(|a| ids.clone().filter(move |b| a < *b).map(move |b| (a, b)));
        pairs.filter_map(|pair| self.judge(pair)).collect()
    }

    fn judge(&self, paths: (PathId, PathId)) -> Option<SharedEvidence> {
        let of = |m: &Moment, id: PathId| m.changes.get(id.index()).copied().flatten();
        let both = self.moments.iter().filter_map(|m| Some((of(m, paths.0)?, of(m, paths.1)?)));
        let both: Vec<_> = both.collect();
        let mut sorted: Vec<f64> =
            both.iter().flat_map(|(a, b)| [a, b]).filter(|c| !c.acted).map(|c| c.fell_s).collect();
        sorted.sort_by(f64::total_cmp);
        let usual = sorted.get(sorted.len() / 2).copied().unwrap_or_default();
        let size = |a: f64, b: f64| (a - usual).abs().max((b - usual).abs());
        let agree = |a: f64, b: f64| (a - b).abs() <= size(a, b) / 2.0;
        let (mut n, mut k, mut tried, mut agreed, mut logs, mut logs_all) =
            (0u32, 0u32, 0, 0, 0.0, 0.0);
        for (i, (a, b)) in both.iter().enumerate() {
            if size(a.fell_s, b.fell_s) < CHANGE_MIN_S {
                continue;
            }
            let others = both.iter().enumerate().filter(|(j, _)| *j != i);
            let as_near = others.filter(|(_, (_, other))| agree(a.fell_s, other.fell_s)).count();
            let p = (as_near as f64 + 1.0) / (both.len() as f64 + 1.0);
            if p > 0.5 {
                continue;
            }
            let yes = agree(a.fell_s, b.fell_s);
            n += 1;
            k += u32::from(yes);
            if a.acted != b.acted {
                tried += 1;
                agreed += u32::from(yes);
            }
            logs += if yes { p.ln() } else { (1.0 - p).ln() };
            logs_all += p.ln();
        }
        if n == 0 {
            return None;
        }
        let p = (logs_all / f64::from(n)).exp();
        let mut evidence = SharedEvidence {
            paths,
            sign: SharedSign::Delays,
            events: (n, n),
            matched: k,
            lag_s: 0.0,
            threshold: self.delta,
            needed: (1..=NEEDED_MAX).find(|&n| all_matched(n, p).exp() <= self.zeta),
            chance: 1.0,
            is_shared: false,
        };
        let ratio = evidence.ratio();
        if ratio > p {
            evidence.chance = (f64::from(n + 1).ln() + log_choose(n, k) + logs).exp().min(1.0);
        }
        let follow = tried >= TRIED_MIN && f64::from(agreed) > self.delta * f64::from(tried);
        evidence.is_shared = follow && ratio > self.delta && evidence.chance <= self.zeta;
        if std::env::var("TRIAL").is_ok() {
            eprintln!(
                "    {:?} {k}/{n} tried {agreed}/{tried} chance {:.4} p {p:.3}",
                paths, evidence.chance
            );
        }
        Some(evidence)
    }

    fn is_settled(&self) -> bool {
        false
    }
}

impl SharedPolicy for Trial {
    fn begin(&mut self, now: Instant, path: PathId) {
        self.end(path);
        if self.paths.len() <= path.index() {
            self.paths.resize_with(path.index() + 1, || None);
        }
        self.begun = now;
        self.paths[path.index()] =
            Some(Watched { begun: now, delays: Delays::default(), cwnd: 0, trials: 0 });
    }

    fn end(&mut self, path: PathId) {
        if let Some(watched) = self.paths.get_mut(path.index()) {
            *watched = None;
        }
        for moment in &mut self.moments {
            if let Some(change) = moment.changes.get_mut(path.index()) {
                *change = None;
            }
        }
        self.round = self.round.filter(|round| round.path != path);
    }

    fn on_fast_retransmit(&mut self, _cx: &PolicyCx<'_>, _path: PathId) -> Vec<SharedEvidence> {
        Vec::new()
    }

    fn watches_delays(&self) -> bool {
        true
    }

    fn on_delay(&mut self, now: Instant, path: PathId, sent_at: Instant) -> bool {
        let rtt = self.rtt;
        if let Some(Some(w)) = self.paths.get_mut(path.index()) {
            w.delays.note(sent_at, now - sent_at, rtt);
        }
        now >= self.due
    }

    fn review(&mut self, cx: &mut PolicyCx<'_>) -> Vec<SharedEvidence> {
        self.note_cuts(cx);
        let now = cx.now;
        let Some(round) = &mut self.round else {
            let used = cx.paths.iter().filter(|p| self.watched(p.id).is_some());
            self.rtt = used.filter_map(|p| p.srtt).max().unwrap_or_default();
            self.due = now + self.rtt / 4;
            if now >= self.next_round && self.paths.iter().flatten().count() > 1 {
                self.begin_round(cx);
            }
            return Vec::new();
        };
        self.due = now + round.rtt / 4;
        let ends = round.trial() + round.rtt.mul_f64(TRIAL_RTTS);
        round.is_holding = now >= round.trial() && now < ends;
        if now < round.trial() + round.rtt.mul_f64(JUDGED_RTTS) {
            return Vec::new();
        }
        let round = *round;
        self.round = None;
        let share = if self.is_settled() { PAUSE_SHARES.0 } else { PAUSE_SHARES.1 };
        let least = round.rtt.mul_f64(SETTLED_RTTS - JUDGED_RTTS);
        let pause = least.max((now - self.begun).mul_f64(share));
        self.next_round = now + pause.mul_f64(1.0 + cx.rng.unit() / 2.0);
        self.end_round(round)
    }

    fn tried(&self) -> Option<PathId> {
        self.round.filter(|round| round.is_holding).map(|round| round.path)
    }
}
