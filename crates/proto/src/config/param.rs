//! The parameters of a configuration: values and policies in one list.

use std::sync::LazyLock;

use super::policies::POLICIES;
use super::{Config, ConfigError, Group};
use crate::params::{Params, Row, VALUES};

/// A parameter: its name, its meaning, and how to read and write it.
#[non_exhaustive]
pub struct Param {
    /// Name, the same in every API.
    pub name: &'static str,
    /// Its subject.
    pub group: Group,
    /// The kind of its value: "time", "bytes", "packets", "switch", "policy" and so on.
    pub unit: &'static str,
    /// Its meaning, in words.
    pub doc: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// The names that the parameter chooses from; empty if it is no choice.
    pub choices: &'static [&'static str],
    /// Why users leave it alone, such as "repeats ns-2"; `None` for one that users set.
    pub hidden: Option<&'static str>,
    /// True if TOML writes it without quotes.
    pub(super) bare: bool,
    field: Field,
}

/// The part of a configuration that a parameter is a field of.
enum Field {
    Value(&'static Row<Params>),
    Policy(&'static Row<Config>),
}

/// Every parameter, in the order they are printed.
pub static PARAMS: LazyLock<Vec<Param>> = LazyLock::new(|| {
    let mut all: Vec<_> = VALUES.iter().map(|row| Param::new(row, Field::Value(row))).collect();
    for policy in POLICIES {
        let row = &policy.row;
        let of_group = all.iter().rposition(|param| param.group == row.group);
        let at = all.iter().position(|param| param.name == policy.before);
        let at = at.or(of_group.map(|last| last + 1)).unwrap_or(all.len());
        all.insert(at, Param::new(row, Field::Policy(row)));
    }
    all
});

impl Param {
    fn new<Owner>(row: &Row<Owner>, field: Field) -> Self {
        Self {
            name: row.name,
            group: row.group,
            unit: row.unit,
            doc: row.doc,
            source: row.source,
            choices: row.choices,
            hidden: row.hidden,
            bare: row.bare,
            field,
        }
    }

    /// The parameter of that name.
    pub fn by_name(name: &str) -> Option<&'static Self> {
        PARAMS.iter().find(|param| param.name == name)
    }

    /// The allowed values, in words.
    pub fn allowed(&self) -> String {
        match self.field {
            Field::Value(row) => (row.allowed)(),
            Field::Policy(row) => (row.allowed)(),
        }
    }

    /// Its value in a configuration, as text that `set` takes.
    pub fn get(&self, config: &Config) -> String {
        match self.field {
            Field::Value(row) => (row.get)(config),
            Field::Policy(row) => (row.get)(config),
        }
    }

    /// Sets it in a configuration; an error leaves the configuration as it was.
    pub fn set(&self, config: &mut Config, text: &str) -> Result<(), ConfigError> {
        match self.field {
            Field::Value(row) => (row.set)(config, text),
            Field::Policy(row) => (row.set)(config, text),
        }
    }

    /// Checks its value in a configuration.
    pub(super) fn check(&self, config: &Config) -> Result<(), ConfigError> {
        match self.field {
            Field::Value(row) => (row.check)(config),
            Field::Policy(row) => (row.check)(config),
        }
    }
}
