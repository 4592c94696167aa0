//! A scenario file as a tree of values, each with the place where it was written.

use std::fmt;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::error::{Place, ScenarioError, list, nearest};

/// A value and where it was written.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) place: Place,
    pub(super) value: Value,
}

/// A TOML value; dates are left out.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(String),
    /// As written, in decimal.
    Number(String),
    Bool(bool),
    List(Vec<Item>),
    Table(Table),
}

/// A key of a table.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) place: Place,
    pub(super) item: Item,
}

/// A table, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Table(pub(super) Vec<Entry>);

impl Table {
    pub(super) fn get(&self, key: &str) -> Option<&Item> {
        self.0.iter().find(|entry| entry.key == key).map(|entry| &entry.item)
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Item> {
        self.0.iter_mut().find(|entry| entry.key == key).map(|entry| &mut entry.item)
    }

    /// Sets a key, whatever it was.
    pub(super) fn put(&mut self, key: &str, item: Item) {
        match self.get_mut(key) {
            Some(old) => *old = item,
            None => self.0.push(Entry { key: key.to_owned(), place: item.place.clone(), item }),
        }
    }

    /// Takes a key out.
    pub(super) fn take(&mut self, key: &str) -> Option<Item> {
        let index = self.0.iter().position(|entry| entry.key == key)?;
        Some(self.0.remove(index).item)
    }

    /// Puts `over` on top: its values win, tables are merged key by key.
    pub(super) fn merge(&mut self, over: Table) {
        for entry in over.0 {
            match (self.get_mut(&entry.key), entry.item) {
                (
                    Some(Item { value: Value::Table(old), .. }),
                    Item { value: Value::Table(new), .. },
                ) => old.merge(new),
                (Some(old), new) => *old = new,
                (None, item) => self.0.push(Entry { item, ..entry }),
            }
        }
    }
}

impl Item {
    /// The name of its kind, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self.value {
            Value::Text(_) => "a text",
            Value::Number(_) => "a number",
            Value::Bool(_) => "true or false",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
        }
    }

    /// Text, number or switch as a text.
    pub(super) fn scalar(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) | Value::Number(text) => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            Value::List(_) | Value::Table(_) => None,
        }
    }
}

/// As a person reads it: a text without quotes, everything else as in TOML.
impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Text(text) | Value::Number(text) => f.write_str(text),
            Value::Bool(flag) => write!(f, "{flag}"),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(Item::to_string).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Value::Table(table) => {
                let entries: Vec<String> =
                    table.0.iter().map(|entry| format!("{} = {}", entry.key, entry.item)).collect();
                write!(f, "{{{}}}", entries.join(", "))
            }
        }
    }
}

/// Reads a TOML text. `name` is what messages call it.
pub(super) fn parse(name: &str, text: &str) -> Result<Table, ScenarioError> {
    let source = Source { file: name.into(), lines: line_starts(text) };
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let what = format!("not valid TOML: {}", error.message().replace('\n', " "));
        let is_at_end = text.get(at..).is_none_or(|rest| rest.trim().is_empty());
        let remedy = match error.message() {
            _ if is_at_end => {
                "the file seems to end too early: close what was opened, or restore the rest"
            }
            "duplicate key" => "remove one of the two, or rename it",
            _ => "correct this line; texts and values with units stand in quotes",
        };
        source.place(at.min(text.len().saturating_sub(1))).error(what, remedy)
    })?;
    source.table(document.get_ref())
}

/// Reads a value as the command line gives it: a list or table if it looks like one, else a text.
pub(super) fn parse_value(place: &Place, text: &str) -> Result<Item, ScenarioError> {
    let trimmed = text.trim();
    if !trimmed.starts_with(['[', '{']) {
        return Ok(Item { place: place.clone(), value: Value::Text(trimmed.to_owned()) });
    }
    let wrong = |message: &str| {
        place.error(
            format!("`{trimmed}` is not a TOML value: {message}"),
            "write it as in the file, such as { forward = \"1 %\", reverse = \"2 %\" }",
        )
    };
    let value = DeValue::parse(trimmed).map_err(|error| wrong(error.message()))?;
    let source = Source { file: "".into(), lines: vec![0] };
    let mut item = source.item(value.get_ref(), 0)?;
    set_place(&mut item, place);
    Ok(item)
}

fn set_place(item: &mut Item, place: &Place) {
    item.place = place.clone();
    match &mut item.value {
        Value::List(items) => items.iter_mut().for_each(|item| set_place(item, place)),
        Value::Table(table) => {
            for entry in &mut table.0 {
                entry.place = place.clone();
                set_place(&mut entry.item, place);
            }
        }
        Value::Text(_) | Value::Number(_) | Value::Bool(_) => {}
    }
}

fn line_starts(text: &str) -> Vec<usize> {
    let ends = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
    std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect()
}

struct Source {
    file: Arc<str>,
    /// Where each line starts.
    lines: Vec<usize>,
}

impl Source {
    fn place(&self, at: usize) -> Place {
        Place::line(&self.file, self.lines.partition_point(|&start| start <= at))
    }

    fn table(&self, table: &DeTable<'_>) -> Result<Table, ScenarioError> {
        let mut keys: Vec<_> = table.iter().collect();
        // The parser sorts keys by name; a sweep's order is that of the file.
        keys.sort_by_key(|(key, _)| key.span().start);
        let entries = keys.into_iter().map(|(key, value)| {
            let item = self.item(value.get_ref(), value.span().start)?;
            let place = self.place(key.span().start);
            Ok(Entry { key: key.get_ref().to_string(), place, item })
        });
        Ok(Table(entries.collect::<Result<_, ScenarioError>>()?))
    }

    fn item(&self, value: &DeValue<'_>, at: usize) -> Result<Item, ScenarioError> {
        let place = self.place(at);
        let value = match value {
            // They would reach terminals, and names of files.
            DeValue::String(text) if text.contains(is_odd) => {
                let what = "a text with control characters";
                return Err(place.error(what, "remove them; lines and tabs may stay"));
            }
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => {
                let decimal = i128::from_str_radix(number.as_str(), number.radix());
                Value::Number(decimal.map_or_else(|_| number.to_string(), |n| n.to_string()))
            }
            DeValue::Float(number) => Value::Number(number.as_str().to_owned()),
            DeValue::Boolean(flag) => Value::Bool(*flag),
            DeValue::Datetime(date) => {
                return Err(place.error(
                    format!("{date} is a date, which no key takes"),
                    "times count from the start of the run, such as \"5 s\"",
                ));
            }
            DeValue::Array(items) => {
                let items = items.iter().map(|item| self.item(item.get_ref(), item.span().start));
                Value::List(items.collect::<Result<_, _>>()?)
            }
            DeValue::Table(table) => Value::Table(self.table(table)?),
        };
        Ok(Item { place, value })
    }
}

fn is_odd(c: char) -> bool {
    c.is_control() && !['\n', '\r', '\t'].contains(&c)
}

/// Sets what a dotted name leads to: keys of tables, and elements of lists by number, counted from
/// 1, or by their `name`. Tables on the way are made if missing; elements are not.
pub(super) fn set(root: &mut Table, dotted: &str, item: Item) -> Result<(), ScenarioError> {
    let parts: Vec<&str> = dotted.split('.').map(str::trim).collect();
    if parts.iter().any(|part| part.is_empty()) {
        let what = format!("`{dotted}` is not a name");
        return Err(item.place.error(what, "write keys with dots between, such as path.2.loss"));
    }
    set_in_table(root, &parts, 0, item)
}

fn set_in_table(
    table: &mut Table,
    parts: &[&str],
    at: usize,
    new: Item,
) -> Result<(), ScenarioError> {
    let part = parts[at];
    if at + 1 == parts.len() {
        table.put(part, new);
        return Ok(());
    }
    if table.get(part).is_none() {
        table.put(part, Item { place: new.place.clone(), value: Value::Table(Table::default()) });
    }
    match table.get_mut(part) {
        Some(item) => set_in(item, parts, at + 1, new),
        None => Ok(()),
    }
}

/// Sets what `parts[at..]` lead to from `item`, which `parts[..at]` led to.
fn set_in(item: &mut Item, parts: &[&str], at: usize, new: Item) -> Result<(), ScenarioError> {
    let walked = || parts[..at].join(".");
    let kind = item.kind();
    match &mut item.value {
        _ if at == parts.len() => {
            *item = new;
            Ok(())
        }
        Value::Table(table) => set_in_table(table, parts, at, new),
        Value::List(items) => {
            let Some(index) = element_of(items, parts[at]) else {
                let what = format!("`{}`: there is no {}", parts.join("."), parts[..=at].join("."));
                let remedy = format!("{} has {}", walked(), describe(items));
                return Err(new.place.error(what, remedy));
            };
            set_in(&mut items[index], parts, at + 1, new)
        }
        _ => {
            let what = format!("`{}`: {} is {kind}, not a table", parts.join("."), walked());
            Err(new.place.error(what, format!("set {} as a whole", walked())))
        }
    }
}

/// The index of the element that a number, counted from 1, or a name means.
fn element_of(items: &[Item], index: &str) -> Option<usize> {
    if let Ok(number) = index.parse::<usize>() {
        return number.checked_sub(1).filter(|&i| i < items.len());
    }
    items.iter().position(|item| name_of(item).as_deref() == Some(index))
}

fn name_of(item: &Item) -> Option<String> {
    let Value::Table(table) = &item.value else { return None };
    table.get("name")?.scalar()
}

/// The kinds of a list's items, for messages.
fn describe(items: &[Item]) -> String {
    let names: Vec<String> = items.iter().filter_map(name_of).collect();
    match (items.len(), names.is_empty()) {
        (0, _) => "no elements".to_owned(),
        (1, true) => "one element, number 1".to_owned(),
        (n, true) => format!("elements 1 to {n}"),
        (n, false) => format!("elements 1 to {n}, named {}", names.join(", ")),
    }
}

/// The error for a key that a table does not have.
pub(super) fn unknown_key<'a>(
    entry: &Entry,
    table: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> ScenarioError {
    let what = match table {
        "" => format!("unknown key `{}`", entry.key),
        _ => format!("unknown key `{}` in {table}", entry.key),
    };
    let remedy = match nearest(&entry.key, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("remove it; here can be {}", list(known)),
    };
    entry.place.error(what, remedy)
}
