//! Errors in an experiment's files.

use std::ops::Range;
use std::path::Path;

use manypath_sim::scenario::ScenarioError;

/// An error that a person can act on: where it is, what is wrong, what to try.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {what}; {remedy}")]
pub struct LabError {
    /// The file, with its line where that is known: `claims.toml:12`.
    pub place: String,
    /// The error.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

impl LabError {
    /// An error in a file as a whole.
    pub fn file(path: &Path, what: impl ToString, remedy: impl Into<String>) -> LabError {
        let place = path.display().to_string();
        LabError { place, what: what.to_string(), remedy: remedy.into() }
    }

    /// An error at a line of a file; line 0 is the file as a whole.
    pub(crate) fn line(
        path: &Path,
        line: usize,
        what: impl ToString,
        remedy: impl Into<String>,
    ) -> LabError {
        let mut error = LabError::file(path, what.to_string().trim_end(), remedy);
        if line > 0 {
            error.place = format!("{}:{line}", error.place);
        }
        error
    }
}

impl From<ScenarioError> for LabError {
    fn from(error: ScenarioError) -> LabError {
        let ScenarioError { file, line, what, remedy } = error;
        let place = if line == 0 { file } else { format!("{file}:{line}") };
        LabError { place, what, remedy }
    }
}

/// A text with its name: turns positions into `file:line`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'a> {
    pub path: &'a Path,
    pub text: &'a str,
}

impl Source<'_> {
    /// An error at a position of the text.
    pub(crate) fn error(
        &self,
        at: Option<Range<usize>>,
        what: impl ToString,
        remedy: impl Into<String>,
    ) -> LabError {
        let before = at.and_then(|range| self.text.get(..range.start));
        let line = before.map(|before| before.matches('\n').count() + 1);
        let mut error = LabError::file(self.path, what, remedy);
        if let Some(line) = line {
            error.place = format!("{}:{line}", error.place);
        }
        error
    }

    /// Reads TOML.
    pub(crate) fn toml<T: serde::de::DeserializeOwned>(&self) -> Result<T, LabError> {
        toml::from_str(self.text).map_err(|error: toml::de::Error| {
            let what = error.message().replace('\n', " ");
            self.error(error.span(), what, "docs/laboratory.md lists the keys and their values")
        })
    }
}
