//! Scenarios: from files, texts and dicts.

use std::path::PathBuf;

use manypath_sim::scenario::{self as sim, Point};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyMapping;

use crate::error;
use crate::toml_text::{self, Document};

/// A scenario and its settings.
#[pyclass(module = "manypath._manypath")]
#[derive(Clone)]
pub(crate) struct Scenario {
    inner: sim::Scenario,
    /// Of a dict: its text, for the places of errors.
    document: Option<std::sync::Arc<Document>>,
}

#[pymethods]
impl Scenario {
    /// Reads a file, and those it extends.
    #[staticmethod]
    fn load(path: PathBuf) -> PyResult<Scenario> {
        let inner = sim::Scenario::load(path).map_err(|e| error::scenario(&e))?;
        Ok(Scenario { inner, document: None })
    }

    /// Reads a text in TOML; `name` is its name in errors.
    #[staticmethod]
    fn parse(text: &str, name: &str) -> PyResult<Scenario> {
        let inner = sim::Scenario::parse(name, text).map_err(|e| error::scenario(&e))?;
        Ok(Scenario { inner, document: None })
    }

    /// Reads a mapping with the keys of a scenario file.
    #[staticmethod]
    fn from_dict(scenario: &Bound<'_, PyMapping>) -> PyResult<Scenario> {
        let document = Document::of(scenario)?;
        let inner = sim::Scenario::parse(DICT, &document.text);
        let inner = inner.map_err(|e| in_document(&document, &e))?;
        Ok(Scenario { inner, document: Some(document.into()) })
    }

    /// Another one with the same settings.
    fn copy(&self) -> Scenario {
        self.clone()
    }

    /// Sets a value by its dotted name.
    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = match name {
            "seeds" => toml_text::seeds(value)?,
            _ => toml_text::setting(value, name)?,
        };
        self.inner.set(name, &value).map_err(|e| self.error(&e))
    }

    /// The seeds that each point runs with.
    #[getter]
    pub(crate) fn seeds(&self) -> Vec<u64> {
        self.inner.seeds()
    }

    /// The swept parameters with their values at each point.
    fn points(&self) -> PyResult<Vec<Vec<(String, String)>>> {
        Ok(self.compiled()?.into_iter().map(|point| point.params).collect())
    }

    /// An explanation of one point, counted from 1.
    fn explain(&self, point: usize) -> PyResult<String> {
        let points = self.compiled()?;
        Ok(self.inner.explain(nth(&points, point)?, points.len()))
    }
}

/// The name of a dict in place of a file's.
const DICT: &str = "scenario";

impl Scenario {
    /// Its points, checked.
    pub(crate) fn compiled(&self) -> PyResult<Vec<Point>> {
        self.inner.points().map_err(|e| self.error(&e))
    }

    fn error(&self, error: &sim::ScenarioError) -> PyErr {
        match &self.document {
            Some(document) => in_document(document, error),
            None => error::scenario(error),
        }
    }
}

/// The point of that number, counted from 1.
pub(crate) fn nth(points: &[Point], number: usize) -> PyResult<&Point> {
    number.checked_sub(1).and_then(|index| points.get(index)).ok_or_else(|| {
        let count = points.len();
        PyIndexError::new_err(format!("there is no point {number}: points are 1 to {count}"))
    })
}

/// The error with a place in the dict instead of a line of its text.
fn in_document(document: &Document, error: &sim::ScenarioError) -> PyErr {
    if error.file != DICT || error.line == 0 {
        return error::scenario(error);
    }
    let place = document.place(error.line).to_owned();
    error::scenario(&sim::ScenarioError { file: place, line: 0, ..error.clone() })
}
