//! Compares two results of the laboratory: claims, single runs, means.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;
use wildmatch::WildMatch;

use crate::claims::{Judgement, Verdict};
use crate::error::LabError;
use crate::experiment::{Experiments, read};
use crate::group::Group;
use crate::placebo::is_placebo;
use crate::results::{About, load_runs};
use crate::stats::{Moments, Summary, paired_p, welch_p};
use crate::table::{Params, Row, Table};

/// Means differ if the p value of the test is below this. There are many means: at 5 % hundreds
/// would differ by chance alone.
pub const SIGNIFICANCE: f64 = 0.001;

/// The changes of one experiment, from `a` to `b`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Changes {
    /// The experiment.
    pub id: String,
    /// The program's version that made the results; `None` if there are none.
    pub versions: Both<Option<String>>,
    /// How many runs both results have, and how many only one has.
    pub runs: RunChanges,
    /// Claims with another verdict or another measured value, and those that only one has.
    pub claims: Vec<ClaimChange>,
    /// Means that differ. Fields that claims name come first, placebos last; within each, the
    /// smallest p value first, or without a test the largest change.
    pub means: Vec<MeanChange>,
    /// How many means were tested.
    pub tested: usize,
}

/// A value for each of the two results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Both<T> {
    /// The first result's.
    pub a: T,
    /// The second result's.
    pub b: T,
}

/// Runs with the same variant, point and seed belong together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunChanges {
    /// Runs that both results have.
    pub both: usize,
    /// Of these, those with the same value in every field.
    pub equal: usize,
    /// Runs that only one has.
    pub only: Both<usize>,
    /// How many runs differ, by field.
    pub fields: BTreeMap<String, usize>,
}

/// A claim in both results.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClaimChange {
    /// The claim's name.
    pub id: String,
    /// Its statement.
    pub says: String,
    /// The verdicts; `None` where there is no such claim.
    pub verdicts: Both<Option<Verdict>>,
    /// The measured values in words.
    pub measured: Both<Option<String>>,
}

impl ClaimChange {
    /// True if the verdict is another one.
    pub fn is_of_verdict(&self) -> bool {
        self.verdicts.a != self.verdicts.b
    }
}

/// A mean that differs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeanChange {
    /// The variant.
    pub variant: String,
    /// The point of the sweep, or the group.
    pub params: Params,
    /// The field.
    pub field: String,
    /// Its values.
    pub values: Both<Summary>,
    /// The second mean over the first, less 1; `None` if the first is 0.
    pub change: Option<f64>,
    /// The p value: of a paired t test if both have the same seeds, else of Welch's. `None` if a
    /// sample has fewer than two values.
    pub p: Option<f64>,
}

impl Changes {
    /// True if both have the same runs with the same values, and the same claims.
    pub fn is_none(&self) -> bool {
        let runs = &self.runs;
        let is_missing = self.versions.a.is_none() || self.versions.b.is_none();
        let are_equal = runs.equal == runs.both && runs.only == Both::default();
        !is_missing && are_equal && self.claims.is_empty()
    }
}

/// Compares two folders of results. `names` are experiments, papers or patterns; without any, all
/// are compared. Fields in `ignored` may differ.
///
/// # Errors
///
/// If a folder has no results, a name selects none, or a file cannot be read.
pub fn between(
    experiments: &Experiments,
    names: &[String],
    a: &Path,
    b: &Path,
    ignored: &[String],
) -> Result<Vec<Changes>, LabError> {
    let mut ids = BTreeSet::new();
    for folder in [a, b] {
        let own = ids_in(folder)?;
        if own.is_empty() {
            let remedy = "name the folder of a run: `manypath lab run ID --out FOLDER`";
            return Err(LabError::file(folder, "it has no results", remedy));
        }
        ids.extend(own);
    }
    let is_named = |id: &str, name: &str| {
        let is_known = experiments.get(id).is_some_and(|experiment| experiment.is_named(name));
        is_known || WildMatch::new(name).matches(id)
    };
    if let Some(name) = names.iter().find(|name| !ids.iter().any(|id| is_named(id, name))) {
        let known: Vec<_> = ids.iter().map(String::as_str).collect();
        let what = format!("no result of `{name}` here or in {}", b.display());
        return Err(LabError::file(a, what, format!("there are: {}", known.join(", "))));
    }
    ids.retain(|id| names.is_empty() || names.iter().any(|name| is_named(id, name)));
    ids.iter().map(|id| of_one(experiments, id, a, b, ignored)).collect()
}

fn ids_in(folder: &Path) -> Result<Vec<String>, LabError> {
    let remedy = "name a folder of results, such as `lab-results`";
    let entries = std::fs::read_dir(folder).map_err(|e| LabError::file(folder, e, remedy))?;
    let mut ids = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| LabError::file(folder, e, remedy))?.path();
        if let Some(name) = path.file_name()
            && path.join("experiment.json").is_file()
        {
            ids.push(name.to_string_lossy().into_owned());
        }
    }
    Ok(ids)
}

fn of_one(
    experiments: &Experiments,
    id: &str,
    a: &Path,
    b: &Path,
    ignored: &[String],
) -> Result<Changes, LabError> {
    let experiment = experiments.get(id).filter(|experiment| experiment.id == id);
    let load = |out: &Path| -> Result<(Option<About>, Table), LabError> {
        let (about, mut table) = load_runs(out, id)?.unzip();
        if let Some(table) = &mut table {
            table.counts_incomplete = experiment.is_some_and(|e| e.counts_incomplete);
        }
        Ok((about, table.unwrap_or_default()))
    };
    let ((about_a, table_a), (about_b, table_b)) = (load(a)?, load(b)?);
    let groups = experiment.map_or(&[][..], |experiment| &experiment.groups);
    let runs = compare_runs(&table_a, &table_b, ignored);
    // Equal runs have equal means.
    let is_equal = runs.equal == runs.both && runs.only == Both::default();
    let (mut means, tested) =
        if is_equal { (Vec::new(), 0) } else { compare_means(table_a, table_b, groups, ignored) };
    let claims = experiment.map_or(&[][..], |experiment| &experiment.claims);
    let is_claimed = |field: &str| claims.iter().any(|claim| claim.field() == field);
    means.sort_by(|one, other| {
        let size = |mean: &MeanChange| mean.change.map_or(f64::INFINITY, f64::abs);
        let rank = |mean: &MeanChange| (is_placebo(&mean.variant), !is_claimed(&mean.field));
        let by_p = one.p.unwrap_or(0.0).total_cmp(&other.p.unwrap_or(0.0));
        rank(one).cmp(&rank(other)).then(by_p).then(size(other).total_cmp(&size(one)))
    });
    Ok(Changes {
        id: id.to_owned(),
        versions: Both { a: about_a.map(|a| a.version), b: about_b.map(|b| b.version) },
        runs,
        claims: compare_claims(&claims_in(a, id)?, &claims_in(b, id)?),
        means,
        tested,
    })
}

fn claims_in(out: &Path, id: &str) -> Result<Vec<Judgement>, LabError> {
    let file = out.join(id).join("claims.json");
    if !file.is_file() {
        return Ok(Vec::new());
    }
    let remedy = format!("judge it again: manypath lab judge {id}");
    serde_json::from_str(&read(&file)?).map_err(|e| LabError::line(&file, e.line(), &e, remedy))
}

fn compare_claims(a: &[Judgement], b: &[Judgement]) -> Vec<ClaimChange> {
    let find = |all: &[Judgement], id: &str| all.iter().find(|claim| claim.id == id).cloned();
    let added = b.iter().filter(|claim| find(a, &claim.id).is_none());
    let mut changes = Vec::new();
    for claim in a.iter().chain(added) {
        let both = Both { a: find(a, &claim.id), b: find(b, &claim.id) };
        let verdict = |judged: &Option<Judgement>| judged.as_ref().map(|j| j.verdict);
        let measured = |judged: &Option<Judgement>| judged.as_ref().map(|j| j.measured.clone());
        let change = ClaimChange {
            id: claim.id.clone(),
            says: claim.says.clone(),
            verdicts: Both { a: verdict(&both.a), b: verdict(&both.b) },
            measured: Both { a: measured(&both.a), b: measured(&both.b) },
        };
        if change.is_of_verdict() || change.measured.a != change.measured.b {
            changes.push(change);
        }
    }
    changes
}

/// The key that tells a run from the others of its experiment.
type Key<'a> = (&'a str, &'a Params, u64);

fn by_key(table: &Table) -> BTreeMap<Key<'_>, &Row> {
    table.rows().iter().map(|row| ((&*row.variant, &*row.params, row.seed), row)).collect()
}

fn compare_runs(a: &Table, b: &Table, ignored: &[String]) -> RunChanges {
    let (rows_a, rows_b) = (by_key(a), by_key(b));
    let fields: BTreeSet<&str> = a.fields().chain(b.fields()).collect();
    let columns: Vec<_> = fields
        .into_iter()
        .filter(|field| !ignored.iter().any(|other| other == field))
        .map(|field| (field, a.column(field), b.column(field)))
        .collect();
    let mut changes = RunChanges::default();
    for (key, one) in &rows_a {
        let Some(other) = rows_b.get(key) else { continue };
        changes.both += 1;
        let mut is_equal = true;
        for (field, column_a, column_b) in &columns {
            let one = column_a.map(|column| a.cell(one, column));
            let other = column_b.map(|column| b.cell(other, column));
            if one != other {
                *changes.fields.entry((*field).to_owned()).or_default() += 1;
                is_equal = false;
            }
        }
        changes.equal += usize::from(is_equal);
    }
    let only = |rows: &BTreeMap<Key<'_>, &Row>| rows.len() - changes.both;
    changes.only = Both { a: only(&rows_a), b: only(&rows_b) };
    changes
}

/// The means that differ, and how many were tested.
fn compare_means(
    mut a: Table,
    mut b: Table,
    groups: &[Group],
    ignored: &[String],
) -> (Vec<MeanChange>, usize) {
    a.regroup(groups);
    b.regroup(groups);
    let fields: Vec<_> =
        a.fields().filter(|field| !ignored.iter().any(|other| other == field)).collect();
    let others: BTreeMap<_, _> =
        b.points().into_iter().filter_map(|rows| Some((point(rows)?, rows))).collect();
    let (mut means, mut tested) = (Vec::new(), 0);
    for rows in a.points() {
        let Some(at) = point(rows) else { continue };
        let Some(other) = others.get(&at) else { continue };
        for field in &fields {
            let both = Both { a: values(&a, rows, field), b: values(&b, other, field) };
            let (Some(one), Some(two)) = (summary(&both.a), summary(&both.b)) else { continue };
            let p = p_value(&both, groups.is_empty());
            tested += usize::from(p.is_some());
            if p.map_or(one.mean != two.mean, |p| p < SIGNIFICANCE) {
                means.push(MeanChange {
                    variant: at.0.to_owned(),
                    params: at.1.clone(),
                    field: (*field).to_owned(),
                    values: Both { a: one, b: two },
                    change: (one.mean != 0.0).then(|| two.mean / one.mean - 1.0),
                    p,
                });
            }
        }
    }
    (means, tested)
}

fn point(rows: &[Row]) -> Option<(&str, &Params)> {
    rows.first().map(|row| (&*row.variant, &*row.params))
}

/// The numbers of a field with their seeds, in the order of the rows.
fn values(table: &Table, rows: &[Row], field: &str) -> Vec<(u64, f64)> {
    let Some(column) = table.column(field) else { return Vec::new() };
    let counted = rows.iter().filter(|row| table.is_counted(row));
    counted.filter_map(|row| Some((row.seed, table.cell(row, column).number()?))).collect()
}

fn summary(values: &[(u64, f64)]) -> Option<Summary> {
    Summary::of(&values.iter().map(|(_, value)| *value).collect::<Vec<_>>())
}

/// Paired if the same seeds are in the same order and a seed means one run.
fn p_value(values: &Both<Vec<(u64, f64)>>, is_paired: bool) -> Option<f64> {
    let has_same_seeds = values.a.len() == values.b.len()
        && values.a.iter().zip(&values.b).all(|((one, _), (other, _))| one == other);
    if is_paired && has_same_seeds {
        let pairs = values.a.iter().zip(&values.b).map(|((_, one), (_, other))| (*one, *other));
        return paired_p(&pairs.collect::<Vec<_>>());
    }
    let moments = |values: &[(u64, f64)]| {
        let Summary { n, mean, std, .. } = summary(values)?;
        Some(Moments { mean, std: std?, n })
    };
    welch_p(moments(&values.a)?, moments(&values.b)?)
}

#[cfg(test)]
mod tests;
