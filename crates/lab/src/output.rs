//! Files of runs: JSON lines, CSV and Parquet with the same columns, one row a run.
//!
//! The columns are `experiment`, `variant`, the swept parameters, `seed`, and the fields of the
//! result.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::cell::{Cell, fields_of_json, json_text};
use crate::column::{Column, ColumnKind};
use crate::table::{Params, Row, Table};

/// Writes a run as one line of JSON. Lists of the result stay lists.
///
/// # Errors
///
/// If writing fails.
pub fn write_json_line(
    out: &mut impl Write,
    experiment: &str,
    table: &Table,
    row: &Row,
) -> io::Result<()> {
    write!(out, "{{\"experiment\":{}", json_text(experiment))?;
    write!(out, ",\"variant\":{}", json_text(&row.variant))?;
    for (name, value) in row.params.iter() {
        write!(out, ",{}:{}", json_text(name), json_text(value))?;
    }
    write!(out, ",\"seed\":{}", row.seed)?;
    for (field, cell) in table.fields().zip(&row.cells) {
        write!(out, ",{}:{}", json_text(field), cell.json())?;
    }
    writeln!(out, "}}")
}

/// Reads what [`write_json_line`] wrote. `parameters` tells the swept parameters from the fields.
///
/// # Errors
///
/// If a line is not such an object, with its number.
pub fn read_json_lines(text: &str, parameters: &[String]) -> Result<Table, String> {
    let mut table = Table::new();
    let mut last: Option<(Arc<str>, Arc<Params>)> = None;
    for (number, line) in text.lines().enumerate() {
        let bad = |what: String| format!("line {}: {what}", number + 1);
        let mut fields = fields_of_json(line).map_err(|e| bad(e.to_string()))?;
        fields.shift_remove("experiment");
        let variant = match fields.shift_remove("variant") {
            Some(Cell::Text(variant)) => variant,
            _ => return Err(bad("no variant".to_owned())),
        };
        let mut params = Params::new();
        for name in parameters {
            if let Some(Cell::Text(value)) = fields.shift_remove(name) {
                params.push((name.clone(), value));
            }
        }
        let Some(Cell::Int(seed)) = fields.shift_remove("seed") else {
            return Err(bad("no seed".to_owned()));
        };
        let seed = u64::try_from(seed).map_err(|e| bad(e.to_string()))?;
        let (variant, params) = match last.take() {
            Some((v, p)) if *v == *variant && *p == params => (v, p),
            _ => (Arc::from(variant), Arc::new(params)),
        };
        table.push(&variant, &params, seed, fields);
        last = Some((variant, params));
    }
    Ok(table)
}

/// Writes all runs as CSV with a header.
///
/// # Errors
///
/// If writing fails.
pub fn write_csv(path: &Path, experiment: &str, table: &Table) -> io::Result<()> {
    let mut out = csv::Writer::from_path(path)?;
    let columns = Column::all(experiment, table);
    out.write_record(columns.iter().map(|column| column.name.as_bytes()))?;
    for row in 0..table.rows().len() {
        let cell = |column: &Column| column.cells.get(row).map(|c| c.text().into_owned());
        out.write_record(columns.iter().map(|column| cell(column).unwrap_or_default()))?;
    }
    out.flush()
}

/// Writes all runs as a Parquet file. Whole numbers are INT64, other numbers DOUBLE, texts UTF-8.
///
/// # Errors
///
/// If writing fails.
pub fn write_parquet(path: &Path, experiment: &str, table: &Table) -> io::Result<()> {
    let columns = Column::all(experiment, table);
    let fields = columns.iter().map(|column| schema(column).map(Arc::new));
    let fields = fields.collect::<Result<Vec<_>, _>>().map_err(io::Error::other)?;
    let schema = Type::group_type_builder("runs").with_fields(fields).build();
    let schema = Arc::new(schema.map_err(io::Error::other)?);
    write_columns(File::create(path)?, schema, &columns).map_err(io::Error::other)
}

fn write_columns(
    file: File,
    schema: Arc<Type>,
    columns: &[Column],
) -> Result<(), parquet::errors::ParquetError> {
    // The names of a writer and its version would make files differ between builds.
    let properties = WriterProperties::builder().set_created_by("manypath".to_owned()).build();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    for column in columns {
        let Some(mut out) = group.next_column()? else { break };
        let known = |cell: &&Cell| **cell != Cell::Null;
        let levels: Vec<i16> = column.cells.iter().map(|c| i16::from(known(&c))).collect();
        let cells = column.cells.iter().filter(known);
        match out.untyped() {
            ColumnWriter::BoolColumnWriter(typed) => {
                let values: Vec<_> = cells.map(|c| *c == Cell::Bool(true)).collect();
                typed.write_batch(&values, Some(&levels), None)?;
            }
            ColumnWriter::Int64ColumnWriter(typed) => {
                let whole = |c: &Cell| if let Cell::Int(value) = c { *value } else { 0 };
                let values: Vec<_> = cells.map(whole).collect();
                typed.write_batch(&values, Some(&levels), None)?;
            }
            ColumnWriter::DoubleColumnWriter(typed) => {
                let values: Vec<_> = cells.filter_map(Cell::number).collect();
                typed.write_batch(&values, Some(&levels), None)?;
            }
            ColumnWriter::ByteArrayColumnWriter(typed) => {
                let values: Vec<_> = cells.map(|c| ByteArray::from(&*c.text())).collect();
                typed.write_batch(&values, Some(&levels), None)?;
            }
            _ => {}
        }
        out.close()?;
    }
    group.close()?;
    writer.close()?;
    Ok(())
}

fn schema(column: &Column) -> Result<Type, parquet::errors::ParquetError> {
    let kind = column.kind();
    let text = (kind == ColumnKind::Text).then_some(LogicalType::String);
    let physical = match kind {
        ColumnKind::Bool => Physical::BOOLEAN,
        ColumnKind::Int => Physical::INT64,
        ColumnKind::Float => Physical::DOUBLE,
        ColumnKind::Text => Physical::BYTE_ARRAY,
    };
    Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_logical_type(text)
        .build()
}

#[cfg(test)]
mod tests;
