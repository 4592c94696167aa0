//! Protecting what is sent.

use crate::cipher::{CipherSuite, NONCE_LEN, RecordCipher, TAG_LEN};
use crate::header::{APPLICATION_DATA, HEADER_LEN, header, mask, nonce};

/// A record that could not be sealed.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SealError {
    /// The keys have sealed as many records as they may: new ones are needed.
    #[error("the keys of epoch {epoch} have protected as many packets as they may")]
    Exhausted {
        /// Their epoch.
        epoch: u64,
    },
}

/// The keys that protect what one endpoint sends in one epoch.
#[derive(Debug)]
pub struct SealingKeys {
    cipher: Box<dyn RecordCipher>,
    iv: [u8; NONCE_LEN],
    epoch: u64,
    /// Sequence number of the next record, from 0. No number is used twice.
    next: u64,
    limit: u64,
}

impl SealingKeys {
    /// Keys of an epoch, never used before.
    #[must_use]
    pub fn new(
        suite: CipherSuite,
        cipher: Box<dyn RecordCipher>,
        iv: [u8; NONCE_LEN],
        epoch: u64,
    ) -> SealingKeys {
        SealingKeys { cipher, iv, epoch, next: 0, limit: suite.seal_limit() }
    }

    /// Their epoch.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Records sealed so far.
    #[must_use]
    pub fn sealed(&self) -> u64 {
        self.next
    }

    /// Makes a record of what stands in `buf` from `start`: [`HEADER_LEN`] bytes of any value, then
    /// chunks. Appends the content type and the tag, encrypts in place, and writes the header.
    ///
    /// Returns the record's sequence number.
    ///
    /// # Errors
    /// [`SealError::Exhausted`] at the [limit](CipherSuite::seal_limit) of the suite; `buf` is then
    /// as it was.
    ///
    /// # Panics
    /// If `buf` is shorter than `start + HEADER_LEN`.
    pub fn seal(&mut self, buf: &mut Vec<u8>, start: usize) -> Result<u64, SealError> {
        if self.next >= self.limit {
            return Err(SealError::Exhausted { epoch: self.epoch });
        }
        let number = self.next;
        self.next += 1;
        let [.., high, low] = number.to_be_bytes();
        let header = header(self.epoch, u16::from_be_bytes([high, low]));
        buf.push(APPLICATION_DATA);
        let text = &mut buf[start + HEADER_LEN..];
        let tag = self.cipher.seal(nonce(self.iv, number), &header, text);
        buf.extend_from_slice(&tag);
        let mut sample = [0; TAG_LEN];
        sample.copy_from_slice(&buf[start + HEADER_LEN..][..TAG_LEN]);
        let masked = mask(header, self.cipher.mask(sample));
        buf[start..start + HEADER_LEN].copy_from_slice(&masked);
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{KeyMaterial, aws_lc};

    #[test]
    fn keys_seal_as_many_records_as_they_may_and_no_more() {
        // RFC 9147 §4.5.3: 2^24.5; all sequence numbers of an epoch (§4.2.1).
        for (suite, limit) in [
            (CipherSuite::Aes128Gcm, 23_726_566),
            (CipherSuite::Aes256Gcm, 23_726_566),
            (CipherSuite::ChaCha20Poly1305, 1 << 48),
        ] {
            let key = vec![1; suite.key_len()];
            let iv = [2; NONCE_LEN];
            let material = KeyMaterial { key: key.clone(), sequence_number_key: key, iv };
            let cipher = aws_lc::cipher(suite, &material).expect("keys of the right length");
            let mut keys = SealingKeys::new(suite, cipher, iv, 3);
            keys.next = limit - 1;
            let mut record = vec![0; HEADER_LEN];
            assert_eq!(keys.seal(&mut record, 0), Ok(limit - 1));
            let mut another = vec![0; HEADER_LEN];
            assert_eq!(keys.seal(&mut another, 0), Err(SealError::Exhausted { epoch: 3 }));
            assert_eq!(another, [0; HEADER_LEN], "nothing leaves in its place");
            assert_eq!(keys.sealed(), limit);
        }
    }
}
