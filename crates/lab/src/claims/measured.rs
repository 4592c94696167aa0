//! Numbers with their confidence intervals.

use super::select::{Group, Point, Pooled, groups, pick, pool};
use super::{Quantity, Subject};
use crate::stats::{
    Estimate, Moments, Spread, Summary, difference, paired_difference, paired_ratio, ratio,
};

/// The points of both sides of a subject.
pub(super) struct Sides<'a> {
    pub(super) at: Vec<Point<'a>>,
    pub(super) to: Vec<Point<'a>>,
    /// The factor by which intervals assume more runs.
    pub(super) scale: f64,
}

/// A number, and how far chance spreads it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    pub value: f64,
    /// How far chance spreads it with the runs that there are.
    spread: Option<Spread>,
    /// Standard deviation of the number from one run of each side, if the runs of the two sides had
    /// nothing in common.
    apart: Option<f64>,
    /// How many runs it comes from: of two sides, the fewer.
    pub runs: usize,
    /// By how much more runs than these the interval is judged.
    scale: f64,
}

impl Measured {
    fn new(estimate: Estimate, runs: usize, sides: &Sides<'_>) -> Measured {
        let Estimate { value, spread } = estimate;
        Measured { value, spread, apart: None, runs, scale: sides.scale }
    }

    /// The mean of several numbers. Their runs have seeds in common, so that their deviations may
    /// all have one direction: its error is the mean of theirs.
    pub(super) fn mean(all: &[Measured]) -> Measured {
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / all.len() as f64;
        let spreads: Option<Vec<_>> = all.iter().map(|m| m.spread).collect();
        let spread = spreads.map(|spreads| Spread {
            error: mean(&mut spreads.iter().map(|s| s.error)),
            freedom: spreads.iter().map(|s| s.freedom).fold(f64::INFINITY, f64::min),
        });
        Measured {
            value: mean(&mut all.iter().map(|m| m.value)),
            spread,
            apart: None,
            runs: all.iter().map(|m| m.runs).min().unwrap_or(0),
            scale: all.first().map_or(1.0, |m| m.scale),
        }
    }

    /// Half the width of its 95 % confidence interval, as it is shown.
    pub(super) fn ci95(&self) -> Option<f64> {
        self.spread.map(Spread::ci95)
    }

    /// The spread that bounds are judged by. Runs that do not differ have none.
    fn judged(&self) -> Spread {
        let none = Spread { error: 0.0, freedom: 1.0 };
        self.spread.map_or(none, |spread| spread.times(1.0 / self.scale.sqrt()))
    }

    /// Half the width of the 95 % confidence interval that bounds are judged by; `None` if one run
    /// does not tell.
    pub(super) fn half_width(&self) -> Option<f64> {
        (self.spread.is_some() || self.runs >= 2).then(|| self.judged().ci95())
    }

    /// Half the width of the interval of two one-sided tests at 5 %; 0 without chance.
    pub(super) fn two_tests(&self) -> f64 {
        self.judged().two_tests()
    }

    /// How far chance puts it apart from the mean of this many runs of someone else, in 95 of 100
    /// cases. Both sides of either comparison are pairs of common seeds, or `independent`.
    pub(super) fn chance_beside(&self, runs: f64, independent: bool) -> f64 {
        let ours = self.judged();
        let paired = ours.error * (self.runs as f64 * self.scale).sqrt();
        let deviation = if independent { self.apart.unwrap_or(paired) } else { paired };
        let error = deviation * (1.0 / (self.runs as f64 * self.scale) + 1.0 / runs).sqrt();
        Spread { error, ..ours }.ci95()
    }

    /// How far chance puts it apart from a mean of someone else with that confidence interval, in
    /// 95 of 100 cases. Half the width is in its own unit; such a mean has many runs.
    pub(super) fn chance_beside_interval(&self, half: f64, confidence: f64) -> f64 {
        let theirs = Spread::of_interval(half, confidence);
        self.judged().with(theirs).ci95()
    }

    /// Half the width of its confidence interval at that level.
    pub(super) fn half_width_at(&self, confidence: f64) -> f64 {
        self.judged().half_width(confidence)
    }

    /// True if it comes from this many runs or more.
    pub(super) fn is_of(&self, runs: f64) -> bool {
        self.runs as f64 * self.scale >= runs - 1e-9
    }
}

/// The subject's quantity at a group.
pub(super) fn measure_at(
    subject: &Subject,
    sides: &Sides<'_>,
    group: &Group,
) -> Result<Measured, String> {
    let a = pool(&pick(&sides.at, &subject.at, group)?)?;
    let plain = |value| Ok(Measured::new(Estimate { value, spread: None }, a.summary.n, sides));
    match subject.quantity {
        Quantity::Mean => {
            let mean = Estimate { value: a.summary.mean, spread: a.spread() };
            Ok(Measured::new(mean, a.runs(), sides))
        }
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
    if *quantity == Quantity::Difference {
        let paired =
            pairs.map(|p| paired_difference(&p).ok_or("no runs to compare")).transpose()?;
        let found = paired.unwrap_or_else(|| difference(a.moments, b.moments));
        let apart = of_one_run(difference(a.of_seeds(), b.of_seeds()), runs);
        return Ok(Measured { apart, ..Measured::new(found, runs, sides) });
    }
    let found = pairs.map_or_else(|| ratio(a.moments, b.moments), |p| paired_ratio(&p));
    let mut found = found.ok_or("the mean to compare with is 0")?;
    let apart = ratio(a.of_seeds(), b.of_seeds()).and_then(|ratio| of_one_run(ratio, runs));
    found.value -= if *quantity == Quantity::Change { 1.0 } else { 0.0 };
    Ok(Measured { apart, ..Measured::new(found, runs, sides) })
}

/// The standard deviation of one run of each side, from the estimate of this many runs.
fn of_one_run(estimate: Estimate, runs: usize) -> Option<f64> {
    estimate.spread.map(|spread| spread.error * (runs as f64).sqrt())
}

/// A mean less a multiple of another.
pub(super) fn less(
    a: &Pooled,
    b: &Pooled,
    factor: f64,
    sides: &Sides<'_>,
) -> Result<Measured, String> {
    let scaled = |(a, b): (f64, f64)| (a, factor * b);
    let pairs: Option<Vec<_>> = a.pairs_with(b).map(|p| p.into_iter().map(scaled).collect());
    let b_scaled = Moments {
        mean: factor * b.moments.mean,
        std: factor.abs() * b.moments.std,
        n: b.moments.n,
    };
    let paired = pairs.map(|p| paired_difference(&p).ok_or("no runs to compare")).transpose()?;
    let found = paired.unwrap_or_else(|| difference(a.moments, b_scaled));
    Ok(Measured::new(found, a.runs().min(b.runs()), sides))
}

/// The subject's quantity at the last value of a parameter less that at its first.
pub(super) fn rise_at(
    subject: &Subject,
    sides: &Sides<'_>,
    group: &Group,
    along: &str,
) -> Result<Measured, String> {
    let steps = groups(&sides.at, &subject.at, &[along.to_owned()]);
    let [first, .., last] = &steps[..] else {
        return Err(format!("a rise needs two values of `{along}` or more"));
    };
    let end = |step: &Group| -> Group { group.iter().chain(step).cloned().collect() };
    step(subject, sides, &end(first), &end(last))
}

/// The subject's quantity at one group less that at another.
pub(super) fn step(
    subject: &Subject,
    sides: &Sides<'_>,
    first: &Group,
    last: &Group,
) -> Result<Measured, String> {
    let (from, to) = (measure_at(subject, sides, first)?, measure_at(subject, sides, last)?);
    let runs = from.runs.min(to.runs);
    let value = to.value - from.value;
    // Runs of one seed have something in common at both ends, unless the quantity is relative.
    if !subject.quantity.is_in_points()
        && let Some(pairs) = seeds_at(subject, sides, last)?
            .zip(seeds_at(subject, sides, first)?)
            .and_then(|(last, first)| pairs(&last, &first))
    {
        let rises: Vec<_> = pairs.iter().map(|(a, b)| a - b).collect();
        let spread = Summary::of(&rises).and_then(|summary| summary.spread());
        return Ok(Measured::new(Estimate { value, spread }, runs, sides));
    }
    let spread = from.spread.zip(to.spread).map(|(a, b)| a.with(b));
    Ok(Measured::new(Estimate { value, spread }, runs, sides))
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
