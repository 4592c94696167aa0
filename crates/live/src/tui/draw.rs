//! Draws a [`Board`] into whatever size the terminal has.

use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::terminal::Frame;
use ratatui_core::text::{Line, Span};
use ratatui_core::widgets::Widget;
use ratatui_widgets::paragraph::{Paragraph, Wrap};
use ratatui_widgets::sparkline::Sparkline;

use super::board::{Board, paths_of};
use crate::figures::{
    AssociationFigures, PathFigures, Process, Sample, bit_rate, bytes, short, time,
};

/// Lines of a sparkline, at most.
const SPARK_MAX: u16 = 8;
/// Lines of events, if there is room for them.
const EVENTS_MIN: u16 = 3;
/// Lines of a terminal below which events are left out.
const LOW: u16 = 14;
/// Lines of a terminal from which there is more room for them.
const HIGH: u16 = 22;
/// Milliseconds that a sparkline shows: the short span and the long one.
const SPANS_MS: [u64; 2] = [60_000, 600_000];

/// Draws with colours, or only with bold and reversed text.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Colours {
    /// With colours.
    On,
    /// Without, as the variable NO_COLOR asks.
    Off,
}

impl Colours {
    /// As the environment says (no-color.org).
    pub fn of_environment() -> Colours {
        if std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            Colours::Off
        } else {
            Colours::On
        }
    }

    fn of(self, colour: Color) -> Style {
        match self {
            Colours::On => Style::new().fg(colour),
            Colours::Off => Style::new(),
        }
    }
}

const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const DIM: Style = Style::new().add_modifier(Modifier::DIM);

/// Draws the board.
pub fn draw(board: &Board, colours: Colours, frame: &mut Frame<'_>) {
    let mut page = Page { area: frame.area(), used: 0, frame, colours };
    if page.area.height == 0 || page.area.width == 0 {
        return;
    }
    match board.opened() {
        Some(process) => page.process(board, process),
        None => page.list(board),
    }
    page.footer(board);
}

/// The lines of the terminal, filled from the top.
struct Page<'a, 'f> {
    area: Rect,
    used: u16,
    frame: &'a mut Frame<'f>,
    colours: Colours,
}

impl Page<'_, '_> {
    /// Lines that are free above the footer.
    fn left(&self) -> u16 {
        self.area.height.saturating_sub(1).saturating_sub(self.used)
    }

    /// The next lines, as many as there are.
    fn take(&mut self, lines: u16) -> Rect {
        let height = lines.min(self.left());
        let (x, y) = (self.area.x, self.area.y + self.used);
        self.used += height;
        Rect { x, y, width: self.area.width, height }
    }

    fn line(&mut self, line: impl Into<Line<'static>>) {
        let area = self.take(1);
        if area.height > 0 {
            line.into().render(area, self.frame.buffer_mut());
        }
    }

    fn footer(&mut self, board: &Board) {
        let y = self.area.y + self.area.height - 1;
        let area = Rect { y, height: 1, ..self.area };
        let line = match (&board.message, board.open, board.is_remote) {
            (Some(message), ..) => Line::styled(plain(message), BOLD),
            (None, None, _) => Line::styled("↑↓ process  Enter open  q leave", DIM),
            (None, Some(_), is_remote) => {
                let back = if board.processes.len() > 1 { "  Esc list" } else { "" };
                let span = if board.is_long { "1 min" } else { "10 min" };
                let leave =
                    if is_remote { "q leave" } else { "q close view (work goes on)  ^C stop" };
                let keys = format!("b backup  n normal  ↑↓ path  t {span}{back}  {leave}");
                Line::styled(keys, DIM)
            }
        };
        line.render(area, self.frame.buffer_mut());
    }

    /// The list of processes.
    fn list(&mut self, board: &Board) {
        if board.processes.is_empty() {
            self.line(Line::styled("manypath top", BOLD));
            self.line("No process of this user runs.");
            return;
        }
        self.line(Line::styled("manypath top: processes of this user", BOLD));
        self.line(Line::styled(
            "  process  command       associations  paths       up     down",
            DIM,
        ));
        let first = first_shown(board.row, board.processes.len(), self.left().into());
        for (index, process) in board.processes.iter().enumerate().skip(first) {
            if self.left() == 0 {
                return;
            }
            let sum = |of: fn(&AssociationFigures) -> f64| {
                short(process.associations.iter().map(of).sum())
            };
            let text = format!(
                "{} {:>7}  {:12}  {:>12}  {:>5}  {:>7}  {:>7}",
                mark(index == board.row),
                process.pid,
                cut(&process.command, 12),
                process.associations.len() as u64 + process.unlisted,
                paths_of(process).count(),
                sum(|a| a.up_bps),
                sum(|a| a.down_bps),
            );
            let style = if index == board.row { BOLD } else { Style::new() };
            self.line(Line::styled(text, style));
        }
    }

    fn process(&mut self, board: &Board, process: &Process) {
        self.title(process);
        if process.associations.is_empty() {
            let height = self.left().saturating_sub(EVENTS_MIN + 1).max(1);
            let area = self.take(height);
            let text = Paragraph::new(plain(&board.waiting)).wrap(Wrap { trim: true });
            text.render(area, self.frame.buffer_mut());
            self.events(board, process);
            return;
        }
        let columns = Columns::fitting(self.area.width);
        if let [only] = &*process.associations {
            self.association(only, false);
        }
        self.line(Line::styled(columns.header(), DIM));
        self.paths(board, process, &columns);
        self.events(board, process);
    }

    fn title(&mut self, process: &Process) {
        let mut title = vec![Span::styled(format!("manypath {}", plain(&process.command)), BOLD)];
        if let [only] = &*process.associations {
            let lock = if only.encrypted { "encrypted" } else { "NOT ENCRYPTED" };
            title.push(Span::raw(format!("  {}  {lock}", plain(&only.peer))));
        }
        let ran = time(process.now_ms as f64 / 1e3);
        title.push(Span::styled(format!("  process {}, {ran}", process.pid), DIM));
        self.line(title);
    }

    /// How far an association is; with its name where there are several.
    fn association(&mut self, a: &AssociationFigures, is_named: bool) {
        let name = if is_named {
            format!("association {} with {}  ", a.association, plain(&a.peer))
        } else {
            String::new()
        };
        let done = match a.total_bytes {
            Some(total) => {
                let percent = (a.done_bytes * 100).checked_div(total).unwrap_or(100);
                let rate = a.up_bps.max(a.down_bps) / 8.0;
                let left = total.saturating_sub(a.done_bytes) as f64;
                let eta = if rate > 1.0 {
                    format!(", {} left", time(left / rate))
                } else {
                    String::new()
                };
                format!("  {percent} % of {}{eta}", bytes(total))
            }
            None => {
                format!("  {} sent, {} received", bytes(a.acked_bytes), bytes(a.received_bytes))
            }
        };
        let (up, down) = (bit_rate(a.up_bps), bit_rate(a.down_bps));
        self.line(format!("{name}up {up}  down {down}{done}"));
    }

    /// The paths: a row each, and as many lines of a sparkline and of details as there is room for.
    fn paths(&mut self, board: &Board, process: &Process, columns: &Columns) {
        let count = paths_of(process).count() as u16;
        let headings = match process.associations.len() {
            1 => 0,
            n => n as u16,
        };
        if count == 0 {
            return self.line("There is no path.");
        }
        let events = match self.area.height {
            height if height < LOW => 0,
            height if height < HIGH => EVENTS_MIN + 1,
            _ => EVENTS_MIN + 3,
        };
        let room = self.left().saturating_sub(events + headings) / count;
        let (details, spark) = match room {
            0 | 1 => (0, 0),
            2 => (0, 1),
            more => (1, (more - 2).min(SPARK_MAX)),
        };
        let top = self.left().saturating_sub(events);
        let height = 1 + details + spark;
        let fit = (top.saturating_sub(headings) / height).max(1);
        let first = first_shown(board.row, count.into(), fit.into());
        let end = self.used + top;
        let chart = Chart::new(board, process, self.area.width);
        let mut heading = None;
        for (index, (number, path)) in paths_of(process).enumerate().skip(first) {
            if self.used + height > end {
                break;
            }
            if headings > 0 && heading != Some(number) {
                heading = Some(number);
                let named = process.associations.iter().find(|a| a.association == number);
                named.into_iter().for_each(|a| self.association(a, true));
            }
            let is_selected = index == board.row;
            let row = columns.row(path, is_selected, self.colours);
            self.line(row);
            let past = board.past(process.pid, number, path);
            if spark > 0 {
                let area = self.take(spark);
                self.sparkline(&chart, past, area);
            }
            if details > 0 {
                self.line(Line::styled(details_of(path), DIM));
            }
        }
    }

    fn sparkline(&mut self, chart: &Chart, past: &[Sample], area: Rect) {
        let left = Chart::LEFT;
        if area.width <= left || area.height == 0 {
            return;
        }
        let label = Rect { x: area.x + 2, width: left - 2, height: 1, ..area };
        Line::styled(short(chart.max as f64), DIM).render(label, self.frame.buffer_mut());
        let area = Rect { x: area.x + left, width: area.width - left, ..area };
        let spark = Sparkline::default().data(chart.columns_of(past)).max(chart.max);
        spark.style(self.colours.of(Color::Cyan)).render(area, self.frame.buffer_mut());
    }

    fn events(&mut self, board: &Board, process: &Process) {
        if self.left() < 2 {
            return;
        }
        self.line(Line::styled("Events", DIM));
        let room = usize::from(self.left());
        let width = usize::from(self.area.width).saturating_sub(INDENT).max(20);
        // The latest that there is room for, from the last one back.
        let mut lines = Vec::new();
        for event in board.events_of(process.pid).iter().rev() {
            let at = format!("{:7.1} s  ", event.at_ms as f64 / 1e3);
            // The first line says it; the others give advice.
            let text = plain(event.text.lines().next().unwrap_or_default());
            let wrapped = wrapped(&text, width);
            if lines.len() + wrapped.len() > room && !lines.is_empty() {
                break;
            }
            for (index, part) in wrapped.iter().enumerate().rev() {
                let before = if index == 0 { at.clone() } else { " ".repeat(INDENT) };
                lines.push(before + part);
            }
        }
        lines.into_iter().rev().for_each(|line| self.line(line));
    }
}

/// Columns before the text of an event.
const INDENT: usize = 11;

/// A text in lines of at most `width` characters, broken between words where possible.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        let Some(line) = lines.last_mut() else { break };
        if used > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += length;
    }
    lines
}

/// The scales that all sparklines share, so that they can be compared.
struct Chart {
    now_ms: u64,
    span_ms: u64,
    width: usize,
    /// The rate at the top.
    max: u64,
    is_up: bool,
}

impl Chart {
    /// Columns beside a sparkline, for the rate at its top.
    const LEFT: u16 = 8;

    fn new(board: &Board, process: &Process, width: u16) -> Chart {
        let span_ms = SPANS_MS[usize::from(board.is_long)];
        let sum = |of: fn(&AssociationFigures) -> u64| process.associations.iter().map(of).sum();
        let (up, down): (u64, u64) = (sum(|a| a.acked_bytes), sum(|a| a.received_bytes));
        let width = usize::from(width.saturating_sub(Chart::LEFT));
        let mut chart = Chart { now_ms: process.now_ms, span_ms, width, max: 1, is_up: up >= down };
        let pasts = paths_of(process).map(|(number, path)| board.past(process.pid, number, path));
        let highest = pasts.flat_map(|past| chart.columns_of(past)).max();
        chart.max = highest.unwrap_or(0).max(1);
        chart
    }

    /// The rates of the past, one a column, of the direction that has more.
    fn columns_of(&self, past: &[Sample]) -> Vec<u64> {
        let Chart { now_ms, span_ms, width, .. } = *self;
        let begin = now_ms.saturating_sub(span_ms);
        let mut sums = vec![(0.0, 0u32); width];
        for sample in past.iter().filter(|s| s.at_ms >= begin && s.at_ms <= now_ms) {
            // The newest is at the right, also while the process is younger than the span.
            let age = now_ms - sample.at_ms;
            let from_right = (age as u128 * width as u128 / u128::from(span_ms)) as usize;
            let column = width.saturating_sub(1).saturating_sub(from_right);
            let rate = if self.is_up { sample.up_bps } else { sample.down_bps };
            if let Some((sum, count)) = sums.get_mut(column) {
                *sum += rate;
                *count += 1;
            }
        }
        // A column without a sample of its own continues the one before it.
        let mut last = 0;
        let mean = |(sum, count): (f64, u32)| {
            if count > 0 {
                last = (sum / f64::from(count)) as u64;
            }
            last
        };
        sums.into_iter().map(mean).collect()
    }
}

/// The first of `count` rows that is shown if `fit` of them are, the selected one among them.
fn first_shown(selected: usize, count: usize, fit: usize) -> usize {
    let fit = fit.max(1);
    (selected + 1).saturating_sub(fit).min(count.saturating_sub(fit))
}

fn mark(is_selected: bool) -> char {
    if is_selected { '>' } else { ' ' }
}

fn details_of(path: &PathFigures) -> String {
    let relay = path.relay.as_ref().map_or(String::new(), |relay| format!(" via {relay}"));
    let why = path.why.as_ref().map_or(String::new(), |why| format!("; no data: {why}"));
    plain(&format!("  {} - {}{relay}{why}", path.local, path.remote))
}

/// Text that a terminal does not obey, whoever it comes from.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn cut(text: &str, width: usize) -> String {
    let text = plain(text);
    if text.chars().count() > width {
        text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
    } else {
        text
    }
}

/// A column of the table: its title, its width, and how soon it goes for want of room.
#[derive(Copy, Clone)]
struct Column {
    title: &'static str,
    width: usize,
    goes: u8,
    text: fn(&PathFigures) -> String,
}

const COLUMNS: [Column; 8] = [
    Column { title: "state", width: 18, goes: 3, text: PathFigures::state_words },
    Column { title: "rank", width: 8, goes: 4, text: |p| p.rank.clone() },
    Column { title: "up", width: 7, goes: 0, text: |p| short(p.up_bps) },
    Column { title: "down", width: 7, goes: 2, text: |p| short(p.down_bps) },
    Column { title: "RTT", width: 8, goes: 1, text: |p| rtt(p.srtt_s) },
    Column { title: "loss", width: 6, goes: 5, text: |p| loss(p.loss) },
    Column { title: "cwnd", width: 7, goes: 6, text: |p| short(p.cwnd_bytes as f64) },
    Column { title: "flight", width: 7, goes: 7, text: |p| short(p.flight_bytes as f64) },
];

fn rtt(seconds: Option<f64>) -> String {
    match seconds {
        Some(s) if s < 0.1 => format!("{:.1} ms", s * 1e3),
        Some(s) if s < 9.9995 => format!("{:.0} ms", s * 1e3),
        Some(s) => format!("{s:.0} s"),
        None => "-".to_owned(),
    }
}

fn loss(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{:.1} %", ratio * 100.0))
}

/// The columns that a width has room for.
struct Columns {
    shown: Vec<Column>,
    name: usize,
}

impl Columns {
    /// The mark, the number, and the name.
    const FIXED: usize = 2 + 4;
    const NAME_MIN: usize = 8;
    const NAME_MAX: usize = 40;

    fn fitting(width: u16) -> Columns {
        let mut shown = COLUMNS.to_vec();
        let used = |shown: &[Column]| shown.iter().map(|c| c.width + 1).sum::<usize>();
        let room = usize::from(width).saturating_sub(Columns::FIXED);
        while !shown.is_empty() && used(&shown) + Columns::NAME_MIN > room {
            let goes = shown.iter().map(|c| c.goes).max();
            shown.retain(|c| Some(c.goes) != goes);
        }
        let name = room.saturating_sub(used(&shown)).min(Columns::NAME_MAX);
        Columns { shown, name }
    }

    fn header(&self) -> String {
        let name = format!("  {:<4}{:<width$}", "path", " from", width = self.name);
        let cells = self.shown.iter().map(|c| format!(" {:>width$}", c.title, width = c.width));
        name + &cells.collect::<String>()
    }

    fn row(&self, path: &PathFigures, is_selected: bool, colours: Colours) -> Line<'static> {
        let name = cut(path.short_name(), self.name.saturating_sub(1));
        let name =
            format!("{} {:<4}{name:<width$}", mark(is_selected), path.path, width = self.name);
        let colour = match &*path.state {
            "active" if path.why.is_none() => Color::Green,
            "active" => Color::Blue,
            "inactive" => Color::Red,
            _ => Color::Yellow,
        };
        let mut line = vec![Span::raw(name)];
        for column in &self.shown {
            let text = cut(&(column.text)(path), column.width);
            let style = if column.title == "state" { colours.of(colour) } else { Style::new() };
            line.push(Span::styled(format!(" {text:>width$}", width = column.width), style));
        }
        Line::from(line).style(if is_selected { BOLD } else { Style::new() })
    }
}

#[cfg(test)]
mod tests;
