//! Samples a transfer into a record.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use manypath_proto::{AssocStats, Instant, PathStats};

use crate::event::{Event, path_number};
use crate::json_lines::JsonLines;
use crate::recording::{PathSample, RECORD_HOST, Recorded, Recording, TransferSample};

/// The time between two looks at first.
const INTERVAL: Duration = Duration::from_millis(10);
/// Looks that wrote something before the interval doubles: at least a minute.
const LOOKS: u32 = 6000;

/// Writes the record of one transfer, as its sender sees it.
///
/// Whoever drives the engine calls [`look`](Self::look) when [`next_look`](Self::next_look) is
/// over. A look writes a line for each path and for the association if something changed. The time
/// between looks doubles after each 6000 that wrote something, so a record grows with the logarithm
/// of the time: 1.5 MB for each path in the first minute, 9 MB in an hour.
#[derive(Debug)]
pub struct Recorder<W> {
    lines: JsonLines<W>,
    interval: Duration,
    looks: u32,
    next: Instant,
    last: Instant,
    paths: BTreeMap<u16, PathSample>,
    transfer: Option<TransferSample>,
}

impl<W: Write> Recorder<W> {
    /// Begins the record. Instants of all calls count from the same beginning, which should be the
    /// moment at which content is first sent.
    ///
    /// # Errors
    /// The writer's.
    pub fn new(out: W, recording: Recording) -> io::Result<Recorder<W>> {
        let mut lines = JsonLines::new(out);
        lines.write(Instant::ZERO, RECORD_HOST, &Event::Recording(recording))?;
        Ok(Recorder {
            lines,
            interval: INTERVAL,
            looks: 0,
            next: Instant::ZERO,
            last: Instant::ZERO,
            paths: BTreeMap::new(),
            transfer: None,
        })
    }

    /// When to look next.
    pub fn next_look(&self) -> Instant {
        self.next
    }

    /// Writes what has changed since the last look.
    ///
    /// # Errors
    /// The writer's. No more can be written then.
    pub fn look(
        &mut self,
        now: Instant,
        stats: &AssocStats,
        paths: impl IntoIterator<Item = PathStats>,
    ) -> io::Result<()> {
        let since_s = self.last.as_secs_f64();
        let (mut wrote, mut there) = (false, Vec::new());
        for path in paths {
            let number = path_number(path.id);
            there.push(number);
            if !self.paths.contains_key(&number) {
                let added = Event::PathAdded {
                    path: number,
                    local: path.local.to_string(),
                    remote: path.remote.to_string(),
                    state: path.state.name().to_owned(),
                };
                self.lines.write(now, RECORD_HOST, &added)?;
            }
            let sample = PathSample::of(&path, since_s);
            if self.paths.get(&number).is_none_or(|seen| seen.differs(&sample)) {
                self.lines.write(now, RECORD_HOST, &Event::PathSample(sample.clone()))?;
                self.paths.insert(number, sample);
                wrote = true;
            }
        }
        let gone: Vec<u16> =
            self.paths.keys().filter(|path| !there.contains(path)).copied().collect();
        for path in gone {
            self.paths.remove(&path);
            self.lines.write(now, RECORD_HOST, &Event::PathRemoved { path })?;
        }
        let sample = TransferSample::of(stats, since_s);
        if self.transfer.as_ref().is_none_or(|seen| seen.differs(&sample)) {
            self.lines.write(now, RECORD_HOST, &Event::TransferSample(sample.clone()))?;
            self.transfer = Some(sample);
            wrote = true;
        }
        self.looks += u32::from(wrote);
        if self.looks == LOOKS {
            (self.looks, self.interval) = (0, self.interval * 2);
        }
        (self.last, self.next) = (now, now + self.interval);
        Ok(())
    }

    /// Writes an event of the engine, if traces have it.
    ///
    /// # Errors
    /// The writer's.
    pub fn event(&mut self, now: Instant, event: &manypath_proto::Event) -> io::Result<()> {
        match Event::of(event) {
            Some(event) => self.lines.write(now, RECORD_HOST, &event),
            None => Ok(()),
        }
    }

    /// Ends the record.
    ///
    /// # Errors
    /// The writer's.
    pub fn finish(mut self, now: Instant, end: Recorded) -> io::Result<W> {
        self.lines.write(now, RECORD_HOST, &Event::Recorded(end))?;
        self.lines.flush()?;
        Ok(self.lines.into_inner())
    }
}
