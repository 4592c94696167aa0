//! `manypath sim`: results for people and programs, the same whatever the number of jobs.

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use common::{MANYPATH, code, lines_within, manypath, stderr, stdout};
use serde_json::Value;

const SCENARIO: &str = r#"
name = "short"
seeds = 3
[transport]
preset = "cmt"
[transfer]
size = "200 kB"
[[path]]
rate = "10 Mbit/s"
delay = "10 ms"
[[path]]
rate = "5 Mbit/s"
delay = "20 ms"
[sweep]
"path.2.loss" = ["0 %", "5 %"]
"#;

struct Folder {
    dir: tempfile::TempDir,
    scenario: String,
}

fn folder() -> Folder {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("short.toml");
    fs::write(&path, SCENARIO).unwrap();
    Folder { scenario: path.display().to_string(), dir }
}

impl Folder {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Runs `manypath sim run` on the scenario.
    fn run(&self, more: &[&str]) -> std::process::Output {
        manypath(&[&["sim", "run", &self.scenario], more].concat())
    }
}

#[test]
fn a_table_has_a_row_for_each_point() {
    let output = folder().run(&["--jobs", "1"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    for word in ["path.2.loss", "goodput", "0 %", "5 %", "±", "95 %"] {
        assert!(text.contains(word), "{word} in\n{text}");
    }
}

#[test]
fn a_table_fits_and_long_work_is_announced() {
    let folder = folder();
    for columns in [44, 60, 80] {
        let lines = lines_within(columns, &["sim", "run", &folder.scenario]);
        let widest = lines.iter().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= columns, "{columns}:\n{}", lines.join("\n"));
        assert!(lines.iter().any(|line| line.contains(" ± ")), "{}", lines.join("\n"));
    }
    assert_eq!(stderr(&folder.run(&[])), "");
    let many = folder.run(&["--seeds", "150", "--set", "transfer.size=1 kB"]);
    assert_eq!(stderr(&many), "300 runs: 2 points, 150 seeds each.\n");
    assert_eq!(
        stderr(&folder.run(&["--seeds", "150", "--set", "transfer.size=1 kB", "--quiet"])),
        ""
    );
}

#[test]
fn json_is_the_same_whatever_the_jobs_and_in_order() {
    let folder = folder();
    let one = stdout(&folder.run(&["--json", "--jobs", "1"]));
    assert_eq!(one, stdout(&folder.run(&["--json", "--jobs", "5"])));
    let rows: Vec<Value> = one.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let keys: Vec<_> = rows.iter().map(|r| (&r["parameters"]["path.2.loss"], &r["seed"])).collect();
    let (none, five): (Value, Value) = ("0 %".into(), "5 %".into());
    let seeds: Vec<Value> = (1..=3).map(Value::from).collect();
    let expected: Vec<_> =
        [&none, &five].into_iter().flat_map(|loss| seeds.iter().map(move |s| (loss, s))).collect();
    assert_eq!(keys, expected);
    assert!(rows.iter().all(|row| row["completed"] == true && row["bytes"] == 200_000));
    assert!(rows.iter().all(|row| row["scenario"] == "short" && row["preset"] == "cmt"));
}

#[test]
fn settings_seeds_and_a_point_choose_what_runs() {
    let more = ["--json", "--point", "2", "--seeds", "7..8", "--set", "transfer.size=50 kB"];
    let text = stdout(&folder().run(&more));
    let rows: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let facts: Vec<_> = rows.iter().map(|r| (r["seed"].as_u64(), r["bytes"].as_u64())).collect();
    assert_eq!(facts, [(Some(7), Some(50_000)), (Some(8), Some(50_000))]);
    assert!(rows.iter().all(|row| row["parameters"]["path.2.loss"] == "5 %"));
}

#[test]
fn files_have_a_row_for_each_run() {
    let folder = folder();
    let (csv, parquet) = (folder.path("runs.csv"), folder.path("runs.parquet"));
    let (a, b) = (csv.display().to_string(), parquet.display().to_string());
    let output = folder.run(&["--csv", &a, "--parquet", &b]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let text = fs::read_to_string(csv).unwrap();
    assert_eq!(text.lines().count(), 7);
    let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    for column in ["path.2.loss", "seed", "transfer_time_s", "path2_t3_expirations"] {
        assert!(header.contains(&column), "{column} in {header:?}");
    }
    assert!(fs::read(parquet).unwrap().starts_with(b"PAR1"));
}

#[test]
fn a_run_is_traced_and_captured() {
    let folder = folder();
    let (trace, captures) = (folder.path("events.jsonl"), folder.path("captures"));
    let (a, b) = (trace.display().to_string(), captures.display().to_string());
    let many = folder.run(&["--trace", &a]);
    assert_eq!(code(&many), 2);
    assert!(stderr(&many).contains("--trace writes one run"), "{}", stderr(&many));
    let one = folder.run(&["--point", "1", "--seeds", "1", "--trace", &a, "--pcapng", &b]);
    assert_eq!(code(&one), 0, "{}", stderr(&one));
    assert!(fs::read_to_string(trace).unwrap().lines().count() > 100);
    assert_eq!(fs::read_dir(captures).unwrap().count(), 2, "one for each host");
}

#[test]
fn check_explains_and_errors_name_the_line() {
    let folder = folder();
    let check = manypath(&["sim", "check", &folder.scenario]);
    assert_eq!(code(&check), 0, "{}", stderr(&check));
    for words in ["2 points of 3 seeds, 1 to 3: 6 runs", "a ──[10 Mbit/s, 10 ms]── z", "fill_first"]
    {
        assert!(stdout(&check).contains(words), "{words} in\n{}", stdout(&check));
    }
    fs::write(folder.path("bad.toml"), SCENARIO.replace("delay = \"20", "dely = \"20")).unwrap();
    let bad = folder.path("bad.toml").display().to_string();
    for command in ["run", "check"] {
        let output = manypath(&["sim", command, &bad]);
        assert_eq!((code(&output), stdout(&output).as_str()), (2, ""));
        let expected =
            format!("{bad}:13: unknown key `dely` in path.2\n  try: did you mean `delay`?");
        assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
    }
    for wrong in [&["--set", "path.2"][..], &["--set", "path.3.loss=1%"], &["--point", "9"]] {
        assert_eq!(code(&folder.run(wrong)), 2, "{wrong:?}");
    }
}

#[test]
fn protected_packets_are_shown_opened_if_asked_for() {
    let folder = folder();
    let one = ["--point", "1", "--seeds", "1..1", "--quiet", "--set", "protected=true"];
    let trace = |more: &[&str]| {
        let output = folder.run(&[&one[..], &["--trace", "-"], more].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stdout(&output)
    };
    let (closed, opened) = (trace(&[]), trace(&["--opened"]));
    assert_eq!(closed.lines().count(), opened.lines().count());
    assert!(closed.contains(r#""chunk":"DTLS""#) && !closed.contains(r#""opened""#));
    assert!(opened.contains(r#""opened":true"#) && !opened.contains(r#""chunk":"DTLS""#));
    let output = folder.run(&["--opened"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("--trace FILE or --pcapng DIR"), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn a_reader_of_the_trace_may_stop_reading() {
    let folder = folder();
    let mut command = std::process::Command::new(MANYPATH);
    command.args(["sim", "run", &folder.scenario, "--point", "1", "--seeds", "1..1"]);
    command.args(["--trace", "-"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stderr(&output).contains("goodput"), "the run went on: {}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn a_device_without_an_end_is_no_scenario() {
    let output = manypath(&["sim", "check", "/dev/zero"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("larger than 10 MB"), "{}", stderr(&output));
}
