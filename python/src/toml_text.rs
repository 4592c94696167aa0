//! Python values as the text of a scenario file.

use std::fmt::Write as _;

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};

use crate::error::written;

/// Values within one another at most; a list that contains itself has no end.
const DEEPEST: usize = 16;

/// The text of a scenario, with the Python expression that each line comes from.
pub(crate) struct Document {
    /// TOML, a key a line.
    pub text: String,
    /// The expressions, such as `scenario['path'][0]['loss']`.
    places: Vec<String>,
}

impl Document {
    /// Writes a mapping as a scenario file.
    pub(crate) fn of(scenario: &Bound<'_, PyMapping>) -> PyResult<Document> {
        let mut document = Document { text: String::new(), places: Vec::new() };
        let (mut plain, mut tables) = (Vec::new(), Vec::new());
        for item in entries(scenario, "scenario")? {
            let is_table = is_mapping(&item.value) || are_mappings(&item.value);
            if is_table { tables.push(item) } else { plain.push(item) }
        }
        // Keys of the top level come before the first table.
        document.lines(&plain)?;
        for Entry { key, value, place } in &tables {
            if let Ok(table) = value.cast::<PyMapping>() {
                document.line(&format!("[{}]", quoted(key)), place);
                document.lines(&entries(table, place)?)?;
                continue;
            }
            for (number, element) in value.try_iter()?.enumerate() {
                let place = format!("{place}[{number}]");
                document.line(&format!("[[{}]]", quoted(key)), &place);
                document.lines(&entries(element?.cast::<PyMapping>()?, &place)?)?;
            }
        }
        Ok(document)
    }

    /// The Python expression of a line, counted from 1.
    pub(crate) fn place(&self, line: usize) -> &str {
        let place = line.checked_sub(1).and_then(|index| self.places.get(index));
        place.map_or("scenario", String::as_str)
    }

    fn lines(&mut self, entries: &[Entry<'_>]) -> PyResult<()> {
        for Entry { key, value, place } in entries {
            let line = format!("{} = {}", quoted(key), inline(value, place, 0)?);
            self.line(&line, place);
        }
        Ok(())
    }

    fn line(&mut self, text: &str, place: &str) {
        self.text.push_str(text);
        self.text.push('\n');
        self.places.push(place.to_owned());
    }
}

/// A value as `Scenario::set` reads it: a text as it is, everything else as in a file.
pub(crate) fn setting(value: &Bound<'_, PyAny>, place: &str) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_str()?.to_owned()),
        Err(_) => inline(value, place, 0),
    }
}

struct Entry<'py> {
    key: String,
    value: Bound<'py, PyAny>,
    place: String,
}

fn entries<'py>(table: &Bound<'py, PyMapping>, place: &str) -> PyResult<Vec<Entry<'py>>> {
    let mut entries = Vec::new();
    for item in table.items()?.iter() {
        let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let Ok(key) = key.cast_into::<PyString>() else {
            return Err(wrong(place, "a key that is no text", "write keys as texts"));
        };
        let place = format!("{place}[{}]", key.repr()?);
        entries.push(Entry { key: key.to_str()?.to_owned(), value, place });
    }
    Ok(entries)
}

fn wrong(place: &str, what: &str, remedy: &str) -> PyErr {
    written("ScenarioError", place, None, what, remedy)
}

fn is_mapping(value: &Bound<'_, PyAny>) -> bool {
    value.cast::<PyMapping>().is_ok()
}

/// A list of tables.
fn are_mappings(value: &Bound<'_, PyAny>) -> bool {
    let Ok(list) = value.cast::<PyList>() else { return false };
    !list.is_empty() && list.iter().all(|item| is_mapping(&item))
}

/// A value in one line.
fn inline(value: &Bound<'_, PyAny>, place: &str, depth: usize) -> PyResult<String> {
    if depth > DEEPEST {
        return Err(wrong(place, "too many lists or dicts within one another", "write fewer"));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(quoted(text.to_str()?));
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(if value.is_truthy()? { "true" } else { "false" }.to_owned());
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(value.str()?.to_str()?.to_owned());
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(float(value.extract()?));
    }
    if let Ok(table) = value.cast::<PyMapping>() {
        let mut parts = Vec::new();
        for Entry { key, value, place } in entries(table, place)? {
            parts.push(format!("{} = {}", quoted(&key), inline(&value, &place, depth + 1)?));
        }
        return Ok(format!("{{ {} }}", parts.join(", ")));
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return list(value, place, depth);
    }
    // Numbers of NumPy, and its arrays, ranges and the like.
    if value.hasattr("__index__")? && !value.hasattr("__len__")? {
        return Ok(value.call_method0("__index__")?.str()?.to_str()?.to_owned());
    }
    let is_bytes = value.is_instance_of::<PyBytes>();
    if !is_bytes && value.hasattr("__iter__")? && value.hasattr("__len__")? {
        return list(value, place, depth);
    }
    if value.hasattr("__float__")? {
        return Ok(float(value.extract()?));
    }
    let kind = value.get_type().name()?.to_string();
    let remedy = if value.is_none() {
        "leave the key out"
    } else {
        "write a text such as \"10 Mbit/s\", a number, True or False, a list or a dict"
    };
    Err(wrong(place, &format!("a value of type {kind}, which no key takes"), remedy))
}

fn list(value: &Bound<'_, PyAny>, place: &str, depth: usize) -> PyResult<String> {
    let mut parts = Vec::new();
    for (number, item) in value.try_iter()?.enumerate() {
        parts.push(inline(&item?, &format!("{place}[{number}]"), depth + 1)?);
    }
    Ok(format!("[{}]", parts.join(", ")))
}

fn float(value: f64) -> String {
    // TOML's words for what is no number are Rust's in lower case.
    if value.is_finite() { format!("{value:?}") } else { value.to_string().to_lowercase() }
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => _ = write!(out, "\\u{:04x}", u32::from(c)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A list of seeds as `seeds` of a scenario; `30` and `"1..60"` stay as they are.
pub(crate) fn seeds(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let is_plain = value.is_instance_of::<PyString>() || value.hasattr("__index__")?;
    if is_plain || value.is_instance_of::<PyDict>() || !value.hasattr("__iter__")? {
        return setting(value, "seeds");
    }
    list(value, "seeds", 0)
}
