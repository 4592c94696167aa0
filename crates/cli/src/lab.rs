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
use std::sync::atomic::Ordering;

use indicatif::ProgressBar;
use manypath_lab::claims::Verdict;
use manypath_lab::experiment::{Experiment, Kind};
use manypath_lab::lab::{self, Options, Outcome, Progress};
use manypath_lab::placebo::is_placebo;
use manypath_lab::plan::{Extent, Plan, PlannedPoint};
use manypath_lab::runner::all_processors;
use manypath_realtime::planner::{Realtime, VARIANTS};
use serde_json::json;

use find::{find, wrong};
use print::Size;

use crate::args::lab::{JudgeArgs, LabCommand, ListArgs, RunArgs, Seeds};
use crate::failure::{Failure, Result};
use crate::runs::{cancel_on_ctrl_c, progress_bar};
use crate::show::print;

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
        return print(&print::list(&rows));
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
    let bar = progress_bar(args.report.quiet || args.report.json);
    let (cancel, outcomes) = match &args.on {
        Some(on) => {
            // Real transfers need a machine that does nothing else.
            options.realtime = None;
            let outcomes = spread::run(&experiments, on, args, &mut options, &bar);
            (Arc::default(), outcomes)
        }
        None => {
            let cancel = cancel_on_ctrl_c()?;
            let mut show = |progress: Progress<'_>| show_progress(&bar, progress);
            let outcomes = lab::run(&experiments, &selected, &options, &cancel, &mut show);
            (cancel, outcomes.map_err(wrong))
        }
    };
    bar.finish_and_clear();
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

fn show_progress(bar: &ProgressBar, progress: Progress<'_>) {
    bar.set_length(progress.planned as u64);
    bar.set_position(progress.done as u64);
    let failed = match progress.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    bar.set_message(format!("{}{failed}", progress.experiment));
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
        return print(&print::outcomes(outcomes, all_points));
    }
    let lines = outcomes.iter().map(|outcome| serde_json::to_string(outcome).map(|l| l + "\n"));
    let text: std::result::Result<String, _> = lines.collect();
    print(&text.map_err(|e| Failure::failed(e.to_string()))?)
}

/// Says what makes the command fail: runs without a result, and with `--strict` claims that do not
/// hold.
fn finish(outcomes: &[Outcome], is_strict: bool) -> Result<()> {
    let failed: Vec<_> = outcomes.iter().flat_map(|outcome| &outcome.failed).collect();
    if let Some(first) = failed.first() {
        let what = format!("{} runs failed, the first: {}", failed.len(), first.error);
        return Err(Failure::failed(what).hint(first.command.clone()));
    }
    let judged = || outcomes.iter().flat_map(|outcome| &outcome.judgements);
    let unmet = judged().filter(|j| j.verdict != Verdict::Holds).count();
    if is_strict && unmet > 0 {
        return Err(Failure::failed(format!("{unmet} of {} claims do not hold", judged().count())));
    }
    Ok(())
}
