//! Secrets in files that other users of this host can read.
//!
//! Files that manypath makes to keep a secret (identities) are refused then. Files that a user or
//! another program made may be shared with a group on purpose, so there is a warning.

use std::ffi::OsString;
use std::path::Path;

use manypath_doctor::quoted;

/// A kind of secret that is read from a file, or written to one.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Secret {
    /// `--token-file`.
    Token,
    /// `--key`.
    PrivateKey,
    /// `SSLKEYLOGFILE`.
    KeyLog,
    /// `@FILE` as DEST.
    Ticket,
    /// `--via @FILE`, `relay --users FILE`.
    Passwords,
}

impl Secret {
    /// The secret in a sentence, and the pronoun for it.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Secret::Token => ("token", "it"),
            Secret::PrivateKey => ("private key", "it"),
            Secret::KeyLog => ("keys", "them"),
            Secret::Ticket => ("ticket", "it"),
            Secret::Passwords => ("passwords", "them"),
        }
    }

    /// A warning for the user if others can read this secret in `file`.
    pub(crate) fn warning(self, file: &Path) -> Option<String> {
        if !others_can_read(file) || is_credential(file) {
            return None;
        }
        let (what, it) = self.words();
        let (file, word) = (file.display(), pasted(file));
        Some(format!(
            "Note: other users of this host can read the {what} in {file}; chmod 600 {word} hides {it}."
        ))
    }
}

/// A path as one word of a shell, for commands that are shown to be pasted.
pub(crate) fn pasted(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

#[cfg(unix)]
fn others_can_read(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    // Pipes, such as those of a shell's <(command), are nobody else's.
    std::fs::metadata(file).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o044 != 0)
}

#[cfg(not(unix))]
fn others_can_read(_: &Path) -> bool {
    false
}

/// systemd gives services their secrets in a directory that no other user may enter. The modes of
/// the files there say more than is allowed, where access lists are in use.
fn is_credential(file: &Path) -> bool {
    is_within(file, std::env::var_os("CREDENTIALS_DIRECTORY"))
}

fn is_within(file: &Path, dir: Option<OsString>) -> bool {
    dir.is_some_and(|dir| Path::new(&dir).is_absolute() && file.starts_with(dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_those_of_the_directory_of_the_service() {
        let within = |file: &str, dir: &str| is_within(Path::new(file), Some(dir.into()));
        assert!(within("/run/credentials/a.service/token", "/run/credentials/a.service"));
        assert!(!within("/run/credentials/b.service/token", "/run/credentials/a.service"));
        assert!(!within("/home/a/token", "") && !within("token", ""));
        assert!(!is_within(Path::new("/token"), None));
    }
}
