//! The operations that the file layer needs from a disk.

use std::ffi::OsString;
use std::fmt;
use std::io::{self, IoSlice};
use std::path::Path;
use std::time::{Duration, SystemTime};

/// The entry found at a path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// File, directory or something else.
    pub kind: SeenKind,
    /// Names the file system it is on.
    pub device: u64,
    /// Length of a file in bytes.
    pub length: u64,
    /// The time since it was last changed, if that is known.
    pub idle: Option<Duration>,
}

/// The kind of something at a path; symbolic links are not followed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum SeenKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, a device, a pipe, …
    Other,
}

/// Identifies a file, whatever names it has.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Names the file system that the file is on.
    pub device: u64,
    /// The number of the file in that file system.
    pub inode: u64,
    /// The file system gives a file another number each time it reads the file from the disk.
    pub is_renumbered: bool,
    /// Length in bytes.
    pub length: u64,
    /// The time of the last change.
    pub modified: Option<SystemTime>,
}

impl Identity {
    /// True if this is the file that was seen `before`. A file system that changes numbers must
    /// show the same length and time.
    pub fn is(&self, before: &Identity) -> bool {
        self.device == before.device
            && (self.inode == before.inode
                || (self.is_renumbered
                    && (self.length, self.modified) == (before.length, before.modified)))
    }
}

/// A file system, as far as a transfer needs it. Every method may fail at any time.
pub trait Disk: Clone + fmt::Debug + Send + 'static {
    /// An open file.
    type File: DiskFile;

    /// The entry at `path`, without following a symbolic link there; `None` if there is nothing.
    fn look(&self, path: &Path) -> io::Result<Option<Seen>>;

    /// The names in a directory, in no order.
    fn list(&self, dir: &Path) -> io::Result<Vec<OsString>>;

    /// Creates one directory.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Creates a file without a name on the file system of `dir`: it is gone with its last handle
    /// unless [`Disk::give_name`] names it. `mode` is its Unix permissions before the umask. An
    /// error of kind [`io::ErrorKind::Unsupported`] says that there is no such thing here.
    fn create_unnamed(&self, dir: &Path, mode: Option<u32>) -> io::Result<Self::File>;

    /// Creates a file that is not there yet.
    fn create_new(&self, path: &Path, mode: Option<u32>) -> io::Result<Self::File>;

    /// Opens a file for reading: a regular one, without following a symbolic link there, and
    /// without waiting as the open of a pipe does.
    fn open(&self, path: &Path) -> io::Result<Self::File>;

    /// The standard input of the process. An error of kind [`io::ErrorKind::Unsupported`] says that
    /// there is no such thing here.
    fn standard_input(&self) -> io::Result<Self::File> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Opens a file for reading and writing, in the same way.
    fn open_to_write(&self, path: &Path) -> io::Result<Self::File>;

    /// Names a file that [`Disk::create_unnamed`] made. Fails if the name is taken.
    fn give_name(&self, file: &Self::File, path: &Path) -> io::Result<()>;

    /// Renames a file, in one step. What has the name `to` is replaced, or makes it fail with
    /// [`io::ErrorKind::AlreadyExists`].
    fn rename(&self, from: &Path, to: &Path, replace: bool) -> io::Result<()>;

    /// Removes a file's name.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes the names in a directory survive a loss of power.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Bytes that can still be written to the file system of `dir`; `None` if it does not say.
    fn free_space(&self, dir: &Path) -> io::Result<Option<u64>>;

    /// A random number for a unique name.
    fn unique(&self) -> io::Result<u64>;
}

/// An open file of a [`Disk`].
pub trait DiskFile: fmt::Debug + Send {
    /// Writes the beginning of `slices`, behind what was written or read last; how much of it.
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize>;

    /// Reads what follows into `buffer`; 0 at the end.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;

    /// Reads on from that byte.
    fn seek(&mut self, offset: u64) -> io::Result<()>;

    /// Shortens the file to `length` bytes, and writes on from there.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Makes the content survive a loss of power. After an error the durable part is unknown.
    fn sync(&self) -> io::Result<()>;

    /// Sets the time of the last change.
    fn set_modified(&self, time: SystemTime) -> io::Result<()>;

    /// Takes the file for this process until it is closed; false if another has it.
    fn try_lock(&self) -> io::Result<bool>;

    /// True while the file has a name.
    fn has_name(&self) -> io::Result<bool>;

    /// The identity of the file; `None` if the system does not say.
    fn identity(&self) -> io::Result<Option<Identity>>;

    /// True if the file belongs to the user that `ours` belongs to, and has no other name.
    fn is_owned_like(&self, ours: &Self) -> io::Result<bool>;

    /// Gives the file the permissions of `other`.
    fn set_mode_of(&self, other: &Self) -> io::Result<()>;
}
