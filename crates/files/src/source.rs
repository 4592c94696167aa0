//! The sender's files, read and hashed ahead of the network.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use crate::disk::{Disk, DiskFile, Identity};
use crate::frame::{AHEAD, Beginning, FileHeader, Kind, Ready, WORKING_AFTER};
use crate::relative::shown;

/// Messages read in one system call.
const MESSAGES_PER_READ: usize = 4;
/// Bytes read at a time to compare them.
const COMPARED: usize = 1 << 18;

/// Where the content of an entry comes from on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file, or a directory without content.
    Path(PathBuf),
    /// The standard input of the process.
    StandardInput,
}

impl From<PathBuf> for Source {
    fn from(path: PathBuf) -> Source {
        Source::Path(path)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Path(path) => f.write_str(&shown(path)),
            Source::StandardInput => f.write_str("standard input"),
        }
    }
}

/// One file or directory.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it is on this machine.
    pub source: Source,
    /// The file that was found there; another one is not sent in its place.
    pub identity: Option<Identity>,
    /// The header for the receiver.
    pub header: FileHeader,
}

impl Entry {
    /// Opens the file that was found, and none that has taken its place since.
    fn open<D: Disk>(&self, disk: &D) -> io::Result<D::File> {
        match &self.source {
            Source::Path(path) => open_found(disk, path, self.identity),
            Source::StandardInput => disk.standard_input(),
        }
    }
}

/// Opens the regular file that was found at `path`, and none that has taken its place since.
///
/// # Errors
/// If there is no such file any more, or it cannot be read.
pub fn open_found<D: Disk>(disk: &D, path: &Path, found: Option<Identity>) -> io::Result<D::File> {
    let file = disk.open(path)?;
    let Some(found) = found else { return Ok(file) };
    match file.identity()? {
        Some(now) if !now.is(&found) => {
            Err(io::Error::other("another file has taken its place since it was found"))
        }
        _ => Ok(file),
    }
}

/// Output of the reading thread.
#[derive(Debug)]
pub enum Piece {
    /// The entry of this index is announced.
    Announce(u32),
    /// The content of a file begins.
    Begin {
        /// Its index.
        index: u32,
        /// Bytes that the receiver has already.
        offset: u64,
    },
    /// A file is still being read to compare it.
    Working,
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

    /// True if this was the last file that was refused.
    pub fn contains(&self, index: u32) -> bool {
        self.0.load(Ordering::Relaxed) == u64::from(index)
    }
}

/// The receiver's answer to a file that was announced.
#[derive(Debug)]
pub enum Answer {
    /// It may begin.
    Ready(Ready),
    /// The file of this index is not wanted.
    Refused(u32),
}

/// Where the reading thread gets its answers from, and what it still reads for.
#[derive(Debug)]
pub struct Wishes {
    /// The answers, in the order in which files were announced.
    pub answers: mpsc::Receiver<Answer>,
    /// The file that is not wanted any more.
    pub unwanted: Unwanted,
}

impl Wishes {
    /// The beginnings of a file that the receiver has; `None` if it does not want the file, or if
    /// nobody answers any more.
    fn of(&mut self, index: u32) -> Option<Vec<Beginning>> {
        loop {
            match self.answers.blocking_recv()? {
                Answer::Ready(ready) if ready.index == index => return Some(ready.beginnings),
                Answer::Refused(refused) if refused == index => return None,
                // Of a file that is over.
                Answer::Ready(_) | Answer::Refused(_) => {}
            }
        }
    }
}

/// Reads of all `entries` into `pieces` what the receiver lacks, content in messages of
/// `message_size` bytes. Runs on a thread that may block; ends early when the receiver of `pieces`
/// is gone.
pub fn read_all<D: Disk>(
    disk: &D,
    entries: &[Entry],
    message_size: usize,
    wishes: &mut Wishes,
    pieces: &mpsc::Sender<Piece>,
) {
    let mut announced = 0;
    for (at, entry) in entries.iter().enumerate() {
        let index = entry.header.index;
        while announced < entries.len().min(at + AHEAD) {
            let piece = Piece::Announce(entries[announced].header.index);
            if pieces.blocking_send(piece).is_err() {
                return;
            }
            announced += 1;
        }
        if entry.header.kind == Kind::Directory {
            continue;
        }
        let Some(beginnings) = wishes.of(index) else { continue };
        let reading = Reading { entry, message_size, unwanted: &wishes.unwanted, pieces };
        let Some(result) = reading.run(disk, &beginnings) else { return };
        if pieces.blocking_send(Piece::End { index, result }).is_err() {
            return;
        }
    }
}

/// A file that is read.
struct Reading<'a> {
    entry: &'a Entry,
    message_size: usize,
    unwanted: &'a Unwanted,
    pieces: &'a mpsc::Sender<Piece>,
}

/// The digest, or none if the file is not wanted any more; or why it cannot be read.
type Digested = Result<Option<[u8; 32]>, String>;

impl Reading<'_> {
    /// Reads what the receiver lacks; `None` when the receiver of the pieces is gone.
    fn run<D: Disk>(&self, disk: &D, beginnings: &[Beginning]) -> Option<Digested> {
        let index = self.entry.header.index;
        let opened = self.entry.open(disk);
        if self.entry.header.known_size().is_none() {
            self.pieces.blocking_send(Piece::Begin { index, offset: 0 }).ok()?;
            return match opened {
                Ok(file) => self.send_to_end(file),
                Err(e) => Some(Err(e.to_string())),
            };
        }
        let compared = match opened {
            Ok(mut file) => self.compare(&mut file, beginnings)?.map(|known| (file, known)),
            Err(e) => Err(e),
        };
        // A file that cannot be read begins, too, so that it can end.
        let offset = compared.as_ref().map_or(0, |(_, (offset, _))| *offset);
        self.pieces.blocking_send(Piece::Begin { index, offset }).ok()?;
        match compared {
            Ok((file, (offset, sha256))) => self.send(file, offset, sha256),
            Err(e) => Some(Err(e.to_string())),
        }
    }

    /// How much of the file the receiver has, and the digest of that. The file is read on from
    /// there. `None` when the receiver of the pieces is gone.
    fn compare(
        &self,
        file: &mut impl DiskFile,
        beginnings: &[Beginning],
    ) -> Option<io::Result<(u64, Sha256)>> {
        let (mut sha256, mut read) = (Sha256::new(), 0);
        let mut same = (0, sha256.clone());
        let mut buffer = vec![0; if beginnings.is_empty() { 0 } else { COMPARED }];
        for beginning in beginnings {
            if beginning.length > self.entry.header.size {
                break;
            }
            while read < beginning.length {
                let wanted = (beginning.length - read).min(COMPARED as u64) as usize;
                if read_exact(file, &mut buffer[..wanted]).is_err() {
                    // It became shorter, or it cannot be read: what follows says so.
                    return Some(file.seek(same.0).map(|()| same));
                }
                sha256.update(&buffer[..wanted]);
                if (read + wanted as u64) / WORKING_AFTER > read / WORKING_AFTER {
                    self.pieces.blocking_send(Piece::Working).ok()?;
                }
                read += wanted as u64;
            }
            if <[u8; 32]>::from(sha256.clone().finalize()) != beginning.sha256 {
                break;
            }
            same = (read, sha256.clone());
        }
        Some(file.seek(same.0).map(|()| same))
    }

    /// Sends the file from the byte `offset` on.
    fn send(&self, mut file: impl DiskFile, offset: u64, mut sha256: Sha256) -> Option<Digested> {
        let mut left = self.entry.header.size - offset;
        while left > 0 {
            if self.unwanted.contains(self.entry.header.index) {
                return Some(Ok(None));
            }
            let len = left.min((self.message_size * MESSAGES_PER_READ) as u64) as usize;
            let mut buffer = vec![0; len];
            if let Err(e) = read_exact(&mut file, &mut buffer) {
                return Some(Err(match e.kind() {
                    io::ErrorKind::UnexpectedEof => {
                        "it became shorter while it was sent".to_owned()
                    }
                    _ => e.to_string(),
                }));
            }
            sha256.update(&buffer);
            left -= len as u64;
            self.send_content(Bytes::from(buffer))?;
        }
        Some(Ok(Some(sha256.finalize().into())))
    }

    /// Sends a file of unknown size: what comes until its end, as soon as it comes.
    fn send_to_end(&self, mut file: impl DiskFile) -> Option<Digested> {
        let mut sha256 = Sha256::new();
        let mut buffer = vec![0; self.message_size * MESSAGES_PER_READ];
        loop {
            if self.unwanted.contains(self.entry.header.index) {
                return Some(Ok(None));
            }
            let len = match file.read(&mut buffer) {
                Ok(0) => return Some(Ok(Some(sha256.finalize().into()))),
                Ok(len) => len,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Some(Err(e.to_string())),
            };
            sha256.update(&buffer[..len]);
            // A copy: what is sent must not hold on to the rest of the buffer.
            self.send_content(Bytes::copy_from_slice(&buffer[..len]))?;
        }
    }

    /// Hands content on in messages; `None` when the receiver of the pieces is gone.
    fn send_content(&self, mut content: Bytes) -> Option<()> {
        while !content.is_empty() {
            let message = content.split_to(content.len().min(self.message_size));
            self.pieces.blocking_send(Piece::Content(message)).ok()?;
        }
        Some(())
    }
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
