//! Typed values out of the tree, with an error for each way to get them wrong.

use std::time::Duration;

use manypath_proto::PathRank;
use manypath_proto::config::units::{self, UnitError};

use super::error::{Place, ScenarioError, list, nearest};
use super::keys::{BOTH, Section};
use super::tree::{Item, Table, Value, unknown_key};
use crate::spec::Rate;

type Result<T> = std::result::Result<T, ScenarioError>;

/// A table whose keys are those of a section.
#[derive(Clone, Debug)]
pub(super) struct Reader<'t> {
    table: &'t Table,
    section: &'static Section,
    pub(super) place: &'t Place,
    /// The dotted name that leads here; empty at the top.
    pub(super) name: String,
}

/// A value with its dotted name.
#[derive(Clone, Debug)]
pub(super) struct Named<'t> {
    pub(super) name: String,
    pub(super) item: &'t Item,
}

impl<'t> Reader<'t> {
    /// Reads `table`, which must have no other keys than the section.
    pub(super) fn new(
        table: &'t Table,
        section: &'static Section,
        place: &'t Place,
        name: &str,
    ) -> Result<Reader<'t>> {
        for entry in &table.0 {
            if !section.names().any(|known| known == entry.key) {
                return Err(unknown_key(entry, name, section.names()));
            }
        }
        Ok(Reader { table, section, place, name: name.to_owned() })
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &'static str) -> Option<Named<'t>> {
        debug_assert!(self.section.names().any(|known| known == key), "{key} is not documented");
        let item = self.table.get(key)?;
        Some(Named { name: self.name_of(key), item })
    }

    /// The value of a key that must be there.
    pub(super) fn need(&self, key: &'static str, example: &str) -> Result<Named<'t>> {
        self.get(key).ok_or_else(|| {
            let what = match self.name.as_str() {
                "" => format!("`{key}` is missing"),
                name => format!("{name} has no `{key}`"),
            };
            self.place.error(what, format!("add {key} = {example}"))
        })
    }

    fn name_of(&self, key: &str) -> String {
        match self.name.as_str() {
            "" => key.to_owned(),
            name => format!("{name}.{key}"),
        }
    }

    /// The elements of a list; none if the key is not there. One table counts as a list of one.
    pub(super) fn elements(&self, key: &'static str) -> Result<Vec<Named<'t>>> {
        let Some(named) = self.get(key) else { return Ok(Vec::new()) };
        match &named.item.value {
            Value::Table(_) => Ok(vec![named]),
            _ => named.elements(),
        }
    }
}

impl<'t> Named<'t> {
    /// An error about this value.
    pub(super) fn error(
        &self,
        what: impl std::fmt::Display,
        remedy: impl Into<String>,
    ) -> ScenarioError {
        self.item.place.error(format!("{}: {what}", self.name), remedy)
    }

    /// As a table of that section.
    pub(super) fn table(&self, section: &'static Section) -> Result<Reader<'t>> {
        match &self.item.value {
            Value::Table(table) => Reader::new(table, section, &self.item.place, &self.name),
            _ => {
                let keys: Vec<&str> = section.names().collect();
                let remedy = format!("write a table with {}", list(keys));
                Err(self.error(format!("{} where a table belongs", self.item.kind()), remedy))
            }
        }
    }

    /// As a list.
    pub(super) fn elements(&self) -> Result<Vec<Named<'t>>> {
        let Value::List(items) = &self.item.value else {
            return Err(self.error(
                format!("{} where a list belongs", self.item.kind()),
                "put it into [ ], or write the table's head as [[…]]",
            ));
        };
        let named = |(i, item)| Named { name: format!("{}.{}", self.name, i + 1), item };
        Ok(items.iter().enumerate().map(named).collect())
    }

    /// As text, number or switch, in words.
    pub(super) fn text(&self) -> Result<String> {
        self.item.scalar().ok_or_else(|| {
            let remedy = "write one value, in quotes";
            self.error(format!("{} where one value belongs", self.item.kind()), remedy)
        })
    }

    fn unit<T>(&self, parse: impl Fn(&str) -> std::result::Result<T, UnitError>) -> Result<T> {
        let text = self.text()?;
        parse(&text).map_err(|error| {
            let UnitError { kind, text, forms, .. } = error;
            self.error(format!("`{text}` is not a {kind}"), format!("write {forms}"))
        })
    }

    /// As a duration.
    pub(super) fn duration(&self) -> Result<Duration> {
        let length = self.unit(units::parse_duration)?;
        // Beyond, sums of times would leave the range of the clock.
        if length > Duration::from_secs(1_000_000_000) {
            return Err(self.error("longer than 30 years", "write a shorter time"));
        }
        Ok(length)
    }

    /// As a size in bytes.
    pub(super) fn size(&self) -> Result<u64> {
        self.unit(units::parse_size)
    }

    /// As the rank of a path.
    pub(super) fn rank(&self) -> Result<PathRank> {
        let text = self.text()?;
        let remedy = "write \"normal\", \"backup\", or \"cost=N\" with N from 0 to 255";
        text.parse().map_err(|_| self.error(format!("`{text}` is not possible"), remedy))
    }

    /// As true or false.
    pub(super) fn boolean(&self) -> Result<bool> {
        match (&self.item.value, self.item.scalar().as_deref()) {
            (Value::Bool(flag), _) => Ok(*flag),
            // As `--set` gives it.
            (_, Some("true")) => Ok(true),
            (_, Some("false")) => Ok(false),
            _ => Err(self.error(self.item.kind().to_owned(), "write true or false")),
        }
    }

    /// As a probability or share from 0 to 1.
    pub(super) fn ratio(&self) -> Result<f64> {
        self.unit(units::parse_ratio)
    }

    /// As a rate above zero.
    pub(super) fn rate(&self) -> Result<Rate> {
        if self.item.scalar().as_deref() == Some("infinite") {
            return Ok(Rate::INFINITE);
        }
        match self.unit(units::parse_rate)? {
            0 => Err(self.error(
                "a rate of zero sends nothing",
                "write a rate above zero, or `down` for a path that fails",
            )),
            bits => Ok(Rate::bps(bits)),
        }
    }

    /// As a whole number in a range.
    pub(super) fn whole(&self, range: std::ops::RangeInclusive<u64>) -> Result<u64> {
        let text = self.text()?;
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| {
            let remedy = format!("write a whole number from {} to {}", range.start(), range.end());
            self.error(format!("`{text}` is not possible"), remedy)
        })
    }

    /// As one of some words.
    pub(super) fn word<T: Copy>(&self, words: &[(&'static str, T)]) -> Result<T> {
        let text = self.text()?;
        let found = words.iter().find(|(word, _)| *word == text);
        found.map(|&(_, meaning)| meaning).ok_or_else(|| {
            let known = words.iter().map(|(word, _)| *word);
            let near = nearest(&text, known.clone());
            let near = near.map(|near| format!("; nearest is `{near}`")).unwrap_or_default();
            let remedy = format!("write {}{near}", list(known));
            self.error(format!("`{text}` is not possible"), remedy)
        })
    }

    /// A value for each direction: one for both, or `{ forward, reverse }`.
    pub(super) fn both<T: Clone>(&self, read: impl Fn(&Named<'_>) -> Result<T>) -> Result<(T, T)> {
        let Value::Table(table) = &self.item.value else {
            let value = read(self)?;
            return Ok((value.clone(), value));
        };
        let is_pair = BOTH.names().any(|name| table.get(name).is_some());
        if !is_pair {
            let value = read(self)?;
            return Ok((value.clone(), value));
        }
        let pair = self.table(&BOTH)?;
        let (forward, reverse) = (pair.need("forward", "…")?, pair.need("reverse", "…")?);
        Ok((read(&forward)?, read(&reverse)?))
    }
}
