//! Runs of the simulator.

use std::num::NonZeroUsize;
use std::sync::Arc;

use manypath_lab::runner::{all_processors, run_in_order};
use manypath_lab::table::Params;
use manypath_sim::scenario::{Point, RunError, RunOptions};
use pyo3::prelude::*;

use crate::job::{Job, State, lock};
use crate::runs::{Run, Shared};
use crate::scenario::{Scenario, nth};

/// Begins to run every point, or one of them (counted from 1), with every seed.
#[pyfunction]
#[pyo3(signature = (scenario, *, point=None, jobs=None))]
pub(crate) fn start(
    scenario: &Bound<'_, Scenario>,
    point: Option<usize>,
    jobs: Option<NonZeroUsize>,
) -> PyResult<Job> {
    let scenario = scenario.borrow();
    let points = scenario.compiled()?;
    let (points, first) = match point {
        Some(number) => (vec![nth(&points, number)?.clone()], number),
        None => (points, 1),
    };
    let name = points.first().map_or_else(String::new, |point| point.run.name().to_owned());
    let plan = Plan { points, first, seeds: scenario.seeds() };
    let jobs = jobs.unwrap_or_else(all_processors);
    let runs = Shared { name, rows: Vec::new(), failed: Vec::new() };
    Job::begin(plan.runs(), runs, move |state| plan.run(jobs, state))
}

struct Plan {
    points: Vec<Point>,
    /// The number of the first one.
    first: usize,
    seeds: Vec<u64>,
}

impl Plan {
    fn runs(&self) -> usize {
        self.points.len() * self.seeds.len()
    }

    fn run(&self, jobs: NonZeroUsize, state: &Arc<State>) {
        let options =
            RunOptions { cancel: Some(Arc::clone(&state.cancel)), ..RunOptions::default() };
        let all: Vec<Arc<Params>> =
            self.points.iter().map(|point| Arc::new(point.params.clone())).collect();
        let place = |number: usize| {
            let (point, seed) = (number / self.seeds.len(), number % self.seeds.len());
            (point, self.seeds[seed])
        };
        let work = |number: usize| {
            let (point, seed) = place(number);
            match self.points[point].run.run(seed, &options) {
                Ok(output) => {
                    serde_json::to_string(&output.result).map(Some).map_err(|e| e.to_string())
                }
                Err(RunError::Cancelled) => Ok(None),
                Err(error) => Err(error.to_string()),
            }
        };
        run_in_order(self.runs(), jobs, &state.cancel, work, |number, result| {
            let (point, seed) = place(number);
            let mut runs = lock(&state.runs);
            match result {
                Ok(Some(json)) => {
                    let params = Arc::clone(&all[point]);
                    runs.rows.push(Arc::new(Run { params, seed, json }));
                }
                Ok(None) => return,
                Err(error) => runs.failed.push((self.first + point, seed, error)),
            }
            state.count();
        });
    }
}
