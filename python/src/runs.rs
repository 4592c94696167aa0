//! The results of runs, as JSON and as Arrow.

use std::sync::{Arc, OnceLock};

use arrow_array::RecordBatch;
use manypath_lab::cell::fields_of_result;
use manypath_lab::column::Column;
use manypath_lab::table::{Params, Table};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::arrow;

/// The variant of runs that belong to no experiment, as `manypath sim run --parquet` writes it.
const VARIANT: &str = "scenario";

/// The results of some runs.
#[derive(Clone)]
pub(crate) struct Shared {
    /// The name of the scenario.
    pub name: String,
    /// In the order of points and seeds.
    pub rows: Vec<Arc<Run>>,
    /// Point (from 1), seed, and what went wrong.
    pub failed: Vec<(usize, u64, String)>,
}

/// A run with a result.
pub(crate) struct Run {
    /// Its point of the sweep.
    pub params: Arc<Params>,
    /// Its seed.
    pub seed: u64,
    /// The object of `manypath sim run --json`.
    pub json: String,
}

/// The results of runs.
#[pyclass(frozen, module = "manypath._manypath")]
pub(crate) struct Runs {
    shared: Shared,
    batch: OnceLock<Result<RecordBatch, String>>,
}

impl Runs {
    pub(crate) fn new(shared: Shared) -> Runs {
        Runs { shared, batch: OnceLock::new() }
    }

    fn table(&self) -> Result<RecordBatch, String> {
        let (mut table, variant) = (Table::new(), Arc::from(VARIANT));
        for run in &self.shared.rows {
            let fields = fields_of_result(&run.json).map_err(|error| error.to_string())?;
            table.push(&variant, &run.params, run.seed, fields);
        }
        arrow::batch(&Column::all(&self.shared.name, &table))
    }
}

#[pymethods]
impl Runs {
    fn __len__(&self) -> usize {
        self.shared.rows.len()
    }

    /// The result of a run, as JSON.
    fn json(&self, index: usize) -> Option<&str> {
        self.shared.rows.get(index).map(|run| run.json.as_str())
    }

    /// The name of the scenario.
    #[getter]
    fn name(&self) -> &str {
        &self.shared.name
    }

    /// Runs without a result: point (from 1), seed, and what went wrong.
    #[getter]
    fn failed(&self) -> Vec<(usize, u64, String)> {
        self.shared.failed.clone()
    }

    /// A row for each run, as a stream of Arrow's C interface. All streams share one memory.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface leaves conversions to the consumer.
        let _ = requested_schema;
        let batch = py.detach(|| self.batch.get_or_init(|| self.table()).clone());
        arrow::stream(py, batch.map_err(PyValueError::new_err)?)
    }
}
