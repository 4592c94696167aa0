//! Experiments of the laboratory in real time: every run at once, as far as the machine allows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use manypath_lab::cell::fields_of_json;
use manypath_lab::derive::series_of;
use manypath_lab::error::LabError;
use manypath_lab::experiment::Experiment;
use manypath_lab::placebo::is_placebo;
use manypath_lab::plan::{Extent, Plan, PlannedPoint, RunData, Runnable};
use manypath_sim::Sampling;
use manypath_sim::scenario::{PlainTransfer, Scenario};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use crate::transfer;

/// The variant that runs the same in the simulator, to be compared.
pub const SIMULATED: &str = "simulated";
/// Runs of each point and seed: one in real time and one in the simulator.
pub const VARIANTS: usize = 2;
/// Transfers under way at a time: together far less than one processor has to do.
const TOGETHER: usize = 32;

/// Transfers in real time, of any number of experiments. They end when it is dropped.
#[derive(Debug)]
pub struct Realtime {
    runtime: Runtime,
    places: Arc<Semaphore>,
}

impl Realtime {
    /// Starts the threads that move packets.
    ///
    /// # Errors
    ///
    /// If the system has none.
    pub fn start() -> std::io::Result<Realtime> {
        let runtime = Builder::new_multi_thread().enable_all().thread_name("realtime").build()?;
        Ok(Realtime { runtime, places: Arc::new(Semaphore::new(TOGETHER)) })
    }

    /// Begins the runs of an experiment of kind `realtime`, so that they go on beside others; the
    /// plan waits for them. Its variant `scenario` is real, [`SIMULATED`] is not.
    ///
    /// # Errors
    ///
    /// If its scenario is wrong, or more than two endpoints on plain paths can be.
    pub fn plan(&self, experiment: &Experiment, extent: &Extent) -> Result<Plan, LabError> {
        let named = |parameter: &str| {
            let claims = experiment.claims.iter();
            claims.flat_map(|claim| claim.values_of(parameter)).map(str::to_owned).collect()
        };
        // Placebos run in the simulator only: beside real transfers they would slow them down.
        let all = Plan::of_scenarios(experiment, extent, &named)?.points.into_iter();
        let (placebos, simulated): (Vec<_>, Vec<_>) =
            all.partition(|point| is_placebo(&point.variant));
        let mut points = Vec::new();
        for (_, path) in experiment.variants() {
            for point in Scenario::load(&path)?.points()? {
                let Some(twin) = simulated.iter().find(|twin| *twin.params == point.params) else {
                    // A quick run leaves it out.
                    continue;
                };
                let transfer = point.run.plain().map_err(|what| LabError {
                    place: path.display().to_string(),
                    what: format!("cannot run in real time: {what}"),
                    remedy: "leave that out, or remove `kind = \"realtime\"`".to_owned(),
                })?;
                let run = Run {
                    name: point.run.name().to_owned(),
                    transfer,
                    limit: point.run.time_limit(),
                    samples: experiment.samples.map(|samples| samples.sampling),
                };
                points.push((twin, Arc::new(run)));
            }
        }
        let mut live: Vec<Live> = Vec::new();
        // Sweeps go from easy points to hard ones, which take longest: begin with those.
        for (twin, run) in points.iter().rev() {
            live.push(self.begin(run, &twin.seeds));
        }
        let mut plan = Plan::default();
        for ((twin, _), live) in points.iter().zip(live.into_iter().rev()) {
            plan.points.push(PlannedPoint {
                variant: Arc::clone(&twin.variant),
                params: Arc::clone(&twin.params),
                run: Box::new(live),
                seeds: twin.seeds.clone(),
                command: format!("manypath lab run {}", experiment.id),
            });
        }
        let variant: Arc<str> = Arc::from(SIMULATED);
        let simulated = simulated.into_iter();
        plan.points.extend(simulated.map(|p| PlannedPoint { variant: Arc::clone(&variant), ..p }));
        plan.points.extend(placebos);
        Ok(plan)
    }

    fn begin(&self, run: &Arc<Run>, seeds: &[u64]) -> Live {
        let begin_one = |seed: &u64| {
            let (run, places, seed) = (Arc::clone(run), Arc::clone(&self.places), *seed);
            let task = self.runtime.spawn(async move {
                let _place = places.acquire().await.map_err(|e| e.to_string())?;
                run.run(seed).await
            });
            (seed, task)
        };
        let under_way = Mutex::new(seeds.iter().map(begin_one).collect());
        Live { handle: self.runtime.handle().clone(), under_way }
    }
}

/// A point of a scenario.
struct Run {
    name: String,
    transfer: PlainTransfer,
    limit: Duration,
    samples: Option<Sampling>,
}

impl Run {
    async fn run(&self, seed: u64) -> Result<RunData, String> {
        let record = transfer::run(&self.transfer, self.limit, seed, self.samples).await?;
        let json = record.result(&self.name, &self.transfer, seed).to_string();
        let mut fields = fields_of_json(&json).map_err(|e| e.to_string())?;
        // The row has it already.
        fields.retain(|name, _| name != "seed");
        Ok(RunData { fields, series: series_of(record.samples())?, ..RunData::default() })
    }
}

/// The runs of a point, under way.
struct Live {
    handle: Handle,
    under_way: Mutex<BTreeMap<u64, JoinHandle<Result<RunData, String>>>>,
}

impl Runnable for Live {
    fn run(&self, seed: u64, samples: Option<Sampling>) -> Result<RunData, String> {
        let task = self.under_way.lock().unwrap_or_else(PoisonError::into_inner).remove(&seed);
        let task = task.ok_or("a transfer in real time runs once only")?;
        let mut data = self.handle.block_on(task).map_err(|e| e.to_string())??;
        if samples.is_none() {
            data.series.clear();
        }
        Ok(data)
    }
}

#[cfg(test)]
mod tests;
