//! An error in a scenario, its place, and its remedy.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where something was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The file, or `--set KEY`.
    file: Arc<str>,
    /// The line, counted from 1; 0 if it was not in a file.
    line: usize,
}

impl Place {
    /// A line of a file.
    pub(super) fn line(file: &Arc<str>, line: usize) -> Place {
        Place { file: Arc::clone(file), line }
    }

    /// Not in a file: the command line, or a program.
    pub(super) fn outside(source: String) -> Place {
        Place { file: source.into(), line: 0 }
    }

    /// A line of a file in the same folder, and that file's path.
    pub(super) fn beside(&self, name: &str) -> (PathBuf, Arc<str>) {
        let path = Path::new(&*self.file).with_file_name(name);
        let shown = path.display().to_string().into();
        (path, shown)
    }

    /// An error about what stands here.
    pub(super) fn error(
        &self,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> ScenarioError {
        ScenarioError {
            file: self.file.to_string(),
            line: self.line,
            what: what.into(),
            remedy: remedy.into(),
        }
    }
}

/// A scenario that cannot be run. Its text is `file:line: what is wrong; what to do`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// The file, or where else the setting came from, such as `--set path.2.loss`.
    pub file: String,
    /// The line, counted from 1; 0 if there is none.
    pub line: usize,
    /// The error, in words.
    pub what: String,
    /// The remedy, in words.
    pub remedy: String,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScenarioError { file, line, what, remedy } = self;
        match line {
            0 => write!(f, "{file}: {what}; {remedy}"),
            _ => write!(f, "{file}:{line}: {what}; {remedy}"),
        }
    }
}

impl std::error::Error for ScenarioError {}

/// The nearest of `known` to a name that is not among them, for "did you mean"; nothing if none is
/// near.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    let distance = |known: &str| strsim::damerau_levenshtein(&wanted, &known.to_lowercase());
    let best = known.into_iter().min_by_key(|known| distance(known))?;
    (distance(best) * 2 <= wanted.chars().count().max(2)).then_some(best)
}

/// Names in a row: `a, b or c`.
pub(super) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.into_iter().collect();
    match names.split_last() {
        None => "none".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}
