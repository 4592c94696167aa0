//! Work in threads that Python waits for.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::runs::{Runs, Shared};

/// Runs under way. They end when they are done, or soon after [`Job::cancel`].
#[pyclass(frozen, module = "manypath._manypath")]
pub(crate) struct Job {
    state: Arc<State>,
}

/// The part that the threads and Python share.
pub(crate) struct State {
    /// Ends runs under way once it is true.
    pub cancel: Arc<AtomicBool>,
    /// Runs that are over, failed ones included.
    done: AtomicUsize,
    /// All runs, once they are known.
    total: AtomicUsize,
    /// The results of runs.
    pub runs: Mutex<Shared>,
    /// The outcomes of experiments, as JSON.
    pub outcomes: Mutex<Vec<String>>,
    /// The reason to end early: a policy of the user's failed, or files cannot be written.
    error: Mutex<Option<PyErr>>,
    is_over: Mutex<bool>,
    over: Condvar,
}

/// The lock; data behind it is whole even if another thread panicked.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Job {
    /// Begins `work` in a thread of its own.
    pub(crate) fn begin(
        total: usize,
        runs: Shared,
        work: impl FnOnce(&Arc<State>) + Send + 'static,
    ) -> PyResult<Job> {
        let state = Arc::new(State {
            cancel: Arc::default(),
            done: AtomicUsize::new(0),
            total: AtomicUsize::new(total),
            outcomes: Mutex::default(),
            runs: Mutex::new(runs),
            error: Mutex::new(None),
            is_over: Mutex::new(false),
            over: Condvar::new(),
        });
        let own = Arc::clone(&state);
        let begin = move || {
            if catch_unwind(AssertUnwindSafe(|| work(&own))).is_err() {
                let what = "the package failed a check of its own, a bug: see standard error";
                own.fail(PyRuntimeError::new_err(what));
            }
            *lock(&own.is_over) = true;
            own.over.notify_all();
        };
        std::thread::Builder::new().name("manypath".to_owned()).spawn(begin)?;
        Ok(Job { state })
    }
}

impl State {
    /// One more run is over.
    pub(crate) fn count(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// Sets how many runs are over, and how many there are.
    pub(crate) fn set_progress(&self, done: usize, total: usize) {
        self.done.store(done, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// True once everything shall end.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Ends everything with this error; the first one counts.
    pub(crate) fn fail(&self, error: PyErr) {
        lock(&self.error).get_or_insert(error);
        self.cancel.store(true, Ordering::Relaxed);
    }
}

#[pymethods]
impl Job {
    /// Waits until everything is over, so long at most. True if it is.
    fn wait(&self, py: Python<'_>, seconds: f64) -> bool {
        let limit = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO);
        py.detach(|| {
            let is_over = lock(&self.state.is_over);
            let wait = self.state.over.wait_timeout_while(is_over, limit, |is_over| !*is_over);
            *wait.unwrap_or_else(PoisonError::into_inner).0
        })
    }

    /// Runs that are over, failed ones included.
    #[getter]
    fn done(&self) -> usize {
        self.state.done.load(Ordering::Relaxed)
    }

    /// Runs in all.
    #[getter]
    fn total(&self) -> usize {
        self.state.total.load(Ordering::Relaxed)
    }

    /// Ends the runs under way; see that it is over with `wait`.
    fn cancel(&self) {
        self.state.cancel.store(true, Ordering::Relaxed);
    }

    /// The results of the runs that are over until now.
    fn runs(&self) -> Runs {
        Runs::new(lock(&self.state.runs).clone())
    }

    /// The outcomes of experiments, as JSON.
    fn outcomes(&self) -> Vec<String> {
        lock(&self.state.outcomes).clone()
    }

    /// The error that ended everything, if one did.
    fn error(&self, py: Python<'_>) -> Option<PyErr> {
        lock(&self.state.error).as_ref().map(|error| error.clone_ref(py))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // Nobody can ask for the results any more. Waiting would need the interpreter's lock to be
        // given up, for policies in Python.
        self.state.cancel.store(true, Ordering::Relaxed);
    }
}
