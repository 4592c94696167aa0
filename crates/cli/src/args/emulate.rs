//! The arguments of `manypath emulate`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::common::ReportArgs;

/// `manypath emulate`.
#[derive(Debug, Args)]
pub(crate) struct EmulateArgs {
    /// The scenario file
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Also runs COMMAND at HOST, by sh; repeatable
    ///
    /// Commands start in this order, before PROGRAM, each when the one before waits for packets or
    /// connections. They are stopped when PROGRAM ends: SIGTERM, and SIGKILL 2 s later.
    #[arg(long, num_args = 2, value_names = ["HOST", "COMMAND"])]
    pub at: Vec<String>,
    /// The host of PROGRAM [default: the near end of the first path, `a` in the short form]
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// The longest wait for a COMMAND that does not listen
    #[arg(long, value_name = "TIME", default_value = "3 s")]
    pub wait: String,
    /// Announces all addresses of all hosts to MPTCP peers, and accepts up to 8 subflows
    #[arg(long)]
    pub mptcp: bool,
    /// Sets a value by its dotted name, such as path.2.loss=3%; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Selects the point of a sweep, counted from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub point: Option<u32>,
    /// The seed of loss, jitter and cross-traffic [default: the file's first]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Also writes the report as JSON into this file
    #[arg(long = "report", value_name = "FILE")]
    pub report_file: Option<PathBuf>,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
    /// The program to run and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}
