//! Figures over time, from the samples of one run a line.

use super::figure::{Axis, Figure, Line, Mark, Panel, Point, Shape, View, Wrong};
use super::figure::{known, unique, view_name, words};
use super::palette::Palette;
use super::results::{Results, Sample};
use super::spec::{FigureSpec, OneOrMore};
use super::value;

/// Longer lines are thinned: a screen shows no more points than this.
const POINTS_MAX: usize = 2000;

/// Builds a figure of kind "time".
pub(crate) fn build(
    spec: &FigureSpec,
    results: &Results,
    palette: &mut Palette,
) -> Result<Figure, Wrong> {
    let wanted = spec.y.list();
    let there = unique(results.samples.iter().map(|s| s.series.clone()));
    let mut figure = frame(spec, results, &wanted);
    if there.is_empty() {
        return Ok(figure);
    }
    for name in &wanted {
        known("y", name, &there)?;
    }
    let params = unique(results.samples.iter().flat_map(|s| s.params.keys().cloned()));
    for name in spec.facet.iter().chain(spec.only.keys()) {
        known("facet or where", name, &params)?;
    }
    let lines = spec.lines.as_ref().map_or_else(|| default_lines(spec, &params), OneOrMore::list);
    let drawn: Vec<&Sample> = results
        .samples
        .iter()
        .filter(|s| wanted.contains(&s.series) && keeps(spec, s))
        .filter(|s| spec.seed.is_none_or(|seed| s.seed == seed.to_string()))
        .collect();
    let key_of = |s: &Sample| {
        let mut key: Vec<String> = Vec::new();
        if wanted.len() > 1 {
            key.push(s.series.clone());
        }
        key.extend(lines.iter().filter_map(|name| s.params.get(name).cloned()));
        key
    };
    let keys = unique(drawn.iter().map(|s| key_of(s)));
    let slots = palette.slots(&keys.iter().map(|k| k.join(" · ")).collect::<Vec<_>>());
    let facets = match &spec.facet {
        Some(name) => unique(drawn.iter().filter_map(|s| s.params.get(name).cloned())),
        None => vec![String::new()],
    };
    for variant in unique(drawn.iter().map(|s| s.variant.clone())) {
        let mut panels = Vec::new();
        for facet in &facets {
            let here = |s: &&Sample| {
                s.variant == variant
                    && spec.facet.as_ref().is_none_or(|name| s.params.get(name) == Some(facet))
            };
            let inside: Vec<&Sample> = drawn.iter().copied().filter(here).collect();
            let mut panel = Panel {
                title: spec.names.get(facet).cloned().unwrap_or_else(|| facet.clone()),
                lines: Vec::new(),
                stated: stated(spec, facet),
            };
            for (key, slot) in keys.iter().zip(&slots) {
                let own: Vec<&Sample> =
                    inside.iter().copied().filter(|s| key_of(s) == *key).collect();
                if let Some(first) = own.first() {
                    let points = points(spec, own.iter().filter(|s| s.seed == first.seed));
                    panel.lines.push(Line {
                        name: name(spec, key),
                        slot: *slot,
                        reference: false,
                        points,
                    });
                }
            }
            panels.push(panel);
        }
        figure.views.push(View { name: view_name(&variant), variant, panels });
    }
    figure.views.sort_by_key(|v| v.variant != "scenario");
    Ok(figure)
}

fn frame(spec: &FigureSpec, results: &Results, wanted: &[String]) -> Figure {
    let label =
        spec.y_label.clone().unwrap_or_else(|| words(wanted.first().map_or("", String::as_str)));
    Figure {
        id: spec.id.clone().unwrap_or_else(|| results.info.id.clone()),
        title: spec.title.clone().unwrap_or_else(|| results.info.title.clone()),
        caption: spec.caption.clone(),
        kind: Shape::Time,
        x: Axis {
            label: spec.x_label.clone().unwrap_or_else(|| "Time".into()),
            unit: "s".into(),
            log: spec.x_log,
            zero: false,
            categories: Vec::new(),
        },
        y: Axis {
            label,
            unit: spec.y_unit.clone(),
            log: spec.y_log,
            zero: spec.y_zero,
            categories: Vec::new(),
        },
        views: Vec::new(),
    }
}

fn default_lines(spec: &FigureSpec, params: &[String]) -> Vec<String> {
    let fixed = |name: &String| matches!(spec.only.get(name), Some(v) if v.list().len() == 1);
    params.iter().filter(|n| Some(*n) != spec.facet.as_ref() && !fixed(n)).cloned().collect()
}

fn keeps(spec: &FigureSpec, sample: &Sample) -> bool {
    spec.only.iter().all(|(name, wanted)| {
        let has = sample.params.get(name);
        has.is_some_and(|v| wanted.list().iter().any(|w| value::same(w, v)))
    })
}

fn name(spec: &FigureSpec, key: &[String]) -> String {
    let called = |v: &String| spec.names.get(v).cloned().unwrap_or_else(|| v.clone());
    let name = key.iter().map(called).collect::<Vec<_>>().join(" · ");
    if name.is_empty() { "measured".into() } else { name }
}

fn points<'a>(spec: &FigureSpec, samples: impl Iterator<Item = &'a &'a Sample>) -> Vec<Point> {
    let mut points: Vec<Point> =
        samples.map(|s| Point { x: s.time_s, y: s.value * spec.y_scale, ci: 0.0, n: 1 }).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let step = points.len().div_ceil(POINTS_MAX).max(1);
    points.into_iter().step_by(step).collect()
}

fn stated(spec: &FigureSpec, facet: &str) -> Vec<Mark> {
    let here = spec.stated.iter().filter(|s| s.facet.as_ref().is_none_or(|f| f == facet));
    let at = |x: &toml::Value| x.as_float().or_else(|| x.as_integer().map(|i| i as f64));
    here.filter_map(|s| Some(Mark { x: at(&s.x)?, y: s.y, label: s.label.clone() })).collect()
}
