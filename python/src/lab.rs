//! The laboratory.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use manypath_lab::error::LabError;
use manypath_lab::experiment::{Experiment, Experiments};
use manypath_lab::lab::{self, Options, Outcome, Progress};
use manypath_lab::plan::Extent;
use manypath_lab::runner::all_processors;
use manypath_realtime::planner::Realtime;
use pyo3::prelude::*;

use crate::error;
use crate::job::{Job, State, lock};
use crate::runs::Shared;

/// The experiments that were found.
#[pyclass(frozen, module = "manypath._manypath")]
pub(crate) struct Lab(Arc<Experiments>);

impl Lab {
    pub(crate) fn experiments(&self) -> Arc<Experiments> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Lab {
    /// Finds the experiments: in a folder, in the nearest folder `experiments`, or those built in.
    #[new]
    #[pyo3(signature = (folder=None))]
    fn new(py: Python<'_>, folder: Option<PathBuf>) -> PyResult<Lab> {
        let found = py.detach(|| Experiments::find(folder.as_deref()));
        Ok(Lab(Arc::new(found.map_err(|e| error::lab(&e))?)))
    }

    /// The experiments that names select, each as a JSON object.
    fn select(&self, names: Vec<String>) -> PyResult<Vec<String>> {
        let selected = self.0.select(&names).map_err(|e| error::lab(&e))?;
        Ok(selected.into_iter().map(describe).collect())
    }
}

/// An object for an experiment, with the names of `manypath lab list --json` where it has them.
fn describe(experiment: &Experiment) -> String {
    let seen = std::fs::read_to_string(experiment.folder.join("figures.toml"));
    serde_json::json!({
        "id": experiment.id,
        "figures": experiment.figures,
        "paper": experiment.paper,
        "figure": experiment.figure,
        "title": experiment.title,
        "says": experiment.says,
        "claims": experiment.claims.len(),
        "runs_of": experiment.runs_of,
        "folder": (!experiment.is_built_in).then(|| experiment.folder.display().to_string()),
        "figures_toml": seen.unwrap_or_default(),
    })
    .to_string()
}

/// Begins to run experiments, as `manypath lab run`.
#[pyfunction]
#[pyo3(signature = (lab, names, out, *, jobs=None, quick=false, seeds=None))]
pub(crate) fn start_lab(
    lab: &Bound<'_, Lab>,
    names: Vec<String>,
    out: PathBuf,
    jobs: Option<NonZeroUsize>,
    quick: bool,
    seeds: Option<Vec<u64>>,
) -> PyResult<Job> {
    let experiments = lab.get().experiments();
    // Before the thread begins, so that a wrong name is an error of the call.
    experiments.select(&names).map_err(|e| error::lab(&e))?;
    let jobs = jobs.unwrap_or_else(all_processors);
    let extent = Extent { quick, seeds };
    let runs = Shared { name: String::new(), rows: Vec::new(), failed: Vec::new() };
    Job::begin(0, runs, move |state| match run(&experiments, &names, out, jobs, extent, state) {
        Ok(outcomes) => *lock(&state.outcomes) = outcomes,
        Err(error) => state.fail(error),
    })
}

fn run(
    experiments: &Experiments,
    names: &[String],
    out: PathBuf,
    jobs: NonZeroUsize,
    extent: Extent,
    state: &State,
) -> PyResult<Vec<String>> {
    let failed = |error: LabError| error::lab(&error);
    let selected = experiments.select(names).map_err(failed)?;
    let realtime = Realtime::start()?;
    let plan = |experiment: &Experiment, extent: &Extent| realtime.plan(experiment, extent);
    let options = Options { out, jobs, extent, realtime: Some(&plan) };
    let mut progress = |now: Progress<'_>| state.set_progress(now.done, now.planned);
    let outcomes = lab::run(experiments, &selected, &options, &state.cancel, &mut progress);
    as_json(outcomes.map_err(failed)?)
}

/// Each outcome as a JSON object.
pub(crate) fn as_json(outcomes: Vec<Outcome>) -> PyResult<Vec<String>> {
    let json = outcomes.iter().map(serde_json::to_string);
    json.collect::<Result<_, _>>()
        .map_err(|error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
}
