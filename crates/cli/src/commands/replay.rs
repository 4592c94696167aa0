//! `manypath replay`: a recorded transfer once more, over the network that its record shows.

mod print;

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::num::NonZeroUsize;
use std::path::Path;

use manypath::config::Preset;
use manypath_lab::runner::{all_processors, run_in_order};
use manypath_replay::{EstimateError, Network, Record, RecordError, Replay, Replayed};
use serde::Serialize;
use serde_json::json;

use crate::args::replay::ReplayArgs;
use crate::failure::{Failure, Result};
use crate::runs::{RunsBar, cancel_on_ctrl_c};
use crate::screen::Screen;
use crate::screen::output;

/// How much longer or shorter than the recorded transfer the replayed one may take, as a fraction
/// of its time.
const TOLERANCE: f64 = 0.05;

/// The runs of a preset over the network of a record.
#[derive(Clone, Debug, Serialize)]
struct Outcome {
    /// The preset.
    preset: String,
    /// Runs that came to their end, of how many.
    completed: usize,
    runs: usize,
    /// The median, the shortest and the longest time, in seconds; a run that did not end counts as
    /// the longest. `None` if the run in question did not end.
    time_s: Option<f64>,
    time_min_s: Option<f64>,
    time_max_s: Option<f64>,
    /// Content over the median time.
    goodput_bps: Option<f64>,
}

impl Outcome {
    fn of(preset: &str, runs: &[Replayed]) -> Outcome {
        let mut sorted = runs.to_vec();
        let time = |run: &Replayed| run.time_s.unwrap_or(f64::INFINITY);
        sorted.sort_by(|a, b| time(a).total_cmp(&time(b)));
        let median = sorted.get(sorted.len() / 2);
        Outcome {
            preset: preset.to_owned(),
            completed: runs.iter().filter(|run| run.time_s.is_some()).count(),
            runs: runs.len(),
            time_s: median.and_then(|run| run.time_s),
            time_min_s: sorted.first().and_then(|run| run.time_s),
            time_max_s: sorted.last().and_then(|run| run.time_s),
            goodput_bps: median.and_then(|run| run.goodput_bps),
        }
    }
}

/// Everything that is known at the end.
struct Findings {
    record: Record,
    network: Network,
    original: Outcome,
    others: Vec<Outcome>,
}

impl Findings {
    /// By how much the replayed time exceeds the recorded one, as a part of that.
    fn difference(&self) -> Option<f64> {
        self.original.time_s.map(|time| time / self.record.time_s() - 1.0)
    }

    fn is_true(&self) -> bool {
        self.difference().is_some_and(|difference| difference.abs() <= TOLERANCE)
    }

    /// The limits of the figures, in sentences.
    fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.is_true() {
            warnings.push(
                "the replayed original differs from the recorded one by more than 5 %: this network \
                 is not what the transfer met, and the other times are as uncertain"
                    .to_owned(),
            );
        }
        match (&self.record.end, self.record.is_complete()) {
            (None, _) => warnings.push(
                "the record is cut short: only what it has of the transfer is replayed".to_owned(),
            ),
            (Some(_), false) => warnings
                .push("the transfer did not complete: only what arrived is replayed".to_owned()),
            (Some(_), true) => {}
        }
        for path in &self.network.unused {
            warnings.push(format!(
                "path {path} carried no data: its rate is unknown, and no system may use it here"
            ));
        }
        let own = |path: usize| !self.network.shared.iter().any(|link| link.paths.contains(&path));
        for (number, path) in self.network.paths.iter().enumerate() {
            if path.rates.is_lower_bound && own(number) {
                warnings.push(format!(
                    "the transfer never filled path {}: its rate is a lower bound, so faster \
                     systems may do better than shown",
                    path.path
                ));
            }
        }
        warnings
    }
}

/// `manypath replay`.
pub(crate) fn run(args: &ReplayArgs) -> Result<()> {
    let screen = Screen::new(&args.report);
    for preset in &args.preset {
        Preset::from_name(preset)
            .map_err(|e| Failure::usage(format!("--preset: {e}")).hint("see `manypath presets`"))?;
    }
    let record = read(&args.record)?;
    let network = Network::estimate(&record).map_err(|e| unclear(&args.record, &e))?;
    let replay = Replay::new(&record, &network);
    if let Some(path) = &args.out {
        std::fs::write(path, replay.scenario())
            .map_err(|e| Failure::failed(format!("cannot write {}: {e}", path.display())))?;
    }
    let mut outcomes = outcomes(args, &replay, &record.recording.preset)?;
    let original = outcomes.remove(0);
    let found = Findings { record, network, original, others: outcomes };
    if args.report.json {
        output::print(&format!("{}\n", object(&found, args)))?;
    } else {
        output::print(&print::text(&found))?;
    }
    for warning in found.warnings() {
        screen.line(&format!("warning: {warning}"));
    }
    Ok(())
}

fn read(path: &Path) -> Result<Record> {
    let input: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(path);
        let file =
            file.map_err(|e| Failure::usage(format!("cannot read {}: {e}", path.display())))?;
        Box::new(BufReader::new(file))
    };
    Record::read(input).map_err(|error| {
        let hint = match &error {
            RecordError::SimulatorTrace => {
                "record the run with `manypath sim run SCENARIO.toml --record FILE`"
            }
            RecordError::Version { .. } => "use the version of manypath that recorded it",
            RecordError::Line(_) => "record the transfer again; this file is damaged",
            _ => "record a transfer with `manypath send --trace FILE` or `manypath perf client --trace FILE`",
        };
        Failure::usage(format!("{}: {error}", path.display())).hint(hint)
    })
}

fn unclear(path: &Path, error: &EstimateError) -> Failure {
    let hint = match error {
        EstimateError::TooShort { .. } => "record a longer transfer",
        _ => "record a transfer that sends data; this end must be the one that sends",
    };
    Failure::failed(format!("{}: {error}", path.display())).hint(hint)
}

/// The outcomes of the recorded preset and of the others, in that order.
fn outcomes(args: &ReplayArgs, replay: &Replay, recorded: &str) -> Result<Vec<Outcome>> {
    let presets: Vec<Option<&str>> =
        [None].into_iter().chain(args.preset.iter().map(|name| Some(name.as_str()))).collect();
    let seeds = usize::from(args.seeds);
    let cancel = cancel_on_ctrl_c()?;
    let mut bar = RunsBar::new(args.report.quiet || args.report.json);
    let jobs = args.jobs.and_then(|jobs| NonZeroUsize::new(jobs.into()));
    let work = |number: usize| {
        let seed = (number % seeds) as u64 + 1;
        replay.run(presets[number / seeds], seed).map_err(|error| error.to_string())
    };
    let (mut runs, mut failed) = (vec![Vec::new(); presets.len()], None);
    let count = presets.len() * seeds;
    let jobs = jobs.unwrap_or_else(all_processors);
    let given = run_in_order(count, jobs, &cancel, work, |number, result| {
        match result {
            Ok(run) => runs[number / seeds].push(run),
            Err(what) => drop(failed.get_or_insert(what)),
        }
        bar.set(number + 1, count, String::new());
    });
    bar.end();
    if let Some(what) = failed {
        return Err(Failure::failed(what));
    }
    if given < count {
        return Err(Failure::failed("interrupted"));
    }
    let named = presets.iter().map(|preset| preset.unwrap_or(recorded));
    Ok(named.zip(&runs).map(|(preset, runs)| Outcome::of(preset, runs)).collect())
}

fn object(found: &Findings, args: &ReplayArgs) -> serde_json::Value {
    let recording = &found.record.recording;
    json!({
        "record": {
            "file": args.record.display().to_string(),
            "version": recording.version,
            "started_s": recording.started_s,
            "profile": recording.profile,
            "preset": recording.preset,
            "encrypted": recording.is_protected,
            "completed": found.record.is_complete(),
            "cut_short": found.record.end.is_none(),
            "bytes": found.record.bytes(),
            "time_s": found.record.time_s(),
        },
        "network": found.network,
        "scenario": args.out.as_ref().map(|path| path.display().to_string()),
        "original": found.original,
        "difference": found.difference(),
        "within_tolerance": found.is_true(),
        "presets": found.others,
        "warnings": found.warnings(),
    })
}
