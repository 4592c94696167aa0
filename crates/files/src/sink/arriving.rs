//! A file whose content arrives: its bytes, its digest, its time.

use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use super::refusal::{Refusal, abandoned};
use crate::disk::{Disk, DiskFile};
use crate::frame::{FileHeader, Outcome};
use crate::part::Part;

/// Pieces given to the operating system in one call.
const SLICES_MAX: usize = 64;

/// A file whose content arrives.
#[derive(Debug)]
pub(super) struct Arriving<D: Disk> {
    pub(super) header: FileHeader,
    /// Its final name.
    pub(super) place: PathBuf,
    /// The directory of its unfinished file.
    pub(super) parts: PathBuf,
    pub(super) part: Part<D>,
    sha256: Sha256,
    pub(super) written: u64,
}

impl<D: Disk> Arriving<D> {
    pub(super) fn new(
        header: FileHeader,
        place: PathBuf,
        parts: PathBuf,
        part: Part<D>,
    ) -> Arriving<D> {
        Arriving { header, place, parts, part, sha256: Sha256::new(), written: 0 }
    }

    /// Goes on behind the first `length` bytes of the part, whose digest `sha256` has begun.
    pub(super) fn behind(mut self, length: u64, sha256: Sha256) -> io::Result<Arriving<D>> {
        self.part.file.cut(length)?;
        (self.written, self.sha256) = (length, sha256);
        Ok(self)
    }

    /// Writes what arrived next. A file of unknown size may have any.
    pub(super) fn append(&mut self, pieces: &[Bytes]) -> io::Result<()> {
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
    pub(super) fn verify(&mut self, sha256: Option<[u8; 32]>) -> Result<[u8; 32], Refusal> {
        let Some(expected) = sha256 else {
            return Err(abandoned());
        };
        // From now on the size is known.
        self.header.size = self.header.known_size().unwrap_or(self.written);
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
    let base =
        if seconds >= 0 { UNIX_EPOCH.checked_add(offset) } else { UNIX_EPOCH.checked_sub(offset) };
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
