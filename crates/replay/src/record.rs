//! Reading records.

use std::io::BufRead;

use manypath_trace::{
    Event, PathSample, ReadErrorKind, Recorded, Recording, Records, SCHEMA_VERSION, TransferSample,
};

/// Lines that are read at most: those of a transfer over eight paths that lasts a week.
const MOST_LINES: usize = 4_000_000;

/// The longest record, in seconds: 31 days.
const LONGEST_S: f64 = 31.0 * 86_400.0;
/// The longest round-trip time, in seconds.
const RTT_MAX_S: f64 = 3600.0;

/// The record of a transfer.
#[derive(Clone, Debug)]
pub struct Record {
    /// The transfer that it is of.
    pub recording: Recording,
    /// The paths, in the order in which they came.
    pub paths: Vec<PathRecord>,
    /// The association over time, by seconds since the beginning.
    pub transfer: Vec<(f64, TransferSample)>,
    /// The end; `None` if the record is cut short.
    pub end: Option<Recorded>,
    /// Pairs of paths that the sender itself found to share a bottleneck.
    pub found_shared: Vec<(u16, u16)>,
}

/// The record of a path.
#[derive(Clone, Debug)]
pub struct PathRecord {
    /// Its number, from 1. A later path may have it again.
    pub number: u16,
    /// The sender's transport address.
    pub local: String,
    /// The receiver's transport address.
    pub remote: String,
    /// When it was added, in seconds.
    pub added_s: f64,
    /// When it was removed, if it was.
    pub removed_s: Option<f64>,
    /// The path over time.
    pub samples: Vec<(f64, PathSample)>,
}

/// A file that is no record that can be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// It is something else.
    #[error("not the record of a transfer")]
    NotARecord,
    /// It has the events of a simulated run.
    #[error("a trace of the events of a simulated run, not the record of a transfer")]
    SimulatorTrace,
    /// A line is damaged.
    #[error("{0}")]
    Line(#[from] manypath_trace::ReadError),
    /// Another version wrote it.
    #[error("a record of schema {found}; this program reads schema {SCHEMA_VERSION}")]
    Version {
        /// Its version.
        found: u32,
    },
    /// A time in it cannot be one of a transfer.
    #[error("a time that no transfer has: {0} s")]
    Time(f64),
    /// It has too many lines.
    #[error("more than {MOST_LINES} lines")]
    TooLong,
}

impl Record {
    /// Reads a record. One that was cut short in the middle of a line is read up to there.
    ///
    /// # Errors
    /// Says why the file cannot be used.
    pub fn read(input: impl BufRead) -> Result<Record, RecordError> {
        let mut records = Records::new(input).peekable();
        let recording = match records.next() {
            Some(Ok(first)) => match first.event {
                Event::Recording(recording) => recording,
                Event::Run { .. } => return Err(RecordError::SimulatorTrace),
                _ => return Err(RecordError::NotARecord),
            },
            Some(Err(error)) if matches!(error.kind, ReadErrorKind::Io(_)) => {
                return Err(error.into());
            }
            Some(Err(_)) | None => return Err(RecordError::NotARecord),
        };
        if recording.schema != SCHEMA_VERSION {
            return Err(RecordError::Version { found: recording.schema });
        }
        let mut record = Record {
            recording,
            paths: Vec::new(),
            transfer: Vec::new(),
            end: None,
            found_shared: Vec::new(),
        };
        let mut lines = 0;
        while let Some(next) = records.next() {
            lines += 1;
            if lines > MOST_LINES {
                return Err(RecordError::TooLong);
            }
            match next {
                Ok(line) => {
                    let at = line.time.as_secs_f64();
                    check_times(at, &line.event)?;
                    record.add(at, line.event);
                }
                // The last line of a program that was killed, or of a full disk.
                Err(error) if is_of_content(&error.kind) && records.peek().is_none() => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(record)
    }

    fn add(&mut self, at: f64, event: Event) {
        match event {
            Event::PathAdded { path, local, remote, .. } => self.paths.push(PathRecord {
                number: path,
                local,
                remote,
                added_s: at,
                removed_s: None,
                samples: Vec::new(),
            }),
            Event::PathSample(sample) => {
                if let Some(path) = self.path(sample.path) {
                    path.samples.push((at, sample));
                }
            }
            Event::PathRemoved { path } => {
                if let Some(path) = self.path(path) {
                    path.removed_s = Some(at);
                }
            }
            Event::TransferSample(sample) => self.transfer.push((at, sample)),
            Event::SharedBottleneck { paths, .. } => self.found_shared.push(paths),
            Event::Recorded(end) => self.end = Some(end),
            _ => {}
        }
    }

    /// The path that has this number now.
    fn path(&mut self, number: u16) -> Option<&mut PathRecord> {
        self.paths.iter_mut().rev().find(|path| path.number == number)
    }

    /// User bytes that were handed over before the beginning, such as those of a greeting.
    fn bytes_before(&self) -> u64 {
        match (&self.end, self.transfer.first(), self.transfer.last()) {
            (Some(Recorded { content_bytes: Some(_), .. }), Some((_, first)), _) => {
                first.acked_bytes
            }
            _ => 0,
        }
    }

    /// Bytes of content that arrived.
    pub fn bytes(&self) -> u64 {
        let acked = self.transfer.last().map_or(0, |(_, last)| last.acked_bytes);
        let acked = acked.saturating_sub(self.bytes_before());
        let wanted = self.end.as_ref().and_then(|end| end.content_bytes);
        wanted.map_or(acked, |wanted| wanted.min(acked))
    }

    /// From the beginning until the sender knew that all content which arrived had arrived, in
    /// seconds.
    pub fn time_s(&self) -> f64 {
        let until = self.bytes_before() + self.bytes();
        let done = self.transfer.iter().find(|(_, sample)| sample.acked_bytes >= until);
        done.map_or(0.0, |(at, sample)| at.midpoint(sample.since_s.max(at - 0.02)))
    }

    /// The transfer came to its end.
    pub fn is_complete(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.completed)
    }
}

/// An error if a time of an event at `at` is none, or longer than a replay can take.
fn check_times(at: f64, event: &Event) -> Result<(), RecordError> {
    let (times, rtts) = match event {
        Event::PathSample(sample) => {
            ([Some(at), Some(sample.since_s)], [sample.rtt_s, sample.rtt_heartbeat_s])
        }
        Event::TransferSample(sample) => ([Some(at), Some(sample.since_s)], [None; 2]),
        Event::Recorded(end) => ([Some(at), end.transfer_time_s], [None; 2]),
        _ => ([Some(at), None], [None; 2]),
    };
    let bounded = times.into_iter().zip([LONGEST_S; 2]).chain(rtts.into_iter().zip([RTT_MAX_S; 2]));
    for (time, most) in bounded {
        if let Some(time) = time.filter(|time| !(0.0..=most).contains(time)) {
            return Err(RecordError::Time(time));
        }
    }
    Ok(())
}

fn is_of_content(kind: &ReadErrorKind) -> bool {
    matches!(kind, ReadErrorKind::NotARecord(_))
}
