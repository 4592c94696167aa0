//! Scenarios: experiments as TOML files.
//!
//! A file says who sends what, over which paths, what happens to them, and which values to combine;
//! `docs/scenarios.md` is its reference. [`Scenario::load`] reads it, [`Scenario::points`] checks
//! it and combines the values, and each [`Point`] runs with any seed.
//!
//! ```
//! use manypath_sim::scenario::{RunOptions, Scenario};
//!
//! let scenario = Scenario::parse("example.toml", r#"
//!     transport.preset = "cmt"
//!     transfer.size = "500 kB"
//!     [[path]]
//!     rate = "10 Mbit/s"
//!     delay = "20 ms"
//!     [[path]]
//!     rate = "5 Mbit/s"
//!     delay = "40 ms"
//!     [sweep]
//!     "path.2.loss" = ["0 %", "2 %"]
//! "#)?;
//! let points = scenario.points()?;
//! assert_eq!(points[1].params, [("path.2.loss".to_owned(), "2 %".to_owned())]);
//! let output = points[1].run.run(1, &RunOptions::default())?;
//! assert!(output.result.transfer.completed);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bare;
mod compile;
mod cross;
mod error;
mod events;
mod explain;
mod flows;
mod groups;
mod identity;
mod keys;
mod links;
mod long;
mod model;
mod nats;
mod plain;
mod read;
mod routes;
mod run;
mod sweep;
mod topology;
mod transport;
mod tree;
mod wiring;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;

pub use bare::{BareEnd, BareHost, BareLink, BareNetwork, BarePath};
pub use error::ScenarioError;
pub use groups::GroupResult;
pub use identity::Identity;
pub use keys::key_reference;
pub use model::CompiledScenario;
pub use plain::PlainTransfer;
pub use run::{RunError, RunOptions, RunOutput, RunResult};

use error::{Place, nearest};
use sweep::Axis;
use tree::{Entry, Item, Table, Value};

/// Files that may extend one another in a row.
const LONGEST_CHAIN: usize = 16;

/// Bytes of a file at most.
const LARGEST_FILE: u64 = 10_000_000;

/// A scenario as its file and later settings describe it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name of the file without its ending.
    stem: String,
    place: Place,
    root: Table,
    axes: Vec<Axis>,
    seeds: Vec<u64>,
}

/// Says by its parameters whether later settings are for a point.
pub type IsSet<'a> = dyn Fn(&[(String, String)]) -> bool + 'a;

/// One combination of swept values.
#[derive(Clone, Debug)]
pub struct Point {
    /// The swept parameters and their values, as the file writes them.
    pub params: Vec<(String, String)>,
    /// The scenario to run.
    pub run: CompiledScenario,
}

impl Scenario {
    /// Reads a file, and those it extends.
    pub fn load(path: impl AsRef<Path>) -> Result<Scenario, ScenarioError> {
        let path = path.as_ref();
        let (table, sets) = load_chain(path, &mut Vec::new())?;
        Scenario::build(&path.display().to_string(), table, sets)
    }

    /// Reads a text; `name` is what messages call it. It cannot extend a file.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
        let mut table = tree::parse(name, text)?;
        if let Some(item) = table.take("extends") {
            let remedy = "put the text into a file beside it";
            return Err(item.place.error("only a file can extend another", remedy));
        }
        let sets = take_sets(&mut table)?;
        Scenario::build(name, table, sets)
    }

    fn build(
        file: &str,
        mut root: Table,
        sets: Vec<(String, Item)>,
    ) -> Result<Scenario, ScenarioError> {
        let place = Place::line(&file.into(), 1);
        let axes = sweep::axes(root.take("sweep").as_ref())?;
        let stem = Path::new(file).file_stem().map_or(file.into(), |stem| stem.to_string_lossy());
        let stem = stem.into_owned();
        let mut scenario = Scenario { stem, place, root, axes, seeds: vec![1] };
        for (name, item) in sets {
            scenario.set_item(&name, item)?;
        }
        scenario.update_seeds()?;
        Ok(scenario)
    }

    /// Sets a value by its dotted name, such as `transport.receive_buffer` or `path.2.loss`.
    /// Elements of lists are counted from 1, or go by their `name`. A swept parameter is set by
    /// choosing one of its rows, or to a value; `sweep.NAME` sets the list of its values.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), ScenarioError> {
        let item = tree::parse_value(&Place::outside(format!("--set {name}")), value)?;
        self.set_item(name, item)?;
        self.update_seeds()
    }

    fn set_item(&mut self, name: &str, item: Item) -> Result<(), ScenarioError> {
        if let Some(swept) = name.strip_prefix("sweep.") {
            let place = item.place.clone();
            let entry = Entry { key: swept.to_owned(), place, item };
            let axis = sweep::axis(swept.to_owned(), &entry)?;
            match self.axes.iter_mut().find(|axis| axis.name == swept) {
                Some(old) => *old = axis,
                None => self.axes.push(axis),
            }
            return Ok(());
        }
        sweep::check_is_settable(name, &item.place, false)?;
        let Some(axis) = self.axes.iter_mut().find(|axis| axis.name == name) else {
            return tree::set(&mut self.root, name, item);
        };
        let label = item.to_string();
        if let Some(row) = axis.rows.iter().position(|row| row.label == label) {
            axis.rows = vec![axis.rows.swap_remove(row)];
            return Ok(());
        }
        let is_group = axis.rows.iter().any(|row| row.settings.iter().all(|(key, _)| key != name));
        if is_group {
            let labels = || axis.rows.iter().map(|row| row.label.as_str());
            let what = format!("{name} has no row `{label}`");
            let remedy = nearest(&label, labels()).map_or_else(
                || format!("write {}", error::list(labels())),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(item.place.error(what, remedy));
        }
        axis.rows = vec![sweep::Row { label, settings: vec![(name.to_owned(), item)] }];
        Ok(())
    }

    /// The seeds to run each point with.
    pub fn seeds(&self) -> Vec<u64> {
        self.seeds.clone()
    }

    /// The swept parameters, with the values each takes.
    pub fn swept(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.axes.iter().map(|axis| {
            let labels = axis.rows.iter().map(|row| row.label.as_str());
            (axis.name.as_str(), labels.collect())
        })
    }

    /// Checks the scenario and combines the swept values; the last swept parameter changes fastest.
    pub fn points(&self) -> Result<Vec<Point>, ScenarioError> {
        self.points_with(&[], &|_| false)
    }

    /// As [`Scenario::points`], but with these settings, dotted names with values as in
    /// [`Scenario::set`], at the points that `is_set` chooses by their parameters. They come last,
    /// so they also replace what the sweep sets; the points keep the parameters' names and values.
    pub fn points_with(
        &self,
        settings: &[(String, String)],
        is_set: &IsSet<'_>,
    ) -> Result<Vec<Point>, ScenarioError> {
        let read = |(name, value): &(String, String)| {
            let place = Place::outside(format!("set {name}"));
            sweep::check_is_settable(name, &place, true)?;
            Ok((name.clone(), tree::parse_value(&place, value)?))
        };
        let settings = settings.iter().map(read).collect::<Result<Sets, ScenarioError>>()?;
        let count = sweep::count(&self.axes)?;
        (0..count).map(|number| self.point(number, &settings, is_set)).collect()
    }

    fn point(
        &self,
        number: usize,
        settings: &Sets,
        is_set: &IsSet<'_>,
    ) -> Result<Point, ScenarioError> {
        let mut root = self.root.clone();
        let mut params = Vec::with_capacity(self.axes.len());
        for (axis, row) in sweep::rows(&self.axes, number) {
            for (name, item) in &row.settings {
                tree::set(&mut root, name, item.clone())?;
            }
            params.push((axis.name.clone(), row.label.clone()));
        }
        if is_set(&params) {
            for (name, item) in settings {
                tree::set(&mut root, name, item.clone())?;
            }
        }
        let mut run = compile::compile(&root, &self.place, &self.stem)?;
        run.parameters.clone_from(&params);
        Ok(Point { params, run })
    }

    fn update_seeds(&mut self) -> Result<(), ScenarioError> {
        if let Some(item) = self.root.get("seeds") {
            self.seeds = seeds(item)?;
        }
        Ok(())
    }
}

/// Reads `seeds = 30`, `"1..60"` or `[1, 2, 7]`.
fn seeds(item: &Item) -> Result<Vec<u64>, ScenarioError> {
    const MOST: u64 = 1_000_000;
    let wrong = || {
        let remedy = "write how many, a range or a list: 30, \"1..60\", [1, 2, 7]; at most 1000000";
        item.place.error(format!("seeds: `{item}` is not possible"), remedy)
    };
    if let Value::List(items) = &item.value {
        let one = |item: &Item| item.scalar().and_then(|text| text.parse().ok()).ok_or_else(wrong);
        let seeds: Vec<u64> = items.iter().map(one).collect::<Result<_, _>>()?;
        // The same run counted twice would make the confidence intervals too small.
        let mut seen = BTreeSet::new();
        return match seeds.iter().find(|&seed| !seen.insert(seed)) {
            Some(seed) => Err(item.place.error(format!("seeds: {seed} twice"), "remove one")),
            None if seeds.is_empty() => Err(wrong()),
            None => Ok(seeds),
        };
    }
    let text = item.scalar().ok_or_else(wrong)?;
    let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (1, number(&text)?),
    };
    let is_possible = first <= last && last - first < MOST;
    if is_possible { Ok((first..=last).collect()) } else { Err(wrong()) }
}

/// The content of a file; none if it is longer than a scenario may be. Its length is counted, not
/// asked for: devices and pipes have none.
fn read_whole(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(LARGEST_FILE + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= LARGEST_FILE).then_some(bytes))
}

/// Settings by dotted names, in the order in which they are made.
type Sets = Vec<(String, Item)>;

/// Reads a file over those it extends.
fn load_chain(path: &Path, seen: &mut Vec<String>) -> Result<(Table, Sets), ScenarioError> {
    let name = path.display().to_string();
    let place = Place::outside(name.clone());
    let cannot = |error: std::io::Error| {
        let remedy = match error.kind() {
            std::io::ErrorKind::InvalidData => "a scenario is text: save it as UTF-8",
            std::io::ErrorKind::IsADirectory => "name a file in this folder",
            _ => "check the file's name and permissions",
        };
        place.error(format!("cannot be read: {error}"), remedy)
    };
    let Some(bytes) = read_whole(path).map_err(cannot)? else {
        return Err(place.error("larger than 10 MB", "a scenario is a few lines: is this one?"));
    };
    let no_text = |error| cannot(std::io::Error::new(std::io::ErrorKind::InvalidData, error));
    let text = String::from_utf8(bytes).map_err(no_text)?;
    let mut table = tree::parse(&name, &text)?;
    let sets = take_sets(&mut table)?;
    let Some(extends) = table.take("extends") else { return Ok((table, sets)) };
    let base = extends.scalar().unwrap_or_default();
    let is_plain = !base.is_empty() && !base.contains(['/', '\\']) && base != "..";
    if !is_plain {
        let what = format!("extends: `{extends}` is not the name of a file of this folder");
        return Err(extends.place.error(what, "write a name such as \"scenario.toml\""));
    }
    seen.push(path.file_name().unwrap_or_default().to_string_lossy().into_owned());
    if seen.contains(&base) {
        let what = format!("{} extends {base}: a circle", seen.join(" extends "));
        return Err(extends.place.error(what, "remove one of these lines"));
    }
    if seen.len() > LONGEST_CHAIN {
        let what = format!("extends: more than {LONGEST_CHAIN} files in a row");
        return Err(extends.place.error(what, "put some of them together"));
    }
    let base_path = path.with_file_name(&base);
    if !base_path.is_file() {
        let what = format!("extends: there is no file {}", base_path.display());
        return Err(extends.place.error(what, "correct the name; it is of the same folder"));
    }
    let (mut root, mut all) = load_chain(&base_path, seen)?;
    root.merge(table);
    all.extend(sets);
    Ok((root, all))
}

fn take_sets(table: &mut Table) -> Result<Sets, ScenarioError> {
    let Some(item) = table.take("set") else { return Ok(Vec::new()) };
    let Value::Table(set) = &item.value else {
        let what = format!("set: {} where a table belongs", item.kind());
        return Err(item.place.error(what, "write [set] and then \"path.2.loss\" = \"3 %\""));
    };
    let mut sets = Vec::new();
    sweep::flatten(set.0.iter(), "", &mut sets);
    Ok(sets)
}

#[cfg(test)]
mod long_tests;
#[cfg(test)]
mod tests;
