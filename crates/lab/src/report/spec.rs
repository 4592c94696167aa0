//! `figures.toml`: which figures an experiment has, and what they show.
//!
//! Most figures need only what is not the default:
//!
//! ```toml
//! [[figure]]
//! x = "path.2.loss"
//! y = "ack_time_s"
//! y_label = "Transfer time"
//! y_unit = "s"
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use crate::error::LabError;

/// How a figure is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// A line for each policy, over a swept parameter.
    #[default]
    Lines,
    /// A group of bars for each value of the swept parameter.
    Bars,
    /// One mark for each point: `x` and `y` are fields.
    Scatter,
    /// Series of one run over time.
    Time,
}

/// One name or several.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "one text or a list of texts")]
pub(crate) enum OneOrMore {
    One(String),
    More(Vec<String>),
}

impl OneOrMore {
    pub(crate) fn list(&self) -> Vec<String> {
        match self {
            Self::One(one) => vec![one.clone()],
            Self::More(more) => more.clone(),
        }
    }
}

/// The reference field to draw, or `false` for none.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "the name of a field of reference.csv, or false")]
pub(crate) enum Reference {
    Drawn(bool),
    Field(String),
}

/// A number that the paper states, drawn as a mark.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stated {
    /// A value of the swept parameter as in the scenario file ("7 %"), or a number on the axis.
    pub(crate) x: toml::Value,
    pub(crate) y: f64,
    pub(crate) label: String,
    /// The facet the mark belongs to; every facet if left out.
    #[serde(default)]
    pub(crate) facet: Option<String>,
}

/// One figure.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FigureSpec {
    /// Also the name of the picture's file; the experiment's id by default.
    #[serde(default)]
    pub(crate) id: Option<String>,
    #[serde(default)]
    pub(crate) title: Option<String>,
    /// One or two sentences below the figure.
    #[serde(default)]
    pub(crate) caption: String,
    #[serde(default)]
    pub(crate) kind: Kind,
    /// The swept parameter on the horizontal axis (a field for `scatter`, nothing for `time`).
    #[serde(default)]
    pub(crate) x: Option<String>,
    #[serde(default)]
    pub(crate) x_label: Option<String>,
    /// The unit of `x` in a scatter; a swept parameter has its own.
    #[serde(default)]
    pub(crate) x_unit: String,
    /// Factor for a field on the horizontal axis.
    #[serde(default = "one")]
    pub(crate) x_scale: f64,
    #[serde(default)]
    pub(crate) x_log: bool,
    /// The field on the vertical axis; for `time` the series, one or several.
    pub(crate) y: OneOrMore,
    #[serde(default)]
    pub(crate) y_label: Option<String>,
    #[serde(default)]
    pub(crate) y_unit: String,
    /// Factor for the field before it is drawn: 0.001 for thousands.
    #[serde(default = "one")]
    pub(crate) y_scale: f64,
    #[serde(default)]
    pub(crate) y_log: bool,
    /// The vertical axis begins at zero; bars always do.
    #[serde(default)]
    pub(crate) y_zero: bool,
    /// The swept parameters that tell the lines apart; by default all that are left.
    #[serde(default)]
    pub(crate) lines: Option<OneOrMore>,
    /// The swept parameter with a small figure for each of its values.
    #[serde(default)]
    pub(crate) facet: Option<String>,
    /// Names for the values of parameters: `same = "RTX-SAME"`.
    #[serde(default)]
    pub(crate) names: BTreeMap<String, String>,
    /// Keep only these values of a parameter.
    #[serde(default, rename = "where")]
    pub(crate) only: BTreeMap<String, OneOrMore>,
    /// Draw the change, in percent, against the line with these values.
    #[serde(default)]
    pub(crate) relative_to: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) reference: Option<Reference>,
    #[serde(default)]
    pub(crate) stated: Vec<Stated>,
    /// The run that a `time` figure shows; the first by default.
    #[serde(default)]
    pub(crate) seed: Option<u64>,
}

fn one() -> f64 {
    1.0
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    figure: Vec<Spanned<FigureSpec>>,
}

/// The figures of a file, each with the line it begins at.
pub(crate) fn parse(file: &Path, text: &str) -> Result<Vec<(usize, FigureSpec)>, LabError> {
    let line_of = |offset: usize| 1 + text[..offset.min(text.len())].matches('\n').count();
    let parsed: File = toml::from_str(text).map_err(|e| {
        let line = e.span().map_or(0, |span| line_of(span.start));
        LabError::line(file, line, e.message(), "docs/report.md lists the keys of a figure")
    })?;
    let figures = parsed.figure.into_iter();
    let figures: Vec<_> = figures.map(|f| (line_of(f.span().start), f.into_inner())).collect();
    for (line, figure) in &figures {
        check(figure).map_err(|(what, remedy)| LabError::line(file, *line, what, remedy))?;
    }
    let mut seen = BTreeMap::new();
    for (line, figure) in &figures {
        if let Some(before) = seen.insert(figure.id.clone(), *line) {
            let what = match &figure.id {
                Some(id) => format!("a second figure with id {id:?} (the first: line {before})"),
                None => format!("a second figure without id (the first: line {before})"),
            };
            return Err(LabError::line(file, *line, what, "give every figure its own id"));
        }
    }
    Ok(figures)
}

fn check(figure: &FigureSpec) -> Result<(), (String, &'static str)> {
    let id_is_plain = |id: &str| {
        !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    };
    if let Some(id) = figure.id.as_deref().filter(|id| !id_is_plain(id)) {
        let what = format!("id {id:?} is no name for a file");
        return Err((what, "use letters, digits, dashes and underscores"));
    }
    if figure.kind == Kind::Time {
        if figure.x.is_some() {
            return Err((
                "a figure of kind \"time\" has no x".into(),
                "leave x out: it is the time",
            ));
        }
    } else {
        if figure.x.is_none() {
            return Err(("x is missing".into(), "name the swept parameter, x = \"path.2.loss\""));
        }
        if matches!(&figure.y, OneOrMore::More(list) if list.len() != 1) {
            let what = "y names several fields".into();
            return Err((
                what,
                "name one, or write a figure for each; only kind = \"time\" takes several",
            ));
        }
    }
    for (name, scale) in [("x_scale", figure.x_scale), ("y_scale", figure.y_scale)] {
        if !scale.is_finite() || scale == 0.0 {
            return Err((format!("{name} = {scale}"), "give a number other than zero"));
        }
    }
    Ok(())
}
