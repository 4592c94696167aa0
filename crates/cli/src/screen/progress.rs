//! Progress for a person, on standard error: a line for each path and one for the total.

use std::collections::BTreeMap;
use std::time::Duration;

use indicatif::ProgressBar;
use manypath::{Association, PathId, PathStats};
use manypath_live::Interfaces;
use manypath_live::figures::state_words;
use manypath_transfer::Tally;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::args::ReportArgs;
use crate::screen::Screen;
use crate::screen::figures::{Rate, bit_rate, size, time};
use crate::screen::labels::{Ends, labels};
use crate::screen::layout;

/// How often the lines on a terminal are redrawn.
const REDRAW: Duration = Duration::from_millis(200);
/// How often a line is printed where there is no terminal.
const PLAIN: Duration = Duration::from_secs(10);
/// Paths that have a line, at most.
const PATHS_MAX: usize = 16;
/// Rows of a terminal that are left for the total and for messages.
const ROWS_LEFT: usize = 6;
/// Columns of a path's name, at least.
const LABEL_MIN: usize = 8;

/// The source of the count.
#[derive(Clone, Debug)]
pub(crate) enum Counted {
    /// Bytes that the peer has acknowledged, and these, which it had before.
    Acked(Tally),
    /// Bytes that the application has received.
    Received(Tally),
}

/// A task that shows how a transfer goes.
#[derive(Debug)]
pub(crate) struct Progress {
    task: Option<JoinHandle<()>>,
}

impl Progress {
    /// Shows the progress of `association` towards `total` bytes, if their number is known.
    pub(crate) fn start(
        screen: &Screen,
        report: &ReportArgs,
        association: &Association,
        total: Option<u64>,
        counted: Counted,
    ) -> Progress {
        if report.json || screen.is_silent() {
            return Progress { task: None };
        }
        let view = View {
            screen: screen.clone(),
            association: association.clone(),
            interfaces: Interfaces::default(),
            total,
            counted,
            begin: Instant::now(),
            lines: BTreeMap::new(),
            more: None,
            total_bar: None,
            total_rate: Rate::default(),
        };
        Progress { task: Some(tokio::spawn(view.run())) }
    }

    /// Takes the lines off the screen.
    pub(crate) async fn end(self) {
        if let Some(task) = self.task {
            task.abort();
            // Until it is gone it could still draw. That it was cancelled is no news.
            let _ = task.await;
        }
    }
}

struct View {
    screen: Screen,
    association: Association,
    interfaces: Interfaces,
    total: Option<u64>,
    counted: Counted,
    begin: Instant,
    lines: BTreeMap<PathId, Line>,
    /// The number of paths for which there is no line.
    more: Option<ProgressBar>,
    total_bar: Option<ProgressBar>,
    total_rate: Rate,
}

/// The line of a path.
#[derive(Debug, Default)]
struct Line {
    bar: Option<ProgressBar>,
    rate: Rate,
}

/// The figures of a path that its line shows.
#[derive(Clone, Debug)]
struct Figures {
    id: PathId,
    label: String,
    bits_per_second: f64,
    rtt: Option<Duration>,
    state: String,
}

impl Drop for View {
    fn drop(&mut self) {
        let paths = self.lines.values().filter_map(|line| line.bar.as_ref());
        paths.chain(&self.more).chain(&self.total_bar).for_each(ProgressBar::finish_and_clear);
    }
}

impl View {
    async fn run(mut self) {
        let on_terminal = self.screen.has_bars();
        let mut ticks = interval(if on_terminal { REDRAW } else { PLAIN });
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        // The first comes at once: rates are those since then.
        ticks.tick().await;
        self.read(self.begin);
        loop {
            ticks.tick().await;
            let now = Instant::now();
            let (done, rate, paths) = self.read(now);
            let elapsed = now - self.begin;
            if on_terminal {
                let columns = self.screen.columns();
                self.show_paths(&paths, columns);
                let text = total_text(done, self.total, rate, elapsed, columns - 1);
                let new = || self.screen.bar(self.total);
                let bar = self.total_bar.get_or_insert_with(new);
                bar.set_position(done);
                self.screen.set_bar(bar, &text);
            } else {
                let columns = self.screen.columns();
                let text = total_text(done, self.total, rate, elapsed, columns);
                self.screen.figures(&with_paths(text, &paths, columns));
            }
        }
    }

    /// Reads what is counted: the bytes done, their rate, and the paths.
    fn read(&mut self, now: Instant) -> (u64, f64, Vec<Figures>) {
        let done = match &self.counted {
            Counted::Acked(before) => self.association.stats().bytes_acked + before.get(),
            Counted::Received(bytes) => bytes.get(),
        };
        let done = self.total.map_or(done, |total| done.min(total));
        let rate = self.total_rate.update(now, done);
        (done, rate, self.read_paths(now))
    }

    fn read_paths(&mut self, now: Instant) -> Vec<Figures> {
        let paths = self.association.paths();
        let Self { association, interfaces, screen, lines, counted, .. } = self;
        let is_there = |id: &PathId| paths.iter().any(|path| path.id == *id);
        lines.retain(|id, line| {
            let keeps = is_there(id);
            let gone = line.bar.take_if(|_| !keeps);
            gone.iter().for_each(|bar| screen.remove_bar(bar));
            keeps
        });
        let ends: Vec<_> = paths.iter().map(|p| Ends::of(p, association, interfaces)).collect();
        let labels = labels(&ends);
        let figures = paths.iter().zip(labels).zip(&ends).map(|((path, label), ends)| {
            let line = lines.entry(path.id).or_default();
            let bytes = match counted {
                Counted::Acked(_) => path.counters.acked_bytes,
                Counted::Received(_) => path.counters.data_bytes_received,
            };
            Figures {
                id: path.id,
                label: if screen.is_verbose() { ends.addresses() } else { label },
                bits_per_second: line.rate.update(now, bytes),
                rtt: path.srtt,
                state: state_of(path),
            }
        });
        figures.collect()
    }

    /// Shows a line for each path, as many as the terminal has room for.
    fn show_paths(&mut self, paths: &[Figures], columns: usize) {
        let fit = layout::rows().saturating_sub(ROWS_LEFT).clamp(1, PATHS_MAX);
        let texts = path_lines(&paths[..paths.len().min(fit)], columns - 1);
        for (path, text) in paths.iter().zip(texts) {
            let Some(line) = self.lines.get_mut(&path.id) else { continue };
            let bar = line.bar.get_or_insert_with(|| self.screen.bar(None));
            self.screen.set_bar(bar, &text);
        }
        match paths.len().saturating_sub(fit) {
            0 => self.more.take().iter().for_each(|bar| self.screen.remove_bar(bar)),
            more => {
                let bar = self.more.get_or_insert_with(|| self.screen.bar(None));
                self.screen.set_bar(bar, &format!("and {more} more"));
            }
        }
    }
}

/// The state of a path and its rank, in the words that all views have.
fn state_of(path: &PathStats) -> String {
    let state = state_words(path.state.name(), path.suppressed.is_some());
    match path.rank.to_string().as_str() {
        "normal" => state,
        rank => format!("{state}, {rank}"),
    }
}

/// How far a transfer is, in at most `columns` if they are not very few.
fn total_text(
    done: u64,
    total: Option<u64>,
    rate: f64,
    elapsed: Duration,
    columns: usize,
) -> String {
    let elapsed = time(elapsed.as_secs_f64());
    let Some(total) = total else {
        return format!("{}  {}  {elapsed}", size(done), bit_rate(rate));
    };
    let eta = match (rate > 1.0).then(|| (total - done) as f64 * 8.0 / rate) {
        Some(seconds) => format!("{} left", time(seconds)),
        None => "waiting".to_owned(),
    };
    let percent = (done * 100).checked_div(total).unwrap_or(100);
    let begin = format!("{percent:3} %  {} of {}  {}", size(done), size(total), bit_rate(rate));
    let long = format!("{begin}  {elapsed}, {eta}");
    if layout::width(&long) <= columns { long } else { format!("{begin}  {eta}") }
}

/// The line with the rate of each path, if there are several and there is room for them.
fn with_paths(text: String, paths: &[Figures], columns: usize) -> String {
    let rates = paths.iter().map(|p| format!("{} {}", p.label, bit_rate(p.bits_per_second)));
    let long = format!("{text}; {}", rates.collect::<Vec<_>>().join(", "));
    if paths.len() > 1 && layout::width(&long) <= columns { long } else { text }
}

/// A line for each path, in columns that fit.
fn path_lines(paths: &[Figures], columns: usize) -> Vec<String> {
    let rows: Vec<_> = paths.iter().map(|path| (path, after_label(path))).collect();
    let widest = |of: fn(&(&Figures, String)) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let rest = widest(|(_, rest)| layout::width(rest));
    let number = 4;
    let room = columns.saturating_sub(number + rest).max(LABEL_MIN);
    let label = widest(|(path, _)| layout::width(&path.label)).min(room);
    let line = |(path, rest): &(&Figures, String)| {
        let number = u16::from(path.id.0) + 1;
        format!("{number:>2}  {}{rest}", layout::padded(&path.label, label))
    };
    rows.iter().map(line).collect()
}

/// The figures of a path behind its name, the most important ones first: a narrow terminal cuts
/// the end off.
fn after_label(path: &Figures) -> String {
    let rtt = path.rtt.map_or("-".to_owned(), |rtt| format!("{:.1} ms", rtt.as_secs_f64() * 1e3));
    format!("  {:>12}  RTT {rtt:<9} {}", bit_rate(path.bits_per_second), path.state)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(id: u8, label: &str, bits_per_second: f64, state: &str) -> Figures {
        let rtt = Some(Duration::from_micros(12_340));
        Figures {
            id: PathId(id),
            label: label.to_owned(),
            bits_per_second,
            rtt,
            state: state.into(),
        }
    }

    #[test]
    fn the_lines_of_paths_fit_the_terminal() {
        let paths =
            [path(0, "wlan0", 80.2e6, "active"), path(1, "lte0", 29.7e6, "potentially failed")];
        assert_eq!(
            path_lines(&paths, 79),
            [
                " 1  wlan0   80.2 Mbit/s  RTT 12.3 ms   active",
                " 2  lte0    29.7 Mbit/s  RTT 12.3 ms   potentially failed"
            ]
        );
        let long = "enx0123456789ab 2001:db8:1234:5678:9abc:def0:1234:5678";
        let paths =
            [path(0, long, 999.9e6, "potentially failed, backup"), path(9, "lo", 0.0, "idle")];
        let lines = path_lines(&paths, 79);
        assert!(lines.iter().all(|line| layout::width(line) <= 79), "{lines:#?}");
        assert!(lines[0].starts_with(" 1  enx01") && lines[0].ends_with("backup"), "{lines:#?}");
        assert!(path_lines(&paths, 59).iter().all(|line| line.contains("bit/s  RTT")));
        assert_eq!(path_lines(&[], 79), [""; 0]);
    }

    #[test]
    fn the_total_fits_in_60_columns() {
        let hour = Duration::from_secs(5999);
        let text = |columns| total_text(123_400_000, Some(999_900_000), 999.9e3, hour, columns);
        let long = " 12 %  123.4 MB of 999.9 MB  999.9 kbit/s  99 min 59 s, 1 h 56 min left";
        assert_eq!(text(79), long);
        assert_eq!(text(59), " 12 %  123.4 MB of 999.9 MB  999.9 kbit/s  1 h 56 min left");
        let waiting = total_text(0, Some(10_000), 0.0, Duration::from_secs(10), 100);
        assert_eq!(waiting, "  0 %  0 B of 10.0 kB  0 bit/s  10 s, waiting");
        let unknown = total_text(9_000, None, 8e3, Duration::from_secs(10), 100);
        assert_eq!(unknown, "9.0 kB  8.0 kbit/s  10 s");
    }

    #[test]
    fn a_line_in_a_file_has_the_rates_of_paths_if_there_is_room() {
        let paths = [path(0, "wlan0", 80e6, "active"), path(1, "lte0", 30e6, "active")];
        let said = with_paths("1 MB".to_owned(), &paths, 100);
        assert_eq!(said, "1 MB; wlan0 80.0 Mbit/s, lte0 30.0 Mbit/s");
        assert_eq!(with_paths("1 MB".to_owned(), &paths, 40), "1 MB");
        assert_eq!(with_paths("1 MB".to_owned(), &paths[..1], 100), "1 MB");
    }
}
