//! Claims in words.

use super::{Measure, Quantity, Side, Subject};
use crate::table::{Params, is_same_value, value_of};

/// A number with about four significant digits.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    match size {
        _ if value == 0.0 => "0".to_owned(),
        _ if size >= 1000.0 => format!("{value:.0}"),
        _ if size >= 100.0 => format!("{value:.1}"),
        _ if size >= 10.0 => format!("{value:.2}"),
        _ if size >= 0.01 => format!("{value:.3}"),
        _ => format!("{value:.3e}"),
    }
}

/// A difference as text: `+3.14`.
pub(crate) fn signed(value: f64) -> String {
    format!("{}{}", if value < 0.0 { "" } else { "+" }, number(value))
}

/// A change as text: `+108.0 %`.
pub(crate) fn signed_percent(value: f64) -> String {
    format!("{:+.1} %", value * 100.0)
}

impl Side {
    /// True if a point has the values of this side; its variant is ignored.
    pub(super) fn accepts(&self, params: &Params) -> bool {
        self.filter.iter().all(|(name, values)| {
            let own = value_of(params, name);
            values.iter().any(|v| own.is_some_and(|own| v == "*" || is_same_value(own, v)))
        })
    }

    fn show(&self) -> String {
        let experiment = self.experiment.iter().map(|id| format!("experiment {id}"));
        let variant = self.variant.iter().map(|variant| format!("variant {variant}"));
        let filter = self.filter.iter();
        let filter = filter.map(|(name, values)| format!("{name} = {}", values.join(" or ")));
        experiment.chain(variant).chain(filter).collect::<Vec<_>>().join(", ")
    }
}

impl Subject {
    fn show(&self) -> String {
        let name = match self.quantity {
            Quantity::Mean => "mean",
            Quantity::Median => "median",
            Quantity::Std => "standard deviation",
            Quantity::Min => "smallest",
            Quantity::Max => "largest",
            Quantity::Change => "change",
            Quantity::Ratio => "ratio",
            Quantity::Difference => "difference",
        };
        let mut text = format!("{name} of {}", self.field);
        let at = self.at.show();
        if !at.is_empty() {
            text += &format!(" at {at}");
        }
        if self.quantity.is_of_two() {
            text += &format!(" against {}", self.to.show());
        }
        text
    }
}

impl Measure {
    /// The measured quantity, in words.
    pub(super) fn show(&self) -> String {
        let over = |over: &[String]| match over {
            [] => String::new(),
            names => format!(", for each {}", names.join(" and ")),
        };
        match self {
            Measure::Value { subject, over: names, take, rise_along, .. } => {
                let take = match take {
                    super::Take::All => "",
                    super::Take::Max => "highest ",
                    super::Take::Min => "lowest ",
                    super::Take::Mean => "mean ",
                };
                let along = rise_along.as_ref().map(|by| format!("rise along {by} of the "));
                format!("{take}{}{}{}", along.unwrap_or_default(), subject.show(), over(names))
            }
            Measure::Order { subject, by, over: names, .. } => {
                format!("order of {} by {by}{}", subject.show(), over(names))
            }
            Measure::Trend { subject, by, over: names, .. } => {
                format!("{} along {by}{}", subject.show(), over(names))
            }
            Measure::Equal { subject, .. } => {
                let at = subject.at.show();
                let at = if at.is_empty() { at } else { format!(" at {at}") };
                format!("{}{at}, in every run", subject.field)
            }
        }
    }

    /// The expectation, in words.
    pub(super) fn show_expected(&self) -> String {
        let at_share = |share: f64| match share {
            1.0 => String::new(),
            share => format!(" at {:.0} % of the points", share * 100.0),
        };
        match self {
            Measure::Value { subject, bounds, .. } => bounds.show(subject),
            Measure::Order { groups, share, distinct, .. } => {
                let groups: Vec<_> = groups.iter().map(|group| group.join(" = ")).collect();
                let surely = if *distinct { ", surely" } else { "" };
                format!("{}{surely}{}", groups.join(" > "), at_share(*share))
            }
            Measure::Trend { is_rising, share, .. } => {
                let direction = if *is_rising { "rises" } else { "falls" };
                format!("{direction}{}", at_share(*share))
            }
            Measure::Equal { expected, .. } => expected.clone(),
        }
    }
}
