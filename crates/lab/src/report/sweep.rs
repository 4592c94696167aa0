//! Figures over swept parameters, from the means of the points.

use super::figure::{
    Axis, Figure, Line, Mark, Panel, Point, Shape, View, Wrong, known, unique, view_name, words,
};
use super::palette::Palette;
use super::results::{Mean, Params, Results};
use super::spec::{FigureSpec, Kind, OneOrMore, Reference};
use super::value;
use crate::stats::paired_ratio;
use crate::variant::PACKAGED;

/// Builds the figure that `spec` describes. Without any point to draw it has no panels.
pub(crate) fn build(
    spec: &FigureSpec,
    results: &Results,
    palette: &mut Palette,
) -> Result<Figure, Wrong> {
    let plan = Plan::new(spec, results)?;
    let mut figure = plan.frame(results);
    let keys = plan.line_keys(&results.means);
    let slots = palette.slots(&keys.iter().map(|k| k.join(" · ")).collect::<Vec<_>>());
    for variant in variants(&results.means) {
        let panels = plan.panels(results, &variant, &keys, &slots, &figure.x)?;
        if panels.iter().any(|panel| !panel.lines.is_empty()) {
            figure.views.push(View { name: view_name(&variant), variant, panels });
        }
    }
    Ok(figure)
}

/// The variants that have means, the papers' own first.
pub(crate) fn variants(means: &[Mean]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for mean in means {
        if !found.contains(&mean.variant) {
            found.push(mean.variant.clone());
        }
    }
    found.sort_by_key(|v| v != "scenario");
    found
}

/// The reference that is drawn beside a variant: its own, else that of the papers' simulator as
/// packaged.
fn reference_beside<'a>(reference: &'a [Mean], variant: &str) -> Vec<&'a Mean> {
    let is_of = |mean: &&Mean, wanted: &str| match mean.variant.as_str() {
        "" => wanted == PACKAGED,
        own => own == wanted,
    };
    let of = |wanted| reference.iter().filter(|mean| is_of(mean, wanted)).collect::<Vec<_>>();
    let own = of(variant);
    if own.is_empty() { of(PACKAGED) } else { own }
}

/// The parts a figure is put together from, checked against the results.
struct Plan<'a> {
    spec: &'a FigureSpec,
    x: &'a str,
    y: String,
    lines: Vec<String>,
}

impl<'a> Plan<'a> {
    fn new(spec: &'a FigureSpec, results: &Results) -> Result<Self, Wrong> {
        let x = spec.x.as_deref().unwrap_or_default();
        let y = spec.y.list().concat();
        let swept = swept(&results.means);
        known("y", &y, &fields(&results.means))?;
        if spec.kind == Kind::Scatter {
            known("x", x, &fields(&results.means))?;
        } else {
            known("x", x, &swept)?;
        }
        let named = spec.lines.as_ref().map(OneOrMore::list);
        for name in named.iter().flatten() {
            known("lines", name, &swept)?;
        }
        for name in spec.facet.iter() {
            known("facet", name, &swept)?;
        }
        for name in spec.only.keys() {
            known("where", name, &swept)?;
        }
        for name in spec.relative_to.keys() {
            known("relative_to", name, &swept)?;
        }
        let fixed = |name: &String| matches!(spec.only.get(name), Some(v) if v.list().len() == 1);
        let lines = named.unwrap_or_else(|| {
            let rest = swept.iter();
            let rest = rest.filter(|n| *n != x && Some(*n) != spec.facet.as_ref() && !fixed(n));
            rest.cloned().collect()
        });
        Ok(Self { spec, x, y, lines })
    }

    /// Title and axes.
    fn frame(&self, results: &Results) -> Figure {
        let spec = self.spec;
        let scatter = spec.kind == Kind::Scatter;
        let (unit, categories) = if scatter {
            (spec.x_unit.clone(), Vec::new())
        } else {
            let all = results.means.iter().filter(|m| self.keeps(&m.params));
            let texts = unique(all.filter_map(|m| m.params.get(self.x).cloned()));
            value::axis(&texts, spec.kind == Kind::Bars)
        };
        let relative = !spec.relative_to.is_empty();
        let label =
            |given: &Option<String>, name: &str| given.clone().unwrap_or_else(|| words(name));
        Figure {
            id: spec.id.clone().unwrap_or_else(|| results.info.id.clone()),
            title: spec.title.clone().unwrap_or_else(|| results.info.title.clone()),
            caption: spec.caption.clone(),
            kind: match spec.kind {
                Kind::Bars => Shape::Bars,
                Kind::Scatter => Shape::Scatter,
                Kind::Lines | Kind::Time => Shape::Lines,
            },
            x: Axis {
                label: label(&spec.x_label, self.x),
                unit,
                log: spec.x_log && categories.is_empty(),
                zero: false,
                categories,
            },
            y: Axis {
                label: label(&spec.y_label, &self.y),
                unit: if relative { "%".into() } else { spec.y_unit.clone() },
                log: spec.y_log && !relative && spec.kind != Kind::Bars,
                zero: spec.y_zero || relative || spec.kind == Kind::Bars,
                categories: Vec::new(),
            },
            views: Vec::new(),
        }
    }

    fn keeps(&self, params: &Params) -> bool {
        self.spec.only.iter().all(|(name, wanted)| {
            params.get(name).is_some_and(|v| wanted.list().iter().any(|w| value::same(w, v)))
        })
    }

    fn key(&self, params: &Params) -> Vec<String> {
        self.lines.iter().map(|name| params.get(name).cloned().unwrap_or_default()).collect()
    }

    /// The lines, in the order of the sweep.
    fn line_keys(&self, means: &[Mean]) -> Vec<Vec<String>> {
        let drawn = means.iter().filter(|m| m.field == self.y && self.keeps(&m.params));
        unique(drawn.map(|m| self.key(&m.params)))
    }

    fn line_name(&self, key: &[String]) -> String {
        let called = |v: &String| self.spec.names.get(v).cloned().unwrap_or_else(|| v.clone());
        let parts: Vec<_> = key.iter().filter(|v| !v.is_empty()).map(called).collect();
        if parts.is_empty() { "measured".into() } else { parts.join(" · ") }
    }

    fn panels(
        &self,
        results: &Results,
        variant: &str,
        keys: &[Vec<String>],
        slots: &[usize],
        x: &Axis,
    ) -> Result<Vec<Panel>, Wrong> {
        let ours: Vec<&Mean> = results.means.iter().filter(|m| m.variant == variant).collect();
        let theirs: Vec<&Mean> = match &self.spec.reference {
            Some(Reference::Drawn(false)) => Vec::new(),
            _ => reference_beside(&results.reference, variant),
        };
        let field = match &self.spec.reference {
            Some(Reference::Field(field)) => field.as_str(),
            _ => self.y.as_str(),
        };
        let facets = match &self.spec.facet {
            Some(name) => {
                let kept = ours.iter().filter(|m| self.keeps(&m.params));
                unique(kept.filter_map(|m| m.params.get(name).cloned()))
            }
            None => vec![String::new()],
        };
        let mut panels = Vec::new();
        for facet in facets {
            let mut panel =
                Panel { title: self.facet_title(&facet), lines: vec![], stated: vec![] };
            for (key, slot) in keys.iter().zip(slots) {
                for (from, field, reference) in
                    [(&ours, self.y.as_str(), false), (&theirs, field, true)]
                {
                    let points = self.points(from, field, key, &facet, x);
                    if !points.is_empty() {
                        let (name, slot) = (self.line_name(key), *slot);
                        panel.lines.push(Line { name, slot, reference, points });
                    }
                }
            }
            panel.stated = self.stated(&facet, x)?;
            panels.push(panel);
        }
        Ok(panels)
    }

    fn facet_title(&self, facet: &str) -> String {
        match &self.spec.facet {
            Some(name) => match self.spec.names.get(facet) {
                Some(called) => called.clone(),
                None => format!("{} {facet}", words(name)),
            },
            None => String::new(),
        }
    }

    /// The points of one line in one panel, from left to right.
    fn points(
        &self,
        means: &[&Mean],
        field: &str,
        key: &[String],
        facet: &str,
        x: &Axis,
    ) -> Vec<Point> {
        let here =
            |m: &&&Mean| {
                self.keeps(&m.params)
                    && self.key(&m.params).iter().zip(key).all(|(a, b)| value::same(a, b))
                    && self.spec.facet.as_ref().is_none_or(|name| {
                        m.params.get(name).is_some_and(|v| value::same(v, facet))
                    })
            };
        let mut points = Vec::new();
        for mean in means.iter().filter(|m| m.field == field).filter(here) {
            let at = if self.spec.kind == Kind::Scatter {
                self.partner(means, mean, self.x, &mean.params).map(|m| m.mean * self.spec.x_scale)
            } else {
                mean.params.get(self.x).and_then(|text| x.position(text))
            };
            let Some(at) = at else { continue };
            let (y, ci) = if self.spec.relative_to.is_empty() {
                (mean.mean * self.spec.y_scale, mean.ci95.unwrap_or(0.0) * self.spec.y_scale.abs())
            } else {
                let mut base = mean.params.clone();
                base.extend(self.spec.relative_to.clone());
                let Some(base) = self.partner(means, mean, field, &base) else { continue };
                let Some(change) = change(mean, base) else { continue };
                change
            };
            points.push(Point { x: at, y, ci, n: mean.n });
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        points
    }

    /// The mean of `field` at the point `params`, of the same variant as `of`.
    fn partner<'m>(
        &self,
        means: &[&'m Mean],
        of: &Mean,
        field: &str,
        params: &Params,
    ) -> Option<&'m Mean> {
        let same = |m: &&&&Mean| {
            m.field == field
                && m.variant == of.variant
                && m.params.len() == params.len()
                && m.params.iter().all(|(k, v)| params.get(k).is_some_and(|w| value::same(v, w)))
        };
        means.iter().find(|m| same(&m)).copied()
    }

    fn stated(&self, facet: &str, x: &Axis) -> Result<Vec<Mark>, Wrong> {
        let mut marks = Vec::new();
        for stated in &self.spec.stated {
            if stated.facet.as_ref().is_some_and(|f| !value::same(f, facet)) {
                continue;
            }
            let at = match &stated.x {
                toml::Value::String(text) => x.position(text),
                toml::Value::Integer(i) => Some(*i as f64),
                toml::Value::Float(f) => Some(*f),
                _ => None,
            };
            // A value that a thinned run has left out has no place between categories.
            match at {
                Some(at) => marks.push(Mark { x: at, y: stated.y, label: stated.label.clone() }),
                None if !x.categories.is_empty() => {}
                None => {
                    let what = format!("stated: x = {} is no value of {}", stated.x, self.x);
                    return Err((what, "write it as in the sweep".into()));
                }
            }
        }
        Ok(marks)
    }
}

/// The change from `base` to `mean` in percent, and the half width of its interval: of the pairs if
/// both ran with the same seeds, else by first-order propagation from two independent means.
fn change(mean: &Mean, base: &Mean) -> Option<(f64, f64)> {
    if base.mean == 0.0 {
        return None;
    }
    if std::ptr::eq(mean, base) {
        return Some((0.0, 0.0));
    }
    if !mean.by_seed.is_empty() && mean.by_seed.keys().eq(base.by_seed.keys()) {
        let values = |of: &'_ Mean| of.by_seed.values().copied().collect::<Vec<_>>();
        let pairs: Vec<_> = values(mean).into_iter().zip(values(base)).collect();
        let ratio = paired_ratio(&pairs)?;
        return Some((100.0 * (ratio.value - 1.0), 100.0 * ratio.ci95().unwrap_or(0.0)));
    }
    let ratio = mean.mean / base.mean;
    let own = mean.ci95.unwrap_or(0.0) / base.mean;
    let of_base = base.ci95.unwrap_or(0.0) * ratio / base.mean;
    Some((100.0 * (ratio - 1.0), 100.0 * own.hypot(of_base)))
}

/// The swept parameters that have more than one value, in the order of their names.
pub(crate) fn swept(means: &[Mean]) -> Vec<String> {
    unique(means.iter().flat_map(|m| m.params.keys().cloned()))
}

fn fields(means: &[Mean]) -> Vec<String> {
    unique(means.iter().map(|m| m.field.clone()))
}
