//! Directories of a transfer: creating them, and making the names in them durable.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use super::refusal::{Refusal, name_refusal};
use super::store::Store;
use crate::disk::{Disk, SeenKind};
use crate::frame::{FileHeader, Outcome};

/// Directories remembered as durable, so that they are synced once.
const DIRS_REMEMBERED: usize = 10_000;

/// Directories whose names, or the names in them, must be made durable.
#[derive(Debug, Default)]
pub(super) struct Directories {
    /// Directories with names that may not survive a loss of power.
    unsynced: BTreeSet<PathBuf>,
    /// Directories whose own name is durable, or will be with the next sync.
    synced: BTreeSet<PathBuf>,
}

impl Directories {
    /// Notes the directory of a new name.
    pub(super) fn named(&mut self, place: &Path) {
        self.unsynced.extend(place.parent().map(Path::to_owned));
    }

    /// Makes names durable; the directories for which it failed. They are tried again next time.
    pub(super) fn sync<D: Disk>(&mut self, disk: &D) -> Vec<(PathBuf, io::Error)> {
        let mut failed = Vec::new();
        for dir in std::mem::take(&mut self.unsynced) {
            if let Err(e) = disk.sync_dir(&dir) {
                self.unsynced.insert(dir.clone());
                failed.push((dir, e));
            }
        }
        failed
    }

    /// The place of a file or directory. Creates the directories above it and notes that their
    /// names must be made durable with it, even if they exist: the receiver that made them may have
    /// been killed before it did that.
    pub(super) fn place<D: Disk>(
        &mut self,
        store: &Store<D>,
        header: &FileHeader,
    ) -> Result<PathBuf, Refusal> {
        store.check_name(header)?;
        let mut place = store.dir.clone();
        let mut parts = header.name.parts().peekable();
        while let Some(part) = parts.next() {
            if self.synced.len() >= DIRS_REMEMBERED {
                self.synced.clear();
            }
            let dir = place.clone();
            place.push(part);
            if parts.peek().is_some() {
                if !make_directory(&store.disk, &place)? {
                    let text = format!("{} is not a directory", store.shown(&place));
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
}

/// Creates a directory, unless it is there; false if something else is. A symbolic link is
/// something else: it would lead outside.
pub(super) fn make_directory<D: Disk>(disk: &D, place: &Path) -> Result<bool, Refusal> {
    let look = || disk.look(place).map_err(|e| name_refusal(&e, place));
    let mut seen = look()?;
    if seen.is_none() {
        match disk.create_dir(place) {
            Ok(()) => return Ok(true),
            // Another transfer was faster.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => seen = look()?,
            Err(e) => return Err(name_refusal(&e, place)),
        }
    }
    Ok(seen.is_some_and(|seen| seen.kind == SeenKind::Directory))
}
