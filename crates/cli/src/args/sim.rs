//! The arguments of `manypath sim`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::common::ReportArgs;

/// `manypath sim`.
#[derive(Debug, Subcommand)]
pub(crate) enum SimCommand {
    /// Runs a scenario file in the simulator
    ///
    /// Every point of its sweep runs with every seed. Prints a table with a row for each point:
    /// means with 95 % confidence intervals. The same file and seed give the same results on any
    /// machine and with any --jobs. docs/scenarios.md describes the format of the files.
    #[command(after_help = "Examples:
  manypath sim run two-paths.toml
  manypath sim run two-paths.toml --seeds 30 --set path.2.loss=3% --set transport.preset=cmt
  manypath sim run two-paths.toml --json > runs.jsonl
  manypath sim run two-paths.toml --point 2 --seeds 7..7 --pcapng captures --trace events.jsonl
  manypath sim run two-paths.toml --csv runs.csv --parquet runs.parquet --jobs 4")]
    Run(RunArgs),
    /// Checks and explains a scenario file
    ///
    /// Checks all points. Prints the sweep and the number of runs, and for one point the topology,
    /// derived values such as round-trip times, and every parameter that differs from its profile.
    #[command(after_help = "Examples:
  manypath sim check two-paths.toml
  manypath sim check two-paths.toml --point 3 --set transport.receive_buffer='32 KiB'")]
    Check(CheckArgs),
}

/// Which scenario.
#[derive(Clone, Debug, Args)]
pub(crate) struct ScenarioArgs {
    /// The scenario file
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Sets a value by its dotted name, such as path.2.loss=3%; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Seeds 1 to N, or A to B [default: the file's]
    #[arg(long, value_name = "N|A..B")]
    pub seeds: Option<String>,
    /// Selects one point of the sweep, counted from 1
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub point: Option<u32>,
}

/// `manypath sim run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Which scenario.
    #[command(flatten)]
    pub scenario: ScenarioArgs,
    /// Number of parallel runs [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Writes a CSV file with a row for each run
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Writes a Parquet file with a row for each run
    #[arg(long, value_name = "FILE")]
    pub parquet: Option<PathBuf>,
    /// Writes captures for Wireshark into this folder, one for each host of each run
    #[arg(long, value_name = "DIR")]
    pub pcapng: Option<PathBuf>,
    /// Writes the events of a single run as JSON lines; - is standard output
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Records the transfer of a single run for `manypath replay`, as `send --trace` does
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Shows the chunks inside protected packets in --pcapng and --trace
    #[arg(long)]
    pub opened: bool,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath sim check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Which scenario.
    #[command(flatten)]
    pub scenario: ScenarioArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}
