//! From claims and runs to verdicts.

use super::select::{
    Group, Point, Pooled, groups, pick, points_of, points_of_reference, pool, why_none,
};
use super::show::{number, signed_percent};
use super::{Bounds, Claim, Judgement, Measure, Quantity, Subject, Take, Verdict};
use crate::experiment::SCENARIO;
use crate::reference::Reference;
use crate::stats::{Ratio, paired_ratio, ratio};
use crate::table::Table;

/// What claims are judged by.
pub struct Evidence<'a> {
    /// The runs of the claim's own experiment.
    pub table: &'a Table,
    /// The runs of other experiments, by identifier, as far as there are any.
    pub other: &'a dyn Fn(&str) -> Option<&'a Table>,
    /// What the papers' simulator gives.
    pub reference: &'a Reference,
    /// The runs are few and thinned.
    pub quick: bool,
}

/// A number with half the width of its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Measured {
    value: f64,
    ci95: Option<f64>,
}

/// What a measure gives.
struct Outcome {
    holds: bool,
    value: Option<Measured>,
    text: String,
    /// What did not hold, where.
    misses: Option<String>,
}

/// The points of both sides of a subject.
struct Sides<'a> {
    at: Vec<Point<'a>>,
    to: Vec<Point<'a>>,
}

impl Claim {
    /// Judges the claim.
    pub fn judge(&self, evidence: &Evidence<'_>) -> Judgement {
        let subject = self.measure.subject();
        let outcome = match &self.measure {
            Measure::Equal { expected, .. } => judge_equal(subject, expected, evidence),
            measure => sides(subject, evidence).and_then(|sides| judge(measure, &sides)),
        };
        let is_explained = self.explanation.is_some();
        let (verdict, value, measured, reason) = match outcome {
            Ok(found) => {
                let verdict = match (found.holds, is_explained) {
                    (true, _) => Verdict::Holds,
                    (false, false) => Verdict::Fails,
                    (false, true) => Verdict::Explained,
                };
                (verdict, found.value, found.text, found.misses)
            }
            Err(why) => (Verdict::NotRun, None, String::new(), Some(why)),
        };
        Judgement {
            id: self.id.clone(),
            says: self.says.clone(),
            place: self.place.clone(),
            measure: self.measure.show(),
            expected: self.measure.show_expected(),
            measured,
            value: value.map(|m| m.value),
            ci95: value.and_then(|m| m.ci95),
            reference: self.judge_reference(evidence.reference),
            verdict,
            reason,
            explanation: self.explanation.clone(),
            quick: evidence.quick,
        }
    }

    /// The same measure of the reference; nothing if that lacks points.
    fn judge_reference(&self, reference: &Reference) -> Option<String> {
        let subject = self.measure.subject();
        if !self.experiments().is_empty() {
            return None;
        }
        let of = |side: &super::Side| side.variant.clone().unwrap_or_else(|| SCENARIO.to_owned());
        let (at, to) = (of(&subject.at), of(&subject.to));
        let sides = Sides {
            at: points_of_reference(reference, &subject.field, &at),
            to: points_of_reference(reference, &subject.field, &to),
        };
        judge(&self.measure, &sides).ok().map(|outcome| outcome.text)
    }
}

fn sides<'a>(subject: &Subject, evidence: &Evidence<'a>) -> Result<Sides<'a>, String> {
    let points = |side: &super::Side| match &side.experiment {
        None => points_of(evidence.table, &subject.field),
        Some(id) => {
            let table = (evidence.other)(id).ok_or_else(|| format!("needs the runs of `{id}`"))?;
            points_of(table, &subject.field)
        }
    };
    Ok(Sides { at: points(&subject.at)?, to: points(&subject.to)? })
}

fn judge(measure: &Measure, sides: &Sides<'_>) -> Result<Outcome, String> {
    let all_groups = |subject: &Subject, over: &[String]| {
        let found = groups(&sides.at, &subject.at, over);
        if found.is_empty() { Err(why_none(&sides.at, &subject.at, over)) } else { Ok(found) }
    };
    match measure {
        Measure::Value { subject, over, take, bounds } => {
            let found = all_groups(subject, over)?;
            let measured =
                found.iter().map(|group| Ok((group, measure_at(subject, sides, group)?)));
            let measured: Vec<_> = measured.collect::<Result<_, String>>()?;
            Ok(judge_value(subject, &measured, *take, bounds))
        }
        Measure::Order { subject, over, by, groups, tie, tolerance, share } => {
            let over: Vec<_> = over.iter().filter(|name| *name != by).cloned().collect();
            let found = all_groups(subject, &over)?;
            let at = |group: &Group| {
                let misses = order_misses(subject, sides, group, by, groups, *tie, *tolerance)?;
                Ok((group.clone(), misses))
            };
            let misses = found.iter().map(at).collect::<Result<Vec<_>, String>>()?;
            Ok(judge_share(&misses, *share))
        }
        Measure::Trend { subject, over, by, is_rising, tolerance, share } => {
            let over: Vec<_> = over.iter().filter(|name| *name != by).cloned().collect();
            let found = all_groups(subject, &over)?;
            let at = |group: &Group| {
                let misses = trend_misses(subject, sides, group, by, *is_rising, *tolerance)?;
                Ok((group.clone(), misses))
            };
            let misses = found.iter().map(at).collect::<Result<Vec<_>, String>>()?;
            Ok(judge_share(&misses, *share))
        }
        Measure::Equal { .. } => Err("the reference has no such values".to_owned()),
    }
}

/// The subject's quantity at a group.
fn measure_at(subject: &Subject, sides: &Sides<'_>, group: &Group) -> Result<Measured, String> {
    let at = pick(&sides.at, &subject.at, group)?;
    let a = pool(&at)?;
    let plain = |value| Ok(Measured { value, ci95: None });
    match subject.quantity {
        Quantity::Mean => {
            let is_one_point = matches!(at.as_slice(), [_]) || !a.by_seed.is_empty();
            let ci95 = a.summary.ci95().filter(|_| is_one_point);
            Ok(Measured { value: a.summary.mean, ci95 })
        }
        Quantity::Median => plain(a.summary.median),
        Quantity::Std => plain(a.summary.std.ok_or("one run has no deviation")?),
        Quantity::Min => plain(a.summary.min),
        Quantity::Max => plain(a.summary.max),
        Quantity::Change | Quantity::Ratio => {
            let b = pool(&pick(&sides.to, &subject.to, group)?)?;
            let found = compare(&a, &b).ok_or("the mean to compare with is 0")?;
            let less = if subject.quantity == Quantity::Change { 1.0 } else { 0.0 };
            Ok(Measured { value: found.ratio - less, ci95: found.ci95 })
        }
    }
}

/// Mean over mean: of the runs with common seeds if all are common, else of independent samples.
fn compare(a: &Pooled, b: &Pooled) -> Option<Ratio> {
    let is_paired = !a.by_seed.is_empty() && a.by_seed.keys().eq(b.by_seed.keys());
    if is_paired {
        let pairs: Vec<_> = a.by_seed.values().copied().zip(b.by_seed.values().copied()).collect();
        paired_ratio(&pairs)
    } else {
        let mut found = ratio(a.moments, b.moments)?;
        found.ci95 = found.ci95.filter(|ci| ci.is_finite());
        Some(found)
    }
}

fn judge_value(
    subject: &Subject,
    measured: &[(&Group, Measured)],
    take: Take,
    bounds: &Bounds,
) -> Outcome {
    let show = |m: Measured| subject.show_value(m.value, m.ci95);
    let by_value =
        |a: &&(&Group, Measured), b: &&(&Group, Measured)| a.1.value.total_cmp(&b.1.value);
    let (lowest, highest) = (measured.iter().min_by(by_value), measured.iter().max_by(by_value));
    let chosen = match (take, measured, lowest, highest) {
        (Take::All, [only], ..) => Some(*only),
        (Take::Min, _, Some(lowest), _) => Some(*lowest),
        (Take::Max, _, _, Some(highest)) => Some(*highest),
        _ => None,
    };
    if let Some((group, value)) = chosen {
        let place = show_group(group);
        let text =
            if measured.len() > 1 { format!("{} at {place}", show(value)) } else { show(value) };
        return Outcome { holds: bounds.hold(value.value), value: Some(value), text, misses: None };
    }
    let values = || measured.iter().map(|(_, m)| m.value);
    if take == Take::Mean {
        let mean = values().sum::<f64>() / measured.len() as f64;
        let text = format!("{} over {} points", subject.show_value(mean, None), measured.len());
        let value = Some(Measured { value: mean, ci95: None });
        return Outcome { holds: bounds.hold(mean), value, text, misses: None };
    }
    let misses = measured.iter().filter(|(_, m)| !bounds.hold(m.value));
    let misses: Vec<_> =
        misses.map(|(g, m)| format!("{} at {}", show(*m), show_group(g))).collect();
    let ends =
        [lowest, highest].into_iter().flatten().map(|(_, m)| subject.show_value(m.value, None));
    let text = format!("{} at {} points", ends.collect::<Vec<_>>().join(" to "), measured.len());
    let holds = misses.is_empty();
    Outcome { holds, value: None, text, misses: (!holds).then(|| misses.join("; ")) }
}

/// Where the order is broken at one group.
fn order_misses(
    subject: &Subject,
    sides: &Sides<'_>,
    group: &Group,
    by: &str,
    order: &[Vec<String>],
    tie: f64,
    tolerance: f64,
) -> Result<Vec<String>, String> {
    let mean = |value: &String| {
        let mut group = group.clone();
        group.push((by.to_owned(), value.clone()));
        Ok((value.clone(), measure_at(subject, sides, &group)?.value))
    };
    let ranks = order.iter().map(|rank| rank.iter().map(mean).collect::<Result<Vec<_>, String>>());
    let ranks = ranks.collect::<Result<Vec<_>, String>>()?;
    let mut misses = Vec::new();
    let pair = |a: &(String, f64), sign: &str, b: &(String, f64)| {
        format!("{} {} {sign} {} {}", a.0, number(a.1), b.0, number(b.1))
    };
    for rank in &ranks {
        let largest = rank.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        let smallest = rank.iter().min_by(|a, b| a.1.total_cmp(&b.1));
        if let (Some(a), Some(b)) = (largest, smallest)
            && a.1 > b.1 * (1.0 + tie)
        {
            misses.push(pair(a, "is above", b));
        }
    }
    for (above, below) in ranks.iter().zip(ranks.iter().skip(1)) {
        for (a, b) in above.iter().flat_map(|a| below.iter().map(move |b| (a, b))) {
            if a.1 < b.1 * (1.0 - tolerance) {
                misses.push(pair(a, "is below", b));
            }
        }
    }
    Ok(misses)
}

/// Where the trend is broken at one group.
fn trend_misses(
    subject: &Subject,
    sides: &Sides<'_>,
    group: &Group,
    by: &str,
    is_rising: bool,
    tolerance: f64,
) -> Result<Vec<String>, String> {
    let mut steps = Vec::new();
    for step in groups(&sides.at, &subject.at, &[by.to_owned()]) {
        let value = step.first().map(|(_, value)| value.clone()).unwrap_or_default();
        let all: Group = group.iter().cloned().chain(step).collect();
        steps.push((value, measure_at(subject, sides, &all)?.value));
    }
    if steps.len() < 2 {
        return Err(format!("a trend needs two values of `{by}` or more"));
    }
    // Of a change the tolerance is points; of a mean it is relative.
    let slack =
        |from: f64| if subject.quantity.is_of_two() { tolerance } else { tolerance * from.abs() };
    let breaks = steps.iter().zip(steps.iter().skip(1)).filter(|((_, from), (_, to))| {
        if is_rising { *to < from - slack(*from) } else { *to > from + slack(*from) }
    });
    let show = |value| subject.show_value(value, None);
    Ok(breaks
        .map(|((a, from), (b, to))| format!("{} at {a}, {} at {b}", show(*from), show(*to)))
        .collect())
}

fn judge_share(misses: &[(Group, Vec<String>)], share: f64) -> Outcome {
    let good = misses.iter().filter(|(_, misses)| misses.is_empty()).count();
    let bad = misses.iter().filter(|(_, misses)| !misses.is_empty());
    let bad: Vec<_> = bad.map(|(g, m)| format!("at {}: {}", show_group(g), m.join(", "))).collect();
    let holds = good as f64 >= share * misses.len() as f64 - 1e-9;
    let text = match misses.len() {
        1 if good == 1 => "as stated".to_owned(),
        1 => "not as stated".to_owned(),
        all => format!("as stated at {good} of {all} points"),
    };
    Outcome { holds, value: None, text, misses: (!bad.is_empty()).then(|| bad.join("; ")) }
}

fn judge_equal(
    subject: &Subject,
    expected: &str,
    evidence: &Evidence<'_>,
) -> Result<Outcome, String> {
    let table = match &subject.at.experiment {
        None => evidence.table,
        Some(id) => (evidence.other)(id).ok_or_else(|| format!("needs the runs of `{id}`"))?,
    };
    let column = table.column(&subject.field);
    let column = column.ok_or_else(|| format!("the runs have no field `{}`", subject.field))?;
    let variant = subject.at.variant.as_deref().unwrap_or(SCENARIO);
    let is_on =
        |row: &&crate::table::Row| *row.variant == *variant && subject.at.accepts(&row.params);
    let rows: Vec<_> = table.rows().iter().filter(is_on).collect();
    let same_json = |a: &str, b: &str| {
        let read = |text| serde_json::from_str::<serde_json::Value>(text).ok();
        a == b || read(a).zip(read(b)).is_some_and(|(a, b)| a == b)
    };
    let other = rows.iter().find(|row| !same_json(&table.cell(row, column).json(), expected));
    match (rows.len(), other) {
        (0, _) => Err("no such runs".to_owned()),
        (n, None) => {
            let text = format!("as stated in {n} runs");
            Ok(Outcome { holds: true, value: None, text, misses: None })
        }
        (_, Some(row)) => {
            let found = table.cell(row, column).json();
            let text = format!("{found} in seed {}", row.seed);
            Ok(Outcome { holds: false, value: None, text, misses: None })
        }
    }
}

fn show_group(group: &Group) -> String {
    let shown: Vec<_> = group.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    if shown.is_empty() { "the point".to_owned() } else { shown.join(", ") }
}

impl Subject {
    /// A value of this subject with its interval, as text.
    pub(super) fn show_value(&self, value: f64, ci95: Option<f64>) -> String {
        let (value, half) = match self.quantity {
            Quantity::Change => (signed_percent(value), ci95.map(|c| format!("{:.1}", c * 100.0))),
            _ => (number(value), ci95.map(number)),
        };
        half.map_or_else(|| value.clone(), |half| format!("{value} ± {half}"))
    }
}
