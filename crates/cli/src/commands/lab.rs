//! `manypath lab`: the papers' experiments.

mod compare;
mod figures;
mod find;
mod new;
mod page;
mod print;
mod shards;
mod spread;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use manypath_lab::estimate::estimate;
use manypath_lab::experiment::{Experiment, Kind};
use manypath_lab::lab::{self, Options, Outcome, Plans, Progress};
use manypath_lab::placebo::is_placebo;
use manypath_lab::plan::{Extent, Plan, PlannedPoint};
use manypath_lab::runner::all_processors;
use manypath_lab::tally::Tally;
use manypath_realtime::planner::{Realtime, VARIANTS};
use serde_json::json;

use find::{find, wrong};
use print::Size;
use tokio::time::Instant;

use crate::args::lab::{JudgeArgs, LabCommand, ListArgs, RunArgs, Seeds};
use crate::failure::{Failure, Result};
use crate::runs::{MANY_RUNS, RunsBar, cancel_on_ctrl_c};
use crate::screen::figures::{thousands, time};
use crate::screen::output::print;
use crate::screen::sheet::{columns, wrapped};

/// How long runs are tried before those of a long command, to say how long they will take.
const TRIALS: Duration = Duration::from_secs(2);

/// Runs a command of the laboratory.
pub(crate) fn run(command: &LabCommand) -> Result<()> {
    match command {
        LabCommand::List(args) => list(args),
        LabCommand::Run(args) => run_experiments(args),
        LabCommand::Judge(args) => judge(args),
        LabCommand::Plan(args) => shards::plan(args),
        LabCommand::Exec(args) => shards::execute(args),
        LabCommand::Collect(args) => shards::collect(args),
        LabCommand::Show(args) => figures::show(args),
        LabCommand::Compare(args) => compare::run(args),
        LabCommand::New(args) => new::run(args),
        LabCommand::Report(args) => page::run(args),
    }
}

fn list(args: &ListArgs) -> Result<()> {
    let experiments = find(&args.experiments)?;
    let names = if args.ids.is_empty() { vec!["all".to_owned()] } else { args.ids.clone() };
    let mut rows = Vec::new();
    for experiment in experiments.select(&names).map_err(wrong)? {
        rows.push((experiment, size(experiment)?));
    }
    if !args.report.json {
        return print(&print::list(&rows, columns()));
    }
    let mut text = String::new();
    for (experiment, size) in &rows {
        let object = json!({
            "id": experiment.id,
            "figures": experiment.figures,
            "paper": experiment.paper,
            "figure": experiment.figure,
            "title": experiment.title,
            "points": size.points,
            "runs": size.runs,
            "claims": experiment.claims.len(),
            "placebos": experiment.placebos.iter().map(|placebo| &placebo.id).collect::<Vec<_>>(),
            "runs_of": experiment.runs_of,
        });
        text += &format!("{object}\n");
    }
    print(&text)
}

fn size(experiment: &Experiment) -> Result<Size> {
    let plan =
        Plan::of_scenarios(experiment, &Extent::default(), &|_| Vec::new()).map_err(wrong)?;
    let times = |variant: &str| match experiment.kind {
        Kind::Realtime if !is_placebo(variant) => VARIANTS,
        _ => 1,
    };
    let of = |count: fn(&PlannedPoint) -> usize| {
        plan.points.iter().map(|point| count(point) * times(&point.variant)).sum()
    };
    Ok(Size { points: of(|_| 1), runs: of(|point| point.seeds.len()) })
}

fn run_experiments(args: &RunArgs) -> Result<()> {
    let experiments = find(&args.experiments)?;
    let selected = experiments.select(&args.ids).map_err(wrong)?;
    let realtime = Realtime::start()
        .map_err(|e| Failure::failed(format!("cannot start threads for transfers: {e}")))?;
    let plan_realtime =
        |experiment: &Experiment, extent: &Extent| realtime.plan(experiment, extent);
    let mut options = Options {
        out: args.out.clone(),
        jobs: jobs(args.jobs),
        extent: extent(args.quick, args.seeds.as_ref()),
        realtime: Some(&plan_realtime),
    };
    let is_hidden = args.report.quiet || args.report.json;
    let (cancel, outcomes) = match &args.on {
        Some(on) => {
            // Real transfers need a machine that does nothing else.
            options.realtime = None;
            let mut bar = RunsBar::new(is_hidden);
            let outcomes = spread::run(&experiments, on, args, &mut options, &mut bar);
            bar.end();
            (Arc::default(), outcomes)
        }
        None => {
            let cancel = cancel_on_ctrl_c()?;
            let plans = lab::plan(&experiments, &selected, &options).map_err(wrong)?;
            if !is_hidden {
                announce(&plans, options.jobs, &cancel);
            }
            let mut bar = RunsBar::new(is_hidden);
            let mut show = |progress: Progress<'_>| show_progress(&mut bar, progress);
            let outcomes =
                lab::run_plans(&experiments, &selected, &plans, &options, &cancel, &mut show);
            bar.end();
            (cancel, outcomes.map_err(wrong))
        }
    };
    let outcomes = outcomes?;
    report(&outcomes, args.report.json, args.verbose_agreement)?;
    if !args.report.json && !args.report.quiet {
        figures::show_some(&selected, &args.out)?;
    }
    if cancel.load(Ordering::Relaxed) {
        let what = "interrupted; the finished runs are kept and judged";
        return Err(Failure::failed(format!("{what} in {}", args.out.display())));
    }
    finish(&outcomes, args.strict)
}

fn jobs(asked: Option<u16>) -> NonZeroUsize {
    let asked = asked.and_then(|jobs| NonZeroUsize::new(usize::from(jobs)));
    asked.unwrap_or_else(all_processors)
}

fn extent(quick: bool, seeds: Option<&Seeds>) -> Extent {
    Extent { quick, seeds: seeds.map(|seeds| seeds.0.clone()) }
}

/// Says before long work how many runs there are and how long they may take.
fn announce(plans: &Plans<'_>, jobs: NonZeroUsize, cancel: &AtomicBool) {
    let runs = |kind: fn(&Kind) -> bool| -> usize {
        let of_kind = plans.iter().filter(|(experiment, _)| kind(&experiment.kind));
        of_kind.map(|(_, plan)| plan.runs()).sum()
    };
    let real = runs(|kind| *kind == Kind::Realtime);
    let all = runs(|_| true);
    if all < MANY_RUNS && real == 0 {
        return;
    }
    let mut text = match plans.len() {
        1 => count(all, "run"),
        many => format!("{} of {}", count(all, "run"), count(many, "experiment")),
    };
    if all - real >= MANY_RUNS
        && let Some(estimate) = estimate(plans, jobs, TRIALS, &|| Instant::now().into_std(), cancel)
    {
        let threads = count(jobs.get(), "thread");
        let time = time(estimate.time.as_secs_f64());
        text += &format!("; about {time} with {threads}, as {} trial runs say", estimate.tried);
    }
    if real > 0 {
        text += &format!("; {} of them last as long as their transfers", thousands(real));
    }
    eprintln!("{}", wrapped(&(text + "."), columns(), 0));
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{} {what}s", thousands(number)) }
}

fn show_progress(bar: &mut RunsBar, progress: Progress<'_>) {
    let failed = match progress.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    bar.set(progress.done, progress.planned, format!("{}{failed}", progress.experiment));
}

fn judge(args: &JudgeArgs) -> Result<()> {
    let experiments = find(&args.experiments)?;
    let selected = experiments.select(&args.ids).map_err(wrong)?;
    let options = Options {
        out: args.out.clone(),
        jobs: NonZeroUsize::MIN,
        extent: Extent::default(),
        realtime: None,
    };
    let outcomes = lab::judge(&experiments, &selected, &options).map_err(wrong)?;
    report(&outcomes, args.report.json, args.verbose_agreement)?;
    finish(&outcomes, args.strict)
}

fn report(outcomes: &[Outcome], is_json: bool, all_points: bool) -> Result<()> {
    if !is_json {
        return print(&print::outcomes(outcomes, all_points, columns()));
    }
    let lines = outcomes.iter().map(|outcome| serde_json::to_string(outcome).map(|l| l + "\n"));
    let text: std::result::Result<String, _> = lines.collect();
    print(&text.map_err(|e| Failure::failed(e.to_string()))?)
}

/// Says what makes the command fail: runs without a result, and with `--strict` any claim but those
/// that hold.
fn finish(outcomes: &[Outcome], is_strict: bool) -> Result<()> {
    let failed: Vec<_> = outcomes.iter().flat_map(|outcome| &outcome.failed).collect();
    if let Some(first) = failed.first() {
        let what = format!("{} runs failed, the first: {}", failed.len(), first.error);
        return Err(Failure::failed(what).hint(first.command.clone()));
    }
    let tally = Tally::of(outcomes.iter().flat_map(|outcome| &outcome.judgements));
    if is_strict && tally.hold < tally.all {
        return Err(Failure::failed(not_strict(&tally)));
    }
    Ok(())
}

/// The claims for which `--strict` fails: `of 9 claims 2 do not hold, 1 cannot be decided`.
fn not_strict(tally: &Tally) -> String {
    let kinds = [
        (tally.fail, if tally.fail == 1 { "does not hold" } else { "do not hold" }),
        (tally.undecided, "cannot be decided"),
        (tally.not_run, if tally.not_run == 1 { "was not run" } else { "were not run" }),
    ];
    let kinds = kinds.into_iter().filter(|(count, _)| *count > 0);
    let kinds = kinds.map(|(count, words)| format!("{count} {words}")).collect::<Vec<_>>();
    format!("of {} claims {}", tally.all, kinds.join(", "))
}
