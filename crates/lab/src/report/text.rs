//! A figure as text: lines of braille dots, with a letter at each point.

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;
use ratatui_core::style::Color;
use ratatui_core::symbols::Marker;
use ratatui_core::widgets::Widget;
use ratatui_widgets::canvas::{Canvas, Context, Line as Segment};

use super::figure::{Figure, Line, Panel, Shape, View};
use super::palette::SLOTS;
use super::scale::{self, Scale};

/// How figures are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; 40 to 200 are used.
    pub columns: u16,
    /// With colours, as ANSI sequences.
    pub colours: bool,
}

/// Rows of a panel's plot.
const ROWS: u16 = 16;

/// Colours of the palette's slots, of the 256 that terminals have; readable on black and on white.
const COLOURS: [u8; SLOTS] = [33, 166, 35, 133, 136, 37, 245, 130];

/// A figure's first view: that of the papers' rules. Points of the papers' simulator are left out.
pub(crate) fn draw(figure: &Figure, style: Style) -> String {
    let mut text = format!("{}\n", figure.title);
    let Some(view) = figure.views.first() else {
        return text + "  no points: run the experiment\n";
    };
    let (x, y) = scale::of(figure, &view.panels);
    for panel in &view.panels {
        if !panel.title.is_empty() {
            text += &format!("\n{}\n", panel.title);
        }
        text += &plot(figure, panel, &x, &y, style);
    }
    text + &legend(view, style)
}

/// The letter of the line at this place in its panel.
fn letter(number: usize) -> char {
    char::from(b'a' + (number % 26) as u8)
}

fn measured(panel: &Panel) -> impl Iterator<Item = (char, &Line)> {
    let lines = panel.lines.iter().filter(|line| !line.reference);
    lines.enumerate().map(|(number, line)| (letter(number), line))
}

fn colour(slot: usize) -> Color {
    Color::Indexed(COLOURS.get(slot % SLOTS).copied().unwrap_or_default())
}

/// Where points of a plot lie: columns and rows of characters, each of 2 by 4 dots.
struct Grid<'a> {
    kind: Shape,
    x: &'a Scale,
    y: &'a Scale,
    columns: u16,
    /// Lines of the panel: bars of one group stand beside each other.
    lines: usize,
}

impl Grid<'_> {
    /// The places of a line's points; `number` is the line's.
    fn places(&self, number: usize, line: &Line) -> Vec<(f64, f64)> {
        let lines = self.lines.max(1) as f64;
        let shift = match self.kind {
            Shape::Bars => (number as f64 - (lines - 1.0) / 2.0) * 0.8 / lines,
            _ => 0.0,
        };
        let points = line.points.iter().filter(|point| self.x.has(point.x) && self.y.has(point.y));
        points.map(|point| (self.x.place(point.x) + shift, self.y.place(point.y))).collect()
    }

    /// The column of a place.
    fn column(&self, x: f64) -> u16 {
        dot(self.x.share(x), self.columns * 2) / 2
    }

    /// The row of a place, from the top.
    fn row(&self, y: f64) -> u16 {
        dot(1.0 - self.y.share(y), ROWS * 4) / 4
    }
}

/// The dot at a share of the way through this many.
fn dot(share: f64, dots: u16) -> u16 {
    (share.clamp(0.0, 1.0) * f64::from(dots - 1)).round() as u16
}

/// The plot of a panel between its axes.
fn plot(figure: &Figure, panel: &Panel, x: &Scale, y: &Scale, style: Style) -> String {
    let ticks: Vec<_> = y.labels().collect();
    let margin = ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
    let columns = usize::from(style.columns.clamp(40, 200)).saturating_sub(margin + 2).max(10);
    let lines = measured(panel).count();
    let grid = Grid { kind: figure.kind, x, y, columns: columns as u16, lines };
    let buffer = draw_lines(&grid, panel);
    let mut text = format!("{:>margin$} {}\n", "", figure.y.title());
    for row in 0..ROWS {
        let label = ticks.iter().find(|(place, _)| grid.row(*place) == row);
        let (label, edge) = label.map_or(("", '│'), |(_, text)| (text.as_str(), '┤'));
        text += &format!("{label:>margin$} {edge}");
        let cells = (0..grid.columns).filter_map(|column| buffer.cell((column, row)));
        text += &row_text(cells, style.colours);
        text.push('\n');
    }
    text + &x_axis(figure, &grid, margin)
}

fn draw_lines(grid: &Grid<'_>, panel: &Panel) -> Buffer {
    let area = Rect::new(0, 0, grid.columns, ROWS);
    let mut buffer = Buffer::empty(area);
    let segments = |context: &mut Context<'_>| {
        for (number, (_, line)) in measured(panel).enumerate() {
            let color = colour(line.slot);
            let points = grid.places(number, line);
            match grid.kind {
                Shape::Scatter => {}
                Shape::Bars => {
                    let [bottom, _] = grid.y.bounds();
                    for (x, y) in points {
                        context.draw(&Segment { x1: x, y1: bottom.max(0.0), x2: x, y2: y, color });
                    }
                }
                Shape::Lines | Shape::Time => {
                    for pair in points.windows(2) {
                        let [(x1, y1), (x2, y2)] = *pair else { continue };
                        context.draw(&Segment { x1, y1, x2, y2, color });
                    }
                }
            }
        }
    };
    let canvas = Canvas::default().marker(Marker::Braille);
    let canvas = canvas.x_bounds(grid.x.bounds()).y_bounds(grid.y.bounds());
    canvas.paint(segments).render(area, &mut buffer);
    for (number, (letter, line)) in measured(panel).enumerate() {
        let points = grid.places(number, line);
        // Lines over time have a point in every column.
        let step = if grid.kind == Shape::Time { points.len().div_ceil(6).max(1) } else { 1 };
        for (x, y) in points.into_iter().step_by(step) {
            if let Some(cell) = buffer.cell_mut((grid.column(x), grid.row(y))) {
                cell.set_char(letter).set_fg(colour(line.slot));
            }
        }
    }
    buffer
}

fn row_text<'a>(cells: impl Iterator<Item = &'a Cell>, colours: bool) -> String {
    let (mut text, mut last) = (String::new(), None);
    for cell in cells {
        let own = match cell.fg {
            Color::Indexed(number) if colours && cell.symbol() != " " => Some(number),
            _ => None,
        };
        if own != last {
            text += &own.map_or("\x1b[39m".to_owned(), |number| format!("\x1b[38;5;{number}m"));
            last = own;
        }
        // An empty braille pattern is a space.
        text += if cell.symbol() == "\u{2800}" { " " } else { cell.symbol() };
    }
    if last.is_some() {
        text += "\x1b[39m";
    }
    if colours { text } else { text.trim_end().to_owned() }
}

fn x_axis(figure: &Figure, grid: &Grid<'_>, margin: usize) -> String {
    let columns = usize::from(grid.columns);
    let mut line: Vec<char> = vec!['─'; columns];
    let mut labels: Vec<char> = vec![' '; columns];
    let mut free = 0;
    for (place, text) in grid.x.labels() {
        let at = usize::from(grid.column(place));
        if let Some(tick) = line.get_mut(at) {
            *tick = '┬';
        }
        let length = text.chars().count();
        let begin = at.saturating_sub(length / 2).min(columns.saturating_sub(length));
        // Labels that would touch the one before are left out.
        if begin >= free && begin + length <= columns {
            for (cell, character) in labels.iter_mut().skip(begin).zip(text.chars()) {
                *cell = character;
            }
            free = begin + length + 1;
        }
    }
    let (line, labels): (String, String) = (line.into_iter().collect(), labels.iter().collect());
    let title = figure.x.title();
    format!(
        "{:>margin$} └{line}\n{:>margin$}  {}\n{:>margin$}  {:^columns$}\n",
        "",
        "",
        labels.trim_end(),
        "",
        title
    )
    .lines()
    .map(|line| format!("{}\n", line.trim_end()))
    .collect()
}

/// Names of the lines; those of each panel have the same letters in the same order.
fn legend(view: &View, style: Style) -> String {
    let mut names: Vec<(char, &Line)> = Vec::new();
    for entry in view.panels.iter().flat_map(measured) {
        if !names.iter().any(|(letter, line)| (*letter, &line.name) == (entry.0, &entry.1.name)) {
            names.push(entry);
        }
    }
    let mut text = String::new();
    for (letter, line) in names {
        let mark = match (style.colours, colour(line.slot)) {
            (true, Color::Indexed(number)) => format!("\x1b[38;5;{number}m{letter}\x1b[39m"),
            _ => letter.to_string(),
        };
        text += &format!("  {mark} {}\n", line.name);
    }
    text
}

#[cfg(test)]
mod tests;
