//! Policies that are written in Python.
//!
//! The engine asks them in the thread of the run, which takes the interpreter's lock for each
//! question. An error of theirs ends all runs of the call.

pub(crate) mod congestion;
pub(crate) mod scheduler;

use std::sync::Arc;

use manypath_proto::Config;
use manypath_proto::policy::cc::CongestionControl;
use manypath_proto::policy::sched::Scheduler;
use manypath_proto::policy::{Factory, Family};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;

use crate::job::State;

/// The classes that a call was given, or other callables without arguments that make a policy.
pub(crate) struct Classes {
    /// Called for each association.
    pub scheduler: Option<Py<PyAny>>,
    /// Called for each path of each association.
    pub congestion_control: Option<Py<PyAny>>,
}

impl Classes {
    pub(crate) fn is_empty(&self) -> bool {
        self.scheduler.is_none() && self.congestion_control.is_none()
    }

    /// The change of a configuration that brings them in.
    pub(crate) fn install(self, state: &Arc<State>) -> PyResult<impl Fn(&mut Config)> {
        let own = |class: Option<Py<PyAny>>| class.map(|class| Own::new(class, state));
        let scheduler = own(self.scheduler).map(|own| {
            factory::<dyn Scheduler>(own, |policy| Box::new(scheduler::InPython::new(policy)))
        });
        let control = own(self.congestion_control).map(|own| {
            factory::<dyn CongestionControl>(own, |policy| {
                Box::new(congestion::InPython::new(policy))
            })
        });
        let (scheduler, control) = (scheduler.transpose()?, control.transpose()?);
        Ok(move |config: &mut Config| {
            if let Some(scheduler) = &scheduler {
                config.scheduler.clone_from(scheduler);
            }
            if let Some(control) = &control {
                config.congestion_control.clone_from(control);
            }
        })
    }
}

fn factory<P: Family + ?Sized>(
    own: Own,
    adapt: impl Fn(Policy) -> Box<P> + Send + Sync + 'static,
) -> PyResult<Factory<P>> {
    let name = own.name()?;
    Factory::new(name, move |_| adapt(own.make()))
        .map_err(|error| PyTypeError::new_err(error.to_string()))
}

/// A class of the user's.
struct Own {
    class: Py<PyAny>,
    state: Arc<State>,
}

impl Own {
    fn new(class: Py<PyAny>, state: &Arc<State>) -> Own {
        Own { class, state: Arc::clone(state) }
    }

    /// The name of the policy in configurations.
    fn name(&self) -> PyResult<String> {
        Python::attach(|py| {
            let class = self.class.bind(py);
            if !class.is_callable() {
                let kind = class.get_type().name()?;
                let what = format!("a policy is a class, or a function that makes one; not {kind}");
                return Err(PyTypeError::new_err(what));
            }
            let name = class.getattr("__name__").and_then(|name| name.extract::<String>());
            let mut name = name.unwrap_or_default();
            name.retain(|c| c.is_ascii_alphanumeric() || c == '_');
            Ok(format!("python-{name}"))
        })
    }

    fn make(&self) -> Policy {
        let made = attached(&self.state, |py| self.class.call0(py));
        Policy { object: made, state: Arc::clone(&self.state) }
    }
}

/// A policy of the user's.
struct Policy {
    /// `None` once an error has ended the runs.
    object: Option<Py<PyAny>>,
    state: Arc<State>,
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a policy in Python")
    }
}

impl Policy {
    /// Asks it something. `None` if that failed, or had failed before.
    fn ask<T>(&self, ask: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> Option<T> {
        let object = self.object.as_ref()?;
        attached(&self.state, |py| ask(object.bind(py)))
    }
}

/// Does `work` with the interpreter's lock, unless the runs shall end; an error ends them.
fn attached<T>(state: &State, work: impl FnOnce(Python<'_>) -> PyResult<T>) -> Option<T> {
    if state.is_cancelled() {
        return None;
    }
    let done = Python::try_attach(work);
    let done = done.unwrap_or_else(|| Err(PyRuntimeError::new_err("the interpreter is ending")));
    done.map_err(|error| state.fail(error)).ok()
}

/// Does the work of a thread whose policies ask for the interpreter's lock often. Without this each
/// question would make the thread known to the interpreter, and unknown again.
pub(crate) fn known_to_python<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    Python::try_attach(|py| py.detach(work))
}
