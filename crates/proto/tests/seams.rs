//! Which files of the engine know of a feature.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const SRC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
const DOCS: &str = include_str!("../../../docs/redundancy.md");

/// The Rust files below a folder of the engine, but for tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the engine") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.file_name().is_some_and(|name| name != "tests.rs") {
            found.push(path);
        }
    }
}

/// The engine's part of the code in a file: no comments, no declarations of modules and imports.
fn code(text: &str) -> String {
    let is_code = |line: &&str| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub(super) ").unwrap_or(line);
        !["//", "mod ", "use "].iter().any(|start| line.starts_with(start))
    };
    text.lines().filter(is_code).collect()
}

/// Words of code that knows of a chunk's second transmission or of who wants it.
const OF_COPIES: [&str; 15] = [
    "AssocTimer::Copy",
    "ChunkCopy",
    "CopyTurn",
    "Cover",
    "Flights",
    "NextLook",
    "also_on",
    "copies",
    "copy(",
    "goes_on_elsewhere",
    "has_copy",
    "redundant_",
    "SecondTransmission",
    "second_transmission",
    "wait_for_copy",
];

/// The queue of second transmissions and functions about it are called `extra`, `lost_extra` and
/// the like.
fn has_word_extra(code: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = code.split(|c| !is_part(c)).flat_map(|word| word.split('_'));
    words.any(|word| word == "extra")
}

#[test]
fn the_files_that_know_of_copies_are_those_that_the_documentation_names() {
    let rows = DOCS.lines().filter(|line| line.starts_with("| `"));
    let cells = rows.filter_map(|row| row.split('|').nth(1));
    let words = cells.flat_map(|cell| cell.split('`'));
    let named: BTreeSet<String> =
        words.filter(|name| name.ends_with(".rs")).map(str::to_owned).collect();
    let mut files = Vec::new();
    ["assoc", "endpoint", "path", "tx"].iter().for_each(|folder| {
        files.push(Path::new(SRC).join(folder).with_extension("rs"));
        sources(&Path::new(SRC).join(folder), &mut files);
    });
    let knows = |file: &PathBuf| {
        let code = code(&fs::read_to_string(file).expect("text"));
        OF_COPIES.iter().any(|word| code.contains(word)) || has_word_extra(&code)
    };
    let name = |file: &PathBuf| {
        let name = file.strip_prefix(SRC).expect("of the engine").to_string_lossy();
        name.replace('\\', "/")
    };
    let known: BTreeSet<String> = files.iter().filter(|f| knows(f)).map(name).collect();
    assert_eq!(known, named, "files that know of copies, and those that docs/redundancy.md names");
}

/// The lower floors of the engine, and the modules that each may use.
const FLOORS: [(&str, &[&str]); 3] = [
    ("view", &["time", "view"]),
    ("params", &["params"]),
    ("policy", &["overlay", "params", "policy", "rng", "time", "view"]),
];

#[test]
fn policies_see_values_and_views_and_nothing_above_them() {
    for (floor, allowed) in FLOORS {
        let mut files = vec![Path::new(SRC).join(floor).with_extension("rs")];
        sources(&Path::new(SRC).join(floor), &mut files);
        assert!(files.len() > 3, "{floor}: {files:?}");
        for file in files.iter().filter(|file| !file.components().any(|c| c.as_os_str() == "tests"))
        {
            let text = fs::read_to_string(file).expect("text");
            let product = text.split("#[cfg(test)]").next().unwrap_or_default();
            let lines = product.lines().filter(|line| !line.trim_start().starts_with("//"));
            for used in lines.flat_map(|line| line.split("crate::").skip(1)) {
                let word = used.split(|c: char| !c.is_alphanumeric() && c != '_').next();
                let word = word.unwrap_or_default();
                assert!(allowed.contains(&word), "{}: crate::{used}", file.display());
            }
        }
    }
}
