//! The traffic of each interval of a measurement: lines for people, JSON lines for scripts.

use std::collections::BTreeMap;
use std::time::Duration;

use manypath::{Association, PathId, PathState, PathStats};
use manypath_live::Interfaces;
use serde::Serialize;
use tokio::time::{Instant, MissedTickBehavior};

use super::frame::Direction;
use super::run::Run;
use crate::failure::{Failure, Result};
use crate::screen::Screen;
use crate::screen::figures::bit_rate;
use crate::screen::labels::{Ends, label};
use crate::screen::layout;
use crate::screen::output;

/// The interval unless the user gives one.
const DEFAULT: Duration = Duration::from_secs(1);
/// The shortest one, in seconds.
const SHORTEST_S: f64 = 0.1;
/// The longest one, in seconds.
const LONGEST_S: f64 = 60.0;
/// Columns before a path that has no room behind the total.
const INDENT: usize = 10;
/// Intervals kept for the result: those of an hour.
const KEPT_MAX: usize = 36_100;

/// How intervals are reported.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Reporting {
    /// The length of an interval.
    every: Duration,
    /// Tells the traffic of each path too, and the rest after the last full interval.
    in_detail: bool,
    /// Prints a JSON line for each interval.
    json: bool,
}

impl Reporting {
    /// As `--interval SECONDS` and `--json` say.
    pub(crate) fn new(interval: Option<f64>, json: bool) -> Result<Reporting> {
        let every = match interval {
            None => DEFAULT,
            Some(s) if (SHORTEST_S..=LONGEST_S).contains(&s) => Duration::from_secs_f64(s),
            Some(s) => {
                let what = format!("--interval {s}: not from {SHORTEST_S} to {LONGEST_S} seconds");
                return Err(Failure::usage(what));
            }
        };
        Ok(Reporting { every, in_detail: interval.is_some(), json: json && interval.is_some() })
    }
}

/// The rates of one interval, as the result lists them.
#[derive(Debug, Serialize)]
pub(crate) struct Interval {
    /// Its end, in seconds from the beginning.
    at_s: f64,
    /// Towards the server, acknowledged.
    up_bps: u64,
    /// From the server, received.
    down_bps: u64,
}

/// Bytes within an interval, and their rate in bit/s.
#[derive(Copy, Clone, Debug, PartialEq, Serialize)]
struct Amount {
    bytes: u64,
    bps: u64,
}

impl Amount {
    fn new(now: u64, before: u64, seconds: f64) -> Amount {
        let bytes = now.saturating_sub(before);
        let bps = if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
        Amount { bytes, bps: bps as u64 }
    }
}

/// A line of JSON: one interval. The keys are a public contract.
#[derive(Debug, Serialize)]
struct Line {
    event: &'static str,
    begin_s: f64,
    end_s: f64,
    /// Content in both directions.
    #[serde(flatten)]
    content: Amount,
    up: Option<Amount>,
    down: Option<Amount>,
    paths: Vec<PathLine>,
}

/// The traffic of a path in one interval.
#[derive(Debug, Serialize)]
struct PathLine {
    path: u16,
    interface: Option<String>,
    state: PathState,
    /// The name for a person.
    #[serde(skip)]
    label: String,
    /// User bytes that were acknowledged and last sent on this path.
    up: Option<Amount>,
    /// Bytes of the packets received on this path, headers and retransmissions included.
    down: Option<Amount>,
}

/// The counters at an instant.
#[derive(Clone, Debug)]
struct Counts {
    at: Instant,
    up: u64,
    down: u64,
    /// Of each path: user bytes acknowledged, bytes of packets received.
    paths: BTreeMap<PathId, (u64, u64)>,
}

/// Reports the intervals of a measurement.
#[derive(Debug)]
pub(crate) struct Intervals<'a> {
    association: &'a Association,
    run: &'a Run<'a>,
    reporting: Reporting,
    direction: Direction,
    screen: &'a Screen,
    /// User bytes sent before the content: the frames of the measurement itself.
    sent_before: u64,
    last: Counts,
    kept: Vec<Interval>,
    interfaces: Interfaces,
}

impl<'a> Intervals<'a> {
    /// Counts from now on; nothing may have been sent since `run` began.
    pub(crate) fn new(
        run: &'a Run<'a>,
        association: &'a Association,
        reporting: Reporting,
        direction: Direction,
        screen: &'a Screen,
    ) -> Intervals<'a> {
        let sent_before = association.stats().bytes_acked + association.unacked_bytes() as u64;
        let paths = counts_of(&association.paths());
        let last = Counts { at: run.begin(), up: 0, down: 0, paths };
        Intervals {
            association,
            run,
            reporting,
            direction,
            screen,
            sent_before,
            last,
            kept: Vec::new(),
            interfaces: Interfaces::default(),
        }
    }

    /// Reports each interval when it is over; ends only with an error.
    pub(crate) async fn report(&mut self) -> Failure {
        let every = self.reporting.every;
        let mut ticks = tokio::time::interval_at(self.run.begin() + every, every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            ticks.tick().await;
            if let Err(failure) = self.count(self.acked(), self.run.received()) {
                return failure;
            }
        }
    }

    /// Reports the rest, with the content bytes that both ends counted in the end.
    pub(crate) fn finish(&mut self, up: u64, down: u64) -> Result<()> {
        if self.reporting.in_detail {
            self.count(up, down)?;
        }
        Ok(())
    }

    /// Content bytes that the peer has acknowledged so far. No frame that follows the content
    /// counts as content.
    pub(crate) fn acked(&self) -> u64 {
        let acked = self.association.stats().bytes_acked.saturating_sub(self.sent_before);
        acked.min(self.run.sent())
    }

    /// The intervals for the result.
    pub(crate) fn kept(self) -> Vec<Interval> {
        self.kept
    }

    /// An interval is over.
    fn count(&mut self, up: u64, down: u64) -> Result<()> {
        let stats = self.association.paths();
        let now = Counts { at: Instant::now(), up, down, paths: counts_of(&stats) };
        let before = std::mem::replace(&mut self.last, now);
        let ends = stats.iter().map(|p| Ends::of(p, self.association, &mut self.interfaces));
        let paths = Paths { stats: &stats, ends: ends.collect() };
        let line = line(self.direction, self.run.begin(), &before, &self.last, &paths);
        self.screen.figures(&text(&line, self.reporting.in_detail, self.screen.columns()));
        if self.kept.len() < KEPT_MAX {
            let bps = |amount: Option<Amount>| amount.map_or(0, |amount| amount.bps);
            let (up_bps, down_bps) = (bps(line.up), bps(line.down));
            self.kept.push(Interval { at_s: line.end_s, up_bps, down_bps });
        }
        match (self.reporting.json, serde_json::to_string(&line)) {
            (true, Ok(json)) => output::print(&format!("{json}\n")),
            (true, Err(e)) => Err(Failure::failed(format!("cannot write an interval: {e}"))),
            (false, _) => Ok(()),
        }
    }
}

fn counts_of(paths: &[PathStats]) -> BTreeMap<PathId, (u64, u64)> {
    let counts = |path: &PathStats| (path.counters.acked_bytes, path.counters.bytes_received);
    paths.iter().map(|path| (path.id, counts(path))).collect()
}

/// The paths of an association and their ends, in one order.
struct Paths<'a> {
    stats: &'a [PathStats],
    ends: Vec<Ends>,
}

fn line(
    direction: Direction,
    begin: Instant,
    before: &Counts,
    now: &Counts,
    paths: &Paths<'_>,
) -> Line {
    let seconds = (now.at - before.at).as_secs_f64();
    let amount = |now, before| Amount::new(now, before, seconds);
    let is_up = direction != Direction::Down;
    let is_down = direction != Direction::Up;
    let path_line = |(path, ends): (&PathStats, &Ends)| {
        let (up, down) = now.paths.get(&path.id).copied().unwrap_or_default();
        let (up_before, down_before) = before.paths.get(&path.id).copied().unwrap_or_default();
        PathLine {
            path: u16::from(path.id.0) + 1,
            interface: ends.interface.clone(),
            state: path.state,
            label: label(ends, &paths.ends),
            up: is_up.then(|| amount(up, up_before)),
            down: is_down.then(|| amount(down, down_before)),
        }
    };
    Line {
        event: "interval",
        begin_s: (before.at - begin).as_secs_f64(),
        end_s: (now.at - begin).as_secs_f64(),
        content: amount(now.up + now.down, before.up + before.down),
        up: is_up.then(|| amount(now.up, before.up)),
        down: is_down.then(|| amount(now.down, before.down)),
        paths: paths.stats.iter().zip(&paths.ends).map(path_line).collect(),
    }
}

/// An interval as a person reads it: the total, and in detail the paths behind it or on lines of
/// their own.
fn text(line: &Line, in_detail: bool, columns: usize) -> String {
    let both = |up: Option<Amount>, down: Option<Amount>| {
        let rate = |amount: Amount| bit_rate(amount.bps as f64);
        match (up.map(rate), down.map(rate)) {
            (Some(up), Some(down)) => format!("up {up}, down {down}"),
            (up, down) => up.or(down).unwrap_or_default(),
        }
    };
    let total = both(line.up, line.down);
    if !in_detail {
        return format!("{:6.1} s  {total}", line.end_s);
    }
    let text = format!("{:7.2} to {:7.2} s  {total:>14}", line.begin_s, line.end_s);
    if line.paths.len() <= 1 {
        return text;
    }
    let path = |path: &PathLine| format!("{}: {}", path.label, both(path.up, path.down));
    let paths: Vec<_> = line.paths.iter().map(path).collect();
    let long = [&text, &*paths.join("  ")].join("  ");
    if layout::width(&long) <= columns {
        return long;
    }
    paths.iter().fold(text, |text, path| text + "\n" + &" ".repeat(INDENT) + path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_from_a_tenth_to_sixty_seconds() {
        for s in [0.1, 0.25, 60.0] {
            assert_eq!(Reporting::new(Some(s), false).unwrap().every, Duration::from_secs_f64(s));
        }
        for s in [0.0, -1.0, 0.099, 60.1, f64::NAN, f64::INFINITY] {
            let failure = Reporting::new(Some(s), false).unwrap_err();
            assert!(failure.message.contains("0.1 to 60"), "{failure}");
        }
    }

    #[test]
    fn json_lines_come_only_with_an_interval() {
        let is_json = |interval, json| Reporting::new(interval, json).unwrap().json;
        assert!(is_json(Some(1.0), true));
        assert!(!is_json(None, true) && !is_json(Some(1.0), false));
    }

    #[test]
    fn amounts_have_their_rate_and_never_less_than_nothing() {
        assert_eq!(Amount::new(1500, 500, 0.5), Amount { bytes: 1000, bps: 16_000 });
        assert_eq!(Amount::new(500, 1500, 0.5), Amount { bytes: 0, bps: 0 });
        assert_eq!(Amount::new(500, 0, 0.0), Amount { bytes: 500, bps: 0 });
    }

    #[test]
    fn people_see_each_path_of_several() {
        let amount = |bps| Some(Amount { bytes: bps / 16, bps });
        let path = |path, label: &str, bps| PathLine {
            path,
            interface: None,
            state: PathState::Active,
            label: label.to_owned(),
            up: amount(bps),
            down: None,
        };
        let paths = vec![path(1, "wlan0", 19_000_000), path(2, "lte0", 4_000_000)];
        let content = Amount { bytes: 1_437_500, bps: 23_000_000 };
        let (up, down) = (Some(content), None);
        let line = Line { event: "interval", begin_s: 0.5, end_s: 1.0, content, up, down, paths };
        let told = text(&line, true, 80);
        assert_eq!(
            told,
            "   0.50 to    1.00 s     23.0 Mbit/s  wlan0: 19.0 Mbit/s  lte0: 4.0 Mbit/s"
        );
        let narrow = text(&line, true, 60);
        assert_eq!(
            narrow,
            "   0.50 to    1.00 s     23.0 Mbit/s\n          wlan0: 19.0 Mbit/s\n          lte0: 4.0 Mbit/s"
        );
        assert_eq!(text(&line, false, 80), "   1.0 s  23.0 Mbit/s");
        let line = Line { paths: vec![path(1, "lo", 1_000)], down: amount(8_000), ..line };
        assert_eq!(text(&line, true, 80), "   0.50 to    1.00 s  up 23.0 Mbit/s, down 8.0 kbit/s");
    }
}
