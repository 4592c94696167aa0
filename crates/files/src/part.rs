//! Files that are not complete yet, and what an interrupted receiver left of them.
//!
//! A long file is written to one that stays when the transfer is interrupted, so that the next
//! transfer goes on from there: [`KEPT`] and 16 hexadecimal digits, which follow from its final
//! name. A short file goes to one without a name where the system has those, which is gone with its
//! receiver. Elsewhere, and for the moment in which a file replaces another, it is [`PREFIX`] and
//! 16 random digits. All are in the receiver's directory, locked by their receiver as long as that
//! lives.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::disk::{Disk, DiskFile, SeenKind};
use crate::relative::RelativePath;

/// The prefix of the names of unfinished files that are of no use later.
pub(crate) const PREFIX: &str = ".manypath-part-";
/// The prefix of the names of unfinished files that a later transfer can resume.
pub(crate) const KEPT: &str = ".manypath-kept-";
const DIGITS: usize = 16;
/// Names tried until one is free.
const TRIES: usize = 8;
/// How long an unfinished file is kept after its last change.
const KEPT_FOR: Duration = Duration::from_secs(7 * 24 * 3600);

/// True if `name` is that of an unfinished file.
pub(crate) fn is_part_name(name: &str) -> bool {
    has_digits(name, PREFIX) || is_kept_name(name)
}

/// True if `name` is that of an unfinished file that a later transfer can resume.
pub(crate) fn is_kept_name(name: &str) -> bool {
    has_digits(name, KEPT)
}

fn has_digits(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|digits| {
        digits.len() == DIGITS
            && digits.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

/// An unfinished file. Dropped before it is placed, it leaves nothing behind unless it is kept.
#[derive(Debug)]
pub(crate) struct Part<D: Disk> {
    disk: D,
    pub(crate) file: D::File,
    /// Its own name, if it has one.
    name: Option<PathBuf>,
    /// A later transfer can resume it.
    is_kept: bool,
}

/// The state of the unfinished file that an earlier transfer may have left.
#[derive(Debug)]
pub(crate) enum Kept<D: Disk> {
    /// There is none.
    Nothing,
    /// It can be resumed.
    Part(Part<D>),
    /// Another receiver has it.
    Busy,
    /// Something else has its name: a file of another user, or with another name, or no file.
    Foreign(PathBuf),
}

impl<D: Disk> Drop for Part<D> {
    fn drop(&mut self) {
        if !self.is_kept
            && let Some(name) = self.name.take()
        {
            // The error cannot be reported; the next start tries again.
            let _ = self.disk.remove(&name);
        }
    }
}

impl<D: Disk> Part<D> {
    /// Creates one for a file to be placed in `dir`; if it needs a name, it gets one in `parts`.
    pub(crate) fn create(
        disk: &D,
        dir: &Path,
        parts: &Path,
        mode: Option<u32>,
        unnamed: bool,
    ) -> io::Result<Part<D>> {
        if unnamed {
            match disk.create_unnamed(dir, mode) {
                Ok(file) => {
                    let (disk, name, is_kept) = (disk.clone(), None, false);
                    return Ok(Part { disk, file, name, is_kept });
                }
                Err(e) if e.kind() == io::ErrorKind::Unsupported => {}
                Err(e) => return Err(e),
            }
        }
        let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..TRIES {
            let name = part_path(disk, parts)?;
            let file = match disk.create_new(&name, mode) {
                Ok(file) => file,
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    last = e;
                    continue;
                }
                Err(e) => return Err(e),
            };
            let part = Part { disk: disk.clone(), file, name: Some(name), is_kept: false };
            // Another receiver may clean up between the two steps: then try again.
            if part.is_ours()? {
                return Ok(part);
            }
        }
        Err(last)
    }

    /// Opens what an earlier transfer left of the file with that final name, and gives it the
    /// permissions `mode`. In a directory that others write to, somebody else may have put it
    /// there: only a regular file of this user without another name is taken.
    pub(crate) fn open_kept(
        disk: &D,
        parts: &Path,
        name: &RelativePath,
        mode: Option<u32>,
    ) -> io::Result<Kept<D>> {
        let path = kept_path(parts, name);
        match disk.look(&path)? {
            None => return Ok(Kept::Nothing),
            Some(seen) if seen.kind != SeenKind::File => return Ok(Kept::Foreign(path)),
            Some(_) => {}
        }
        let file = match disk.open_to_write(&path) {
            Ok(file) => file,
            Err(e) => {
                return match e.kind() {
                    io::ErrorKind::NotFound => Ok(Kept::Nothing),
                    // Of another user, or not a file any more.
                    io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput => {
                        Ok(Kept::Foreign(path))
                    }
                    _ => Err(e),
                };
            }
        };
        // A new file shows the owner and the permissions that files get here: some file systems
        // have one owner for all of them, and the umask is not to be asked for.
        let new = Part::create(disk, parts, parts, mode, false)?;
        if !file.is_owned_like(&new.file)? {
            return Ok(Kept::Foreign(path));
        }
        let part = Part { disk: disk.clone(), file, name: Some(path), is_kept: true };
        if !part.is_ours()? {
            return Ok(Kept::Busy);
        }
        part.file.set_mode_of(&new.file)?;
        Ok(Kept::Part(part))
    }

    /// Creates one that is kept. `None` if another receiver has it.
    pub(crate) fn create_kept(
        disk: &D,
        parts: &Path,
        name: &RelativePath,
        mode: Option<u32>,
    ) -> io::Result<Option<Part<D>>> {
        let path = kept_path(parts, name);
        let file = match disk.create_new(&path, mode) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            Err(e) => return Err(e),
        };
        let part = Part { disk: disk.clone(), file, name: Some(path), is_kept: true };
        Ok(part.is_ours()?.then_some(part))
    }

    /// It is of no use to a later transfer: what it holds is wrong.
    pub(crate) fn discard(&mut self) {
        self.is_kept = false;
    }

    /// Locks the file. False if somebody else has it or has removed it.
    fn is_ours(&self) -> io::Result<bool> {
        match self.file.try_lock() {
            // Without locks, files in use cannot be distinguished from abandoned ones, so they
            // stay.
            Err(e) if e.kind() == io::ErrorKind::Unsupported => Ok(true),
            Err(e) => Err(e),
            Ok(locked) => Ok(locked && self.file.has_name()?),
        }
    }

    /// Gives the file its final name, in one step.
    pub(crate) fn place(mut self, parts: &Path, place: &Path, replace: bool) -> io::Result<()> {
        if self.name.is_none() && !replace {
            return self.disk.give_name(&self.file, place);
        }
        if self.name.is_none() {
            // A name is given only if it is free: the file takes one of its own, then the other's.
            self.is_ours()?;
            let name = part_path(&self.disk, parts)?;
            self.disk.give_name(&self.file, &name)?;
            self.name = Some(name);
        }
        if let Some(name) = &self.name {
            self.disk.rename(name, place, replace)?;
        }
        self.name = None;
        Ok(())
    }
}

fn part_path<D: Disk>(disk: &D, parts: &Path) -> io::Result<PathBuf> {
    Ok(parts.join(format!("{PREFIX}{:0width$x}", disk.unique()?, width = DIGITS)))
}

/// The path of the unfinished file that is kept of the one with that final name.
pub(crate) fn kept_path(parts: &Path, name: &RelativePath) -> PathBuf {
    let digest = Sha256::digest(name.as_str().as_bytes());
    let digits = data_encoding::HEXLOWER.encode(&digest[..DIGITS / 2]);
    parts.join(format!("{KEPT}{digits}"))
}

/// Removes what receivers that are gone left in `dir`; how many files. Those of living ones are
/// locked. With `keeps`, what a later transfer may go on from stays for a week.
pub(crate) fn clean<D: Disk>(disk: &D, dir: &Path, keeps: bool) -> io::Result<usize> {
    let mut removed = 0;
    for name in disk.list(dir)? {
        let path = dir.join(&name);
        let Some(name) = name.to_str().filter(|name| is_part_name(name)) else { continue };
        let Some(seen) = disk.look(&path)?.filter(|seen| seen.kind == SeenKind::File) else {
            continue;
        };
        let is_old = seen.idle.is_some_and(|idle| idle > KEPT_FOR);
        if keeps && is_kept_name(name) && !is_old {
            continue;
        }
        // A part that its receiver took meanwhile, or that belongs to another user, stays; the
        // search goes on.
        let Ok(file) = disk.open(&path) else { continue };
        // Removed while the lock is held, so that no other receiver begins to use it.
        if matches!(file.try_lock(), Ok(true)) && disk.remove(&path).is_ok() {
            removed += 1;
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SystemDisk;

    #[test]
    fn only_names_of_parts_are_names_of_parts() {
        assert!(is_part_name(".manypath-part-0123456789abcdef"));
        for name in [
            "manypath-part-0123456789abcdef",
            ".manypath-part-0123456789abcde",
            ".manypath-part-0123456789abcdeF",
            ".manypath-part-0123456789abcdef0",
            ".manypath-part-",
        ] {
            assert!(!is_part_name(name), "{name}");
        }
    }

    #[test]
    fn abandoned_parts_are_removed_and_living_ones_and_other_files_stay() {
        let dir = tempfile::tempdir().unwrap();
        let abandoned = dir.path().join(".manypath-part-0123456789abcdef");
        let other = dir.path().join("x.part-01234567");
        std::fs::write(&abandoned, "x").unwrap();
        std::fs::write(&other, "x").unwrap();
        let living = Part::create(&SystemDisk, dir.path(), dir.path(), None, false).unwrap();
        assert_eq!(clean(&SystemDisk, dir.path(), true).unwrap(), 1);
        assert!(!abandoned.exists() && other.exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
        drop(living);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_a_later_transfer_goes_on_from_stays_for_a_week() {
        let dir = tempfile::tempdir().unwrap();
        let name = RelativePath::from_bytes(b"d/x").unwrap();
        let create = || Part::create_kept(&SystemDisk, dir.path(), &name, None).unwrap();
        let open = || match Part::open_kept(&SystemDisk, dir.path(), &name, None).unwrap() {
            Kept::Part(part) => Some(part),
            _ => None,
        };
        let clean = |keeps| clean(&SystemDisk, dir.path(), keeps).unwrap();
        let living = create().unwrap();
        assert!(create().is_none() && open().is_none(), "another has it");
        assert_eq!(clean(false), 0);
        drop(living);
        assert_eq!(clean(true), 0);
        open().unwrap().file.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert_eq!(clean(true), 1);
        assert!(open().is_none());
        drop(create().unwrap());
        assert_eq!(clean(false), 1);
        create().unwrap().discard();
        assert!(open().is_none());
    }

    #[cfg(unix)]
    #[test]
    fn only_an_own_file_without_another_name_is_gone_on_with() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let name = RelativePath::from_bytes(b"x").unwrap();
        let kept = kept_path(dir.path(), &name);
        let open = || Part::open_kept(&SystemDisk, dir.path(), &name, Some(0o600)).unwrap();
        assert!(matches!(open(), Kept::Nothing));
        let other = dir.path().join("other");
        std::fs::write(&other, "theirs").unwrap();
        symlink(&other, &kept).unwrap();
        assert!(matches!(open(), Kept::Foreign(_)), "a link");
        std::fs::remove_file(&kept).unwrap();
        std::fs::hard_link(&other, &kept).unwrap();
        assert!(matches!(open(), Kept::Foreign(_)), "a second name");
        std::fs::remove_file(&other).unwrap();
        std::fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o666)).unwrap();
        let Kept::Part(part) = open() else { panic!("it is ours") };
        assert!(matches!(open(), Kept::Busy));
        let mode = std::fs::metadata(&kept).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "of the sender's file, not of an earlier one");
        drop(part);
        // Of another user: only root can make one.
        if std::os::unix::fs::chown(&kept, Some(12345), None).is_ok() {
            assert!(matches!(open(), Kept::Foreign(_)), "another user's");
        }
        assert_eq!(std::fs::read(&kept).unwrap(), b"theirs", "it is left alone");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_part_that_cannot_be_opened_does_not_keep_a_receiver_from_its_start() {
        let dir = tempfile::tempdir().unwrap();
        let names = [".manypath-part-0123456789abcde0", ".manypath-part-0123456789abcde1"];
        let [first, second] = names.map(|name| dir.path().join(name));
        std::fs::create_dir(&first).unwrap();
        std::fs::write(&second, "x").unwrap();
        assert_eq!(clean(&SystemDisk, dir.path(), true).unwrap(), 1);
        assert!(first.exists() && !second.exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_without_a_name_leaves_nothing_and_can_be_placed() {
        use std::io::Write;
        let dir = tempfile::tempdir().unwrap();
        let make = || Part::create(&SystemDisk, dir.path(), dir.path(), Some(0o600), true).unwrap();
        let part = make();
        if part.name.is_some() {
            return; // the temporary directory's file system does not have them
        }
        drop(part);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let place = dir.path().join("x");
        for (replace, text) in [(false, "one"), (true, "two")] {
            let mut part = make();
            part.file.write_all(text.as_bytes()).unwrap();
            part.place(dir.path(), &place, replace).unwrap();
            assert_eq!(std::fs::read_to_string(&place).unwrap(), text);
        }
        let taken = make().place(dir.path(), &place, false).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
