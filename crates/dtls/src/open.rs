//! Checking and decrypting what is received.

use std::ops::Range;

use crate::cipher::{FORGERY_LIMIT, NONCE_LEN, RecordCipher, TAG_LEN};
use crate::header::{
    APPLICATION_DATA, HEADER_LEN, epoch_bits, header, mask, nonce, sequence_number,
};
use crate::replay::ReplayWindow;

/// From this distance to the number expected next, a sequence number may belong to another one that
/// has the same 16 bits: the paths' delays differ by that many packets.
const AMBIGUOUS: u64 = 1 << 14;

/// A record that was checked and decrypted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its epoch.
    pub epoch: u64,
    /// Its sequence number, all bits of it.
    pub sequence_number: u64,
}

/// A record that is to be discarded. None of these ends an association (RFC 9147 §4.5.2).
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Too short, or not of the form that the DTLS chunk uses.
    #[error("not a record of the DTLS chunk")]
    Malformed,
    /// Of an epoch without keys.
    #[error("no keys for the epoch of the record")]
    NoKeys,
    /// It has come before, or is too old to know.
    #[error("the record has come before, or is too old")]
    Replayed,
    /// As many forged records came as these keys may be tried with.
    #[error("too many forged records were tried with these keys")]
    Exhausted,
    /// The tag is wrong: forged, damaged, or sealed with other keys.
    #[error("the record is not authentic")]
    Forged,
    /// Authentic, but its content type is another one.
    #[error("the record has content type {0}, not application data")]
    ContentType(u8),
}

/// The keys that open what one endpoint receives in one epoch.
#[derive(Debug)]
pub struct OpeningKeys {
    cipher: Box<dyn RecordCipher>,
    iv: [u8; NONCE_LEN],
    epoch: u64,
    window: ReplayWindow,
    /// The sequence number after the highest that was authentic.
    expected: u64,
    opened: u64,
    forged: u64,
}

impl OpeningKeys {
    /// Keys of an epoch, never used before.
    #[must_use]
    pub fn new(cipher: Box<dyn RecordCipher>, iv: [u8; NONCE_LEN], epoch: u64) -> OpeningKeys {
        let window = ReplayWindow::default();
        OpeningKeys { cipher, iv, epoch, window, expected: 0, opened: 0, forged: 0 }
    }

    /// Their epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Records opened so far.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Attempts to open a record that was not authentic so far. After 2^36 the keys open nothing
    /// (RFC 9147 §4.5.3).
    #[must_use]
    pub fn forged(&self) -> u64 {
        self.forged
    }

    /// Checks a record and decrypts it in place. Returns where its chunks are.
    ///
    /// # Errors
    /// See [`OpenError`]; the encrypted part of `record` is then destroyed.
    pub fn open(&mut self, record: &mut [u8]) -> Result<(Opened, Range<usize>), OpenError> {
        let Parts { masked, sample } = Parts::of(record, self.epoch)?;
        let sealed = &mut record[HEADER_LEN..];
        if self.forged >= FORGERY_LIMIT {
            return Err(OpenError::Exhausted);
        }
        let bits = sequence_number(mask(masked, self.cipher.mask(sample)));
        let (near, far) = candidates(self.expected, bits);
        let near_is_new = self.window.is_new(near);
        let far = far.filter(|&far| self.window.is_new(far));
        // The first attempt destroys what it cannot open.
        let copy = (near_is_new && far.is_some()).then(|| sealed.to_vec());
        let aad = header(self.epoch, bits);
        let opens = |number: &u64, sealed: &mut [u8]| {
            self.cipher.open(nonce(self.iv, *number), &aad, sealed)
        };
        let near = (near_is_new && opens(&near, sealed)).then_some(near);
        let number = near.or_else(|| {
            if let Some(copy) = copy {
                sealed.copy_from_slice(&copy);
            }
            far.filter(|number| opens(number, sealed))
        });
        let Some(number) = number else {
            self.forged += u64::from(near_is_new || far.is_some());
            return Err(if near_is_new { OpenError::Forged } else { OpenError::Replayed });
        };
        self.window.insert(number);
        self.expected = self.expected.max(number + 1);
        self.opened += 1;
        let len = content_len(&sealed[..sealed.len() - TAG_LEN])?;
        let opened = Opened { epoch: self.epoch, sequence_number: number };
        Ok((opened, HEADER_LEN..HEADER_LEN + len))
    }
}

/// The parts of a record that say which keys open it.
pub(crate) struct Parts {
    /// The header, with its mask.
    pub(crate) masked: [u8; HEADER_LEN],
    /// The bytes that the mask of the sequence number comes from.
    pub(crate) sample: [u8; TAG_LEN],
}

impl Parts {
    /// The parts of a record that may be of this epoch. Its ciphertext has a byte at least, the
    /// content type.
    pub(crate) fn of(record: &[u8], epoch: u64) -> Result<Parts, OpenError> {
        let Some((&masked, sealed)) = record.split_first_chunk::<HEADER_LEN>() else {
            return Err(OpenError::Malformed);
        };
        let Some((&sample, [_, ..])) = sealed.split_first_chunk::<TAG_LEN>() else {
            return Err(OpenError::Malformed);
        };
        match epoch_bits(masked) {
            None => Err(OpenError::Malformed),
            Some(bits) if u64::from(bits) != epoch & 3 => Err(OpenError::NoKeys),
            Some(_) => Ok(Parts { masked, sample }),
        }
    }
}

/// The length of the chunks in a decrypted record. The content type behind them is the last byte
/// that is not padding (RFC 8446 §5.4).
pub(crate) fn content_len(text: &[u8]) -> Result<usize, OpenError> {
    let end = text.iter().rposition(|&byte| byte != 0);
    match end.map_or((0, 0), |end| (text[end], end)) {
        (APPLICATION_DATA, len) => Ok(len),
        (other, _) => Err(OpenError::ContentType(other)),
    }
}

/// The sequence numbers that 16 bits may stand for: the one closest to the expected, and where that
/// is [far](AMBIGUOUS) off, the next closest.
fn candidates(expected: u64, bits: u16) -> (u64, Option<u64>) {
    const TURN: u64 = 1 << 16;
    let base = expected - expected % TURN + u64::from(bits);
    let all = [base.checked_sub(TURN), Some(base), Some(base + TURN)];
    let mut near = base;
    let mut far = None;
    for other in all.into_iter().flatten().filter(|&other| other != base) {
        let is_nearer = |a: u64, b: u64| a.abs_diff(expected) < b.abs_diff(expected);
        if is_nearer(other, near) {
            (near, far) = (other, Some(near));
        } else if far.is_none_or(|far| is_nearer(other, far)) {
            far = Some(other);
        }
    }
    let is_ambiguous = near.abs_diff(expected) >= AMBIGUOUS;
    (near, if is_ambiguous { far } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CipherSuite, KeyMaterial, SealingKeys, aws_lc};

    #[test]
    fn keys_that_were_tried_with_too_many_forgeries_open_nothing() {
        let suite = CipherSuite::Aes128Gcm;
        let key = vec![1; suite.key_len()];
        let iv = [2; NONCE_LEN];
        let material = KeyMaterial { key: key.clone(), sequence_number_key: key, iv };
        let cipher = || aws_lc::cipher(suite, &material).expect("keys of the right length");
        let mut sealing = SealingKeys::new(suite, cipher(), iv, 3);
        let mut record = || {
            let mut record = vec![0; HEADER_LEN];
            record.extend_from_slice(b"chunks");
            sealing.seal(&mut record, 0).expect("fresh keys");
            record
        };
        let (mut forged, honest) = (record(), [record(), record()]);
        *forged.last_mut().expect("a tag") ^= 1;
        let mut keys = OpeningKeys::new(cipher(), iv, 3);
        keys.forged = (1 << 36) - 1; // RFC 9147 §4.5.3
        assert!(keys.open(&mut honest[0].clone()).is_ok(), "one more may be tried");
        assert_eq!(keys.open(&mut forged), Err(OpenError::Forged));
        assert_eq!(keys.open(&mut honest[1].clone()), Err(OpenError::Exhausted));
    }

    #[test]
    fn sixteen_bits_stand_for_the_closest_number() {
        assert_eq!(candidates(0, 0), (0, None));
        assert_eq!(candidates(0, 300), (300, None));
        assert_eq!(candidates(65_530, 3), (65_539, None));
        assert_eq!(candidates(65_540, 65_530), (65_530, None));
        assert_eq!(candidates(200_000, 200_000u64 as u16), (200_000, None));
        // A second candidate is far behind, or far ahead.
        assert_eq!(candidates(100_000, (100_000 - 30_000) as u16), (70_000, Some(135_536)));
        assert_eq!(candidates(100_000, (120_000u64) as u16), (120_000, Some(54_464)));
        // There is nothing before 0.
        assert_eq!(candidates(10, 40_000), (40_000, Some(105_536)));
    }
}
