//! The arguments of `manypath replay`, and of recording for it.

use std::path::PathBuf;

use clap::Args;

use super::common::ReportArgs;

/// Recording a transfer.
#[derive(Clone, Debug, Args)]
pub(crate) struct RecordArgs {
    /// Records what this end sends, for `manypath replay`
    ///
    /// Lines of JSON with the counters of each path, 100 times a second at first and less often
    /// later: 1.5 MB a path in the first minute, 9 MB in an hour.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
}

/// `manypath replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The record that --trace of `send` or `perf client` wrote; - is standard input
    #[arg(value_name = "TRACE")]
    pub record: PathBuf,
    /// Presets to run over the same network, besides the recorded one
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub preset: Vec<String>,
    /// Writes the network as a scenario for `manypath sim` and `manypath emulate`
    #[arg(long, value_name = "SCENARIO.toml")]
    pub out: Option<PathBuf>,
    /// Runs each preset with seeds 1 to N; times are medians
    #[arg(long, value_name = "N", default_value_t = 15,
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub seeds: u16,
    /// Number of parallel runs [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}
