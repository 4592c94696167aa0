//! `manypath perf`: throughput between two hosts, in either direction or both.
//!
//! Both ends play the same part once they agree: each sends its content, if the direction has it
//! send any, then an `End`; having heard the other's `End`, each sends a `Report`. Everything
//! travels on one ordered stream, so an `End` comes after all content.

pub(crate) mod client;
pub(crate) mod frame;
mod intervals;
mod places;
pub(crate) mod run;
pub(crate) mod server;
