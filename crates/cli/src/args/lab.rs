//! The arguments of `manypath lab`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use manypath_lab::shard::Shard;

use super::common::ReportArgs;

/// `manypath lab`.
#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Lists the experiments
    #[command(after_help = "Examples:
  manypath lab list
  manypath lab list 002 'rtx-*' --json")]
    List(ListArgs),
    /// Runs experiments and judges the papers' claims about them
    ///
    /// Prints each claim with the measured value, the expectation, the result of the papers' own
    /// simulator and a verdict; then the agreement of our means with that simulator's. A claim that
    /// does not hold is reported, but is an error only with --strict.
    #[command(after_help = "Examples:
  manypath lab run cmt-fig12a
  manypath lab run 002 'rtx-fig?' --out results
  manypath lab run all --quick
  manypath lab run cmt-fig12 --seeds 60 --jobs 4 --json
  manypath lab run 002 --on dask://head-node:8786")]
    Run(RunArgs),
    /// Judges the results of earlier runs again, after a change of claims
    #[command(after_help = "Example:
  manypath lab judge cmt-fig12 --out results")]
    Judge(JudgeArgs),
    /// Lists the runs of experiments, for other machines to make
    ///
    /// Each run has the hash of all that its result depends on: program, scenario, point, seed.
    #[command(after_help = "Examples:
  manypath lab plan 'rtx-*' --shards 7
  manypath lab plan cmt-fig12 --json")]
    Plan(PlanArgs),
    /// Makes the runs of one shard and writes them to a part, a file
    ///
    /// A shard that was stopped goes on where it was: repeat its command.
    #[command(after_help = "Examples:
  manypath lab exec 'rtx-*' --shard 3/7 --out part-3
  parallel manypath lab exec cmt-fig12 --shard {}/7 --jobs 1 --out part-{} ::: $(seq 7)")]
    Exec(ExecArgs),
    /// Puts parts together: the same files as of `lab run`, and the same verdicts
    #[command(after_help = "Example:
  manypath lab collect part-* --out results")]
    Collect(CollectArgs),
    /// Draws the figures of earlier runs in the terminal
    ///
    /// Each line has a letter at its points. The first variant is drawn, without the points of the
    /// papers' simulator; `lab report` draws all.
    #[command(after_help = "Examples:
  manypath lab show cmt-fig12
  manypath lab show second-path --out results")]
    Show(ShowArgs),
    /// Says what changed between two folders of results
    ///
    /// Claims with another verdict, the runs that differ, and the means that differ by more than
    /// chance explains: a paired t test if both have the same seeds, else Welch's, p below 0.001.
    #[command(after_help = "Examples:
  manypath lab run 002 --out before; manypath lab run 002 --out after
  manypath lab compare before after
  manypath lab compare before after cmt-fig12 --all
  manypath lab compare before after --strict --quiet      # in a script: did anything change?")]
    Compare(CompareArgs),
    /// Makes the folder of a new experiment, which runs as it is, to fill in
    #[command(after_help = "Examples:
  manypath lab new wifi-loss
  manypath lab run wifi-loss")]
    New(NewArgs),
    /// Writes a page with every figure, claim and comparison, from the results of earlier runs
    ///
    /// The page is one HTML file that needs no network. docs/report.md describes figures.toml.
    #[command(after_help = "Examples:
  manypath lab report
  manypath lab report --results results --out report.html --figures figures
  manypath lab report --claims claims.md")]
    Report(PageArgs),
}

/// Where experiments are.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExperimentsArgs {
    /// Folder of the experiments
    /// [default: the nearest `experiments` here or above, or those built in]
    #[arg(long, value_name = "DIR")]
    pub experiments: Option<PathBuf>,
}

/// `manypath lab list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Identifiers, papers (002) or patterns [default: all]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Where experiments are.
    #[command(flatten)]
    pub experiments: ExperimentsArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath lab run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Identifiers, papers (002), patterns, or all
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Runs five seeds and thins long sweeps; every output is marked quick
    #[arg(long)]
    pub quick: bool,
    /// Number of parallel runs [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Makes the runs on the workers of a Dask cluster; needs the Python package
    #[arg(long, value_name = "dask://HOST:PORT", value_parser = read_cluster, conflicts_with = "jobs")]
    pub on: Option<String>,
    /// Folder of the results, with a folder for each experiment
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub out: PathBuf,
    /// Seeds 1 to N, or A to B [default: the experiment's]
    #[arg(long, value_name = "N|A..B", value_parser = read_seeds)]
    pub seeds: Option<Seeds>,
    /// Fails if a claim does not hold
    #[arg(long)]
    pub strict: bool,
    /// Prints all points compared with the reference, not only those that differ
    #[arg(long = "all-points")]
    pub verbose_agreement: bool,
    /// Where experiments are.
    #[command(flatten)]
    pub experiments: ExperimentsArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath lab plan`.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    /// Identifiers, papers (002), patterns, or all
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Plans five seeds and thins long sweeps
    #[arg(long)]
    pub quick: bool,
    /// Seeds 1 to N, or A to B [default: the experiment's]
    #[arg(long, value_name = "N|A..B", value_parser = read_seeds)]
    pub seeds: Option<Seeds>,
    /// Says which of N shards makes each run
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub shards: u32,
    /// Where experiments are.
    #[command(flatten)]
    pub experiments: ExperimentsArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath lab exec`.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// Identifiers, papers (002), patterns, or all
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Which shard of how many
    #[arg(long, value_name = "I/N")]
    pub shard: Shard,
    /// The part to write, or to go on with
    #[arg(long, value_name = "PART")]
    pub out: PathBuf,
    /// Runs five seeds and thins long sweeps
    #[arg(long)]
    pub quick: bool,
    /// Number of parallel runs [default: the number of processors]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,
    /// Seeds 1 to N, or A to B [default: the experiment's]
    #[arg(long, value_name = "N|A..B", value_parser = read_seeds)]
    pub seeds: Option<Seeds>,
    /// Where experiments are.
    #[command(flatten)]
    pub experiments: ExperimentsArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath lab collect`.
#[derive(Debug, Args)]
pub(crate) struct CollectArgs {
    /// Parts of all shards
    #[arg(value_name = "PART", required = true)]
    pub parts: Vec<PathBuf>,
    /// Folder of the results, with a folder for each experiment
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub out: PathBuf,
    /// Fails if a claim does not hold
    #[arg(long)]
    pub strict: bool,
    /// Prints all points compared with the reference, not only those that differ
    #[arg(long = "all-points")]
    pub verbose_agreement: bool,
    /// Where experiments are.
    #[command(flatten)]
    pub experiments: ExperimentsArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath lab judge`.
#[derive(Debug, Args)]
pub(crate) struct JudgeArgs {
    /// Identifiers, papers (002), patterns, or all
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub out: PathBuf,
    /// Fails if a claim does not hold
    #[arg(long)]
    pub strict: bool,
    /// Prints all points compared with the reference, not only those that differ
    #[arg(long = "all-points")]
    pub verbose_agreement: bool,
    /// Where experiments are.
    #[command(flatten)]
    pub experiments: ExperimentsArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath lab show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Identifiers, papers (002), patterns, or all
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub out: PathBuf,
    /// Where experiments are.
    #[command(flatten)]
    pub experiments: ExperimentsArgs,
}

/// `manypath lab compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Folder of results
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Folder of other results
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Identifiers, papers (002) or patterns [default: all]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// A field of the results that may differ; repeatable
    #[arg(long, value_name = "FIELD")]
    pub ignore: Vec<String>,
    /// Prints all means that differ, and claims whose measured value changed
    #[arg(long)]
    pub all: bool,
    /// Fails if any run or claim differs
    #[arg(long)]
    pub strict: bool,
    /// Where experiments are.
    #[command(flatten)]
    pub experiments: ExperimentsArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath lab new`.
#[derive(Debug, Args)]
pub(crate) struct NewArgs {
    /// Its name: lower-case letters, digits and hyphens
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The folder of experiments that it belongs to
    #[arg(long, value_name = "NAME", default_value = "own")]
    pub group: String,
    /// Folder of the experiments
    /// [default: the nearest `experiments` here or above, or a new one here]
    #[arg(long, value_name = "DIR")]
    pub experiments: Option<PathBuf>,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// `manypath lab report`.
#[derive(Debug, Args)]
pub(crate) struct PageArgs {
    /// Folder of the results
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    pub results: PathBuf,
    /// The page to write
    #[arg(long, value_name = "FILE.html", default_value = "lab-report.html")]
    pub out: PathBuf,
    /// Draws every figure as SVG and PNG into this folder
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,

    /// Writes every claim with its verdict as Markdown into this file
    #[arg(long, value_name = "FILE")]
    pub claims: Option<PathBuf>,
    /// Where experiments are.
    #[command(flatten)]
    pub experiments: ExperimentsArgs,
    /// How results are reported.
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Seeds as given on the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seeds(pub Vec<u64>);

fn read_cluster(text: &str) -> Result<String, String> {
    let place = text.strip_prefix("dask://").and_then(|place| place.rsplit_once(':'));
    match place {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
            Ok(text.to_owned())
        }
        _ => Err("write the address of a Dask scheduler, such as dask://head-node:8786".into()),
    }
}

/// Most seeds of a point.
const MOST_SEEDS: u64 = 1_000_000;

fn read_seeds(text: &str) -> Result<Seeds, String> {
    let number = |part: &str| part.trim().parse::<u64>().ok();
    let range = match text.split_once("..") {
        Some((from, to)) => number(from).zip(number(to)),
        None => number(text).map(|n| (1, n)),
    };
    match range {
        Some((from, to)) if from <= to && to - from < MOST_SEEDS => {
            Ok(Seeds((from..=to).collect()))
        }
        _ => {
            Err("write a number of seeds such as 30, or the first and the last such as 1..60"
                .into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_or_a_range() {
        assert_eq!(read_seeds("3"), Ok(Seeds(vec![1, 2, 3])));
        assert_eq!(read_seeds("7..8"), Ok(Seeds(vec![7, 8])));
        for bad in ["0", "-1", "8..7", "a..b", "1..99999999", ""] {
            assert!(read_seeds(bad).is_err(), "{bad}");
        }
    }
}
