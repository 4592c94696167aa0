//! Futures of Rust for asyncio, and the end of the interpreter. A thread that gives a future its
//! result needs the interpreter for a moment longer than the program that waits for the result,
//! and crashes if it is gone. So the interpreter waits for such threads at its exit.

use std::future::Future;
use std::pin::Pin;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3_async_runtimes::TaskLocals;
use pyo3_async_runtimes::generic::{self, ContextExt, Runtime};
pub(crate) use pyo3_async_runtimes::tokio::get_runtime;
use tokio::task::{JoinError, JoinHandle};

/// The longest time for which the interpreter waits, in milliseconds. Endpoints that were not
/// closed keep tasks that never end.
const WAITS_MS: u32 = 500;

/// Functions that the runtime's threads run, or will, and that use the interpreter.
static GIVING_RESULTS: AtomicUsize = AtomicUsize::new(0);

/// Tokio's runtime, which counts the functions that use the interpreter.
struct Counting;

impl Runtime for Counting {
    type JoinError = JoinError;
    type JoinHandle = JoinHandle<()>;

    fn spawn<F>(future: F) -> JoinHandle<()>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        get_runtime().spawn(future)
    }

    fn spawn_blocking<F>(function: F) -> JoinHandle<()>
    where
        F: FnOnce() + Send + 'static,
    {
        struct Given;
        impl Drop for Given {
            fn drop(&mut self) {
                GIVING_RESULTS.fetch_sub(1, Ordering::SeqCst);
            }
        }
        GIVING_RESULTS.fetch_add(1, Ordering::SeqCst);
        let given = Given;
        get_runtime().spawn_blocking(move || {
            let _given = given; // also if the function panics
            function();
        })
    }
}

impl ContextExt for Counting {
    fn scope<F, R>(_: TaskLocals, future: F) -> Pin<Box<dyn Future<Output = R> + Send>>
    where
        F: Future<Output = R> + Send + 'static,
    {
        Box::pin(future) // which awaits nothing of Python
    }

    fn get_task_locals() -> Option<TaskLocals> {
        None
    }
}

/// The future of asyncio that gets what this one gives.
pub(crate) fn future_into_py<'py, F, T>(py: Python<'py>, future: F) -> PyResult<Bound<'py, PyAny>>
where
    F: Future<Output = PyResult<T>> + Send + 'static,
    T: for<'a> IntoPyObject<'a> + Send + 'static,
{
    generic::future_into_py::<Counting, F, T>(py, future)
}

/// From now on the interpreter waits at its exit.
pub(crate) fn settle_at_exit(py: Python<'_>) -> PyResult<()> {
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
fn settle(py: Python<'_>) {
    let is_busy = || {
        get_runtime().metrics().num_alive_tasks() > 0 || GIVING_RESULTS.load(Ordering::SeqCst) > 0
    };
    py.detach(|| {
        for _ in 0..WAITS_MS {
            if !is_busy() {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    });
}
