//! Which changes of a path's state a person hears of.

use std::collections::BTreeMap;

use manypath::{PathId, PathState};

use super::Detail;

/// A path is told to be potentially failed if it is so for this long, in seconds. On a busy host an
/// answer may be late without anything being wrong.
pub(crate) const PATIENCE_S: f64 = 1.0;

/// A change that a person hears of.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) struct Told {
    /// When it was, in seconds since the association was established.
    pub at_s: f64,
    /// Which path.
    pub path: PathId,
    /// The state it entered.
    pub state: PathState,
}

/// Chooses the changes of state that are told: failures that last, and recoveries from those.
#[derive(Debug)]
pub(crate) struct StateTeller {
    detail: Detail,
    /// Paths that became potentially failed a short time ago, and when.
    pending: BTreeMap<PathId, f64>,
    /// The states that were told last.
    told: BTreeMap<PathId, PathState>,
}

impl StateTeller {
    /// Nothing was told yet.
    pub(crate) fn new(detail: Detail) -> StateTeller {
        StateTeller { detail, pending: BTreeMap::new(), told: BTreeMap::new() }
    }

    /// A path entered a state; the change to tell at once.
    pub(crate) fn changed(&mut self, at_s: f64, path: PathId, state: PathState) -> Option<Told> {
        let was_pending = self.pending.remove(&path).is_some();
        let is_news = match (self.detail, state) {
            (Detail::Full, _) => true,
            (Detail::Brief, PathState::PotentiallyFailed) => {
                // A path that was told to be inactive is no better now.
                if self.told.get(&path) != Some(&PathState::Inactive) {
                    self.pending.insert(path, at_s);
                }
                false
            }
            // Nobody heard that it was in doubt.
            (Detail::Brief, PathState::Active) if was_pending => false,
            (Detail::Brief, _) => self.told.get(&path) != Some(&state),
        };
        is_news.then(|| self.tell(Told { at_s, path, state }))
    }

    /// The changes that have lasted long enough by `now_s`.
    pub(crate) fn due(&mut self, now_s: f64) -> Vec<Told> {
        let lasts = |at_s: f64| now_s - at_s >= PATIENCE_S;
        let state = PathState::PotentiallyFailed;
        let pending = self.pending.iter().filter(|(_, at_s)| lasts(**at_s));
        let due: Vec<_> =
            pending.map(|(path, at_s)| Told { at_s: *at_s, path: *path, state }).collect();
        self.pending.retain(|_, at_s| !lasts(*at_s));
        due.into_iter().map(|told| self.tell(told)).collect()
    }

    /// A path was removed; its number may be another path's next.
    pub(crate) fn removed(&mut self, path: PathId) {
        self.pending.remove(&path);
        self.told.remove(&path);
    }

    fn tell(&mut self, told: Told) -> Told {
        self.told.insert(told.path, told.state);
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use PathState::{Active, Inactive, PotentiallyFailed};

    const PATH: PathId = PathId(1);

    fn state(told: Option<Told>) -> Option<PathState> {
        told.map(|told| told.state)
    }

    #[test]
    fn a_path_that_is_in_doubt_for_a_moment_is_no_news() {
        let mut teller = StateTeller::new(Detail::Brief);
        assert_eq!(state(teller.changed(0.0, PATH, Active)), Some(Active));
        for n in 1..100 {
            let at_s = f64::from(n);
            assert_eq!(teller.changed(at_s, PATH, PotentiallyFailed), None);
            assert_eq!(teller.due(at_s + 0.9), []);
            assert_eq!(teller.changed(at_s + 0.95, PATH, Active), None);
        }
        assert_eq!(teller.due(1000.0), []);
    }

    #[test]
    fn a_failure_that_lasts_is_told_once_with_its_time_and_so_is_its_end() {
        let mut teller = StateTeller::new(Detail::Brief);
        teller.changed(0.0, PATH, Active);
        assert_eq!(teller.changed(5.0, PATH, PotentiallyFailed), None);
        assert_eq!(teller.due(5.9), []);
        let failed = Told { at_s: 5.0, path: PATH, state: PotentiallyFailed };
        assert_eq!(teller.due(6.0), [failed]);
        assert_eq!(teller.due(9.0), []);
        assert_eq!(state(teller.changed(10.0, PATH, Inactive)), Some(Inactive));
        // With every heartbeat that is lost it may be said again.
        assert_eq!(teller.changed(11.0, PATH, PotentiallyFailed), None);
        assert_eq!(teller.due(20.0), []);
        assert_eq!(state(teller.changed(20.0, PATH, Active)), Some(Active));
    }

    #[test]
    fn an_inactive_path_is_told_at_once_even_if_it_was_in_doubt_for_a_moment() {
        let mut teller = StateTeller::new(Detail::Brief);
        teller.changed(1.0, PATH, PotentiallyFailed);
        assert_eq!(state(teller.changed(1.1, PATH, Inactive)), Some(Inactive));
        assert_eq!(teller.due(9.0), []);
        teller.removed(PATH);
        assert_eq!(state(teller.changed(9.0, PATH, Active)), Some(Active));
    }

    #[test]
    fn everything_is_told_in_detail() {
        let mut teller = StateTeller::new(Detail::Full);
        for state in [Active, PotentiallyFailed, Active, PotentiallyFailed, Inactive] {
            assert_eq!(
                teller.changed(1.0, PATH, state),
                Some(Told { at_s: 1.0, path: PATH, state })
            );
        }
        assert_eq!(teller.due(100.0), []);
    }
}
