//! The arguments of `manypath decrypt`.

use std::path::PathBuf;

use clap::Args;

use super::common::ReportArgs;

/// `manypath decrypt`.
#[derive(Debug, Args)]
pub(crate) struct DecryptArgs {
    /// The capture, pcap or pcapng; - reads standard input
    #[arg(value_name = "CAPTURE")]
    pub capture: PathBuf,
    /// The key log: the file that SSLKEYLOGFILE named; repeatable
    #[arg(long, value_name = "FILE", required = true)]
    pub keys: Vec<PathBuf>,
    /// The copy, pcapng; - writes to standard output. An existing file is replaced
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}
