//! The name of a transferred file: relative, with `/` between its parts, and safe to create.

use std::fmt;
use std::path::{Component, Path, PathBuf};

/// Longest name in bytes.
const NAME_MAX: usize = 4096;
/// Longest part of a name in bytes; what common file systems allow.
const PART_MAX: usize = 255;

/// A name that stays inside the directory it is joined to (symbolic links aside, see
/// [`RelativePath::in_dir`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RelativePath(String);

/// Why a name is not accepted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum NameError {
    /// Nothing, or nothing between two slashes.
    Empty,
    /// Longer than the protocol or common file systems allow.
    TooLong,
    /// Not UTF-8.
    NotUtf8,
    /// Absolute, or with a part that leaves the directory (`..`) or means it (`.`).
    Escapes,
    /// A NUL, or on Windows one of `\ : * ? " < > |` or a device name.
    BadCharacter,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NameError::Empty => "the name is empty or has an empty part",
            NameError::TooLong => "the name is longer than 4096 bytes or has a part above 255",
            NameError::NotUtf8 => "the name is not UTF-8",
            NameError::Escapes => "the name is absolute or contains \".\" or \"..\"",
            NameError::BadCharacter => "the name contains a character that is not allowed",
        })
    }
}

impl RelativePath {
    /// Checks a name that came from the network.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<RelativePath, NameError> {
        if bytes.len() > NAME_MAX {
            return Err(NameError::TooLong);
        }
        let name = std::str::from_utf8(bytes).map_err(|_| NameError::NotUtf8)?;
        if name.starts_with('/') {
            return Err(NameError::Escapes);
        }
        name.split('/').try_for_each(check_part)?;
        Ok(RelativePath(name.to_owned()))
    }

    /// The name of a file of this machine, `path` being relative.
    pub(crate) fn from_path(path: &Path) -> Result<RelativePath, NameError> {
        let mut name = String::new();
        for part in path.components() {
            let Component::Normal(part) = part else { return Err(NameError::Escapes) };
            if !name.is_empty() {
                name.push('/');
            }
            name.push_str(part.to_str().ok_or(NameError::NotUtf8)?);
        }
        RelativePath::from_bytes(name.as_bytes())
    }

    /// The name with `/` between its parts.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The file's place under `dir`. Fails with the offending place if something between `dir` and
    /// the last part exists and is not a plain directory: a symbolic link there would lead outside.
    pub(crate) fn in_dir(&self, dir: &Path) -> Result<PathBuf, PathBuf> {
        let mut place = dir.to_owned();
        let mut parts = self.0.split('/').peekable();
        while let Some(part) = parts.next() {
            place.push(part);
            if parts.peek().is_some()
                && place.symlink_metadata().is_ok_and(|meta| !meta.file_type().is_dir())
            {
                return Err(place);
            }
        }
        Ok(place)
    }
}

impl fmt::Display for RelativePath {
    /// Control characters are escaped: the peer chose the name and we print it to a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable(&self.0))
    }
}

/// `text` with control characters escaped.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escape = c.is_control().then(|| c.escape_default());
            let plain = (!c.is_control()).then_some(c);
            escape.into_iter().flatten().chain(plain)
        })
        .collect()
}

fn check_part(part: &str) -> Result<(), NameError> {
    match part {
        "" => Err(NameError::Empty),
        "." | ".." => Err(NameError::Escapes),
        _ if part.len() > PART_MAX => Err(NameError::TooLong),
        _ if part.contains('\0') => Err(NameError::BadCharacter),
        _ if cfg!(windows) && !fits_windows(part) => Err(NameError::BadCharacter),
        _ => Ok(()),
    }
}

/// Whether Windows takes `part` as an ordinary file's name.
fn fits_windows(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part).trim_end().to_ascii_uppercase();
    let numbered = |device| {
        stem.strip_prefix(device).is_some_and(|n| n.len() == 1 && n.as_bytes()[0].is_ascii_digit())
    };
    let device =
        ["CON", "PRN", "AUX", "NUL"].contains(&stem.as_str()) || numbered("COM") || numbered("LPT");
    !device
        && !part.contains(|c: char| c < ' ' || "\\:*?\"<>|".contains(c))
        && !part.ends_with(['.', ' '])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_leave_the_directory_are_refused() {
        let refused = |name: &str| RelativePath::from_bytes(name.as_bytes()).unwrap_err();
        for name in ["/etc/passwd", "..", "../x", "a/../../x", "a/..", ".", "./a", "a/./b", "/"] {
            assert_eq!(refused(name), NameError::Escapes, "{name}");
        }
        for name in ["", "a//b", "a/"] {
            assert_eq!(refused(name), NameError::Empty, "{name:?}");
        }
        assert_eq!(refused("a\0b"), NameError::BadCharacter);
        assert_eq!(refused(&"x".repeat(256)), NameError::TooLong);
        assert_eq!(refused(&"x/".repeat(4000)), NameError::TooLong);
        assert_eq!(RelativePath::from_bytes(&[b'a', 0xff]), Err(NameError::NotUtf8));
    }

    #[test]
    fn ordinary_names_are_kept() {
        for name in ["a", "a/b/c.txt", "..a", "a..", "...", "Grüße/日本", "a b", "a\\b"] {
            if cfg!(windows) && !name.split('/').all(fits_windows) {
                continue;
            }
            assert_eq!(RelativePath::from_bytes(name.as_bytes()).unwrap().as_str(), name);
        }
        assert_eq!(RelativePath::from_path(Path::new("a/b")).unwrap().as_str(), "a/b");
        assert_eq!(RelativePath::from_path(Path::new("../b")), Err(NameError::Escapes));
    }

    #[test]
    fn windows_devices_and_drives_do_not_fit_windows() {
        for part in ["C:", "a\\b", "nul", "NUL.txt", "com1", "lpt9.x", "a.", "a ", "a?"] {
            assert!(!fits_windows(part), "{part}");
        }
        for part in ["console", "com", "com10", "a.b", "null"] {
            assert!(fits_windows(part), "{part}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_symbolic_link_on_the_way_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/", dir.path().join("out")).unwrap();
        std::fs::create_dir(dir.path().join("in")).unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let place =
            |name: &str| RelativePath::from_bytes(name.as_bytes()).unwrap().in_dir(dir.path());
        assert_eq!(place("out/x"), Err(dir.path().join("out")));
        assert_eq!(place("file/x"), Err(dir.path().join("file")));
        assert_eq!(place("in/x"), Ok(dir.path().join("in/x")));
        assert_eq!(place("new/deep/x"), Ok(dir.path().join("new/deep/x")));
    }

    #[test]
    fn control_characters_are_not_printed_raw() {
        assert_eq!(printable("a\x1b[2Jb\nü"), "a\\u{1b}[2Jb\\nü");
    }
}
