//! The table that `manypath sim run` prints: a row for each point.

use manypath_lab::stats::Summary;
use manypath_sim::scenario::RunResult;

use crate::screen::sheet::{Sheet, columns};

/// The values of a run that are shown.
#[derive(Debug, Default)]
struct Values {
    params: Vec<String>,
    runs: usize,
    incomplete: usize,
    time: Vec<f64>,
    goodput: Vec<f64>,
    timeouts: Vec<f64>,
    retransmissions: Vec<f64>,
}

/// The runs of all points, as far as the table needs them.
#[derive(Debug)]
pub(super) struct Summaries {
    swept: Vec<String>,
    points: Vec<Values>,
}

impl Summaries {
    /// None yet, of a scenario that sweeps these parameters.
    pub(super) fn new(swept: Vec<String>) -> Summaries {
        Summaries { swept, points: Vec::new() }
    }

    /// Adds a run of a point; points come in order.
    pub(super) fn add(&mut self, point: usize, params: &[(String, String)], result: &RunResult) {
        if self.points.len() <= point {
            self.points.resize_with(point + 1, Values::default);
        }
        let Some(values) = self.points.get_mut(point) else { return };
        values.params = params.iter().map(|(_, value)| value.clone()).collect();
        values.runs += 1;
        let transfer = &result.transfer;
        if !transfer.completed {
            values.incomplete += 1;
            return;
        }
        values.time.push(transfer.transfer_time_s);
        values.goodput.push(transfer.goodput_bps / 1e6);
        values.timeouts.push(transfer.t3_expirations() as f64);
        values.retransmissions.push(transfer.retransmissions() as f64);
    }

    /// The table, with a note on runs that did not complete.
    pub(super) fn table(&self) -> String {
        let names = ["runs", "time [s]", "goodput [Mbit/s]", "timeouts", "resent"];
        let header = self.swept.iter().map(String::as_str).chain(names);
        let mut sheet = Sheet::new(header).numbers_from(self.swept.len());
        let points = || self.points.iter().filter(|values| values.runs > 0);
        let decimals = |of: fn(&Values) -> &[f64]| decimals(points().map(of));
        let (times, goodputs) = (decimals(|point| &point.time), decimals(|point| &point.goodput));
        for values in points() {
            let runs = match values.incomplete {
                0 => values.runs.to_string(),
                incomplete => format!("{} ({incomplete} incomplete)", values.runs),
            };
            let measures = [mean(&values.time, times), mean(&values.goodput, goodputs)];
            let counts = [&values.timeouts, &values.retransmissions].map(|values| count(values));
            let means = measures.into_iter().chain(counts);
            sheet.row(values.params.iter().cloned().chain([runs]).chain(means));
        }
        let mut text = sheet.text(columns());
        if self.points.iter().any(|values| values.runs > 1) {
            text += "Means ± half their 95 % confidence interval.\n";
        }
        if self.points.iter().any(|values| values.incomplete > 0) {
            text += "Incomplete runs are left out of the means.\n";
        }
        text
    }
}

/// The decimals of a column, so that its smallest mean has three digits.
fn decimals<'a>(column: impl Iterator<Item = &'a [f64]>) -> usize {
    let means = column.filter_map(Summary::of).map(|summary| summary.mean.abs());
    let least = means.filter(|mean| *mean > 0.0).fold(f64::INFINITY, f64::min);
    match least {
        least if least < 1.0 => 3,
        least if least < 10.0 => 2,
        _ => 1,
    }
}

/// A mean of counts; of a single run it is whole.
fn count(values: &[f64]) -> String {
    mean(values, usize::from(values.len() > 1))
}

fn mean(values: &[f64], decimals: usize) -> String {
    let Some(summary) = Summary::of(values) else { return "-".to_owned() };
    match summary.ci95() {
        Some(half) => format!("{:.decimals$} ± {half:.decimals$}", summary.mean),
        None => format!("{:.decimals$}", summary.mean),
    }
}
