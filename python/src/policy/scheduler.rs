//! Schedulers in Python.

use std::sync::atomic::{AtomicU64, Ordering};

use manypath_proto::policy::PolicyCx;
use manypath_proto::policy::sched::Scheduler;
use manypath_proto::{self as proto, PathId, Rng};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::Policy;

/// A path as a policy sees it.
#[pyclass(frozen, module = "manypath.policy")]
pub(crate) struct PathView(proto::PathView);

/// The number of a path for users.
pub(super) fn number(id: PathId) -> u16 {
    u16::from(id.0) + 1
}

#[pymethods]
impl PathView {
    #[getter]
    fn number(&self) -> u16 {
        number(self.0.id)
    }

    #[getter]
    fn state(&self) -> &'static str {
        self.0.state.name()
    }

    #[getter]
    fn rank(&self) -> String {
        self.0.rank.to_string()
    }

    #[getter]
    fn usable(&self) -> bool {
        self.0.usable
    }

    #[getter]
    fn cwnd_bytes(&self) -> usize {
        self.0.cwnd
    }

    #[getter]
    fn ssthresh_bytes(&self) -> usize {
        self.0.ssthresh
    }

    #[getter]
    fn flight_size_bytes(&self) -> usize {
        self.0.flight_size
    }

    #[getter]
    fn pipe_bytes(&self) -> usize {
        self.0.pipe
    }

    #[getter]
    fn cwnd_space_bytes(&self) -> usize {
        self.0.cwnd_space
    }

    #[getter]
    fn srtt_s(&self) -> Option<f64> {
        self.0.srtt.map(|srtt| srtt.as_secs_f64())
    }

    #[getter]
    fn rto_s(&self) -> f64 {
        self.0.rto.as_secs_f64()
    }

    #[getter]
    fn loss_rate(&self) -> f64 {
        self.0.loss_rate
    }

    #[getter]
    fn error_count(&self) -> u32 {
        self.0.error_count
    }

    fn __repr__(&self) -> String {
        let proto::PathView { flight_size, cwnd, .. } = &self.0;
        format!("<path {}: {flight_size} of {cwnd} bytes in flight>", self.number())
    }
}

/// A scheduler's question: which path does the next new data take?
#[pyclass(frozen, module = "manypath.policy")]
pub(crate) struct Choice {
    #[pyo3(get)]
    now_s: f64,
    #[pyo3(get)]
    paths: Py<PyTuple>,
    primary: usize,
    #[pyo3(get)]
    waiting_bytes: usize,
    random: AtomicU64,
}

#[pymethods]
impl Choice {
    #[getter]
    fn primary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        self.paths.bind(py).get_item(self.primary)
    }

    /// SplitMix64 from the run's own randomness.
    fn random(&self) -> f64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.random.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A scheduler that asks one in Python.
#[derive(Debug)]
pub(super) struct InPython {
    policy: Policy,
    /// Its own randomness: the engine's other policies draw as they would beside one in Rust.
    rng: Option<Rng>,
}

impl InPython {
    pub(super) fn new(policy: Policy) -> InPython {
        InPython { policy, rng: None }
    }
}

impl Scheduler for InPython {
    fn choose(&mut self, cx: &mut PolicyCx<'_>) -> Option<PathId> {
        let rng = self.rng.get_or_insert_with(|| cx.rng.fork("python"));
        let random = rng.next_u64();
        self.policy.ask(|policy| ask(policy, cx, random)).flatten()
    }
}

fn ask(policy: &Bound<'_, PyAny>, cx: &PolicyCx<'_>, random: u64) -> PyResult<Option<PathId>> {
    let py = policy.py();
    let paths = cx.paths.iter().map(|path| Py::new(py, PathView(path.clone())));
    let paths = PyTuple::new(py, paths.collect::<PyResult<Vec<_>>>()?)?;
    let choice = Choice {
        now_s: cx.now.as_secs_f64(),
        paths: paths.unbind(),
        primary: cx.paths.iter().position(|path| path.id == cx.primary).unwrap_or(0),
        waiting_bytes: cx.waiting,
        random: AtomicU64::new(random),
    };
    let answer = policy.call_method1(intern!(py, "choose"), (Py::new(py, choice)?,))?;
    if answer.is_none() {
        return Ok(None);
    }
    let Ok(path) = answer.cast::<PathView>() else {
        let kind = answer.get_type().name()?;
        let what = format!("choose returned {kind}; return one of choice.paths, or None to wait");
        return Err(PyTypeError::new_err(what));
    };
    let path = &path.get().0;
    // What it has now counts, if it kept the view of an earlier choice.
    let now = cx.paths.iter().find(|other| other.id == path.id);
    let is_possible = now.is_some_and(|path| path.usable && path.cwnd_space > 0);
    if !is_possible {
        let what = format!(
            "choose returned path {}, which cannot carry data now; return a path that is usable \
             with cwnd_space_bytes > 0, or None to wait",
            number(path.id)
        );
        return Err(PyValueError::new_err(what));
    }
    Ok(Some(path.id))
}
