//! The runs of an experiment: points, seeds, and how each is made.

use std::sync::Arc;

use manypath_sim::scenario::Identity;
use manypath_sim::{LossRange, Sampling};

use crate::cell::Fields;
use crate::derive::Series;
use crate::table::Params;

/// Seeds of a quick run.
pub const QUICK_SEEDS: usize = 5;

/// The results of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunData {
    /// Its result.
    pub fields: Fields,
    /// Its time series, if they were asked for.
    pub series: Vec<Series>,
    /// For each link, the loss rates that give the same run; see
    /// [`RunOutput`](manypath_sim::scenario::RunOutput).
    pub loss_ranges: Vec<LossRange>,
}

/// Something that runs with any seed: a compiled scenario, or two real endpoints.
pub trait Runnable: Send + Sync {
    /// Runs it.
    ///
    /// # Errors
    ///
    /// Why there is no result.
    fn run(&self, seed: u64, samples: Option<Sampling>) -> Result<RunData, String>;

    /// The inputs of its runs; `None` if no other run can be the same.
    fn identity(&self) -> Option<&Identity> {
        None
    }
}

/// A point of an experiment.
pub struct PlannedPoint {
    /// Its variant, such as `scenario` or `packaged`.
    pub variant: Arc<str>,
    /// The swept parameters.
    pub params: Arc<Params>,
    /// The code to run.
    pub run: Box<dyn Runnable>,
    /// The seeds it runs with.
    pub seeds: Vec<u64>,
    /// The command line that repeats one run, without the seed.
    pub command: String,
}

/// Everything that an experiment runs.
#[derive(Default)]
pub struct Plan {
    /// The points, in the order of the results.
    pub points: Vec<PlannedPoint>,
}

/// How a plan is changed on the command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Few seeds, and long sweeps thinned.
    pub quick: bool,
    /// These seeds instead of the scenario's.
    pub seeds: Option<Vec<u64>>,
}

impl Plan {
    /// How many runs it has.
    pub fn runs(&self) -> usize {
        self.points.iter().map(|point| point.seeds.len()).sum()
    }
}
