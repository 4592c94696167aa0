//! Columns of runs, as the tabular files and data frames have them: `experiment`, `variant`, the
//! swept parameters, `seed`, and the fields of the result.

use crate::cell::Cell;
use crate::table::{Row, Table, value_of};

/// A column: a name, and a cell for each run.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values, in the order of the runs.
    pub cells: Vec<Cell>,
}

/// The type that holds all cells of a column. Each may also be unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Yes or no.
    Bool,
    /// Whole numbers of 64 bits.
    Int,
    /// Numbers; also of a column without known cells.
    Float,
    /// Texts; numbers among them are written in decimal.
    Text,
}

impl Column {
    /// The columns of a table.
    pub fn all(experiment: &str, table: &Table) -> Vec<Column> {
        let rows = table.rows();
        let of = |name: &str, cell: &dyn Fn(&Row) -> Cell| Column {
            name: name.to_owned(),
            cells: rows.iter().map(cell).collect(),
        };
        let mut columns = vec![
            of("experiment", &|_| Cell::Text(experiment.to_owned())),
            of("variant", &|row| Cell::Text(row.variant.to_string())),
        ];
        columns.extend(table.parameters().map(|name| {
            let value = |row: &Row| value_of(&row.params, name).map(str::to_owned);
            of(name, &|row| value(row).map_or(Cell::Null, Cell::Text))
        }));
        let seed = |row: &Row| i64::try_from(row.seed).map_or(Cell::Null, Cell::Int);
        columns.push(of("seed", &seed));
        let fields = table.fields().enumerate();
        columns.extend(fields.map(|(n, name)| of(name, &|row| table.cell(row, n).clone())));
        columns
    }

    /// The type of its cells.
    pub fn kind(&self) -> ColumnKind {
        let known = || self.cells.iter().filter(|cell| **cell != Cell::Null);
        let all = |is: fn(&Cell) -> bool| known().next().is_some() && known().all(is);
        if all(|c| matches!(c, Cell::Bool(_))) {
            ColumnKind::Bool
        } else if all(|c| matches!(c, Cell::Int(_))) {
            ColumnKind::Int
        } else if known().all(|c| matches!(c, Cell::Int(_) | Cell::Float(_))) {
            ColumnKind::Float
        } else {
            ColumnKind::Text
        }
    }
}
