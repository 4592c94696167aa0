//! Runs experiments, keeps their results, judges their claims.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use crate::claims::{Evidence, Judgement};
use crate::error::LabError;
use crate::experiment::{Experiment, Experiments, Kind};
use crate::memo::Memo;
use crate::plan::{Extent, Plan};
use crate::reference::{Agreement, compare};
use crate::results::{About, FailedRun, Results, load, write_judgements};
use crate::runner::run_in_order;
use crate::table::Table;

/// Plans the runs of an experiment that needs real endpoints; the command line has these.
pub type RealtimePlanner<'a> = &'a dyn Fn(&Experiment, &Extent) -> Result<Plan, LabError>;

/// How experiments are run.
pub struct Options<'a> {
    /// The folder of the results; each experiment has one in it.
    pub out: PathBuf,
    /// How many runs at a time.
    pub jobs: NonZeroUsize,
    /// Which runs.
    pub extent: Extent,
    /// How experiments in real time are run; without it they are not.
    pub realtime: Option<RealtimePlanner<'a>>,
}

/// How far the runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress<'a> {
    /// Runs done, failed ones included.
    pub done: usize,
    /// Runs planned.
    pub planned: usize,
    /// Runs failed.
    pub failed: usize,
    /// The experiment of the last run.
    pub experiment: &'a str,
}

/// The outcome of one experiment.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Outcome {
    /// The contents of `experiment.json`.
    pub about: About,
    /// Its claims with their verdicts.
    pub judgements: Vec<Judgement>,
    /// How our means compare with the reference.
    pub agreements: Vec<Agreement>,
    /// Means of the reference without runs of ours.
    pub not_compared: usize,
    /// Runs without a result.
    pub failed: Vec<FailedRun>,
}

/// The runs at hand, by experiment.
type Runs = BTreeMap<String, (About, Table)>;

/// Runs experiments and judges them. When `cancel` becomes true the current runs are finished,
/// and the finished ones are kept and judged.
///
/// # Errors
///
/// If a scenario is wrong or results cannot be written.
pub fn run(
    experiments: &Experiments,
    selected: &[&Experiment],
    options: &Options<'_>,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Outcome>, LabError> {
    let to_run = with_runs(experiments, selected);
    let named = |parameter: &str| {
        let claims = experiments.all().iter().flat_map(|e| &e.claims);
        claims.flat_map(|claim| claim.values_of(parameter)).map(str::to_owned).collect()
    };
    let mut plans = Vec::new();
    for experiment in to_run {
        let plan = match (experiment.kind, options.realtime) {
            (Kind::Simulated | Kind::Overlay, _) => {
                Plan::of_scenarios(experiment, &options.extent, &named)?
            }
            (Kind::Realtime, Some(plan)) => plan(experiment, &options.extent)?,
            (Kind::Realtime, None) => continue,
        };
        plans.push((experiment, plan));
    }
    // Those go on by themselves: waiting for them comes last.
    plans.sort_by_key(|(experiment, _)| experiment.kind == Kind::Realtime);
    let (runs, failed) = run_plans(&plans, options, cancel, progress)?;
    judge_all(experiments, selected, options, runs, &failed)
}

/// Judges the results of earlier runs again.
///
/// # Errors
///
/// If results cannot be read or written.
pub fn judge(
    experiments: &Experiments,
    selected: &[&Experiment],
    options: &Options<'_>,
) -> Result<Vec<Outcome>, LabError> {
    judge_all(experiments, selected, options, Runs::new(), &[])
}

/// The experiments whose runs these need: themselves, or those that they borrow from; each once.
fn with_runs<'a>(experiments: &'a Experiments, selected: &[&'a Experiment]) -> Vec<&'a Experiment> {
    let mut found: Vec<&Experiment> = Vec::new();
    for experiment in selected {
        let owner = experiment.runs_of.as_deref().and_then(|id| experiments.get(id));
        let owner = owner.unwrap_or(experiment);
        if !found.iter().any(|other| other.id == owner.id) {
            found.push(owner);
        }
    }
    found
}

fn run_plans(
    plans: &[(&Experiment, Plan)],
    options: &Options<'_>,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<(Runs, Vec<FailedRun>), LabError> {
    // All runs in one row, so that the threads do not wait between experiments.
    let mut jobs = Vec::new();
    let mut open = Vec::new();
    for (number, (experiment, plan)) in plans.iter().enumerate() {
        let quick = options.extent.quick;
        open.push(Some(Results::begin(&options.out, experiment, plan, quick)?));
        for point in &plan.points {
            jobs.extend(point.seeds.iter().map(|seed| (number, point, *seed)));
        }
    }
    let memo = Memo::expecting(plans.iter().flat_map(|(_, plan)| &plan.points));
    let work = |job: usize| {
        let job = jobs.get(job).and_then(|job| Some((job, plans.get(job.0)?)));
        let ((_, point, seed), (experiment, _)) = job.ok_or("no such run")?;
        memo.run(point, *seed, experiment.sampling(&point.seeds, *seed))
    };
    let (mut runs, mut all_failed) = (Runs::new(), Vec::new());
    let mut trouble: Option<LabError> = None;
    let mut failed = 0;
    let mut finish = |results: Results| {
        let (about, table, failed) = results.finish()?;
        all_failed.extend(failed);
        runs.insert(about.id.clone(), (about, table));
        Ok(())
    };
    run_in_order(jobs.len(), options.jobs, cancel, work, |job, result| {
        let Some((number, point, seed)) = jobs.get(job) else { return };
        failed += usize::from(result.is_err());
        let Some((experiment, _)) = plans.get(*number) else { return };
        if let Some(Some(results)) = open.get_mut(*number)
            && let Err(error) = results.push(point, *seed, result)
        {
            let remedy = "make room, or use another folder with `--out`";
            trouble.get_or_insert(LabError::file(&options.out, error, remedy));
        }
        let is_last = jobs.get(job + 1).is_none_or(|(next, ..)| next != number);
        let done = if is_last { open.get_mut(*number).and_then(Option::take) } else { None };
        if let Some(Err(error)) = done.map(&mut finish) {
            trouble.get_or_insert(error);
        }
        let (done, planned) = (job + 1, jobs.len());
        progress(Progress { done, planned, failed, experiment: &experiment.id });
    });
    for results in open.into_iter().flatten() {
        finish(results)?;
    }
    match trouble {
        Some(error) => Err(error),
        None => Ok((runs, all_failed)),
    }
}

fn judge_all(
    experiments: &Experiments,
    selected: &[&Experiment],
    options: &Options<'_>,
    mut runs: Runs,
    failed: &[FailedRun],
) -> Result<Vec<Outcome>, LabError> {
    let needed = selected.iter().flat_map(|e| {
        let others = e.claims.iter().flat_map(|claim| claim.experiments());
        others.chain(e.runs_of.as_deref()).chain([e.id.as_str()])
    });
    for id in needed {
        let Some(experiment) = experiments.get(id) else { continue };
        if !runs.contains_key(&experiment.id)
            && let Some(earlier) = load(&options.out, experiment)?
        {
            runs.insert(experiment.id.clone(), earlier);
        }
    }
    let mut outcomes = Vec::new();
    for experiment in selected {
        let outcome = judge_one(experiments, experiment, options, &runs, failed);
        let folder = options.out.join(&experiment.id);
        write_judgements(&folder, &outcome.about, &outcome.judgements, &outcome.agreements)?;
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

fn judge_one(
    experiments: &Experiments,
    experiment: &Experiment,
    options: &Options<'_>,
    runs: &Runs,
    failed: &[FailedRun],
) -> Outcome {
    let owner = experiment.runs_of.as_deref().and_then(|id| experiments.get(id));
    let owner = owner.unwrap_or(experiment);
    let (no_runs, no_table) = (About::new(experiment, &Plan::default(), false), Table::new());
    let mut borrowed = Table::new();
    let (about, table) = match runs.get(&owner.id) {
        Some((about, table)) if owner.id == experiment.id => (about.clone(), table),
        Some((about, table)) => {
            borrowed.clone_from(table);
            borrowed.counts_incomplete = experiment.counts_incomplete;
            borrowed.derive(&experiment.derived);
            borrowed.regroup(&experiment.groups);
            (about.borrowed(experiment), &borrowed)
        }
        None => (no_runs, &no_table),
    };
    let other = |id: &str| {
        let id = experiments.get(id).map_or(id, |experiment| experiment.id.as_str());
        runs.get(id).map(|(_, table)| table)
    };
    let quick = about.quick || options.extent.quick;
    let reference = &experiment.reference;
    let placebos = &owner.placebos;
    let evidence = Evidence { table, other: &other, reference, placebos, quick };
    let judgements = experiment.claims.iter().map(|claim| claim.judge(&evidence)).collect();
    let (agreements, not_compared) = compare(reference, table);
    let failed = failed.iter().filter(|run| run.experiment == owner.id).cloned().collect();
    Outcome { about, judgements, agreements, not_compared, failed }
}

#[cfg(test)]
mod tests;
