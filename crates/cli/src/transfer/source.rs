//! The sender's files: which they are.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::frame::{FileHeader, Kind};
use super::relative::RelativePath;
pub(crate) use manypath_files::source::{Answer, Entry, Piece, Unwanted, Wishes, read_all};

use crate::failure::{Failure, Result};

/// The entries to send, in order; a directory comes before its contents.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Files and directories.
    pub entries: Vec<Entry>,
    /// Sum of the files' sizes in bytes.
    pub bytes: u64,
    /// Entries of directories that are neither files nor directories, and are left out.
    pub skipped: Vec<PathBuf>,
}

impl Plan {
    /// Looks at everything under `paths`. Fails if anything cannot be read, so that nothing is sent
    /// half.
    pub(crate) fn new(paths: &[PathBuf]) -> Result<Plan> {
        let mut plan = Plan::default();
        for path in paths {
            plan.add(path)?;
        }
        let mut seen = BTreeMap::new();
        for entry in &plan.entries {
            if let Some(other) = seen.insert(&entry.header.name, &entry.source) {
                return Err(Failure::usage(format!(
                    "{} and {} would both be named {} at the receiver",
                    other.display(),
                    entry.source.display(),
                    entry.header.name
                ))
                .hint("send them one after the other, into different directories"));
            }
        }
        Ok(plan)
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        let meta = fs::metadata(path).map_err(|e| unreadable(path, &e))?;
        // "." and ".." have no name of their own.
        let named = match path.file_name() {
            Some(_) => path.to_owned(),
            None => path.canonicalize().map_err(|e| unreadable(path, &e))?,
        };
        let name = PathBuf::from(named.file_name().unwrap_or_else(|| "root".as_ref()));
        if meta.is_dir() {
            return self.add_directory(path, &name);
        }
        if !meta.is_file() {
            let what = format!("{} is neither a file nor a directory", path.display());
            return Err(Failure::failed(what).hint("copy its contents into a file first"));
        }
        self.add_file(path.to_owned(), &name, &meta)
    }

    fn add_directory(&mut self, root: &Path, name: &Path) -> Result<()> {
        let mut todo = vec![(root.to_owned(), name.to_owned())];
        while let Some((dir, name)) = todo.pop() {
            self.push(dir.clone(), Kind::Directory, &name, None)?;
            let mut children: Vec<_> = fs::read_dir(&dir)
                .and_then(Iterator::collect::<io::Result<Vec<_>>>)
                .map_err(|e| unreadable(&dir, &e))?;
            children.sort_by_key(fs::DirEntry::file_name);
            let mut directories = Vec::new();
            for child in children {
                let (path, name) = (child.path(), name.join(child.file_name()));
                // Of the entry itself: symbolic links are not followed.
                let meta = child.metadata().map_err(|e| unreadable(&path, &e))?;
                if meta.is_dir() {
                    directories.push((path, name));
                } else if meta.is_file() {
                    self.add_file(path, &name, &meta)?;
                } else {
                    self.skipped.push(path);
                }
            }
            todo.extend(directories.into_iter().rev());
        }
        Ok(())
    }

    fn add_file(&mut self, path: PathBuf, name: &Path, meta: &Metadata) -> Result<()> {
        File::open(&path).map_err(|e| unreadable(&path, &e))?;
        self.bytes += meta.len();
        self.push(path, Kind::File, name, Some(meta))
    }

    fn push(
        &mut self,
        source: PathBuf,
        kind: Kind,
        name: &Path,
        meta: Option<&Metadata>,
    ) -> Result<()> {
        let name = RelativePath::from_path(name)
            .map_err(|e| Failure::failed(format!("{} cannot be sent: {e}", source.display())))?;
        let index = u32::try_from(self.entries.len())
            .map_err(|_| Failure::failed("more than 4294967295 files cannot be sent at once"))?;
        let header = FileHeader {
            index,
            kind,
            size: meta.map_or(0, Metadata::len),
            mode: meta.and_then(mode),
            modified: meta.and_then(|m| m.modified().ok()).map(since_1970),
            name,
        };
        self.entries.push(Entry { source, header });
        Ok(())
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let failure = Failure::failed(format!("cannot read {}: {error}", path.display()));
    match error.kind() {
        io::ErrorKind::NotFound => failure.hint("check the name; nothing was sent"),
        io::ErrorKind::PermissionDenied => {
            failure.hint("ask its owner for permission, or omit it; nothing was sent")
        }
        _ => failure,
    }
}

#[cfg(unix)]
fn mode(meta: &Metadata) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt;
    Some(meta.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn mode(_meta: &Metadata) -> Option<u32> {
    None
}

/// Seconds, rounded down, and nanoseconds since 1970 UTC.
fn since_1970(time: SystemTime) -> (i64, u32) {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (after.as_secs() as i64, after.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            match before.subsec_nanos() {
                0 => (-(before.as_secs() as i64), 0),
                nanos => (-(before.as_secs() as i64) - 1, 1_000_000_000 - nanos),
            }
        }
    }
}

#[cfg(test)]
mod tests;
