//! The values of a run, and how they are read from JSON and written.

use std::borrow::Cow;

use indexmap::IndexMap;
use serde::Deserialize;

/// One value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// Not known, or not a number (NaN, infinite).
    Null,
    /// Yes or no; counts as 1 or 0 in statistics.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list or an object, as JSON text.
    Json(String),
}

impl Cell {
    /// The value as a number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Cell::Bool(value) => Some(f64::from(u8::from(*value))),
            Cell::Int(value) => Some(*value as f64),
            Cell::Float(value) => Some(*value),
            Cell::Null | Cell::Text(_) | Cell::Json(_) => None,
        }
    }

    /// The value as text, as CSV shows it; nothing for [`Cell::Null`].
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Cell::Null => Cow::Borrowed(""),
            Cell::Text(text) | Cell::Json(text) => Cow::Borrowed(text),
            _ => Cow::Owned(self.json()),
        }
    }

    /// The value as JSON.
    pub fn json(&self) -> String {
        match self {
            Cell::Null => "null".to_owned(),
            Cell::Bool(value) => value.to_string(),
            Cell::Int(value) => value.to_string(),
            Cell::Float(value) => serde_json::Value::from(*value).to_string(),
            Cell::Text(text) => json_text(text),
            Cell::Json(text) => text.clone(),
        }
    }

    /// A number; [`Cell::Null`] unless it is finite.
    pub fn float(value: f64) -> Cell {
        if value.is_finite() { Cell::Float(value) } else { Cell::Null }
    }
}

/// A text as a JSON string.
pub fn json_text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// JSON that keeps the order of keys, so that columns come in the order of the result's fields.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Json {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    List(Vec<Json>),
    Object(IndexMap<String, Json>),
}

impl Json {
    fn print(&self) -> String {
        match self {
            Json::List(items) => {
                let items: Vec<_> = items.iter().map(Json::print).collect();
                format!("[{}]", items.join(","))
            }
            Json::Object(map) => {
                let entry = |(key, value): (&String, &Json)| {
                    format!("{}:{}", json_text(key), value.print())
                };
                let entries: Vec<_> = map.iter().map(entry).collect();
                format!("{{{}}}", entries.join(","))
            }
            _ => self.cell().json(),
        }
    }

    fn cell(&self) -> Cell {
        match self {
            Json::Null => Cell::Null,
            Json::Bool(value) => Cell::Bool(*value),
            Json::Int(value) => Cell::Int(*value),
            Json::Float(value) => Cell::float(*value),
            Json::Text(text) => Cell::Text(text.clone()),
            Json::List(_) | Json::Object(_) => Cell::Json(self.print()),
        }
    }
}

/// The named values of one run, in order.
pub type Fields = IndexMap<String, Cell>;

/// Reads a JSON object as fields: `paths` become `path1_...`, `path2_...`; other objects become
/// `name_...`; lists of up to 16 numbers become `name_1`, `name_2`, ...; other lists stay JSON.
///
/// # Errors
///
/// If the text is not a JSON object.
pub fn fields_of_json(text: &str) -> Result<Fields, serde_json::Error> {
    let map: IndexMap<String, Json> = serde_json::from_str(text)?;
    let mut fields = Fields::new();
    for (name, value) in &map {
        flatten(name, value, &mut fields);
    }
    Ok(fields)
}

/// The fields of a run's result, but for its seed and parameters, which a row has by itself.
///
/// # Errors
///
/// If the text is not a JSON object.
pub fn fields_of_result(text: &str) -> Result<Fields, serde_json::Error> {
    let mut fields = fields_of_json(text)?;
    fields.retain(|name, _| name != "seed" && !name.starts_with("parameters"));
    Ok(fields)
}

fn flatten(name: &str, value: &Json, fields: &mut Fields) {
    match value {
        Json::Object(map) => {
            for (key, value) in map {
                flatten(&format!("{name}_{key}"), value, fields);
            }
        }
        Json::List(items) if name == "paths" => {
            for (number, item) in items.iter().enumerate() {
                flatten(&format!("path{}", number + 1), item, fields);
            }
        }
        Json::List(items) if is_short_row(items) => {
            for (number, item) in items.iter().enumerate() {
                fields.insert(format!("{name}_{}", number + 1), item.cell());
            }
        }
        _ => {
            fields.insert(name.to_owned(), value.cell());
        }
    }
}

/// A few numbers, which get a column each.
fn is_short_row(items: &[Json]) -> bool {
    let is_number = |item: &Json| matches!(item, Json::Int(_) | Json::Float(_));
    (1..=16).contains(&items.len()) && items.iter().all(is_number)
}
