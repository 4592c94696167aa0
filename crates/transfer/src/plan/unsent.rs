//! Entries that cannot be sent. The rest is.

use std::fmt;
use std::io;
use std::path::Path;

use manypath_files::frame::{Kind, Outcome};
use manypath_files::relative::{NameError, shown};

/// Why an entry cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// No receiver accepts its name.
    Name(NameError),
    /// It cannot be read.
    Unreadable {
        /// The kind of error.
        kind: io::ErrorKind,
        /// The error in words.
        text: String,
    },
    /// It was named, and is neither a file nor a directory.
    NoFile,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Why::Name(why) => write!(f, "{why}"),
            Why::Unreadable { text, .. } => write!(f, "cannot read it: {text}"),
            Why::NoFile => f.write_str("it is neither a file nor a directory"),
        }
    }
}

/// An entry that is not sent, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// The name that it would have at the receiver; with escapes if it is not UTF-8.
    pub name: String,
    /// The path or other source here, as people see it.
    pub source: String,
    /// File or directory; a file if that is not known.
    pub kind: Kind,
    /// The size in bytes, 0 if that is not known.
    pub size: u64,
    /// The reason.
    pub why: Why,
    /// It is hidden in a directory, and not every receiver takes it.
    pub is_hidden: bool,
}

impl Unsent {
    /// An entry with a name that no receiver accepts.
    pub(super) fn unnamed(name: &Path, source: &str, kind: Kind, why: NameError) -> Unsent {
        Unsent::new(name, source, kind, Why::Name(why))
    }

    /// An entry that cannot be read.
    pub(super) fn unreadable(name: &Path, path: &Path, kind: Kind, error: &io::Error) -> Unsent {
        let why = Why::Unreadable { kind: error.kind(), text: error.to_string() };
        Unsent::new(name, &shown(path), kind, why)
    }

    /// Something that was named and is neither a file nor a directory.
    pub(super) fn no_file(name: &Path, path: &Path) -> Unsent {
        Unsent::new(name, &shown(path), Kind::File, Why::NoFile)
    }

    fn new(name: &Path, source: &str, kind: Kind, why: Why) -> Unsent {
        Unsent {
            name: name.to_str().map_or_else(|| shown(name), str::to_owned),
            source: source.to_owned(),
            kind,
            size: 0,
            why,
            is_hidden: false,
        }
    }

    /// The status in results.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match self.why {
            Why::Name(_) => Outcome::NameRefused,
            Why::Unreadable { .. } | Why::NoFile => Outcome::Abandoned,
        }
    }
}

/// The entry and the reason as one sentence.
impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be sent: {}", self.source, self.why)
    }
}
