//! Runs spread over machines. Each shard makes some runs of a plan and writes them to a part, a
//! file; the parts together give the files that [`lab::run`](crate::lab::run) writes.
//!
//! A part is JSON lines. The first says of what it is a part, each other one is a run:
//! `docs/laboratory.md` describes them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_128;

use crate::cell::{Fields, fields_of_json, json_text};
use crate::derive::Series;
use crate::engine;
use crate::error::LabError;
use crate::experiment::{Experiment, Experiments};
use crate::lab::{Ledger, Options, Outcome, Plans, Progress, Run, judge_all, plan, runs_of};
use crate::memo::Memo;
use crate::plan::{Extent, PlannedPoint, RunData};
use crate::runner::run_in_order;

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

/// The first line of a part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Header {
    /// The form of the file.
    part: u32,
    /// The engine that made it: see [`engine::fingerprint`].
    engine: String,
    /// The experiments, as they were named.
    ids: Vec<String>,
    quick: bool,
    seeds: Option<Vec<u64>>,
    shard: Shard,
}

/// The form that this program writes.
const FORM: u32 = 1;

/// A run in a part.
#[derive(Serialize, Deserialize)]
struct Line {
    task: String,
    /// Its fields, or
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fields: Option<Box<serde_json::value::RawValue>>,
    /// why it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    series: Vec<Series>,
}

impl Line {
    fn new(task: &str, result: Result<&RunData, &String>) -> serde_json::Result<Line> {
        let (fields, error, series) = match result {
            Ok(run) => (Some(raw_json(&run.fields)?), None, run.series.clone()),
            Err(error) => (None, Some(error.clone()), Vec::new()),
        };
        Ok(Line { task: task.to_owned(), fields, error, series })
    }

    fn result(self) -> Result<RunData, String> {
        let fields = self.fields.ok_or_else(|| self.error.unwrap_or_default())?;
        let fields = fields_of_json(fields.get()).map_err(|e| e.to_string())?;
        Ok(RunData { fields, series: self.series, loss_ranges: Vec::new() })
    }
}

fn raw_json(fields: &Fields) -> serde_json::Result<Box<serde_json::value::RawValue>> {
    let entry = |(name, cell): (&String, &crate::cell::Cell)| {
        format!("{}:{}", json_text(name), cell.json())
    };
    let entries: Vec<_> = fields.iter().map(entry).collect();
    serde_json::value::RawValue::from_string(format!("{{{}}}", entries.join(",")))
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
    let Extent { quick, seeds } = options.extent.clone();
    let engine = engine::fingerprint().to_owned();
    let header = Header { part: FORM, engine, ids: ids.to_vec(), quick, seeds, shard };
    let (mut out, known) = open_part(part, &header)?;
    let own: Vec<_> =
        tasks(&plans).into_iter().filter(|task| task.shard(shard.of) == shard).collect();
    let open: Vec<_> = own.iter().filter(|task| !known.contains_key(&task.id)).collect();
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
        if let Err(error) = line.and_then(|line| write_line(&mut out, &line)) {
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

fn write_line(out: &mut File, line: &impl Serialize) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    // At once: what a killed shard had made is found again.
    out.write_all(&text)
}

/// Opens a part to add runs. Also returns those that it has.
fn open_part(part: &Path, header: &Header) -> Result<(File, Runs), LabError> {
    let bad = |error: std::io::Error| {
        LabError::file(part, error, "name a file that can be written with `--out`")
    };
    if let Some(folder) = part.parent() {
        std::fs::create_dir_all(folder).map_err(bad)?;
    }
    let mut out = OpenOptions::new();
    let mut out =
        out.read(true).write(true).create(true).truncate(false).open(part).map_err(bad)?;
    if out.metadata().map_err(bad)?.len() == 0 {
        write_line(&mut out, header).map_err(bad)?;
        return Ok((out, Runs::new()));
    }
    let (own, mut runs, end) = read_part(part)?;
    if own != *header {
        let what = format!("it is shard {} of other runs: {}", own.shard, own.ids.join(" "));
        return Err(LabError::file(part, what, "name another file with `--out`, or remove it"));
    }
    runs.retain(|_, result| result.is_ok());
    // A line that was cut short is made again.
    out.set_len(end).map_err(bad)?;
    out.seek(SeekFrom::End(0)).map_err(bad)?;
    Ok((out, runs))
}

/// Results by task.
type Runs = BTreeMap<String, Result<RunData, String>>;

/// Reads a part. Also returns where its last whole line ends.
fn read_part(part: &Path) -> Result<(Header, Runs, u64), LabError> {
    let remedy = "make it with `manypath lab exec`";
    let bad = |what: String| LabError::file(part, what, remedy);
    let mut text = BufReader::new(File::open(part).map_err(|e| bad(e.to_string()))?);
    let (mut header, mut runs, mut end) = (None, Runs::new(), 0);
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let length = text.read_until(b'\n', &mut line).map_err(|e| bad(e.to_string()))?;
        if line.pop() != Some(b'\n') {
            break;
        }
        let wrong = |e: serde_json::Error| LabError::line(part, number, e, remedy);
        match &header {
            None => header = Some(serde_json::from_slice::<Header>(&line).map_err(wrong)?),
            Some(_) => {
                let run: Line = serde_json::from_slice(&line).map_err(wrong)?;
                runs.insert(run.task.clone(), run.result());
            }
        }
        end += length as u64;
    }
    let header = header.ok_or_else(|| bad("it is empty".to_owned()))?;
    match header.part {
        FORM => Ok((header, runs, end)),
        other => Err(bad(format!("it has form {other}, and this program reads {FORM}"))),
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
        let (header, own, _) = read_part(part)?;
        shards.push(header.shard);
        let engine = engine::fingerprint();
        if header.engine != engine {
            let what = format!("engine {} made it, and this is {engine}", header.engine);
            return Err(LabError::file(part, what, "make it again with this program"));
        }
        match &first {
            Some((path, other)) if !is_of_same(other, &header) => {
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
    options.extent = Extent { quick: header.quick, seeds: header.seeds.clone() };
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

fn is_of_same(one: &Header, other: &Header) -> bool {
    let any_shard = Header { shard: one.shard, ..other.clone() };
    any_shard == *one && one.shard.of == other.shard.of
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
    let remedy = match shards.contains(&first) {
        true => format!("repeat the command of shard {first}: it makes what is missing"),
        false => {
            let ids = header.ids.join(" ");
            format!("make that part, too: manypath lab exec {ids} --shard {first} --out PART")
        }
    };
    Err(LabError { place: "parts".to_owned(), what, remedy })
}
