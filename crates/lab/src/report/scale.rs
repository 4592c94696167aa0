//! Ranges and ticks of axes for the pictures.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::figure::{Axis, Figure, Panel, Shape};
use super::value;

/// An axis with its range and ticks, both as logarithms on a logarithmic axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
    log: bool,
    categories: Vec<String>,
}

impl Scale {
    /// True if the axis has a place for a value: a logarithmic one has none for zero.
    pub(crate) fn has(&self, value: f64) -> bool {
        !self.log || value > 0.0
    }

    /// How many ticks there are.
    pub(crate) fn ticks(&self) -> usize {
        self.ticks.len()
    }

    /// The lowest and the highest place.
    pub(crate) fn bounds(&self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// Where a place lies between the bounds, from 0 to 1.
    pub(crate) fn share(&self, place: f64) -> f64 {
        (place - self.low) / (self.high - self.low)
    }

    /// The places of the ticks, with their texts.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (f64, String)> {
        self.ticks.iter().map(|tick| (*tick, self.format_ext(&self.value(*tick))))
    }

    /// The place of a value: its logarithm on a logarithmic axis.
    pub(crate) fn place(&self, value: f64) -> f64 {
        if self.log { value.max(f64::MIN_POSITIVE).log10() } else { value }
    }

    fn value(&self, place: f64) -> f64 {
        if self.log { 10f64.powf(place) } else { place }
    }

    fn new(axis: &Axis, values: &[f64], margin: f64) -> Self {
        let (log, categories) = (axis.log, axis.categories.clone());
        if !categories.is_empty() {
            let count = categories.len() as f64;
            let ticks = (0..categories.len()).map(|i| i as f64).collect();
            return Self { low: -0.6, high: count - 0.4, ticks, log: false, categories };
        }
        let placed = values.iter().copied().filter(|v| v.is_finite() && (!log || *v > 0.0));
        let placed: Vec<f64> = placed.map(|v| if log { v.log10() } else { v }).collect();
        let mut low = placed.iter().copied().fold(f64::INFINITY, f64::min);
        let mut high = placed.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if placed.is_empty() {
            (low, high) = (0.0, 1.0);
        }
        if axis.zero && !log {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        if high - low < 1e-12 {
            (low, high) = (low - 0.5, high + 0.5);
        }
        let room = (high - low) * margin;
        let at_zero = |edge: f64| axis.zero && edge == 0.0 && !log;
        let (low, high) = (
            if at_zero(low) { low } else { low - room },
            if at_zero(high) { high } else { high + room },
        );
        let ticks = if log { decades(low, high) } else { steps(low, high) };
        Self { low, high, ticks, log, categories }
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, pixels: (i32, i32)) -> i32 {
        let (from, to) = pixels;
        from + (self.share(self.place(*value)) * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.iter().map(|tick| self.value(*tick)).collect()
    }

    fn range(&self) -> Range<f64> {
        self.value(self.low)..self.value(self.high)
    }
}

impl ValueFormatter<f64> for Scale {
    fn format_ext(&self, tick: &f64) -> String {
        if self.categories.is_empty() {
            return value::short(*tick);
        }
        self.categories.get(tick.round().max(0.0) as usize).cloned().unwrap_or_default()
    }
}

/// The two scales that all panels of a figure share.
pub(crate) fn of(figure: &Figure, panels: &[Panel]) -> (Scale, Scale) {
    let points = || panels.iter().flat_map(|p| &p.lines).flat_map(|l| &l.points);
    let marks = || panels.iter().flat_map(|p| &p.stated);
    let xs: Vec<f64> = points().map(|p| p.x).chain(marks().map(|m| m.x)).collect();
    let spread = points().flat_map(|p| [p.y - p.ci, p.y + p.ci]);
    let ys: Vec<f64> = spread.chain(marks().map(|m| m.y)).collect();
    let x_margin = if figure.kind == Shape::Time { 0.0 } else { 0.04 };
    (Scale::new(&figure.x, &xs, x_margin), Scale::new(&figure.y, &ys, 0.05))
}

/// Ticks at 1, 2 or 5 times a power of ten, five to nine of them.
fn steps(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 6.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power).find(|s| *s >= rough * 0.999);
    let step = step.unwrap_or(10.0 * power);
    let first = (low / step).ceil() as i64;
    let last = (high / step).floor() as i64;
    (first..=last).map(|i| i as f64 * step).collect()
}

/// Ticks at powers of ten, and at 2 and 5 times them when there is room.
fn decades(low: f64, high: f64) -> Vec<f64> {
    let inside = |t: &f64| *t >= low - 1e-9 && *t <= high + 1e-9;
    let multiples: &[f64] = if high - low < 3.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
    let powers = low.floor() as i32..=high.ceil() as i32;
    let all = powers.flat_map(|p| multiples.iter().map(move |m| f64::from(p) + m.log10()));
    all.filter(inside).collect()
}
