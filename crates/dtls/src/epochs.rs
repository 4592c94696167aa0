//! The keys of several epochs.

use std::ops::Range;

use smallvec::SmallVec;

use crate::header::{HEADER_LEN, epoch_bits};
use crate::open::{OpenError, Opened, OpeningKeys};

/// The first epoch of an association; those below are for the handshake of DTLS itself (draft,
/// section "DTLS Considerations").
pub const FIRST_EPOCH: u64 = 3;

/// The keys that open received records, of the current epoch and of older ones.
///
/// Packets of an old epoch still come on slow paths for a while after new keys are in use. A record
/// tells only two bits of its epoch, so keys of at most four epochs are kept.
#[derive(Debug, Default)]
pub struct Epochs {
    /// The oldest first; consecutive.
    keys: SmallVec<[OpeningKeys; 2]>,
}

impl Epochs {
    /// Installs the keys of the next epoch. The oldest keys go if there are four already.
    ///
    /// # Panics
    /// If the epoch does not follow that of the newest keys.
    pub fn install(&mut self, keys: OpeningKeys) {
        if let Some(newest) = self.newest() {
            assert_eq!(keys.epoch(), newest + 1, "epochs are consecutive");
        }
        if self.keys.len() == 4 {
            self.keys.remove(0);
        }
        self.keys.push(keys);
    }

    /// The newest epoch with keys.
    #[must_use]
    pub fn newest(&self) -> Option<u64> {
        self.keys.last().map(OpeningKeys::epoch)
    }

    /// The keys of an epoch.
    #[must_use]
    pub fn get(&self, epoch: u64) -> Option<&OpeningKeys> {
        self.keys.iter().find(|keys| keys.epoch() == epoch)
    }

    /// Drops the keys of all epochs before this one.
    pub fn retire_before(&mut self, epoch: u64) {
        self.keys.retain(|keys| keys.epoch() >= epoch);
    }

    /// Checks a record with the keys of its epoch and decrypts it in place. Returns where its
    /// chunks are.
    ///
    /// # Errors
    /// Those of [`OpeningKeys::open`], and [`OpenError::NoKeys`].
    pub fn open(&mut self, record: &mut [u8]) -> Result<(Opened, Range<usize>), OpenError> {
        self.keys_of(record)?.open(record)
    }

    fn keys_of(&mut self, record: &[u8]) -> Result<&mut OpeningKeys, OpenError> {
        let header = record.first_chunk::<HEADER_LEN>().ok_or(OpenError::Malformed)?;
        let bits = epoch_bits(*header).ok_or(OpenError::Malformed)?;
        let has_bits = |keys: &&mut OpeningKeys| keys.epoch() & 3 == u64::from(bits);
        self.keys.iter_mut().find(has_bits).ok_or(OpenError::NoKeys)
    }
}
