//! Claims as they are written in `claims.toml`.

use indexmap::IndexMap;
use serde::Deserialize;

use super::{
    Author, Bounds, Cause, Claim, Mark, Measure, PaperChance, PaperInterval, PaperRuns, Quantity,
    Side, SimulatorEntry, Subject, Take, Tolerance,
};

/// A `[[claim]]` table as it is written; `docs/laboratory.md` describes the keys.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimEntry {
    id: String,
    says: String,
    #[serde(rename = "where")]
    place: String,
    cause: Option<String>,
    explanation: Option<String>,
    mark: Option<Mark>,
    simulator: Option<SimulatorEntry>,
    #[serde(default)]
    of: Author,
    placebo: Option<String>,
    measure: String,
    field: String,
    #[serde(default)]
    at: IndexMap<String, OneOrMany>,
    to: Option<IndexMap<String, OneOrMany>>,
    over: Option<Vec<String>>,
    take: Option<String>,
    expect: Option<toml::Value>,
    tolerance: Option<Number>,
    #[serde(default)]
    independent: bool,
    at_least: Option<Number>,
    at_most: Option<Number>,
    above: Option<Number>,
    below: Option<Number>,
    compare: Option<String>,
    #[serde(default)]
    distinct: bool,
    by: Option<String>,
    largest_first: Option<Vec<OneOrMany>>,
    smallest_first: Option<Vec<OneOrMany>>,
    tie: Option<Number>,
    share: Option<Number>,
    direction: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(crate) fn values(self) -> Vec<String> {
        match self {
            OneOrMany::One(value) => vec![value],
            OneOrMany::Many(values) => values,
        }
    }
}

/// A number, or a percentage as text: `"+108 %"`.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Number {
    Whole(i64),
    Plain(f64),
    Text(String),
}

impl Number {
    /// The value, and whether it was a percentage.
    fn read(&self) -> Result<(f64, bool), String> {
        match self {
            Number::Whole(value) => Ok((*value as f64, false)),
            Number::Plain(value) if value.is_finite() => Ok((*value, false)),
            Number::Plain(value) => Err(format!("{value} is not a number to compare with")),
            Number::Text(text) => {
                let percent = text.trim().strip_suffix('%').map(str::trim);
                let percent = percent.and_then(|p| p.replace('−', "-").parse::<f64>().ok());
                let percent = percent.filter(|p| p.is_finite());
                percent.map(|p| (p / 100.0, true)).ok_or_else(|| {
                    format!("`{text}` is neither a number nor a percentage such as \"5 %\"")
                })
            }
        }
    }

    fn value(&self) -> Result<f64, String> {
        self.read().map(|(value, _)| value)
    }

    fn share(number: &Option<Number>, default: f64) -> Result<f64, String> {
        let value = number.as_ref().map_or(Ok(default), Number::value)?;
        let is_share = (0.0..=1.0).contains(&value);
        is_share.then_some(value).ok_or_else(|| format!("{value} is not between 0 % and 100 %"))
    }
}

impl Claim {
    /// Checks what was written; its cause must be one of these. It has no simulator yet.
    ///
    /// # Errors
    ///
    /// What is wrong.
    pub fn new(entry: ClaimEntry, causes: &[Cause]) -> Result<Claim, String> {
        let bad = |what: String| format!("claim `{}`: {what}", entry.id);
        let cause = entry.cause.as_ref().map(|name| {
            let found = causes.iter().find(|cause| cause.id == *name);
            found.cloned().ok_or_else(|| bad(format!("no [[cause]] has the id `{name}`")))
        });
        let measure = entry.measure().map_err(bad)?;
        entry.check_keys(&measure).map_err(bad)?;
        Ok(Claim {
            id: entry.id,
            says: entry.says,
            place: entry.place,
            cause: cause.transpose()?,
            explanation: entry.explanation,
            mark: entry.mark,
            simulator: None,
            of: entry.of,
            placebo: entry.placebo,
            measure,
        })
    }
}

impl ClaimEntry {
    /// Table about the paper's own simulator.
    pub(crate) fn simulator(&self) -> Option<SimulatorEntry> {
        self.simulator.clone()
    }

    fn measure(&self) -> Result<Measure, String> {
        let over = self.over.clone().unwrap_or_default();
        let one = |quantity| self.subject(quantity);
        let compared = || match (self.to.is_some(), self.compare.as_deref()) {
            (false, None) => Ok(Quantity::Mean),
            (true, None | Some("change")) => Ok(Quantity::Change),
            (true, Some("difference")) => Ok(Quantity::Difference),
            (false, Some(_)) => Err("`compare` goes with `to`".to_owned()),
            (true, Some(other)) => {
                Err(format!("`compare = \"{other}\"`: say change or difference"))
            }
        };
        match self.measure.as_str() {
            "mean" => self.value(one(Quantity::Mean)?),
            "median" => self.value(one(Quantity::Median)?),
            "std" => self.value(one(Quantity::Std)?),
            "min" => self.value(one(Quantity::Min)?),
            "max" => self.value(one(Quantity::Max)?),
            "change" => self.value(one(Quantity::Change)?),
            "ratio" => self.value(one(Quantity::Ratio)?),
            "difference" => self.value(one(Quantity::Difference)?),
            "rise" => self.value(one(compared()?)?),
            "order" => Ok(Measure::Order {
                subject: one(Quantity::Mean)?,
                over,
                by: self.by.clone().ok_or("an order needs `by`: the parameter to order by")?,
                groups: self.groups()?,
                tie: Number::share(&self.tie, 0.05)?,
                tolerance: Number::share(&self.tolerance, 0.0)?,
                distinct: self.distinct,
                share: Number::share(&self.share, 1.0)?,
            }),
            "trend" => Ok(Measure::Trend {
                subject: one(compared()?)?,
                over,
                by: self.by.clone().ok_or("a trend needs `by`: the parameter along which")?,
                is_rising: match self.direction.as_deref() {
                    Some("rising") => true,
                    Some("falling") => false,
                    _ => return Err("a trend needs `direction`: rising or falling".to_owned()),
                },
                tolerance: Number::share(&self.tolerance, 0.0)?,
                share: Number::share(&self.share, 1.0)?,
            }),
            "equal" => {
                let expected = self.expect.clone().ok_or("`equal` needs `expect`")?;
                let expected = serde_json::to_string(&expected).map_err(|e| e.to_string())?;
                Ok(Measure::Equal { subject: one(Quantity::Mean)?, expected })
            }
            other => Err(format!(
                "`measure = \"{other}\"`: say mean, median, std, min, max, change, ratio, \
                 difference, rise, order, trend or equal"
            )),
        }
    }

    fn value(&self, subject: Subject) -> Result<Measure, String> {
        let bounds = self.bounds(&subject.quantity)?;
        let is_rise = self.measure == "rise";
        let rise_along = if is_rise { self.by.clone() } else { None };
        if is_rise && rise_along.is_none() {
            return Err("a rise needs `by`: the parameter along which".to_owned());
        }
        let take = match self.take.as_deref() {
            None | Some("all") => Take::All,
            Some("max") => Take::Max,
            Some("min") => Take::Min,
            Some("mean") => Take::Mean,
            Some(other) => {
                return Err(format!("`take = \"{other}\"`: say all, max, min or mean"));
            }
        };
        if self.take.is_some() && self.over.is_none() {
            return Err("`take` goes with `over`: the parameters whose values it takes from".into());
        }
        let over = self.over.clone().unwrap_or_default();
        Ok(Measure::Value { subject, over, take, bounds, rise_along })
    }

    fn subject(&self, quantity: Quantity) -> Result<Subject, String> {
        if quantity.is_of_two() != self.to.is_some() {
            let needs = "`change`, `ratio` and `difference` compare `at` with `to`; a trend or rise may, \
                         other measures have no `to`";
            return Err(needs.to_owned());
        }
        let at = side(&self.at)?;
        // What `to` does not say is as in `at`.
        let mut to = at.clone();
        let other = self.to.as_ref().map_or(Ok(Side::default()), side)?;
        to.experiment = other.experiment.or(to.experiment);
        to.variant = other.variant.or(to.variant);
        for (name, values) in other.filter {
            to.filter.retain(|(own, _)| *own != name);
            to.own.push(name.clone());
            to.filter.push((name, values));
        }
        Ok(Subject { quantity, field: self.field.clone(), at, to })
    }

    fn bounds(&self, quantity: &Quantity) -> Result<Bounds, String> {
        let has_limit = self.at_least.is_some() || self.at_most.is_some();
        let mut limits_of = None;
        let expect = match (&self.expect, &self.tolerance) {
            (None, None) => None,
            (None, Some(tolerance)) if has_limit => {
                let tolerance = tolerance_of(tolerance, 0.0, quantity, self.independent)?;
                let Tolerance::Chance(PaperChance::Runs(runs)) = tolerance else {
                    let needs = "the tolerance of `at_least` and `at_most` is the number of runs of the means \
                                 that the paper read them off, as \"30 runs\"";
                    return Err(needs.to_owned());
                };
                limits_of = Some(runs);
                None
            }
            (Some(value), Some(tolerance)) => {
                let number = match value {
                    toml::Value::Integer(value) => Number::Whole(*value),
                    toml::Value::Float(value) => Number::Plain(*value),
                    other => Number::Text(other.as_str().unwrap_or_default().to_owned()),
                };
                let expect = number.value()?;
                let tolerance = tolerance_of(tolerance, expect, quantity, self.independent)?;
                Some((expect, tolerance))
            }
            _ => return Err("`expect` and `tolerance` go together".to_owned()),
        };
        let in_runs = |(_, tolerance)| matches!(tolerance, Tolerance::Chance(PaperChance::Runs(_)));
        let in_runs = expect.is_some_and(in_runs) || limits_of.is_some();
        if self.independent && !(in_runs && quantity.is_of_two()) {
            let needs =
                "`independent` goes with a tolerance in runs of a change, ratio or difference";
            return Err(needs.to_owned());
        }
        let read = |number: &Option<Number>| number.as_ref().map(Number::value).transpose();
        let bounds = Bounds {
            expect,
            at_least: read(&self.at_least)?,
            at_most: read(&self.at_most)?,
            limits_of,
            above: read(&self.above)?,
            below: read(&self.below)?,
        };
        if bounds == Bounds::default() {
            let needs = "nothing is expected: give `expect` and `tolerance`, `at_least`, `at_most`, \
                         `above` or `below`";
            return Err(needs.to_owned());
        }
        bounds.check(quantity)?;
        Ok(bounds)
    }

    fn groups(&self) -> Result<Vec<Vec<String>>, String> {
        let read = |groups: &[OneOrMany]| groups.iter().cloned().map(OneOrMany::values).collect();
        let groups: Vec<Vec<String>> = match (&self.largest_first, &self.smallest_first) {
            (Some(groups), None) => read(groups),
            (None, Some(groups)) => {
                let mut groups: Vec<Vec<String>> = read(groups);
                groups.reverse();
                groups
            }
            _ => return Err("an order needs `largest_first` or `smallest_first`".to_owned()),
        };
        match groups.iter().flatten().count() {
            0 | 1 => Err("an order needs two values or more".to_owned()),
            _ => Ok(groups),
        }
    }

    /// Refuses keys that this measure does not read.
    fn check_keys(&self, measure: &Measure) -> Result<(), String> {
        let (is_value, is_order, is_trend) = match measure {
            Measure::Value { .. } => (true, false, false),
            Measure::Order { .. } => (false, true, false),
            Measure::Trend { .. } => (false, false, true),
            Measure::Equal { .. } => (false, false, false),
        };
        let is_equal = !(is_value || is_order || is_trend);
        let is_rise = self.measure == "rise";
        let keys = [
            ("over", self.over.is_some(), !is_equal),
            ("take", self.take.is_some(), is_value),
            ("expect", self.expect.is_some(), is_value || is_equal),
            ("tolerance", self.tolerance.is_some(), !is_equal),
            ("independent", self.independent, is_value),
            ("at_least", self.at_least.is_some(), is_value),
            ("at_most", self.at_most.is_some(), is_value),
            ("above", self.above.is_some(), is_value),
            ("below", self.below.is_some(), is_value),
            ("by", self.by.is_some(), is_order || is_trend || is_rise),
            ("compare", self.compare.is_some(), is_trend || is_rise),
            ("distinct", self.distinct, is_order),
            ("largest_first", self.largest_first.is_some(), is_order),
            ("smallest_first", self.smallest_first.is_some(), is_order),
            ("tie", self.tie.is_some(), is_order),
            ("share", self.share.is_some(), is_order || is_trend),
            ("direction", self.direction.is_some(), is_trend),
        ];
        match keys.iter().find(|(_, is_there, is_read)| *is_there && !is_read) {
            Some((key, ..)) => Err(format!("`{}` does not read `{key}`", self.measure)),
            None => Ok(()),
        }
    }
}

/// A tolerance as it is written: a number, a percentage, a number of runs or the paper's interval.
fn tolerance_of(
    written: &Number,
    expect: f64,
    quantity: &Quantity,
    independent: bool,
) -> Result<Tolerance, String> {
    if let Number::Text(text) = written
        && let Some(runs) = text.trim().strip_suffix("runs")
    {
        let runs = runs.trim().parse::<u32>().ok().filter(|runs| *runs > 0);
        let wrong =
            || format!("`{text}`: write how many runs the paper's mean has, as \"30 runs\"");
        let count = f64::from(runs.ok_or_else(wrong)?);
        return Ok(Tolerance::Chance(PaperChance::Runs(PaperRuns { count, independent })));
    }
    if let Number::Text(text) = written
        && let Some((half, level)) = text.split_once(" at ")
    {
        let half = half.trim().parse().ok().filter(|half| *half > 0.0 && f64::is_finite(*half));
        let level = Number::Text(level.to_owned()).read().ok();
        let level =
            level.filter(|(level, is_percentage)| *is_percentage && (0.5..1.0).contains(level));
        let wrong = || {
            format!(
                "`{text}`: write half the width and the level of the paper's interval, as \"1.7 at 90 %\""
            )
        };
        let (half, (confidence, _)) = half.zip(level).ok_or_else(wrong)?;
        return Ok(Tolerance::Chance(PaperChance::Interval(PaperInterval { half, confidence })));
    }
    let (width, is_percentage) = written.read()?;
    if width < 0.0 {
        return Err("a tolerance below 0".to_owned());
    }
    // Of a change or ratio these are points: +100 % within 20 % is 80 % to 120 %.
    let is_relative = is_percentage && !quantity.is_in_points();
    Ok(Tolerance::Of(width * if is_relative { expect.abs() } else { 1.0 }))
}

fn side(filter: &IndexMap<String, OneOrMany>) -> Result<Side, String> {
    let mut side = Side::default();
    for (name, values) in filter {
        let values = values.clone().values();
        match (name.as_str(), values.as_slice()) {
            ("experiment", [id]) => side.experiment = Some(id.clone()),
            ("variant", [variant]) => side.variant = Some(variant.clone()),
            ("experiment" | "variant", _) => return Err(format!("`{name}` takes one value")),
            _ => side.filter.push((name.clone(), values)),
        }
    }
    Ok(side)
}
