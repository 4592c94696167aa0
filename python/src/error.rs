//! Errors of the package: the classes are in `manypath/_errors.py`.

use manypath_lab::error::LabError;
use manypath_sim::scenario::ScenarioError;
use pyo3::prelude::*;

/// An error in something written, with its place and remedy.
pub(crate) fn written(
    class: &str,
    place: &str,
    line: Option<usize>,
    what: &str,
    remedy: &str,
) -> PyErr {
    Python::attach(|py| {
        let made = py
            .import("manypath._errors")
            .and_then(|module| module.getattr(class)?.call1((place, line, what, remedy)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// `ScenarioError`.
pub(crate) fn scenario(error: &ScenarioError) -> PyErr {
    let line = (error.line > 0).then_some(error.line);
    written("ScenarioError", &place(&error.file), line, &error.what, &error.remedy)
}

/// A setting is an argument here, and no option of a command.
fn place(file: &str) -> String {
    let Some(name) = file.strip_prefix("--set ") else { return file.to_owned() };
    match name.strip_prefix("sweep.") {
        Some(swept) => format!("sweep['{swept}']"),
        None if name == "seeds" => "seeds".to_owned(),
        None => format!("settings['{name}']"),
    }
}

/// `LabError`.
pub(crate) fn lab(error: &LabError) -> PyErr {
    // Its place has the line: `claims.toml:12`.
    let split = error.place.rsplit_once(':');
    let split = split.and_then(|(file, line)| Some((file, line.parse().ok()?)));
    let (place, line) = split.map_or((&*error.place, None), |(file, line)| (file, Some(line)));
    written("LabError", place, line, &error.what, &error.remedy)
}

/// An error of a class of the package that takes its text only.
pub(crate) fn of_class(class: &str, text: String) -> PyErr {
    Python::attach(|py| {
        let made =
            py.import("manypath._errors").and_then(|module| module.getattr(class)?.call1((text,)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}
