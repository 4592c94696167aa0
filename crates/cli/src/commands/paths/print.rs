//! The candidates as a table.

use super::report::{PathLine, Report};
use crate::screen::sheet::{Sheet, columns, wrapped};

/// The report as text.
pub(super) fn text(report: &Report) -> String {
    let header = ["path", "via", "to", "RTT", "loss", "score", "hops", "shared", "use", "why"];
    let mut table = Sheet::new(header);
    for path in &report.paths {
        let rtt = path.rtt_s.map_or("-".to_owned(), |s| format!("{:.1} ms", s * 1e3));
        let via = path.relay.clone().unwrap_or_else(|| "direct".to_owned());
        let chosen = if path.selected { "yes" } else { "no" };
        table.row([
            path.path.to_string(),
            via,
            path.remote.clone(),
            rtt,
            format!("{:.1} %", path.loss * 100.0),
            format!("{:.0}", path.score),
            hops(path),
            shared(path),
            chosen.to_owned(),
            path.why.clone(),
        ]);
    }
    let mut text = table.text(columns());
    for path in &report.paths {
        let others = path.shares.iter().filter(|s| s.with > path.path);
        for share in others.filter(|s| s.disjoint <= report.beta) {
            let links: Vec<String> = share
                .links
                .iter()
                .map(|l| format!("{} - {} ({:.1} ms)", l.from, l.to, l.latency_s * 1e3))
                .collect();
            text += &format!(
                "paths {} and {}: disjointness {:.2}; in both: {}\n",
                path.path,
                share.with,
                share.disjoint,
                links.join(", ")
            );
        }
    }
    for note in &report.notes {
        text += &format!("note: {note}\n");
    }
    wrapped(&text, columns(), 2)
}

/// How many hops, and how many of them answered if not all did.
fn hops(path: &PathLine) -> String {
    let (all, seen) = (path.hops.len(), path.hops.iter().filter(|h| h.address.is_some()).count());
    if all == seen { all.to_string() } else { format!("{all} ({seen} seen)") }
}

/// With how many links each other path is shared.
fn shared(path: &PathLine) -> String {
    let shares = path.shares.iter().filter(|s| !s.links.is_empty());
    let words: Vec<String> = shares.map(|s| format!("{} with {}", s.links.len(), s.with)).collect();
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}
