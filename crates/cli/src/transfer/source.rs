//! The sender's files: which they are.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::frame::{FileHeader, Kind};
use super::relative::RelativePath;
pub(crate) use manypath_files::source::{Entry, Piece, Unwanted, read_all};

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
mod tests {
    use super::*;
    use manypath_files::SystemDisk;
    use sha2::{Digest, Sha256};
    use tokio::sync::mpsc;

    fn names(plan: &Plan) -> Vec<(&str, Kind, u64)> {
        let entry = |e: &'_ Entry| (e.header.kind, e.header.size);
        plan.entries.iter().map(|e| (e.header.name.as_str(), entry(e).0, entry(e).1)).collect()
    }

    #[test]
    fn a_directory_is_walked_in_order_without_following_links() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        fs::create_dir_all(top.join("b/empty")).unwrap();
        fs::write(top.join("b/x"), "12345").unwrap();
        fs::write(top.join("a"), "").unwrap();
        #[cfg(unix)]
        std::os::unix::fs::symlink("/etc", top.join("link")).unwrap();
        let plan = Plan::new(std::slice::from_ref(&top)).unwrap();
        use Kind::{Directory, File};
        let expected = [
            ("top", Directory, 0),
            ("top/a", File, 0),
            ("top/b", Directory, 0),
            ("top/b/x", File, 5),
            ("top/b/empty", Directory, 0),
        ];
        assert_eq!(names(&plan), expected);
        assert_eq!(plan.bytes, 5);
        assert_eq!(plan.skipped, if cfg!(unix) { vec![top.join("link")] } else { vec![] });
        let indexes: Vec<_> = plan.entries.iter().map(|e| e.header.index).collect();
        assert_eq!(indexes, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn two_files_of_one_name_and_missing_files_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for sub in ["a", "b"] {
            fs::create_dir(dir.path().join(sub)).unwrap();
            fs::write(dir.path().join(sub).join("x"), "").unwrap();
        }
        let twice = [dir.path().join("a/x"), dir.path().join("b/x")];
        assert_eq!(Plan::new(&twice).unwrap_err().exit, crate::failure::Exit::Usage);
        let missing = Plan::new(&[dir.path().join("c")]).unwrap_err();
        assert_eq!(missing.exit, crate::failure::Exit::Failed);
    }

    #[test]
    fn content_comes_in_full_messages_with_the_digest_of_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let content: Vec<u8> = (0..100_003u32).map(|i| i as u8).collect();
        fs::write(&path, &content).unwrap();
        let plan = Plan::new(&[path]).unwrap();
        let (tx, mut rx) = mpsc::channel(1000);
        read_all(&SystemDisk, &plan.entries, 1000, &Unwanted::none(), &tx);
        drop(tx);
        assert!(matches!(rx.blocking_recv(), Some(Piece::Begin(0))));
        let mut got = Vec::new();
        loop {
            match rx.blocking_recv().unwrap() {
                Piece::Content(bytes) => {
                    assert!(bytes.len() == 1000 || got.len() + bytes.len() == content.len());
                    got.extend(bytes);
                }
                Piece::End { index, result } => {
                    assert_eq!(index, 0);
                    assert_eq!(result, Ok(Some(Sha256::digest(&content).into())));
                    break;
                }
                Piece::Begin(_) => panic!("one file begins once"),
            }
        }
        assert_eq!(got, content);
    }

    #[test]
    fn a_file_that_shrinks_or_is_not_wanted_ends_early() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        fs::write(&path, vec![1; 5000]).unwrap();
        let plan = Plan::new(std::slice::from_ref(&path)).unwrap();
        let end = |unwanted: &Unwanted| {
            let (tx, mut rx) = mpsc::channel(1000);
            read_all(&SystemDisk, &plan.entries, 1000, unwanted, &tx);
            drop(tx);
            std::iter::from_fn(|| rx.blocking_recv()).last()
        };
        let unwanted = Unwanted::none();
        unwanted.set(0);
        assert!(matches!(end(&unwanted), Some(Piece::End { result: Ok(None), .. })));
        fs::write(&path, vec![1; 10]).unwrap();
        assert!(matches!(end(&Unwanted::none()), Some(Piece::End { result: Err(_), .. })));
    }

    #[test]
    fn times_before_1970_round_down() {
        let second = std::time::Duration::from_millis;
        assert_eq!(since_1970(UNIX_EPOCH + second(1500)), (1, 500_000_000));
        assert_eq!(since_1970(UNIX_EPOCH - second(1500)), (-2, 500_000_000));
        assert_eq!(since_1970(UNIX_EPOCH - second(1000)), (-1, 0));
    }
}
