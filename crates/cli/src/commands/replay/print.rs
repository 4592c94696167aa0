//! Tables of the network and of the replayed transfers.

use manypath_replay::{Network, Outage, PathEstimate, Queue, Rates};

use super::{Findings, Outcome};
use crate::screen::figures::{bit_rate, size};
use crate::screen::sheet::{Sheet, columns, wrapped};

/// Everything, for a person.
pub(super) fn text(found: &Findings) -> String {
    let recorded = found.record.time_s();
    let mut text = format!(
        "recorded: {} with {} in {recorded:.2} s\n\n{}",
        size(found.record.bytes()),
        found.record.recording.preset,
        network(&found.network).text(columns()),
    );
    for shared in &found.network.shared {
        let names: Vec<String> =
            shared.paths.iter().map(|path| found.network.paths[*path].path.to_string()).collect();
        text += &format!("paths {} share one bottleneck\n", names.join(" and "));
    }
    text += &match found.difference() {
        Some(difference) => format!(
            "replayed original: {:.2} s, {:+.1} % of the recorded time\n",
            found.original.time_s.unwrap_or_default(),
            difference * 100.0
        ),
        None => "replayed original: it does not end\n".to_owned(),
    };
    if !found.others.is_empty() {
        text += &format!("\n{}", outcomes(found).text(columns()));
    }
    wrapped(&text, columns(), 2)
}

fn network(network: &Network) -> Sheet {
    let header = ["path", "one-way delay", "rate", "queue", "random loss", "outages", "carried"];
    let mut table = Sheet::new(header);
    for path in &network.paths {
        table.row([
            path.path.to_string(),
            format!("{:.1} ms", path.one_way_delay_s * 1e3),
            rates(&path.rates),
            queue(path.queue, &path.rates),
            losses(path),
            outages(&path.outages),
            size(path.carried_bytes),
        ]);
    }
    table
}

/// `20.0 Mbit/s`, or what it changes between.
fn rates(rates: &Rates) -> String {
    let (least, most) = rates.range();
    let bound = if rates.is_lower_bound { "≥ " } else { "" };
    match rates.pieces.len() {
        0 | 1 => format!("{bound}{}", bit_rate(most)),
        n => format!("{bound}{} to {} in {n} steps", bit_rate(least), bit_rate(most)),
    }
}

fn queue(queue: Queue, rates: &Rates) -> String {
    let bound = if queue.is_lower_bound { "≥ " } else { "" };
    let milliseconds = queue.bytes as f64 * 8e3 / rates.range().1.max(1.0);
    format!("{bound}{} ({milliseconds:.0} ms)", size(queue.bytes))
}

fn losses(path: &PathEstimate) -> String {
    let ratios = || path.losses.iter().map(|piece| piece.ratio * 100.0);
    let (least, most) = (ratios().fold(f64::INFINITY, f64::min), ratios().fold(0.0, f64::max));
    match path.losses.len() {
        0 | 1 => format!("{most:.2} %"),
        n => format!("{least:.2} to {most:.2} % in {n} steps"),
    }
}

fn outages(outages: &[Outage]) -> String {
    match outages {
        [] => "none".to_owned(),
        [one] => match one.to_s {
            Some(to) => format!("{:.2} to {to:.2} s", one.from_s),
            None => format!("from {:.2} s on", one.from_s),
        },
        more => format!("{}, the first at {:.2} s", more.len(), more[0].from_s),
    }
}

fn outcomes(found: &Findings) -> Sheet {
    let header = ["preset", "time [s]", "from - to [s]", "goodput [Mbit/s]", "beside the original"];
    let mut table = Sheet::new(header).numbers_from(1);
    let recorded = Outcome {
        preset: format!("{} (original)", found.original.preset),
        ..found.original.clone()
    };
    for outcome in [&recorded].into_iter().chain(&found.others) {
        let seconds = |time: Option<f64>| time.map_or("no end".to_owned(), |t| format!("{t:.2}"));
        let beside = outcome.time_s.zip(found.original.time_s);
        table.row([
            outcome.preset.clone(),
            seconds(outcome.time_s),
            format!("{} - {}", seconds(outcome.time_min_s), seconds(outcome.time_max_s)),
            outcome.goodput_bps.map_or("-".to_owned(), |bps| format!("{:.2}", bps / 1e6)),
            beside.map_or("-".to_owned(), |(time, original)| {
                format!("{:+.1} %", (time / original - 1.0) * 100.0)
            }),
        ]);
    }
    table
}
