//! Congestion control in Python.

use manypath_proto::policy::cc::{self, CongestionControl, NeededFacts};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use super::Policy;
use super::scheduler::number;

/// The variables of congestion control.
#[pyclass(frozen, eq, module = "manypath.policy")]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Window {
    #[pyo3(get)]
    cwnd_bytes: usize,
    #[pyo3(get)]
    ssthresh_bytes: usize,
    #[pyo3(get)]
    partial_bytes_acked: usize,
}

#[pymethods]
impl Window {
    #[new]
    #[pyo3(signature = (cwnd_bytes, ssthresh_bytes, partial_bytes_acked=0))]
    fn new(cwnd_bytes: usize, ssthresh_bytes: usize, partial_bytes_acked: usize) -> Window {
        Window { cwnd_bytes, ssthresh_bytes, partial_bytes_acked }
    }

    fn __repr__(&self) -> String {
        let Window { cwnd_bytes, ssthresh_bytes, partial_bytes_acked } = self;
        format!(
            "Window(cwnd_bytes={cwnd_bytes}, ssthresh_bytes={ssthresh_bytes}, \
             partial_bytes_acked={partial_bytes_acked})"
        )
    }
}

/// The constants of a path.
#[pyclass(frozen, module = "manypath.policy")]
pub(crate) struct Limits {
    #[pyo3(get)]
    packet_bytes: usize,
    #[pyo3(get)]
    ssthresh_floor_bytes: usize,
    #[pyo3(get)]
    slow_start_increase_max_bytes: usize,
}

/// The window of a path that carries data.
#[pyclass(frozen, module = "manypath.policy")]
pub(crate) struct PathWindow {
    #[pyo3(get)]
    path: u16,
    #[pyo3(get)]
    cwnd_bytes: usize,
    #[pyo3(get)]
    srtt_s: Option<f64>,
    #[pyo3(get)]
    between_losses_bytes: u64,
}

/// Facts of a SACK.
#[pyclass(frozen, module = "manypath.policy")]
pub(crate) struct AckFacts {
    #[pyo3(get)]
    path: u16,
    #[pyo3(get)]
    acked_bytes: usize,
    #[pyo3(get)]
    counted_bytes: usize,
    #[pyo3(get)]
    flight_before_bytes: usize,
    #[pyo3(get)]
    flight_after_bytes: usize,
    #[pyo3(get)]
    in_fast_recovery: bool,
    #[pyo3(get)]
    now_s: f64,
    #[pyo3(get)]
    rtt_s: Option<f64>,
    #[pyo3(get)]
    srtt_s: Option<f64>,
    #[pyo3(get)]
    paths: Py<PyTuple>,
}

/// Congestion control that asks one in Python.
#[derive(Debug)]
pub(super) struct InPython {
    policy: Policy,
    wants: NeededFacts,
}

impl InPython {
    pub(super) fn new(policy: Policy) -> InPython {
        let wants = policy.ask(|policy| {
            let wants = |name: &str| match policy.getattr_opt(name)? {
                Some(value) => value.is_truthy(),
                None => Ok(false),
            };
            let mut facts = NeededFacts::default();
            (facts.rtt, facts.paths) = (wants("wants_rtt")?, wants("wants_paths")?);
            Ok(facts)
        });
        InPython { policy, wants: wants.unwrap_or_default() }
    }

    /// The window after an event; as it was, if the policy fails.
    fn after(
        &self,
        event: &str,
        window: cc::Window,
        limits: &cc::Limits,
        ack: Option<&cc::AckFacts<'_>>,
    ) -> cc::Window {
        let asked = self.policy.ask(|policy| ask(policy, event, window, limits, ack));
        asked.unwrap_or(window)
    }
}

impl CongestionControl for InPython {
    fn on_ack(
        &mut self,
        window: cc::Window,
        limits: &cc::Limits,
        ack: &cc::AckFacts<'_>,
    ) -> cc::Window {
        self.after("on_ack", window, limits, Some(ack))
    }

    fn on_fast_retransmit(&mut self, window: cc::Window, limits: &cc::Limits) -> cc::Window {
        self.after("on_fast_retransmit", window, limits, None)
    }

    fn on_timeout(&mut self, window: cc::Window, limits: &cc::Limits) -> cc::Window {
        self.after("on_timeout", window, limits, None)
    }

    fn needs(&self) -> NeededFacts {
        self.wants
    }
}

fn ask(
    policy: &Bound<'_, PyAny>,
    event: &str,
    window: cc::Window,
    limits: &cc::Limits,
    ack: Option<&cc::AckFacts<'_>>,
) -> PyResult<cc::Window> {
    let py = policy.py();
    let before = Window {
        cwnd_bytes: window.cwnd,
        ssthresh_bytes: window.ssthresh,
        partial_bytes_acked: window.partial_bytes_acked,
    };
    let constants = Limits {
        packet_bytes: limits.packet,
        ssthresh_floor_bytes: limits.ssthresh_floor,
        slow_start_increase_max_bytes: limits.slow_start_increase_max,
    };
    let answer = match ack {
        Some(ack) => {
            policy.call_method1(intern!(py, "on_ack"), (before, constants, facts(py, ack)?))
        }
        None => policy.call_method1(event, (before, constants)),
    }?;
    let Ok(after) = answer.cast::<Window>() else {
        let kind = answer.get_type().name()?;
        return Err(PyTypeError::new_err(format!("{event} returned {kind}; return a Window")));
    };
    let after = after.get();
    if after.cwnd_bytes < limits.packet {
        let what = format!(
            "{event} returned cwnd_bytes={}, with which nothing is sent any more; return \
             limits.packet_bytes ({}) or more",
            after.cwnd_bytes, limits.packet
        );
        return Err(PyValueError::new_err(what));
    }
    Ok(cc::Window {
        cwnd: after.cwnd_bytes,
        ssthresh: after.ssthresh_bytes,
        partial_bytes_acked: after.partial_bytes_acked,
    })
}

fn facts(py: Python<'_>, ack: &cc::AckFacts<'_>) -> PyResult<AckFacts> {
    let paths = ack.paths.iter().map(|path| {
        let window = PathWindow {
            path: number(path.path),
            cwnd_bytes: path.cwnd,
            srtt_s: path.srtt.map(|srtt| srtt.as_secs_f64()),
            between_losses_bytes: path.between_losses,
        };
        Py::new(py, window)
    });
    Ok(AckFacts {
        path: number(ack.path),
        acked_bytes: ack.acked_bytes,
        counted_bytes: ack.counted_bytes,
        flight_before_bytes: ack.flight_before,
        flight_after_bytes: ack.flight_after,
        in_fast_recovery: ack.in_fast_recovery,
        now_s: ack.now.as_secs_f64(),
        rtt_s: ack.rtt.map(|rtt| rtt.as_secs_f64()),
        srtt_s: ack.srtt.map(|srtt| srtt.as_secs_f64()),
        paths: PyTuple::new(py, paths.collect::<PyResult<Vec<_>>>()?)?.unbind(),
    })
}
