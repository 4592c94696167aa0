//! Runs that points have in common: figures share lines, and a little more loss on a link that few
//! packets cross often changes nothing. Such a run is made once.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use manypath_sim::Sampling;
use manypath_sim::scenario::Identity;

use crate::plan::{PlannedPoint, RunData};

/// Runs among which some may be the same, by the number of their identities and the seed.
type Groups = BTreeMap<(u128, u64), Group>;

/// The results of runs that others may be the same as.
pub(crate) struct Memo {
    groups: Mutex<Groups>,
}

#[derive(Default)]
struct Group {
    /// Runs still to come.
    left: usize,
    made: Vec<(Identity, RunData)>,
}

impl Memo {
    /// For these runs: points and seeds. Results are kept as long as runs are to come that may need
    /// them.
    pub(crate) fn expecting<'a>(runs: impl Iterator<Item = (&'a PlannedPoint, u64)>) -> Memo {
        let mut groups = Groups::new();
        for (point, seed) in runs {
            if let Some(identity) = point.run.identity() {
                groups.entry((identity.group(), seed)).or_default().left += 1;
            }
        }
        groups.retain(|_, group| group.left > 1);
        Memo { groups: Mutex::new(groups) }
    }

    /// Makes a run, or gives the result that the same run gave. One that takes samples is always
    /// made.
    pub(crate) fn run(
        &self,
        point: &PlannedPoint,
        seed: u64,
        samples: Option<Sampling>,
    ) -> Result<RunData, String> {
        let Some(identity) = point.run.identity() else { return point.run.run(seed, samples) };
        let known = if samples.is_none() { self.find(identity, seed) } else { None };
        let result = known.map_or_else(|| point.run.run(seed, samples), Ok);
        self.note(identity, seed, &result);
        result
    }

    fn find(&self, identity: &Identity, seed: u64) -> Option<RunData> {
        let groups = self.groups();
        let mut made = groups.get(&(identity.group(), seed))?.made.iter();
        let found = made.find(|(made, data)| made.has_run_in_common(&data.loss_ranges, identity));
        found.map(|(_, data)| data.clone())
    }

    /// The run is over.
    fn note(&self, identity: &Identity, seed: u64, result: &Result<RunData, String>) {
        let mut groups = self.groups();
        let key = (identity.group(), seed);
        let Some(group) = groups.get_mut(&key) else { return };
        group.left -= 1;
        if group.left == 0 {
            groups.remove(&key);
        } else if let Ok(data) = result
            && !group
                .made
                .iter()
                .any(|(made, data)| made.has_run_in_common(&data.loss_ranges, identity))
        {
            let data = RunData { series: Vec::new(), ..data.clone() };
            group.made.push((identity.clone(), data));
        }
    }

    fn groups(&self) -> MutexGuard<'_, Groups> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
