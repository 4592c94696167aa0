//! Progress for a person, on standard error: a line for each path and one for the total.

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use manypath::{Association, PathId};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::args::ReportArgs;
use crate::transfer::relative::printable;
use crate::via;

/// How often the lines on a terminal are redrawn.
const REDRAW: Duration = Duration::from_millis(200);
/// How often a line is printed where there is no terminal.
const PLAIN: Duration = Duration::from_secs(10);
/// Time over which the rates shown are smoothed, in seconds.
const SMOOTHING_S: f64 = 0.5;

/// Where messages for the user go.
#[derive(Clone, Debug)]
pub(crate) enum Screen {
    /// Nowhere: `--quiet`.
    Silent,
    /// Lines on standard error: not a terminal, or `--json`.
    Plain,
    /// Lines above the bars on a terminal.
    Bars(MultiProgress),
}

impl Screen {
    /// The screen that the user asked for.
    pub(crate) fn new(report: &ReportArgs) -> Screen {
        if report.quiet {
            Screen::Silent
        } else if report.json || !std::io::stderr().is_terminal() {
            Screen::Plain
        } else {
            Screen::Bars(MultiProgress::with_draw_target(ProgressDrawTarget::stderr()))
        }
    }

    /// Tells the user something. Whatever it contains, a terminal obeys none of it.
    pub(crate) fn line(&self, text: &str) {
        let text = &shown(text);
        match self {
            Screen::Silent => {}
            Screen::Plain => eprintln!("{text}"),
            // A terminal that went away loses messages, nothing else.
            Screen::Bars(bars) => drop(bars.println(text)),
        }
    }

    /// A line at the bottom that the caller rewrites; hidden where there are no bars.
    pub(crate) fn bar(&self, total: Option<u64>) -> ProgressBar {
        let Screen::Bars(bars) = self else { return ProgressBar::hidden() };
        let bar = match total {
            Some(total) => ProgressBar::new(total.max(1)).with_style(style("{bar:24} {msg}")),
            None => ProgressBar::no_length().with_style(style("{msg}")),
        };
        bars.add(bar)
    }
}

/// `text` as lines, with whatever is not plain text escaped: parts of it may come from the network.
pub(crate) fn shown(text: &str) -> String {
    text.split('\n').map(printable).collect::<Vec<_>>().join("\n")
}

fn style(template: &str) -> ProgressStyle {
    // The templates are constants of this file.
    ProgressStyle::with_template(template)
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("█▓░")
}

/// The source of the count.
#[derive(Clone, Debug)]
pub(crate) enum Counted {
    /// Bytes that the peer has acknowledged.
    Acked,
    /// Bytes that the application has received.
    Received(Arc<AtomicU64>),
}

/// A task that shows how a transfer goes.
#[derive(Debug)]
pub(crate) struct Progress {
    task: Option<JoinHandle<()>>,
}

impl Progress {
    /// Shows the progress of `association` towards `total` bytes.
    pub(crate) fn start(
        screen: &Screen,
        report: &ReportArgs,
        association: &Association,
        total: u64,
        counted: Counted,
    ) -> Progress {
        if report.json || matches!(screen, Screen::Silent) {
            return Progress { task: None };
        }
        let view = View {
            screen: screen.clone(),
            association: association.clone(),
            total,
            counted,
            begin: Instant::now(),
            lines: BTreeMap::new(),
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
    total: u64,
    counted: Counted,
    begin: Instant,
    lines: BTreeMap<PathId, (ProgressBar, Rate)>,
    total_bar: Option<ProgressBar>,
    total_rate: Rate,
}

impl Drop for View {
    fn drop(&mut self) {
        let paths = self.lines.values().map(|(bar, _)| bar);
        paths.chain(&self.total_bar).for_each(ProgressBar::finish_and_clear);
    }
}

impl View {
    async fn run(mut self) {
        let on_terminal = matches!(self.screen, Screen::Bars(_));
        let mut ticks = interval(if on_terminal { REDRAW } else { PLAIN });
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        ticks.tick().await; // the first comes at once
        loop {
            ticks.tick().await;
            let now = Instant::now();
            let total = self.show_total(now);
            if on_terminal {
                self.show_paths(now);
            } else {
                self.screen.line(&total);
            }
        }
    }

    fn show_total(&mut self, now: Instant) -> String {
        let done = match &self.counted {
            Counted::Acked => self.association.stats().bytes_acked,
            Counted::Received(bytes) => bytes.load(Ordering::Relaxed),
        };
        let done = done.min(self.total);
        let rate = self.total_rate.update(now, done);
        let eta = match (rate > 1.0).then(|| (self.total - done) as f64 * 8.0 / rate) {
            Some(seconds) => format!("{} left", time(seconds)),
            None => "waiting".to_owned(),
        };
        let percent = (done * 100).checked_div(self.total).unwrap_or(100);
        let elapsed = time((now - self.begin).as_secs_f64());
        let text = format!(
            "{percent:3} %  {} of {}  {}  {elapsed}, {eta}",
            size(done),
            size(self.total),
            bit_rate(rate)
        );
        let bar = self.total_bar.get_or_insert_with(|| self.screen.bar(Some(self.total)));
        bar.set_position(done);
        bar.set_message(text.clone());
        text
    }

    fn show_paths(&mut self, now: Instant) {
        for path in self.association.paths() {
            let (line, rate) = self
                .lines
                .entry(path.id)
                .or_insert_with(|| (self.screen.bar(None), Rate::default()));
            // Of what arrives, only the packets are counted by path.
            let rate = match self.counted {
                Counted::Acked => bit_rate(rate.update(now, path.counters.acked_bytes)),
                Counted::Received(_) => {
                    format!(
                        "{:.0} packets/s",
                        rate.update(now, path.counters.packets_received) / 8.0
                    )
                }
            };
            let rtt = path
                .srtt
                .map_or("-".to_owned(), |rtt| format!("{:.1} ms", rtt.as_secs_f64() * 1e3));
            let relay = via::text(self.association.relay(path.local).as_deref());
            let ends = format!("{} - {}{relay}", path.local, path.remote);
            let state = path.state.name().replace('_', " ");
            line.set_message(format!("{}  {ends:45}  {state:18}  {rate:>14}  RTT {rtt}", path.id));
        }
    }
}

/// A smoothed rate of a growing count of bytes.
#[derive(Debug, Default)]
pub(crate) struct Rate {
    last: Option<(Instant, u64)>,
    bits_per_second: Option<f64>,
}

impl Rate {
    /// Adds what is counted now; the rate in bit/s.
    pub(crate) fn update(&mut self, now: Instant, bytes: u64) -> f64 {
        if let Some((then, before)) = self.last.replace((now, bytes)) {
            let seconds = (now - then).as_secs_f64();
            if seconds > 0.0 {
                let new = bytes.saturating_sub(before) as f64 * 8.0 / seconds;
                let old = self.bits_per_second.unwrap_or(new);
                // An interval weighs the more the longer it is.
                let weight = 1.0 - (-seconds / SMOOTHING_S).exp();
                self.bits_per_second = Some(old + weight * (new - old));
            }
        }
        self.bits_per_second.unwrap_or(0.0)
    }
}

/// A rate as a person reads it.
pub(crate) fn bit_rate(bits_per_second: f64) -> String {
    decimal(bits_per_second, "bit/s")
}

/// A size as a person reads it; 1 MB is 10^6 bytes.
pub(crate) fn size(bytes: u64) -> String {
    decimal(bytes as f64, "B")
}

fn decimal(value: f64, unit: &str) -> String {
    let (scaled, prefix) = match value {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e3 => (v / 1e3, "k"),
        v => return format!("{v:.0} {unit}"),
    };
    format!("{scaled:.1} {prefix}{unit}")
}

/// A time in seconds as a person reads it.
pub(crate) fn time(seconds: f64) -> String {
    let whole = seconds.round().min(1e9) as u64;
    match whole {
        0..=99 => format!("{whole} s"),
        100..=5999 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_with_prefixes() {
        assert_eq!(bit_rate(39_400_000.0), "39.4 Mbit/s");
        assert_eq!((size(999), size(60_000_000)), ("999 B".to_owned(), "60.0 MB".to_owned()));
        assert_eq!([time(3.4), time(125.0), time(7300.0)], ["3 s", "2 min 05 s", "2 h 01 min"]);
    }

    #[test]
    fn lines_are_kept_and_what_a_terminal_obeys_is_not() {
        assert_eq!(shown("a\n  try: \x1b]0;x\x07b"), "a\n  try: \\u{1b}]0;x\\u{7}b");
    }

    #[tokio::test]
    async fn a_rate_follows_over_half_a_second() {
        let (start, mut rate) = (Instant::now(), Rate::default());
        assert_eq!(rate.update(start, 0), 0.0);
        assert_eq!(rate.update(start + Duration::from_secs(1), 1000), 8000.0);
        let next = rate.update(start + Duration::from_millis(1500), 1000);
        assert!((next - 8000.0 / std::f64::consts::E).abs() < 1e-6, "{next}");
    }
}
