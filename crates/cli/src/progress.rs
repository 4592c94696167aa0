//! Progress for a person, on standard error: a line for each path and one for the total.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::ProgressBar;
use manypath::{Association, PathId};
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::args::ReportArgs;
use crate::figures::{Rate, bit_rate, size, time};
use crate::screen::Screen;
use crate::via;

/// How often the lines on a terminal are redrawn.
const REDRAW: Duration = Duration::from_millis(200);
/// How often a line is printed where there is no terminal.
const PLAIN: Duration = Duration::from_secs(10);

/// The source of the count.
#[derive(Clone, Debug)]
pub(crate) enum Counted {
    /// Bytes that the peer has acknowledged, and these, which it had before.
    Acked(Arc<AtomicU64>),
    /// Bytes that the application has received.
    Received(Arc<AtomicU64>),
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
    total: Option<u64>,
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
        let on_terminal = self.screen.has_bars();
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
                self.screen.figures(&total);
            }
        }
    }

    fn show_total(&mut self, now: Instant) -> String {
        let done = match &self.counted {
            Counted::Acked(before) => {
                self.association.stats().bytes_acked + before.load(Ordering::Relaxed)
            }
            Counted::Received(bytes) => bytes.load(Ordering::Relaxed),
        };
        let done = self.total.map_or(done, |total| done.min(total));
        let rate = self.total_rate.update(now, done);
        let elapsed = time((now - self.begin).as_secs_f64());
        let text = match self.total {
            None => format!("{}  {}  {elapsed}", size(done), bit_rate(rate)),
            Some(total) => {
                let eta = match (rate > 1.0).then(|| (total - done) as f64 * 8.0 / rate) {
                    Some(seconds) => format!("{} left", time(seconds)),
                    None => "waiting".to_owned(),
                };
                let percent = (done * 100).checked_div(total).unwrap_or(100);
                let (done, total, rate) = (size(done), size(total), bit_rate(rate));
                format!("{percent:3} %  {done} of {total}  {rate}  {elapsed}, {eta}")
            }
        };
        let bar = self.total_bar.get_or_insert_with(|| self.screen.bar(self.total));
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
                Counted::Acked(_) => bit_rate(rate.update(now, path.counters.acked_bytes)),
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
