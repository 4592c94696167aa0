//! The runs of experiments in units, for the workers of a cluster: see `manypath/_spread.py`.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use manypath_lab::engine;
use manypath_lab::error::LabError;
use manypath_lab::experiment::Experiments;
use manypath_lab::lab::Options;
use manypath_lab::plan::Extent;
use manypath_lab::shard;
use pyo3::prelude::*;
use self_cell::self_cell;

use crate::error::lab as wrong;
use crate::lab::{Lab, as_json};

type Planned<'a> = shard::Work<'a>;

self_cell!(
    struct Plan {
        owner: Arc<Experiments>,
        #[covariant]
        dependent: Planned,
    }
);

/// The runs of experiments, planned. Those in real time are left out: their transfers need a
/// machine of their own.
#[pyclass(frozen, module = "manypath._manypath")]
pub(crate) struct Work(Plan);

fn options(out: PathBuf, extent: Extent) -> Options<'static> {
    Options { out, jobs: NonZeroUsize::MIN, extent, realtime: None }
}

#[pymethods]
impl Work {
    #[new]
    #[pyo3(signature = (lab, names, *, quick = false, seeds = None))]
    fn new(
        py: Python<'_>,
        lab: &Lab,
        names: Vec<String>,
        quick: bool,
        seeds: Option<Vec<u64>>,
    ) -> PyResult<Work> {
        let found = lab.experiments();
        let extent = Extent { quick, seeds };
        let plan = move || -> Result<Work, LabError> {
            let options = options(PathBuf::new(), extent);
            Plan::try_new(found, |found| shard::Work::new(found, &names, &options)).map(Work)
        };
        py.detach(plan).map_err(|error| wrong(&error))
    }

    /// Its units: tasks, and the command that repeats the first.
    fn units(&self) -> Vec<(Vec<String>, String)> {
        let units = self.0.borrow_dependent().units().iter();
        units.map(|unit| (unit.tasks.clone(), unit.command.clone())).collect()
    }

    /// Makes the runs of a unit; their lines of a part.
    fn run(&self, py: Python<'_>, tasks: Vec<String>) -> PyResult<Vec<String>> {
        py.detach(|| self.0.borrow_dependent().run(&tasks)).map_err(|error| wrong(&error))
    }

    /// Opens the file in a folder that keeps what was made.
    fn open(&self, folder: PathBuf) -> PyResult<Kept> {
        self.0.borrow_dependent().open(&folder).map(Kept).map_err(|error| wrong(&error))
    }

    /// Writes the files of `manypath lab run` from what was kept, and judges; outcomes as JSON.
    fn collect(&self, py: Python<'_>, kept: &Kept, out: PathBuf) -> PyResult<Vec<String>> {
        let parts = [kept.0.path.clone()];
        let experiments = self.0.borrow_owner();
        let outcomes = py.detach(move || {
            // The part says which runs.
            let mut options = options(out, Extent::default());
            shard::collect(experiments, &parts, &mut options, &mut |_| {})
        });
        as_json(outcomes.map_err(|error| wrong(&error))?)
    }

    /// The folder of the experiments; None if they are those that every copy of the package has.
    #[getter]
    fn folder(&self) -> Option<&Path> {
        let found = self.0.borrow_owner();
        let is_built_in = found.all().first().is_some_and(|experiment| experiment.is_built_in);
        (!is_built_in).then(|| found.root())
    }
}

/// The results of workers, in a file.
#[pyclass(frozen, module = "manypath._manypath")]
pub(crate) struct Kept(shard::Kept);

#[pymethods]
impl Kept {
    /// Tasks that had a result when it was opened.
    fn known(&self) -> BTreeSet<String> {
        self.0.known.clone()
    }

    /// Adds what [`Work::run`] gave.
    fn push(&self, lines: Vec<String>) -> PyResult<()> {
        self.0.push(&lines).map_err(|error| wrong(&error))
    }

    /// Notes that tasks have no result.
    fn fail(&self, tasks: Vec<String>, why: &str) -> PyResult<()> {
        self.0.fail(&tasks, why).map_err(|error| wrong(&error))
    }

    /// The file.
    #[getter]
    fn path(&self) -> &Path {
        &self.0.path
    }
}

/// Version and golden hash of the engine.
#[pyfunction]
pub(crate) fn engine_identity(py: Python<'_>) -> &'static str {
    py.detach(engine::fingerprint)
}
