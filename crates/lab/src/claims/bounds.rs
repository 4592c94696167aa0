//! Bounds of a number, and verdicts by its confidence interval.

use super::measured::Measured;
use super::{Quantity, Subject};

/// How far a number may be from the paper's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tolerance {
    /// This distance.
    Of(f64),
    /// As far as chance puts the means of two samples of this many runs apart, with the spread of
    /// ours.
    Runs(f64),
}

/// The bounds of a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bounds {
    /// The paper's number and how far we may be from it.
    pub expect: Option<(f64, Tolerance)>,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
    /// The whole confidence interval is above this.
    pub above: Option<f64>,
    /// The whole confidence interval is below this.
    pub below: Option<f64>,
}

/// The result of comparing a number with its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Finding {
    Holds,
    /// The number is as it should be, but its confidence interval is not.
    Undecided,
    Fails,
}

impl Finding {
    pub(super) fn of(holds: bool) -> Finding {
        if holds { Finding::Holds } else { Finding::Fails }
    }
}

impl Bounds {
    /// The worst of what the bounds find.
    pub(super) fn find(&self, measured: &Measured) -> Finding {
        let value = measured.value;
        // Room for the rounding of sums, so that "at most 0.1" accepts a mean of 0.1.
        let slack = 1e-9 * value.abs().max(1e-9);
        let expect = self.expect.is_none_or(|(expect, tolerance)| {
            (value - expect).abs() <= tolerance.width(measured) + slack
        });
        let within = expect
            && self.at_least.is_none_or(|least| value >= least - slack)
            && self.at_most.is_none_or(|most| value <= most + slack);
        let above = self.above.map(|bound| beyond(value - bound, slack, measured));
        let below = self.below.map(|bound| beyond(bound - value, slack, measured));
        above.into_iter().chain(below).fold(Finding::of(within), Finding::max)
    }

    /// Refuses bounds that need an interval where there is none.
    pub(super) fn check(&self, quantity: &Quantity) -> Result<(), String> {
        let by_runs = matches!(self.expect, Some((_, Tolerance::Runs(_))));
        let needs = by_runs || self.above.is_some() || self.below.is_some();
        if needs && !quantity.has_interval() {
            let needs = "`above`, `below` and a tolerance in runs need a confidence interval";
            return Err(format!("{needs}: measure a mean, change, ratio or difference"));
        }
        Ok(())
    }

    pub(super) fn show(&self, subject: &Subject) -> String {
        let show = |value| subject.show_value(value, None);
        let expect = self.expect.map(|(expect, tolerance)| match tolerance {
            Tolerance::Runs(runs) => format!("{} ± chance in {runs} runs", show(expect)),
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
        expect.into_iter().chain(others.into_iter().flatten()).collect::<Vec<_>>().join(", ")
    }
}

/// Holds if a distance is more than chance explains.
pub(super) fn beyond(distance: f64, slack: f64, measured: &Measured) -> Finding {
    match measured.half_width() {
        _ if distance <= slack => Finding::Fails,
        Some(half) if distance > half => Finding::Holds,
        _ => Finding::Undecided,
    }
}

impl Tolerance {
    fn width(self, measured: &Measured) -> f64 {
        match self {
            Tolerance::Of(width) => width,
            // Two samples: the variances of their means add up.
            Tolerance::Runs(runs) => measured
                .half_width_of(runs)
                .map_or(f64::NAN, |half| half * std::f64::consts::SQRT_2),
        }
    }
}
