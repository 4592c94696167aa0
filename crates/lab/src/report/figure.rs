//! The parts of a figure: axes, views, panels, lines, points.

use serde::Serialize;

use super::value;
use crate::variant::RELEASE;

/// A figure, ready to be drawn by any means. The page's script reads its JSON form.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Figure {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) kind: Shape,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    /// One for each variant of the experiment.
    pub(crate) views: Vec<View>,
}

/// How the points of a line are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shape {
    Lines,
    Bars,
    Scatter,
    Time,
}

/// An axis: its words, and how values lie on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Axis {
    pub(crate) label: String,
    pub(crate) unit: String,
    pub(crate) log: bool,
    pub(crate) zero: bool,
    /// Texts at 0, 1, 2, …, when the values are not numbers of one unit.
    pub(crate) categories: Vec<String>,
}

impl Axis {
    /// The axis's words with the unit in brackets.
    pub(crate) fn title(&self) -> String {
        if self.unit.is_empty() {
            self.label.clone()
        } else {
            format!("{} [{}]", self.label, self.unit)
        }
    }

    /// The text of a value on this axis.
    pub(crate) fn text(&self, x: f64) -> String {
        match self.categories.get(x.round().max(0.0) as usize) {
            Some(category) if !self.categories.is_empty() => category.clone(),
            _ if self.unit.is_empty() => value::short(x),
            _ => format!("{} {}", value::short(x), self.unit),
        }
    }

    /// Where a value lies on this axis.
    pub(crate) fn position(&self, text: &str) -> Option<f64> {
        if self.categories.is_empty() {
            return value::number(text, &self.unit);
        }
        self.categories.iter().position(|c| value::same(c, text)).map(|i| i as f64)
    }
}

/// The figure as one variant of the experiment gives it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct View {
    /// The variant, such as "scenario" or "packaged".
    pub(crate) variant: String,
    pub(crate) name: String,
    pub(crate) panels: Vec<Panel>,
}

/// One coordinate system.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) lines: Vec<Line>,
    pub(crate) stated: Vec<Mark>,
}

/// The points of one policy.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Line {
    pub(crate) name: String,
    /// Colour and mark, an index into the palette.
    pub(crate) slot: usize,
    /// True for points of the papers' simulator.
    pub(crate) reference: bool,
    pub(crate) points: Vec<Point>,
}

/// A mean with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Point {
    #[serde(serialize_with = "value::rounded")]
    pub(crate) x: f64,
    #[serde(serialize_with = "value::rounded")]
    pub(crate) y: f64,
    /// Half the width of the 95 % confidence interval, zero if unknown.
    #[serde(serialize_with = "value::rounded")]
    pub(crate) ci: f64,
    pub(crate) n: u64,
}

/// A number the paper states.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Mark {
    #[serde(serialize_with = "value::rounded")]
    pub(crate) x: f64,
    #[serde(serialize_with = "value::rounded")]
    pub(crate) y: f64,
    pub(crate) label: String,
}

/// An error in a description, and its remedy.
pub(crate) type Wrong = (String, String);

/// The name of a variant for readers.
pub(crate) fn view_name(variant: &str) -> String {
    match variant {
        "scenario" | "" => "The papers' rules".into(),
        "packaged" => "As ns-2 2.35 is packaged".into(),
        "packaged-2mtu" => "The same with 2 MTU as least ssthresh".into(),
        "simulated" => "In the simulator".into(),
        other => match other.strip_prefix(RELEASE).map(|release| release.split_once('-')) {
            None => other.into(),
            Some(None) => format!("As {} of ns-2's SCTP module", other.replacen('-', " ", 1)),
            Some(Some((release, how))) => {
                format!("As release {release}, {}", how.replace('-', " "))
            }
        },
    }
}

/// Each value once, in the order met.
pub(crate) fn unique<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for value in values {
        if !seen.contains(&value) {
            seen.push(value);
        }
    }
    seen
}

/// Fails unless `name` is in `all`, naming what there is.
pub(crate) fn known(key: &str, name: &str, all: &[String]) -> Result<(), Wrong> {
    if all.iter().any(|n| n == name) {
        return Ok(());
    }
    Err((format!("{key}: the results have no {name:?}"), format!("one of: {}", all.join(", "))))
}

/// A dotted or underscored name as words: "path.2.loss" is "Path 2 loss".
pub(crate) fn words(name: &str) -> String {
    let name = name.strip_prefix("transport.").unwrap_or(name).replace(['.', '_'], " ");
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |c| c.to_uppercase().chain(letters).collect())
}
