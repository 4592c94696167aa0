//! Files of the engine that import each other in a circle, by their `use` lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const SRC: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
/// A circle of more files has no bottom to begin reading at.
const CIRCLE_MAX: usize = 3;

/// A module as the names that lead to it.
type Module = Vec<String>;

/// The modules below a folder, and the product code of each.
fn modules(folder: &Path, found: &mut BTreeMap<Module, String>) {
    for entry in fs::read_dir(folder).expect("a folder of the engine") {
        let path = entry.expect("readable").path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() && name != "tests" {
            modules(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") && name != "tests" {
            let text = fs::read_to_string(&path).expect("text");
            let product = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
            found.insert(module(&path), product);
        }
    }
}

fn module(path: &Path) -> Module {
    let inside: PathBuf = path.strip_prefix(SRC).expect("of the engine").with_extension("");
    inside.iter().map(|name| name.to_string_lossy().into_owned()).collect()
}

/// The paths in a use tree: `a::{b, c::d}` has `a::b` and `a::c::d`.
fn expand(tree: &str, before: &str, paths: &mut Vec<String>) {
    let tree = tree.trim();
    let Some((head, rest)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        paths.push(format!("{before}{path}"));
        return;
    };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut begin) = (0, 0);
    for (at, c) in inner.char_indices().chain([(inner.len(), ',')]) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                if !inner[begin..at].trim().is_empty() {
                    expand(&inner[begin..at], &format!("{before}{head}"), paths);
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
}

/// The modules that the `use` lines of one name, but for its own parents and children.
fn imports(own: &Module, text: &str, all: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let mut paths = Vec::new();
    for (at, _) in text.match_indices("use ") {
        let line = text[..at].rsplit('\n').next().unwrap_or_default().trim();
        let is_start = line.is_empty() || line.starts_with("pub");
        if let (true, Some((tree, _))) = (is_start, text[at + 4..].split_once(';')) {
            expand(&tree.split_whitespace().collect::<Vec<_>>().join(" "), "", &mut paths);
        }
    }
    let resolve = |path: &String| -> Option<Module> {
        let names: Vec<String> = path.split("::").map(str::to_owned).collect();
        let up = names.iter().take_while(|name| *name == "super").count();
        let mut target = match names.first()?.as_str() {
            "crate" => names[1..].to_vec(),
            "self" => [own, &names[1..]].concat(),
            "super" => [&own[..own.len().checked_sub(up)?], &names[up..]].concat(),
            _ => return None,
        };
        while !target.is_empty() && !all.contains_key(&target) {
            target.pop();
        }
        let is_kin = target.starts_with(own) || own.starts_with(&target);
        (!target.is_empty() && !is_kin).then_some(target)
    };
    paths.iter().filter_map(resolve).collect()
}

#[test]
fn no_circle_of_imports_has_more_files_than_a_reader_keeps_in_mind() {
    let mut all = BTreeMap::new();
    modules(Path::new(SRC), &mut all);
    let edges: BTreeMap<&Module, BTreeSet<Module>> =
        all.iter().map(|(own, text)| (own, imports(own, text, &all))).collect();
    assert!(edges.values().map(BTreeSet::len).sum::<usize>() > 300, "imports were not read");
    let reached = |from: &Module| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(next) = open.pop() {
            for to in edges.get(&next).into_iter().flatten() {
                if seen.insert(to.clone()) {
                    open.push(to.clone());
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&Module, BTreeSet<Module>> =
        all.keys().map(|own| (own, reached(own))).collect();
    for (own, seen) in &reach {
        let circle: Vec<_> = seen.iter().filter(|other| reach[other].contains(*own)).collect();
        assert!(circle.len() <= CIRCLE_MAX, "{} are in a circle: {circle:?}", circle.len());
    }
}
