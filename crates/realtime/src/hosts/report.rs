//! Report of a network that has ended.

use std::time::Duration;

use manypath_sim::LinkStats;
use serde::Serialize;

/// 99th-percentile lateness from which results say more about the machine than about the scenario.
const TOO_LATE: Duration = Duration::from_millis(1);

/// Counters of the links and of their punctuality.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// How long the links ran, in seconds.
    pub seconds: f64,
    /// Every link in both directions.
    pub links: Vec<LinkReport>,
    /// Packets that no path of the scenario leads on: of IPv6, or between addresses of two paths.
    pub unroutable: u64,
    /// Packets that an interface did not take at their arrival.
    pub undelivered: u64,
    /// Packets that the system dropped on their way to the first link.
    pub dropped_before_links: u64,
    /// How late packets arrived, compared with the plan.
    pub lateness: Lateness,
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkReport {
    /// Its name in the scenario.
    pub link: String,
    /// `forward` or `reverse`.
    pub direction: &'static str,
    /// Its counters.
    #[serde(flatten)]
    pub stats: LinkStats,
}

/// How late packets arrived.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize)]
pub struct Lateness {
    /// Packets that arrived.
    pub packets: u64,
    /// The median in seconds; `None` without packets.
    pub p50_s: Option<f64>,
    /// The 99th percentile in seconds.
    pub p99_s: Option<f64>,
    /// The maximum in seconds.
    pub max_s: Option<f64>,
}

impl Report {
    /// Reasons why the network was not the scenario's, in words.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(p99) = self.lateness.p99_s.filter(|p99| *p99 > TOO_LATE.as_secs_f64()) {
            warnings.push(format!(
                "the machine is too slow for this scenario: one packet in 100 arrived {:.1} ms late \
                 or more",
                p99 * 1e3
            ));
        }
        let lost = self.undelivered + self.dropped_before_links;
        if lost > 0 {
            warnings.push(format!("the system dropped {lost} packets outside the links"));
        }
        warnings
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(p99_s: f64, undelivered: u64) -> Report {
        let lateness = Lateness { p99_s: Some(p99_s), ..Lateness::default() };
        Report {
            seconds: 1.0,
            links: Vec::new(),
            unroutable: 7,
            undelivered,
            dropped_before_links: 0,
            lateness,
        }
    }

    #[test]
    fn a_machine_that_is_late_or_loses_packets_is_reported() {
        assert_eq!(report(0.0009, 0).warnings(), Vec::<String>::new());
        let late = report(0.0012, 0).warnings();
        assert!(late[0].contains("1.2 ms late"), "{late:?}");
        let lossy = report(0.0, 3).warnings();
        assert!(lossy[0].contains("dropped 3 packets"), "{lossy:?}");
    }
}
