//! Runs experiments, keeps their results, judges their claims.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::claims::{Evidence, Judgement};
use crate::error::LabError;
use crate::experiment::{Experiment, Experiments, Kind};
use crate::memo::Memo;
use crate::plan::{Extent, Plan, PlannedPoint, RunData};
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
pub(crate) type Runs = BTreeMap<String, (About, Table)>;

/// Experiments with their runs.
pub type Plans<'a> = Vec<(&'a Experiment, Plan)>;

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
    let plans = plan(experiments, selected, options)?;
    run_plans(experiments, selected, &plans, options, cancel, progress)
}

/// Runs what [`plan`] planned for these experiments, as [`run`] does.
///
/// # Errors
///
/// If results cannot be written.
pub fn run_plans(
    experiments: &Experiments,
    selected: &[&Experiment],
    plans: &Plans<'_>,
    options: &Options<'_>,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Outcome>, LabError> {
    let mut ledger = Ledger::begin(plans, options)?;
    let runs = runs_of(plans);
    let memo = Memo::expecting(runs.iter().map(|run| (run.point, run.seed)));
    let work = |number: usize| {
        let Run { experiment, point, seed, .. } = runs.get(number).ok_or("no such run")?;
        memo.run(point, *seed, experiment.sampling(&point.seeds, *seed))
    };
    run_in_order(runs.len(), options.jobs, cancel, work, |number, result| {
        let Some(run) = runs.get(number) else { return };
        ledger.push(number, result);
        let (done, planned, failed) = (number + 1, runs.len(), ledger.failed);
        progress(Progress { done, planned, failed, experiment: &run.experiment.id });
    });
    let (results, failed) = ledger.finish()?;
    judge_all(experiments, selected, options, results, &failed)
}

/// Plans the runs that these experiments need: their own, or those of the experiment from which
/// they borrow.
///
/// # Errors
///
/// If a scenario is wrong.
pub fn plan<'a>(
    experiments: &'a Experiments,
    selected: &[&'a Experiment],
    options: &Options<'_>,
) -> Result<Plans<'a>, LabError> {
    let named = |parameter: &str| {
        let claims = experiments.all().iter().flat_map(|e| &e.claims);
        claims.flat_map(|claim| claim.values_of(parameter)).map(str::to_owned).collect()
    };
    let mut plans = Vec::new();
    for experiment in with_runs(experiments, selected) {
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
    Ok(plans)
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

/// A run of several plans.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    /// Its plan.
    plan: usize,
    pub experiment: &'a Experiment,
    pub point: &'a PlannedPoint,
    pub seed: u64,
}

/// All runs of these plans in one row, so that threads do not wait between experiments.
pub(crate) fn runs_of<'a>(plans: &'a Plans<'a>) -> Vec<Run<'a>> {
    let of = |(plan, (experiment, own)): (usize, &'a (&'a Experiment, Plan))| {
        own.points.iter().flat_map(move |point| {
            point.seeds.iter().map(move |&seed| Run { plan, experiment, point, seed })
        })
    };
    plans.iter().enumerate().flat_map(of).collect()
}

/// Takes the results of all runs, in order, and writes the files.
pub(crate) struct Ledger<'a> {
    runs: Vec<Run<'a>>,
    out: &'a Path,
    /// Of the experiments that are not over.
    open: Vec<Option<Results>>,
    over: Runs,
    failed: usize,
    all_failed: Vec<FailedRun>,
    trouble: Option<LabError>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn begin(
        plans: &'a Plans<'a>,
        options: &'a Options<'_>,
    ) -> Result<Ledger<'a>, LabError> {
        let begin = |(experiment, plan): &(&Experiment, Plan)| {
            Results::begin(&options.out, experiment, plan, options.extent.quick).map(Some)
        };
        Ok(Ledger {
            runs: runs_of(plans),
            out: &options.out,
            open: plans.iter().map(begin).collect::<Result<_, _>>()?,
            over: Runs::new(),
            failed: 0,
            all_failed: Vec::new(),
            trouble: None,
        })
    }

    /// Runs without a result until now.
    pub(crate) fn failed(&self) -> usize {
        self.failed
    }

    /// Takes the result of run `number`; they come in order.
    pub(crate) fn push(&mut self, number: usize, result: Result<RunData, String>) {
        let Some(&Run { plan, point, seed, .. }) = self.runs.get(number) else { return };
        self.failed += usize::from(result.is_err());
        if let Some(Some(results)) = self.open.get_mut(plan)
            && let Err(error) = results.push(point, seed, result)
        {
            let remedy = "make room, or use another folder with `--out`";
            self.trouble.get_or_insert(LabError::file(self.out, error, remedy));
        }
        let is_last = self.runs.get(number + 1).is_none_or(|next| next.plan != plan);
        let over = if is_last { self.open.get_mut(plan).and_then(Option::take) } else { None };
        if let Some(Err(error)) = over.map(|results| self.close(results)) {
            self.trouble.get_or_insert(error);
        }
    }

    fn close(&mut self, results: Results) -> Result<(), LabError> {
        let (about, table, failed) = results.finish()?;
        self.all_failed.extend(failed);
        self.over.insert(about.id.clone(), (about, table));
        Ok(())
    }

    /// Writes what is left; experiments that were interrupted keep the runs that they have.
    pub(crate) fn finish(mut self) -> Result<(Runs, Vec<FailedRun>), LabError> {
        for results in std::mem::take(&mut self.open).into_iter().flatten() {
            self.close(results)?;
        }
        match self.trouble {
            Some(error) => Err(error),
            None => Ok((self.over, self.all_failed)),
        }
    }
}

pub(crate) fn judge_all(
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
