//! The sender's files, read and hashed ahead of the network.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use crate::disk::{Disk, DiskFile};
use crate::frame::{FileHeader, Kind};

/// Messages read in one system call.
const MESSAGES_PER_READ: usize = 4;

/// One file or directory.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it is on this machine.
    pub source: PathBuf,
    /// The header for the receiver.
    pub header: FileHeader,
}

/// Output of the reading thread.
#[derive(Debug)]
pub enum Piece {
    /// The entry of this index begins.
    Begin(u32),
    /// Content, of the size of a message except for the last.
    Content(Bytes),
    /// The file is over.
    End {
        /// Its index.
        index: u32,
        /// Its SHA-256; an error if it could not be read to its end; none if it was not wanted.
        result: Result<Option<[u8; 32]>, String>,
    },
}

/// The files the receiver does not want (any more).
#[derive(Clone, Debug)]
pub struct Unwanted(Arc<AtomicU64>);

impl Unwanted {
    /// None yet.
    pub fn none() -> Unwanted {
        Unwanted(Arc::new(AtomicU64::new(u64::MAX)))
    }

    /// The receiver refused the file of this index. Only the last refusal counts: an earlier file
    /// is over already.
    pub fn set(&self, index: u32) {
        self.0.store(u64::from(index), Ordering::Relaxed);
    }

    fn contains(&self, index: u32) -> bool {
        self.0.load(Ordering::Relaxed) == u64::from(index)
    }
}

/// Reads all of `entries` into `pieces`, content in messages of `message_size` bytes. Runs on a
/// thread that may block; ends early when the receiver of `pieces` is gone.
pub fn read_all<D: Disk>(
    disk: &D,
    entries: &[Entry],
    message_size: usize,
    unwanted: &Unwanted,
    pieces: &mpsc::Sender<Piece>,
) {
    for entry in entries {
        let index = entry.header.index;
        if pieces.blocking_send(Piece::Begin(index)).is_err() {
            return;
        }
        if entry.header.kind == Kind::Directory {
            continue;
        }
        let Some(result) = read_one(disk, entry, message_size, unwanted, pieces) else { return };
        if pieces.blocking_send(Piece::End { index, result }).is_err() {
            return;
        }
    }
}

/// Reads one file; `None` when the receiver of the pieces is gone.
fn read_one<D: Disk>(
    disk: &D,
    entry: &Entry,
    message_size: usize,
    unwanted: &Unwanted,
    pieces: &mpsc::Sender<Piece>,
) -> Option<Result<Option<[u8; 32]>, String>> {
    let mut file = match disk.open(&entry.source) {
        Ok(file) => file,
        Err(e) => return Some(Err(e.to_string())),
    };
    let mut sha256 = Sha256::new();
    let mut left = entry.header.size;
    while left > 0 {
        if unwanted.contains(entry.header.index) {
            return Some(Ok(None));
        }
        let len = left.min((message_size * MESSAGES_PER_READ) as u64) as usize;
        let mut buffer = vec![0; len];
        if let Err(e) = read_exact(&mut file, &mut buffer) {
            return Some(Err(match e.kind() {
                io::ErrorKind::UnexpectedEof => "it became shorter while it was sent".to_owned(),
                _ => e.to_string(),
            }));
        }
        sha256.update(&buffer);
        left -= len as u64;
        let mut content = Bytes::from(buffer);
        while !content.is_empty() {
            let message = content.split_to(content.len().min(message_size));
            pieces.blocking_send(Piece::Content(message)).ok()?;
        }
    }
    Some(Ok(Some(sha256.finalize().into())))
}

fn read_exact(file: &mut impl DiskFile, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.read(buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(n) => buffer = &mut buffer[n..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}
