//! The files of a sender: which they are, and which of them cannot be sent.

mod unsent;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use manypath_files::source::open_found;
use manypath_files::{Identity, SystemDisk, identity, list_found};

use manypath_files::frame::{ENTRIES_MAX, FileHeader, Kind, SIZE_UNKNOWN};
use manypath_files::relative::RelativePath;
use manypath_files::source::{Entry, Source};
pub use unsent::{Unsent, Why};

/// The name of standard input at the receiver.
const INPUT_NAME: &str = "stdin";

/// Why there is no plan.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// A name was given, and several things to send.
    #[error("a name is for a single file, and there are several")]
    NameForSeveral,
    /// Standard input was given more than once.
    #[error("standard input can be sent only once")]
    InputTwice,
    /// Two entries would have one name at the receiver.
    #[error("{first} and {second} would both be named {name} at the receiver")]
    SameName {
        /// The first of them here.
        first: Source,
        /// The second.
        second: Source,
        /// Their name at the receiver.
        name: RelativePath,
    },
    /// There are more entries than the protocol can count.
    #[error("more than {ENTRIES_MAX} files cannot be sent at once")]
    TooMany,
    /// Nothing can be sent.
    #[error("{first}")]
    Nothing {
        /// The first entry that cannot be sent.
        first: Unsent,
        /// How many more there are.
        more: usize,
    },
}

type Result<T> = std::result::Result<T, PlanError>;

/// The entries to send, in order; a directory comes before its contents, standard input last.
#[derive(Debug, Default)]
pub struct Plan {
    /// Files and directories.
    pub(crate) entries: Vec<Entry>,
    /// Indexes of the hidden entries of directories, which not every receiver takes. Hidden files
    /// that the user named are not among them.
    hidden: BTreeSet<u32>,
    /// Entries of directories that are neither files nor directories, and are left out.
    skipped: Vec<PathBuf>,
    /// Entries that cannot be sent.
    pub(crate) unsent: Vec<Unsent>,
}

impl Plan {
    /// Looks at everything under `sources`, with the names that their last parts are; a single one
    /// may get another `name`. An entry that cannot be sent is noted and keeps no other from being
    /// sent. Reads directories, so it may block.
    ///
    /// # Errors
    /// If nothing can be sent, or not under the names that the receiver would see.
    pub fn new(sources: &[Source], name: Option<&Path>) -> Result<Plan> {
        if name.is_some() && sources.len() > 1 {
            return Err(PlanError::NameForSeveral);
        }
        let mut plan = Plan::default();
        let mut inputs = 0;
        for source in sources {
            match source {
                Source::Path(path) => plan.add(path, name)?,
                Source::StandardInput => inputs += 1,
            }
        }
        match inputs {
            0 => {}
            1 => plan.push(Found {
                source: Source::StandardInput,
                kind: Kind::File,
                name: name.unwrap_or_else(|| Path::new(INPUT_NAME)),
                size: SIZE_UNKNOWN,
                meta: None,
                is_hidden: false,
            })?,
            _ => return Err(PlanError::InputTwice),
        }
        plan.check_names()?;
        plan.check_rest()?;
        Ok(plan)
    }

    /// Entries of directories that are neither files nor directories: they are left out.
    #[must_use]
    pub fn skipped(&self) -> &[PathBuf] {
        &self.skipped
    }

    /// Entries that cannot be sent.
    #[must_use]
    pub fn unsent(&self) -> &[Unsent] {
        &self.unsent
    }

    /// True if standard input is sent.
    #[must_use]
    pub fn has_standard_input(&self) -> bool {
        self.entries.iter().any(|entry| entry.source == Source::StandardInput)
    }

    /// How many entries a receiver gets that takes no hidden ones, and their bytes as far as they
    /// are known. No receiver gets less.
    pub(crate) fn least(&self) -> (u32, u64) {
        let sure = || self.entries.iter().filter(|e| !self.hidden.contains(&e.header.index));
        let bytes = sure().filter_map(|entry| entry.header.known_size()).sum();
        (sure().count() as u32, bytes)
    }

    /// Bytes of all entries; none if one of them is of unknown size.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        self.entries.iter().map(|entry| entry.header.known_size()).sum()
    }

    /// Leaves out the hidden entries of directories. Returns how many of them are files.
    pub(crate) fn leave_out_hidden(&mut self) -> usize {
        let hidden = std::mem::take(&mut self.hidden);
        let is_file = |entry: &&Entry| entry.header.kind == Kind::File;
        let left_out = self.entries.iter().filter(|e| hidden.contains(&e.header.index));
        let unsent = self.unsent.extract_if(.., |unsent| unsent.is_hidden);
        let unsent = unsent.filter(|unsent| unsent.kind == Kind::File).count();
        let files = left_out.filter(is_file).count() + unsent;
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
                return Err(PlanError::SameName {
                    first: other.clone(),
                    second: entry.source.clone(),
                    name: entry.header.name.clone(),
                });
            }
        }
        Ok(())
    }

    /// The failure if there is nothing that can be sent.
    fn check_rest(&self) -> Result<()> {
        match self.unsent.split_first() {
            Some((first, more)) if self.entries.is_empty() => {
                Err(PlanError::Nothing { first: first.clone(), more: more.len() })
            }
            _ => Ok(()),
        }
    }

    fn add(&mut self, path: &Path, name: Option<&Path>) -> Result<()> {
        let unreadable = |e: &io::Error| {
            let name = name.or(path.file_name().map(Path::new)).unwrap_or(path);
            Unsent::unreadable(name, path, Kind::File, e)
        };
        // A link that the user names is followed, once: nobody can turn it later.
        let found = fs::metadata(path).and_then(|meta| {
            let is_link = fs::symlink_metadata(path)?.is_symlink();
            Ok((meta, if is_link { path.canonicalize()? } else { path.to_owned() }))
        });
        let (meta, place) = match found {
            Ok(found) => found,
            Err(e) => {
                self.unsent.push(unreadable(&e));
                return Ok(());
            }
        };
        // "." and ".." have no name of their own.
        let named = match path.file_name() {
            Some(_) => path.to_owned(),
            None => match path.canonicalize() {
                Ok(path) => path,
                Err(e) => {
                    self.unsent.push(unreadable(&e));
                    return Ok(());
                }
            },
        };
        let own = || PathBuf::from(named.file_name().unwrap_or_else(|| "root".as_ref()));
        let name = name.map_or_else(own, Path::to_owned);
        if meta.is_dir() {
            return self.add_directory(path, &name);
        }
        if !meta.is_file() {
            self.unsent.push(Unsent::no_file(&name, path));
            return Ok(());
        }
        self.add_file(place, &name, &meta, false)
    }

    fn add_directory(&mut self, root: &Path, name: &Path) -> Result<()> {
        // The root was named, so only what is in it can be hidden.
        let named = name.components().count();
        let is_hidden = |name: &Path| {
            let is_dotted =
                |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
            name.components().skip(named).any(is_dotted)
        };
        let root = Directory { path: root.to_owned(), name: name.to_owned(), found: None };
        let mut todo = vec![root];
        while let Some(Directory { path: dir, name, found }) = todo.pop() {
            let is_hidden_here = is_hidden(&name);
            let mut children = match list_found(&dir, found) {
                Ok(children) => children,
                Err(e) => {
                    let unsent = Unsent::unreadable(&name, &dir, Kind::Directory, &e);
                    self.unsent.push(Unsent { is_hidden: is_hidden_here, ..unsent });
                    continue;
                }
            };
            self.push(Found {
                source: dir.clone().into(),
                kind: Kind::Directory,
                name: &name,
                size: 0,
                meta: None,
                is_hidden: is_hidden_here,
            })?;
            children.sort_by_key(fs::DirEntry::file_name);
            let mut directories = Vec::new();
            for child in children {
                let (path, name) = (dir.join(child.file_name()), name.join(child.file_name()));
                let is_hidden = is_hidden(&name);
                // Of the entry itself: symbolic links are not followed.
                match child.metadata() {
                    Ok(meta) if meta.is_dir() => {
                        let found = identity(&meta);
                        directories.push(Directory { path, name, found });
                    }
                    Ok(meta) if meta.is_file() => self.add_file(path, &name, &meta, is_hidden)?,
                    Ok(_) => self.skipped.push(path),
                    Err(e) => {
                        let unsent = Unsent::unreadable(&name, &path, Kind::File, &e);
                        self.unsent.push(Unsent { is_hidden, ..unsent });
                    }
                }
            }
            todo.extend(directories.into_iter().rev());
        }
        Ok(())
    }

    fn add_file(
        &mut self,
        path: PathBuf,
        name: &Path,
        meta: &Metadata,
        is_hidden: bool,
    ) -> Result<()> {
        // Files such as those of /proc have no size and content all the same.
        let has_more = |mut file: File| Ok(meta.len() == 0 && file.read(&mut [0])? > 0);
        let size = match open_found(&SystemDisk, &path, identity(meta)).and_then(has_more) {
            Ok(false) => meta.len(),
            Ok(true) => SIZE_UNKNOWN,
            Err(e) => {
                let unsent = Unsent::unreadable(name, &path, Kind::File, &e);
                self.unsent.push(Unsent { size: meta.len(), is_hidden, ..unsent });
                return Ok(());
            }
        };
        let (source, kind) = (path.into(), Kind::File);
        self.push(Found { source, kind, name, size, meta: Some(meta), is_hidden })
    }

    /// Adds an entry, unless its name cannot be sent.
    fn push(&mut self, found: Found<'_>) -> Result<()> {
        let Found { source, kind, name, size, meta, is_hidden } = found;
        let name = match RelativePath::from_path(name) {
            Ok(name) => name,
            Err(why) => {
                let unsent = Unsent::unnamed(name, &source.to_string(), kind, why);
                self.unsent.push(Unsent { size, is_hidden, ..unsent });
                return Ok(());
            }
        };
        let index = u32::try_from(self.entries.len()).ok().filter(|index| *index < ENTRIES_MAX);
        let index = index.ok_or(PlanError::TooMany)?;
        let header = FileHeader {
            index,
            kind,
            size,
            mode: meta.and_then(mode),
            modified: meta.and_then(|m| m.modified().ok()).map(since_1970),
            name,
        };
        if is_hidden {
            self.hidden.insert(index);
        }
        self.entries.push(Entry { source, identity: meta.and_then(identity), header });
        Ok(())
    }
}

/// A directory whose entries are looked for.
struct Directory {
    path: PathBuf,
    /// The name at the receiver.
    name: PathBuf,
    /// The directory that was found there; none if the user named it.
    found: Option<Identity>,
}

/// Something to send.
struct Found<'a> {
    source: Source,
    kind: Kind,
    /// The name at the receiver, to be checked.
    name: &'a Path,
    size: u64,
    /// Of a file.
    meta: Option<&'a Metadata>,
    /// It is hidden in a directory.
    is_hidden: bool,
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
