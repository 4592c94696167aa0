//! The receiver's store: where and how it keeps files, and which it accepts.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use super::holders::Holders;
use super::refusal::{Refusal, name_refusal};
use crate::disk::{Disk, SeenKind};
use crate::frame::{FileHeader, Outcome, SIZE_UNKNOWN};
use crate::part::{self, Part};

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
    /// Unfinished files of at least this size, in bytes, stay when a transfer is interrupted, so
    /// that a later one goes on from there; `None`: none stays.
    pub keep_from: Option<u64>,
    /// Its transfers.
    pub holders: Holders,
}

impl<D: Disk> Store<D> {
    /// Prepares the directory: finds out whether it takes files, and removes what receivers that
    /// were killed left in it, unless a later transfer may go on from that; how many files.
    pub fn start(&mut self) -> io::Result<usize> {
        let removed = part::clean(&self.disk, &self.dir, self.keep_from.is_some())?;
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
    /// space that the disk does not report is no reason; nor is a full disk where an interrupted
    /// transfer left something to go on from.
    pub fn refuses(&self, bytes: u64) -> Option<Refusal> {
        if let Some(max) = self.max_size.filter(|max| bytes > *max) {
            let text = format!("{bytes} bytes; at most {max} are accepted in a transfer");
            return Some((Outcome::TooLarge, text));
        }
        let free = self.disk.free_space(&self.dir).ok().flatten()?;
        let is_kept = |name: &OsString| name.to_str().is_some_and(part::is_kept_name);
        let keeps = || self.disk.list(&self.dir).is_ok_and(|names| names.iter().any(is_kept));
        (bytes > free && !keeps())
            .then(|| (Outcome::DiskFull, format!("{bytes} bytes; {free} are free on the disk")))
    }

    /// A path as the sender may see it: without the part that is the receiver's own business.
    pub(super) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.dir).unwrap_or(path).display().to_string()
    }

    /// Refuses names that the receiver uses itself, and hidden ones unless they are allowed.
    pub(super) fn check_name(&self, header: &FileHeader) -> Result<(), Refusal> {
        let refused = |text: &str| Err((Outcome::NameRefused, text.to_owned()));
        if header.name.parts().any(part::is_part_name) {
            return refused("the name is one that the receiver uses itself");
        }
        if !self.hidden && header.name.is_hidden() {
            return refused("hidden files (names that begin with a dot) are not accepted");
        }
        Ok(())
    }

    /// Refuses a place that is taken, unless a file there may be replaced.
    pub(super) fn check_free(&self, place: &Path) -> Result<(), Refusal> {
        let seen = self.disk.look(place).map_err(|e| name_refusal(&e, place))?;
        match seen {
            Some(seen) if seen.kind == SeenKind::Directory => {
                let text = format!("{} is a directory there", self.shown(place));
                Err((Outcome::Exists, text))
            }
            Some(_) if !self.overwrite => Err(self.exists(place)),
            _ => Ok(()),
        }
    }

    /// Refuses more bytes than a transfer may have.
    pub(super) fn check_max_size(&self, bytes: u64) -> Result<(), Refusal> {
        match self.max_size {
            Some(max) if bytes > max => {
                let text = format!("at most {max} bytes are accepted in a transfer");
                Err((Outcome::TooLarge, text))
            }
            _ => Ok(()),
        }
    }

    /// True if an unfinished file of that size stays. One of unknown size cannot be gone on with.
    pub(super) fn keeps(&self, size: u64) -> bool {
        size != SIZE_UNKNOWN && self.keep_from.is_some_and(|least| size >= least)
    }

    /// Refuses more bytes than are free on the disk, if their number is known.
    pub(super) fn check_space(&self, bytes: u64, dir: &Path) -> Result<(), Refusal> {
        if bytes == SIZE_UNKNOWN {
            return Ok(());
        }
        match self.disk.free_space(dir) {
            Ok(Some(free)) if bytes > free => {
                let text = format!("{bytes} bytes; {free} are free on the disk");
                Err((Outcome::DiskFull, text))
            }
            // A disk that does not say is no reason.
            _ => Ok(()),
        }
    }

    /// The refusal of a place that is taken.
    pub(super) fn exists(&self, place: &Path) -> Refusal {
        (Outcome::Exists, format!("{} exists there and is not replaced", self.shown(place)))
    }
}
