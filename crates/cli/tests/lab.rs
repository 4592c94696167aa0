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
"path.1.rate" = ["10 Mbit/s", "1 Mbit/s"]
"#;

const CLAIMS: &str = r#"
title = "A slow path slows"
figure = "Fig. 1"
[[claim]]
id = "slower"
says = "Over a slow path it is slower"
where = "Fig. 1"
measure = "change"
field = "ack_time_s"
at = { "path.1.rate" = "1 Mbit/s" }
to = { "path.1.rate" = "10 Mbit/s" }
at_least = "1 %"
[[claim]]
id = "faster"
says = "Over a slow path it is faster"
where = "nowhere"
measure = "change"
field = "ack_time_s"
at = { "path.1.rate" = "1 Mbit/s" }
to = { "path.1.rate" = "10 Mbit/s" }
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
    assert!(stderr(&strict).contains("of 2 claims 1 does not hold"), "{}", stderr(&strict));
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
    let figure = "[[figure]]\nx = \"path.1.rate\"\ny = \"ack_time_s\"\n";
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
    assert!(page.contains("A slow path slows"));
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

/// Makes these shards of `mine-one`, each into the part of its number.
fn make_parts(root: &Path, shards: &[u32], of: u32) {
    for shard in shards {
        let made = lab_to(root, &["exec", "mine-one", "--shard", &format!("{shard}/{of}")], shard);
        assert_eq!(code(&made), 0, "{}", stderr(&made));
    }
}

/// `lab` with the experiments of this folder and a part of this number as its output.
fn lab_to(root: &Path, args: &[&str], part: &u32) -> std::process::Output {
    let experiments = root.join("experiments").to_string_lossy().into_owned();
    let part = root.join(format!("part-{part}")).to_string_lossy().into_owned();
    let mut all = vec!["lab"];
    all.extend(args);
    all.extend(["--experiments", &experiments, "--out", &part]);
    manypath(&all)
}

/// Collects these parts into `collected`.
fn collect(root: &Path, parts: &[u32]) -> std::process::Output {
    let text = |path: std::path::PathBuf| path.to_string_lossy().into_owned();
    let mut all = vec!["lab".to_owned(), "collect".to_owned()];
    all.extend(parts.iter().map(|part| text(root.join(format!("part-{part}")))));
    let [experiments, out] = ["experiments", "collected"].map(|name| text(root.join(name)));
    all.extend(["--experiments".to_owned(), experiments, "--out".to_owned(), out]);
    manypath(&all.iter().map(String::as_str).collect::<Vec<_>>())
}

fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let file = |entry: std::fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).unwrap())
    };
    let mut all: Vec<_> = entries.map(file).collect();
    all.sort();
    all
}

#[test]
fn parts_of_shards_give_the_files_of_one_run() {
    let root = folder();
    let root = root.path();
    assert_eq!(code(&lab(root, &["run", "mine-one", "--jobs", "1"])), 0);
    make_parts(root, &[3, 1, 2], 3);
    // One is made again, on another machine.
    std::fs::rename(root.join("part-2"), root.join("part-20")).unwrap();
    make_parts(root, &[2], 3);
    let collected = collect(root, &[2, 20, 1, 3]);
    assert_eq!(code(&collected), 0, "{}", stderr(&collected));
    let names = ["out", "collected"].map(|name| files(&root.join(name).join("mine-one")));
    assert!(names[0] == names[1], "files differ");
    assert!(stdout(&collected).contains("does not hold"), "{}", stdout(&collected));
}

#[test]
fn a_plan_names_each_run_and_its_shard() {
    let root = folder();
    let experiments = root.path().join("experiments").to_string_lossy().into_owned();
    let plan = |more: &[&str]| {
        let all = ["lab", "plan", "mine-one", "--experiments", &experiments];
        stdout(&manypath(&[&all, more].concat()))
    };
    assert!(plan(&["--shards", "2"]).contains("4 runs, "), "{}", plan(&["--shards", "2"]));
    let tasks: Vec<Value> =
        plan(&["--json"]).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(tasks.len(), 4);
    assert_eq!((&tasks[1]["seed"], &tasks[1]["shard"]), (&Value::from(2), &Value::from("1/1")));
    let mut hashes: Vec<_> = tasks.iter().map(|task| task["task"].to_string()).collect();
    hashes.dedup();
    assert_eq!(hashes.len(), 4);
    // The same again, and others for another scenario.
    assert_eq!(plan(&["--json"]), plan(&["--json"]));
    let file = root.path().join("experiments/900-mine/mine-one/scenario.toml");
    let before = plan(&["--json"]);
    std::fs::write(file, SCENARIO.replace("20 ms", "21 ms")).unwrap();
    assert_ne!(plan(&["--json"]), before);
}

#[test]
fn a_shard_that_was_stopped_goes_on_and_what_is_missing_is_named() {
    let root = folder();
    let root = root.path();
    make_parts(root, &[1], 2);
    let incomplete = collect(root, &[1]);
    assert_eq!(code(&incomplete), 2);
    let hint = "lab exec mine-one --shard 2/2 --out PART";
    assert!(stderr(&incomplete).contains("of shard 2/2"), "{}", stderr(&incomplete));
    assert!(stderr(&incomplete).contains(hint), "{}", stderr(&incomplete));

    make_parts(root, &[2], 2);
    let part = root.join("part-2");
    let whole = std::fs::read_to_string(&part).unwrap();
    // Killed while it wrote its last line.
    std::fs::write(&part, &whole[..whole.len() - 20]).unwrap();
    let cut = collect(root, &[1, 2]);
    assert!(stderr(&cut).contains("repeat the command of shard 2/2"), "{}", stderr(&cut));
    make_parts(root, &[2], 2);
    assert_eq!(std::fs::read_to_string(&part).unwrap(), whole, "only what was missing is added");
    assert_eq!(code(&collect(root, &[1, 2])), 0);
}

#[test]
fn parts_of_other_runs_or_another_engine_are_refused() {
    let root = folder();
    let root = root.path();
    make_parts(root, &[1, 2], 2);
    let other = lab_to(root, &["exec", "mine-one", "--shard", "1/2", "--seeds", "1"], &2);
    assert_eq!(code(&other), 2);
    assert!(stderr(&other).contains("it is shard 2/2"), "{}", stderr(&other));

    let part = root.join("part-2");
    let whole = std::fs::read_to_string(&part).unwrap();
    let renamed = |from: &str, to: &str| {
        assert!(whole.contains(from), "{whole}");
        std::fs::write(&part, whole.replacen(from, to, 1)).unwrap();
        stderr(&collect(root, &[1, 2]))
    };
    let error = renamed("\"engine\":\"", "\"engine\":\"9.9.9-");
    assert!(error.contains("make it again with this program"), "{error}");
    let error = renamed("\"quick\":false", "\"quick\":true");
    assert!(error.contains("it is not of the same runs as"), "{error}");
    let error = renamed("\"part\":1", "\"part\":2");
    assert!(error.contains("it has form 2"), "{error}");
    let error = renamed("{\"task\"", "{\"tsk\"");
    assert!(error.contains("part-2:2"), "{error}");
    // The same run with another result.
    std::fs::write(&part, &whole).unwrap();
    std::fs::write(root.join("part-3"), whole.replacen("\"bytes\":50000", "\"bytes\":50001", 1))
        .unwrap();
    let error = stderr(&collect(root, &[1, 2, 3]));
    assert!(error.contains("has another result than in an earlier part"), "{error}");
    let shard = lab_to(root, &["exec", "mine-one", "--shard", "3/2"], &4);
    assert_eq!(code(&shard), 2);
    assert!(stderr(&shard).contains("such as 3/7"), "{}", stderr(&shard));
}
