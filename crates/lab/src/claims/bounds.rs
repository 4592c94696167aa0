//! Bounds of a number, and verdicts by its confidence interval.

use super::measured::Measured;
use super::{Quantity, Subject};

/// How far a number may be from the paper's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tolerance {
    /// This distance.
    Of(f64),
    /// As far as chance puts the paper's mean and ours apart.
    Chance(PaperChance),
}

/// The chance in a mean of the paper.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum PaperChance {
    /// The mean is one of this many runs.
    Runs(PaperRuns),
    /// The paper gives a confidence interval.
    Interval(PaperInterval),
}

/// The runs of the paper's mean, which are taken to spread as ours do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PaperRuns {
    pub count: f64,
    /// The two sides of the paper's comparison had no seeds in common, as ours have.
    pub independent: bool,
}

/// The confidence interval of the paper's mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PaperInterval {
    /// Half the width, in the field's unit, above 0.
    pub half: f64,
    /// The level, between 0 and 1.
    pub confidence: f64,
}

/// The bounds of a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bounds {
    /// The paper's number and how far we may be from it.
    pub expect: Option<(f64, Tolerance)>,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
    /// The paper read these two off means of this many runs, which chance spreads as it does ours.
    pub limits_of: Option<PaperRuns>,
    /// The whole confidence interval is above this.
    pub above: Option<f64>,
    /// The whole confidence interval is below this.
    pub below: Option<f64>,
}

/// The result of comparing a number with its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Finding {
    Holds,
    /// Chance may put the number on either side: more runs would decide.
    Undecided,
    Fails,
}

impl Bounds {
    /// The worst of what the bounds find.
    pub(super) fn find(&self, measured: &Measured) -> Finding {
        let value = measured.value;
        let slack = slack(value);
        let expect = self.expect.map(|(expect, tolerance)| match tolerance {
            Tolerance::Of(width) => within(measured, expect - width, expect + width),
            Tolerance::Chance(paper) => paper.find((value - expect).abs(), measured),
        });
        let limit = |beyond: f64, low: f64, high: f64| match self.limits_of {
            Some(runs) => PaperChance::Runs(runs).find(beyond, measured),
            None => within(measured, low, high),
        };
        let least = self.at_least.map(|least| limit(least - value, least, f64::INFINITY));
        let most = self.at_most.map(|most| limit(value - most, f64::NEG_INFINITY, most));
        let above = self.above.map(|bound| beyond(value - bound, slack, measured));
        let below = self.below.map(|bound| beyond(bound - value, slack, measured));
        let found = [expect, least, most, above, below];
        found.into_iter().flatten().fold(Finding::Holds, Finding::max)
    }

    /// Refuses bounds that need an interval where there is none.
    pub(super) fn check(&self, quantity: &Quantity) -> Result<(), String> {
        let by_chance = matches!(self.expect, Some((_, Tolerance::Chance(_))));
        let by_chance = by_chance || self.limits_of.is_some();
        let needs = by_chance || self.above.is_some() || self.below.is_some();
        if needs && !quantity.has_interval() {
            let needs =
                "`above`, `below` and a tolerance of the paper's need a confidence interval";
            return Err(format!("{needs}: measure a mean, change, ratio or difference"));
        }
        Ok(())
    }

    pub(super) fn show(&self, subject: &Subject) -> String {
        let show = |value| subject.show_value(value, None);
        let expect = self.expect.map(|(expect, tolerance)| match tolerance {
            Tolerance::Chance(paper) => format!("{} ± {}", show(expect), paper.show(subject)),
            Tolerance::Of(tolerance) => match subject.quantity {
                Quantity::Change => format!("{} ± {:.1} points", show(expect), tolerance * 100.0),
                _ => format!("{} ± {}", show(expect), super::show::number(tolerance)),
            },
        });
        let others = [
            ("at least", self.at_least),
            ("at most", self.at_most),
            ("surely above", self.above),
            ("surely below", self.below),
        ];
        let others = others.map(|(word, bound)| bound.map(|b| format!("{word} {}", show(b))));
        let all: Vec<_> = expect.into_iter().chain(others.into_iter().flatten()).collect();
        let chance =
            self.limits_of.map(|runs| format!(" ± {}", PaperChance::Runs(runs).show(subject)));
        all.join(", ") + &chance.unwrap_or_default()
    }
}

/// Room for the rounding of sums, so that "at most 0.1" accepts a mean of 0.1.
fn slack(value: f64) -> f64 {
    1e-9 * value.abs().max(1e-9)
}

/// Two one-sided tests at 5 %: holds if the interval lies inside the band, fails if it lies
/// outside, and cannot be decided if it is partly inside.
pub(super) fn within(measured: &Measured, low: f64, high: f64) -> Finding {
    let (half, slack) = (measured.two_tests(), slack(measured.value));
    let (low, high) = (low - slack, high + slack);
    let (from, to) = (measured.value - half, measured.value + half);
    if from >= low && to <= high {
        Finding::Holds
    } else if to < low || from > high {
        Finding::Fails
    } else {
        Finding::Undecided
    }
}

/// Holds if a distance is more than chance explains, fails if the opposite one is or if there is no
/// distance and no chance.
pub(super) fn beyond(distance: f64, slack: f64, measured: &Measured) -> Finding {
    match measured.half_width() {
        Some(half) if distance > half.max(slack) => Finding::Holds,
        Some(half) if slack - distance < half => Finding::Undecided,
        // A single run does not tell, but it may be on the wrong side.
        None if distance > slack => Finding::Undecided,
        _ => Finding::Fails,
    }
}

impl PaperChance {
    /// Fails if more than chance puts our mean this far beyond the paper's, or beyond a limit that
    /// the paper read off its means. Else it holds if ours has no more chance than the paper's, so
    /// that it hides no distance.
    fn find(self, distance: f64, measured: &Measured) -> Finding {
        let distance = distance - slack(measured.value);
        let (chance, is_enough) = match self {
            PaperChance::Runs(PaperRuns { count, independent }) => {
                (measured.chance_beside(count, independent), measured.is_of(count))
            }
            PaperChance::Interval(PaperInterval { half, confidence }) => (
                measured.chance_beside_interval(half, confidence),
                measured.half_width_at(confidence) <= half,
            ),
        };
        // Few runs that are all equal, such as those without a rare event, show no chance.
        if distance > chance && (is_enough || chance > 0.0) {
            Finding::Fails
        } else if distance <= chance && is_enough {
            Finding::Holds
        } else {
            Finding::Undecided
        }
    }

    fn show(self, subject: &Subject) -> String {
        match self {
            PaperChance::Runs(PaperRuns { count, independent }) => {
                let kind = if independent { "independent runs" } else { "runs" };
                format!("chance in {count} {kind}")
            }
            PaperChance::Interval(PaperInterval { half, confidence }) => {
                format!(
                    "{} ({:.0} %) and our chance",
                    subject.show_value(half, None),
                    confidence * 100.0
                )
            }
        }
    }
}
