//! The receiver's files: a thread that hashes and writes what the network delivers.
//!
//! Content goes to `NAME.part-RANDOM` beside the final name, created anew; only when its digest is
//! verified and it is on the disk does it get its name, without replacing anything unless asked.
//! Whatever goes wrong, the part file is removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use super::frame::{FileHeader, FileStatus, Kind, Outcome, cut};

/// Pieces given to the operating system in one call.
const SLICES_MAX: usize = 64;

/// What the network side hands to the writing thread, in the order it arrived.
#[derive(Debug)]
pub(crate) enum Work {
    /// A file or directory begins.
    Begin(FileHeader),
    /// Content of the file that began last, in pieces as they arrived.
    Content(Vec<Bytes>),
    /// The file is over; its digest, or none if the sender gave it up.
    End(Option<[u8; 32]>),
}

/// What became of one entry, for the sender and for the result.
#[derive(Debug)]
pub(crate) struct Done {
    /// What the sender is told.
    pub status: FileStatus,
    /// The header it belongs to.
    pub header: FileHeader,
    /// Its digest, if it was stored.
    pub sha256: Option<[u8; 32]>,
}

/// Where and how files are stored.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    /// The directory everything goes under.
    pub dir: PathBuf,
    /// Whether a file that exists may be replaced.
    pub overwrite: bool,
}

/// Why a file was not stored.
type Refusal = (Outcome, String);

/// A file being received. Dropped before it is finished, it leaves nothing behind.
#[derive(Debug)]
struct Part {
    header: FileHeader,
    place: PathBuf,
    part_path: PathBuf,
    file: File,
    sha256: Sha256,
    written: u64,
}

impl Drop for Part {
    fn drop(&mut self) {
        // After success the name is gone already, and there is nobody to tell of an error.
        let _ = fs::remove_file(&self.part_path);
    }
}

impl Store {
    /// Handles `work` until it ends, reporting each entry once in `done`. Runs on a thread that may
    /// block.
    pub(crate) fn write_all(&self, mut work: mpsc::Receiver<Work>, done: &mpsc::Sender<Done>) {
        let mut current: Option<Part> = None;
        let report = |header: FileHeader, result: Result<Option<[u8; 32]>, Refusal>| {
            let (outcome, text, sha256) = match result {
                Ok(sha256) => (Outcome::Stored, String::new(), sha256),
                Err((outcome, text)) => (outcome, text, None),
            };
            let status = FileStatus { index: header.index, outcome, text };
            // A closed channel means the transfer is over; the work's channel ends next.
            let _ = done.blocking_send(Done { status, header, sha256 });
        };
        while let Some(item) = work.blocking_recv() {
            match item {
                Work::Begin(header) if header.kind == Kind::Directory => {
                    let result = self.create_directory(&header).map(|()| None);
                    report(header, result);
                }
                Work::Begin(header) => match self.create_part(&header) {
                    Ok(part) => current = Some(part),
                    Err(refusal) => report(header, Err(refusal)),
                },
                Work::Content(pieces) => {
                    // Content of a file that failed already was on its way; it is dropped.
                    let Some(part) = &mut current else { continue };
                    if let Err(e) = part.append(&pieces) {
                        let header = part.header.clone();
                        current = None;
                        report(header, Err(write_refusal(&e)));
                    }
                }
                Work::End(sha256) => {
                    let Some(part) = current.take() else { continue };
                    let header = part.header.clone();
                    let result = self.finish(part, sha256).map(|()| sha256);
                    report(header, result);
                }
            }
        }
    }

    fn place(&self, header: &FileHeader) -> Result<PathBuf, Refusal> {
        header.name.in_dir(&self.dir).map_err(|at| {
            (Outcome::CannotCreate, format!("{} is not a directory", self.shown(&at)))
        })
    }

    /// A path as the sender may see it: without the part that is the receiver's own business.
    fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.dir).unwrap_or(path).display().to_string()
    }

    fn create_directory(&self, header: &FileHeader) -> Result<(), Refusal> {
        let place = self.place(header)?;
        if place.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
            let text = format!("{} exists and is not a directory", self.shown(&place));
            return Err((Outcome::Exists, text));
        }
        fs::create_dir_all(&place).map_err(|e| create_refusal(&e))
    }

    fn create_part(&self, header: &FileHeader) -> Result<Part, Refusal> {
        let place = self.place(header)?;
        self.check_free(&place)?;
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(|e| create_refusal(&e))?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if let Some(mode) = header.mode {
            set_mode(&mut options, mode);
        }
        let name = place.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut tries = 0;
        loop {
            let part_path = place.with_file_name(part_name(&name)?);
            match options.open(&part_path) {
                Ok(file) => {
                    let (header, sha256) = (header.clone(), Sha256::new());
                    return Ok(Part { header, place, part_path, file, sha256, written: 0 });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && tries < 8 => tries += 1,
                Err(e) => return Err(create_refusal(&e)),
            }
        }
    }

    fn check_free(&self, place: &Path) -> Result<(), Refusal> {
        match place.symlink_metadata() {
            Ok(meta) if meta.is_dir() => {
                let text = format!("{} is a directory there", self.shown(place));
                Err((Outcome::Exists, text))
            }
            Ok(_) if !self.overwrite => {
                let text = format!("{} exists there and is not replaced", self.shown(place));
                Err((Outcome::Exists, text))
            }
            _ => Ok(()),
        }
    }

    fn finish(&self, mut part: Part, sha256: Option<[u8; 32]>) -> Result<(), Refusal> {
        let Some(expected) = sha256 else {
            return Err((Outcome::Abandoned, "the sender could not send all of it".to_owned()));
        };
        let actual: [u8; 32] = std::mem::take(&mut part.sha256).finalize().into();
        if part.written != part.header.size || actual != expected {
            let text = "the bytes that arrived are not those that were read".to_owned();
            return Err((Outcome::DigestMismatch, text));
        }
        if let Some((seconds, nanos)) = part.header.modified {
            let offset = Duration::from_secs(seconds.unsigned_abs());
            let base = match seconds >= 0 {
                true => UNIX_EPOCH.checked_add(offset),
                false => UNIX_EPOCH.checked_sub(offset),
            };
            // A file system that cannot keep the time still keeps the file.
            if let Some(time) = base.and_then(|t| t.checked_add(Duration::from_nanos(nanos.into())))
            {
                let _ = part.file.set_modified(time);
            }
        }
        part.file.sync_all().map_err(|e| write_refusal(&e))?;
        self.give_name(&part)?;
        sync_directory(&part.place);
        Ok(())
    }

    /// Gives a complete part its final name.
    fn give_name(&self, part: &Part) -> Result<(), Refusal> {
        if self.overwrite {
            return fs::rename(&part.part_path, &part.place).map_err(|e| create_refusal(&e));
        }
        // A hard link, unlike a rename, fails if the name was taken meanwhile.
        match fs::hard_link(&part.part_path, &part.place) {
            Ok(()) => Ok(()),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                let text = format!("{} exists there and is not replaced", self.shown(&part.place));
                Err((Outcome::Exists, text))
            }
            // The file system has no hard links: look, then rename.
            Err(_) => {
                self.check_free(&part.place)?;
                fs::rename(&part.part_path, &part.place).map_err(|e| create_refusal(&e))
            }
        }
    }
}

impl Part {
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
            write_all_vectored(&mut self.file, &mut slices)?;
        }
        Ok(())
    }
}

fn write_all_vectored(file: &mut File, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
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

/// `NAME.part-RANDOM`, with NAME shortened so that the file system takes it.
fn part_name(name: &str) -> Result<String, Refusal> {
    let mut random = [0; 4];
    getrandom::fill(&mut random)
        .map_err(|e| (Outcome::CannotCreate, format!("no random numbers: {e}")))?;
    Ok(format!("{}.part-{:08x}", cut(name, 240), u32::from_be_bytes(random)))
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

#[cfg(unix)]
fn set_mode(options: &mut OpenOptions, mode: u32) {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(mode); // the umask still applies
}

#[cfg(not(unix))]
fn set_mode(_options: &mut OpenOptions, _mode: u32) {}

/// Makes the new name itself durable where the system can.
fn sync_directory(place: &Path) {
    if cfg!(unix)
        && let Some(dir) = place.parent().and_then(|dir| File::open(dir).ok())
    {
        let _ = dir.sync_all();
    }
}

#[cfg(test)]
mod tests;
