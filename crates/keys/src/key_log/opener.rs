//! Opens the packets of a capture with the keys of a log.

use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;

use bytes::Bytes;
use manypath_dtls::capture::CaptureKeys;
use manypath_dtls::{CipherSuite, KeyMaterial, OpenError, Opened, aws_lc};
use manypath_wire::{COMMON_HEADER_LEN, Checksum, Chunk, Packet, chunk_type, fill_checksum};

use super::read::{KeyLine, KeyLineError, KeyLogError, for_each_line};

/// Most keys that an opener keeps, of one end and epoch each.
pub(super) const MAX_KEYS: usize = 1 << 18;

/// Most keys of one tag and epoch: more than one only if two associations chose the same tag.
const SAME_EPOCH_MAX: usize = 16;

/// Most epochs that a packet is tried with: near the numbers seen so far, and with any number.
const TRIED_MAX: usize = 4096;
const SEARCHED_MAX: usize = 64;

/// A packet that is left as it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum NotOpened {
    /// Its first chunk is no DTLS chunk: it is not protected, or not SCTP.
    #[error("the packet is not protected")]
    NotProtected,
    /// The DTLS chunk cannot be read, or there are others behind it.
    #[error("the packet is not one DTLS chunk of the right form")]
    Malformed,
    /// Protected by keys for restarts (the R bit), which logs do not have.
    #[error("the packet is protected by keys for restarts")]
    Restart,
    /// The log has no keys for its verification tag and epoch.
    #[error("the key log has no keys for the packet")]
    NoKeys,
    /// No key opens it: it is damaged or forged, or other keys sealed it.
    #[error("none of the keys opens the packet")]
    NotAuthentic,
}

impl NotOpened {
    /// A short name for results: `not_protected`, `malformed`, `restart`, `no_keys` or
    /// `not_authentic`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            NotOpened::NotProtected => "not_protected",
            NotOpened::Malformed => "malformed",
            NotOpened::Restart => "restart",
            NotOpened::NoKeys => "no_keys",
            NotOpened::NotAuthentic => "not_authentic",
        }
    }
}

/// Opens protected packets of captures, with keys from a log.
///
/// Packets may come in any order and repeatedly, and a capture may begin in the middle of an
/// association. This is no replay protection: see [`manypath_dtls::capture`].
///
/// ```
/// use bytes::Bytes;
/// use manypath_keys::key_log::{NotOpened, Opener};
///
/// let mut opener = Opener::default();
/// assert_eq!(opener.read(&b"CLIENT_RANDOM 00 01\n"[..])?, 0, "no keys of DTLS chunks");
/// let sack = Bytes::from_static(&[0x26, 0xab, 0x26, 0xab, 1, 2, 3, 4, 0, 0, 0, 0, 3, 0, 0, 16]);
/// assert_eq!(opener.open(&sack), Err(NotOpened::NotProtected));
/// # Ok::<(), manypath_keys::key_log::KeyLogError>(())
/// ```
#[derive(Default)]
pub struct Opener {
    /// By the verification tag of the packets that they open.
    directions: BTreeMap<u32, Direction>,
    keys: usize,
}

/// The keys for packets with one verification tag.
#[derive(Default)]
struct Direction {
    /// By the lower two bits of the epoch, which a record tells, and then by the epoch.
    epochs: [BTreeMap<u64, Vec<Held>>; 4],
    /// The epoch of the record opened last.
    last: Option<u64>,
}

/// Keys of one epoch. Logs can have many that no packet of a capture needs, so their cipher is made
/// when it is used first.
struct Held {
    epoch: u64,
    suite: CipherSuite,
    material: KeyMaterial,
    keys: Option<CaptureKeys>,
}

impl Opener {
    /// Learns a line of a key log. Returns true if it has keys of DTLS chunks; other lines are
    /// ignored.
    ///
    /// # Errors
    /// If a line with the label `SCTP_DTLS_KEY` is malformed, or there are more than 262,144 keys.
    pub fn learn(&mut self, line: &str) -> Result<bool, KeyLineError> {
        let Some(KeyLine { tag, epoch, suite, material }) = KeyLine::parse(line)? else {
            return Ok(false);
        };
        let direction = self.directions.entry(tag).or_default();
        let same = direction.epochs[bits_of(epoch)].entry(epoch).or_default();
        // Both ends of an association may write to one log.
        let is_same = |held: &Held| {
            held.suite == suite
                && held.material.key == material.key
                && held.material.sequence_number_key == material.sequence_number_key
                && held.material.iv == material.iv
        };
        if !same.iter().any(is_same) {
            if self.keys >= MAX_KEYS || same.len() >= SAME_EPOCH_MAX {
                return Err(KeyLineError::TooMany);
            }
            self.keys += 1;
            same.push(Held { epoch, suite, material, keys: None });
        }
        Ok(true)
    }

    /// Learns all lines of a key log. Returns how many of them have keys of DTLS chunks.
    ///
    /// # Errors
    /// The number of the line that cannot be read, and why.
    pub fn read(&mut self, log: impl BufRead) -> Result<u64, KeyLogError> {
        let mut count = 0;
        for_each_line(log, |line| {
            count += u64::from(self.learn(line)?);
            Ok(())
        })?;
        Ok(count)
    }

    /// Opens an SCTP packet whose only chunk is a DTLS chunk. Returns the packet as it would have
    /// been without protection: its common header with the right checksum, and the chunks. The
    /// checksum of `packet` is not looked at.
    ///
    /// # Errors
    /// See [`NotOpened`].
    pub fn open(&mut self, packet: &Bytes) -> Result<Bytes, NotOpened> {
        if packet.get(COMMON_HEADER_LEN) != Some(&chunk_type::DTLS) {
            return Err(NotOpened::NotProtected);
        }
        let parsed = Packet::parse(packet.clone(), Checksum::Ignore);
        let parsed = parsed.map_err(|_| NotOpened::NotProtected)?;
        let mut chunks = parsed.chunks();
        let (Some(Ok(Chunk::Dtls(dtls))), None) = (chunks.next(), chunks.next()) else {
            return Err(NotOpened::Malformed);
        };
        if dtls.restart {
            return Err(NotOpened::Restart);
        }
        let tag = parsed.header.verification_tag;
        let direction = self.directions.get_mut(&tag).ok_or(NotOpened::NoKeys)?;
        let mut opened = Vec::with_capacity(packet.len());
        opened.extend_from_slice(&packet[..COMMON_HEADER_LEN]);
        direction.open(&dtls.record, &mut opened)?;
        // The padding of the last chunk is part of a packet, but need not be part of a record.
        opened.resize(opened.len().next_multiple_of(4), 0);
        fill_checksum(&mut opened);
        Ok(opened.into())
    }
}

impl Direction {
    fn open(&mut self, record: &[u8], out: &mut Vec<u8>) -> Result<(), NotOpened> {
        let bits = bits_of(record.first().copied().unwrap_or(0).into());
        if self.epochs[bits].is_empty() {
            return Err(NotOpened::NoKeys);
        }
        let last = self.last.unwrap_or(0);
        let mut found = self.attempt(last, CaptureKeys::open, record, out);
        if found.is_none() {
            let near = around(&self.epochs[bits], last);
            let mut attempt = |epoch, how: Attempt| self.attempt(epoch, how, record, out);
            found = near.iter().find_map(|&epoch| attempt(epoch, CaptureKeys::open));
            found = found.or_else(|| {
                let mut near = near.iter().take(SEARCHED_MAX);
                near.find_map(|&epoch| attempt(epoch, CaptureKeys::search))
            });
        }
        let opened = found.unwrap_or(Err(NotOpened::NotAuthentic))?;
        self.last = Some(opened);
        Ok(())
    }

    /// Tries the keys of an epoch. `None` if they are not the right ones.
    fn attempt(
        &mut self,
        epoch: u64,
        how: Attempt,
        record: &[u8],
        out: &mut Vec<u8>,
    ) -> Option<Result<u64, NotOpened>> {
        let keys = self.epochs[bits_of(epoch)].get_mut(&epoch)?;
        keys.iter_mut().find_map(|held| match how(held.keys(), record, out) {
            Ok(opened) => Some(Ok(opened.epoch)),
            Err(OpenError::Malformed | OpenError::ContentType(_)) => {
                Some(Err(NotOpened::Malformed))
            }
            Err(_) => None,
        })
    }
}

/// A way to open a record.
type Attempt = fn(&mut CaptureKeys, &[u8], &mut Vec<u8>) -> Result<Opened, OpenError>;

/// The two bits of an epoch that records tell.
fn bits_of(epoch: u64) -> usize {
    (epoch & 3) as usize
}

/// The epochs of the keys, the closest to `near` first.
fn around(epochs: &BTreeMap<u64, Vec<Held>>, near: u64) -> Vec<u64> {
    let mut below = epochs.range(..near).rev().map(|(&epoch, _)| epoch).peekable();
    let mut above = epochs.range(near..).map(|(&epoch, _)| epoch).peekable();
    let next = || match (below.peek(), above.peek()) {
        (Some(low), Some(high)) if near - low < high - near => below.next(),
        (Some(_), None) => below.next(),
        _ => above.next(),
    };
    std::iter::from_fn(next).take(TRIED_MAX).collect()
}

impl Held {
    fn keys(&mut self) -> &mut CaptureKeys {
        let Held { epoch, suite, material, keys } = self;
        keys.get_or_insert_with(|| {
            let cipher = aws_lc::cipher(*suite, material).expect("lengths were checked");
            CaptureKeys::new(cipher, material.iv, *epoch)
        })
    }
}

/// Keys are not printed.
impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").field("keys", &self.keys).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever wrote the log must not fill the memory of who reads it, or have each packet tried
    /// with any number of keys.
    #[test]
    fn a_log_with_too_many_keys_is_refused() {
        let line = |tag: u32, key: u32| {
            let (key, iv) = (format!("{key:032x}"), "1f".repeat(12));
            format!("SCTP_DTLS_KEY 01020304 {tag:08x} client 3 1301 {key} {key} {iv}")
        };
        let mut opener = Opener::default();
        for key in 0..16 {
            assert_eq!(opener.learn(&line(1, key)), Ok(true));
        }
        assert_eq!(opener.learn(&line(1, 16)), Err(KeyLineError::TooMany), "of one tag and epoch");
        assert_eq!(opener.learn(&line(1, 15)), Ok(true), "it is known");
        opener.keys = 262_143;
        assert_eq!(opener.learn(&line(2, 0)), Ok(true));
        assert_eq!(opener.learn(&line(3, 0)), Err(KeyLineError::TooMany), "in all");
        assert_eq!(opener.learn(&line(2, 0)), Ok(true), "it is known");
    }
}
