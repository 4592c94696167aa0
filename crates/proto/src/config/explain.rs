//! Where each value of a configuration comes from.

use std::fmt;

use serde::Serialize;

use super::{Config, PARAMS, Param, Preset};

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The profile.
    Profile,
    /// The preset.
    Preset,
    /// A file, the command line or the program.
    Override,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Profile => "profile",
            Self::Preset => "preset",
            Self::Override => "override",
        })
    }
}

/// One parameter of a configuration, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// Name of the parameter.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// What it counts or selects.
    pub unit: &'static str,
    /// The values it may take.
    pub range: String,
    /// Its value in the profile alone.
    pub default: String,
    /// Where its value comes from.
    pub origin: Origin,
    /// Where it is specified.
    pub source: &'static str,
    /// What it means.
    pub doc: &'static str,
}

impl Config {
    /// Every parameter with its value, unit, range, default, origin and source.
    pub fn explain(&self) -> Vec<Explained> {
        let constants = Self::from_profile(self.profile);
        let preset = Preset::from_name(self.preset).unwrap_or(Preset::DEFAULT);
        let of_preset = Self::of(self.profile, preset);
        let explain = |param: &Param| {
            let (value, default) = (param.get(self), param.get(&constants));
            let is_of_preset = preset.overrides.iter().any(|(name, _)| *name == param.name);
            let origin = match value == param.get(&of_preset) {
                true if is_of_preset || value != default => Origin::Preset,
                true => Origin::Profile,
                false => Origin::Override,
            };
            Explained {
                name: param.name,
                value,
                unit: param.unit,
                range: param.allowed(),
                default,
                origin,
                source: param.source,
                doc: param.doc,
            }
        };
        PARAMS.iter().map(explain).collect()
    }
}

/// A table with a row for each parameter.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = self.explain();
        let columns = |row: &Explained| {
            let unit = format!("{}: {}", row.unit, row.range);
            [
                row.name.to_owned(),
                row.value.clone(),
                row.default.clone(),
                row.origin.to_string(),
                unit,
            ]
        };
        let head = ["parameter", "value", "default", "from", "unit: range"].map(str::to_owned);
        let cells: Vec<_> = std::iter::once(head).chain(rows.iter().map(columns)).collect();
        let width = |i: usize| cells.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
        let widths = [width(0), width(1), width(2), width(3)];
        writeln!(f, "profile {}, preset {}", self.profile.name(), self.preset)?;
        let sources = std::iter::once("source").chain(rows.iter().map(|row| row.source));
        for (row, source) in cells.iter().zip(sources) {
            for (cell, width) in row.iter().zip(widths) {
                write!(f, "{cell:width$}  ")?;
            }
            writeln!(f, "{} [{source}]", row[4])?;
        }
        Ok(())
    }
}
