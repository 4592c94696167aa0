//! The page that maps mechanisms and figures to files names what exists, and every experiment.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The words in backticks of the page's tables.
fn quoted(page: &str) -> Vec<&str> {
    let rows = page.lines().filter(|line| line.starts_with('|'));
    rows.flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

/// The names of the experiments: folders of `experiments/PAPER/`.
fn experiments() -> BTreeSet<String> {
    let folders = |path: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(path).expect("a folder");
        entries.map(|e| e.expect("readable").path()).filter(|p| p.is_dir()).collect()
    };
    let papers = folders(&root().join("experiments"));
    let all = papers.iter().flat_map(|paper| folders(paper));
    all.filter(|folder| folder.join("claims.toml").exists())
        .map(|folder| folder.file_name().expect("a name").to_string_lossy().into_owned())
        .collect()
}

#[test]
fn the_page_of_mechanisms_names_files_and_experiments_that_exist() {
    let page = std::fs::read_to_string(root().join("docs/where.md")).expect("the page");
    let experiments = experiments();
    let exists = |word: &str| {
        if !word.ends_with(".rs") {
            experiments.contains(word)
        } else if word.starts_with("crates/") {
            root().join(word).exists()
        } else {
            root().join("crates/proto/src").join(word).exists()
        }
    };
    let wrong: BTreeSet<_> = quoted(&page).into_iter().filter(|word| !exists(word)).collect();
    assert!(wrong.is_empty(), "neither a file nor an experiment: {wrong:?}");
}

#[test]
fn the_page_of_mechanisms_names_every_experiment() {
    let page = std::fs::read_to_string(root().join("docs/where.md")).expect("the page");
    let named: BTreeSet<_> = quoted(&page).into_iter().map(str::to_owned).collect();
    let missing: Vec<_> = experiments().into_iter().filter(|id| !named.contains(id)).collect();
    assert!(missing.is_empty(), "not in docs/where.md: {missing:?}");
}
