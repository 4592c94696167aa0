//! The receiver's files: hashes and writes the content that the network delivers.
//!
//! Content goes to an unfinished file (see `part`). When its digest is verified the file joins a
//! batch. The files of a batch are made durable one after the other and get their names; then each
//! of their directories is made durable once. Only then does the sender get the status. A single
//! small file costs two waits for the disk, a file in a large batch little more than one. A batch
//! ends when no other data waits to be written, so batching delays no file.

use std::collections::BTreeSet;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::{self, error::TryRecvError};

use crate::disk::{Disk, DiskFile, SeenKind};
use crate::frame::{FileHeader, FileStatus, Kind, Outcome};
use crate::part::{self, Part};

/// Pieces given to the operating system in one call.
const SLICES_MAX: usize = 64;
/// Entries of a batch; each file of it is open.
const BATCH_ENTRIES: usize = 64;
/// Bytes of a batch.
const BATCH_BYTES: u64 = 8 << 20;
/// Directories remembered as durable, so that they are synced once.
const DIRS_REMEMBERED: usize = 10_000;

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

/// Where and how files are stored, and which.
#[derive(Clone, Debug)]
pub struct Store<D: Disk> {
    /// The disk that stores the files.
    pub disk: D,
    /// The directory everything goes under.
    pub dir: PathBuf,
    /// Allows an existing file to be replaced.
    pub overwrite: bool,
    /// Allows names with parts that begin with a dot.
    pub hidden: bool,
    /// Bytes that a transfer, and so each file of it, may have at most.
    pub max_size: Option<u64>,
    /// Unfinished files have no name; [`Store::start`] finds out if the disk supports that.
    pub unnamed: bool,
}

/// Why a file was not stored.
type Refusal = (Outcome, String);

/// A file whose content arrives.
#[derive(Debug)]
struct Arriving<D: Disk> {
    header: FileHeader,
    place: PathBuf,
    parts: PathBuf,
    part: Part<D>,
    sha256: Sha256,
    written: u64,
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
    /// Prepares the directory: finds out whether it takes files, and removes what receivers that
    /// were killed left in it; how many files.
    pub fn start(&mut self) -> io::Result<usize> {
        let removed = part::clean(&self.disk, &self.dir)?;
        if self.unnamed {
            let part = Part::create(&self.disk, &self.dir, &self.dir, None, true)?;
            let place = self.dir.join(format!("{}{:016x}", part::PREFIX, self.disk.unique()?));
            self.unnamed = part.place(&self.dir, &place, false).is_ok();
            if self.unnamed {
                self.disk.remove(&place)?;
            }
        }
        if !self.unnamed {
            drop(Part::create(&self.disk, &self.dir, &self.dir, None, false)?);
        }
        Ok(removed)
    }

    /// The reason why a transfer of this size cannot be received, as the sender may see it. Free
    /// space that the disk does not report is no reason.
    pub fn refuses(&self, bytes: u64) -> Option<Refusal> {
        if let Some(max) = self.max_size.filter(|max| bytes > *max) {
            let text = format!("{bytes} bytes; at most {max} are accepted in a transfer");
            return Some((Outcome::TooLarge, text));
        }
        let free = self.disk.free_space(&self.dir).ok().flatten()?;
        (bytes > free)
            .then(|| (Outcome::DiskFull, format!("{bytes} bytes; {free} are free on the disk")))
    }

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
            unsynced: BTreeSet::new(),
            synced: BTreeSet::new(),
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

    /// A path as the sender may see it: without the part that is the receiver's own business.
    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.dir).unwrap_or(path).display().to_string()
    }

    fn check_name(&self, header: &FileHeader) -> Result<(), Refusal> {
        let refused = |text: &str| Err((Outcome::NameRefused, text.to_owned()));
        if header.name.parts().any(part::is_part_name) {
            return refused("the name is one that the receiver uses itself");
        }
        if !self.hidden && header.name.is_hidden() {
            return refused("hidden files (names that begin with a dot) are not accepted");
        }
        Ok(())
    }

    fn check_free(&self, place: &Path) -> Result<(), Refusal> {
        let seen = self.disk.look(place).map_err(|e| create_refusal(&e))?;
        match seen {
            Some(seen) if seen.kind == SeenKind::Directory => {
                let text = format!("{} is a directory there", self.shown(place));
                Err((Outcome::Exists, text))
            }
            Some(_) if !self.overwrite => Err(self.exists(place)),
            _ => Ok(()),
        }
    }

    fn check_space(&self, header: &FileHeader, dir: &Path) -> Result<(), Refusal> {
        match self.disk.free_space(dir) {
            Ok(Some(free)) if header.size > free => {
                let text = format!("{} bytes; {free} are free on the disk", header.size);
                Err((Outcome::DiskFull, text))
            }
            // A disk that does not say is no reason.
            _ => Ok(()),
        }
    }

    fn exists(&self, place: &Path) -> Refusal {
        (Outcome::Exists, format!("{} exists there and is not replaced", self.shown(place)))
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
    /// Directories whose names may not survive a loss of power.
    unsynced: BTreeSet<PathBuf>,
    /// Those whose own name does.
    synced: BTreeSet<PathBuf>,
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
        let dirs = named.iter().filter_map(|(_, place, _)| place.parent().map(Path::to_owned));
        self.unsynced.extend(dirs);
        let unsure = self.sync_directories();
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

    /// Makes names durable; the directories for which it failed. They are tried again next time.
    fn sync_directories(&mut self) -> Vec<(PathBuf, io::Error)> {
        let mut failed = Vec::new();
        for dir in std::mem::take(&mut self.unsynced) {
            if let Err(e) = self.store.disk.sync_dir(&dir) {
                self.unsynced.insert(dir.clone());
                failed.push((dir, e));
            }
        }
        failed
    }

    /// The place of a file or directory. Creates the directories above it and notes that their
    /// names must be made durable with it, even if they exist: the receiver that made them may have
    /// been killed before it did that.
    fn place(&mut self, header: &FileHeader) -> Result<PathBuf, Refusal> {
        self.store.check_name(header)?;
        let mut place = self.store.dir.clone();
        let mut parts = header.name.parts().peekable();
        while let Some(part) = parts.next() {
            if self.synced.len() >= DIRS_REMEMBERED {
                self.synced.clear();
            }
            let dir = place.clone();
            place.push(part);
            if parts.peek().is_some() {
                if !self.make_directory(&place)? {
                    let text = format!("{} is not a directory", self.store.shown(&place));
                    return Err((Outcome::CannotCreate, text));
                }
                if !self.synced.contains(&place) {
                    self.synced.insert(place.clone());
                    self.unsynced.insert(dir);
                }
            }
        }
        Ok(place)
    }

    /// Creates a directory, unless it is there; false if something else is. A symbolic link is
    /// something else: it would lead outside.
    fn make_directory(&self, place: &Path) -> Result<bool, Refusal> {
        let disk = &self.store.disk;
        let look = || disk.look(place).map_err(|e| create_refusal(&e));
        let mut seen = look()?;
        if seen.is_none() {
            match disk.create_dir(place) {
                Ok(()) => return Ok(true),
                // Another transfer was faster.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => seen = look()?,
                Err(e) => return Err(create_refusal(&e)),
            }
        }
        Ok(seen.is_some_and(|seen| seen.kind == SeenKind::Directory))
    }

    fn create_directory(&mut self, header: &FileHeader) -> Result<PathBuf, Refusal> {
        let place = self.place(header)?;
        if self.make_directory(&place)? {
            return Ok(place);
        }
        let text = format!("{} exists and is not a directory", self.store.shown(&place));
        Err((Outcome::Exists, text))
    }

    fn begin(&mut self, header: &FileHeader) -> Result<Arriving<D>, Refusal> {
        self.check_max_size(header)?;
        let place = self.place(header)?;
        self.store.check_free(&place)?;
        let dir = place.parent().unwrap_or(&self.store.dir).to_owned();
        self.store.check_space(header, &dir)?;
        let parts = self.parts_for(&dir).map_err(|e| create_refusal(&e))?;
        let store = &self.store;
        let part = Part::create(&store.disk, &dir, &parts, header.mode, store.unnamed)
            .map_err(|e| create_refusal(&e))?;
        self.accepted_bytes = self.accepted_bytes.saturating_add(header.size);
        let (header, sha256) = (header.clone(), Sha256::new());
        Ok(Arriving { header, place, parts, part, sha256, written: 0 })
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

impl<D: Disk> Arriving<D> {
    fn append(&mut self, pieces: &[Bytes]) -> io::Result<()> {
        for piece in pieces {
            self.sha256.update(piece);
            self.written += piece.len() as u64;
        }
        if self.written > self.header.size {
            return Err(io::Error::other("more content than announced"));
        }
        for group in pieces.chunks(SLICES_MAX) {
            let mut slices: Vec<IoSlice<'_>> = group.iter().map(|b| IoSlice::new(b)).collect();
            write_all_vectored(&mut self.part.file, &mut slices)?;
        }
        Ok(())
    }

    /// Compares what arrived with what was read; its digest.
    fn verify(&mut self, sha256: Option<[u8; 32]>) -> Result<[u8; 32], Refusal> {
        let Some(expected) = sha256 else {
            return Err((Outcome::Abandoned, "the sender could not send all of it".to_owned()));
        };
        let actual: [u8; 32] = std::mem::take(&mut self.sha256).finalize().into();
        if self.written != self.header.size || actual != expected {
            let text = "the bytes that arrived are not those that were read".to_owned();
            return Err((Outcome::DigestMismatch, text));
        }
        if let Some(time) = self.header.modified.and_then(|(s, n)| time(s, n)) {
            // A file system that cannot keep the time still keeps the file.
            let _ = self.part.file.set_modified(time);
        }
        Ok(actual)
    }
}

/// Seconds and nanoseconds since 1970 UTC as the system's time, if that can say it.
fn time(seconds: i64, nanos: u32) -> Option<SystemTime> {
    let offset = Duration::from_secs(seconds.unsigned_abs());
    let base = match seconds >= 0 {
        true => UNIX_EPOCH.checked_add(offset),
        false => UNIX_EPOCH.checked_sub(offset),
    };
    base?.checked_add(Duration::from_nanos(nanos.into()))
}

fn write_all_vectored(file: &mut impl DiskFile, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    IoSlice::advance_slices(&mut slices, 0); // drops empty ones at the front
    while !slices.is_empty() {
        match file.write_vectored(slices) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => IoSlice::advance_slices(&mut slices, n),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn stored(header: FileHeader, sha256: Option<[u8; 32]>) -> Done {
    let (outcome, text) = (Outcome::Stored, String::new());
    Done { status: FileStatus { index: header.index, outcome, text }, header, sha256 }
}

fn failed(header: FileHeader, (outcome, text): Refusal) -> Done {
    Done { status: FileStatus { index: header.index, outcome, text }, header, sha256: None }
}

fn create_refusal(error: &io::Error) -> Refusal {
    match disk_full(error) {
        true => (Outcome::DiskFull, format!("the receiver's disk is full: {error}")),
        false => (Outcome::CannotCreate, format!("the receiver cannot create it: {error}")),
    }
}

fn write_refusal(error: &io::Error) -> Refusal {
    match disk_full(error) {
        true => (Outcome::DiskFull, format!("the receiver's disk is full: {error}")),
        false => (Outcome::WriteFailed, format!("the receiver cannot write it: {error}")),
    }
}

fn disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests;
