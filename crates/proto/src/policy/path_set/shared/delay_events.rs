//! Changes of several paths' delays around the same moments, for [`trial`](super::trial).

use std::collections::VecDeque;

use smallvec::SmallVec;

use super::chance::inverse_ratio;
use crate::view::PathId;

/// How many moments are remembered.
const MOMENTS_MAX: usize = 32;
/// Changes are alike if they differ by at most this part of the larger one.
const ALIKE: f64 = 0.5;
/// Smaller changes are ignored, in seconds.
pub(super) const CHANGE_MIN_S: f64 = 1e-3;
/// Similar changes are ignored if chance alone makes them more likely than this.
const CHANCE_MAX: f64 = 0.5;
/// How often one path of a pair must have sent less on its own before its effect on the other one's
/// delay is judged.
const ALONE_MIN: u32 = 3;
/// The other delay follows if its fall lacks at most this share of the path's own fall.
const ALONE_SHARE: f64 = 1.0 / 3.0;

/// Change of a path's delay around a moment.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Change {
    /// By how many seconds it fell.
    pub(super) fell_s: f64,
    /// The path itself sent less: for a trial, or since it lost something.
    pub(super) acted: bool,
}

/// The changes around one moment, by path; `None` if not known.
pub(super) type Changes = SmallVec<[Option<Change>; 8]>;

/// The latest moments.
#[derive(Debug, Default)]
pub(super) struct DelayEvents {
    kept: VecDeque<Changes>,
}

impl DelayEvents {
    /// Adds a moment.
    pub(super) fn note(&mut self, changes: Changes) {
        if self.kept.len() == MOMENTS_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(changes);
    }

    /// Forgets the changes of a path.
    pub(super) fn forget(&mut self, path: PathId) {
        for changes in &mut self.kept {
            if let Some(change) = changes.get_mut(path.index()) {
                *change = None;
            }
        }
    }

    /// The changes of two paths around the moments at which both are known.
    pub(super) fn compare(&self, pair: (PathId, PathId)) -> Compared {
        let (a, b) = pair;
        let of = |changes: &Changes, id: PathId| changes.get(id.index()).copied().flatten();
        let both = self.kept.iter().filter_map(|m| Some((of(m, a)?, of(m, b)?)));
        let both: Vec<_> = both.collect();
        let idle = both.iter().flat_map(|(a, b)| [a, b]).filter(|change| !change.acted);
        let mut usual: Vec<f64> = idle.map(|change| change.fell_s).collect();
        usual.sort_by(f64::total_cmp);
        let usual_s = usual.get(usual.len() / 2).copied().unwrap_or_default();
        Compared { both, usual_s }
    }
}

/// The changes of two paths at the same moments.
#[derive(Debug)]
pub(super) struct Compared {
    both: Vec<(Change, Change)>,
    /// Median change of a path that did not send less. Queues usually grow until something is lost.
    usual_s: f64,
}

/// How many changes of two paths were alike.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Alike {
    /// Moments that prove something.
    pub(super) moments: u32,
    /// Moments of these at which both delays changed alike.
    pub(super) alike: u32,
    /// Typical probability that a moment's changes are alike by chance: geometric mean.
    pub(super) typical: f64,
    /// Chance of this many alike changes, see [`inverse_ratio`].
    pub(super) chance: f64,
}

impl Alike {
    /// True if changes were alike more often than by chance.
    pub(super) fn is_frequent(&self) -> bool {
        f64::from(self.alike) / f64::from(self.moments) > self.typical
    }
}

impl Compared {
    /// Counts changes that were alike. The other path's changes at other moments show how likely
    /// that is by chance: a steadily growing queue is like any other one.
    pub(super) fn alike(&self) -> Option<Alike> {
        let (mut moments, mut alike, mut log_likelihood, mut log_typical) = (0, 0, 0.0, 0.0);
        for (a, b) in &self.both {
            if self.size(*a, *b) < CHANGE_MIN_S {
                continue;
            }
            // The other path's changes at all other moments, plus one, so that no chance is 0.
            let alike_to_a =
                self.both.iter().filter(|(_, other)| self.are_alike(*a, *other)).count();
            let is_alike = self.are_alike(*a, *b);
            let others = alike_to_a - usize::from(is_alike);
            let p = (others + 1) as f64 / (self.both.len() + 1) as f64;
            if p > CHANCE_MAX {
                continue;
            }
            moments += 1;
            alike += u32::from(is_alike);
            log_likelihood += if is_alike { p.ln() } else { (1.0 - p).ln() };
            log_typical += p.ln();
        }
        (moments > 0).then(|| Alike {
            moments,
            alike,
            typical: (log_typical / f64::from(moments)).exp(),
            chance: inverse_ratio(moments, alike, log_likelihood).min(1.0),
        })
    }

    /// True if the delay of one path falls when only the other one sends less. `None` if not known
    /// yet. A moment counts if the delay of the path that sent less fell by at least `fall_min_s`
    /// seconds more than usual.
    pub(super) fn follows(&self, fall_min_s: f64) -> Option<bool> {
        let (mut moments, mut fell_s, mut alone_s) = (0, 0.0, 0.0);
        for (a, b) in &self.both {
            let (own, other) = match (a.acted, b.acted) {
                (true, false) => (a, b),
                (false, true) => (b, a),
                _ => continue,
            };
            let own_s = own.fell_s - self.usual_s;
            if own_s < fall_min_s {
                continue;
            }
            moments += 1;
            fell_s += own_s;
            alone_s += own.fell_s - other.fell_s;
        }
        (moments >= ALONE_MIN && fell_s > 0.0).then_some(alone_s <= fell_s * ALONE_SHARE)
    }

    /// The larger of two changes, less the usual one.
    fn size(&self, a: Change, b: Change) -> f64 {
        let beyond = |change: Change| (change.fell_s - self.usual_s).abs();
        beyond(a).max(beyond(b))
    }

    fn are_alike(&self, a: Change, b: Change) -> bool {
        (a.fell_s - b.fell_s).abs() <= self.size(a, b) * ALIKE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAIR: (PathId, PathId) = (PathId(0), PathId(1));
    /// Every moment counts.
    const ANY: f64 = f64::NEG_INFINITY;

    /// Moments with how far two paths' delays fell, in milliseconds, and who acted.
    fn moments(changes: &[(f64, f64, &str)]) -> DelayEvents {
        let mut moments = DelayEvents::default();
        for (a, b, who) in changes {
            let change =
                |ms: f64, name| Some(Change { fell_s: ms / 1e3, acted: who.contains(name) });
            moments.note([change(*a, 'a'), change(*b, 'b')].into_iter().collect());
        }
        moments
    }

    #[test]
    fn delays_of_one_queue_change_alike_whoever_sends_less() {
        let one_queue = [(-5.0, -5.2, ""), (8.0, 8.9, "a"), (-3.0, -2.5, ""), (12.0, 11.0, "b")];
        let mut known = moments(&one_queue);
        let compared = known.compare(PAIR);
        assert_eq!(compared.follows(ANY), None, "two moments with one action each are too few");
        known.note(moments(&[(4.0, 4.4, "a")]).kept[0].clone());
        let compared = known.compare(PAIR);
        assert_eq!(compared.follows(ANY), Some(true));
        let alike = compared.alike().expect("large changes");
        assert_eq!(alike.alike, alike.moments, "{alike:?}");
        assert!(alike.chance < 0.05, "{alike:?}");
    }

    #[test]
    fn queues_that_grow_alike_are_told_apart_by_what_one_path_does_alone() {
        let alike = [(-1.6, -1.6, ""); 6];
        let two_queues = [(15.0, -1.5, "a"), (-1.6, 16.0, "b"), (14.0, -1.7, "a")];
        let compared = moments(&[&alike[..], &two_queues].concat()).compare(PAIR);
        assert_eq!(compared.follows(ANY), Some(false));
        let found = compared.alike().expect("large changes");
        // Steady growth says nothing; what is seen against it of one path does.
        assert_eq!((found.moments, found.alike), (2, 0));
        assert_eq!(found.chance, 1.0);
    }

    #[test]
    fn windows_that_are_cut_at_the_same_time_prove_nothing() {
        // Two equal, empty paths lose at the same times for ever.
        let in_step: Vec<_> =
            (0..12).map(|n| (9.0 + f64::from(n), 9.2 + f64::from(n), "ab")).collect();
        assert_eq!(moments(&in_step).compare(PAIR).follows(ANY), None);
    }

    #[test]
    fn a_path_that_sends_less_and_has_no_queue_shows_nothing() {
        // Two fast paths keep their queues short. Both are cut twice at the same time; later each
        // is cut alone, and once the other's delay falls as well.
        let quiet = [(0.0, 0.1, ""), (0.1, 0.0, ""), (0.0, -0.1, "")];
        let cut = [(2.4, 2.3, "ab"), (-0.1, 0.1, "a"), (2.6, 1.9, "ab"), (0.1, -0.1, "b")];
        let chance = [(1.4, 1.3, "a"), (0.1, -0.1, "a")];
        let compared = moments(&[&quiet[..], &cut, &chance].concat()).compare(PAIR);
        assert_eq!(compared.follows(ANY), Some(true), "the one fall outweighs the others");
        assert_eq!(compared.follows(CHANGE_MIN_S), None);
    }

    #[test]
    fn a_path_that_begins_anew_is_judged_by_what_comes_after() {
        let mut known =
            moments(&[(5.0, 5.0, "a"), (7.0, 7.0, "b"), (9.0, 9.0, "a"), (-3.0, -3.0, "")]);
        assert_eq!(known.compare(PAIR).follows(ANY), Some(true));
        known.forget(PathId(1));
        assert_eq!((known.compare(PAIR).follows(ANY), known.compare(PAIR).alike()), (None, None));
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_noted_is_finite_and_bounded(
            changes in proptest::collection::vec((-1e9..1e9f64, -1e9..1e9f64, "[ab]{0,2}"), 0..80),
        ) {
            let changes: Vec<_> = changes.iter().map(|(a, b, who)| (*a, *b, who.as_str())).collect();
            let known = moments(&changes);
            proptest::prop_assert!(known.kept.len() <= MOMENTS_MAX);
            if let Some(alike) = known.compare(PAIR).alike() {
                proptest::prop_assert!(alike.alike <= alike.moments);
                proptest::prop_assert!((0.0..=1.0).contains(&alike.chance) && alike.typical > 0.0);
            }
        }
    }
}
