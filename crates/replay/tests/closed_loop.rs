//! A known network, a transfer over it, its record, and the network that the record shows: the same
//! transfer must take the same time over that one. As on sockets, a greeting comes before the
//! content, so that paths are verified.

use std::fs::File;
use std::io::BufReader;

use manypath_replay::{Network, Record, Replay};
use manypath_sim::TraceTo;
use manypath_sim::scenario::{RunOptions, Scenario};

/// The network that a record showed, and the times of both transfers.
struct Loop {
    network: Network,
    recorded_s: f64,
    replayed_s: f64,
}

/// Runs the scenario with a seed, and the same transfer over what its record shows.
fn closed(scenario: &str, preset: &str, seed: u64) -> Loop {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("record.jsonl");
    let mut scenario = Scenario::parse("known", scenario).unwrap();
    scenario.set("transport.profile", "fast").unwrap();
    scenario.set("transport.preset", preset).unwrap();
    let run = &scenario.points().unwrap()[0].run;
    let trace = TraceTo { record: Some(file.clone()), ..TraceTo::default() };
    let output =
        run.run(seed, &RunOptions { trace: Some(trace), ..RunOptions::default() }).unwrap();
    assert!(output.result.transfer.completed, "the known network carries it");

    let record = Record::read(BufReader::new(File::open(file).unwrap())).unwrap();
    assert!(record.is_complete());
    let network = Network::estimate(&record).unwrap();
    let replay = Replay::new(&record, &network);
    let mut times: Vec<f64> =
        (1..=9).map(|seed| replay.run(None, seed).unwrap().time_s.unwrap()).collect();
    times.sort_by(f64::total_cmp);
    let (recorded_s, replayed_s) = (record.time_s(), times[4]);
    println!(
        "{preset} seed {seed}: recorded {recorded_s:.3} s, replayed {replayed_s:.3} s ({:+.1} %), {times:.3?}\n{}",
        (replayed_s / recorded_s - 1.0) * 100.0,
        replay.scenario(),
    );
    Loop { network, recorded_s, replayed_s }
}

impl Loop {
    /// Within 5 %.
    fn holds(self) -> Loop {
        let difference = self.replayed_s / self.recorded_s - 1.0;
        assert!(difference.abs() < 0.05, "{:.1} %", difference * 100.0);
        self
    }

    /// The rate of a path in Mbit/s at a time.
    fn mbps(&self, path: usize, at: f64) -> f64 {
        self.network.paths[path].rates.at(at) / 1e6
    }
}

fn near(found: f64, truth: f64, tolerance: f64) {
    assert!((found / truth - 1.0).abs() < tolerance, "{found}, not {truth}");
}

const PRESETS: [&str; 3] = ["cmt", "cmt-pf", "adaptive"];

const UNEQUAL: &str = r#"
transfer = [{ size = "2 kB", rate = "80 kbit/s" }, { size = "20 MB", start = "220 ms" }]
[[path]]
rate = "20 Mbit/s"
delay = "10 ms"
queue = "60 packets"
[[path]]
rate = "8 Mbit/s"
delay = "50 ms"
queue = "80 packets"
"#;

#[test]
fn unequal_paths() {
    for preset in PRESETS {
        let found = closed(UNEQUAL, preset, 1).holds();
        near(found.network.paths[0].one_way_delay_s, 0.010, 0.1);
        near(found.network.paths[1].one_way_delay_s, 0.050, 0.1);
        near(found.mbps(0, 1.0), 20.0, 0.05);
        near(found.mbps(1, 1.0), 8.0, 0.05);
        assert!(found.network.shared.is_empty());
    }
}

const LOSSY: &str = r#"
transfer = [{ size = "2 kB", rate = "80 kbit/s" }, { size = "20 MB", start = "220 ms" }]
[[path]]
rate = "20 Mbit/s"
delay = "20 ms"
loss = { forward = "1 %", reverse = "0 %" }
[[path]]
rate = "20 Mbit/s"
delay = "30 ms"
loss = { forward = "0.3 %", reverse = "0 %" }
"#;

/// A dozen lost packets more or less make a loss-based sender slower or faster by some percent, and
/// a record knows their numbers to within ten: single transfers differ by 3 % (standard deviation),
/// so several are compared.
#[test]
fn random_losses() {
    for preset in PRESETS {
        let found: Vec<Loop> = (1..=4).map(|seed| closed(LOSSY, preset, seed)).collect();
        let differences = found.iter().map(|found| found.replayed_s / found.recorded_s - 1.0);
        let mean = differences.sum::<f64>() / found.len() as f64;
        assert!(mean.abs() < 0.05, "{preset}: {:.1} % in the mean", mean * 100.0);
        let ratio = |path: usize| found[1].network.paths[path].losses[0].ratio;
        assert!((0.006..0.015).contains(&ratio(0)), "{}", ratio(0));
        assert!((0.001..0.006).contains(&ratio(1)), "{}", ratio(1));
    }
}

const OUTAGE: &str = r#"
transfer = [{ size = "2 kB", rate = "80 kbit/s" }, { size = "20 MB", start = "220 ms" }]
[[path]]
rate = "20 Mbit/s"
delay = "20 ms"
queue = "80 packets"
[[path]]
rate = "10 Mbit/s"
delay = "30 ms"
queue = "80 packets"
down = [{ at = "2 s", for = "2 s" }]
"#;

#[test]
fn an_outage() {
    for preset in PRESETS {
        let found = closed(OUTAGE, preset, 3).holds();
        let outages = &found.network.paths[1].outages;
        assert_eq!(outages.len(), 1, "{outages:?}");
        assert!((outages[0].from_s - 1.78).abs() < 0.1, "{outages:?}");
        assert!(found.network.paths[0].outages.is_empty());
    }
}

const CHANGES: &str = r#"
transfer = [{ size = "2 kB", rate = "80 kbit/s" }, { size = "20 MB", start = "220 ms" }]
[[path]]
rate = "20 Mbit/s"
delay = "20 ms"
queue = "80 packets"
rate_changes = [{ at = "2 s", to = "5 Mbit/s" }, { at = "5 s", to = "20 Mbit/s" }]
[[path]]
rate = "10 Mbit/s"
delay = "30 ms"
queue = "80 packets"
"#;

#[test]
fn changes_of_the_rate() {
    for preset in PRESETS {
        let found = closed(CHANGES, preset, 4).holds();
        near(found.mbps(0, 1.0), 20.0, 0.06);
        near(found.mbps(0, 4.0), 5.0, 0.06);
    }
}

const SHARED: &str = r#"
[[node]]
name = "a"
[[node]]
name = "r"
[[node]]
name = "z"
[[link]]
name = "first"
from = "a"
to = "r"
rate = "100 Mbit/s"
delay = "10 ms"
[[link]]
name = "second"
from = "a"
to = "r"
rate = "100 Mbit/s"
delay = "25 ms"
[[link]]
name = "core"
from = "r"
to = "z"
rate = "20 Mbit/s"
delay = "5 ms"
queue = "100 packets"
[[flow]]
from = "a"
to = "z"
size = "2 kB"
rate = "80 kbit/s"
transfer = [{ size = "20 MB", start = "220 ms" }]
path = [{ via = ["first", "core"] }, { via = ["second", "core"] }]
"#;

#[test]
fn a_shared_bottleneck() {
    for preset in PRESETS {
        let found = closed(SHARED, preset, 5).holds();
        assert_eq!(found.network.shared.len(), 1);
        near(found.network.shared[0].rates.at(3.0) / 1e6, 20.0, 0.05);
    }
}

#[test]
fn one_path() {
    let scenario = r#"
transfer = [{ size = "2 kB", rate = "80 kbit/s" }, { size = "10 MB", start = "220 ms" }]
[[path]]
rate = "10 Mbit/s"
delay = "25 ms"
"#;
    for preset in ["sctp", "adaptive"] {
        near(closed(scenario, preset, 1).holds().mbps(0, 2.0), 10.0, 0.05);
    }
}
