//! Placebos: an experiment once more without the mechanism that its claims are about.
//!
//! A claim that holds then as well says nothing about the mechanism.

use indexmap::IndexMap;
use manypath_sim::scenario::{Point, Scenario, ScenarioError};
use serde::Deserialize;

use crate::claims::OneOrMany;
use crate::table::{is_same_value, value_of};

/// Seeds of a placebo's points, unless it says otherwise.
const SEEDS: usize = 10;

/// Begins the names of the variants that placebos are.
const PREFIX: &str = "placebo-";

/// A `[[placebo]]` table as it is written; `docs/laboratory.md` describes the keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlaceboEntry {
    id: String,
    says: String,
    set: IndexMap<String, toml::Value>,
    #[serde(default)]
    at: IndexMap<String, OneOrMany>,
    seeds: Option<usize>,
}

/// Settings that switch a mechanism off.
#[derive(Clone, Debug, PartialEq)]
pub struct Placebo {
    /// Its name within the experiment.
    pub id: String,
    /// The mechanism that is off, in words.
    pub says: String,
    /// Dotted names with their values, which come after all others.
    set: Vec<(String, String)>,
    /// The points at which they are set, by values of swept parameters.
    at: Vec<(String, Vec<String>)>,
    /// How many of the scenario's seeds it runs with at most.
    pub seeds: usize,
}

impl Placebo {
    /// Checks what was written.
    pub(crate) fn new(entry: PlaceboEntry) -> Result<Placebo, String> {
        let bad = |what: &str| Err(format!("placebo `{}`: {what}", entry.id));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if entry.id.is_empty() || entry.id == NONE || !entry.id.chars().all(is_plain) {
            return bad("the id is letters, digits and `-`, and not `none`");
        }
        if entry.set.is_empty() {
            return bad("it sets nothing: write set = { \"transport.failure\" = \"pmr\" }");
        }
        if entry.seeds == Some(0) {
            return bad("without a seed nothing runs");
        }
        Ok(Placebo {
            id: entry.id,
            says: entry.says,
            set: settings(entry.set),
            at: entry.at.into_iter().map(|(name, values)| (name, values.values())).collect(),
            seeds: entry.seeds.unwrap_or(SEEDS),
        })
    }

    /// The name of the variant that its runs are.
    pub fn variant(&self) -> String {
        format!("{PREFIX}{}", self.id)
    }

    /// True if it changes the point with these parameters.
    fn is_at(&self, params: &[(String, String)]) -> bool {
        self.at.iter().all(|(name, values)| {
            value_of(params, name).is_some_and(|own| values.iter().any(|v| is_same_value(own, v)))
        })
    }

    /// Settings of the placebo, if they are those of every point.
    pub(crate) fn settings_everywhere(&self) -> Option<&[(String, String)]> {
        self.at.is_empty().then_some(&self.set)
    }

    /// The points of a scenario without the mechanism.
    pub(crate) fn points(&self, scenario: &Scenario) -> Result<Vec<Point>, ScenarioError> {
        scenario.points_with(&self.set, &|params| self.is_at(params))
    }
}

/// Dotted names with their values as text.
pub(crate) fn settings(set: IndexMap<String, toml::Value>) -> Vec<(String, String)> {
    let text = |value: toml::Value| match value {
        toml::Value::String(text) => text,
        other => other.to_string(),
    };
    set.into_iter().map(|(name, value)| (name, text(value))).collect()
}

/// The value of `placebo` in a claim that has none.
pub(crate) const NONE: &str = "none";

/// True for the variant of a placebo.
pub fn is_placebo(variant: &str) -> bool {
    variant.starts_with(PREFIX)
}
