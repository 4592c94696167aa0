//! The keys that may send.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::Fingerprint;

/// Longest file of keys in bytes.
const FILE_LEN_MAX: u64 = 1 << 20;

/// A set of public keys, by their fingerprints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(BTreeSet<Fingerprint>);

/// Why a list of keys cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum AllowError {
    /// A word begins like a fingerprint and is none.
    #[error("{0:?} is not sha256: and 64 hexadecimal digits")]
    Key(String),
    /// A line of a file is not a fingerprint.
    #[error("{}, line {line}: not sha256: and 64 hexadecimal digits", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A file has no key, so that nobody could send.
    #[error("{} contains no key", .0.display())]
    Empty(PathBuf),
    /// A file is longer than a mebibyte, or not UTF-8.
    #[error("{} is not a list of keys", .0.display())]
    NotAList(PathBuf),
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
}

impl AllowList {
    /// The keys of all `words`: each is `sha256:` and 64 hexadecimal digits, or a file with one of
    /// these on each line. In files, `#` begins a comment.
    ///
    /// # Errors
    /// For the first word or file that cannot be read, and for a file without a key.
    pub fn read<W: AsRef<OsStr>>(words: &[W]) -> Result<AllowList, AllowError> {
        let mut list = AllowList::default();
        for word in words {
            let word = word.as_ref();
            match word.to_str() {
                Some(text) if Fingerprint::looks_like(text) => {
                    let key = text.parse().map_err(|_| AllowError::Key(text.to_owned()))?;
                    list.0.insert(key);
                }
                _ => list.add_file(Path::new(word))?,
            }
        }
        Ok(list)
    }

    /// True if the owner of this key may send.
    #[must_use]
    pub fn contains(&self, key: &Fingerprint) -> bool {
        self.0.contains(key)
    }

    /// The keys, each once.
    pub fn keys(&self) -> impl Iterator<Item = &Fingerprint> {
        self.0.iter()
    }

    /// Number of different keys.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn add_file(&mut self, path: &Path) -> Result<(), AllowError> {
        let not_a_list = || AllowError::NotAList(path.to_owned());
        let mut bytes = Vec::new();
        File::open(path)
            .and_then(|file| file.take(FILE_LEN_MAX + 1).read_to_end(&mut bytes))
            .map_err(|error| AllowError::Io { path: path.to_owned(), error })?;
        if bytes.len() as u64 > FILE_LEN_MAX {
            return Err(not_a_list());
        }
        let text = String::from_utf8(bytes).map_err(|_| not_a_list())?;
        let keys = lines(&text).map_err(|line| AllowError::Line { path: path.to_owned(), line })?;
        if keys.is_empty() {
            return Err(AllowError::Empty(path.to_owned()));
        }
        self.0.extend(keys);
        Ok(())
    }
}

/// The keys of a file, or the first line, from 1, that is none.
fn lines(text: &str) -> Result<Vec<Fingerprint>, usize> {
    let mut keys = Vec::new();
    for (number, line) in (1_usize..).zip(text.lines()) {
        let key = line.split('#').next().unwrap_or_default().trim();
        if !key.is_empty() {
            keys.push(key.parse().map_err(|_| number)?);
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn keys_come_from_words_and_files() {
        let [ann, ben, eve] = ["ann", "ben", "eve"].map(|name| Fingerprint::of(name.as_bytes()));
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("keys");
        let text = format!("# Who may send\r\n\r\n{ann} # laptop\n  {ben}\t\n#{eve}\n{ann}");
        fs::write(&file, text).unwrap();
        let list = AllowList::read(&[&file]).unwrap();
        assert_eq!(list.len(), 2);
        assert!(list.contains(&ann) && list.contains(&ben) && !list.contains(&eve));
        let list = AllowList::read(&[eve.to_string().into(), file.into_os_string()]).unwrap();
        assert_eq!(list.len(), 3);
        assert!(AllowList::read::<&str>(&[]).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_key_is_refused_with_its_place() {
        let dir = tempfile::tempdir().unwrap();
        let refusal = |content: &[u8]| {
            let file = dir.path().join("keys");
            fs::write(&file, content).unwrap();
            AllowList::read(&[&file]).unwrap_err().to_string()
        };
        let key = Fingerprint::of(b"ann");
        let short = &key.to_string()[..70];
        assert!(
            refusal(format!("# a\n{key}\n{short}\n").as_bytes()).contains("line 3: not sha256")
        );
        assert!(refusal(b"-----BEGIN PRIVATE KEY-----").contains("line 1"));
        assert!(refusal(format!("{key} {key}").as_bytes()).contains("line 1"));
        assert!(refusal(b"# nobody\n").contains("contains no key"));
        assert!(refusal(b"\xff").contains("not a list"));
        assert!(refusal(&vec![b'#'; (1 << 20) + 1]).contains("not a list"));
        let wrong = AllowList::read(&[short]).unwrap_err();
        assert!(matches!(wrong, AllowError::Key(_)), "a fingerprint is not taken for a file");
        let missing = AllowList::read(&[dir.path().join("none")]).unwrap_err();
        assert!(missing.to_string().contains("cannot read"), "{missing}");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "([a-f0-9:#sh\n\r ]|.)*") {
            let _ = lines(&text);
        }
    }
}
