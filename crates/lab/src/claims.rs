//! Claims: what a paper says, as a measure of the runs with an expectation, and the verdict.

mod bounds;
mod context;
mod entry;
mod judge;
mod measured;
mod select;
mod show;

use serde::{Deserialize, Serialize};

pub(crate) use bounds::{Bounds, PaperChance, PaperInterval, PaperRuns, Tolerance};
pub(crate) use context::SimulatorEntry;
pub use context::{Cause, Fault, Mark, Second, SecondVerdict, Simulator};
pub use entry::ClaimEntry;
pub(crate) use entry::OneOrMany;
pub use judge::Evidence;

/// Who says what a claim says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Author {
    /// The paper.
    #[default]
    Paper,
    /// Ours, in addition to the paper's.
    Ours,
}

/// A statement of a paper, as a check.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Its name within the experiment.
    pub id: String,
    /// The paper's statement, in our words, with its number.
    pub says: String,
    /// Where it says so: figure, section.
    pub place: String,
    /// Why it does not hold, if that is known: shared with other claims.
    pub cause: Option<Cause>,
    /// Why it does not hold: details of this claim alone.
    pub explanation: Option<String>,
    /// Why it says less than other claims, if it does.
    pub mark: Option<Mark>,
    /// The paper's own simulator, if something is known of it.
    pub simulator: Option<Simulator>,
    /// Who says it.
    pub of: Author,
    /// The placebo under which it must not hold, by name; the experiment's first without it.
    pub placebo: Option<String>,
    /// The measured quantity and its expectation.
    pub(crate) measure: Measure,
}

/// Values of parameters that a point must have; several values of one parameter are pooled.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Side {
    /// Another experiment whose runs are meant.
    pub experiment: Option<String>,
    pub variant: Option<String>,
    pub filter: Vec<(String, Vec<String>)>,
    /// The parameters that `to` names itself: its values hold at every point the claim is judged
    /// over.
    pub own: Vec<String>,
}

/// The quantity measured at a point, or between two.
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
    /// Mean at `at` less mean at `to`.
    Difference,
}

impl Quantity {
    /// True if it compares `at` with `to`.
    pub(crate) fn is_of_two(&self) -> bool {
        matches!(self, Quantity::Change | Quantity::Ratio | Quantity::Difference)
    }

    /// True if percentages of it are points.
    pub(crate) fn is_in_points(&self) -> bool {
        matches!(self, Quantity::Change | Quantity::Ratio)
    }

    /// True if its confidence interval is known.
    pub(crate) fn has_interval(&self) -> bool {
        self.is_of_two() || matches!(self, Quantity::Mean)
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

/// Which of the values at several points counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Take {
    /// Each must be within the bounds.
    All,
    Max,
    Min,
    Mean,
}

/// The measured quantity and its expectation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Measure {
    /// A number.
    Value {
        subject: Subject,
        over: Vec<String>,
        take: Take,
        bounds: Bounds,
        /// The parameter at whose last value the number is taken, less that at its first.
        rise_along: Option<String>,
    },
    /// Means in the order of the values of a parameter.
    Order {
        subject: Subject,
        over: Vec<String>,
        by: String,
        /// From the largest mean to the smallest; values of one group are equal up to `tie`.
        groups: Vec<Vec<String>>,
        tie: f64,
        tolerance: f64,
        /// Means of neighbouring groups must differ by more than chance explains.
        distinct: bool,
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

    /// The field that it measures.
    pub(crate) fn field(&self) -> &str {
        &self.measure.subject().field
    }

    /// The other experiments whose runs it needs.
    pub fn experiments(&self) -> Vec<&str> {
        let subject = self.measure.subject();
        [&subject.at, &subject.to].into_iter().filter_map(|s| s.experiment.as_deref()).collect()
    }
}

/// The verdict on a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The measurement agrees with the paper, within the tolerance.
    Holds,
    /// Chance may put the measurement on either side of what the paper says: more runs would
    /// decide.
    Undecided,
    /// The measurement disagrees, without an explanation.
    Fails,
    /// The measurement disagrees, and the claim has an explanation.
    Explained,
    /// There are no runs to judge it by.
    NotRun,
}

impl Verdict {
    /// As the table of claims prints it.
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::Undecided => "cannot be decided",
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
    /// The paper's statement.
    pub says: String,
    /// Where it says so.
    #[serde(rename = "where")]
    pub place: String,
    /// The measured quantity, in words.
    pub measure: String,
    /// The expectation, in words.
    pub expected: String,
    /// The measured value with its 95 % confidence interval; empty if not run.
    pub measured: String,
    /// The number that was measured, if it is one.
    pub value: Option<f64>,
    /// Half the width of its 95 % confidence interval.
    pub ci95: Option<f64>,
    /// The same measure of the papers' simulator, if the reference has the points.
    pub reference: Option<String>,
    /// The verdict.
    pub verdict: Verdict,
    /// Why it was not run, or what did not hold.
    pub reason: Option<String>,
    /// Why it does not hold: shared with other claims.
    #[serde(default)]
    pub cause: Option<Cause>,
    /// Why it does not hold: details of this claim alone.
    pub explanation: Option<String>,
    /// Why it says less than other claims, if it does.
    #[serde(default)]
    pub mark: Option<Mark>,
    /// The verdict of the paper's own simulator, if that is known.
    #[serde(default)]
    pub simulator: Option<SecondVerdict>,
    /// Who says it.
    #[serde(default)]
    pub of: Author,
    /// The verdict with the mechanism off; `None` if that was not run.
    #[serde(default)]
    pub placebo: Option<UnderPlacebo>,
    /// The mechanism that is off then, in words.
    #[serde(default)]
    pub placebo_says: Option<String>,
    /// The measurement then.
    #[serde(default)]
    pub placebo_measured: Option<String>,
    /// Judged by few seeds: not the paper's sample size.
    pub quick: bool,
}

/// The verdict on a claim with the mechanism off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnderPlacebo {
    /// The claim does not hold without the mechanism, so it is evidence that it holds with it.
    Fails,
    /// The claim cannot be decided without the mechanism, which is evidence as well.
    Undecided,
    /// The claim holds without the mechanism, too: no evidence.
    Holds,
}

impl Judgement {
    /// The claim holds, it would not without the mechanism, and it has no mark.
    pub fn is_evidence(&self) -> bool {
        let needs_it = matches!(self.placebo, Some(UnderPlacebo::Fails | UnderPlacebo::Undecided));
        self.verdict == Verdict::Holds && needs_it && self.mark.is_none()
    }

    /// The weight that mark and placebo give a claim that holds; `None` for any other.
    pub fn weight(&self) -> Option<&'static str> {
        let of_placebo = match self.placebo {
            Some(UnderPlacebo::Fails) => "without the mechanism it does not",
            Some(UnderPlacebo::Undecided) => "without the mechanism it cannot be decided",
            Some(UnderPlacebo::Holds) => "and also without it: no evidence",
            None => "no placebo tells: no evidence",
        };
        let weight = self.mark.map_or(of_placebo, Mark::text);
        (self.verdict == Verdict::Holds).then_some(weight)
    }

    /// True if the measurement disagrees with the paper.
    pub fn is_unmet(&self) -> bool {
        matches!(self.verdict, Verdict::Fails | Verdict::Explained)
    }

    /// Why it does not hold: the shared cause, then the details.
    pub fn why(&self) -> Option<String> {
        let cause = self.cause.as_ref().map(|cause| cause.says.trim());
        let own = self.explanation.as_deref().map(str::trim);
        let both: Vec<_> = cause.into_iter().chain(own).collect();
        (!both.is_empty()).then(|| both.join(" "))
    }

    /// The verdict of the paper's own simulator, in words with its value. If nothing is known, only
    /// a paper's claim that does not hold for a known cause says so; others have `None`.
    pub fn second_words(&self) -> Option<String> {
        let second = self.simulator.as_ref();
        let is_asked = self.is_unmet() && self.cause.is_some() && self.of == Author::Paper;
        if second.is_none() && !is_asked {
            return None;
        }
        let words = Second::words(second.map(|second| second.verdict), self.verdict);
        let Some(second) = second else { return Some(words.to_owned()) };
        let grounds = [second.measured.as_deref(), second.source.as_deref()];
        let grounds: Vec<_> = grounds.into_iter().flatten().filter(|g| !g.is_empty()).collect();
        let grounds =
            if grounds.is_empty() { String::new() } else { format!(": {}", grounds.join("; ")) };
        Some(format!("{words} ({}){grounds}", second.simulator))
    }
}

#[cfg(test)]
mod tests;
