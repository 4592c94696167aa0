use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use manypath_lab::experiment::Experiments;
use manypath_lab::lab::{self, Options};
use serde_json::Value;

use super::*;

const SCENARIO: &str = r#"
time_limit = "60 s"
transport = { preset = "cmt-pf", udp_encapsulation = true }
transfer.size = "300 kB"
[[path]]
rate = "4 Mbit/s"
delay = "10 ms"
queue = "1 MB"
[[path]]
rate = "4 Mbit/s"
delay = "10 ms"
queue = "1 MB"
"#;

const CLAIMS: &str = r#"
title = "A test"
figure = "Fig. 0"
kind = "realtime"
samples = { every = "20 ms" }
"#;

/// The rows of a run of the experiment.
fn rows(scenario: &str) -> Result<Vec<Value>, LabError> {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("experiments/999-test/test");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("scenario.toml"), scenario).unwrap();
    std::fs::write(folder.join("claims.toml"), CLAIMS).unwrap();
    let experiments = Experiments::find(Some(&dir.path().join("experiments")))?;
    let realtime = Realtime::start().unwrap();
    let planner = |experiment: &Experiment, extent: &Extent| realtime.plan(experiment, extent);
    let options = Options {
        out: dir.path().join("out"),
        jobs: NonZeroUsize::MIN,
        extent: Extent::default(),
        realtime: Some(&planner),
    };
    let selected = experiments.select(&["test".to_owned()])?;
    let outcomes =
        lab::run(&experiments, &selected, &options, &AtomicBool::new(false), &mut |_| {})?;
    assert_eq!(outcomes[0].failed, []);
    check_samples(&options.out.join("test/samples.csv"));
    let text = std::fs::read_to_string(options.out.join("test/runs.jsonl")).unwrap();
    Ok(text.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// Both variants have their progress kept, from nothing to everything.
fn check_samples(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    for variant in ["scenario", SIMULATED] {
        let own = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let own = own.filter(|cells| cells[0] == variant && cells.contains(&"delivered_bytes"));
        let bytes: Vec<f64> = own.map(|cells| cells[cells.len() - 1].parse().unwrap()).collect();
        assert!(bytes.len() > 5 && bytes.is_sorted(), "{variant}: {bytes:?}");
        assert!(bytes[0] < 50_000.0 && bytes[bytes.len() - 1] > 200_000.0, "{variant}: {bytes:?}");
    }
}

#[test]
fn a_transfer_in_real_time_has_the_fields_of_a_simulated_one() {
    let rows = rows(SCENARIO).unwrap();
    let [real, simulated] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((&real["variant"], &simulated["variant"]), (&"scenario".into(), &SIMULATED.into()));
    let names = |row: &Value| -> Vec<String> {
        let names = row.as_object().unwrap().keys();
        names.filter(|name| *name != "real_time").cloned().collect()
    };
    assert_eq!(names(real), names(simulated));
    for row in [real, simulated] {
        assert_eq!((&row["completed"], &row["bytes"]), (&true.into(), &300_000.into()), "{row}");
    }
    assert_eq!((&real["real_time"], &real["trace_hash"]), (&true.into(), &Value::Null));
    // What two paths carry in that time with headers; the machine may be slower, not faster.
    let least = 300_000.0 * 8.0 / 8e6;
    let time = real["ack_time_s"].as_f64().unwrap();
    assert!(time > least && real["path2_data_chunks_sent"].as_u64().unwrap() > 20, "{real}");
}

#[test]
fn an_outage_is_noticed_in_real_time() {
    let scenario = SCENARIO.replacen("300 kB", "600 kB", 1) + "down = [{ at = \"300 ms\" }]\n";
    let rows = rows(&scenario).unwrap();
    for row in &rows {
        assert_eq!(
            (&row["completed"], &row["outage_begin_s"]),
            (&true.into(), &0.3.into()),
            "{row}"
        );
        let dropped = row["path2_packets_dropped"].as_u64().unwrap();
        let failed = row["path2_potentially_failed_at_s"].as_f64().unwrap();
        assert!(dropped > 0 && failed > 0.3, "{row}");
        assert_eq!(row["path1_packets_dropped"], 0, "{row}");
    }
}

#[test]
fn what_cannot_run_in_real_time_is_an_error() {
    let scenario = SCENARIO.replacen("queue", "mtu = \"1400\"\nqueue", 1);
    let error = rows(&scenario).unwrap_err();
    assert!(error.what.contains("path 1 has a link's mtu"), "{error}");
    assert!(error.place.ends_with("scenario.toml"), "{error}");
}
