//! A log of secrets, for tools that decrypt captures.
//!
//! Its lines have the NSS key log format, which Wireshark reads from the file in `SSLKEYLOGFILE`.
//! The secrets of TLS have the usual labels. The keys of DTLS chunks have a label of our own:
//!
//! ```text
//! SCTP_DTLS_KEY <client tag> <server tag> <direction> <epoch> <suite> <key> <sn key> <iv>
//! ```
//!
//! - The tags are the verification tags that the client and the server of the key management
//!   expect: packets that the client seals carry the second one. 8 hexadecimal digits each.
//! - The direction is `client` or `server`: the end that seals with these keys. The roles are those
//!   of the association's key management, also where a later handshake was begun by the server.
//! - The epoch is decimal; the suite is its number in IANA's registry, 4 hexadecimal digits.
//! - Key, sequence number key and initialization vector are hexadecimal.
//!
//! An [`Opener`] reads such a log and opens the packets of captures with it.

mod opener;
mod read;

use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use manypath_dtls::manage::{Agreement, Role};
use manypath_dtls::{CipherSuite, KeyMaterial};

pub use opener::{NotOpened, Opener};
pub use read::{KeyLineError, KeyLogError};

/// The label of lines with the keys of DTLS chunks.
const LABEL: &str = "SCTP_DTLS_KEY";

/// Takes the lines of a key log. Whoever has them can read everything that they protect.
pub trait KeyLog: fmt::Debug + Send + Sync {
    /// Takes a line, without a line break.
    fn line(&self, line: &str);
}

/// A key log in a file.
///
/// A line that cannot be written is lost: an association does not end for it.
#[derive(Debug)]
pub struct KeyLogFile {
    file: File,
}

impl KeyLogFile {
    /// Appends to the file at `path`, which is made if it is missing, readable only for its owner.
    ///
    /// # Errors
    /// If the file cannot be opened for writing.
    pub fn open(path: impl AsRef<Path>) -> io::Result<KeyLogFile> {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        Ok(KeyLogFile { file: options.open(path)? })
    }

    /// Appends to the file that the environment variable `SSLKEYLOGFILE` names. `None` if it is
    /// unset or empty.
    ///
    /// # Errors
    /// If the file cannot be opened for writing.
    pub fn from_env() -> io::Result<Option<KeyLogFile>> {
        match std::env::var_os("SSLKEYLOGFILE") {
            Some(path) if !path.is_empty() => KeyLogFile::open(path).map(Some),
            _ => Ok(None),
        }
    }
}

impl KeyLog for KeyLogFile {
    fn line(&self, line: &str) {
        // One write a line, so that several threads and processes can share the file.
        let _ = (&self.file).write_all(format!("{line}\n").as_bytes());
    }
}

/// The line for the keys with which one end seals the records of an epoch.
#[must_use]
pub fn chunk_keys(
    agreement: &Agreement,
    sealed_by: Role,
    epoch: u64,
    suite: CipherSuite,
    keys: &KeyMaterial,
) -> String {
    let (client_tag, server_tag) = agreement.tags;
    let direction = match sealed_by {
        Role::Client => "client",
        Role::Server => "server",
    };
    format!(
        "{LABEL} {client_tag:08x} {server_tag:08x} {direction} {epoch} {:04x} {} {} {}",
        suite.id(),
        hex(&keys.key),
        hex(&keys.sequence_number_key),
        hex(&keys.iv),
    )
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
