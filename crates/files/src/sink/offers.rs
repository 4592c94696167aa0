//! Files that were announced: what is there of them, and how they begin.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::arriving::Arriving;
use super::compare::{self, Known, beginnings};
use super::refusal::{Refusal, create_refusal, name_refusal, write_refusal};
use super::{Current, Said, Writer};
use crate::disk::{Disk, SeenKind};
use crate::frame::{AHEAD, Beginning, FileHeader, Outcome};
use crate::part::{Kept, Part, kept_path};
use crate::system::is_out_of_descriptors;

/// How long a transfer waits for the end of another one that has its file.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it looks.
const PAUSE: Duration = Duration::from_millis(100);

/// The state of a file that is announced.
#[derive(Debug)]
pub(super) enum Offer<D: Disk> {
    /// Nothing.
    Nothing,
    /// A file of its name and size.
    Complete([u8; 32]),
    /// A file that an interrupted transfer left.
    Part(Part<D>, Vec<Known>),
}

impl<D: Disk> Offer<D> {
    /// The part that the sender hears of.
    pub(super) fn beginnings(&self, size: u64) -> Vec<Beginning> {
        match self {
            Offer::Nothing => Vec::new(),
            Offer::Complete(sha256) => vec![Beginning { length: size, sha256: *sha256 }],
            Offer::Part(_, known) => compare::told(known),
        }
    }
}

/// The files that were announced and have not begun.
#[derive(Debug)]
pub(super) struct Offers<D: Disk>(BTreeMap<u32, (FileHeader, Offer<D>)>);

impl<D: Disk> Default for Offers<D> {
    fn default() -> Offers<D> {
        Offers(BTreeMap::new())
    }
}

impl<D: Disk> Offers<D> {
    pub(super) fn add(&mut self, header: FileHeader, offer: Offer<D>) {
        self.0.insert(header.index, (header, offer));
    }

    /// All of them.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = FileHeader> {
        std::mem::take(&mut self.0).into_values().map(|(header, _)| header)
    }

    pub(super) fn take(&mut self, index: u32) -> Option<(FileHeader, Offer<D>)> {
        self.0.remove(&index)
    }
}

/// The refusal of a file that the sender takes for another one than is there.
pub(super) fn not_there() -> Refusal {
    (
        Outcome::DigestMismatch,
        "the receiver does not have the beginning that the sender goes on from".to_owned(),
    )
}

impl<D: Disk> Writer<D> {
    /// Looks for what is there of a file that is announced.
    pub(super) fn look(
        &mut self,
        header: &FileHeader,
        working: &mut impl FnMut(),
    ) -> Result<Offer<D>, Refusal> {
        if self.offers.0.len() >= AHEAD {
            let text = format!("more than {AHEAD} files were announced and not sent");
            return Err((Outcome::CannotCreate, text));
        }
        let size = header.known_size().unwrap_or(0);
        self.store.check_max_size(self.accepted_bytes.saturating_add(size))?;
        let place = self.directories.place(&self.store, header)?;
        // One that may be replaced may have been half replaced before.
        let mut offer = Offer::Nothing;
        if self.store.overwrite {
            offer = self.look_for_part(header, &place, working)?;
        }
        if matches!(offer, Offer::Nothing) {
            offer = self.look_for_complete(header, &place, working)?;
        }
        if matches!(offer, Offer::Nothing) {
            self.store.check_free(&place)?;
            offer = self.look_for_part(header, &place, working)?;
            // Before anything of it is sent; one that replaces another is asked for at its begin.
            let dir = place.parent().unwrap_or(&self.store.dir);
            let here = offer.beginnings(header.size).last().map_or(0, |longest| longest.length);
            self.store.check_space(header.size - here, dir)?;
        }
        self.accepted_bytes = self.accepted_bytes.saturating_add(size);
        Ok(offer)
    }

    /// A file of its name and size.
    pub(super) fn look_for_complete(
        &self,
        header: &FileHeader,
        place: &Path,
        working: &mut impl FnMut(),
    ) -> Result<Offer<D>, Refusal> {
        let disk = &self.store.disk;
        let seen = disk.look(place).map_err(|e| name_refusal(&e, place))?;
        if seen.is_none_or(|seen| seen.kind != SeenKind::File || seen.length != header.size) {
            return Ok(Offer::Nothing);
        }
        let read =
            disk.open(place).and_then(|mut file| beginnings(&mut file, header.size, working));
        if let Err(e) = &read
            && is_out_of_descriptors(e)
        {
            return Err(create_refusal(e));
        }
        // One that cannot be read is as good as another one.
        let longest = read.ok().and_then(|known| compare::told(&known).pop());
        Ok(match longest.filter(|longest| longest.length == header.size) {
            Some(longest) => Offer::Complete(longest.sha256),
            None => Offer::Nothing,
        })
    }

    fn look_for_part(
        &mut self,
        header: &FileHeader,
        place: &Path,
        working: &mut impl FnMut(),
    ) -> Result<Offer<D>, Refusal> {
        if !self.store.keeps(header.size) {
            return Ok(Offer::Nothing);
        }
        let dir = place.parent().unwrap_or(&self.store.dir).to_owned();
        let parts = self.parts_for(&dir).map_err(|e| create_refusal(&e))?;
        let found = self.open_kept(&parts, header, working);
        let Some(mut part) = found.map_err(|e| create_refusal(&e))? else {
            return Ok(Offer::Nothing);
        };
        let known = beginnings(&mut part.file, header.size, working);
        Ok(Offer::Part(part, known.map_err(|e| write_refusal(&e))?))
    }

    /// Opens what an earlier transfer left. If that still waits for its sender, waits for its end.
    fn open_kept(
        &mut self,
        parts: &Path,
        header: &FileHeader,
        working: &mut impl FnMut(),
    ) -> io::Result<Option<Part<D>>> {
        let path = kept_path(parts, &header.name);
        for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
            match Part::open_kept(&self.store.disk, parts, &header.name, header.mode)? {
                Kept::Part(part) => {
                    self.store.holders.note(path, &self.holder);
                    return Ok(Some(part));
                }
                Kept::Foreign(path) => {
                    self.notices.push(format!(
                        "{} starts again: {} is of another user or no plain file, and stays as it is",
                        header.name,
                        path.display()
                    ));
                    return Ok(None);
                }
                Kept::Nothing | Kept::Busy => {}
            }
            let Some(other) = self.store.holders.other(&path, &self.holder) else { break };
            other.contest();
            working();
            std::thread::sleep(PAUSE);
        }
        Ok(None)
    }

    /// Begins a file, behind the first `offset` bytes of what is there.
    pub(super) fn begin(
        &mut self,
        header: &FileHeader,
        offer: Offer<D>,
        offset: u64,
        say: &mut impl FnMut(Said),
    ) -> Result<Current<D>, Refusal> {
        let place = self.directories.place(&self.store, header)?;
        let (found, known) = match offer {
            Offer::Complete(sha256) if offset == header.size => {
                return Ok(Current::There(header.clone(), place, sha256));
            }
            Offer::Part(part, known) => (Some(part), known),
            Offer::Complete(_) => {
                self.store.check_free(&place)?;
                (None, Vec::new())
            }
            Offer::Nothing => (None, Vec::new()),
        };
        let dir = place.parent().unwrap_or(&self.store.dir).to_owned();
        let parts = self.parts_for(&dir).map_err(|e| create_refusal(&e))?;
        let is_new = found.is_none();
        if is_new {
            self.store.check_space(header.size, &dir)?;
        }
        let part = match found {
            Some(part) => part,
            None => {
                let mut made = self.new_part(header, &dir, &parts);
                if made.as_ref().is_err_and(is_out_of_descriptors) && !self.batch.is_empty() {
                    // The files of the batch have some.
                    self.flush(say);
                    made = self.new_part(header, &dir, &parts);
                }
                made.map_err(|e| create_refusal(&e))?
            }
        };
        let arriving = Arriving::new(header.clone(), place, parts, part);
        let mut known = known.into_iter();
        let arriving = match known.find(|(length, _)| *length == offset) {
            Some((length, sha256)) => arriving.behind(length, sha256),
            None if offset > 0 => return Err(not_there()),
            None if is_new => Ok(arriving),
            None => arriving.behind(0, Sha256::new()),
        };
        arriving.map(Current::Arriving).map_err(|e| write_refusal(&e))
    }

    fn new_part(&self, header: &FileHeader, dir: &Path, parts: &Path) -> io::Result<Part<D>> {
        let store = &self.store;
        if store.keeps(header.size)
            && let Some(part) = Part::create_kept(&store.disk, parts, &header.name, header.mode)?
        {
            store.holders.note(kept_path(parts, &header.name), &self.holder);
            return Ok(part);
        }
        Part::create(&store.disk, dir, parts, header.mode, store.unnamed)
    }
}
