//! The runs of an experiment's scenario files in the simulator.

use std::path::Path;
use std::sync::Arc;

use manypath_sim::scenario::{CompiledScenario, Identity, RunOptions, Scenario};
use manypath_sim::{Samples, Sampling};

use crate::cell::fields_of_result;
use crate::derive::series_of;
use crate::error::LabError;
use crate::experiment::{Experiment, Kind};
use crate::overlay;
use crate::placebo::Placebo;
use crate::plan::{Extent, Plan, PlannedPoint, QUICK_SEEDS, RunData, Runnable};
use crate::table::Params;
use crate::variant::SCENARIO;

impl Plan {
    /// Plans the runs of an experiment that needs no real endpoints. `named` gives the values of a
    /// parameter that claims need, which are not thinned out.
    ///
    /// # Errors
    ///
    /// If a scenario file is wrong.
    pub fn of_scenarios(
        experiment: &Experiment,
        extent: &Extent,
        named: &dyn Fn(&str) -> Vec<String>,
    ) -> Result<Plan, LabError> {
        if experiment.kind == Kind::Overlay {
            return overlay::plan(experiment, extent);
        }
        let mut plan = Plan::default();
        let add = |plan: &mut Plan, variant: &str, path: &Path, placebo: Option<&Placebo>| {
            let scenario = Scenario::load(path)?;
            let mut seeds = extent.seeds.clone().unwrap_or_else(|| scenario.seeds());
            if extent.quick {
                seeds.truncate(QUICK_SEEDS);
            }
            seeds.truncate(placebo.map_or(usize::MAX, |placebo| placebo.seeds));
            let points = match placebo {
                Some(placebo) => placebo.points(&scenario)?,
                None if extent.quick => scenario.points_with(&experiment.quick, &|_| true)?,
                None => scenario.points()?,
            };
            let all: Vec<_> = points.iter().map(|point| &point.params).collect();
            let kept = if extent.quick { thinned(&all, named) } else { vec![true; all.len()] };
            let variant: Arc<str> = Arc::from(variant);
            for ((number, point), is_kept) in points.into_iter().enumerate().zip(kept) {
                if is_kept {
                    plan.points.push(PlannedPoint {
                        variant: Arc::clone(&variant),
                        params: Arc::new(point.params),
                        run: Box::new(Simulated {
                            identity: point.run.identity(),
                            scenario: point.run,
                        }),
                        seeds: seeds.clone(),
                        command: match placebo {
                            Some(_) => format!("manypath lab run {}", experiment.id),
                            None => repeat(experiment, path, number, extent.quick),
                        },
                    });
                }
            }
            Ok::<(), LabError>(())
        };
        let variants = experiment.variants();
        for (variant, path) in &variants {
            add(&mut plan, variant, path, None)?;
        }
        if let Some((_, path)) = variants.iter().find(|(variant, _)| *variant == SCENARIO) {
            for placebo in &experiment.placebos {
                add(&mut plan, &placebo.variant(), path, Some(placebo))?;
            }
        }
        Ok(plan)
    }
}

/// The command that repeats the runs of a point, without the seed.
fn repeat(experiment: &Experiment, scenario: &Path, point: usize, is_quick: bool) -> String {
    if experiment.is_built_in {
        return format!("manypath lab run {}", experiment.id);
    }
    let sets = experiment.quick.iter().map(|(name, value)| format!(" --set '{name}={value}'"));
    let sets = if is_quick { sets.collect() } else { String::new() };
    format!("manypath sim run {} --point {}{sets}", scenario.display(), point + 1)
}

/// Which points a quick run keeps: of a parameter with more than three numeric values the first,
/// the middle and the last, and those that claims name.
fn thinned(points: &[&Params], named: &dyn Fn(&str) -> Vec<String>) -> Vec<bool> {
    let mut axes: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, value) in points.iter().flat_map(|params| params.iter()) {
        match axes.iter_mut().find(|(own, _)| own == name) {
            Some((_, values)) if !values.contains(&value.as_str()) => values.push(value),
            Some(_) => {}
            None => axes.push((name, vec![value])),
        }
    }
    for (name, values) in &mut axes {
        let is_number = |value: &&str| value.starts_with(|c: char| c.is_ascii_digit());
        if values.len() > 3 && values.iter().all(is_number) {
            let named = named(name);
            let (middle, last) = (values.len() / 2, values.len() - 1);
            let mut place = 0;
            values.retain(|value| {
                let is_named = named.iter().any(|n| crate::table::is_same_value(n, value));
                let is_kept = [0, middle, last].contains(&place) || is_named;
                place += 1;
                is_kept
            });
        }
    }
    let is_kept = |params: &&Params| {
        params.iter().all(|(name, value)| {
            axes.iter().any(|(own, values)| own == name && values.contains(&value.as_str()))
        })
    };
    points.iter().map(is_kept).collect()
}

struct Simulated {
    scenario: CompiledScenario,
    identity: Identity,
}

impl Runnable for Simulated {
    fn run(&self, seed: u64, samples: Option<Sampling>) -> Result<RunData, String> {
        let options = RunOptions { samples, ..RunOptions::default() };
        let output = self.scenario.run(seed, &options).map_err(|e| e.to_string())?;
        let json = serde_json::to_string(&output.result).map_err(|e| e.to_string())?;
        let fields = fields_of_result(&json).map_err(|e| e.to_string())?;
        let samples = output.samples.map(Samples::into_vec).unwrap_or_default();
        Ok(RunData { fields, series: series_of(&samples)?, loss_ranges: output.loss_ranges })
    }

    fn identity(&self) -> Option<&Identity> {
        Some(&self.identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quick_runs_keep_the_ends_the_middle_and_what_claims_name() {
        let mut points = Vec::new();
        for policy in ["same", "asap", "cwnd", "lossrate"] {
            for loss in 1..=10 {
                let loss = format!("{loss} %");
                points.push(vec![
                    ("policy".to_owned(), policy.to_owned()),
                    ("loss".to_owned(), loss),
                ]);
            }
        }
        let all: Vec<_> = points.iter().collect();
        let named = |name: &str| match name {
            "loss" => vec!["7%".to_owned()],
            _ => Vec::new(),
        };
        let kept = thinned(&all, &named);
        let losses: Vec<_> = points.iter().zip(&kept).filter(|(_, k)| **k).collect();
        let losses = losses.iter().take(4).map(|(p, _)| p[1].1.as_str()).collect::<Vec<_>>();
        assert_eq!(losses, ["1 %", "6 %", "7 %", "10 %"]);
        assert_eq!(kept.iter().filter(|k| **k).count(), 16, "all four policies");
    }
}
