//! Traces as JSON lines: one object a line.

use std::io::{self, BufRead, Read, Write};

use manypath_proto::Instant;
use serde::Serialize;

use crate::event::{Event, Record, seconds};

/// Longest line that is read, in bytes. A SACK with all the gaps that fit a packet of 64 KiB has
/// less.
pub const MAX_LINE: usize = 4 << 20;

/// Writes events, one a line. Give it a buffered writer.
#[derive(Debug)]
pub struct JsonLines<W> {
    out: W,
}

/// [`Record`] with what a writer has at hand.
#[derive(Serialize)]
struct Line<'e> {
    #[serde(rename = "time_s", with = "seconds")]
    time: Instant,
    host: &'e str,
    #[serde(flatten)]
    event: &'e Event,
}

impl<W: Write> JsonLines<W> {
    /// Writes to `out`.
    pub fn new(out: W) -> JsonLines<W> {
        JsonLines { out }
    }

    /// Writes one line.
    ///
    /// # Errors
    /// The writer's.
    pub fn write(&mut self, time: Instant, host: &str, event: &Event) -> io::Result<()> {
        serde_json::to_writer(&mut self.out, &Line { time, host, event })?;
        self.out.write_all(b"\n")
    }

    /// Writes out what is buffered.
    ///
    /// # Errors
    /// The writer's.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The writer.
    pub fn into_inner(self) -> W {
        self.out
    }
}

/// The records of a trace, read one at a time. After an error of a line the next line is read;
/// after one of the reader, none.
#[derive(Debug)]
pub struct Records<R> {
    input: R,
    line: u64,
    buffer: Vec<u8>,
    is_over: bool,
}

/// A trace that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {kind}")]
#[non_exhaustive]
pub struct ReadError {
    /// The line, from 1.
    pub line: u64,
    /// The kind of error.
    pub kind: ReadErrorKind,
}

/// Error in a trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// The reader failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Not a record.
    #[error(
        "not a record of a trace: {0}; each line is one JSON object with time_s, host and event"
    )]
    NotARecord(#[from] serde_json::Error),
    /// Longer than [`MAX_LINE`].
    #[error("longer than {MAX_LINE} bytes; is this a trace in JSON lines?")]
    TooLong,
}

impl<R: BufRead> Records<R> {
    /// Reads from `input`.
    pub fn new(input: R) -> Records<R> {
        Records { input, line: 0, buffer: Vec::new(), is_over: false }
    }

    /// Reads a line into the buffer. False at the end.
    fn read_line(&mut self) -> Result<bool, ReadErrorKind> {
        self.buffer.clear();
        let mut limited = (&mut self.input).take(MAX_LINE as u64 + 1);
        if limited.read_until(b'\n', &mut self.buffer)? == 0 {
            return Ok(false);
        }
        if self.buffer.last() != Some(&b'\n') && self.buffer.len() > MAX_LINE {
            return Err(ReadErrorKind::TooLong);
        }
        Ok(true)
    }
}

impl<R: BufRead> Iterator for Records<R> {
    type Item = Result<Record, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_over {
            self.line += 1;
            let line = self.line;
            match self.read_line() {
                Ok(false) => self.is_over = true,
                Ok(true) if self.buffer.iter().all(u8::is_ascii_whitespace) => {}
                Ok(true) => {
                    let record = serde_json::from_slice(&self.buffer);
                    return Some(record.map_err(|e| ReadError { line, kind: e.into() }));
                }
                Err(kind) => {
                    self.is_over = true;
                    return Some(Err(ReadError { line, kind }));
                }
            }
        }
        None
    }
}
