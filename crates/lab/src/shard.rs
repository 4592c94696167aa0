//! Runs spread over machines. Each shard makes some runs of a plan and writes them to a part, a
//! file; the parts together give the files that [`lab::run`](crate::lab::run) writes.
//!
//! A part is JSON lines. The first says of what it is a part, each other one is a run:
//! `docs/laboratory.md` describes them.

mod part;
mod units;

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::engine;
use crate::error::LabError;
use crate::experiment::{Experiment, Experiments};
use crate::lab::{Ledger, Options, Outcome, Plans, Progress, Run, judge_all, plan, runs_of};
use crate::memo::Memo;
use crate::plan::PlannedPoint;
use crate::runner::run_in_order;

use part::{Header, Line, Part, Runs};
pub use units::{Kept, Unit, Work};

/// One of several shards; shows as `3/7`, the third of seven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    /// From 0 on.
    index: usize,
    of: usize,
}

impl Shard {
    /// Its place among the others, from 0 on.
    pub fn index(self) -> usize {
        self.index
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let parts = text.split_once('/');
        let numbers = parts.and_then(|(n, of)| Some((n.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((n @ 1.., of)) if n <= of && of <= MOST_SHARDS => Ok(Shard { index: n - 1, of }),
            _ => {
                Err(format!("write the shard and their number, such as 3/7; at most {MOST_SHARDS}"))
            }
        }
    }
}

/// More than any cluster has processors.
const MOST_SHARDS: usize = 1_000_000;

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.of)
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Shard, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}

/// A run of a plan.
pub struct Task<'a> {
    /// A hash of all that its result depends on: the engine, the scenario, the point and the seed.
    pub id: String,
    /// Its experiment.
    pub experiment: &'a Experiment,
    /// Its point.
    pub point: &'a PlannedPoint,
    /// Its seed.
    pub seed: u64,
    /// Runs with the same key are made by the same shard. One may give the result of another.
    key: u128,
}

impl Task<'_> {
    /// The one of `of` shards that makes it.
    pub fn shard(&self, of: usize) -> Shard {
        Shard { index: (self.key % of as u128) as usize, of }
    }
}

/// The runs of these plans, in their order.
pub fn tasks<'a>(plans: &'a Plans<'a>) -> Vec<Task<'a>> {
    let task = |(number, run): (usize, Run<'a>)| {
        let Run { experiment, point, seed, .. } = run;
        let identity = point.run.identity();
        let scenario = identity.map(|identity| (identity.group(), identity.hash()));
        let sampling = experiment.sampling(&point.seeds, seed);
        let place = (&experiment.id, &point.variant, &point.params, seed);
        let input = format!("{} {place:?} {scenario:?} {sampling:?}", engine::fingerprint());
        let key = match scenario {
            Some((group, _)) => group.wrapping_add(u128::from(seed)),
            None => number as u128,
        };
        let id = format!("{:032x}", xxh3_128(input.as_bytes()));
        Task { id, experiment, point, seed, key }
    };
    runs_of(plans).into_iter().enumerate().map(task).collect()
}

/// The work of a shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Executed {
    /// Runs of the shard.
    pub tasks: usize,
    /// Of these, those that the part had before.
    pub found: usize,
    /// Runs made.
    pub made: usize,
    /// Of these, those without a result.
    pub failed: usize,
}

/// Makes the runs of a shard and writes them to a part. If the part is there, because its shard was
/// stopped, only the runs that it lacks are made; those that failed are made again.
///
/// # Errors
///
/// If a scenario is wrong, the file is a part of something else, or cannot be written.
pub fn execute(
    experiments: &Experiments,
    ids: &[String],
    shard: Shard,
    part: &Path,
    options: &Options<'_>,
    cancel: &AtomicBool,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Executed, LabError> {
    let plans = plan(experiments, &experiments.select(ids)?, options)?;
    let mut out = Part::open(part, &Header::new(ids, &options.extent, shard))?;
    let own: Vec<_> =
        tasks(&plans).into_iter().filter(|task| task.shard(shard.of) == shard).collect();
    let open: Vec<_> = own.iter().filter(|task| !out.known.contains_key(&task.id)).collect();
    let memo = Memo::expecting(open.iter().map(|task| (task.point, task.seed)));
    let work = |job: usize| {
        let Task { experiment, point, seed, .. } = open.get(job).ok_or("no such run")?;
        memo.run(point, *seed, experiment.sampling(&point.seeds, *seed))
    };
    let found = own.len() - open.len();
    let mut executed = Executed { tasks: own.len(), found, ..Executed::default() };
    let mut trouble = None;
    run_in_order(open.len(), options.jobs, cancel, work, |job, result| {
        let Some(task) = open.get(job) else { return };
        executed.made += 1;
        executed.failed += usize::from(result.is_err());
        let line = Line::new(&task.id, result.as_ref()).map_err(std::io::Error::from);
        if let Err(error) = line.and_then(|line| out.push(&line)) {
            trouble.get_or_insert(error);
            cancel.store(true, Ordering::Relaxed);
        }
        let Executed { made, failed, .. } = executed;
        let (done, planned) = (found + made, own.len());
        progress(Progress { done, planned, failed, experiment: &task.experiment.id });
    });
    match trouble {
        Some(error) => Err(LabError::file(part, error, "make room, then repeat the command")),
        None => Ok(executed),
    }
}

/// Puts parts together: writes the files that [`lab::run`](crate::lab::run) writes, and judges.
/// Parts of the same shard may be given more than once.
///
/// # Errors
///
/// If a part cannot be read, parts are not of the same runs or of another engine, runs are missing,
/// two parts give different results, or files cannot be written.
pub fn collect(
    experiments: &Experiments,
    parts: &[PathBuf],
    options: &mut Options<'_>,
    progress: &mut dyn FnMut(Progress<'_>),
) -> Result<Vec<Outcome>, LabError> {
    let mut first: Option<(&Path, Header)> = None;
    let (mut runs, mut shards) = (Runs::new(), Vec::new());
    for part in parts {
        let (header, own, _) = part::read(part)?;
        shards.push(header.shard);
        let engine = engine::fingerprint();
        if header.engine != engine {
            let what = format!("engine {} made it, and this is {engine}", header.engine);
            return Err(LabError::file(part, what, "make it again with this program"));
        }
        match &first {
            Some((path, other)) if !other.is_of_same(&header) => {
                let what = format!("it is not of the same runs as {}", path.display());
                return Err(LabError::file(part, what, "name the parts of one plan only"));
            }
            Some(_) => {}
            None => first = Some((part, header)),
        }
        for (task, result) in own {
            match runs.get(&task) {
                Some(Ok(other)) if result.as_ref().is_ok_and(|own| own != other) => {
                    let what = format!("run {task} has another result than in an earlier part");
                    return Err(LabError::file(part, what, "make both parts again"));
                }
                Some(Ok(_)) => {}
                _ => {
                    runs.insert(task, result);
                }
            }
        }
    }
    let Some((_, header)) = first else { return Ok(Vec::new()) };
    options.extent = header.extent();
    let selected = experiments.select(&header.ids)?;
    let plans = plan(experiments, &selected, options)?;
    let tasks = tasks(&plans);
    check_complete(&tasks, &runs, &header, &shards)?;
    let mut ledger = Ledger::begin(&plans, options)?;
    for (done, task) in tasks.iter().enumerate() {
        ledger.push(done, runs.remove(&task.id).unwrap_or_else(|| Err("missing".to_owned())));
        let (failed, experiment) = (ledger.failed(), task.experiment.id.as_str());
        progress(Progress { done: done + 1, planned: tasks.len(), failed, experiment });
    }
    let (runs, failed) = ledger.finish()?;
    judge_all(experiments, &selected, options, runs, &failed)
}

fn check_complete(
    tasks: &[Task<'_>],
    runs: &Runs,
    header: &Header,
    shards: &[Shard],
) -> Result<(), LabError> {
    let missing: Vec<_> = tasks.iter().filter(|task| !runs.contains_key(&task.id)).collect();
    let Some(first) = missing.first() else { return Ok(()) };
    let of = header.shard.of;
    let mut open: Vec<_> = missing.iter().map(|task| task.shard(of)).collect();
    open.sort_by_key(|shard| shard.index);
    open.dedup();
    let names: Vec<_> = open.iter().map(Shard::to_string).collect();
    let what = format!(
        "{} of {} runs are missing: of shard {}",
        missing.len(),
        tasks.len(),
        names.join(", ")
    );
    let first = first.shard(of);
    let remedy = if shards.contains(&first) {
        format!("repeat the command of shard {first}: it makes what is missing")
    } else {
        let ids = header.ids.join(" ");
        format!("make that part, too: manypath lab exec {ids} --shard {first} --out PART")
    };
    Err(LabError { place: "parts".to_owned(), what, remedy })
}
