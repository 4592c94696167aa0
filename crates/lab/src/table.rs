//! The rows of an experiment: one run each, under named columns.

use std::sync::Arc;

use indexmap::IndexSet;

use crate::cell::{Cell, Fields};
use crate::derive::Derive;
use crate::group::Group;

/// The swept parameters of a point, in the order of the scenario: name and value as text.
pub type Params = Vec<(String, String)>;

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which scenario file of the experiment it ran: `scenario` or `packaged`.
    pub variant: Arc<str>,
    /// Its point of the sweep.
    pub params: Arc<Params>,
    /// Its seed.
    pub seed: u64,
    /// Its values, by the table's columns; shorter if later runs brought new columns.
    pub cells: Vec<Cell>,
}

/// The runs of an experiment, in the order of (variant, point, seed); in groups, of (variant,
/// group).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    parameters: IndexSet<String>,
    fields: IndexSet<String>,
    rows: Vec<Row>,
    /// Runs that did not complete count in statistics like others.
    pub counts_incomplete: bool,
}

impl Table {
    /// A table without rows.
    pub fn new() -> Table {
        Table::default()
    }

    /// Adds a run.
    pub fn push(&mut self, variant: &Arc<str>, params: &Arc<Params>, seed: u64, fields: Fields) {
        for (name, _) in params.iter() {
            if !self.parameters.contains(name) {
                self.parameters.insert(name.clone());
            }
        }
        let mut cells = vec![Cell::Null; self.fields.len()];
        for (name, cell) in fields {
            let (column, is_new) = self.fields.insert_full(name);
            if is_new {
                cells.push(cell);
            } else if let Some(place) = cells.get_mut(column) {
                *place = cell;
            }
        }
        let (variant, params) = (Arc::clone(variant), Arc::clone(params));
        self.rows.push(Row { variant, params, seed, cells });
    }

    /// Computes these columns for the runs that are there, except those from time series, which
    /// only a run has.
    pub fn derive(&mut self, derived: &[Derive]) {
        for derive in derived.iter().filter(|derive| !derive.needs_series()) {
            let value = |row: &Row| {
                let number = |name: &str| self.cell(row, self.column(name)?).number();
                derive.value(&number, &[])
            };
            let values: Vec<_> = self.rows.iter().map(value).collect();
            let (column, _) = self.fields.insert_full(derive.name.clone());
            for (row, value) in self.rows.iter_mut().zip(values) {
                row.cells.resize(row.cells.len().max(column + 1), Cell::Null);
                if let Some(place) = row.cells.get_mut(column) {
                    *place = value;
                }
            }
        }
    }

    /// Groups the runs by observed values instead of by the swept parameters. Does nothing without
    /// groups.
    pub fn regroup(&mut self, groups: &[Group]) {
        if groups.is_empty() {
            return;
        }
        let (mut variants, mut texts) = (IndexSet::new(), IndexSet::new());
        let mut keyed = Vec::with_capacity(self.rows.len());
        for row in &self.rows {
            let (mut key, mut params) = (Vec::new(), Params::new());
            for group in groups {
                let column = self.column(&group.of);
                let cell = column.map_or(&Cell::Null, |column| self.cell(row, column));
                let (place, text) = group.value(cell);
                key.push((place, texts.insert_full(text.clone()).0));
                params.push((group.name.clone(), text));
            }
            let variant = variants.insert_full(Arc::clone(&row.variant)).0;
            keyed.push(((variant, key), Arc::new(params)));
        }
        for (row, (_, params)) in self.rows.iter_mut().zip(&keyed) {
            row.params = Arc::clone(params);
        }
        let mut rows: Vec<_> =
            keyed.into_iter().map(|(key, _)| key).zip(self.rows.drain(..)).collect();
        rows.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.rows.extend(rows.into_iter().map(|(_, row)| row));
        self.parameters = groups.iter().map(|group| group.name.clone()).collect();
    }

    /// The names of the swept parameters, or of the groups.
    pub fn parameters(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(String::as_str)
    }

    /// The names of the result fields.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.fields.iter().map(String::as_str)
    }

    /// The number of a field's column.
    pub fn column(&self, field: &str) -> Option<usize> {
        self.fields.get_index_of(field)
    }

    /// The runs.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The value of a run in a column.
    pub fn cell<'a>(&'a self, row: &'a Row, column: usize) -> &'a Cell {
        row.cells.get(column).unwrap_or(&Cell::Null)
    }

    /// True if a run counts in statistics; by default only completed ones do.
    pub fn is_counted(&self, row: &Row) -> bool {
        let completed = self.column("completed").map(|column| self.cell(row, column));
        self.counts_incomplete || completed != Some(&Cell::Bool(false))
    }

    /// The runs of each point, in the order in which the points were added.
    pub fn points(&self) -> Vec<&[Row]> {
        let is_same = |a: &Row, b: &Row| a.variant == b.variant && a.params == b.params;
        self.rows.chunk_by(is_same).collect()
    }
}

/// The value of a swept parameter at a point.
pub fn value_of<'a>(params: &'a [(String, String)], name: &str) -> Option<&'a str> {
    params.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
}

/// True if two texts are the same value of a swept parameter, without regard to white space.
pub fn is_same_value(a: &str, b: &str) -> bool {
    let solid = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    a == b || solid(a) == solid(b)
}

/// A point as text: `path.2.loss = 7 %, transport.rtx_policy = same`.
pub fn show_params(params: &Params) -> String {
    let shown: Vec<_> = params.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if shown.is_empty() { "the only point".to_owned() } else { shown.join(", ") }
}
