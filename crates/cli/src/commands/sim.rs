//! `manypath sim`: scenario files in the simulator.

mod summary;

use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use manypath_lab::cell::fields_of_result;
use manypath_lab::output::{write_csv, write_parquet};
use manypath_lab::runner::{all_processors, run_in_order};
use manypath_lab::table::Table;
use manypath_sim::TraceTo;
use manypath_sim::scenario::{Point, RunOptions, RunResult, Scenario, ScenarioError};
use serde_json::json;

use summary::Summaries;

use crate::args::sim::{CheckArgs, RunArgs, ScenarioArgs, SimCommand};
use crate::connect::exposed::pasted;
use crate::failure::{Failure, Result};
use crate::runs::{MANY_RUNS, RunsBar, cancel_on_ctrl_c};
use crate::screen::figures::thousands;
use crate::screen::output::print;
use crate::screen::sheet::{columns, wrapped};

/// Runs a command of the simulator.
pub(crate) fn run(command: &SimCommand) -> Result<()> {
    match command {
        SimCommand::Run(args) => run_scenario(args),
        SimCommand::Check(args) => check(args),
    }
}

fn wrong(error: ScenarioError) -> Failure {
    let place = match error.line {
        0 => error.file,
        line => format!("{}:{line}", error.file),
    };
    Failure::usage(format!("{place}: {}", error.what)).hint(error.remedy)
}

/// The scenario as the command line has it, and the points to run with their numbers from 0.
pub(crate) fn load(args: &ScenarioArgs) -> Result<(Scenario, Vec<Point>)> {
    let mut scenario = Scenario::load(&args.scenario).map_err(wrong)?;
    for setting in &args.set {
        let (name, value) = setting.split_once('=').ok_or_else(|| {
            Failure::usage(format!("--set {setting}: not KEY=VALUE"))
                .hint("write it like --set path.2.loss=3%")
        })?;
        scenario.set(name.trim(), value.trim()).map_err(wrong)?;
    }
    if let Some(seeds) = &args.seeds {
        scenario.set("seeds", seeds).map_err(wrong)?;
    }
    let points = scenario.points().map_err(wrong)?;
    Ok((scenario, points))
}

/// The points that `--point` leaves.
pub(crate) fn chosen(args: &ScenarioArgs, mut points: Vec<Point>) -> Result<Vec<Point>> {
    let Some(number) = args.point else { return Ok(points) };
    let index = number as usize - 1;
    if index >= points.len() {
        let what = format!("--point {number}: the scenario has {} points", points.len());
        return Err(Failure::usage(what).hint("see `manypath sim check`"));
    }
    Ok(vec![points.swap_remove(index)])
}

fn run_scenario(args: &RunArgs) -> Result<()> {
    let (scenario, points) = load(&args.scenario)?;
    let points = chosen(&args.scenario, points)?;
    let seeds = scenario.seeds();
    let count = points.len() * seeds.len();
    let options = options(args, count)?;
    let jobs = args.jobs.and_then(|jobs| NonZeroUsize::new(jobs.into()));
    let cancel = cancel_on_ctrl_c()?;
    let is_hidden = args.report.quiet || args.report.json;
    if count >= MANY_RUNS && !is_hidden {
        let (points, seeds) = (points.len(), seeds.len());
        eprintln!("{} runs: {points} points, {seeds} seeds each.", thousands(count));
    }
    let mut bar = RunsBar::new(is_hidden);
    let mut output = Output::new(args, &points, &scenario);
    let mut stopped = None;
    let work = |number: usize| {
        let run = &points[number / seeds.len()].run;
        let run = run.run(seeds[number % seeds.len()], &options);
        run.map(|output| output.result).map_err(|error| error.to_string())
    };
    run_in_order(count, jobs.unwrap_or_else(all_processors), &cancel, work, |number, result| {
        let (point, seed) = (number / seeds.len(), seeds[number % seeds.len()]);
        if let Err(failure) = output.add(point, seed, result) {
            // Nobody reads on, or the disk is full: the rest need not run.
            cancel.store(true, Ordering::Relaxed);
            stopped.get_or_insert(failure);
        }
        bar.set(number + 1, count, String::new());
    });
    bar.end();
    if let Some(failure) = stopped {
        return Err(failure);
    }
    let is_interrupted = cancel.load(Ordering::Relaxed);
    output.finish(args)?;
    if is_interrupted {
        Err(Failure::failed("interrupted; the results are of the finished runs only"))
    } else {
        Ok(())
    }
}

fn options(args: &RunArgs, count: usize) -> Result<RunOptions> {
    let is_to_output = args.trace.as_deref() == Some(Path::new("-"));
    if args.trace.is_some() && count > 1 {
        let what = format!("--trace writes one run, but {count} are selected");
        return Err(Failure::usage(what).hint("select one: --point 1 --seeds 7..7"));
    }
    if args.record.is_some() && count > 1 {
        let what = format!("--record writes one run, but {count} are selected");
        return Err(Failure::usage(what).hint("select one: --point 1 --seeds 7..7"));
    }
    if is_to_output && args.report.json {
        let what = "--trace - and --json both write to standard output";
        return Err(Failure::usage(what).hint("write the trace to a file"));
    }
    let is_traced = args.trace.is_some() || args.pcapng.is_some();
    if args.opened && !is_traced {
        let what = "--opened is about traces and captures, but there are none";
        return Err(Failure::usage(what).hint("add --trace FILE or --pcapng DIR"));
    }
    let trace = (is_traced || args.record.is_some()).then(|| TraceTo {
        json_lines: args.trace.clone(),
        pcapng_dir: args.pcapng.clone(),
        opened: args.opened,
        record: args.record.clone(),
    });
    Ok(RunOptions { trace, ..RunOptions::default() })
}

/// Where results go, in the order of points and seeds.
struct Output<'a> {
    points: &'a [Point],
    name: String,
    is_json: bool,
    /// The table goes to standard error, since the trace takes standard output.
    is_aside: bool,
    keeps_rows: bool,
    rows: Table,
    summaries: Summaries,
    failed: Vec<Failure>,
    command: String,
    first_point: usize,
}

impl<'a> Output<'a> {
    fn new(args: &RunArgs, points: &'a [Point], scenario: &Scenario) -> Output<'a> {
        let name = points.first().map_or_else(String::new, |point| point.run.name().to_owned());
        let swept = scenario.swept().map(|(name, _)| name.to_owned()).collect();
        Output {
            points,
            name,
            is_json: args.report.json,
            is_aside: args.trace.as_deref() == Some(Path::new("-")),
            keeps_rows: args.csv.is_some() || args.parquet.is_some(),
            rows: Table::new(),
            summaries: Summaries::new(swept),
            failed: Vec::new(),
            command: format!("manypath sim run {}", pasted(&args.scenario.scenario)),
            first_point: args.scenario.point.unwrap_or(1) as usize,
        }
    }

    fn add(
        &mut self,
        point: usize,
        seed: u64,
        result: std::result::Result<RunResult, String>,
    ) -> Result<()> {
        let result = match result {
            Ok(result) => result,
            Err(what) => {
                let number = self.first_point + point;
                let again = format!("{} --point {number} --seeds {seed}..{seed}", self.command);
                let what = format!("point {number}, seed {seed}: {what}");
                self.failed.push(Failure::failed(what).hint(again));
                return Ok(());
            }
        };
        let line = serde_json::to_string(&result).map_err(|e| Failure::failed(e.to_string()))?;
        if self.is_json {
            print(&format!("{line}\n"))?;
        }
        if self.keeps_rows {
            let fields = fields_of_result(&line).map_err(|e| Failure::failed(e.to_string()))?;
            let params = Arc::new(self.points[point].params.clone());
            self.rows.push(&Arc::from("scenario"), &params, seed, fields);
        }
        self.summaries.add(point, &self.points[point].params, &result);
        Ok(())
    }

    fn finish(self, args: &RunArgs) -> Result<()> {
        if !self.is_json {
            let table = self.summaries.table();
            if self.is_aside {
                eprint!("{table}");
            } else {
                print(&table)?;
            }
        }
        let cannot = |path: &Path, error: std::io::Error| {
            Failure::failed(format!("cannot write {}: {error}", path.display()))
        };
        if let Some(path) = &args.csv {
            write_csv(path, &self.name, &self.rows).map_err(|error| cannot(path, error))?;
        }
        if let Some(path) = &args.parquet {
            write_parquet(path, &self.name, &self.rows).map_err(|error| cannot(path, error))?;
        }
        let count = self.failed.len();
        match self.failed.into_iter().next() {
            None => Ok(()),
            Some(only) if count == 1 => Err(only),
            Some(first) => {
                let what = format!("{count} runs failed, the first: {}", first.message);
                Err(Failure { message: what, ..first })
            }
        }
    }
}

fn check(args: &CheckArgs) -> Result<()> {
    let (scenario, points) = load(&args.scenario)?;
    let count = points.len();
    let shown = chosen(&args.scenario, points)?;
    let Some(point) = shown.first() else { return Ok(()) };
    if !args.report.json {
        return print(&wrapped(&scenario.explain(point, count), columns(), 2));
    }
    let swept: serde_json::Map<_, _> =
        scenario.swept().map(|(name, values)| (name.to_owned(), json!(values))).collect();
    let object = json!({
        "scenario": point.run.name(),
        "points": count,
        "seeds": scenario.seeds().len(),
        "runs": count * scenario.seeds().len(),
        "swept": swept,
        "explanation": scenario.explain(point, count),
    });
    print(&format!("{object}\n"))
}
