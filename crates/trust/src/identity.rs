//! Files that keep a private key.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

/// Longest identity file in bytes.
const FILE_LEN_MAX: u64 = 64 << 10;
/// How often a file is looked for that others create and remove at the same time.
const TRIES: usize = 3;

/// A private key that an identity file keeps as PEM (RFC 7468).
pub trait IdentityKey: Sized {
    /// Makes a new key.
    ///
    /// # Errors
    /// The reason, for a user.
    fn generate() -> Result<Self, String>;

    /// Reads a key. The text may be any.
    ///
    /// # Errors
    /// The reason why the text is not a key, for a user. It must not repeat the text.
    fn from_pem(pem: &str) -> Result<Self, String>;

    /// The text that [`from_pem`](Self::from_pem) reads.
    fn to_pem(&self) -> Zeroizing<String>;
}

/// The key of an identity file.
#[derive(Debug)]
pub struct Identity<K> {
    /// The key.
    pub key: K,
    /// The file did not exist: the key is new.
    pub created: bool,
}

/// Why an identity file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// Other users may read or change it.
    #[error("other users have access to {}: its mode is {mode:04o}", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It belongs to a user who is neither this one nor root.
    #[error("{} belongs to another user", .0.display())]
    Owner(PathBuf),
    /// It is a directory, a device or the like.
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
    /// It does not contain a key.
    #[error("{} is not an identity: {why}", path.display())]
    NotAKey {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// No key can be made.
    #[error("cannot make a key: {0}")]
    Generate(String),
    /// It cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// It cannot be created.
    #[error("cannot create {}: {error}", path.display())]
    Create {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

impl<K: IdentityKey> Identity<K> {
    /// Reads the key in this file. If there is no file, makes a key and creates it, with access for
    /// this user only. The file appears at once with all its content, durably; of several processes
    /// that create it at the same time, all get the key of the first.
    ///
    /// # Errors
    /// If the file cannot be read or created, other users have access to it, or it is not a key. It
    /// is not changed then.
    pub fn load_or_create(path: &Path) -> Result<Identity<K>, IdentityError> {
        let mut lost = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..TRIES {
            if let Some(key) = load(path)? {
                return Ok(Identity { key, created: false });
            }
            let key = K::generate().map_err(IdentityError::Generate)?;
            match create_private(path, key.to_pem().as_bytes()) {
                Ok(()) => return Ok(Identity { key, created: true }),
                // Somebody was faster.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => lost = error,
                Err(error) => return Err(IdentityError::Create { path: path.to_owned(), error }),
            }
        }
        Err(IdentityError::Create { path: path.to_owned(), error: lost })
    }
}

/// The key in a file; none if there is no file.
fn load<K: IdentityKey>(path: &Path) -> Result<Option<K>, IdentityError> {
    let unreadable = |error| IdentityError::Read { path: path.to_owned(), error };
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unreadable(error)),
    };
    // Of the open file, lest another take its place in between.
    check(&file, path)?;
    // Never moved as it grows, so that no copy stays behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(FILE_LEN_MAX as usize + 1));
    file.take(FILE_LEN_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let not_a_key =
        |why: &str| IdentityError::NotAKey { path: path.to_owned(), why: why.to_owned() };
    if bytes.len() as u64 > FILE_LEN_MAX {
        return Err(not_a_key("it is longer than 64 KiB"));
    }
    let pem = std::str::from_utf8(&bytes).map_err(|_| not_a_key("it is not text"))?;
    K::from_pem(pem).map(Some).map_err(|why| not_a_key(&why))
}

/// Opens a file to read; does not wait if it is a pipe.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    }
    options.read(true).open(path)
}

/// An error if somebody else has access to the file, or it is none.
fn check(file: &File, path: &Path) -> Result<(), IdentityError> {
    let metadata =
        file.metadata().map_err(|error| IdentityError::Read { path: path.to_owned(), error })?;
    if !metadata.is_file() {
        return Err(IdentityError::NotAFile(path.to_owned()));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let mode = metadata.mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(IdentityError::Exposed { path: path.to_owned(), mode });
        }
        let own = rustix::process::geteuid().as_raw();
        if ![0, own].contains(&metadata.uid()) {
            return Err(IdentityError::Owner(path.to_owned()));
        }
    }
    Ok(())
}

/// Creates a file with this content, for this user only. It appears at once with all its content,
/// durably.
///
/// # Errors
/// `AlreadyExists` if something has its name; or why it cannot be created.
pub fn create_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let dir = match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    };
    // Created with mode 0600; removed if anything fails.
    let mut file = tempfile::Builder::new().prefix(".manypath-").tempfile_in(dir)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist_noclobber(path).map_err(|refused| refused.error)?;
    #[cfg(unix)]
    File::open(dir)?.sync_all()?;
    Ok(())
}

#[cfg(all(test, unix))]
mod tests;
