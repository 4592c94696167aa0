//! Runs of the simulator.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use manypath_lab::runner::{all_processors, run_in_order};
use manypath_lab::table::Params;
use manypath_sim::TraceTo;
use manypath_sim::scenario::{Point, RunError, RunOptions};
use pyo3::prelude::*;

use crate::job::{Job, State, lock};
use crate::policy::{Classes, known_to_python};
use crate::runs::{Run, Shared};
use crate::scenario::{Scenario, nth};

/// Begins to run every point, or one of them (counted from 1), with every seed. A file for the
/// trace is for a single run.
#[pyfunction]
#[pyo3(signature = (
    scenario, *, point=None, jobs=None, scheduler=None, congestion_control=None, trace=None,
))]
pub(crate) fn start(
    py: Python<'_>,
    scenario: &Bound<'_, Scenario>,
    point: Option<usize>,
    jobs: Option<NonZeroUsize>,
    scheduler: Option<Py<PyAny>>,
    congestion_control: Option<Py<PyAny>>,
    trace: Option<PathBuf>,
) -> PyResult<Job> {
    let scenario = scenario.borrow();
    let own: &Scenario = &scenario;
    // A large sweep takes its time.
    let points = py.detach(|| own.compiled())?;
    let (points, first) = match point {
        Some(number) => (vec![nth(&points, number)?.clone()], number),
        None => (points, 1),
    };
    let name = points.first().map_or_else(String::new, |point| point.run.name().to_owned());
    let classes = Classes { scheduler, congestion_control };
    let in_python = !classes.is_empty();
    // Runs that ask Python would only wait for each other.
    let jobs = jobs.unwrap_or_else(|| if in_python { NonZeroUsize::MIN } else { all_processors() });
    let mut plan = Plan { points, first, seeds: scenario.seeds(), in_python, trace };
    let total = plan.runs();
    let runs = Shared { name, rows: Vec::new(), failed: Vec::new() };
    Job::begin(total, runs, move |state| {
        match classes.install(state) {
            Ok(configure) if in_python => {
                plan.points.iter_mut().for_each(|point| point.run.configure(&configure));
            }
            Ok(_) => {}
            Err(error) => return state.fail(error),
        }
        plan.run(jobs, state);
    })
}

struct Plan {
    points: Vec<Point>,
    /// The number of the first one.
    first: usize,
    seeds: Vec<u64>,
    /// It asks policies in Python.
    in_python: bool,
    /// The file for the trace.
    trace: Option<PathBuf>,
}

impl Plan {
    fn runs(&self) -> usize {
        self.points.len() * self.seeds.len()
    }

    fn run(&self, jobs: NonZeroUsize, state: &Arc<State>) {
        let trace =
            self.trace.clone().map(|file| TraceTo { json_lines: Some(file), ..TraceTo::default() });
        let cancel = Some(Arc::clone(&state.cancel));
        let options = RunOptions { trace, cancel, ..RunOptions::default() };
        let all: Vec<Arc<Params>> =
            self.points.iter().map(|point| Arc::new(point.params.clone())).collect();
        let place = |number: usize| {
            let (point, seed) = (number / self.seeds.len(), number % self.seeds.len());
            (point, self.seeds[seed])
        };
        let work = |number: usize| {
            let (point, seed) = place(number);
            let run = || self.points[point].run.run(seed, &options);
            let output = if self.in_python {
                known_to_python(run).unwrap_or(Err(RunError::Cancelled))
            } else {
                run()
            };
            match output {
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
