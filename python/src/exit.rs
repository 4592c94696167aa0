//! The end of the interpreter. A thread of the runtime that has just given a future its result
//! still needs the interpreter for a moment, and crashes if that is gone.

use std::sync::Once;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3_async_runtimes::tokio::get_runtime;

/// The longest time for which the interpreter waits. Endpoints that were not closed keep tasks that
/// never end.
const WAITS_AT_MOST: Duration = Duration::from_millis(500);

/// From now on the interpreter waits for the runtime's tasks before it ends.
pub(crate) fn wait_for_tasks(py: Python<'_>) -> PyResult<()> {
    static ONCE: Once = Once::new();
    let mut registered = Ok(());
    ONCE.call_once(|| {
        registered = wrap_pyfunction!(settle, py)
            .and_then(|settle| py.import("atexit")?.call_method1("register", (settle,)))
            .map(|_| ());
    });
    registered
}

#[pyfunction]
fn settle(py: Python<'_>) -> PyResult<()> {
    let until = Instant::now() + WAITS_AT_MOST;
    let is_busy = || -> PyResult<bool> {
        let tasks = get_runtime().metrics().num_alive_tasks();
        Ok(tasks > 0 || threads_of_rust(py)?)
    };
    while Instant::now() < until && is_busy()? {
        py.detach(|| std::thread::sleep(Duration::from_millis(1)));
    }
    Ok(())
}

/// True if a thread that Python did not start runs Python code.
fn threads_of_rust(py: Python<'_>) -> PyResult<bool> {
    let running = py.import("sys")?.call_method0("_current_frames")?.len()?;
    let started: usize = py.import("threading")?.call_method0("active_count")?.extract()?;
    Ok(running > started)
}
