//! `manypath lab plan`, `exec` and `collect`: runs spread over machines.

use std::num::NonZeroUsize;
use std::sync::atomic::Ordering;

use manypath_lab::experiment::Experiment;
use manypath_lab::lab::{self, Options, Progress};
use manypath_lab::plan::Extent;
use manypath_lab::shard;
use manypath_realtime::planner::Realtime;
use serde_json::json;

use super::find::{find, wrong};
use super::{extent, finish, jobs, report, show_progress};
use crate::args::lab::{CollectArgs, ExecArgs, PlanArgs};
use crate::failure::{Failure, Result};
use crate::runs::{RunsBar, cancel_on_ctrl_c};
use crate::screen::output::print;

pub(super) fn plan(args: &PlanArgs) -> Result<()> {
    let experiments = find(&args.experiments)?;
    let selected = experiments.select(&args.ids).map_err(wrong)?;
    let realtime = realtime()?;
    let plan_realtime =
        |experiment: &Experiment, extent: &Extent| realtime.plan(experiment, extent);
    let options = Options {
        out: Default::default(),
        jobs: NonZeroUsize::MIN,
        extent: extent(args.quick, args.seeds.as_ref()),
        realtime: Some(&plan_realtime),
    };
    let plans = lab::plan(&experiments, &selected, &options).map_err(wrong)?;
    let tasks = shard::tasks(&plans);
    let of = args.shards as usize;
    let mut text = String::new();
    if args.report.json {
        for task in &tasks {
            let params: serde_json::Map<_, _> = task
                .point
                .params
                .iter()
                .map(|(name, value)| (name.clone(), json!(value)))
                .collect();
            let object = json!({
                "task": task.id,
                "experiment": task.experiment.id,
                "variant": &*task.point.variant,
                "params": params,
                "seed": task.seed,
                "shard": task.shard(of).to_string(),
                "command": format!("{} --seeds {}..{}", task.point.command, task.seed, task.seed),
            });
            text += &format!("{object}\n");
        }
        return print(&text);
    }
    for (experiment, plan) in &plans {
        let (points, runs) = (plan.points.len(), plan.runs());
        text += &format!("{:<24} {runs:>6} runs of {points} points\n", experiment.id);
    }
    let mut counts = vec![0_usize; of];
    for task in &tasks {
        counts[task.shard(of).index()] += 1;
    }
    let (least, most) = (counts.iter().min().unwrap_or(&0), counts.iter().max().unwrap_or(&0));
    text += &match of {
        1 => format!("{} runs\n", tasks.len()),
        _ => format!("{} runs, {least} to {most} in each of {of} shards\n", tasks.len()),
    };
    print(&text)
}

pub(super) fn execute(args: &ExecArgs) -> Result<()> {
    let experiments = find(&args.experiments)?;
    let realtime = realtime()?;
    let plan_realtime =
        |experiment: &Experiment, extent: &Extent| realtime.plan(experiment, extent);
    let options = Options {
        out: Default::default(),
        jobs: jobs(args.jobs),
        extent: extent(args.quick, args.seeds.as_ref()),
        realtime: Some(&plan_realtime),
    };
    let cancel = cancel_on_ctrl_c()?;
    let mut bar = RunsBar::new(args.report.quiet || args.report.json);
    let mut show = |progress: Progress<'_>| show_progress(&mut bar, progress);
    let (ids, shard, part) = (&args.ids, args.shard, &args.out);
    let executed = shard::execute(&experiments, ids, shard, part, &options, &cancel, &mut show);
    bar.end();
    let executed = executed.map_err(wrong)?;
    let place = part.display();
    if args.report.json {
        print(&format!(
            "{}\n",
            json!({ "part": place.to_string(), "shard": shard, "runs": executed })
        ))?;
    } else if !args.report.quiet {
        let found = match executed.found {
            0 => String::new(),
            found => format!(", {found} were there before"),
        };
        print(&format!("{place}: {} runs made{found}\n", executed.made))?;
    }
    if cancel.load(Ordering::Relaxed) {
        let what = format!("interrupted; the finished runs are kept in {place}");
        return Err(Failure::failed(what).hint("repeat the command to make the others"));
    }
    match executed.failed {
        0 => Ok(()),
        failed => Err(Failure::failed(format!("{failed} runs failed"))
            .hint("`manypath lab collect` names each, with the command that repeats it")),
    }
}

pub(super) fn collect(args: &CollectArgs) -> Result<()> {
    let experiments = find(&args.experiments)?;
    let realtime = realtime()?;
    let plan_realtime =
        |experiment: &Experiment, extent: &Extent| realtime.plan(experiment, extent);
    let mut options = Options {
        out: args.out.clone(),
        jobs: NonZeroUsize::MIN,
        extent: Extent::default(),
        realtime: Some(&plan_realtime),
    };
    let mut bar = RunsBar::new(args.report.quiet || args.report.json);
    let mut show = |progress: Progress<'_>| show_progress(&mut bar, progress);
    let outcomes = shard::collect(&experiments, &args.parts, &mut options, &mut show);
    bar.end();
    let outcomes = outcomes.map_err(wrong)?;
    report(&outcomes, args.report.json, args.verbose_agreement)?;
    finish(&outcomes, args.strict)
}

fn realtime() -> Result<Realtime> {
    Realtime::start()
        .map_err(|e| Failure::failed(format!("cannot start threads for transfers: {e}")))
}
