//! `[transport]`: profile, preset and parameters of the engine.

use std::sync::Arc;

use manypath_proto::config::{Config, ConfigError, Param, Preset, Profile};

use super::error::{ScenarioError, nearest};
use super::read::Named;
use super::tree::{Entry, Table, Value};

type Result<T> = std::result::Result<T, ScenarioError>;

/// Profile and preset of a scenario that names only the other one of them: what the papers' files
/// mean. A scenario that names neither runs what the programs run.
const BESIDE_A_PRESET: &str = "rfc9260";
const BESIDE_A_PROFILE: &str = "cmt-pf";

/// The idealised split of a file over one association per path: a preset of the simulator only.
pub(super) const APPSTRIPE: &str = "appstripe";

/// The configurations of the two ends of a flow.
#[derive(Clone, Debug)]
pub(super) struct Transport {
    /// The associating end.
    pub(super) a: Arc<Config>,
    /// The waiting end.
    pub(super) z: Arc<Config>,
    /// Name of the preset in results.
    pub(super) preset: String,
    pub(super) is_striped: bool,
}

/// Reads the tables, of which later ones win.
pub(super) fn read(tables: &[Named<'_>]) -> Result<Transport> {
    read_with(tables, None)
}

/// Reads the tables for responsive cross-traffic, whose preset is `sctp`.
pub(super) fn read_for_traffic(tables: &[Named<'_>]) -> Result<Transport> {
    read_with(tables, Some("sctp"))
}

fn read_with(tables: &[Named<'_>], fixed_preset: Option<&str>) -> Result<Transport> {
    let (mut common, mut only_a, mut only_z) = (Vec::new(), Vec::new(), Vec::new());
    for named in tables {
        for entry in &table_of(named)?.0 {
            let name = format!("{}.{}", named.name, entry.key);
            match (entry.key.as_str(), &entry.item.value) {
                ("sender", Value::Table(table)) => settings(&name, table, &mut only_a)?,
                ("receiver", Value::Table(table)) => settings(&name, table, &mut only_z)?,
                _ => common.push(setting(&name, entry)?),
            }
        }
    }
    let all = [&common, &only_a, &only_z].into_iter().flatten();
    let start = Start::of(all.map(|setting| setting.key), fixed_preset.is_some());
    let named = common.iter().rfind(|setting| setting.key == "preset");
    let named = named.map_or(start.preset, |setting| setting.value.as_str());
    let preset = fixed_preset.unwrap_or(named).to_owned();
    let is_striped = preset == APPSTRIPE;
    let build = |more: &[Setting<'_>]| {
        let all: Vec<&Setting<'_>> = common.iter().chain(more).collect();
        config(start, &all, fixed_preset, tables.last()).map(Arc::new)
    };
    Ok(Transport { a: build(&only_a)?, z: build(&only_z)?, preset, is_striped })
}

/// Profile and preset where the tables name none.
#[derive(Copy, Clone, Debug)]
struct Start {
    profile: &'static str,
    preset: &'static str,
}

impl Start {
    /// The settings beside these keys of both ends and, for cross-traffic, beside a fixed preset.
    fn of<'k>(mut keys: impl Iterator<Item = &'k str>, is_preset_fixed: bool) -> Start {
        if is_preset_fixed || keys.any(|key| key == "profile" || key == "preset") {
            Start { profile: BESIDE_A_PRESET, preset: BESIDE_A_PROFILE }
        } else {
            Start { profile: Profile::default().name(), preset: Preset::DEFAULT.name }
        }
    }
}

fn table_of<'t>(named: &Named<'t>) -> Result<&'t Table> {
    match &named.item.value {
        Value::Table(table) => Ok(table),
        _ => {
            let what = format!("{} where a table belongs", named.item.kind());
            Err(named.error(what, "write it as [transport], with one parameter a line"))
        }
    }
}

/// A parameter and where it was set.
struct Setting<'t> {
    name: String,
    key: &'t str,
    value: String,
    entry: &'t Entry,
}

fn settings<'t>(name: &str, table: &'t Table, out: &mut Vec<Setting<'t>>) -> Result<()> {
    for entry in &table.0 {
        out.push(setting(&format!("{name}.{}", entry.key), entry)?);
    }
    Ok(())
}

fn setting<'t>(name: &str, entry: &'t Entry) -> Result<Setting<'t>> {
    let place = &entry.item.place;
    let value = match &entry.item.value {
        Value::Text(text) => toml::Value::String(text.clone()),
        Value::Bool(flag) => toml::Value::Boolean(*flag),
        Value::Number(number) => match number.parse::<i64>() {
            Ok(whole) => toml::Value::Integer(whole),
            Err(_) => number.parse().map_or(toml::Value::Boolean(false), toml::Value::Float),
        },
        Value::List(_) | Value::Table(_) => {
            let what = format!("{name}: {} where one value belongs", entry.item.kind());
            return Err(place.error(what, "write a text, a number, true or false"));
        }
    };
    let one = toml::Table::from_iter([(entry.key.clone(), value)]);
    let text = Config::overrides(&one).map_err(|error| of_config(name, entry, &error))?;
    let value = text.into_iter().next().map(|(_, value)| value).unwrap_or_default();
    Ok(Setting { name: name.to_owned(), key: &entry.key, value, entry })
}

fn config(
    start: Start,
    settings: &[&Setting<'_>],
    fixed_preset: Option<&str>,
    table: Option<&Named<'_>>,
) -> Result<Config> {
    let mut overrides = Vec::new();
    for setting in settings {
        let is_striped = setting.key == "preset" && setting.value == APPSTRIPE;
        let value = if is_striped { "sctp" } else { &setting.value };
        overrides.push((setting.key.to_owned(), value.to_owned()));
        // Each by itself first, so that an error is about the line that made it.
        let alone = match setting.key {
            "preset" => Preset::from_name(value).map(|_| ()),
            "profile" => Profile::from_name(value).map(|_| ()),
            key => Config::default().set(key, value),
        };
        alone.map_err(|error| of_config(&setting.name, setting.entry, &error))?;
    }
    overrides.extend(fixed_preset.map(|name| ("preset".to_owned(), name.to_owned())));
    Config::build(start.profile, start.preset, &overrides).map_err(|error| {
        let about = settings.iter().rfind(|setting| setting.key == error.field);
        match (about, table) {
            (Some(setting), _) => of_config(&setting.name, setting.entry, &error),
            (None, Some(table)) => table.error(reason(&error), error.allowed),
            (None, None) => ScenarioError {
                file: "transport".to_owned(),
                line: 0,
                what: reason(&error),
                remedy: error.allowed,
            },
        }
    })
}

fn reason(error: &ConfigError) -> String {
    format!("{} = {} is not possible", error.field, error.value)
}

fn of_config(name: &str, entry: &Entry, error: &ConfigError) -> ScenarioError {
    match error.allowed.split_once("; ") {
        Some(("no such parameter", remedy)) => {
            entry.place.error(format!("{name}: no such parameter"), remedy)
        }
        _ => {
            let near = nearest(&error.value, names_of(&entry.key));
            let remedy = match near {
                Some(near) => format!("did you mean `{near}`? It {}", error.allowed),
                None => format!("it {}", error.allowed),
            };
            entry.item.place.error(format!("{name}: `{}` is not possible", error.value), remedy)
        }
    }
}

/// The names that a setting chooses from, if it does.
fn names_of(key: &str) -> Vec<&'static str> {
    match key {
        "preset" => Preset::ALL.iter().map(|preset| preset.name).chain([APPSTRIPE]).collect(),
        "profile" => Profile::ALL.iter().map(|profile| profile.name()).collect(),
        _ => Param::by_name(key).map_or(Vec::new(), |param| param.choices.to_vec()),
    }
}
