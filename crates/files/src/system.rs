//! The operating system's disk.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, IoSlice, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::SystemTime;

use crate::disk::{Disk, DiskFile, Identity, Seen, SeenKind};

/// The file systems of this machine.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    type File = File;

    fn look(&self, path: &Path) -> io::Result<Option<Seen>> {
        let meta = match path.symlink_metadata() {
            Ok(meta) => meta,
            // Something on the way may be a file: then there is nothing behind it.
            Err(e)
                if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        let kind = match meta.file_type() {
            t if t.is_file() => SeenKind::File,
            t if t.is_dir() => SeenKind::Directory,
            _ => SeenKind::Other,
        };
        let idle = meta.modified().ok().and_then(|time| time.elapsed().ok());
        Ok(Some(Seen { kind, device: device(&meta), length: meta.len(), idle }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name())).collect()
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn create_unnamed(&self, dir: &Path, mode: Option<u32>) -> io::Result<File> {
        unnamed::create(dir, mode)
    }

    fn create_new(&self, path: &Path, mode: Option<u32>) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        if let Some(mode) = mode {
            set_mode(&mut options, mode);
        }
        options.open(path)
    }

    fn open(&self, path: &Path) -> io::Result<File> {
        open_regular(OpenOptions::new().read(true), path)
    }

    fn standard_input(&self) -> io::Result<File> {
        standard_input()
    }

    fn open_to_write(&self, path: &Path) -> io::Result<File> {
        open_regular(OpenOptions::new().read(true).write(true), path)
    }

    fn give_name(&self, file: &File, path: &Path) -> io::Result<()> {
        unnamed::give_name(file, path)
    }

    fn rename(&self, from: &Path, to: &Path, replace: bool) -> io::Result<()> {
        if replace { fs::rename(from, to) } else { rename_new(from, to) }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        if !cfg!(unix) {
            return Ok(());
        }
        match File::open(dir)?.sync_all() {
            // Some file systems have nothing to do here, and say so in their own way.
            Err(e)
                if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
            {
                Ok(())
            }
            synced => synced,
        }
    }

    fn free_space(&self, dir: &Path) -> io::Result<Option<u64>> {
        free_space(dir)
    }

    fn unique(&self) -> io::Result<u64> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        Ok(u64::from_be_bytes(random))
    }
}

impl DiskFile for File {
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        Write::write_vectored(self, slices)
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Read::read(self, buffer)
    }

    fn seek(&mut self, offset: u64) -> io::Result<()> {
        Seek::seek(self, SeekFrom::Start(offset)).map(drop)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        DiskFile::seek(self, length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }

    fn set_modified(&self, time: SystemTime) -> io::Result<()> {
        File::set_modified(self, time)
    }

    fn try_lock(&self) -> io::Result<bool> {
        match File::try_lock(self) {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(e)) => Err(e),
        }
    }

    fn has_name(&self) -> io::Result<bool> {
        has_name(self)
    }

    fn identity(&self) -> io::Result<Option<Identity>> {
        Ok(identity(&self.metadata()?)
            .map(|identity| Identity { is_renumbered: is_renumbered(self), ..identity }))
    }

    fn is_owned_like(&self, ours: &File) -> io::Result<bool> {
        is_owned_like(self, ours)
    }

    fn set_mode_of(&self, other: &File) -> io::Result<()> {
        let mode = other.metadata()?.permissions();
        if self.metadata()?.permissions() == mode { Ok(()) } else { self.set_permissions(mode) }
    }
}

/// Opens a regular file. What took its place since somebody looked is refused by the descriptor: a
/// symbolic link is not followed, and a pipe not waited for.
fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        options.custom_flags(flags.bits() as i32);
    }
    let not_regular = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    let file = options
        .open(path)
        .map_err(|e| if is_link(&e) { not_regular("it is a symbolic link") } else { e })?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(not_regular("it is not a regular file"))
}

#[cfg(unix)]
fn is_link(error: &io::Error) -> bool {
    use rustix::io::Errno;
    // POSIX has the first, FreeBSD the second.
    matches!(Errno::from_io_error(error), Some(Errno::LOOP | Errno::MLINK))
}

#[cfg(not(unix))]
fn is_link(_error: &io::Error) -> bool {
    false
}

/// The identity that a file had when this was read of it; `None` if the system does not say. The
/// file system may renumber files; only an open file tells.
pub fn identity(meta: &fs::Metadata) -> Option<Identity> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (device, inode) = (meta.dev(), meta.ino());
        let (length, modified) = (meta.len(), meta.modified().ok());
        Some(Identity { device, inode, is_renumbered: false, length, modified })
    }
    #[cfg(not(unix))]
    {
        let _ = meta;
        None
    }
}

/// The entries of the directory that was found at `dir`, and of none that took its place since.
/// Their paths may be others: join their names to `dir`.
///
/// # Errors
/// If there is no such directory any more, or it cannot be read.
pub fn list_found(dir: &Path, found: Option<Identity>) -> io::Result<Vec<fs::DirEntry>> {
    #[cfg(target_os = "linux")]
    if let Some(found) = found {
        use rustix::fs::OFlags;
        use std::os::fd::AsRawFd;
        use std::os::unix::fs::OpenOptionsExt;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
        let open = OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(dir)?;
        if DiskFile::identity(&open)?.is_some_and(|now| !now.is(&found)) {
            let what = "another directory has taken its place since it was found";
            return Err(io::Error::other(what));
        }
        let path = format!("/proc/self/fd/{}", open.as_raw_fd());
        // Without /proc, by its name.
        if let Ok(entries) = fs::read_dir(path) {
            return entries.collect();
        }
    }
    let _ = found;
    fs::read_dir(dir)?.collect()
}

/// True on file systems without lasting numbers of files: FAT, exFAT, and those in user space.
#[cfg(target_os = "linux")]
fn is_renumbered(file: &File) -> bool {
    const FAT: u64 = 0x4d44;
    const EXFAT: u64 = 0x2011_bab0;
    const FUSE: u64 = 0x6573_5546;
    rustix::fs::fstatfs(file).is_ok_and(|stat| [FAT, EXFAT, FUSE].contains(&(stat.f_type as u64)))
}

#[cfg(not(target_os = "linux"))]
fn is_renumbered(_file: &File) -> bool {
    false
}

#[cfg(unix)]
fn is_owned_like(file: &File, ours: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let meta = file.metadata()?;
    Ok(meta.is_file() && meta.nlink() <= 1 && meta.uid() == ours.metadata()?.uid())
}

#[cfg(not(unix))]
fn is_owned_like(_file: &File, _ours: &File) -> io::Result<bool> {
    Ok(true)
}

/// True if an error says that this process, or the system, has no descriptor left.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
    }
    #[cfg(not(unix))]
    {
        let _ = error;
        false
    }
}

/// A rename that replaces nothing.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // The file system or the kernel does not have it.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
            renamed => return Ok(renamed?),
        }
    }
    // A hard link, unlike a rename, fails if the name is taken.
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(e),
        // No hard links either: look, then rename.
        Err(_) if to.symlink_metadata().is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

/// Files without a name: `O_TMPFILE`.
#[cfg(target_os = "linux")]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, openat};
    use rustix::io::Errno;

    pub(super) fn create(dir: &Path, mode: Option<u32>) -> io::Result<File> {
        let mode = Mode::from_raw_mode(mode.unwrap_or(0o666));
        match openat(CWD, dir, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, mode) {
            Ok(file) => Ok(file.into()),
            // What kernels and file systems that do not know it answer.
            Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
                Err(io::ErrorKind::Unsupported.into())
            }
            Err(e) => Err(e.into()),
        }
    }

    pub(super) fn give_name(file: &File, path: &Path) -> io::Result<()> {
        // By way of /proc: the other one, AT_EMPTY_PATH, needs a privilege.
        let from = format!("/proc/self/fd/{}", file.as_raw_fd());
        Ok(linkat(CWD, from, CWD, path, AtFlags::SYMLINK_FOLLOW)?)
    }
}

#[cfg(not(target_os = "linux"))]
mod unnamed {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn create(_dir: &Path, _mode: Option<u32>) -> io::Result<File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn give_name(_file: &File, _path: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// The standard input of this process, past the buffer that the standard library has for it.
#[cfg(unix)]
fn standard_input() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
}

#[cfg(windows)]
fn standard_input() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdin().as_handle().try_clone_to_owned()?.into())
}

/// The standard output of this process, past the buffer that the standard library has for it.
///
/// # Errors
/// If the system gives no further handle of it.
#[cfg(unix)]
pub fn standard_output() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// The standard output of this process, past the buffer that the standard library has for it.
///
/// # Errors
/// If the system gives no further handle of it.
#[cfg(windows)]
pub fn standard_output() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(io::stdout().as_handle().try_clone_to_owned()?.into())
}

#[cfg(unix)]
fn set_mode(options: &mut OpenOptions, mode: u32) {
    use std::os::unix::fs::OpenOptionsExt;
    options.mode(mode); // the umask still applies
}

#[cfg(not(unix))]
fn set_mode(_options: &mut OpenOptions, _mode: u32) {}

#[cfg(unix)]
fn device(meta: &fs::Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::dev(meta)
}

#[cfg(not(unix))]
fn device(_meta: &fs::Metadata) -> u64 {
    0
}

#[cfg(unix)]
fn has_name(file: &File) -> io::Result<bool> {
    Ok(std::os::unix::fs::MetadataExt::nlink(&file.metadata()?) > 0)
}

#[cfg(not(unix))]
fn has_name(_file: &File) -> io::Result<bool> {
    Ok(true) // an open file's name cannot be removed
}

#[cfg(unix)]
fn free_space(dir: &Path) -> io::Result<Option<u64>> {
    let said = rustix::fs::statvfs(dir)?;
    // File systems that cannot say have no blocks at all.
    Ok((said.f_blocks > 0).then(|| said.f_bavail.saturating_mul(said.f_frsize)))
}

#[cfg(not(unix))]
fn free_space(_dir: &Path) -> io::Result<Option<u64>> {
    Ok(None)
}
