//! Columns that are computed: sums and quotients of fields, values taken from time series.

use indexmap::IndexMap;
use manypath_sim::Sample;
use serde::Deserialize;

use crate::cell::Cell;

/// A quantity over time in one run.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Series {
    /// Its name, such as `path1.cwnd_bytes`.
    pub name: String,
    /// Time in seconds since the run began, and the value from then on; times never fall.
    pub points: Vec<(f64, f64)>,
}

/// The numbers of samples as series: `delivered_bytes`, ..., `path1.cwnd_bytes`, ...
pub fn series_of(samples: &[Sample]) -> Result<Vec<Series>, String> {
    let mut series: IndexMap<String, Vec<(f64, f64)>> = IndexMap::new();
    for sample in samples {
        let mut own = sample.clone();
        let paths = std::mem::take(&mut own.paths);
        let mut parts = vec![(String::new(), serde_json::to_value(&own))];
        for (number, path) in paths.iter().enumerate() {
            parts.push((format!("path{}.", number + 1), serde_json::to_value(path)));
        }
        for (prefix, value) in parts {
            let value = value.map_err(|e| e.to_string())?;
            for (name, value) in value.as_object().into_iter().flatten() {
                if let (false, Some(value)) =
                    (["at_s", "path"].contains(&name.as_str()), value.as_f64())
                {
                    let points = series.entry(format!("{prefix}{name}")).or_default();
                    points.push((sample.at_s, value));
                }
            }
        }
    }
    Ok(series.into_iter().map(|(name, points)| Series { name, points }).collect())
}

/// A `[[derive]]` table as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeriveEntry {
    name: String,
    sum: Option<Vec<String>>,
    less: Option<Vec<String>>,
    per: Option<Vec<String>>,
    scale: Option<f64>,
    series: Option<Vec<String>>,
    take: Option<String>,
    value: Option<f64>,
    from: Option<String>,
    to: Option<String>,
}

/// A column that is computed for each run.
#[derive(Clone, Debug, PartialEq)]
pub struct Derive {
    /// Its name.
    pub name: String,
    formula: Formula,
    scale: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum Formula {
    /// The sum of fields, less the sum of others, over the sum of others if there are any.
    Fields { sum: Vec<String>, less: Vec<String>, per: Vec<String> },
    /// Something about the sum of series, less the sum of others, within a time.
    Series { series: Vec<String>, less: Vec<String>, take: Take, from: f64, to: f64 },
}

/// The value taken from a series.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Take {
    /// The value at the end of the time.
    Last,
    /// The mean over the time, each value weighted by how long it holds.
    Mean,
    Min,
    Max,
    /// The first time at which the series is at least that.
    FirstAtLeast(f64),
    /// The first time at which the series is at most that.
    FirstAtMost(f64),
    /// How often the series passes that value, up or down. Rests at the value itself do not count.
    Crossings(f64),
}

impl Derive {
    /// Checks what was written.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn new(entry: DeriveEntry) -> Result<Derive, String> {
        let DeriveEntry { name, sum, less, per, scale, series, take, value, from, to } = entry;
        let formula = match (sum, series) {
            (Some(sum), None) => {
                if take.is_some() || value.is_some() || from.is_some() || to.is_some() {
                    return Err("`take`, `value`, `from` and `to` go with `series`".to_owned());
                }
                let (less, per) = (less.unwrap_or_default(), per.unwrap_or_default());
                Formula::Fields { sum, less, per }
            }
            (None, Some(series)) => {
                if per.is_some() {
                    return Err("`per` goes with `sum`".to_owned());
                }
                let from = from.map_or(Ok(0.0), |text| seconds(&text))?;
                let to = to.map_or(Ok(f64::INFINITY), |text| seconds(&text))?;
                if from > to {
                    return Err("`from` is after `to`".to_owned());
                }
                let (less, take) = (less.unwrap_or_default(), read_take(take.as_deref(), value)?);
                Formula::Series { series, less, take, from, to }
            }
            _ => return Err("a derived column needs either `sum` or `series`".to_owned()),
        };
        Ok(Derive { name, formula, scale: scale.unwrap_or(1.0) })
    }

    /// True if its value depends on that column.
    pub(crate) fn reads(&self, column: &str) -> bool {
        match &self.formula {
            Formula::Fields { sum, less, per } => {
                sum.iter().chain(less).chain(per).any(|name| name == column)
            }
            Formula::Series { .. } => false,
        }
    }

    /// True if it needs time series.
    pub fn needs_series(&self) -> bool {
        matches!(self.formula, Formula::Series { .. })
    }

    /// Its value for a run with these fields; [`Cell::Null`] if something it needs is not there.
    pub fn value(&self, field: &dyn Fn(&str) -> Option<f64>, series: &[Series]) -> Cell {
        let value = match &self.formula {
            Formula::Fields { sum, less, per } => {
                let total = |names: &[String]| names.iter().map(|n| field(n)).sum::<Option<f64>>();
                let sum = total(sum).zip(total(less)).map(|(sum, less)| sum - less);
                if per.is_empty() { sum } else { sum.zip(total(per)).map(|(sum, per)| sum / per) }
            }
            Formula::Series { series: names, less, take, from, to } => {
                take_from(&total_series(names, less, series), *take, *from, *to)
            }
        };
        value.map_or(Cell::Null, |value| Cell::float(value * self.scale))
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    let length = manypath_proto::config::units::parse_duration(text);
    length.map(|length| length.as_secs_f64()).map_err(|e| e.to_string())
}

fn read_take(take: Option<&str>, value: Option<f64>) -> Result<Take, String> {
    let needs = |what: fn(f64) -> Take| value.map(what).ok_or("this `take` needs a `value`");
    let taken = match take {
        Some("last") => Take::Last,
        Some("mean") => Take::Mean,
        Some("min") => Take::Min,
        Some("max") => Take::Max,
        Some("first-at-least") => needs(Take::FirstAtLeast)?,
        Some("first-at-most") => needs(Take::FirstAtMost)?,
        Some("crossings") => needs(Take::Crossings)?,
        other => {
            let all = "last, mean, min, max, first-at-least, first-at-most or crossings";
            return Err(format!("`take = \"{}\"`: say {all}", other.unwrap_or_default()));
        }
    };
    match (taken, value) {
        (Take::FirstAtLeast(_) | Take::FirstAtMost(_) | Take::Crossings(_), _) | (_, None) => {
            Ok(taken)
        }
        _ => Err("`value` goes with first-at-least, first-at-most and crossings".to_owned()),
    }
}

/// The sum of the named series, less the sum of others, as steps. Before its first point a series
/// counts as 0.
fn total_series(names: &[String], less: &[String], series: &[Series]) -> Vec<(f64, f64)> {
    let named = |names: &[String], sign: f64| {
        let chosen: Vec<_> = series.iter().filter(|s| names.contains(&s.name)).collect();
        chosen.into_iter().map(move |one| (one, sign))
    };
    let chosen: Vec<_> = named(names, 1.0).chain(named(less, -1.0)).collect();
    let mut steps: Vec<(f64, usize, f64)> = Vec::new();
    for (number, (one, sign)) in chosen.iter().enumerate() {
        steps.extend(one.points.iter().map(|(at, value)| (*at, number, sign * value)));
    }
    steps.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut now = vec![0.0; chosen.len()];
    let mut total: Vec<(f64, f64)> = Vec::new();
    for (at, number, value) in steps {
        if let Some(own) = now.get_mut(number) {
            *own = value;
        }
        let sum = now.iter().sum();
        match total.last_mut() {
            Some(last) if last.0 == at => last.1 = sum,
            _ => total.push((at, sum)),
        }
    }
    total
}

/// Takes a value from steps within `from..=to`; `None` if the steps do not begin before its end.
fn take_from(steps: &[(f64, f64)], take: Take, from: f64, to: f64) -> Option<f64> {
    let end = steps.last()?.0.min(to);
    let begins = steps.iter().rposition(|(at, _)| *at <= from).unwrap_or(0);
    let within: Vec<_> = steps
        .get(begins..)?
        .iter()
        .filter(|(at, _)| *at <= to)
        .map(|(at, value)| (at.max(from), *value))
        .collect();
    let values = || within.iter().map(|(_, value)| *value);
    match take {
        Take::Last => values().next_back(),
        Take::Min => values().reduce(f64::min),
        Take::Max => values().reduce(f64::max),
        Take::FirstAtLeast(limit) => within.iter().find(|(_, v)| *v >= limit).map(|(at, _)| *at),
        Take::FirstAtMost(limit) => within.iter().find(|(_, v)| *v <= limit).map(|(at, _)| *at),
        Take::Crossings(value) => {
            let sides: Vec<bool> = values().filter(|v| *v != value).map(|v| v > value).collect();
            Some(sides.windows(2).filter(|pair| pair.first() != pair.last()).count() as f64)
        }
        Take::Mean => {
            let first = within.first()?;
            let ends = within.iter().skip(1).map(|(at, _)| *at).chain([end]);
            let area: f64 =
                within.iter().zip(ends).map(|((at, value), end)| value * (end - at)).sum();
            if end > first.0 { Some(area / (end - first.0)) } else { Some(first.1) }
        }
    }
}

#[cfg(test)]
mod tests;
