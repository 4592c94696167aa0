//! Columns of runs in Arrow's memory layout.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    RecordBatchReader, StringArray,
};
use manypath_lab::cell::Cell;
use manypath_lab::column::{Column, ColumnKind};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The columns as one batch.
///
/// # Errors
///
/// If two columns have the same name, or different lengths.
pub(crate) fn batch(columns: &[Column]) -> Result<RecordBatch, String> {
    let named = columns.iter().map(|column| (column.name.as_str(), array(column), true));
    RecordBatch::try_from_iter_with_nullable(named).map_err(|error| error.to_string())
}

fn array(column: &Column) -> ArrayRef {
    let cells = column.cells.iter();
    match column.kind() {
        ColumnKind::Bool => {
            let value =
                |cell: &Cell| if let Cell::Bool(value) = cell { Some(*value) } else { None };
            Arc::new(cells.map(value).collect::<BooleanArray>())
        }
        ColumnKind::Int => {
            let value = |cell: &Cell| if let Cell::Int(value) = cell { Some(*value) } else { None };
            Arc::new(cells.map(value).collect::<Int64Array>())
        }
        ColumnKind::Float => Arc::new(cells.map(Cell::number).collect::<Float64Array>()),
        ColumnKind::Text => {
            let value = |cell: &Cell| (*cell != Cell::Null).then(|| cell.text().into_owned());
            Arc::new(cells.map(value).collect::<StringArray>())
        }
    }
}

/// The batch for another library in this process, without a copy.
pub(crate) fn stream(py: Python<'_>, batch: RecordBatch) -> PyResult<Bound<'_, PyCapsule>> {
    let schema = batch.schema();
    let reader: Box<dyn RecordBatchReader + Send> =
        Box::new(RecordBatchIterator::new([Ok(batch)], schema));
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(reader), c"arrow_array_stream")
}
