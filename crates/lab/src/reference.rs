//! The results of the papers' simulator, `reference.csv`, and how our means agree with them.

use std::collections::BTreeSet;
use std::path::Path;

use crate::error::LabError;
use crate::stats::{Moments, Summary, half_width, welch_p};
use crate::table::{Params, Table, is_same_value, value_of};
use crate::variant::{PACKAGED, SCENARIO};

/// Relative difference up to which two means agree.
pub const AGREES_WITHIN: f64 = 0.05;

/// One mean of the papers' simulator.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct ReferencePoint {
    /// Our variant that it belongs to, if the file says so.
    pub variant: Option<String>,
    /// The point of the sweep.
    pub params: Params,
    /// Our name of the result's field.
    pub field: String,
    /// Mean of the runs.
    pub mean: f64,
    /// Their standard deviation, if known.
    pub std: Option<f64>,
    /// How many runs.
    pub n: usize,
    /// Where it comes from.
    pub source: String,
    /// It counts in the agreement; otherwise it is only shown.
    pub is_compared: bool,
}

impl ReferencePoint {
    /// Half the width of the mean's 95 % confidence interval.
    pub fn ci95(&self) -> Option<f64> {
        half_width(self.std?, self.n)
    }
}

/// The contents of a `reference.csv`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reference {
    /// The means, in the order of the file.
    pub points: Vec<ReferencePoint>,
}

impl Reference {
    /// Reads a file; without one there is no reference.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or a line of it is wrong.
    pub fn load(path: &Path) -> Result<Reference, LabError> {
        if !path.is_file() {
            return Ok(Reference::default());
        }
        let columns = "the columns are [variant,] swept parameters..., field, mean, std, n, source[, compare]";
        let mut reader =
            csv::Reader::from_path(path).map_err(|e| LabError::file(path, e, columns))?;
        let header = reader.headers().map_err(|e| LabError::file(path, e, columns))?.clone();
        for name in ["field", "mean", "std", "n", "source"] {
            if !header.iter().any(|column| column == name) {
                let what = format!("no column `{name}`");
                return Err(LabError::file(path, what, columns));
            }
        }
        let (mut points, mut seen) = (Vec::new(), BTreeSet::new());
        for record in reader.records() {
            let record = record.map_err(|e| LabError::file(path, e, columns))?;
            let line = record.position().map_or(0, csv::Position::line);
            let wrong = |what: String, remedy: &str| LabError {
                place: format!("{}:{line}", path.display()),
                what,
                remedy: remedy.to_owned(),
            };
            let point = read_point(&header, &record).map_err(|what| wrong(what, columns))?;
            // Two lines for one mean would count twice in the agreement.
            let key = (point.variant.clone(), point.params.clone(), point.field.clone());
            if point.is_compared && !seen.insert(key) {
                let what = format!("a second mean of `{}` at the same point", point.field);
                return Err(wrong(what, "remove one, or write `no` in its column `compare`"));
            }
            points.push(point);
        }
        Ok(Reference { points })
    }
}

fn read_point(
    header: &csv::StringRecord,
    record: &csv::StringRecord,
) -> Result<ReferencePoint, String> {
    let mut point = ReferencePoint {
        variant: None,
        params: Params::new(),
        field: String::new(),
        mean: f64::NAN,
        std: None,
        n: 0,
        source: String::new(),
        is_compared: true,
    };
    for (name, value) in header.iter().zip(record) {
        let bad = |error: &dyn std::fmt::Display| format!("`{value}` in column `{name}`: {error}");
        match name {
            "variant" if value.is_empty() => {}
            "variant" => point.variant = Some(value.to_owned()),
            "compare" if ["yes", "no", ""].contains(&value) => point.is_compared = value != "no",
            "compare" => return Err(bad(&"not `yes` or `no`")),
            "field" => value.clone_into(&mut point.field),
            "source" => value.clone_into(&mut point.source),
            "mean" => point.mean = value.parse().map_err(|e| bad(&e))?,
            "std" if value.is_empty() => {}
            "std" => point.std = Some(value.parse().map_err(|e| bad(&e))?),
            "n" => point.n = value.parse().map_err(|e| bad(&e))?,
            _ if value.is_empty() => {}
            _ => point.params.push((name.to_owned(), value.to_owned())),
        }
    }
    if point.n == 0 {
        return Err("a mean of no runs".to_owned());
    }
    let is_number = point.mean.is_finite() && point.std.is_none_or(|s| s.is_finite() && s >= 0.0);
    if is_number { Ok(point) } else { Err("a mean or std that is not a number".to_owned()) }
}

/// How one of our means compares with the reference.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Agreement {
    /// Our variant.
    pub variant: String,
    /// The reference's mean.
    pub reference: ReferencePoint,
    /// Ours.
    pub ours: Summary,
    /// Our mean over the reference's; `None` if that is 0.
    pub ratio: Option<f64>,
    /// The p value of Welch's test; `None` if a deviation is not known.
    pub p: Option<f64>,
    /// Our mean lies within 5 % of the reference or inside its 95 % confidence interval.
    pub agrees: bool,
}

/// Compares all means that both the reference and our runs have. Also returns the number of means
/// of the reference without runs of ours.
pub fn compare(reference: &Reference, table: &Table) -> (Vec<Agreement>, usize) {
    let points = table.points();
    let has = |name: &str| points.iter().any(|rows| rows.iter().any(|row| *row.variant == *name));
    let default = if has(PACKAGED) { PACKAGED } else { SCENARIO };
    let mut compared = Vec::new();
    let wanted = || reference.points.iter().filter(|point| point.is_compared);
    for wanted in wanted() {
        let variant = wanted.variant.as_deref().unwrap_or(default);
        let is_at = |params: &Params| {
            wanted.params.iter().all(|(name, value)| {
                value_of(params, name).is_some_and(|own| is_same_value(own, value))
            })
        };
        let Some(column) = table.column(&wanted.field) else { continue };
        let mut values = Vec::new();
        for rows in &points {
            let Some(first) = rows.first() else { continue };
            if *first.variant == *variant && is_at(&first.params) {
                let counted = rows.iter().filter(|row| table.is_counted(row));
                values.extend(counted.filter_map(|row| table.cell(row, column).number()));
            }
        }
        if let Some(ours) = Summary::of(&values) {
            compared.push(compare_point(variant, wanted, ours));
        }
    }
    let missing = wanted().count() - compared.len();
    (compared, missing)
}

fn compare_point(variant: &str, reference: &ReferencePoint, ours: Summary) -> Agreement {
    let off = (ours.mean - reference.mean).abs();
    let is_near = off <= AGREES_WITHIN * reference.mean.abs();
    let is_inside = reference.ci95().is_some_and(|half| off <= half);
    let moments = |mean, std: Option<f64>, n| std.map(|std| Moments { mean, std, n });
    let p = moments(ours.mean, ours.std, ours.n)
        .zip(moments(reference.mean, reference.std, reference.n))
        .and_then(|(a, b)| welch_p(a, b));
    Agreement {
        variant: variant.to_owned(),
        ratio: (reference.mean != 0.0).then(|| ours.mean / reference.mean),
        reference: reference.clone(),
        ours,
        p,
        agrees: is_near || is_inside,
    }
}

#[cfg(test)]
mod tests;
