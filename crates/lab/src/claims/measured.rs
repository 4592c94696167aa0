//! Numbers with their confidence intervals.

use super::select::{Group, Point, Pooled, groups, pick, pool};
use super::{Quantity, Subject};
use crate::stats::{Summary, difference, paired_difference, paired_ratio, ratio};

/// The points of both sides of a subject.
pub(super) struct Sides<'a> {
    pub(super) at: Vec<Point<'a>>,
    pub(super) to: Vec<Point<'a>>,
    /// The factor by which intervals assume more runs.
    pub(super) scale: f64,
}

/// A number with half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub value: f64,
    pub ci95: Option<f64>,
    /// How many runs it comes from: of two sides, the fewer.
    pub runs: usize,
    /// By how much more runs than these the interval is judged.
    pub scale: f64,
}

impl Measured {
    fn new(value: f64, ci95: Option<f64>, runs: usize, sides: &Sides<'_>) -> Measured {
        Measured { value, ci95, runs, scale: sides.scale }
    }

    /// The mean of several numbers. Their runs have seeds in common, so that their deviations may
    /// all have one direction: its interval is the mean of theirs.
    pub(super) fn mean(all: impl Iterator<Item = Measured> + Clone) -> Measured {
        let count = all.clone().count() as f64;
        let halves = all.clone().map(|m| m.ci95);
        Measured {
            value: all.clone().map(|m| m.value).sum::<f64>() / count,
            ci95: halves.sum::<Option<f64>>().map(|sum| sum / count),
            runs: all.clone().map(|m| m.runs).min().unwrap_or(0),
            scale: all.map(|m| m.scale).next().unwrap_or(1.0),
        }
    }

    /// Half the width of the interval that bounds are judged by. Runs without spread have one of 0.
    pub(super) fn half_width(&self) -> Option<f64> {
        let half = self.ci95.or((self.runs >= 2).then_some(0.0))?;
        Some(half / self.scale.sqrt())
    }

    /// The same with this many runs.
    pub(super) fn half_width_of(&self, runs: f64) -> Option<f64> {
        let half = self.ci95.or((self.runs >= 2).then_some(0.0))?;
        Some(half * (self.runs as f64 / runs).sqrt())
    }
}

/// The subject's quantity at a group.
pub(super) fn measure_at(
    subject: &Subject,
    sides: &Sides<'_>,
    group: &Group,
) -> Result<Measured, String> {
    let a = pool(&pick(&sides.at, &subject.at, group)?)?;
    let plain = |value| Ok(Measured::new(value, None, a.summary.n, sides));
    match subject.quantity {
        Quantity::Mean => Ok(Measured::new(a.summary.mean, a.ci95(), a.runs(), sides)),
        Quantity::Median => plain(a.summary.median),
        Quantity::Std => plain(a.summary.std.ok_or("one run has no deviation")?),
        Quantity::Min => plain(a.summary.min),
        Quantity::Max => plain(a.summary.max),
        Quantity::Change | Quantity::Ratio | Quantity::Difference => {
            let b = pool(&pick(&sides.to, &subject.to, group)?)?;
            compare(&subject.quantity, &a, &b, sides)
        }
    }
}

/// One mean against the other: of the runs with common seeds if all are common, else of independent
/// samples.
pub(super) fn compare(
    quantity: &Quantity,
    a: &Pooled,
    b: &Pooled,
    sides: &Sides<'_>,
) -> Result<Measured, String> {
    let runs = a.runs().min(b.runs());
    let pairs = a.pairs_with(b);
    // Several points of the reference: how far they lie apart says nothing about their mean.
    let known = |ci: &f64| ci.is_finite() && a.has_interval() && b.has_interval();
    if *quantity == Quantity::Difference {
        let found = pairs.map_or(Some(difference(a.moments, b.moments)), |p| paired_difference(&p));
        let (value, ci95) = found.ok_or("no runs to compare")?;
        return Ok(Measured::new(value, ci95.filter(known), runs, sides));
    }
    let found = pairs.map_or_else(|| ratio(a.moments, b.moments), |p| paired_ratio(&p));
    let found = found.ok_or("the mean to compare with is 0")?;
    let less = if *quantity == Quantity::Change { 1.0 } else { 0.0 };
    Ok(Measured::new(found.ratio - less, found.ci95.filter(known), runs, sides))
}

/// The subject's quantity at the last value of a parameter less that at its first.
pub(super) fn rise_at(
    subject: &Subject,
    sides: &Sides<'_>,
    group: &Group,
    along: &str,
) -> Result<Measured, String> {
    let steps = groups(&sides.at, &subject.at, &[along.to_owned()]);
    let (Some(first), Some(last)) = (steps.first(), steps.last().filter(|_| steps.len() > 1))
    else {
        return Err(format!("a rise needs two values of `{along}` or more"));
    };
    let end = |step: &Group| -> Group { group.iter().chain(step).cloned().collect() };
    let (first, last) = (end(first), end(last));
    let (from, to) = (measure_at(subject, sides, &first)?, measure_at(subject, sides, &last)?);
    let runs = from.runs.min(to.runs);
    let value = to.value - from.value;
    // Runs of one seed have something in common at both ends, unless the quantity is relative.
    if !subject.quantity.is_in_points()
        && let Some(pairs) = seeds_at(subject, sides, &last)?
            .zip(seeds_at(subject, sides, &first)?)
            .and_then(|(last, first)| pairs(&last, &first))
    {
        let rises: Vec<_> = pairs.iter().map(|(a, b)| a - b).collect();
        let ci95 = Summary::of(&rises).and_then(|summary| summary.ci95());
        return Ok(Measured::new(value, ci95, runs, sides));
    }
    let ci95 = from.ci95.zip(to.ci95).map(|(a, b)| a.hypot(b));
    Ok(Measured::new(value, ci95, runs, sides))
}

type BySeed = Vec<(u64, f64)>;

/// The mean, or the difference, of each seed at a group; nothing if the sides have other seeds.
fn seeds_at(subject: &Subject, sides: &Sides<'_>, group: &Group) -> Result<Option<BySeed>, String> {
    let a = pool(&pick(&sides.at, &subject.at, group)?)?;
    if subject.quantity != Quantity::Difference {
        return Ok(Some(a.by_seed.into_iter().collect()));
    }
    let b = pool(&pick(&sides.to, &subject.to, group)?)?;
    let differences = a.pairs_with(&b).map(|pairs| {
        let seeds = a.by_seed.keys().copied();
        seeds.zip(pairs.into_iter().map(|(a, b)| a - b)).collect()
    });
    Ok(differences)
}

fn pairs(a: &BySeed, b: &BySeed) -> Option<Vec<(f64, f64)>> {
    let is_paired = !a.is_empty() && a.iter().map(|(s, _)| s).eq(b.iter().map(|(s, _)| s));
    is_paired.then(|| a.iter().map(|(_, v)| *v).zip(b.iter().map(|(_, v)| *v)).collect())
}
