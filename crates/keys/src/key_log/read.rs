//! The lines of a key log, read again.

use std::io::{self, BufRead, Read};

use manypath_dtls::{CipherSuite, KeyMaterial};

use super::LABEL;

/// Longest line that is read, in bytes. The longest one of ours has 220.
pub(super) const MAX_LINE: usize = 4096;

/// A line with the keys of DTLS chunks that cannot be used.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyLineError {
    /// Not as many words as there must be.
    #[error("SCTP_DTLS_KEY has 8 words after it, not {0}")]
    Words(usize),
    /// A verification tag is none.
    #[error("a verification tag has 8 hexadecimal digits")]
    Tag,
    /// Neither of the two directions.
    #[error("the direction is \"client\" or \"server\"")]
    Direction,
    /// The epoch is no number.
    #[error("the epoch is a decimal number")]
    Epoch,
    /// A cipher suite that DTLS chunks do not have.
    #[error("the cipher suite is none of 1301, 1302 and 1303")]
    Suite,
    /// A key or the vector has another length or other characters.
    #[error("the {what} has {digits} hexadecimal digits")]
    Key {
        /// Which one.
        what: &'static str,
        /// How many digits it must have.
        digits: usize,
    },
    /// No text, or too much of it.
    #[error("the line is no text of at most 4096 bytes")]
    NoText,
    /// The log has more keys than are kept.
    #[error("the log has more than {} keys of DTLS chunks", super::opener::MAX_KEYS)]
    TooMany,
}

/// A key log that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyLogError {
    /// A line is wrong.
    #[error("line {line}: {error}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// The error in it.
        error: KeyLineError,
    },
    /// The file cannot be read.
    #[error("line {line}: {error}")]
    Io {
        /// The number of the line, from 1.
        line: u64,
        /// The system's error.
        error: io::Error,
    },
}

/// The keys in a line.
pub(super) struct KeyLine {
    /// The verification tag of the packets that they open.
    pub(super) tag: u32,
    pub(super) epoch: u64,
    pub(super) suite: CipherSuite,
    pub(super) material: KeyMaterial,
}

impl KeyLine {
    /// Reads a line; `None` if it has another label.
    pub(super) fn parse(line: &str) -> Result<Option<KeyLine>, KeyLineError> {
        let mut words = line.split_ascii_whitespace();
        if words.next() != Some(LABEL) {
            return Ok(None);
        }
        // Words beyond those are counted for the message only.
        let words: Vec<&str> = words.take(100).collect();
        let &[client, server, direction, epoch, suite, key, sn_key, iv] = &words[..] else {
            return Err(KeyLineError::Words(words.len()));
        };
        let (client, server) = (tag(client)?, tag(server)?);
        let tag = match direction {
            // Packets carry the tag that their receiver expects.
            "client" => server,
            "server" => client,
            _ => return Err(KeyLineError::Direction),
        };
        // Parsing alone would take a sign before the digits.
        if !epoch.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(KeyLineError::Epoch);
        }
        let epoch = epoch.parse().map_err(|_| KeyLineError::Epoch)?;
        let suite = Some(suite).filter(|suite| suite.len() == 4);
        let suite = suite.and_then(|suite| u16::from_str_radix(suite, 16).ok());
        let suite = suite.and_then(CipherSuite::from_id).ok_or(KeyLineError::Suite)?;
        let len = suite.key_len();
        let material = KeyMaterial {
            key: bytes("key", key, len)?,
            sequence_number_key: bytes("sequence number key", sn_key, len)?,
            iv: bytes("initialization vector", iv, 12)?.try_into().expect("of that length"),
        };
        Ok(Some(KeyLine { tag, epoch, suite, material }))
    }
}

fn tag(word: &str) -> Result<u32, KeyLineError> {
    let tag: Option<[u8; 4]> = unhex(word, 4).and_then(|bytes| bytes.try_into().ok());
    tag.map(u32::from_be_bytes).ok_or(KeyLineError::Tag)
}

fn bytes(what: &'static str, word: &str, len: usize) -> Result<Vec<u8>, KeyLineError> {
    unhex(word, len).ok_or(KeyLineError::Key { what, digits: 2 * len })
}

fn unhex(word: &str, len: usize) -> Option<Vec<u8>> {
    if word.len() != 2 * len {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| Some((digit(pair[0])? << 4 | digit(pair[1])?) as u8);
    word.as_bytes().chunks_exact(2).map(pair).collect()
}

/// Gives each line of a log to `each`. Lines that are no text or too long are left out, unless they
/// have our label.
pub(super) fn for_each_line(
    mut log: impl BufRead,
    mut each: impl FnMut(&str) -> Result<(), KeyLineError>,
) -> Result<(), KeyLogError> {
    let mut bytes = Vec::new();
    for line in 1.. {
        bytes.clear();
        let io = |error| KeyLogError::Io { line, error };
        let limit = MAX_LINE as u64 + 1;
        if log.by_ref().take(limit).read_until(b'\n', &mut bytes).map_err(io)? == 0 {
            break;
        }
        let is_cut = bytes.len() > MAX_LINE && bytes.last() != Some(&b'\n');
        let result = match std::str::from_utf8(&bytes) {
            Ok(text) if !is_cut => each(text),
            _ if bytes.trim_ascii_start().starts_with(LABEL.as_bytes()) => {
                Err(KeyLineError::NoText)
            }
            _ => Ok(()),
        };
        result.map_err(|error| KeyLogError::Line { line, error })?;
        if is_cut {
            log.skip_until(b'\n').map_err(io)?;
        }
    }
    Ok(())
}
