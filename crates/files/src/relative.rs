//! The name of a transferred file: relative, with `/` between its parts, and safe to create.

use std::fmt;
use std::path::{Component, Path};

/// Longest name in bytes.
const NAME_MAX: usize = 4096;
/// Longest part of a name in bytes; what common file systems allow.
const PART_MAX: usize = 255;

/// A name that stays inside the directory it is joined to and looks on a screen like what it is.
/// Symbolic links are checked when the file is created.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RelativePath(String);

/// The reason why a name is not accepted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NameError {
    /// Nothing, or nothing between two slashes.
    Empty,
    /// Longer than the protocol or common file systems allow.
    TooLong,
    /// Not UTF-8.
    NotUtf8,
    /// Absolute, or with a part that leaves the directory (`..`) or means it (`.`).
    Escapes,
    /// A character that is not plain text (see [`is_plain`]) and no mark of direction, or on
    /// Windows any of `\ : * ? " < > |`, or a device name.
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
    pub fn from_bytes(bytes: &[u8]) -> Result<RelativePath, NameError> {
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
    pub fn from_path(path: &Path) -> Result<RelativePath, NameError> {
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
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names between the slashes.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        self.0.split('/')
    }

    /// True if a part begins with a dot. Unix does not list such names, and programs take settings
    /// from them.
    pub fn is_hidden(&self) -> bool {
        self.parts().any(|part| part.starts_with('.'))
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// True if a character shows as itself and nothing else. These do not: control characters, which a
/// terminal obeys; bidirectional controls, which make a name read as another one (Unicode's
/// `Bidi_Control`); separators of lines and paragraphs; and the byte order mark.
pub fn is_plain(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}')
        && !matches!(c, '\u{2066}'..='\u{2069}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// True for characters that programs put into names, that show nothing and turn nothing around: the
/// marks of direction (WhatsApp writes U+200E) and the byte order mark. Names may have them;
/// [`printable`] escapes them.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
}

/// `text` on one line, with characters that are not plain escaped: what the network said, for a
/// terminal.
pub fn printable(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_plain(c) {
            out.push(c);
        } else {
            out.extend(c.escape_default());
        }
    }
    out
}

/// A path or name of this machine for a terminal: as [`printable`], with bytes that are not UTF-8
/// as `\xNN`.
pub fn shown(path: &Path) -> String {
    shown_bytes(path.as_os_str().as_encoded_bytes())
}

/// Bytes that should be text, for a terminal.
pub(crate) fn shown_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        out += &printable(chunk.valid());
        chunk.invalid().iter().for_each(|byte| out += &format!("\\x{byte:02x}"));
    }
    out
}

fn check_part(part: &str) -> Result<(), NameError> {
    match part {
        "" => Err(NameError::Empty),
        "." | ".." => Err(NameError::Escapes),
        _ if part.len() > PART_MAX => Err(NameError::TooLong),
        _ if !part.chars().all(|c| is_plain(c) || is_mark(c)) => Err(NameError::BadCharacter),
        _ if cfg!(windows) && !fits_windows(part) => Err(NameError::BadCharacter),
        _ => Ok(()),
    }
}

/// True if Windows takes `part` as the name of an ordinary file.
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
        for name in
            ["a\0b", "a\x1b[2J", "a\nb", "a\u{7f}", "a\u{9b}2J", "a\u{202e}gpj.exe", "\u{2066}a"]
        {
            assert_eq!(refused(name), NameError::BadCharacter, "{name:?}");
        }
        assert_eq!(refused(&"x".repeat(256)), NameError::TooLong);
        assert_eq!(refused(&"x/".repeat(4000)), NameError::TooLong);
        assert_eq!(RelativePath::from_bytes(&[b'a', 0xff]), Err(NameError::NotUtf8));
    }

    /// Controls that a terminal obeys, or that turn text around, are in no name, at any place of
    /// it: the first and the last of each range.
    #[test]
    fn no_character_that_rules_a_screen_is_in_a_name() {
        for c in "\u{1}\u{1f}\u{7f}\u{80}\u{9f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\
                  \u{fff9}\u{fffb}"
            .chars()
        {
            for name in [format!("{c}a"), format!("d/a{c}"), format!("a{c}b/c")] {
                let read = RelativePath::from_bytes(name.as_bytes());
                assert_eq!(read, Err(NameError::BadCharacter), "{name:?}");
                assert!(printable(&name).is_ascii(), "{name:?}");
            }
        }
        let other = "\u{a0}\u{2027}\u{202f}\u{2065}\u{206a}\u{fff8}\u{fffc}";
        assert!(RelativePath::from_bytes(other.as_bytes()).is_ok());
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
    fn marks_of_direction_are_kept_and_escaped_when_shown() {
        for mark in ['\u{61c}', '\u{200e}', '\u{200f}', '\u{feff}'] {
            let name = format!("IMG{mark}-1.jpg");
            assert_eq!(RelativePath::from_bytes(name.as_bytes()).unwrap().as_str(), name);
            assert_eq!(printable(&name), format!("IMG{}-1.jpg", mark.escape_unicode()));
        }
        assert_eq!(shown(Path::new("a\tb\u{200e}/ü")), "a\\tb\\u{200e}/ü");
        assert_eq!(shown_bytes(b"caf\xe9\xff/\x1bx"), "caf\\xe9\\xff/\\u{1b}x");
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

    #[test]
    fn a_dot_before_any_part_hides() {
        let hidden = |name: &str| RelativePath::from_bytes(name.as_bytes()).unwrap().is_hidden();
        assert!(
            hidden(".ssh/authorized_keys") && hidden("a/.b/c") && hidden("...") && hidden("..a")
        );
        assert!(!hidden("a.b/c.") && !hidden("a"));
    }

    #[test]
    fn control_characters_are_not_printed_raw() {
        assert_eq!(printable("a\x1b[2Jb\nü"), "a\\u{1b}[2Jb\\nü");
        assert_eq!(printable("\u{202e}gpj"), "\\u{202e}gpj");
        assert_eq!(printable("ש שלום, 👩‍👧"), "ש שלום, 👩‍👧", "writing from right to left is plain");
    }
}
