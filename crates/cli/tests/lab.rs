//! `lab`: a small experiment of our own, from its folder to its verdicts.

mod common;

use std::path::Path;

use common::{code, manypath, stderr, stdout};
use serde_json::Value;

const SCENARIO: &str = r#"
seeds = 2
time_limit = "60 s"
transport.preset = "cmt"
transfer.size = "50 kB"
[[path]]
rate = "10 Mbit/s"
delay = "20 ms"
queue = "64 KiB"
[sweep]
"path.1.loss" = ["0 %", "10 %"]
"#;

const CLAIMS: &str = r#"
title = "Loss slows"
figure = "Fig. 1"
[[claim]]
id = "slower"
says = "With loss it is slower"
where = "Fig. 1"
measure = "change"
field = "ack_time_s"
at = { "path.1.loss" = "10 %" }
to = { "path.1.loss" = "0 %" }
at_least = "1 %"
[[claim]]
id = "faster"
says = "With loss it is faster"
where = "nowhere"
measure = "change"
field = "ack_time_s"
at = { "path.1.loss" = "10 %" }
to = { "path.1.loss" = "0 %" }
at_most = "-1 %"
"#;

fn folder() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let own = root.path().join("experiments/900-mine/mine-one");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("scenario.toml"), SCENARIO).unwrap();
    std::fs::write(own.join("claims.toml"), CLAIMS).unwrap();
    root
}

/// `lab` with the experiments and the results of this folder.
fn lab(root: &Path, args: &[&str]) -> std::process::Output {
    let (experiments, out) = (root.join("experiments"), root.join("out"));
    let mut all = vec!["lab"];
    all.extend(args);
    let experiments = experiments.to_string_lossy().into_owned();
    all.extend(["--experiments", &experiments]);
    let out = out.to_string_lossy().into_owned();
    if args.first() != Some(&"list") {
        all.extend(["--out", &out]);
    }
    manypath(&all)
}

#[test]
fn an_experiment_is_listed_run_and_judged_again() {
    let root = folder();
    let list = lab(root.path(), &["list"]);
    assert_eq!(code(&list), 0, "{}", stderr(&list));
    assert!(stdout(&list).contains("mine-one"), "{}", stdout(&list));

    let run = lab(root.path(), &["run", "mine-*", "--json"]);
    assert_eq!(code(&run), 0, "a claim that does not hold is no error: {}", stderr(&run));
    let result: Value = serde_json::from_str(&stdout(&run)).unwrap();
    let verdicts = [0, 1].map(|n| result["judgements"][n]["verdict"].clone());
    assert_eq!(verdicts, ["holds", "fails"]);
    assert_eq!(result["about"]["runs"], 4);

    let strict = lab(root.path(), &["judge", "all", "--strict"]);
    assert_eq!(code(&strict), 1);
    assert!(stdout(&strict).contains("does not hold"), "{}", stdout(&strict));
    assert!(stderr(&strict).contains("1 of 2 claims do not hold"), "{}", stderr(&strict));
}

#[test]
fn quick_runs_say_so_and_seeds_can_be_chosen() {
    let root = folder();
    let run = lab(root.path(), &["run", "900", "--quick", "--seeds", "3..4", "--jobs", "2"]);
    assert_eq!(code(&run), 0, "{}", stderr(&run));
    assert!(stdout(&run).contains("QUICK"), "{}", stdout(&run));
    let rows = std::fs::read_to_string(root.path().join("out/mine-one/runs.csv")).unwrap();
    let seeds: Vec<_> = rows.lines().skip(1).filter_map(|row| row.split(',').nth(3)).collect();
    assert_eq!(seeds, ["3", "4", "3", "4"]);
}

#[test]
fn wrong_names_and_files_say_what_to_do() {
    let root = folder();
    let unknown = lab(root.path(), &["run", "mine-tow"]);
    assert_eq!(code(&unknown), 2);
    assert!(stderr(&unknown).contains("the nearest is `mine-one`"), "{}", stderr(&unknown));
    let claims = root.path().join("experiments/900-mine/mine-one/claims.toml");
    std::fs::write(claims, CLAIMS.replace("at_least", "atleast")).unwrap();
    let wrong = lab(root.path(), &["list"]);
    assert_eq!(code(&wrong), 2);
    assert!(stderr(&wrong).contains("claims.toml:"), "{}", stderr(&wrong));
    assert!(stderr(&wrong).contains("unknown field `atleast`"), "{}", stderr(&wrong));
}

#[test]
fn the_report_is_one_file_with_pictures_beside_it() {
    let root = folder();
    let own = root.path().join("experiments/900-mine/mine-one");
    let figure = "[[figure]]\nx = \"path.1.loss\"\ny = \"ack_time_s\"\n";
    std::fs::write(own.join("figures.toml"), figure).unwrap();
    let in_root = |args: &[&str]| {
        let experiments = root.path().join("experiments").to_string_lossy().into_owned();
        let results = root.path().join("out").to_string_lossy().into_owned();
        let page = root.path().join("page.html").to_string_lossy().into_owned();
        let mut all = vec!["lab", "report", "--experiments", &experiments];
        all.extend(["--results", &results, "--out", &page]);
        all.extend(args);
        manypath(&all)
    };
    assert_eq!(code(&lab(root.path(), &["run", "all", "--quick", "--quiet"])), 0);
    let figures = root.path().join("figures");
    let report = in_root(&["--json", "--figures", &figures.to_string_lossy()]);
    assert_eq!(code(&report), 0, "{}", stderr(&report));
    let written: Value = serde_json::from_str(&stdout(&report)).unwrap();
    assert_eq!((&written["experiments"], &written["figures"]), (&1.into(), &1.into()));
    let page = std::fs::read_to_string(root.path().join("page.html")).unwrap();
    assert_eq!(written["bytes"], page.len());
    assert!(page.contains("Loss slows"));
    let pictures = std::fs::read_dir(&figures).unwrap().count();
    assert_eq!(written["pictures"], pictures);
    assert!(pictures >= 2, "SVG and PNG: {pictures}");
    std::fs::write(own.join("figures.toml"), figure.replace("x =", "ex =")).unwrap();
    let wrong = in_root(&[]);
    assert_eq!(code(&wrong), 2);
    assert!(stderr(&wrong).contains("figures.toml:"), "{}", stderr(&wrong));
}

#[test]
fn the_list_counts_what_an_experiment_in_real_time_runs() {
    let root = folder();
    let claims = root.path().join("experiments/900-mine/mine-one/claims.toml");
    std::fs::write(claims, "title = 't'\nfigure = 'f'\nkind = 'realtime'\n").unwrap();
    let list: Value =
        serde_json::from_str(&stdout(&lab(root.path(), &["list", "--json"]))).unwrap();
    let run = lab(root.path(), &["run", "mine-one", "--json"]);
    assert_eq!(code(&run), 0, "{}", stderr(&run));
    let run: Value = serde_json::from_str(&stdout(&run)).unwrap();
    assert_eq!(list["runs"], run["about"]["planned"]);
    assert_eq!(list["runs"], 8, "two points, two seeds, real and simulated");
}
