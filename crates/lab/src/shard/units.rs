//! The runs of a plan for a scheduler of tasks, which spreads them over its workers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use super::part::{Header, Line, Part};
use super::{Shard, tasks};
use crate::error::LabError;
use crate::experiment::Experiments;
use crate::lab::{Options, Plans, plan, runs_of};
use crate::memo::Memo;

/// Runs that one worker makes together, because one may give the result of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The hashes of all that their results depend on, in the order of the plan.
    pub tasks: Vec<String>,
    /// The command that repeats the first of them.
    pub command: String,
}

/// A plan in units. Each worker has one of its own; equal tasks have equal results.
pub struct Work<'a> {
    plans: Plans<'a>,
    header: Header,
    /// The number of each task in the plan.
    numbers: BTreeMap<String, usize>,
    units: Vec<Unit>,
}

impl<'a> Work<'a> {
    /// Plans the runs of these experiments.
    ///
    /// # Errors
    ///
    /// If a name selects no experiment or a scenario is wrong.
    pub fn new(
        experiments: &'a Experiments,
        ids: &[String],
        options: &Options<'_>,
    ) -> Result<Work<'a>, LabError> {
        let plans = plan(experiments, &experiments.select(ids)?, options)?;
        let (mut numbers, mut units) = (BTreeMap::new(), Vec::<Unit>::new());
        let mut places = BTreeMap::new();
        for (number, task) in tasks(&plans).into_iter().enumerate() {
            numbers.insert(task.id.clone(), number);
            let place = *places.entry(task.key).or_insert(units.len());
            match units.get_mut(place) {
                Some(unit) => unit.tasks.push(task.id),
                None => units.push(Unit {
                    tasks: vec![task.id],
                    command: format!("{} --seeds {1}..{1}", task.point.command, task.seed),
                }),
            }
        }
        let whole = Shard { index: 0, of: 1 };
        let header = Header::new(ids, &options.extent, whole);
        Ok(Work { plans, header, numbers, units })
    }

    /// All units, in the order of the plan.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Makes the runs of a unit: their lines of a part.
    ///
    /// # Errors
    ///
    /// If a task is not of this plan: the experiments or the engine are not the same.
    pub fn run(&self, unit: &[String]) -> Result<Vec<String>, LabError> {
        let all = runs_of(&self.plans);
        let mut runs = Vec::with_capacity(unit.len());
        for task in unit {
            let run = self.numbers.get(task).and_then(|number| all.get(*number));
            let Some(run) = run else {
                return Err(LabError {
                    place: format!("task {task}"),
                    what: "it is not of this plan".to_owned(),
                    remedy: "give every worker the same experiments and program".to_owned(),
                });
            };
            runs.push((task, run));
        }
        let memo = Memo::expecting(runs.iter().map(|(_, run)| (run.point, run.seed)));
        let line = |(task, run): &(&String, &crate::lab::Run<'_>)| {
            let sampling = run.experiment.sampling(&run.point.seeds, run.seed);
            let result = memo.run(run.point, run.seed, sampling);
            let line = Line::new(task, result.as_ref());
            line.and_then(|line| serde_json::to_string(&line)).map_err(|e| LabError {
                place: format!("task {task}"),
                what: e.to_string(),
                remedy: "report it: a result that is no JSON".to_owned(),
            })
        };
        runs.iter().map(line).collect()
    }

    /// Opens the file that keeps what workers made, in a folder; it is a part of the only shard.
    ///
    /// # Errors
    ///
    /// If it is of other runs or cannot be written.
    pub fn open(&self, folder: &Path) -> Result<Kept, LabError> {
        let path = folder.join(self.header.file_name());
        let part = Part::open(&path, &self.header)?;
        let known = part.known.keys().cloned().collect();
        Ok(Kept { path, known, part: Mutex::new(part) })
    }
}

/// The results of workers, in a file.
pub struct Kept {
    /// The file.
    pub path: PathBuf,
    /// Tasks with a result when it was opened.
    pub known: BTreeSet<String>,
    part: Mutex<Part>,
}

impl Kept {
    /// Adds the lines of a unit, as [`Work::run`] gives them.
    ///
    /// # Errors
    ///
    /// If one is no line of a part, or the file cannot be written.
    pub fn push(&self, lines: &[String]) -> Result<(), LabError> {
        let bad = |error: &dyn std::fmt::Display| {
            LabError::file(&self.path, error, "make room, then repeat the command")
        };
        let mut part = self.part.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        for line in lines {
            let line: Line = serde_json::from_str(line).map_err(|e| bad(&e))?;
            part.push(&line).map_err(|e| bad(&e))?;
        }
        Ok(())
    }

    /// Notes that tasks have no result.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn fail(&self, tasks: &[String], why: &str) -> Result<(), LabError> {
        let line = |task: &String| serde_json::to_string(&Line::failed(task, why));
        let lines: Result<Vec<_>, _> = tasks.iter().map(line).collect();
        self.push(&lines.map_err(|e| LabError::file(&self.path, e, "report it"))?)
    }
}

#[cfg(test)]
mod tests;
