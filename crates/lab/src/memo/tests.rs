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
    let memo = Memo::expecting(all_runs(&points));
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
    let memo = Memo::expecting(all_runs(&points));
    let times = SampleTimes::Every(Duration::from_millis(100));
    let sampling = Sampling { times, most: 100 };
    memo.run(&points[0], 1, None).unwrap();
    memo.run(&points[1], 1, Some(sampling)).unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 2);
}

fn all_runs(points: &[PlannedPoint]) -> impl Iterator<Item = (&PlannedPoint, u64)> {
    points.iter().flat_map(|point| point.seeds.iter().map(move |seed| (point, *seed)))
}
