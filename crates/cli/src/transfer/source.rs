//! The sender's files: which they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::frame::{ENTRIES_MAX, FileHeader, Kind, SIZE_UNKNOWN};
use super::relative::RelativePath;
pub(crate) use manypath_files::source::{Answer, Entry, Piece, Source, Unwanted, Wishes, read_all};

use crate::failure::{Failure, Result};

/// The argument that stands for standard input.
const STANDARD_INPUT: &str = "-";
/// The name of standard input at the receiver.
const INPUT_NAME: &str = "stdin";

/// The entries to send, in order; a directory comes before its contents, standard input last.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Files and directories.
    pub entries: Vec<Entry>,
    /// Indexes of those that are hidden in directories: not every receiver takes them, and nobody
    /// named them.
    hidden: BTreeSet<u32>,
    /// Entries of directories that are neither files nor directories, and are left out.
    pub skipped: Vec<PathBuf>,
}

impl Plan {
    /// Looks at everything under `paths`. A single one may get another `name`. Fails if anything
    /// cannot be read, so that nothing is sent half.
    pub(crate) fn new(paths: &[PathBuf], name: Option<&Path>) -> Result<Plan> {
        if name.is_some() && paths.len() > 1 {
            return Err(Failure::usage("--as names a single FILE, and there are several")
                .hint("send them one after the other"));
        }
        let mut plan = Plan::default();
        let (inputs, files): (Vec<_>, Vec<_>) =
            paths.iter().partition(|path| *path == Path::new(STANDARD_INPUT));
        for path in files {
            plan.add(path, name)?;
        }
        match inputs.len() {
            0 => {}
            1 => plan.push(
                Source::StandardInput,
                Kind::File,
                name.unwrap_or_else(|| Path::new(INPUT_NAME)),
                None,
            )?,
            _ => return Err(Failure::usage("standard input (-) can be sent only once")),
        }
        plan.check_names()?;
        Ok(plan)
    }

    /// How many entries a receiver gets that takes no hidden ones, and their bytes as far as they
    /// are known. No receiver gets less.
    pub(crate) fn least(&self) -> (u32, u64) {
        let sure = || self.entries.iter().filter(|e| !self.hidden.contains(&e.header.index));
        let bytes = sure().filter_map(|entry| entry.header.known_size()).sum();
        (sure().count() as u32, bytes)
    }

    /// Bytes of all entries; none if one of them is of unknown size.
    pub(crate) fn bytes(&self) -> Option<u64> {
        self.entries.iter().map(|entry| entry.header.known_size()).sum()
    }

    /// Leaves out what is hidden in directories; how many files that are.
    pub(crate) fn leave_out_hidden(&mut self) -> usize {
        let hidden = std::mem::take(&mut self.hidden);
        let is_file = |entry: &&Entry| entry.header.kind == Kind::File;
        let left_out = self.entries.iter().filter(|e| hidden.contains(&e.header.index));
        let files = left_out.filter(is_file).count();
        self.entries.retain(|entry| !hidden.contains(&entry.header.index));
        for (index, entry) in (0..).zip(&mut self.entries) {
            entry.header.index = index;
        }
        files
    }

    /// Fails if two entries would have one name.
    fn check_names(&self) -> Result<()> {
        let mut seen = BTreeMap::new();
        for entry in &self.entries {
            if let Some(other) = seen.insert(&entry.header.name, &entry.source) {
                return Err(Failure::usage(format!(
                    "{other} and {} would both be named {} at the receiver",
                    entry.source, entry.header.name
                ))
                .hint("send them one after the other, into different directories"));
            }
        }
        Ok(())
    }

    fn add(&mut self, path: &Path, name: Option<&Path>) -> Result<()> {
        let meta = fs::metadata(path).map_err(|e| unreadable(path, &e))?;
        // "." and ".." have no name of their own.
        let named = match path.file_name() {
            Some(_) => path.to_owned(),
            None => path.canonicalize().map_err(|e| unreadable(path, &e))?,
        };
        let own = || PathBuf::from(named.file_name().unwrap_or_else(|| "root".as_ref()));
        let name = name.map_or_else(own, Path::to_owned);
        if meta.is_dir() {
            return self.add_directory(path, &name);
        }
        if !meta.is_file() {
            let what = format!("{} is neither a file nor a directory", path.display());
            return Err(Failure::failed(what)
                .hint("pipe its contents into `manypath send -`, which sends standard input"));
        }
        self.add_file(path.to_owned(), &name, &meta)
    }

    fn add_directory(&mut self, root: &Path, name: &Path) -> Result<()> {
        // The root was named, so only what is in it can be hidden.
        let named = name.components().count();
        let mut todo = vec![(root.to_owned(), name.to_owned())];
        while let Some((dir, name)) = todo.pop() {
            self.push(dir.clone().into(), Kind::Directory, &name, None)?;
            self.note_if_hidden(&name, named);
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
                    self.note_if_hidden(&name, named);
                } else {
                    self.skipped.push(path);
                }
            }
            todo.extend(directories.into_iter().rev());
        }
        Ok(())
    }

    /// Notes the entry that was added last if a part of its name is hidden, the first ones aside.
    fn note_if_hidden(&mut self, name: &Path, aside: usize) {
        let is_hidden =
            |part: std::path::Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
        if name.components().skip(aside).any(is_hidden)
            && let Some(last) = self.entries.last()
        {
            self.hidden.insert(last.header.index);
        }
    }

    fn add_file(&mut self, path: PathBuf, name: &Path, meta: &Metadata) -> Result<()> {
        let mut file = File::open(&path).map_err(|e| unreadable(&path, &e))?;
        // Files such as those of /proc have no size and content all the same.
        let is_unknown =
            meta.len() == 0 && file.read(&mut [0]).map_err(|e| unreadable(&path, &e))? > 0;
        self.push(path.into(), Kind::File, name, Some(meta))?;
        if let Some(last) = self.entries.last_mut().filter(|_| is_unknown) {
            last.header.size = SIZE_UNKNOWN;
        }
        Ok(())
    }

    fn push(
        &mut self,
        source: Source,
        kind: Kind,
        name: &Path,
        meta: Option<&Metadata>,
    ) -> Result<()> {
        let name = RelativePath::from_path(name)
            .map_err(|e| Failure::failed(format!("{source} cannot be sent: {e}")))?;
        let index = u32::try_from(self.entries.len()).ok().filter(|index| *index < ENTRIES_MAX);
        let index = index.ok_or_else(|| {
            Failure::failed(format!("more than {ENTRIES_MAX} files cannot be sent at once"))
        })?;
        let unknown = if source == Source::StandardInput { SIZE_UNKNOWN } else { 0 };
        let header = FileHeader {
            index,
            kind,
            size: meta.map_or(unknown, Metadata::len),
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
