//! `[sweep]`: which values are combined.

use std::collections::BTreeSet;

use super::error::{Place, ScenarioError, nearest};
use super::keys::SCENARIO;
use super::tree::{Entry, Item, Table, Value};

type Result<T> = std::result::Result<T, ScenarioError>;

/// Points of a sweep at most: more is a mistake, or a matter for several files.
const MOST_POINTS: usize = 100_000;

/// One swept parameter.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) rows: Vec<Row>,
}

/// One value of a swept parameter.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) label: String,
    /// Dotted names and values.
    pub(super) settings: Vec<(String, Item)>,
}

/// Reads the table.
pub(super) fn axes(item: Option<&Item>) -> Result<Vec<Axis>> {
    let Some(item) = item else { return Ok(Vec::new()) };
    let Value::Table(table) = &item.value else {
        let what = format!("sweep: {} where a table belongs", item.kind());
        return Err(item
            .place
            .error(what, "write [sweep] and then \"path.2.loss\" = [\"1 %\", …]"));
    };
    let mut axes = Vec::new();
    collect(table, "", &mut axes)?;
    Ok(axes)
}

fn collect(table: &Table, prefix: &str, axes: &mut Vec<Axis>) -> Result<()> {
    for entry in &table.0 {
        let name = join(prefix, &entry.key);
        match &entry.item.value {
            // An unquoted path.2.loss is nested tables to TOML.
            Value::Table(nested) => collect(nested, &name, axes)?,
            _ => axes.push(axis(name, entry)?),
        }
    }
    Ok(())
}

fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

/// The values of one parameter.
pub(super) fn axis(name: String, entry: &Entry) -> Result<Axis> {
    let place = &entry.item.place;
    let Value::List(items) = &entry.item.value else {
        let what = format!("sweep.{name}: {} where a list belongs", entry.item.kind());
        return Err(place.error(what, "write the values in [ ]"));
    };
    if items.is_empty() {
        let remedy = "write at least one, or remove the line";
        return Err(place.error(format!("sweep.{name} has no values"), remedy));
    }
    if items.len() > MOST_POINTS {
        return Err(too_many_points(place));
    }
    let is_key = SCENARIO.names().any(|key| Some(key) == name.split('.').next());
    // Rows with names are a group, even if it is named like a key.
    let is_named = |item: &Item| matches!(&item.value, Value::Table(t) if t.get("name").is_some());
    let is_group = !is_key || (!name.contains('.') && items.iter().all(is_named));
    let mut rows: Vec<Row> = Vec::with_capacity(items.len());
    let mut labels = BTreeSet::new();
    for item in items {
        let row = if is_group {
            group_row(&name, item)?
        } else {
            Row { label: item.to_string(), settings: vec![(name.clone(), item.clone())] }
        };
        for (name, item) in &row.settings {
            check_is_settable(name, &item.place, true)?;
        }
        if !labels.insert(row.label.clone()) {
            let what = format!("sweep.{name} has `{}` twice", row.label);
            return Err(item.place.error(what, "remove one"));
        }
        rows.push(row);
    }
    Ok(Axis { name, place: entry.place.clone(), rows })
}

/// Refuses names that say where values come from or how often all runs: as a setting they would do
/// nothing.
pub(super) fn check_is_settable(name: &str, place: &Place, swept: bool) -> Result<()> {
    let first = name.split('.').next().unwrap_or(name).trim();
    let remedy = match first {
        "sweep" if swept => "a sweep has no sweeps: write the name of the value alone",
        "sweep" => "set the list of one name, such as sweep.path.2.loss = [\"1 %\", \"2 %\"]",
        "set" => "write the name of the value alone",
        "extends" => "write it at the top of the file",
        "seeds" if swept => "every point runs with the same seeds: set `seeds` of the file",
        _ => return Ok(()),
    };
    let what = if swept { "swept" } else { "set" };
    Err(place.error(format!("`{name}` cannot be {what}"), remedy))
}

/// A row of `[[sweep.case]]`: a name and several settings.
fn group_row(group: &str, item: &Item) -> Result<Row> {
    let Value::Table(table) = &item.value else {
        let first = group.split('.').next().unwrap_or(group);
        let what = format!("sweep.{group}: there is no key `{first}`");
        let remedy = nearest(first, SCENARIO.names()).map_or_else(
            || "write the whole name, such as path.1.loss.".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        let remedy = format!("{remedy} Rows of linked values are [[sweep.NAME]]");
        return Err(item.place.error(what, remedy));
    };
    let Some(label) = table.get("name").and_then(Item::scalar) else {
        let what = format!("a row of sweep.{group} has no name");
        return Err(item.place.error(what, "add name = \"…\": it is the row's value in results"));
    };
    let mut settings = Vec::new();
    let others = table.0.iter().filter(|entry| entry.key != "name");
    flatten(others, "", &mut settings);
    Ok(Row { label, settings })
}

/// Entries as dotted names. Tables under plain keys are gone into, those under dotted ones are
/// values.
pub(super) fn flatten<'t>(
    entries: impl Iterator<Item = &'t Entry>,
    prefix: &str,
    out: &mut Vec<(String, Item)>,
) {
    for entry in entries {
        let name = join(prefix, &entry.key);
        match &entry.item.value {
            Value::Table(nested) if !entry.key.contains('.') => {
                flatten(nested.0.iter(), &name, out)
            }
            _ => out.push((name, entry.item.clone())),
        }
    }
}

/// How many points the axes make.
pub(super) fn count(axes: &[Axis]) -> Result<usize> {
    let product = axes.iter().try_fold(1, |n: usize, axis| n.checked_mul(axis.rows.len()));
    match (product.filter(|n| *n <= MOST_POINTS), axes.last()) {
        (Some(count), _) => Ok(count),
        (None, Some(axis)) => Err(too_many_points(&axis.place)),
        (None, None) => Ok(1),
    }
}

fn too_many_points(place: &Place) -> ScenarioError {
    let what = format!("the sweep has more than {MOST_POINTS} points");
    place.error(what, "sweep less, or split the file")
}

/// The rows of a point; the last axis turns fastest.
pub(super) fn rows(axes: &[Axis], mut point: usize) -> Vec<(&Axis, &Row)> {
    let mut rows = Vec::with_capacity(axes.len());
    for axis in axes.iter().rev() {
        rows.push((axis, &axis.rows[point % axis.rows.len()]));
        point /= axis.rows.len();
    }
    rows.reverse();
    rows
}
