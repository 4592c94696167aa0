//! Seals records, delivers them in any order, late, twice or damaged, and changes epochs meanwhile.
//! Each record opens at most once, as what was sealed; damaged ones do not. Any bytes are taken.

#![no_main]

use std::collections::BTreeSet;

use libfuzzer_sys::fuzz_target;
use manypath_dtls::{
    CipherSuite, Epochs, FIRST_EPOCH, HEADER_LEN, NONCE_LEN, OpeningKeys, RecordCipher,
    SealingKeys, TAG_LEN,
};

/// No cipher: text is not hidden, and tags are a checksum. It is enough to tell records apart.
#[derive(Copy, Clone, Debug)]
struct Checksum {
    key: u64,
}

impl Checksum {
    fn tag(self, nonce: [u8; NONCE_LEN], aad: &[u8], text: &[u8]) -> [u8; TAG_LEN] {
        let mut sums = [self.key, !self.key];
        for byte in nonce.iter().chain(aad).chain(text) {
            for (sum, prime) in sums.iter_mut().zip([0x100_0000_01b3, 0x9e37_79b9_7f4a_7c15]) {
                *sum = (*sum ^ u64::from(*byte)).wrapping_mul(prime).rotate_left(23);
            }
        }
        let mut tag = [0; TAG_LEN];
        for (bytes, sum) in tag.chunks_exact_mut(8).zip(sums) {
            bytes.copy_from_slice(&sum.to_be_bytes());
        }
        tag
    }
}

impl RecordCipher for Checksum {
    fn seal(&self, nonce: [u8; NONCE_LEN], aad: &[u8], text: &mut [u8]) -> [u8; TAG_LEN] {
        self.tag(nonce, aad, text)
    }

    fn open(&self, nonce: [u8; NONCE_LEN], aad: &[u8], sealed: &mut [u8]) -> bool {
        let Some((text, tag)) = sealed.split_last_chunk_mut::<TAG_LEN>() else { return false };
        let is_right = self.tag(nonce, aad, text) == *tag;
        if !is_right {
            text.fill(0); // as a cipher leaves it
        }
        is_right
    }

    fn mask(&self, sample: [u8; TAG_LEN]) -> [u8; 2] {
        let [first, second, ..] = self.tag([0; NONCE_LEN], &[], &sample);
        [first, second]
    }
}

/// Records kept for late delivery.
const KEPT_MAX: usize = 1024;

fuzz_target!(|bytes: &[u8]| {
    let mut epochs = Epochs::default();
    let mut seals: Option<SealingKeys> = None;
    let mut kept: Vec<(u64, u64, Vec<u8>)> = Vec::new();
    let mut opened = BTreeSet::new();
    let mut bytes = bytes.iter().copied();
    while let Some(step) = bytes.next() {
        let seals = match &mut seals {
            Some(seals) if step != 0 => seals,
            old => {
                let epoch = old.as_ref().map_or(FIRST_EPOCH, |keys| keys.epoch() + 1);
                let cipher = Box::new(Checksum { key: epoch });
                epochs.install(OpeningKeys::new(cipher.clone(), [7; NONCE_LEN], epoch));
                old.insert(SealingKeys::new(CipherSuite::Aes128Gcm, cipher, [7; NONCE_LEN], epoch))
            }
        };
        match step {
            // Some records that are lost, and one that is kept.
            0..128 => {
                let mut record = Vec::new();
                for _ in 0..=usize::from(step).pow(2) {
                    record = vec![0; HEADER_LEN];
                    record.extend_from_slice(&[step; 4]);
                    seals.seal(&mut record, 0).expect("fewer than the limit");
                }
                if kept.len() < KEPT_MAX {
                    kept.push((seals.epoch(), seals.sealed() - 1, record));
                }
            }
            // One of the kept ones, whole or damaged.
            128..250 => {
                let choice = usize::from(bytes.next().unwrap_or(0));
                if kept.is_empty() {
                    continue;
                }
                let (epoch, number, record) = &kept[choice * kept.len() / 256];
                let mut copy = record.clone();
                let damage = usize::from(step - 128);
                if let Some(byte) = copy.get_mut(damage) {
                    *byte ^= 1;
                    assert!(epochs.open(&mut copy).is_err(), "a damaged record");
                } else if let Ok((found, chunks)) = epochs.open(&mut copy) {
                    assert_eq!((found.epoch, found.sequence_number), (*epoch, *number));
                    assert_eq!(chunks.len(), 4);
                    assert!(opened.insert((*epoch, *number)), "it was opened before");
                }
            }
            250..=254 => {
                let newest = epochs.newest().expect("there is one");
                epochs.retire_before(newest - u64::from(step - 250).min(newest));
            }
            255 => {
                // The fuzzer may find out a checksum: it is refused or not.
                let mut junk: Vec<u8> = bytes.by_ref().take(40).collect();
                let _ = epochs.open(&mut junk);
            }
        }
    }
});
