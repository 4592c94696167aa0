//! The present of a running process: one source of figures, and what shows them.
//!
//! A [`Live`] samples the associations that a process watches: rates, round-trip times, losses and
//! windows of their paths, now and over the last minutes. All views read the same [`Process`]:
//! [`metrics`] for Prometheus, the page of [`web`], the terminal of [`tui`], and other processes
//! that get it as JSON.

pub mod figures;
mod history;
mod http;
mod interfaces;
mod live;
pub mod metrics;
pub mod tui;
pub mod web;

pub use figures::{AssociationFigures, Happened, PathFigures, Process, Sample};
pub use http::Server;
pub use interfaces::Interfaces;
pub use live::{Label, Live, Stat, StatKind, Total, Watching};
