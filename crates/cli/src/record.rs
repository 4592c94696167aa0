//! `--trace FILE` of `send` and `perf client`: the record of what this end sends.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, SystemTime};

use manypath::config::{Config, Origin};
use manypath::{Association, Event};
use manypath_trace::{Recorded, Recorder, Recording, SCHEMA_VERSION};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::failure::{Failure, Result};
use crate::screen::Screen;

/// Bytes of IP and UDP headers.
const HEADERS_V4: u64 = 28;
const HEADERS_V6: u64 = 48;
/// How long the end of a transfer waits for a slow disk.
const PATIENCE: Duration = Duration::from_secs(2);

/// A file for a record, before there is anything to record.
#[derive(Debug)]
pub(crate) struct RecordFile {
    path: PathBuf,
    file: File,
}

/// A record under way. A thread of its own looks and writes, so that no disk slows the transfer.
#[derive(Debug)]
pub(crate) struct TransferRecord {
    path: PathBuf,
    told: mpsc::Sender<Told>,
    done: tokio::sync::oneshot::Receiver<io::Result<()>>,
    events: JoinHandle<()>,
}

/// A message to the thread.
enum Told {
    Event(Box<Event>),
    End(Recorded),
}

impl RecordFile {
    /// Opens the file of `--trace`, if there is one.
    pub(crate) fn create(path: Option<&Path>) -> Result<Option<RecordFile>> {
        let Some(path) = path else { return Ok(None) };
        let file = File::create(path).map_err(|e| {
            Failure::failed(format!("--trace: cannot write {}: {e}", path.display()))
        })?;
        Ok(Some(RecordFile { path: path.to_owned(), file }))
    }

    /// Begins to record what the association sends. `rate` is what the application offers, in
    /// bit/s, if that is limited.
    pub(crate) fn start(self, association: &Association, rate: Option<u64>) -> TransferRecord {
        let (told, heard) = mpsc::channel();
        let (done_tx, done) = tokio::sync::oneshot::channel();
        let recording = recording(association, rate);
        let (association, begin) = (association.clone(), Instant::now());
        let (events, path, file) = (forward(&association, told.clone()), self.path, self.file);
        std::thread::spawn(move || {
            // Nobody hears it if the transfer has broken off.
            let _ = done_tx.send(record(file, recording, &association, begin, &heard));
        });
        TransferRecord { path, told, done, events }
    }
}

impl TransferRecord {
    /// Ends the record. An error is told to the user and does not fail the transfer.
    pub(crate) async fn finish(mut self, end: Recorded, screen: &Screen) {
        self.events.abort();
        // If the thread has ended, it says why.
        let _ = self.told.send(Told::End(end));
        let path = self.path.display();
        match tokio::time::timeout(PATIENCE, &mut self.done).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(e))) => screen.line(&format!("warning: the record {path} is cut short: {e}")),
            Ok(Err(_)) => screen.line(&format!("warning: the record {path} is cut short")),
            Err(_) => {
                screen.line(&format!("warning: {path} takes long to write, and is cut short"))
            }
        }
    }
}

impl Drop for TransferRecord {
    fn drop(&mut self) {
        self.events.abort();
    }
}

/// Passes on the events that a record has.
fn forward(association: &Association, told: mpsc::Sender<Told>) -> JoinHandle<()> {
    let mut events = association.events();
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if told.send(Told::Event(Box::new(event))).is_err() {
                return;
            }
        }
    })
}

/// Records until it is told the end, or nobody is left to tell it.
fn record(
    file: File,
    recording: Recording,
    association: &Association,
    begin: Instant,
    heard: &mpsc::Receiver<Told>,
) -> io::Result<()> {
    let now = || manypath::Instant::ZERO + begin.elapsed();
    let mut recorder = Recorder::new(BufWriter::new(file), recording)?;
    recorder.look(now(), &association.stats(), association.paths())?;
    loop {
        match heard.recv_timeout(recorder.next_look().saturating_since(now())) {
            Ok(Told::Event(event)) => recorder.event(now(), &event)?,
            Ok(Told::End(end)) => {
                recorder.look(now(), &association.stats(), association.paths())?;
                return recorder.finish(now(), end).map(drop);
            }
            Err(RecvTimeoutError::Timeout) => {
                recorder.look(now(), &association.stats(), association.paths())?;
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
        }
    }
}

fn recording(association: &Association, rate_bps: Option<u64>) -> Recording {
    let config = association.config();
    let config = config.as_deref();
    let is_ipv6 = association.peer().is_some_and(|peer| peer.is_ipv6());
    let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let overrides = |config: &Config| {
        let all = config.explain().into_iter();
        all.filter(|p| p.origin == Origin::Override).map(|p| (p.name.to_owned(), p.value)).collect()
    };
    Recording {
        schema: SCHEMA_VERSION,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started_s: since_1970.as_secs_f64(),
        profile: config.map_or_else(String::new, |config| config.profile.name().to_owned()),
        preset: config.map_or_else(String::new, |config| config.preset.to_owned()),
        parameters: config.map(overrides).unwrap_or_default(),
        is_protected: association.is_protected(),
        header_bytes: if is_ipv6 { HEADERS_V6 } else { HEADERS_V4 },
        rate_bps,
    }
}
