//! The receiver's files: stores the entries that the network delivers, in batches.
//!
//! Content goes to an unfinished file (see `part`). When its digest is verified the file joins a
//! batch. The files of a batch are made durable one after the other and get their names; then each
//! of their directories is made durable once. Only then does the sender get the status. A single
//! small file costs two waits for the disk, a file in a large batch little more than one. A batch
//! ends when no other data waits to be written, so batching delays no file.
//!
//! A file is announced before it begins. The answer says what is there of it: a complete file, or
//! what an interrupted transfer left. The sender compares and sends what is missing.

mod arriving;
mod compare;
mod directories;
mod holders;
mod offers;
mod refusal;
mod store;
mod stream;

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc::{self, error::TryRecvError};

use crate::disk::{Disk, DiskFile};
use crate::frame::{FileHeader, FileStatus, Kind, Outcome, Ready, Unnamed};
use crate::part;
use arriving::Arriving;
use directories::{Directories, make_directory};
pub use holders::{Holder, Holders};
use offers::{Offer, Offers};
use refusal::{Refusal, abandoned, name_refusal, write_refusal};
pub use store::Store;
pub use stream::write_stream;

/// Entries of a batch; each file of it is open.
const BATCH_ENTRIES: usize = 64;
/// Bytes of a batch.
const BATCH_BYTES: u64 = 8 << 20;

/// Input for the writing thread from the network side, in order of arrival.
#[derive(Clone, Debug)]
pub enum Work {
    /// A file or directory is announced.
    Announce(FileHeader),
    /// A file begins.
    Begin {
        /// Its index.
        index: u32,
        /// Bytes of it that are not sent, as they are here.
        offset: u64,
    },
    /// Content of the file that began last, in pieces as they arrived.
    Content(Vec<Bytes>),
    /// The file is over; its digest, or none if the sender gave it up.
    End(Option<[u8; 32]>),
}

/// A message for the sender.
#[derive(Clone, Debug)]
pub enum Said {
    /// A file that was announced may begin.
    Ready(Ready),
    /// Something is being read to compare it.
    Working,
    /// An entry is over.
    Done(Done),
    /// An entry cannot be stored because of its name.
    Unnamed(Unnamed),
    /// A line for the user of the receiver; nothing for the sender.
    Notice(String),
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
    /// A file that is there already. A receiver that was killed may have named it, no more.
    There(FileHeader, PathBuf, [u8; 32]),
    /// A directory, created.
    Directory(FileHeader, PathBuf),
}

impl<D: Disk> Store<D> {
    /// A writer that stores one transfer.
    pub fn writer(&self, holder: Arc<Holder>) -> Writer<D> {
        Writer {
            store: self.clone(),
            holder,
            offers: Offers::default(),
            current: None,
            batch: Vec::new(),
            batch_bytes: 0,
            accepted_bytes: 0,
            parts: self.dir.clone(),
            cleaned: BTreeSet::new(),
            directories: Directories::default(),
            notices: Vec::new(),
        }
    }

    /// Handles `work` until it ends, and says what the sender is to hear; of each entry once that
    /// it is done. Runs on a thread that may block.
    pub fn write_all(
        &self,
        holder: Arc<Holder>,
        mut work: mpsc::Receiver<Work>,
        said: &mpsc::Sender<Said>,
    ) {
        let mut writer = self.writer(holder);
        // A closed channel means the transfer is over; the work's channel ends next.
        let mut say = |what: Said| drop(said.blocking_send(what));
        loop {
            let item = match work.try_recv() {
                Ok(item) => item,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {
                    writer.flush(&mut say);
                    let Some(item) = work.blocking_recv() else { break };
                    item
                }
            };
            writer.handle(item, &mut say);
        }
        writer.end(&mut say);
    }
}

/// The file whose content comes.
#[derive(Debug)]
enum Current<D: Disk> {
    /// It is written.
    Arriving(Arriving<D>),
    /// It is there already, with that digest.
    There(FileHeader, PathBuf, [u8; 32]),
}

/// Stores the entries of one transfer.
#[derive(Debug)]
pub struct Writer<D: Disk> {
    store: Store<D>,
    holder: Arc<Holder>,
    offers: Offers<D>,
    current: Option<Current<D>>,
    batch: Vec<Pending<D>>,
    batch_bytes: u64,
    /// Sizes of all files accepted so far.
    accepted_bytes: u64,
    /// Where unfinished files with names go: `store.dir`, or a directory on another file system.
    parts: PathBuf,
    /// Such other directories that were cleaned up.
    cleaned: BTreeSet<PathBuf>,
    directories: Directories,
    /// Lines for the user of the receiver, not said yet.
    notices: Vec<String>,
}

impl<D: Disk> Writer<D> {
    /// The disk that it writes to.
    pub fn disk(&self) -> &D {
        &self.store.disk
    }

    /// Does one piece of work, and says what the sender is to hear of it.
    pub fn handle(&mut self, work: Work, say: &mut impl FnMut(Said)) {
        match work {
            Work::Announce(header) if header.kind == Kind::Directory => {
                match self.create_directory(&header) {
                    Ok(place) => self.batch.push(Pending::Directory(header, place)),
                    Err(refusal) => say(failed(header, refusal)),
                }
            }
            Work::Announce(header) => self.announce(header, say),
            Work::Begin { index, offset } => {
                // One that was refused, or never announced.
                let Some((header, offer)) = self.offers.take(index) else { return };
                match self.begin(&header, offer, offset, say) {
                    Ok(current) => self.current = Some(current),
                    Err(refusal) => say(failed(header, refusal)),
                }
            }
            Work::Content(pieces) => {
                // Content of a file that failed was still in flight; it is dropped.
                let Some(current) = self.current.take() else { return };
                match current {
                    Current::Arriving(mut arriving) => match self.append(&mut arriving, &pieces) {
                        Ok(()) => self.current = Some(Current::Arriving(arriving)),
                        Err(refusal) => {
                            arriving.part.discard();
                            say(failed(arriving.header.clone(), refusal));
                        }
                    },
                    Current::There(header, ..) => say(failed(header, offers::not_there())),
                }
            }
            Work::End(sha256) => match self.current.take() {
                None => {}
                Some(Current::Arriving(mut arriving)) => match self.verify(&mut arriving, sha256) {
                    Ok(sha256) => {
                        // If it cannot be made durable, nothing of it can be relied on.
                        arriving.part.discard();
                        self.batch_bytes += arriving.written;
                        self.batch.push(Pending::File(arriving, sha256));
                    }
                    Err(refusal) => {
                        arriving.part.discard();
                        say(failed(arriving.header.clone(), refusal));
                    }
                },
                Some(Current::There(header, place, here)) if sha256 == Some(here) => {
                    self.batch.push(Pending::There(header, place, here));
                }
                Some(Current::There(header, ..)) => {
                    let refusal = sha256.map_or_else(abandoned, |_| offers::not_there());
                    say(failed(header, refusal));
                }
            },
        }
        if self.batch.len() >= BATCH_ENTRIES || self.batch_bytes >= BATCH_BYTES {
            self.flush(say);
        }
    }

    /// Looks for what is there of a file, and says so.
    fn announce(&mut self, header: FileHeader, say: &mut impl FnMut(Said)) {
        let mut looked = self.look(&header, &mut || say(Said::Working));
        if matches!(looked, Err((Outcome::CannotCreate, _))) && !self.batch.is_empty() {
            // The files of the batch may have all descriptors.
            self.flush(say);
            looked = self.look(&header, &mut || say(Said::Working));
        }
        self.notices.drain(..).for_each(|notice| say(Said::Notice(notice)));
        match looked {
            Ok(offer) => {
                let (index, beginnings) = (header.index, offer.beginnings(header.size));
                self.offers.add(header, offer);
                say(Said::Ready(Ready { index, beginnings }));
            }
            Err(refusal) => say(failed(header, refusal)),
        }
    }

    /// Makes what is complete durable, gives it its names, and says so.
    pub fn flush(&mut self, say: &mut impl FnMut(Said)) {
        let batch = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
        // Only what is on the disk gets a name: a name may reach the disk before the content.
        let synced = |pending: &Pending<D>| match pending {
            Pending::File(arriving, _) => arriving.part.file.sync(),
            Pending::There(..) | Pending::Directory(..) => Ok(()),
        };
        let synced: Vec<_> = batch.iter().map(synced).collect();
        let (mut named, mut there) = (Vec::with_capacity(batch.len()), Vec::new());
        for (pending, synced) in batch.into_iter().zip(synced) {
            match pending {
                Pending::Directory(header, place) => named.push((header, place, None)),
                Pending::There(header, place, sha256) => there.push((header, place, sha256)),
                Pending::File(arriving, sha256) => {
                    let (header, place) = (arriving.header.clone(), arriving.place.clone());
                    let placed = synced
                        .map_err(|e| write_refusal(&e))
                        .and_then(|()| self.give_name(arriving, sha256));
                    match placed {
                        Ok(()) => named.push((header, place, Some(sha256))),
                        Err(refusal) => say(failed(header, refusal)),
                    }
                }
            }
        }
        // Now that the files of the batch are closed, there are descriptors for others.
        for (header, place, sha256) in there {
            match self.store.disk.open(&place).and_then(|file| file.sync()) {
                Ok(()) => named.push((header, place, Some(sha256))),
                Err(e) => say(failed(header, write_refusal(&e))),
            }
        }
        named.iter().for_each(|(_, place, _)| self.directories.named(place));
        let unsure = self.directories.sync(&self.store.disk);
        for (header, place, sha256) in named {
            let broken = unsure.iter().find(|(dir, _)| place.starts_with(dir));
            say(match broken {
                None => stored(header, sha256),
                Some((_, e)) => {
                    let text = format!("it is in place, but the receiver's disk may lose it: {e}");
                    failed(header, (Outcome::WriteFailed, text))
                }
            });
        }
    }

    /// Nothing more comes: stores what is complete. Files that were announced and did not begin are
    /// given up.
    pub fn end(&mut self, say: &mut impl FnMut(Said)) {
        self.flush(say);
        for header in self.offers.drain() {
            say(failed(
                header,
                (Outcome::Abandoned, "the sender announced it and did not send it".to_owned()),
            ));
        }
    }

    fn create_directory(&mut self, header: &FileHeader) -> Result<PathBuf, Refusal> {
        let place = self.directories.place(&self.store, header)?;
        if make_directory(&self.store.disk, &place)? {
            return Ok(place);
        }
        let text = format!("{} exists and is not a directory", self.store.shown(&place));
        Err((Outcome::Exists, text))
    }

    /// Writes content. What a file of unknown size has is only known as it comes.
    fn append(&self, arriving: &mut Arriving<D>, pieces: &[Bytes]) -> Result<(), Refusal> {
        let length = pieces.iter().map(|piece| piece.len() as u64).sum::<u64>();
        if arriving.header.known_size().is_none() {
            let total = self.accepted_bytes.saturating_add(arriving.written + length);
            self.store.check_max_size(total)?;
        }
        arriving.append(pieces).map_err(|e| write_refusal(&e))
    }

    /// Compares what arrived with what was read; its digest.
    fn verify(
        &mut self,
        arriving: &mut Arriving<D>,
        sha256: Option<[u8; 32]>,
    ) -> Result<[u8; 32], Refusal> {
        if arriving.header.known_size().is_none() {
            self.accepted_bytes = self.accepted_bytes.saturating_add(arriving.written);
        }
        arriving.verify(sha256)
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
            part::clean(disk, dir, self.store.keep_from.is_some())?;
        }
        Ok(dir.to_owned())
    }

    /// Names a file. Another transfer of the same sender, which was killed and started again, may
    /// have stored it in the meantime.
    fn give_name(&self, arriving: Arriving<D>, sha256: [u8; 32]) -> Result<(), Refusal> {
        let Arriving { header, place, parts, part, .. } = arriving;
        let Err(e) = part.place(&parts, &place, self.store.overwrite) else { return Ok(()) };
        if e.kind() != io::ErrorKind::AlreadyExists {
            return Err(name_refusal(&e, &place));
        }
        match self.look_for_complete(&header, &place, &mut || {})? {
            Offer::Complete(there) if there == sha256 => {
                let synced = self.store.disk.open(&place).and_then(|file| file.sync());
                synced.map_err(|e| write_refusal(&e))
            }
            _ => Err(self.store.exists(&place)),
        }
    }
}

fn stored(header: FileHeader, sha256: Option<[u8; 32]>) -> Said {
    let (outcome, text) = (Outcome::Stored, String::new());
    Said::Done(Done { status: FileStatus { index: header.index, outcome, text }, header, sha256 })
}

fn failed(header: FileHeader, refusal: Refusal) -> Said {
    let (outcome, text) = refusal;
    let status = FileStatus { index: header.index, outcome, text };
    Said::Done(Done { status, header, sha256: None })
}

#[cfg(test)]
mod tests;
