//! A figure as SVG and as PNG, without a browser and without the machine's fonts.
//!
//! The text is drawn as paths from an embedded font (DejaVu Sans), so a picture looks the same
//! everywhere.

use std::sync::{Arc, OnceLock};

use plotters::coord::Shift;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use resvg::{tiny_skia, usvg};

use super::figure::{Figure, Line, Panel, Point, Shape, View};
use super::palette::{LIGHT, SLOTS};
use super::scale::{self, Scale};

/// An error while a picture is drawn, with the message of the library.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct DrawError(String);

impl DrawError {
    fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Plot<'a> = DrawingArea<SVGBackend<'a>, Cartesian2d<Scale, Scale>>;

const FONT: &str = "DejaVu Sans";
const INK: RGBColor = RGBColor(0x1d, 0x23, 0x2a);
const SOFT: RGBColor = RGBColor(0x5b, 0x64, 0x70);
const GRID: RGBColor = RGBColor(0xe3, 0xe6, 0xea);
const PANEL_WIDTH: u32 = 470;
const PANEL_HEIGHT: u32 = 390;
const LEGEND_ROW: i32 = 19;

/// One view of a figure as SVG text.
pub(crate) fn svg(figure: &Figure, view: &View) -> Result<String, DrawError> {
    let text = tree(figure, view)?.to_string(&usvg::WriteOptions {
        coordinates_precision: 2,
        transforms_precision: 4,
        indent: usvg::Indent::None,
        ..Default::default()
    });
    // Text for readers who cannot see the picture.
    let words = maud::html! {
        title { (figure.title) }
        desc { (figure.y.title()) " over " (figure.x.title()) "; " (view.name) }
    };
    let Some(end) = text.find('>') else {
        return Err(DrawError::new("the picture has no element"));
    };
    Ok(format!("{}{}{}", &text[..=end], words.into_string(), &text[end + 1..]))
}

/// One view of a figure as a PNG file, two pixels for each unit of the SVG.
pub(crate) fn png(figure: &Figure, view: &View) -> Result<Vec<u8>, DrawError> {
    let tree = tree(figure, view)?;
    let size = tree.size().to_int_size();
    let size = size.scale_by(2.0).ok_or_else(|| DrawError::new("the picture has no size"))?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height())
        .ok_or_else(|| DrawError::new("the picture is too large"))?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(2.0, 2.0), &mut pixels.as_mut());
    pixels.encode_png().map_err(DrawError::new)
}

fn tree(figure: &Figure, view: &View) -> Result<usvg::Tree, DrawError> {
    static FONTS: OnceLock<Arc<usvg::fontdb::Database>> = OnceLock::new();
    let fonts = FONTS.get_or_init(|| {
        let mut fonts = usvg::fontdb::Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.load_font_data(dejavu::sans::bold().to_vec());
        Arc::new(fonts)
    });
    let options =
        usvg::Options { fontdb: Arc::clone(fonts), font_family: FONT.into(), ..Default::default() };
    usvg::Tree::from_str(&draw(figure, view)?, &options).map_err(DrawError::new)
}

/// The picture with its text still as text.
fn draw(figure: &Figure, view: &View) -> Result<String, DrawError> {
    let count = view.panels.len().max(1);
    let columns = count.min(3);
    let rows = count.div_ceil(columns);
    let legend = legend(view);
    let legend_columns = if columns == 1 { 2 } else { 3 };
    let legend_height = LEGEND_ROW * legend.len().div_ceil(legend_columns) as i32 + 14;
    let width = PANEL_WIDTH * columns as u32 + if columns == 1 { 170 } else { 0 };
    let height = 40 + PANEL_HEIGHT * rows as u32 + legend_height as u32;
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
        root.fill(&WHITE).map_err(DrawError::new)?;
        let title = FontDesc::new(FONT.into(), 17.0, FontStyle::Bold).into_text_style(&root);
        root.draw_text(&figure.title, &title.color(&INK), (16, 12)).map_err(DrawError::new)?;
        let (_, below) = root.split_vertically(38);
        let (plots, foot) = below.split_vertically(PANEL_HEIGHT * rows as u32);
        let (x, y) = scale::of(figure, &view.panels);
        for (panel, area) in view.panels.iter().zip(plots.split_evenly((rows, columns))) {
            draw_panel(figure, panel, &area, &x, &y)?;
        }
        for (i, entry) in legend.iter().enumerate() {
            let (column, row) = (i % legend_columns, i / legend_columns);
            let left = 66 + (column as u32 * (width - 80) / legend_columns as u32) as i32;
            entry.draw(&foot, left, 12 + LEGEND_ROW * row as i32, figure.kind)?;
        }
        root.present().map_err(DrawError::new)?;
    }
    Ok(text)
}

/// The legend's text for one kind of line.
struct Entry {
    name: String,
    slot: Option<usize>,
    reference: bool,
}

fn legend(view: &View) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    for line in view.panels.iter().flat_map(|p| &p.lines) {
        let known = |e: &Entry| e.slot == Some(line.slot) && e.reference == line.reference;
        if !entries.iter().any(|e| known(e) && e.name == legend_name(line)) {
            let name = legend_name(line);
            entries.push(Entry { name, slot: Some(line.slot), reference: line.reference });
        }
    }
    if view.panels.iter().any(|p| !p.stated.is_empty()) {
        entries.push(Entry { name: "stated in the paper".into(), slot: None, reference: false });
    }
    entries
}

fn legend_name(line: &Line) -> String {
    if line.reference { format!("{}, ns-2", line.name) } else { line.name.clone() }
}

impl Entry {
    fn draw(&self, foot: &Area<'_>, x: i32, y: i32, kind: Shape) -> Result<(), DrawError> {
        let middle = (x + 14, y + 7);
        match self.slot {
            Some(slot) if kind == Shape::Bars => {
                let fill =
                    if self.reference { colour(slot).mix(0.35) } else { colour(slot).to_rgba() };
                let corners = [(x + 6, y), (x + 22, y + 13)];
                foot.draw(&Rectangle::new(corners, fill.filled())).map_err(DrawError::new)?;
            }
            Some(slot) => {
                let ends = [(x, y + 7), (x + 28, y + 7)];
                if kind != Shape::Scatter {
                    stroke(foot, &ends, slot, self.reference, 1.0)?;
                }
                if kind != Shape::Time {
                    symbol(foot, middle, slot, self.reference)?;
                }
            }
            None => star(foot, middle)?,
        }
        let style = (FONT, 13).into_text_style(foot).color(&INK);
        let style = style.pos(Pos::new(HPos::Left, VPos::Top));
        foot.draw_text(&self.name, &style, (x + 36, y)).map_err(DrawError::new)
    }
}

fn draw_panel(
    figure: &Figure,
    panel: &Panel,
    area: &Area<'_>,
    x: &Scale,
    y: &Scale,
) -> Result<(), DrawError> {
    let mut builder = ChartBuilder::on(area);
    builder.margin(8).margin_right(18).x_label_area_size(48).y_label_area_size(62);
    if !panel.title.is_empty() {
        builder.caption(&panel.title, (FONT, 14).into_font().color(&INK));
    }
    let mut chart = builder.build_cartesian_2d(x.clone(), y.clone()).map_err(DrawError::new)?;
    let ticks = (FONT, 13).into_font().color(&SOFT);
    chart
        .configure_mesh()
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(SOFT)
        .x_labels(x.ticks().max(1))
        .y_labels(y.ticks().max(1))
        .x_label_style(ticks.clone())
        .y_label_style(ticks)
        .x_desc(figure.x.title())
        .y_desc(figure.y.title())
        .axis_desc_style((FONT, 14).into_font().color(&INK))
        .draw()
        .map_err(DrawError::new)?;
    let plot = chart.plotting_area();
    for (index, line) in panel.lines.iter().enumerate() {
        if figure.kind == Shape::Bars {
            bars(plot, line, index, panel.lines.len(), y)?;
        } else {
            curve(plot, line, figure.kind, x, y)?;
        }
    }
    let inside = plot.strip_coord_spec();
    let (left, top) = inside.get_base_pixel();
    for mark in &panel.stated {
        if x.has(mark.x) && y.has(mark.y) {
            let (px, py) = plot.map_coordinate(&(mark.x, mark.y));
            star(&inside, (px - left, py - top))?;
        }
    }
    Ok(())
}

/// One line with its intervals and marks.
fn curve(plot: &Plot<'_>, line: &Line, kind: Shape, x: &Scale, y: &Scale) -> Result<(), DrawError> {
    let inside = plot.strip_coord_spec();
    let (left, top) = inside.get_base_pixel();
    let pixel = |px: f64, py: f64| {
        let (at, up) = plot.map_coordinate(&(px, py));
        (x.has(px) && y.has(py)).then_some((at - left, up - top))
    };
    let points: Vec<(&Point, (i32, i32))> =
        line.points.iter().filter_map(|p| Some((p, pixel(p.x, p.y)?))).collect();
    let mut track: Vec<(i32, i32)> = Vec::new();
    for (_, (px, py)) in &points {
        // A value over time holds until the next one.
        if let (Shape::Time, Some((_, before))) = (kind, track.last().copied()) {
            track.push((*px, before));
        }
        track.push((*px, *py));
    }
    let weight = if kind == Shape::Time { 1.4 } else { 2.0 };
    if kind != Shape::Scatter {
        stroke(&inside, &track, line.slot, line.reference, weight)?;
    }
    for (point, at) in &points {
        if point.ci > 0.0 {
            let ends = (pixel(point.x, point.y - point.ci), pixel(point.x, point.y + point.ci));
            if let (Some(low), Some(high)) = ends {
                interval(&inside, low, high, colour(line.slot))?;
            }
        }
        if kind != Shape::Time {
            symbol(&inside, *at, line.slot, line.reference)?;
        }
    }
    Ok(())
}

/// One line's bars, beside those of the others.
fn bars(plot: &Plot<'_>, line: &Line, index: usize, of: usize, y: &Scale) -> Result<(), DrawError> {
    let width = 0.8 / of as f64;
    let inside = plot.strip_coord_spec();
    let (left, top) = inside.get_base_pixel();
    let pixel = |at: (f64, f64)| {
        let (px, py) = plot.map_coordinate(&at);
        (px - left, py - top)
    };
    let foot = y.range().start.max(0.0);
    for point in &line.points {
        let start = point.x - 0.4 + width * index as f64;
        let corners = [pixel((start + 0.04 * width, foot)), pixel((start + 0.96 * width, point.y))];
        let fill =
            if line.reference { colour(line.slot).mix(0.35) } else { colour(line.slot).to_rgba() };
        inside.draw(&Rectangle::new(corners, fill.filled())).map_err(DrawError::new)?;
        if point.ci > 0.0 {
            let middle = start + width / 2.0;
            let ends = (pixel((middle, point.y - point.ci)), pixel((middle, point.y + point.ci)));
            interval(&inside, ends.0, ends.1, INK)?;
        }
    }
    Ok(())
}

fn interval(
    area: &Area<'_>,
    low: (i32, i32),
    high: (i32, i32),
    c: RGBColor,
) -> Result<(), DrawError> {
    let style = c.stroke_width(1);
    for path in [
        vec![low, high],
        vec![(low.0 - 3, low.1), (low.0 + 3, low.1)],
        vec![(high.0 - 3, high.1), (high.0 + 3, high.1)],
    ] {
        area.draw(&PathElement::new(path, style)).map_err(DrawError::new)?;
    }
    Ok(())
}

/// A whole line for ours, a dashed one for the papers' simulator.
fn stroke(
    area: &Area<'_>,
    track: &[(i32, i32)],
    slot: usize,
    dashed: bool,
    weight: f64,
) -> Result<(), DrawError> {
    let style = colour(slot).stroke_width(weight.round().max(1.0) as u32);
    if dashed {
        let dashes = DashedPathElement::new(track.to_vec(), 5, 4, style);
        return area.draw(&dashes).map_err(DrawError::new);
    }
    area.draw(&PathElement::new(track.to_vec(), style)).map_err(DrawError::new)
}

/// The mark of a line: filled for ours, open for the papers' simulator.
fn symbol(area: &Area<'_>, at: (i32, i32), slot: usize, open: bool) -> Result<(), DrawError> {
    let (x, y) = at;
    let corners: Vec<(i32, i32)> = match slot % SHAPES {
        0 => {
            let ink = colour(slot);
            let ring = Circle::new((x, y), 4, ink.stroke_width(2));
            let disc = Circle::new((x, y), 4, if open { WHITE.filled() } else { ink.filled() });
            area.draw(&disc).map_err(DrawError::new)?;
            return area.draw(&ring).map_err(DrawError::new);
        }
        1 => vec![(-4, -4), (4, -4), (4, 4), (-4, 4)],
        2 => vec![(0, -5), (5, 4), (-5, 4)],
        3 => vec![(0, -6), (6, 0), (0, 6), (-6, 0)],
        4 => vec![(0, 5), (5, -4), (-5, -4)],
        _ => vec![(-5, 0), (-2, -5), (2, -5), (5, 0), (2, 5), (-2, 5)],
    };
    let mut corners: Vec<_> = corners.into_iter().map(|(dx, dy)| (x + dx, y + dy)).collect();
    let fill = if open { WHITE } else { colour(slot) };
    area.draw(&Polygon::new(corners.clone(), fill.filled())).map_err(DrawError::new)?;
    corners.push(corners[0]);
    area.draw(&PathElement::new(corners, colour(slot).stroke_width(2))).map_err(DrawError::new)
}

/// How many marks there are; the page's script has the same.
const SHAPES: usize = 6;

/// A number that the paper states.
fn star(area: &Area<'_>, at: (i32, i32)) -> Result<(), DrawError> {
    let (x, y) = at;
    let corner = |i: u32| {
        let (angle, radius) = (
            f64::from(i) * std::f64::consts::PI / 5.0,
            if i.is_multiple_of(2) { 8.0 } else { 3.3 },
        );
        let (dx, dy) = (radius * angle.sin(), -radius * angle.cos());
        (x + dx.round() as i32, y + dy.round() as i32)
    };
    let corners: Vec<_> = (0..10).map(corner).collect();
    area.draw(&Polygon::new(corners, INK.filled())).map_err(DrawError::new)
}

fn colour(slot: usize) -> RGBColor {
    let hex = u32::from_str_radix(&LIGHT[slot % SLOTS][1..], 16).unwrap_or(0);
    RGBColor((hex >> 16) as u8, (hex >> 8) as u8, hex as u8)
}
