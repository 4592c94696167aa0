//! Claims: what a paper says, as a measure of the runs with an expectation, and the verdict.

mod entry;
mod judge;
mod select;
mod show;

use serde::{Deserialize, Serialize};

pub use entry::ClaimEntry;
pub use judge::Evidence;

/// What a paper says, as a check.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its name within the experiment.
    pub id: String,
    /// What the paper says, in our words, with its number.
    pub says: String,
    /// Where it says so: figure, section.
    pub place: String,
    /// Why it does not hold, if that is known.
    pub explanation: Option<String>,
    /// What is measured and what must hold of it.
    pub(crate) measure: Measure,
}

/// Values of parameters that a point must have; several values of one parameter are pooled.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Side {
    /// Another experiment whose runs are meant.
    pub experiment: Option<String>,
    pub variant: Option<String>,
    pub filter: Vec<(String, Vec<String>)>,
    /// The parameters that `to` names itself: its values hold at every point the claim is judged over.
    pub own: Vec<String>,
}

/// What is measured at a point, or between two.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Quantity {
    Mean,
    Median,
    Std,
    Min,
    Max,
    /// Mean at `at` over mean at `to`, less 1.
    Change,
    /// Mean at `at` over mean at `to`.
    Ratio,
}

impl Quantity {
    pub(crate) fn is_of_two(&self) -> bool {
        matches!(self, Quantity::Change | Quantity::Ratio)
    }
}

/// A quantity of a field with its points.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subject {
    pub quantity: Quantity,
    pub field: String,
    pub at: Side,
    pub to: Side,
}

/// What must hold of a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Bounds {
    /// The paper's number and how far we may be from it.
    pub expect: Option<(f64, f64)>,
    pub at_least: Option<f64>,
    pub at_most: Option<f64>,
}

impl Bounds {
    pub(crate) fn hold(&self, value: f64) -> bool {
        // Room for the rounding of sums, so that "at most 0.1" accepts a mean of 0.1.
        let slack = 1e-9 * value.abs().max(1e-9);
        self.expect.is_none_or(|(expect, tolerance)| (value - expect).abs() <= tolerance + slack)
            && self.at_least.is_none_or(|least| value >= least - slack)
            && self.at_most.is_none_or(|most| value <= most + slack)
    }
}

/// Which of the values at several points counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// Each must be within the bounds.
    All,
    Max,
    Min,
    Mean,
}

/// What is measured and what must hold of it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Measure {
    /// A number.
    Value { subject: Subject, over: Vec<String>, take: Take, bounds: Bounds },
    /// Means in the order of the values of a parameter.
    Order {
        subject: Subject,
        over: Vec<String>,
        by: String,
        /// From the largest mean to the smallest; values of one group are equal up to `tie`.
        groups: Vec<Vec<String>>,
        tie: f64,
        tolerance: f64,
        /// Share of the points at which the order must hold.
        share: f64,
    },
    /// A number that only rises or falls along a parameter.
    Trend {
        subject: Subject,
        over: Vec<String>,
        by: String,
        is_rising: bool,
        tolerance: f64,
        /// Share of the points at which the trend must hold.
        share: f64,
    },
    /// A value that every run has.
    Equal { subject: Subject, expected: String },
}

impl Measure {
    pub(crate) fn subject(&self) -> &Subject {
        match self {
            Measure::Value { subject, .. }
            | Measure::Order { subject, .. }
            | Measure::Trend { subject, .. }
            | Measure::Equal { subject, .. } => subject,
        }
    }
}

impl Claim {
    /// The values of a parameter that it names: a quick run must not leave them out.
    pub fn values_of(&self, parameter: &str) -> Vec<&str> {
        let subject = self.measure.subject();
        let sides = subject.at.filter.iter().chain(&subject.to.filter);
        let named = sides.filter(|(name, _)| name == parameter).flat_map(|(_, values)| values);
        let own = match &self.measure {
            Measure::Order { by, groups, .. } if by == parameter => groups.iter().flatten(),
            _ => [].iter().flatten(),
        };
        named.chain(own).map(String::as_str).collect()
    }

    /// The other experiments whose runs it needs.
    pub fn experiments(&self) -> Vec<&str> {
        let subject = self.measure.subject();
        [&subject.at, &subject.to].into_iter().filter_map(|s| s.experiment.as_deref()).collect()
    }
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// What was measured is as the paper says, within the tolerance.
    Holds,
    /// It is not, and nobody has said why.
    Fails,
    /// It is not, and the claim has an explanation.
    Explained,
    /// There are no runs to judge it by.
    NotRun,
}

impl Verdict {
    /// As the table of claims prints it.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Fails => "does not hold",
            Verdict::Explained => "does not hold, explained",
            Verdict::NotRun => "not run",
        }
    }
}

/// A claim with what was measured: one entry of `claims.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judgement {
    /// The claim's name.
    pub id: String,
    /// What the paper says.
    pub says: String,
    /// Where it says so.
    #[serde(rename = "where")]
    pub place: String,
    /// What is measured, in words.
    pub measure: String,
    /// What must hold of it, in words.
    pub expected: String,
    /// What was measured, with its 95 % confidence interval; empty if not run.
    pub measured: String,
    /// The number that was measured, if it is one.
    pub value: Option<f64>,
    /// Half the width of its 95 % confidence interval.
    pub ci95: Option<f64>,
    /// The same measure of the papers' simulator, if the reference has the points.
    pub reference: Option<String>,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Why it was not run, or what did not hold.
    pub reason: Option<String>,
    /// Why it does not hold, as the claim says.
    pub explanation: Option<String>,
    /// Judged by few seeds: not the paper's sample size.
    pub quick: bool,
}

#[cfg(test)]
mod tests;
