//! Texts of `manypath emulate` for people.

use manypath_realtime::hosts::{HostPlan, Report};
use manypath_sim::LinkStats;

use crate::screen::sheet::{Sheet, columns, wrapped};

/// The hosts and their addresses.
pub(super) fn introduction(hosts: &[HostPlan]) -> String {
    let line = |host: &HostPlan| {
        let ends = host.interfaces.iter().map(|own| format!("{} ({})", own.address, own.device));
        format!("{}: {}", host.name, ends.collect::<Vec<_>>().join(", "))
    };
    hosts.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The counters of all links, and how punctual they were.
pub(super) fn table(report: &Report) -> String {
    let mut table = Sheet::new([
        "link",
        "direction",
        "packets",
        "Mbit/s",
        "lost",
        "queue full",
        "early",
        "policed",
        "cut",
        "too long",
    ])
    .numbers_from(2);
    for link in &report.links {
        let stats = &link.stats;
        let rate = stats.bytes as f64 * 8.0 / 1e6 / report.seconds.max(1e-9);
        let LinkStats { lost, overflowed, early, policed, cut, too_long, .. } = link.stats;
        let counts = [lost, overflowed, early, policed, cut, too_long].map(|n| n.to_string());
        let row = [link.link.clone(), link.direction.to_owned(), stats.packets.to_string()];
        table.row(row.into_iter().chain([format!("{rate:.2}")]).chain(counts));
    }
    let millis =
        |seconds: Option<f64>| seconds.map_or("-".to_owned(), |s| format!("{:.3} ms", s * 1e3));
    let late = &report.lateness;
    let [p50, p99, max] = [late.p50_s, late.p99_s, late.max_s].map(millis);
    let elsewhere = match report.unroutable {
        0 => String::new(),
        count => format!("; {count} packets had no path"),
    };
    let text = format!(
        "{}{:.1} s; packets arrived late by {p50} (median), {p99} (99 %), {max} (maximum){elsewhere}",
        table.text(columns()),
        report.seconds
    );
    wrapped(&text, columns(), 0)
}

#[cfg(test)]
mod tests {
    use manypath_realtime::hosts::{Lateness, LinkReport};

    use super::*;

    #[test]
    fn a_link_has_a_row_with_its_rate() {
        let stats = LinkStats { packets: 1000, bytes: 1_500_000, lost: 7, ..LinkStats::default() };
        let links = vec![LinkReport { link: "wifi".to_owned(), direction: "forward", stats }];
        let lateness =
            Lateness { packets: 1, p50_s: Some(2e-5), p99_s: Some(1e-4), max_s: Some(0.0015) };
        let report = Report {
            seconds: 2.0,
            links,
            unroutable: 3,
            undelivered: 0,
            dropped_before_links: 0,
            lateness,
        };
        let text = table(&report);
        let row = text.lines().find(|line| line.contains("wifi")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>()[2..5], ["1000", "6.00", "7"]);
        assert!(text.contains("0.020 ms (median), 0.100 ms (99 %), 1.500 ms (maximum); 3 packets"));
    }
}
