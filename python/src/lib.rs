//! The native part of the Python package `manypath`; `python/manypath` is what users import.
//!
//! Work runs in threads without the interpreter's lock. A `Job` gives Python what is ready,
//! so that progress, Ctrl-C and errors are ordinary Python.

// The harness of `cargo test` cannot link the interpreter, and the tests are in Python.
#![cfg(not(test))]

mod arrow;
mod error;
mod job;
mod lab;
mod net;
mod policy;
mod runs;
mod runtime;
mod scenario;
mod sim;
mod toml_text;
mod transfer;
mod work;

use pyo3::prelude::*;

/// The native module.
#[pymodule]
mod _manypath {
    #[pymodule_export]
    use crate::job::Job;
    #[pymodule_export]
    use crate::lab::{Lab, start_lab};
    #[pymodule_export]
    use crate::net::{Association, Endpoint, Events, Security};
    #[pymodule_export]
    use crate::policy::congestion::{AckFacts, Limits, PathWindow, Window};
    #[pymodule_export]
    use crate::policy::scheduler::{Choice, PathView};
    #[pymodule_export]
    use crate::runs::Runs;
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::sim::start;
    #[pymodule_export]
    use crate::transfer::{Inbox, Transfer, send_to};
    #[pymodule_export]
    use crate::work::{Kept, Work, engine_identity};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
