//! The runs that a claim speaks of.

use std::collections::BTreeMap;

use super::Side;
use crate::reference::Reference;
use crate::stats::{Moments, Spread, Summary};
use crate::table::{Params, Table, is_same_value, value_of};
use crate::variant::SCENARIO;

/// Values of some parameters: one of the points over which a claim is judged.
pub(super) type Group = Vec<(String, String)>;

/// The data of one point.
pub(super) struct Point<'a> {
    variant: &'a str,
    params: &'a Params,
    /// Values of the field by seed, or the moments of the reference.
    values: Values,
}

/// Values of one field.
#[derive(Clone, Debug)]
pub(super) enum Values {
    /// Of our runs: seed and value.
    Runs(Vec<(u64, f64)>),
    /// Of the papers' simulator.
    Reference(Moments),
}

/// The points of our runs, with the values of a field. Those of a stand-in take the scenario's
/// place.
pub(super) fn points_of<'a>(
    table: &'a Table,
    field: &str,
    stand_in: Option<&str>,
) -> Result<Vec<Point<'a>>, String> {
    if table.rows().is_empty() {
        return Err("there are no runs".to_owned());
    }
    let column = table.column(field).ok_or_else(|| no_field(table, field))?;
    let stand_in = present(table, stand_in);
    let points = table.points().into_iter().filter_map(|rows| {
        let first = rows.first()?;
        let value = |row: &crate::table::Row| Some((row.seed, table.cell(row, column).number()?));
        let counted = rows.iter().filter(|row| table.is_counted(row));
        let values = Values::Runs(counted.filter_map(value).collect());
        let variant = in_role(&first.variant, stand_in)?;
        Some(Point { variant, params: &first.params, values })
    });
    Ok(points.collect())
}

/// The stand-in, if the table has runs of it.
pub(super) fn present<'a>(table: &Table, stand_in: Option<&'a str>) -> Option<&'a str> {
    stand_in.filter(|name| table.rows().iter().any(|row| *row.variant == **name))
}

/// The variant that a run counts as: a stand-in's runs are the scenario's, and those are not there.
pub(super) fn in_role<'a>(variant: &'a str, stand_in: Option<&str>) -> Option<&'a str> {
    match stand_in {
        Some(name) if name == variant => Some(SCENARIO),
        Some(_) if variant == SCENARIO => None,
        _ => Some(variant),
    }
}

fn no_field(table: &Table, field: &str) -> String {
    format!("the runs have no field `{field}`{}", nearest(field, table.fields()))
}

fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let nearest = known.min_by_key(|own| strsim::levenshtein(own, name));
    nearest.map(|n| format!("; the nearest is `{n}`")).unwrap_or_default()
}

/// Why no point is on that side: a parameter that no run has, or values that none has together.
pub(super) fn why_none(points: &[Point<'_>], side: &Side, over: &[String]) -> String {
    let known = || points.iter().flat_map(|p| p.params.iter().map(|(name, _)| name.as_str()));
    let named = side.filter.iter().map(|(name, _)| name).chain(over);
    for name in named {
        if !known().any(|own| own == name) {
            return format!("the runs have no parameter `{name}`{}", nearest(name, known()));
        }
    }
    format!("no runs with {}", show_side(side, &Group::new()))
}

/// How the variants in a reference's file count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Variants {
    /// Only the points of a variant are its points.
    AsWritten,
    /// All are points of the variant that is asked for.
    Ignored,
}

/// The points of the reference, with the moments of a field.
pub(super) fn points_of_reference<'a>(
    reference: &'a Reference,
    field: &str,
    variant: &'a str,
    variants: Variants,
) -> Vec<Point<'a>> {
    let of_field = reference.points.iter().filter(|point| point.field == field);
    let written = |point: &'a crate::reference::ReferencePoint| {
        if variants == Variants::AsWritten { point.variant.as_deref() } else { None }
    };
    let point = |point: &'a crate::reference::ReferencePoint| Point {
        variant: written(point).unwrap_or(variant),
        params: &point.params,
        values: Values::Reference(Moments {
            mean: point.mean,
            std: point.std.unwrap_or(f64::NAN),
            n: point.n,
        }),
    };
    of_field.map(point).collect()
}

/// True if a point is on that side.
fn is_on(point: &Point<'_>, side: &Side, group: &Group) -> bool {
    let has = |name: &String, value: &String| {
        value_of(point.params, name).is_some_and(|own| is_same_value(own, value))
    };
    point.variant == side.variant.as_deref().unwrap_or(SCENARIO)
        && side.filter.iter().all(|(name, values)| {
            values
                .iter()
                .any(|v| has(name, v) || v == "*" && value_of(point.params, name).is_some())
        })
        && group.iter().all(|(name, value)| side.own.contains(name) || has(name, value))
}

fn is_named(side: &Side, parameter: &str) -> bool {
    side.filter.iter().any(|(name, _)| name == parameter)
}

/// The combinations of the values of these parameters among the points of a side, in their order.
pub(super) fn groups(points: &[Point<'_>], side: &Side, over: &[String]) -> Vec<Group> {
    let mut found: Vec<Group> = Vec::new();
    for point in points.iter().filter(|point| is_on(point, side, &Group::new())) {
        let value = |name: &String| Some((name.clone(), value_of(point.params, name)?.to_owned()));
        let group: Option<Group> = over.iter().map(value).collect();
        if let Some(group) = group
            && !found.contains(&group)
        {
            found.push(group);
        }
    }
    found
}

/// The values on a side at a group. A parameter that neither fixes must have one value only.
pub(super) fn pick(
    points: &[Point<'_>],
    side: &Side,
    group: &Group,
) -> Result<Vec<Values>, String> {
    let chosen: Vec<_> = points.iter().filter(|point| is_on(point, side, group)).collect();
    let Some(first) = chosen.first() else {
        return Err(format!("no runs with {}", show_side(side, group)));
    };
    for (name, value) in first.params {
        let is_fixed = is_named(side, name) || group.iter().any(|(own, _)| own == name);
        let differs = |point: &&&Point<'_>| value_of(point.params, name) != Some(value);
        if !is_fixed && let Some(other) = chosen.iter().find(differs) {
            let other = value_of(other.params, name).unwrap_or("none");
            return Err(format!(
                "`{name}` is left open ({value}, {other}, ...): fix it in `at` or name it in `over`"
            ));
        }
    }
    let values = chosen.iter().map(|point| point.values.clone()).collect();
    Ok(values)
}

fn show_side(side: &Side, group: &Group) -> String {
    let mut shown = vec![format!("variant = {}", side.variant.as_deref().unwrap_or(SCENARIO))];
    let filter =
        side.filter.iter().map(|(name, values)| format!("{name} = {}", values.join(" or ")));
    shown.extend(filter);
    let free = group.iter().filter(|(name, _)| !side.own.contains(name));
    shown.extend(free.map(|(name, value)| format!("{name} = {value}")));
    shown.join(", ")
}

/// All values together: what they say, and the mean of each seed.
pub(super) struct Pooled {
    pub summary: Summary,
    pub moments: Moments,
    /// Empty for the reference.
    pub by_seed: BTreeMap<u64, f64>,
    /// Every seed has a value at every point.
    is_balanced: bool,
}

impl Pooled {
    /// How many runs its interval comes from: of several points, the seeds.
    pub(super) fn runs(&self) -> usize {
        if self.by_seed.is_empty() { self.summary.n } else { self.by_seed.len() }
    }

    /// How far chance spreads the mean. Of several points with the same seeds it is the spread of
    /// the seeds' means: the points differ on purpose.
    pub(super) fn spread(&self) -> Option<Spread> {
        let seeds = self.of_seeds();
        let std = Some(seeds.std).filter(|std| std.is_finite())?;
        Spread::of_mean(std, seeds.n)
    }

    /// Mean and deviation of the seeds' means; of the reference and of unequal numbers of seeds
    /// those of all values.
    pub(super) fn of_seeds(&self) -> Moments {
        let seeds = self.by_seed.len();
        if seeds == 0 || seeds == self.summary.n || !self.is_balanced {
            return self.moments;
        }
        let means: Vec<_> = self.by_seed.values().copied().collect();
        Summary::of(&means).map_or(self.moments, moments)
    }

    /// The values of common seeds, if all are common.
    pub(super) fn pairs_with(&self, other: &Pooled) -> Option<Vec<(f64, f64)>> {
        let is_paired = !self.by_seed.is_empty() && self.by_seed.keys().eq(other.by_seed.keys());
        let values = self.by_seed.values().copied().zip(other.by_seed.values().copied());
        is_paired.then(|| values.collect())
    }
}

pub(super) fn pool(values: &[Values]) -> Result<Pooled, String> {
    let mut seeds: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    let mut all = Vec::new();
    for value in values {
        match value {
            Values::Runs(runs) => {
                for (seed, value) in runs {
                    seeds.entry(*seed).or_default().push(*value);
                    all.push(*value);
                }
            }
            // The means of several points count alike.
            Values::Reference(moments) => all.push(moments.mean),
        }
    }
    let mut summary = Summary::of(&all).ok_or("no run gives this field a value")?;
    let mut own = moments(summary);
    if let Some(of_reference) = moments_of_reference(values) {
        own = of_reference;
        summary.n = own.n;
        summary.std = Some(own.std).filter(|std| std.is_finite());
    }
    let mean = |values: Vec<f64>| values.iter().sum::<f64>() / values.len() as f64;
    let is_balanced = seeds.values().all(|own| own.len() == values.len());
    let by_seed = seeds.into_iter().map(|(seed, values)| (seed, mean(values))).collect();
    Ok(Pooled { summary, moments: own, by_seed, is_balanced })
}

fn moments(summary: Summary) -> Moments {
    Moments { mean: summary.mean, std: summary.std.unwrap_or(f64::NAN), n: summary.n }
}

/// The moments of a mean over points of the reference; nothing if one is of our runs. The distance
/// between the points does not count: its error comes from theirs.
fn moments_of_reference(values: &[Values]) -> Option<Moments> {
    let of = |value: &Values| match value {
        Values::Reference(moments) => Some(*moments),
        Values::Runs(_) => None,
    };
    let all: Vec<_> = values.iter().map(of).collect::<Option<_>>()?;
    let (count, n) = (all.len() as f64, all.iter().map(|m| m.n).min()?);
    let variance: f64 = all.iter().map(|m| m.std.powi(2) / m.n as f64).sum();
    let mean = all.iter().map(|m| m.mean).sum::<f64>() / count;
    Some(Moments { mean, std: variance.sqrt() / count * (n as f64).sqrt(), n })
}
