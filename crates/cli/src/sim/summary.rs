//! The table that `manypath sim run` prints: a row for each point.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use manypath_lab::stats::Summary;
use manypath_sim::scenario::RunResult;

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
        let mut table = Table::new();
        table.load_style(presets::UTF8_HORIZONTAL_ONLY);
        table.set_content_arrangement(ContentArrangement::Disabled);
        let columns = ["runs", "time [s]", "goodput [Mbit/s]", "timeouts", "retransmissions"];
        let header = self.swept.iter().map(String::as_str).chain(columns);
        table.set_header(header);
        for values in self.points.iter().filter(|values| values.runs > 0) {
            let runs = match values.incomplete {
                0 => values.runs.to_string(),
                incomplete => format!("{} ({incomplete} incomplete)", values.runs),
            };
            let means = [&values.time, &values.goodput, &values.timeouts, &values.retransmissions];
            let means = means.into_iter().map(|values| mean(values));
            table.add_row(values.params.iter().cloned().chain([runs]).chain(means));
        }
        for column in self.swept.len()..self.swept.len() + columns.len() {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut text = format!("{table}\n");
        if self.points.iter().any(|values| values.runs > 1) {
            text += "Means ± half their 95 % confidence interval.\n";
        }
        if self.points.iter().any(|values| values.incomplete > 0) {
            text += "Incomplete runs are left out of the means.\n";
        }
        text
    }
}

fn mean(values: &[f64]) -> String {
    let Some(summary) = Summary::of(values) else { return "-".to_owned() };
    match summary.ci95() {
        Some(half) => format!("{:.3} ± {half:.3}", summary.mean),
        None => format!("{:.3}", summary.mean),
    }
}
