//! Shared bottlenecks by trial: now and then one path sends less for a moment, while the delays of
//! all paths are watched. The rule is ours; `docs/mtcp.md` describes it and its results.

use std::time::Duration;

use super::chance::needed;
use super::delay_events::{Alike, CHANGE_MIN_S, DelayEvents};
use super::delays::{BEGIN_RTTS, Delays, END_RTTS};
use super::sequential::START_RTTS;
use super::{MtcpMatch, SharedEvidence, SharedPolicy, SharedSign};
use crate::params::Params;
use crate::policy::PolicyCx;
use crate::time::Instant;
use crate::view::{PathId, PathState, PathView};

/// RTTs for which a path uses half of its window.
const TRIAL_RTTS: f64 = 2.25;
/// RTTs from the moment without a trial to the moment with one, and RTTs after which queues are as
/// usual again.
const QUIET_RTTS: f64 = 3.0;
const SETTLE_RTTS: f64 = 0.75;
/// Shortest pause between rounds, as a share of the time since a path last began to carry data, so
/// that trials become rare. The first value holds while any pair is undecided.
const PAUSE_SHARES: (f64, f64) = (0.02, 0.1);
/// Smallest window that is tried, in bytes: half of about four packets.
const CWND_MIN: usize = 5600;
/// Alike changes that chance explains with at most this probability make [`Trial::of_alike`] try
/// the two paths.
const DOUBT: f64 = 0.25;
/// RTTs after which losses decide if delays have shown nothing.
const PATIENCE_RTTS: u32 = 60;

/// Paths share a bottleneck if their delays change alike, even when only one of them sends less.
///
/// Packets that pass one queue at the same time wait for the same time, whatever fills it. So the
/// changes of two paths' delays are compared around moments of some RTTs each. The test asks how
/// probable this many alike changes are by chance. Paths with separate queues may look alike too,
/// if their loads are alike or if they share the backward path. So every second moment is an
/// experiment: one path uses half of its window for two RTTs. In a shared queue the other path's
/// delay falls too; in separate queues it does not. Losses that cut one window alone are
/// experiments, too.
///
/// Where queues are so short that delays show nothing, fast retransmits that come
/// [together](MtcpMatch) decide. They never decide against the delays.
#[derive(Debug)]
pub struct Trial {
    delta: f64,
    zeta: f64,
    /// Tries only paths whose delays already change alike, and ignores losses that come together.
    only_alike: bool,
    /// How far the delay of a path that sends less must fall, in seconds, before the effect on
    /// another path counts.
    fall_min_s: f64,
    /// By path; `None` for those that carry no data.
    paths: Vec<Option<Watched>>,
    moments: DelayEvents,
    losses: MtcpMatch,
    /// The longest smoothed RTT of the paths.
    rtt: Duration,
    /// When the next review is due.
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
    /// cwnd at the last review, in bytes.
    cwnd: usize,
    trials: u32,
}

/// A moment without a trial, followed by one with a trial if there is a path to try.
#[derive(Copy, Clone, Debug)]
struct Round {
    begun: Instant,
    rtt: Duration,
    path: Option<PathId>,
    /// The path uses half of its window now.
    is_trial: bool,
}

impl Round {
    fn quiet_moment(&self) -> Instant {
        self.begun + self.rtt.mul_f64(BEGIN_RTTS)
    }

    fn trial(&self) -> Instant {
        self.quiet_moment() + self.rtt.mul_f64(QUIET_RTTS)
    }

    fn trial_ends(&self) -> Instant {
        self.trial() + self.rtt.mul_f64(TRIAL_RTTS)
    }

    fn ends(&self) -> Instant {
        let last = if self.path.is_some() { self.trial() } else { self.quiet_moment() };
        last + self.rtt.mul_f64(END_RTTS)
    }
}

impl Trial {
    /// With the parameters of a configuration.
    pub fn new(config: &Params) -> Trial {
        Trial {
            delta: config.shared_delta,
            zeta: config.shared_zeta,
            only_alike: false,
            fall_min_s: f64::NEG_INFINITY,
            paths: Vec::new(),
            moments: DelayEvents::default(),
            losses: MtcpMatch::new(config),
            rtt: Duration::ZERO,
            due: Instant::ZERO,
            begun: Instant::ZERO,
            next_round: Instant::ZERO,
            round: None,
        }
    }

    /// A detector for paths that mostly have separate bottlenecks. It tries a path only after its
    /// delay has changed like another one's for some time, so trials cost nothing where queues are
    /// separate. Only delays decide, because independent paths with like loads lose at the same
    /// times again and again. And only the delays of paths with a queue decide, because fast
    /// separate paths often have none, and one fall by chance would decide.
    pub fn of_alike(config: &Params) -> Trial {
        Trial { only_alike: true, fall_min_s: CHANGE_MIN_S, ..Trial::new(config) }
    }

    fn watched(&self, path: PathId) -> Option<&Watched> {
        self.paths.get(path.index())?.as_ref()
    }

    /// All pairs of paths that carry data, the lower id first.
    fn pairs(&self) -> impl Iterator<Item = (PathId, PathId)> {
        let used = self.paths.iter().enumerate().filter(|(_, w)| w.is_some());
        let ids = used.map(|(index, _)| PathId(index as u8));
        ids.clone().flat_map(move |a| ids.clone().filter(move |b| a < *b).map(move |b| (a, b)))
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

    /// True if the delays of a path change like another one's, and this is not known to be chance.
    fn is_alike(&self, path: PathId) -> bool {
        self.pairs().filter(|pair| pair.0 == path || pair.1 == path).any(|pair| {
            let compared = self.moments.compare(pair);
            let is_unlikely = |alike: Alike| alike.is_frequent() && alike.chance <= DOUBT;
            compared.follows(self.fall_min_s) != Some(false)
                && compared.alike().is_some_and(is_unlikely)
        })
    }

    /// Begins a round with the path that had the fewest trials among those that a trial can slow
    /// down.
    fn begin_round(&mut self, cx: &mut PolicyCx<'_>) {
        let now = cx.now;
        let this = &*self;
        let is_apt = |p: &PathView| {
            let begun = this.watched(p.id).map_or(now, |w| w.begun);
            let srtt = p.srtt.unwrap_or_default();
            let is_past_start = !srtt.is_zero() && now - begun >= srtt * START_RTTS;
            let is_full = p.cwnd >= CWND_MIN && p.pipe.max(p.flight_size) >= p.cwnd / 4 * 3;
            p.usable && p.state == PathState::Active && is_past_start && is_full
        };
        let trials = |p: &PathView| this.watched(p.id).map_or(0, |w| w.trials);
        let Some(apt) = cx.argmax(is_apt, |p| std::cmp::Reverse(trials(p))) else { return };
        let is_alike = |p: &PathView| is_apt(p) && this.is_alike(p.id);
        let path = if self.only_alike {
            cx.argmax(is_alike, |p| std::cmp::Reverse(trials(p)))
        } else {
            Some(apt)
        };
        if let Some(Some(w)) = path.and_then(|path| self.paths.get_mut(path.index())) {
            w.trials += 1;
        }
        self.round = Some(Round { begun: now, rtt: self.rtt, path, is_trial: false });
    }

    fn end_round(&mut self, cx: &mut PolicyCx<'_>, round: Round) -> Vec<SharedEvidence> {
        let trial = round.path.map(|path| (round.trial(), Some(path)));
        for (at, tried) in [(round.quiet_moment(), None)].into_iter().chain(trial) {
            let change = |(index, w): (usize, &Option<Watched>)| {
                let mut change = w.as_ref()?.delays.change(at, round.rtt)?;
                change.acted |= tried == Some(PathId(index as u8));
                Some(change)
            };
            self.moments.note(self.paths.iter().enumerate().map(change).collect());
        }
        let found: Vec<_> = self.pairs().filter_map(|pair| self.judge(pair)).collect();
        let is_open = |pair| self.moments.compare(pair).follows(self.fall_min_s) != Some(false);
        let is_settled = !self.pairs().any(is_open);
        let share = if is_settled { PAUSE_SHARES.1 } else { PAUSE_SHARES.0 };
        let pause = round.rtt.mul_f64(SETTLE_RTTS).max((cx.now - self.begun).mul_f64(share));
        self.next_round = cx.now + pause.mul_f64(1.0 + cx.rng.unit() / 2.0);
        found
    }

    /// Judges two paths by their delays.
    fn judge(&self, paths: (PathId, PathId)) -> Option<SharedEvidence> {
        let compared = self.moments.compare(paths);
        let alike = compared.alike()?;
        let mut evidence = SharedEvidence {
            paths,
            sign: SharedSign::Delays,
            events: (alike.moments, alike.moments),
            matched: alike.alike,
            lag_s: 0.0,
            threshold: self.delta,
            needed: needed(alike.typical, self.zeta),
            chance: 1.0,
            is_shared: false,
        };
        if alike.is_frequent() {
            evidence.chance = alike.chance;
        }
        let is_likely = evidence.ratio() > self.delta && evidence.chance <= self.zeta;
        evidence.is_shared = is_likely && compared.follows(self.fall_min_s) == Some(true);
        Some(evidence)
    }
}

impl SharedPolicy for Trial {
    fn begin(&mut self, now: Instant, path: PathId) {
        self.end(path);
        if self.paths.len() <= path.index() {
            self.paths.resize_with(path.index() + 1, || None);
        }
        self.begun = now;
        self.losses.begin(now, path);
        self.paths[path.index()] =
            Some(Watched { begun: now, delays: Delays::default(), cwnd: 0, trials: 0 });
    }

    fn end(&mut self, path: PathId) {
        if let Some(watched) = self.paths.get_mut(path.index()) {
            *watched = None;
        }
        self.losses.end(path);
        self.moments.forget(path);
        self.round = self.round.filter(|round| round.path != Some(path));
    }

    fn on_fast_retransmit(&mut self, cx: &PolicyCx<'_>, path: PathId) -> Vec<SharedEvidence> {
        if self.only_alike {
            return Vec::new();
        }
        let is_late = cx.now - self.begun >= self.rtt * PATIENCE_RTTS;
        let mut found = self.losses.on_fast_retransmit(cx, path);
        found.retain(|evidence| {
            let follows = self.moments.compare(evidence.paths).follows(self.fall_min_s);
            evidence.is_shared && follows.unwrap_or(is_late)
        });
        found
    }

    fn watches_delays(&self) -> bool {
        true
    }

    fn on_delay(&mut self, now: Instant, path: PathId, sent_at: Instant) -> bool {
        if let Some(Some(w)) = self.paths.get_mut(path.index()) {
            w.delays.note(sent_at, now - sent_at, self.rtt);
        }
        now >= self.due
    }

    fn review(&mut self, cx: &mut PolicyCx<'_>) -> Vec<SharedEvidence> {
        self.note_cuts(cx);
        let now = cx.now;
        if let Some(round) = &mut self.round {
            self.due = now + round.rtt / 4;
            round.is_trial = now >= round.trial() && now < round.trial_ends();
            if now < round.ends() {
                return Vec::new();
            }
        }
        if let Some(round) = self.round.take() {
            return self.end_round(cx, round);
        }
        let used = cx.paths.iter().filter(|p| self.watched(p.id).is_some());
        self.rtt = used.filter_map(|p| p.srtt).max().unwrap_or_default();
        self.due = now + self.rtt / 4;
        if now >= self.next_round && self.pairs().next().is_some() {
            self.begin_round(cx);
        }
        Vec::new()
    }

    fn tried(&self) -> Option<PathId> {
        self.round.filter(|round| round.is_trial)?.path
    }
}

#[cfg(test)]
mod tests;
