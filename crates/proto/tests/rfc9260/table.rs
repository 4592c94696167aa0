//! The tables of rules name tests that exist.

use std::collections::BTreeSet;
use std::path::Path;

/// The names of all functions in the Rust files below a folder.
fn functions(folder: &Path, names: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            functions(&path, names);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = std::fs::read_to_string(&path).expect("readable");
            let named = text.lines().filter_map(|line| line.trim_start().strip_prefix("fn "));
            names.extend(named.filter_map(|rest| Some(rest.split_once('(')?.0.to_owned())));
        }
    }
}

#[test]
fn every_test_that_the_tables_name_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| std::fs::read_to_string(root.join("docs").join(name));
    let (Ok(table), Ok(sizes)) = (read("rfc9260.md"), read("rfc8899.md")) else {
        return; // The crate alone, without the repository.
    };
    let table = table + &sizes;
    let mut names = BTreeSet::new();
    functions(&root.join("crates/proto"), &mut names);
    functions(&root.join("crates/wire"), &mut names);
    functions(&root.join("crates/sim/tests"), &mut names);
    let quoted =
        table.lines().filter(|l| l.starts_with('|')).flat_map(|l| l.split('`').skip(1).step_by(2));
    let tests = quoted.map(|q| q.split_once(": ").map_or(q, |(_, name)| name));
    let missing: Vec<_> =
        tests.filter(|t| t.len() > 20 && t.contains('_') && !names.contains(*t)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
