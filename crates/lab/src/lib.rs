//! The laboratory: runs the papers' experiments over the simulator, judges their claims, and writes
//! the report.
//!
//! An [`Experiment`](experiment::Experiment) is a folder: scenarios, what a paper says about them
//! as [claims](claims::Claim), and what the papers' own simulator gives. [`lab::run`] makes the
//! runs on all processors, writes them as JSON lines, CSV and Parquet, and judges the claims. The
//! files and their columns are described in `docs/laboratory.md`.

pub mod cell;
pub mod changes;
pub mod claims;
pub mod column;
pub mod derive;
pub mod engine;
pub mod error;
pub mod estimate;
pub mod experiment;
pub mod group;
pub mod lab;
mod memo;
pub mod output;
pub mod overlay;
pub mod placebo;
pub mod plan;
pub mod reference;
pub mod report;
pub mod results;
pub mod runner;
pub mod shard;
mod simulated;
pub mod stats;
pub mod table;
pub mod tally;
pub mod template;
pub mod variant;
