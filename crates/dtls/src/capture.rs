//! Reading the records of a capture.
//!
//! **Not for associations.** A capture has copies of packets, may begin in the middle of an epoch
//! and miss any number of packets. So [`CaptureKeys`] open a record as often as it comes: they have
//! no replay window, and an end that used them would accept repeated packets, which the draft
//! forbids (section "Security Considerations"). They are a type of their own, which neither
//! [`Epochs`](crate::Epochs) nor [`KeyAction`](crate::manage::KeyAction) takes.

use crate::cipher::{CipherSuite, NONCE_LEN, RecordCipher, TAG_LEN};
use crate::header::{HEADER_LEN, header, mask, nonce, sequence_number};
use crate::open::{OpenError, Opened, Parts, content_len};

/// Sequence numbers with the same 16 bits are this far apart.
const TURN: u64 = 1 << 16;

/// Failed searches after which keys only try numbers near the last one: damaged and forged records
/// must not cost hundreds of attempts each.
const FAILED_SEARCHES_MAX: u32 = 64;

/// The keys that open what one endpoint sealed in one epoch, in a capture.
#[derive(Debug)]
pub struct CaptureKeys {
    cipher: Box<dyn RecordCipher>,
    iv: [u8; NONCE_LEN],
    epoch: u64,
    /// The sequence number after the highest that was authentic.
    expected: u64,
    failed_searches: u32,
}

impl CaptureKeys {
    /// Keys of an epoch.
    #[must_use]
    pub fn new(cipher: Box<dyn RecordCipher>, iv: [u8; NONCE_LEN], epoch: u64) -> CaptureKeys {
        CaptureKeys { cipher, iv, epoch, expected: 0, failed_searches: 0 }
    }

    /// Their epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Decrypts a record to the end of `out`, which then holds its chunks. The number of the record
    /// must be within 65,536 of the highest one so far.
    ///
    /// # Errors
    /// See [`OpenError`]; `out` is then as it was. Never [`OpenError::Replayed`].
    pub fn open(&mut self, record: &[u8], out: &mut Vec<u8>) -> Result<Opened, OpenError> {
        let (base, bits) = self.number_of(record)?;
        let near = [Some(base), base.checked_add(TURN), base.checked_sub(TURN)];
        self.attempt(record, bits, near.into_iter().flatten(), out)
    }

    /// Decrypts a record as [`open`](Self::open) does, whatever its number: tries all that an AES
    /// key can seal, up to 23,726,566, in at most 363 attempts. After 64 failures it tries nothing
    /// more.
    ///
    /// # Errors
    /// Those of [`open`](Self::open), and [`OpenError::Exhausted`].
    pub fn search(&mut self, record: &[u8], out: &mut Vec<u8>) -> Result<Opened, OpenError> {
        if self.failed_searches >= FAILED_SEARCHES_MAX {
            return Err(OpenError::Exhausted);
        }
        let (_, bits) = self.number_of(record)?;
        let turns = 0..=CipherSuite::Aes128Gcm.seal_limit() / TURN;
        let numbers = turns.map(|turn| turn * TURN + u64::from(bits));
        let result = self.attempt(record, bits, numbers, out);
        self.failed_searches += u32::from(result == Err(OpenError::Forged));
        result
    }

    /// The 16 bits of a record's number, and the number with these bits in the turn of the one that
    /// is expected.
    fn number_of(&self, record: &[u8]) -> Result<(u64, u16), OpenError> {
        let Parts { masked, sample } = Parts::of(record, self.epoch)?;
        let bits = sequence_number(mask(masked, self.cipher.mask(sample)));
        Ok((self.expected - self.expected % TURN + u64::from(bits), bits))
    }

    fn attempt(
        &mut self,
        record: &[u8],
        bits: u16,
        mut numbers: impl Iterator<Item = u64>,
        out: &mut Vec<u8>,
    ) -> Result<Opened, OpenError> {
        let sealed = &record[HEADER_LEN..];
        let (start, aad) = (out.len(), header(self.epoch, bits));
        let found = numbers.find(|number| {
            // An attempt destroys what it cannot open.
            out.truncate(start);
            out.extend_from_slice(sealed);
            self.cipher.open(nonce(self.iv, *number), &aad, &mut out[start..])
        });
        let opened = found.ok_or(OpenError::Forged).and_then(|number| {
            self.expected = self.expected.max(number + 1);
            Ok((number, content_len(&out[start..out.len() - TAG_LEN])?))
        });
        out.truncate(start + opened.map_or(0, |(_, len)| len));
        opened.map(|(sequence_number, _)| Opened { epoch: self.epoch, sequence_number })
    }
}
