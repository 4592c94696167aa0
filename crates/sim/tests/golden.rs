//! Small sweeps whose figures are kept in the tree: a change of behaviour is a readable difference.
//!
//! Each `golden/NAME.toml` has its table in `golden/NAME.txt`. When a change is meant, renew them
//! and say in the commit why they changed:
//!
//! ```text
//! UPDATE_GOLDEN=1 cargo test -p manypath-sim --test golden
//! ```

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use manypath_sim::scenario::{RunOptions, Scenario};
use manypath_sim::{PathResult, TransferResult};

/// The seeds of every table.
const SEEDS: [u64; 3] = [1, 2, 3];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// One column a path: `3+0`.
fn of_paths(result: &TransferResult, figure: impl Fn(&PathResult) -> u64) -> String {
    let figures: Vec<String> = result.paths.iter().map(|path| figure(path).to_string()).collect();
    figures.join("+")
}

fn cells(params: &[(String, String)], result: &TransferResult) -> Vec<String> {
    let mut cells: Vec<String> = params.iter().map(|(_, value)| value.clone()).collect();
    let time = if result.completed {
        format!("{:.3}", result.transfer_time_s)
    } else {
        "never".to_owned()
    };
    cells.extend([
        result.seed.to_string(),
        result.data_start_s.map_or("never".to_owned(), |start| format!("{start:.3}")),
        time,
        format!("{:.3}", result.max_delivery_gap_s),
        of_paths(result, |path| path.stats.counters.data_chunks_sent),
        of_paths(result, |path| path.stats.counters.retransmissions),
        of_paths(result, |path| path.stats.counters.fast_retransmits),
        of_paths(result, |path| path.stats.counters.t3_expirations),
        of_paths(result, |path| path.packets_dropped),
    ]);
    cells
}

/// All runs of a scenario as a table of aligned columns.
fn table(file: &Path) -> String {
    let points = Scenario::load(file).unwrap().points().unwrap();
    let mut header: Vec<String> = points[0].params.iter().map(|(name, _)| name.clone()).collect();
    let figures = [
        "seed",
        "start_s",
        "time_s",
        "gap_s",
        "data",
        "retransmitted",
        "fast",
        "t3_expired",
        "dropped",
    ];
    header.extend(figures.map(str::to_owned));
    let mut rows = vec![header];
    for point in &points {
        for seed in SEEDS {
            let output = point.run.run(seed, &RunOptions::default()).unwrap();
            rows.push(cells(&point.params, &output.result.transfer));
        }
    }
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|column| rows.iter().map(|row| row[column].len()).max().unwrap_or(0))
        .collect();
    let mut text = String::new();
    for row in rows {
        let padded = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        writeln!(text, "{}", padded.collect::<Vec<_>>().join("  ").trim_end()).unwrap();
    }
    text
}

/// The lines that differ, the kept one first.
fn difference(kept: &str, now: &str) -> String {
    let (mut old, mut new) = (kept.lines(), now.lines());
    let mut text = String::new();
    loop {
        match (old.next(), new.next()) {
            (None, None) => return text,
            (old, new) if old == new => {}
            (old, new) => {
                let lines = [old.map(|line| ('-', line)), new.map(|line| ('+', line))];
                for (sign, line) in lines.into_iter().flatten() {
                    writeln!(text, "{sign} {line}").unwrap();
                }
            }
        }
    }
}

fn check(name: &str) {
    let now = table(&folder().join(format!("{name}.toml")));
    let file = folder().join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, &now).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default().replace("\r\n", "\n");
    let header = now.lines().next().unwrap_or_default();
    assert!(
        kept == now,
        "golden/{name}.txt is not what runs give now.\n  {header}\n{}If this is meant: \
         UPDATE_GOLDEN=1 cargo test -p manypath-sim --test golden, and the reason in the commit.",
        difference(&kept, &now)
    );
}

#[test]
fn retransmission_policies() {
    check("retransmission");
}

#[test]
fn presets_when_a_path_fails() {
    check("failure");
}

#[test]
fn every_table_is_checked() {
    let mut names: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    names.sort();
    assert_eq!(names, ["failure.toml", "retransmission.toml"]);
}

#[test]
fn a_difference_shows_the_lines_that_changed() {
    assert_eq!(difference("a\nb\nc\n", "a\nB\nc\nd\n"), "- b\n+ B\n+ d\n");
}
