//! Experiments of kind `overlay`: between how many hosts of a random network lie how many disjoint
//! paths.
//!
//! Nothing is sent. Paths, their scores and the choice among them are those of
//! [`manypath_proto::overlay`], which `manypath paths` and `--via` use as well; only what probes
//! and traceroute would find is computed here.

mod network;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use manypath_proto::overlay::{Candidate, Choice, select};
use manypath_sim::Sampling;
use serde::Deserialize;

use crate::cell::{Cell, Fields};
use crate::error::{LabError, Source};
use crate::experiment::{Experiment, OVERLAY_FILE, read};
use crate::placebo::Placebo;
use crate::plan::{Extent, Plan, PlannedPoint, QUICK_SEEDS, RunData, Runnable};
use crate::variant::SCENARIO;
use network::{Network, Routes, Shape};

/// Most hosts, so that a run ends: its time grows with their third power.
const MOST_HOSTS: usize = 200;
/// Most routers.
const MOST_ROUTERS: usize = 1_000;
/// Most values of `beta`, of `paths`, and seeds.
const MOST_VALUES: usize = 1_000;

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    /// One line.
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the file")]
    description: String,
    /// Networks: one is drawn from each seed, 1 to this number.
    seeds: toml::Spanned<usize>,
    network: toml::Spanned<Shape>,
    /// Two paths are disjoint if Disjoint is above it.
    beta: toml::Spanned<Vec<f64>>,
    /// Numbers of paths at which pairs of hosts are counted.
    paths: toml::Spanned<Vec<usize>>,
}

/// Plans an experiment of this kind: a point for each `beta` and each number of `paths`.
///
/// # Errors
///
/// If the file is missing or wrong.
pub fn plan(experiment: &Experiment, extent: &Extent) -> Result<Plan, LabError> {
    let path = experiment.folder.join(OVERLAY_FILE);
    let text = read(&path)?;
    let file = check(Source { path: &path, text: &text })?;
    let mut seeds: Vec<u64> =
        extent.seeds.clone().unwrap_or_else(|| (1..=*file.seeds.get_ref() as u64).collect());
    if extent.quick {
        seeds.truncate(QUICK_SEEDS);
    }
    let mut plan = Plan::default();
    let shape = file.network.get_ref();
    let variants = std::iter::once(Ok(Drawn {
        variant: SCENARIO.to_owned(),
        shape: shape.clone(),
        seeds: usize::MAX,
    }));
    for drawn in variants.chain(experiment.placebos.iter().map(|p| without(shape, p))) {
        let drawn = drawn.map_err(|what| {
            LabError::file(&experiment.folder.join("claims.toml"), what, PLACEBO_REMEDY)
        })?;
        let seeds: Vec<u64> = seeds.iter().copied().take(drawn.seeds).collect();
        add_points(&mut plan, &file, &drawn, &seeds, &experiment.id);
    }
    Ok(plan)
}

const PLACEBO_REMEDY: &str = "write set = { \"network.routes\" = \"random\" }, without `at`";

/// The networks of one variant.
struct Drawn {
    variant: String,
    shape: Shape,
    /// How many of the seeds at most.
    seeds: usize,
}

/// The networks of a placebo, which sets how packets are routed.
fn without(shape: &Shape, placebo: &Placebo) -> Result<Drawn, String> {
    let routes = match placebo.settings_everywhere() {
        Some([(name, value)]) if name == "network.routes" && value == "random" => Routes::Random,
        _ => return Err(format!("placebo `{}` does not set `network.routes` alone", placebo.id)),
    };
    let shape = Shape { routes, ..shape.clone() };
    Ok(Drawn { variant: placebo.variant(), shape, seeds: placebo.seeds })
}

fn add_points(plan: &mut Plan, file: &File, drawn: &Drawn, seeds: &[u64], id: &str) {
    let variant: Arc<str> = Arc::from(drawn.variant.as_str());
    let shape = Arc::new(drawn.shape.clone());
    for &beta in file.beta.get_ref() {
        let counts = Arc::new(Counts { shape: Arc::clone(&shape), beta, known: Mutex::default() });
        for &paths in file.paths.get_ref() {
            plan.points.push(PlannedPoint {
                variant: Arc::clone(&variant),
                params: Arc::new(vec![
                    ("beta".to_owned(), beta.to_string()),
                    ("paths".to_owned(), paths.to_string()),
                ]),
                run: Box::new(AtMost { counts: Arc::clone(&counts), paths }),
                seeds: seeds.to_vec(),
                command: format!("manypath lab run {id}"),
            });
        }
    }
}

fn check(source: Source<'_>) -> Result<File, LabError> {
    let file: File = source.toml()?;
    let bad = |at: std::ops::Range<usize>, what: String, remedy: &str| {
        Err(source.error(Some(at), what, remedy))
    };
    let is_count = |n: usize| (1..=MOST_VALUES).contains(&n);
    if !is_count(*file.seeds.get_ref()) {
        let what = format!("`seeds = {}`", file.seeds.get_ref());
        return bad(file.seeds.span(), what, "write a number from 1 to 1000");
    }
    let betas = file.beta.get_ref();
    if !is_count(betas.len()) || !betas.iter().all(|beta| (0.0..1.0).contains(beta)) {
        let what = "`beta` has no value, too many, or one that is not from 0 up to 1".to_owned();
        return bad(file.beta.span(), what, "write a list such as [0.3, 0.5, 0.7]");
    }
    if !is_count(file.paths.get_ref().len()) {
        let what = "`paths` has no value or too many".to_owned();
        return bad(file.paths.span(), what, "write a list such as [1, 2, 4, 8]");
    }
    let &Shape { hosts, routers, .. } = file.network.get_ref();
    if !(2..=MOST_HOSTS).contains(&hosts) || !(2..=MOST_ROUTERS).contains(&routers) {
        let what = format!("{hosts} hosts and {routers} routers");
        let remedy = format!("2 to {MOST_HOSTS} hosts, 2 to {MOST_ROUTERS} routers are possible");
        return bad(file.network.span(), what, &remedy);
    }
    if let Err(what) = file.network.get_ref().check() {
        return bad(file.network.span(), what, "see \"Disjoint paths\" in docs/laboratory.md");
    }
    Ok(file)
}

/// How many disjoint paths there are between each two hosts, at one `beta`; of the networks asked
/// for so far.
struct Counts {
    shape: Arc<Shape>,
    beta: f64,
    known: Mutex<BTreeMap<u64, Arc<Vec<usize>>>>,
}

impl Counts {
    /// Of each pair of hosts, ascending.
    fn of(&self, seed: u64) -> Arc<Vec<usize>> {
        let lock = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(counts) = lock().get(&seed) {
            return Arc::clone(counts);
        }
        let network = Network::draw(&self.shape, seed);
        let mut counts: Vec<usize> = network
            .pairs()
            .map(|(from, to)| disjoint_paths(&network.candidates(from, to), self.beta))
            .collect();
        counts.sort_unstable();
        let counts = Arc::new(counts);
        lock().insert(seed, Arc::clone(&counts));
        counts
    }
}

/// How many of the candidates the greedy selection takes if it may take all (mTCP paper, section
/// 3.3).
fn disjoint_paths(candidates: &[Candidate], beta: f64) -> usize {
    let choices = select(candidates, beta, usize::MAX);
    choices.iter().filter(|choice| matches!(choice, Choice::Selected { .. })).count()
}

/// A point: pairs of hosts with at most this many disjoint paths.
struct AtMost {
    counts: Arc<Counts>,
    paths: usize,
}

impl Runnable for AtMost {
    fn run(&self, seed: u64, _samples: Option<Sampling>) -> Result<RunData, String> {
        let counts = self.counts.of(seed);
        let pairs = counts.len();
        let share = |few: usize| few as f64 / pairs as f64;
        let below = |n: usize| counts.partition_point(|count| *count < n);
        let mut fields = Fields::new();
        let mut put = |name: &str, cell| fields.insert(name.to_owned(), cell);
        put("completed", Cell::Bool(true));
        put("pairs", Cell::Int(pairs as i64));
        put("pairs_with_at_most", Cell::float(share(below(self.paths + 1))));
        put("pairs_with_5_to_15", Cell::float(share(below(16) - below(5))));
        put("disjoint_paths_mean", Cell::float(share(counts.iter().sum())));
        put("disjoint_paths_median", Cell::Int(counts[pairs / 2] as i64));
        put("disjoint_paths_least", Cell::Int(counts[0] as i64));
        put("disjoint_paths_most", Cell::Int(counts[pairs - 1] as i64));
        Ok(RunData { fields, ..RunData::default() })
    }
}

#[cfg(test)]
mod tests;
