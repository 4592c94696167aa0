//! From claims and runs to verdicts.

use super::bounds::{Finding, beyond, within};
use super::measured::{Measured, Sides, less, measure_at, rise_at, step};
use super::select::{
    Group, Pooled, Variants, groups, in_role, pick, points_of, points_of_reference, pool, present,
    why_none,
};
use super::show::{number, signed, signed_percent};
use super::{
    Bounds, Claim, Judgement, Measure, Quantity, Second, SecondVerdict, Side, Subject, Take,
    UnderPlacebo, Verdict,
};
use crate::placebo::Placebo;
use crate::reference::Reference;
use crate::table::Table;
use crate::variant::SCENARIO;

/// The data that claims are judged by.
pub struct Evidence<'a> {
    /// The runs of the claim's own experiment.
    pub table: &'a Table,
    /// The runs of other experiments, by identifier, as far as there are any.
    pub other: &'a dyn Fn(&str) -> Option<&'a Table>,
    /// The results of the papers' simulator.
    pub reference: &'a Reference,
    /// The placebos of the claim's experiment.
    pub placebos: &'a [Placebo],
    /// The runs are few and thinned.
    pub quick: bool,
}

/// A placebo in the place of the scenario.
#[derive(Clone, Debug)]
struct StandIn {
    variant: String,
    /// How many times as many seeds the scenario has.
    scale: f64,
}

/// The result of a measure.
struct Outcome {
    finding: Finding,
    value: Option<Measured>,
    text: String,
    /// The expectation that failed, and where.
    misses: Option<String>,
}

impl Claim {
    /// Judges the claim, and whether it would hold with the mechanism off.
    pub fn judge(&self, evidence: &Evidence<'_>) -> Judgement {
        let outcome = self.measure.judge(evidence, None);
        let is_explained = self.explanation.is_some() || self.cause.is_some();
        let (verdict, value, measured, reason) = match outcome {
            Ok(found) => {
                let verdict = match (found.finding, is_explained) {
                    (Finding::Holds, _) => Verdict::Holds,
                    (Finding::Undecided, _) => Verdict::Undecided,
                    (Finding::Fails, false) => Verdict::Fails,
                    (Finding::Fails, true) => Verdict::Explained,
                };
                (verdict, found.value, found.text, found.misses)
            }
            Err(why) => (Verdict::NotRun, None, String::new(), Some(why)),
        };
        let (placebo, without) = self.judge_placebo(evidence).unzip();
        Judgement {
            id: self.id.clone(),
            says: self.says.clone(),
            place: self.place.clone(),
            measure: self.measure.show(),
            expected: self.measure.show_expected(),
            measured,
            value: value.map(|m| m.value),
            ci95: value.and_then(|m| m.ci95()),
            reference: self
                .judge_reference(evidence.reference, Variants::AsWritten)
                .map(|outcome| outcome.text),
            verdict,
            reason,
            cause: self.cause.clone(),
            explanation: self.explanation.clone(),
            mark: self.mark,
            simulator: self.second(),
            of: self.of,
            placebo: without.as_ref().map(|outcome| match outcome.finding {
                Finding::Holds => UnderPlacebo::Holds,
                Finding::Undecided => UnderPlacebo::Undecided,
                Finding::Fails => UnderPlacebo::Fails,
            }),
            placebo_says: placebo.map(|placebo| placebo.says.clone()),
            placebo_measured: without.map(|outcome| outcome.text),
            quick: evidence.quick,
        }
    }

    /// The placebo of this claim with what it gives; nothing without one, or without its runs.
    fn judge_placebo<'a>(&self, evidence: &Evidence<'a>) -> Option<(&'a Placebo, Outcome)> {
        let subject = self.measure.subject();
        let is_of_scenario = |side: &Side| side.variant.as_deref().is_none_or(|v| v == SCENARIO);
        if !is_of_scenario(&subject.at) && !is_of_scenario(&subject.to) {
            return None;
        }
        let placebo = self.placebo_among(evidence.placebos)?;
        let variant = placebo.variant();
        let tables = [&subject.at, &subject.to].map(|side| match &side.experiment {
            None => Some(evidence.table),
            Some(id) => (evidence.other)(id),
        });
        let table = tables.into_iter().flatten().find(|t| present(t, Some(&variant)).is_some())?;
        let seeds = |variant: &str| {
            let points = table.points().into_iter();
            let of = points.filter(|rows| rows.first().is_some_and(|row| *row.variant == *variant));
            of.map(<[_]>::len).max().unwrap_or(0)
        };
        let scale = seeds(SCENARIO) as f64 / seeds(&variant) as f64;
        let stand_in = StandIn { variant, scale };
        let outcome = self.measure.judge(evidence, Some(&stand_in)).ok()?;
        Some((placebo, outcome))
    }

    /// The placebo that it names, else the first.
    pub(crate) fn placebo_among<'p>(&self, placebos: &'p [Placebo]) -> Option<&'p Placebo> {
        match &self.placebo {
            Some(name) => placebos.iter().find(|placebo| placebo.id == *name),
            None => placebos.first(),
        }
    }

    /// Measures the claim in the reference's results; `None` if they lack points.
    fn judge_reference(&self, reference: &Reference, variants: Variants) -> Option<Outcome> {
        let subject = self.measure.subject();
        if !self.experiments().is_empty() {
            return None;
        }
        let of = |side: &Side| side.variant.clone().unwrap_or_else(|| SCENARIO.to_owned());
        let (at, to) = (of(&subject.at), of(&subject.to));
        if variants == Variants::Ignored && at != to {
            return None;
        }
        let sides = Sides {
            at: points_of_reference(reference, &subject.field, &at, variants),
            to: points_of_reference(reference, &subject.field, &to, variants),
            scale: 1.0,
        };
        judge(&self.measure, &sides).ok()
    }

    /// Measure of the paper's own simulator, judged by the claim's own rule.
    fn second(&self) -> Option<SecondVerdict> {
        let simulator = self.simulator.as_ref()?;
        let judged =
            simulator.data.as_ref().and_then(|data| self.judge_reference(data, Variants::Ignored));
        let judged = judged.map(|outcome| SecondVerdict {
            simulator: simulator.name().to_owned(),
            verdict: match outcome.finding {
                Finding::Holds => Second::Holds,
                Finding::Undecided => Second::Undecided,
                Finding::Fails => Second::Fails,
            },
            measured: Some(outcome.text),
            source: None,
        });
        simulator.second(judged)
    }
}

impl Measure {
    fn judge(
        &self,
        evidence: &Evidence<'_>,
        stand_in: Option<&StandIn>,
    ) -> Result<Outcome, String> {
        let subject = self.subject();
        match self {
            Measure::Equal { expected, .. } => judge_equal(subject, expected, evidence, stand_in),
            measure => sides(subject, evidence, stand_in).and_then(|sides| judge(measure, &sides)),
        }
    }
}

fn sides<'a>(
    subject: &Subject,
    evidence: &Evidence<'a>,
    stand_in: Option<&StandIn>,
) -> Result<Sides<'a>, String> {
    let name = stand_in.map(|s| s.variant.as_str());
    let points = |side: &Side| match &side.experiment {
        None => points_of(evidence.table, &subject.field, name),
        Some(id) => {
            let table = (evidence.other)(id).ok_or_else(|| format!("needs the runs of `{id}`"))?;
            points_of(table, &subject.field, name)
        }
    };
    let scale = stand_in.map_or(1.0, |s| s.scale);
    Ok(Sides { at: points(&subject.at)?, to: points(&subject.to)?, scale })
}

fn judge(measure: &Measure, sides: &Sides<'_>) -> Result<Outcome, String> {
    let all_groups = |subject: &Subject, over: &[String]| {
        let found = groups(&sides.at, &subject.at, over);
        if found.is_empty() { Err(why_none(&sides.at, &subject.at, over)) } else { Ok(found) }
    };
    let others = |over: &[String], by: &String| -> Vec<String> {
        over.iter().filter(|name| *name != by).cloned().collect()
    };
    match measure {
        Measure::Value { subject, over, take, bounds, rise_along } => {
            let over = rise_along.as_ref().map_or_else(|| over.clone(), |by| others(over, by));
            let found = all_groups(subject, &over)?;
            let measure = |group| match rise_along {
                Some(along) => rise_at(subject, sides, group, along),
                None => measure_at(subject, sides, group),
            };
            let measured = found.iter().map(|group| Ok((group, measure(group)?)));
            let measured: Vec<_> = measured.collect::<Result<_, String>>()?;
            Ok(judge_value(subject, &measured, *take, bounds))
        }
        Measure::Order { subject, over, by, share, .. } => {
            let found = all_groups(subject, &others(over, by))?;
            let at =
                |group: &Group| Ok((group.clone(), order_misses(measure, subject, sides, group)?));
            let misses = found.iter().map(at).collect::<Result<Vec<_>, String>>()?;
            Ok(judge_share(&misses, *share))
        }
        Measure::Trend { subject, over, by, is_rising, tolerance, share } => {
            let found = all_groups(subject, &others(over, by))?;
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

fn judge_value(
    subject: &Subject,
    measured: &[(&Group, Measured)],
    take: Take,
    bounds: &Bounds,
) -> Outcome {
    let show = |m: Measured| subject.show_value(m.value, m.ci95());
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
        let finding = bounds.find(&value);
        return Outcome { finding, value: Some(value), text, misses: None };
    }
    if take == Take::Mean {
        let mean = Measured::mean(&measured.iter().map(|(_, m)| *m).collect::<Vec<_>>());
        let text = format!("{} over {} points", show(mean), measured.len());
        return Outcome { finding: bounds.find(&mean), value: Some(mean), text, misses: None };
    }
    let findings: Vec<_> = measured.iter().map(|(g, m)| (bounds.find(m), g, m)).collect();
    let misses = findings.iter().filter(|(finding, ..)| *finding != Finding::Holds);
    let misses: Vec<_> =
        misses.map(|(_, g, m)| format!("{} at {}", show(**m), show_group(g))).collect();
    let ends =
        [lowest, highest].into_iter().flatten().map(|(_, m)| subject.show_value(m.value, None));
    let text = format!("{} at {} points", ends.collect::<Vec<_>>().join(" to "), measured.len());
    let finding = findings.iter().map(|(finding, ..)| *finding).max().unwrap_or(Finding::Holds);
    let misses = (finding != Finding::Holds).then(|| misses.join("; "));
    Outcome { finding, value: None, text, misses }
}

/// Deviations from the statement at one group.
struct Misses {
    /// Values that are on the wrong side.
    broken: Vec<String>,
    /// Values that chance may have put on the side where they are.
    unsure: Vec<String>,
}

impl Misses {
    fn finding(&self) -> Finding {
        match (self.broken.is_empty(), self.unsure.is_empty()) {
            (true, true) => Finding::Holds,
            (true, false) => Finding::Undecided,
            (false, _) => Finding::Fails,
        }
    }
}

/// Where the order is broken at one group.
fn order_misses(
    measure: &Measure,
    subject: &Subject,
    sides: &Sides<'_>,
    group: &Group,
) -> Result<Misses, String> {
    let Measure::Order { by, groups, tie, tolerance, distinct, .. } = measure else {
        return Err("no order".to_owned());
    };
    let runs = |value: &String| {
        let mut group = group.clone();
        group.push((by.to_owned(), value.clone()));
        Ok((value.clone(), pool(&pick(&sides.at, &subject.at, &group)?)?))
    };
    let ranks = groups.iter().map(|rank| rank.iter().map(runs).collect::<Result<Vec<_>, String>>());
    let ranks = ranks.collect::<Result<Vec<_>, String>>()?;
    let mut misses = Misses { broken: Vec::new(), unsure: Vec::new() };
    let mean = |(_, runs): &(String, Pooled)| runs.summary.mean;
    let pair = |a: &(String, Pooled), sign: &str, b: &(String, Pooled)| {
        format!("{} {} {sign} {} {}", a.0, number(mean(a)), b.0, number(mean(b)))
    };
    for rank in &ranks {
        let largest = rank.iter().max_by(|a, b| mean(a).total_cmp(&mean(b)));
        let smallest = rank.iter().min_by(|a, b| mean(a).total_cmp(&mean(b)));
        if let (Some(a), Some(b), 2..) = (largest, smallest, rank.len()) {
            let apart = less(&a.1, &b.1, 1.0 + tie, sides)?;
            match within(&apart, f64::NEG_INFINITY, 0.0) {
                Finding::Holds => {}
                Finding::Undecided => misses.unsure.push(pair(a, "may be above", b)),
                Finding::Fails => misses.broken.push(pair(a, "is above", b)),
            }
        }
    }
    for (above, below) in ranks.iter().zip(ranks.iter().skip(1)) {
        for (a, b) in above.iter().flat_map(|a| below.iter().map(move |b| (a, b))) {
            let factor = if *distinct { 1.0 } else { 1.0 - tolerance };
            let apart = less(&a.1, &b.1, factor, sides)?;
            let finding = if *distinct {
                beyond(apart.value, 0.0, &apart)
            } else {
                within(&apart, 0.0, f64::INFINITY)
            };
            match finding {
                Finding::Holds => {}
                Finding::Undecided if mean(a) >= mean(b) => {
                    misses.unsure.push(pair(a, "is hardly above", b));
                }
                Finding::Undecided => misses.unsure.push(pair(a, "may be below", b)),
                Finding::Fails if *distinct => misses.broken.push(pair(a, "is not above", b)),
                Finding::Fails => misses.broken.push(pair(a, "is below", b)),
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
) -> Result<Misses, String> {
    let mut steps = Vec::new();
    for along in groups(&sides.at, &subject.at, &[by.to_owned()]) {
        let at = along.first().map(|(_, value)| value.clone()).unwrap_or_default();
        let all: Group = group.iter().cloned().chain(along).collect();
        let value = measure_at(subject, sides, &all)?.value;
        steps.push(Step { at, group: all, value });
    }
    if steps.len() < 2 {
        return Err(format!("a trend needs two values of `{by}` or more"));
    }
    // Of a change the tolerance is points; of a mean it is relative.
    let is_in_points = subject.quantity.is_in_points();
    let mut misses = Misses { broken: Vec::new(), unsure: Vec::new() };
    for (from, to) in steps.iter().zip(steps.iter().skip(1)) {
        let room = if is_in_points { tolerance } else { tolerance * from.value.abs() };
        let taken = step(subject, sides, &from.group, &to.group)?;
        let (low, high) =
            if is_rising { (-room, f64::INFINITY) } else { (f64::NEG_INFINITY, room) };
        let show = |step: &Step| format!("{} at {}", subject.show_value(step.value, None), step.at);
        let shown = format!("{}, {}", show(from), show(to));
        match within(&taken, low, high) {
            Finding::Holds => {}
            Finding::Undecided => misses.unsure.push(shown),
            Finding::Fails => misses.broken.push(shown),
        }
    }
    Ok(misses)
}

/// A value along a trend.
struct Step {
    at: String,
    group: Group,
    value: f64,
}

fn judge_share(misses: &[(Group, Misses)], share: f64) -> Outcome {
    let count = |finding| misses.iter().filter(|(_, m)| m.finding() == finding).count();
    let (good, unsure) = (count(Finding::Holds), count(Finding::Undecided));
    let is_enough = |points: usize| points as f64 >= share * misses.len() as f64 - 1e-9;
    let finding = match (is_enough(good), is_enough(good + unsure)) {
        (true, _) => Finding::Holds,
        (false, true) => Finding::Undecided,
        (false, false) => Finding::Fails,
    };
    let bad = misses.iter().filter(|(_, m)| m.finding() != Finding::Holds);
    let bad: Vec<_> = bad
        .map(|(group, m)| {
            let what: Vec<_> = m.broken.iter().chain(&m.unsure).map(String::as_str).collect();
            format!("at {}: {}", show_group(group), what.join(", "))
        })
        .collect();
    let text = match (misses.len(), finding) {
        (1, Finding::Holds) => "as stated".to_owned(),
        (1, Finding::Undecided) => "within chance".to_owned(),
        (1, Finding::Fails) => "not as stated".to_owned(),
        (all, _) => format!("as stated at {good} of {all} points"),
    };
    Outcome { finding, value: None, text, misses: (!bad.is_empty()).then(|| bad.join("; ")) }
}

fn judge_equal(
    subject: &Subject,
    expected: &str,
    evidence: &Evidence<'_>,
    stand_in: Option<&StandIn>,
) -> Result<Outcome, String> {
    let table = match &subject.at.experiment {
        None => evidence.table,
        Some(id) => (evidence.other)(id).ok_or_else(|| format!("needs the runs of `{id}`"))?,
    };
    let column = table.column(&subject.field);
    let column = column.ok_or_else(|| format!("the runs have no field `{}`", subject.field))?;
    let variant = subject.at.variant.as_deref().unwrap_or(SCENARIO);
    let stand_in = present(table, stand_in.map(|s| s.variant.as_str()));
    let is_on = |row: &&crate::table::Row| {
        in_role(&row.variant, stand_in) == Some(variant) && subject.at.accepts(&row.params)
    };
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
            Ok(Outcome { finding: Finding::Holds, value: None, text, misses: None })
        }
        (_, Some(row)) => {
            let found = table.cell(row, column).json();
            let text = format!("{found} in seed {}", row.seed);
            Ok(Outcome { finding: Finding::Fails, value: None, text, misses: None })
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
        // What is left of rounding is no interval.
        let ci95 = ci95.map(|half| if half < 1e-9 * value.abs() { 0.0 } else { half });
        let (value, half) = match self.quantity {
            Quantity::Difference => (signed(value), ci95.map(number)),
            Quantity::Change => (signed_percent(value), ci95.map(|c| format!("{:.1}", c * 100.0))),
            _ => (number(value), ci95.map(number)),
        };
        half.map_or_else(|| value.clone(), |half| format!("{value} ± {half}"))
    }
}
