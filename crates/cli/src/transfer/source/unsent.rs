//! Entries that cannot be sent. The rest is.

use std::io;
use std::path::Path;

use crate::failure::Failure;
use crate::transfer::frame::{Kind, Outcome};
use crate::transfer::relative::{NameError, shown};

/// An entry that is not sent, and why.
#[derive(Clone, Debug)]
pub(crate) struct Unsent {
    /// The name that it would have at the receiver; with escapes if it is not UTF-8.
    pub name: String,
    /// The path or other source here, as people see it.
    pub source: String,
    /// File or directory; a file if that is not known.
    pub kind: Kind,
    /// The size in bytes, 0 if that is not known.
    pub size: u64,
    /// The status in results.
    pub outcome: Outcome,
    /// The reason, for people.
    pub why: String,
    /// The remedy, if known.
    pub hint: Option<&'static str>,
    /// It is hidden in a directory, and not every receiver takes it.
    pub is_hidden: bool,
}

impl Unsent {
    /// An entry with a name that no receiver accepts.
    pub(super) fn unnamed(name: &Path, source: &str, kind: Kind, why: NameError) -> Unsent {
        Unsent {
            outcome: Outcome::NameRefused,
            why: why.to_string(),
            hint: Some("rename it, or send it by itself with --as NAME"),
            ..Unsent::new(name, source, kind)
        }
    }

    /// An entry that cannot be read.
    pub(super) fn unreadable(name: &Path, path: &Path, kind: Kind, error: &io::Error) -> Unsent {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => Some("check the name"),
            io::ErrorKind::PermissionDenied => {
                Some("ask its owner for permission, or leave it out")
            }
            _ => None,
        };
        Unsent {
            why: format!("cannot read it: {error}"),
            hint,
            ..Unsent::new(name, &shown(path), kind)
        }
    }

    /// Something that was named and is neither a file nor a directory.
    pub(super) fn no_file(name: &Path, path: &Path) -> Unsent {
        Unsent {
            why: "it is neither a file nor a directory".to_owned(),
            hint: Some("pipe its contents into `manypath send -`, which sends standard input"),
            ..Unsent::new(name, &shown(path), Kind::File)
        }
    }

    fn new(name: &Path, source: &str, kind: Kind) -> Unsent {
        Unsent {
            name: name.to_str().map_or_else(|| shown(name), str::to_owned),
            source: source.to_owned(),
            kind,
            size: 0,
            outcome: Outcome::Abandoned,
            why: String::new(),
            hint: None,
            is_hidden: false,
        }
    }

    /// The entry and the reason as one sentence.
    pub(crate) fn message(&self) -> String {
        format!("{} cannot be sent: {}", self.source, self.why)
    }

    /// The failure of a command that has nothing else to send.
    pub(super) fn failure(&self, more: usize) -> Failure {
        let others = match more {
            0 => String::new(),
            1 => "; another entry cannot be sent either".to_owned(),
            more => format!("; {more} more cannot be sent either"),
        };
        let failure = Failure::failed(self.message() + &others);
        let remedy = self.hint.map_or(String::new(), |hint| format!("{hint}; "));
        failure.hint(remedy + "nothing was sent")
    }
}
