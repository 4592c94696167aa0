//! The receiver's files: stores the entries that the network delivers, in batches.
//!
//! Content goes to an unfinished file (see `part`). When its digest is verified the file joins a
//! batch. The files of a batch are made durable one after the other and get their names; then each
//! of their directories is made durable once. Only then does the sender get the status. A single
//! small file costs two waits for the disk, a file in a large batch little more than one. A batch
//! ends when no other data waits to be written, so batching delays no file.

mod arriving;
mod directories;
mod refusal;
mod store;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use tokio::sync::mpsc::{self, error::TryRecvError};

use crate::disk::{Disk, DiskFile};
use crate::frame::{FileHeader, FileStatus, Kind, Outcome};
use crate::part::{self, Part};
use arriving::Arriving;
use directories::{Directories, make_directory};
use refusal::{Refusal, create_refusal, write_refusal};
pub use store::Store;

/// Entries of a batch; each file of it is open.
const BATCH_ENTRIES: usize = 64;
/// Bytes of a batch.
const BATCH_BYTES: u64 = 8 << 20;

/// Input for the writing thread from the network side, in order of arrival.
#[derive(Clone, Debug)]
pub enum Work {
    /// A file or directory begins.
    Begin(FileHeader),
    /// Content of the file that began last, in pieces as they arrived.
    Content(Vec<Bytes>),
    /// The file is over; its digest, or none if the sender gave it up.
    End(Option<[u8; 32]>),
}

/// The outcome of one entry, for the sender and for the result.
#[derive(Clone, Debug)]
pub struct Done {
    /// The status for the sender.
    pub status: FileStatus,
    /// The header it belongs to.
    pub header: FileHeader,
    /// Its digest, if it was stored.
    pub sha256: Option<[u8; 32]>,
}

/// An entry that waits for the end of its batch.
#[derive(Debug)]
enum Pending<D: Disk> {
    /// A file, complete and verified.
    File(Arriving<D>, [u8; 32]),
    /// A directory, created.
    Directory(FileHeader, PathBuf),
}

impl<D: Disk> Store<D> {
    /// A writer that stores one transfer.
    pub fn writer(&self) -> Writer<D> {
        Writer {
            store: self.clone(),
            current: None,
            batch: Vec::new(),
            batch_bytes: 0,
            accepted_bytes: 0,
            parts: self.dir.clone(),
            cleaned: BTreeSet::new(),
            directories: Directories::default(),
        }
    }

    /// Handles `work` until it ends, reporting each entry once in `done`. Runs on a thread that may
    /// block.
    pub fn write_all(&self, mut work: mpsc::Receiver<Work>, done: &mpsc::Sender<Done>) {
        let mut writer = self.writer();
        // A closed channel means the transfer is over; the work's channel ends next.
        let report = |all: Vec<Done>| all.into_iter().for_each(|d| drop(done.blocking_send(d)));
        loop {
            let item = match work.try_recv() {
                Ok(item) => item,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {
                    report(writer.flush());
                    let Some(item) = work.blocking_recv() else { break };
                    item
                }
            };
            report(writer.handle(item));
        }
        report(writer.flush());
    }
}

/// Stores the entries of one transfer.
#[derive(Debug)]
pub struct Writer<D: Disk> {
    store: Store<D>,
    current: Option<Arriving<D>>,
    batch: Vec<Pending<D>>,
    batch_bytes: u64,
    /// Sizes of all files accepted so far.
    accepted_bytes: u64,
    /// Where unfinished files with names go: `store.dir`, or a directory on another file system.
    parts: PathBuf,
    /// Such other directories that were cleaned up.
    cleaned: BTreeSet<PathBuf>,
    directories: Directories,
}

impl<D: Disk> Writer<D> {
    /// The disk that it writes to.
    pub fn disk(&self) -> &D {
        &self.store.disk
    }

    /// Does one piece of work. What became of the entries that are over with it.
    pub fn handle(&mut self, work: Work) -> Vec<Done> {
        match work {
            Work::Begin(header) if header.kind == Kind::Directory => {
                match self.create_directory(&header) {
                    Ok(place) => self.batch.push(Pending::Directory(header, place)),
                    Err(refusal) => return vec![failed(header, refusal)],
                }
            }
            Work::Begin(header) => match self.begin(&header) {
                Ok(arriving) => self.current = Some(arriving),
                Err(refusal) => return vec![failed(header, refusal)],
            },
            Work::Content(pieces) => {
                // Content of a file that failed was still in flight; it is dropped.
                let Some(arriving) = &mut self.current else { return Vec::new() };
                if let Err(e) = arriving.append(&pieces)
                    && let Some(arriving) = self.current.take()
                {
                    return vec![failed(arriving.header.clone(), write_refusal(&e))];
                }
            }
            Work::End(sha256) => {
                let Some(mut arriving) = self.current.take() else { return Vec::new() };
                match arriving.verify(sha256) {
                    Ok(sha256) => {
                        self.batch_bytes += arriving.written;
                        self.batch.push(Pending::File(arriving, sha256));
                    }
                    Err(refusal) => return vec![failed(arriving.header.clone(), refusal)],
                }
            }
        }
        let is_full = self.batch.len() >= BATCH_ENTRIES || self.batch_bytes >= BATCH_BYTES;
        if is_full { self.flush() } else { Vec::new() }
    }

    /// Makes what is complete durable and gives it its names.
    pub fn flush(&mut self) -> Vec<Done> {
        let batch = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        let mut done = Vec::with_capacity(batch.len());
        // Only what is on the disk gets a name: a name may reach the disk before the content.
        let synced = |pending: &Pending<D>| match pending {
            Pending::File(arriving, _) => arriving.part.file.sync(),
            Pending::Directory(..) => Ok(()),
        };
        let synced: Vec<_> = batch.iter().map(synced).collect();
        let mut named = Vec::with_capacity(batch.len());
        for (pending, synced) in batch.into_iter().zip(synced) {
            match pending {
                Pending::Directory(header, place) => named.push((header, place, None)),
                Pending::File(arriving, sha256) => {
                    let (header, place) = (arriving.header.clone(), arriving.place.clone());
                    let placed = synced
                        .map_err(|e| write_refusal(&e))
                        .and_then(|()| self.give_name(arriving));
                    match placed {
                        Ok(()) => named.push((header, place, Some(sha256))),
                        Err(refusal) => done.push(failed(header, refusal)),
                    }
                }
            }
        }
        named.iter().for_each(|(_, place, _)| self.directories.named(place));
        let unsure = self.directories.sync(&self.store.disk);
        for (header, place, sha256) in named {
            let broken = unsure.iter().find(|(dir, _)| place.starts_with(dir));
            done.push(match broken {
                None => stored(header, sha256),
                Some((_, e)) => {
                    let text = format!("it is in place, but the receiver's disk may lose it: {e}");
                    failed(header, (Outcome::WriteFailed, text))
                }
            });
        }
        done
    }

    fn create_directory(&mut self, header: &FileHeader) -> Result<PathBuf, Refusal> {
        let place = self.directories.place(&self.store, header)?;
        if make_directory(&self.store.disk, &place)? {
            return Ok(place);
        }
        let text = format!("{} exists and is not a directory", self.store.shown(&place));
        Err((Outcome::Exists, text))
    }

    fn begin(&mut self, header: &FileHeader) -> Result<Arriving<D>, Refusal> {
        self.check_max_size(header)?;
        let place = self.directories.place(&self.store, header)?;
        self.store.check_free(&place)?;
        let dir = place.parent().unwrap_or(&self.store.dir).to_owned();
        self.store.check_space(header, &dir)?;
        let parts = self.parts_for(&dir).map_err(|e| create_refusal(&e))?;
        let store = &self.store;
        let part = Part::create(&store.disk, &dir, &parts, header.mode, store.unnamed)
            .map_err(|e| create_refusal(&e))?;
        self.accepted_bytes = self.accepted_bytes.saturating_add(header.size);
        Ok(Arriving::new(header.clone(), place, parts, part))
    }

    fn check_max_size(&self, header: &FileHeader) -> Result<(), Refusal> {
        let total = self.accepted_bytes.saturating_add(header.size);
        match self.store.max_size {
            Some(max) if total > max => {
                let text = format!("at most {max} bytes are accepted in a transfer");
                Err((Outcome::TooLarge, text))
            }
            _ => Ok(()),
        }
    }

    /// Where the unfinished files of `dir` go: a rename does not leave a file system.
    fn parts_for(&mut self, dir: &Path) -> io::Result<PathBuf> {
        if dir == self.parts {
            return Ok(self.parts.clone());
        }
        let disk = &self.store.disk;
        let device = |dir: &Path| disk.look(dir).map(|seen| seen.map(|seen| seen.device));
        if device(dir)? == device(&self.store.dir)? {
            return Ok(self.store.dir.clone());
        }
        if self.cleaned.insert(dir.to_owned()) {
            part::clean(disk, dir)?;
        }
        Ok(dir.to_owned())
    }

    fn give_name(&self, arriving: Arriving<D>) -> Result<(), Refusal> {
        let Arriving { place, parts, part, .. } = arriving;
        let replace = self.store.overwrite;
        part.place(&parts, &place, replace).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => self.store.exists(&place),
            _ => create_refusal(&e),
        })
    }
}

fn stored(header: FileHeader, sha256: Option<[u8; 32]>) -> Done {
    let (outcome, text) = (Outcome::Stored, String::new());
    Done { status: FileStatus { index: header.index, outcome, text }, header, sha256 }
}

fn failed(header: FileHeader, (outcome, text): Refusal) -> Done {
    Done { status: FileStatus { index: header.index, outcome, text }, header, sha256: None }
}

#[cfg(test)]
mod tests;
