//! Transfers over the network of a record.

use manypath_sim::scenario::{RunOptions, Scenario};
use serde::Serialize;

use crate::network::Network;
use crate::record::Record;
use crate::scenario;

/// The recorded transfer, to be run again over its network.
#[derive(Clone, Debug)]
pub struct Replay {
    text: String,
    begin_s: f64,
    bytes: u64,
}

/// A transfer over the network of a record.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// The seed of the run.
    pub seed: u64,
    /// From the first content sent until the sender knew that all had arrived, in seconds; `None`
    /// if that took longer than 20 times the recorded transfer.
    pub time_s: Option<f64>,
    /// Content over that time, in bits per second.
    pub goodput_bps: Option<f64>,
}

/// A transfer that could not be run.
#[derive(Debug, thiserror::Error)]
#[error("{what}; {remedy}")]
pub struct ReplayError {
    /// The problem.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

impl Replay {
    /// The transfer of the record over that network.
    pub fn new(record: &Record, network: &Network) -> Replay {
        let text = scenario::text(record, network);
        Replay { text, begin_s: scenario::begin_s(network), bytes: record.bytes() }
    }

    /// The scenario, as a file of the simulator has it.
    pub fn scenario(&self) -> &str {
        &self.text
    }

    /// Runs it with one seed, and another preset if one is given.
    ///
    /// # Errors
    /// Says what the simulator refuses, such as a preset that does not exist.
    pub fn run(&self, preset: Option<&str>, seed: u64) -> Result<Replayed, ReplayError> {
        let wrong = |e: manypath_sim::scenario::ScenarioError| ReplayError {
            what: e.what,
            remedy: e.remedy,
        };
        let mut scenario = Scenario::parse("replay", &self.text).map_err(wrong)?;
        if let Some(preset) = preset {
            scenario.set("transport.preset", preset).map_err(wrong)?;
        }
        let points = scenario.points().map_err(wrong)?;
        let failed = |what: String| ReplayError {
            what,
            remedy: format!("keep the record and report this (preset {preset:?}, seed {seed})"),
        };
        let point =
            points.first().ok_or_else(|| failed("the scenario has no points".to_owned()))?;
        let options = RunOptions { is_lean: true, ..RunOptions::default() };
        let output = point.run.run(seed, &options).map_err(|error| failed(error.to_string()))?;
        let transfer = output.result.transfer;
        let ack_time_s = if transfer.completed { transfer.ack_time_s } else { None };
        let time_s = ack_time_s.map(|t| t - self.begin_s);
        let goodput_bps = time_s.filter(|t| *t > 0.0).map(|t| self.bytes as f64 * 8.0 / t);
        Ok(Replayed { seed, time_s, goodput_bps })
    }
}
