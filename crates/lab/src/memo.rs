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
    /// For the runs of these points. Results are kept as long as runs are to come that may need
    /// them.
    pub(crate) fn expecting<'a>(points: impl Iterator<Item = &'a PlannedPoint>) -> Memo {
        let mut groups = Groups::new();
        for point in points {
            let group = point.run.identity().map(Identity::group);
            for key in group.iter().flat_map(|group| point.seeds.iter().map(|seed| (*group, *seed)))
            {
                groups.entry(key).or_default().left += 1;
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
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use manypath_sim::SampleTimes;
    use manypath_sim::scenario::{RunOptions, Scenario};

    use super::*;
    use crate::plan::Runnable;

    /// A scenario whose runs are counted.
    struct Counted {
        run: manypath_sim::scenario::CompiledScenario,
        identity: Identity,
        runs: Arc<AtomicUsize>,
    }

    impl Runnable for Counted {
        fn run(&self, seed: u64, _: Option<Sampling>) -> Result<RunData, String> {
            self.runs.fetch_add(1, Ordering::Relaxed);
            let output = self.run.run(seed, &RunOptions::default()).map_err(|e| e.to_string())?;
            let json = serde_json::to_string(&output.result.transfer).map_err(|e| e.to_string())?;
            let fields = crate::cell::fields_of_json(&json).map_err(|e| e.to_string())?;
            Ok(RunData { fields, series: Vec::new(), loss_ranges: output.loss_ranges })
        }

        fn identity(&self) -> Option<&Identity> {
            Some(&self.identity)
        }
    }

    const SCENARIO: &str = r#"
        transport = { preset = "all-rtx-same" }
        transfer.size = "50 kB"
        [[path]]
        rate = "10 Mbit/s"
        delay = "20 ms"
        [[path]]
        rate = "10 Mbit/s"
        delay = "20 ms"
        [sweep]
        "path.1.loss" = ["1 %", "5 %"]
        "path.2.loss" = ["1 %", "2 %", "3 %"]
    "#;

    fn points(runs: &Arc<AtomicUsize>) -> Vec<PlannedPoint> {
        let points = Scenario::parse("test.toml", SCENARIO).and_then(|s| s.points()).unwrap();
        let planned = points.into_iter().map(|point| PlannedPoint {
            variant: Arc::from("scenario"),
            params: Arc::new(point.params),
            run: Box::new(Counted {
                identity: point.run.identity(),
                run: point.run,
                runs: Arc::clone(runs),
            }),
            seeds: vec![1, 2],
            command: String::new(),
        });
        planned.collect()
    }

    #[test]
    fn what_runs_have_in_common_is_made_once_and_then_forgotten() {
        let runs = Arc::new(AtomicUsize::new(0));
        let points = points(&runs);
        let memo = Memo::expecting(points.iter());
        let mut different: Vec<RunData> = Vec::new();
        for point in &points {
            for seed in [1, 2] {
                let got = memo.run(point, seed, None).unwrap();
                let alone = point.run.run(seed, None).unwrap();
                assert_eq!(got.fields, alone.fields, "{:?}", point.params);
                if different.iter().all(|other| other.fields != got.fields) {
                    different.push(got);
                }
            }
        }
        let alone = 2 * points.len();
        assert_eq!(runs.load(Ordering::Relaxed) - alone, different.len());
        assert!(different.len() < alone, "some losses make no difference");
        assert!(memo.groups().is_empty());
    }

    #[test]
    fn runs_with_samples_are_made() {
        let runs = Arc::new(AtomicUsize::new(0));
        let points = points(&runs);
        let memo = Memo::expecting(points.iter());
        let times = SampleTimes::Every(Duration::from_millis(100));
        let sampling = Sampling { times, most: 100 };
        memo.run(&points[0], 1, None).unwrap();
        memo.run(&points[1], 1, Some(sampling)).unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), 2);
    }
}
