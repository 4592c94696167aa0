//! The tables of rules name tests and source files that exist.

use std::collections::BTreeSet;
use std::path::Path;

/// Pages of extensions, with the test for each rule.
const EXTENSIONS: [&str; 10] = [
    "rfc8260.md",
    "rfc3758.md",
    "rfc6525.md",
    "rfc4895.md",
    "rfc5061.md",
    "rfc7053.md",
    "rfc9653.md",
    "ecn.md",
    "attacks.md",
    "raw-ip.md",
];

/// The names of all functions in the Rust files below a folder.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            functions(&path, names);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("readable");
            let words = text.lines().map(|line| line.trim_start());
            let named =
                words.filter_map(|line| line.trim_start_matches("async ").strip_prefix("fn "));
            names.extend(named.filter_map(|rest| Some(rest.split_once('(')?.0.to_owned())));
        }
    }
}

#[test]
fn every_test_that_the_tables_name_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join("docs").join(name));
    let pages: Vec<_> =
        ["rfc9260.md", "rfc8899.md"].iter().chain(&EXTENSIONS).map(|p| read(p)).collect();
    if pages.iter().any(Result::is_err) {
        return; // The crate alone, without the repository.
    }
    let table: String = pages.into_iter().flatten().collect();
    let mut names = BTreeSet::new();
    functions(&root.join("crates/proto"), &mut names);
    functions(&root.join("crates/wire"), &mut names);
    functions(&root.join("crates/sim/tests"), &mut names);
    functions(&root.join("crates/manypath/tests"), &mut names);
    functions(&root.join("crates/net"), &mut names);
    let quoted =
        table.lines().filter(|l| l.starts_with('|')).flat_map(|l| l.split('`').skip(1).step_by(2));
    let tests = quoted.map(|q| q.split_once(": ").map_or(q, |(_, name)| name));
    let is_test = |t: &&str| t.len() > 20 && t.contains('_') && !t.ends_with(".rs");
    let missing: Vec<_> = tests.filter(is_test).filter(|t| !names.contains(*t)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The cells of a table's row.
fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split(" | ").map(str::trim).collect()
}

#[test]
fn every_rule_names_source_files_that_exist() {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| std::fs::read_to_string(crate_root.join("../../docs").join(name));
    let Ok(mut page) = read("rfc9260.md") else {
        return; // The crate alone, without the repository.
    };
    for other in EXTENSIONS.map(read).into_iter().flatten() {
        // Tables before the first heading are no rules and have no sources.
        page += other.find("\n## ").map_or("", |at| &other[at..]);
    }
    let exists = |file: &str| {
        if file.starts_with("crates/") {
            crate_root.join("../..").join(file).is_file()
        } else {
            crate_root.join("src").join(file).is_file()
        }
    };
    let (mut column, mut rows, mut wrong) = (None, 0, Vec::new());
    for line in page.lines() {
        let cells = cells(line);
        match column {
            _ if !line.starts_with('|') => column = None,
            None => {
                column = cells.iter().position(|cell| *cell == "source");
                assert!(column.is_some(), "a table without a column of sources: {line}");
            }
            Some(_) if line.starts_with("| ---") => {}
            Some(source) => {
                rows += 1;
                let files: Vec<_> = cells[source].split('`').skip(1).step_by(2).collect();
                if files.is_empty() || !files.iter().all(|file| exists(file)) {
                    wrong.push(line);
                }
            }
        }
    }
    assert!(rows > 150, "only {rows} rules");
    assert!(wrong.is_empty(), "no source, or a file that does not exist:\n{}", wrong.join("\n"));
}
