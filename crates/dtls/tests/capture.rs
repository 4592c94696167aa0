//! Records read from captures: in any order, repeatedly, from anywhere in an epoch.

use manypath_dtls::capture::CaptureKeys;
use manypath_dtls::{CipherSuite, FIRST_EPOCH, KeyMaterial, OpenError, aws_lc};
use proptest::prelude::*;

fn material(suite: CipherSuite) -> KeyMaterial {
    let len = suite.key_len() as u8;
    KeyMaterial {
        key: (0..len).collect(),
        sequence_number_key: (100..100 + len).collect(),
        iv: std::array::from_fn(|i| 200 + i as u8),
    }
}

fn keys(suite: CipherSuite, epoch: u64) -> CaptureKeys {
    let material = material(suite);
    CaptureKeys::new(aws_lc::cipher(suite, &material).unwrap(), material.iv, epoch)
}

/// The record with this number (RFC 9147 §4), which [`SealingKeys`](manypath_dtls::SealingKeys)
/// would take millions of records to reach.
fn seal(suite: CipherSuite, epoch: u64, number: u64, content: &[u8]) -> Vec<u8> {
    let material = material(suite);
    let cipher = aws_lc::cipher(suite, &material).unwrap();
    let [.., high, low] = number.to_be_bytes();
    let head = [0b0010_1000 | (epoch % 4) as u8, high, low];
    let mut nonce = material.iv;
    nonce[4..].iter_mut().zip(number.to_be_bytes()).for_each(|(byte, n)| *byte ^= n);
    let mut sealed = [content, &[23]].concat();
    let tag = cipher.seal(nonce, &head, &mut sealed);
    sealed.extend_from_slice(&tag);
    let mask = cipher.mask(*sealed.first_chunk().unwrap());
    [&[head[0], head[1] ^ mask[0], head[2] ^ mask[1]], &sealed[..]].concat()
}

/// Opens a record as a tool does: near the last number, else anywhere.
fn open(keys: &mut CaptureKeys, record: &[u8]) -> Result<(u64, Vec<u8>), OpenError> {
    let mut chunks = b"before".to_vec();
    let mut opened = keys.open(record, &mut chunks);
    if opened == Err(OpenError::Forged) {
        assert_eq!(chunks, b"before");
        opened = keys.search(record, &mut chunks);
    }
    assert!(opened.is_ok() || chunks == b"before", "nothing is left of what is refused");
    opened.map(|opened| (opened.sequence_number, chunks.split_off(6)))
}

#[test]
fn a_record_is_opened_as_often_as_it_was_captured() {
    for suite in CipherSuite::ALL {
        let mut keys = keys(suite, FIRST_EPOCH);
        let record = seal(suite, FIRST_EPOCH, 7, b"four");
        for _ in 0..3 {
            assert_eq!(open(&mut keys, &record), Ok((7, b"four".to_vec())));
        }
    }
}

#[test]
fn a_capture_may_begin_and_go_on_anywhere() {
    let suite = CipherSuite::Aes128Gcm;
    let mut keys = keys(suite, 4);
    for number in [5_000_000, 5_000_001, 4_990_000, 5_060_000, 12_345_678, 0, 23_726_565] {
        let record = seal(suite, 4, number, &number.to_be_bytes());
        assert_eq!(open(&mut keys, &record), Ok((number, number.to_be_bytes().to_vec())));
    }
    // No AES key seals as many, so such numbers are looked for only near the last one.
    let record = seal(suite, 4, 30_000_000, b"beyond");
    assert_eq!(open(&mut keys, &record), Err(OpenError::Forged));
}

#[test]
fn damaged_records_are_refused_and_searched_for_a_few_times_only() {
    let suite = CipherSuite::ChaCha20Poly1305;
    let mut keys = keys(suite, FIRST_EPOCH);
    let record = seal(suite, FIRST_EPOCH, 3, b"four");
    for bit in 0..8 * record.len() {
        let mut damaged = record.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(open(&mut keys, &damaged).is_err(), "bit {bit}");
    }
    let far = seal(suite, FIRST_EPOCH, 5_000_000, b"four");
    assert_eq!(open(&mut keys, &far), Err(OpenError::Exhausted));
    assert_eq!(open(&mut keys, &record), Ok((3, b"four".to_vec())), "those near it still open");
}

#[test]
fn other_content_types_and_epochs_are_told() {
    let suite = CipherSuite::Aes256Gcm;
    let mut keys = keys(suite, FIRST_EPOCH);
    let other = seal(suite, FIRST_EPOCH + 1, 0, b"four");
    assert_eq!(open(&mut keys, &other), Err(OpenError::NoKeys));
    // The content type of an alert, where the helper adds zeros as padding would be.
    let mut nonce = material(suite).iv;
    nonce[11] ^= 9;
    let cipher = aws_lc::cipher(suite, &material(suite)).unwrap();
    let mut sealed = vec![2, 40, 21, 0, 0];
    let tag = cipher.seal(nonce, &[0x2b, 0, 9], &mut sealed);
    sealed.extend_from_slice(&tag);
    let mask = cipher.mask(*sealed.first_chunk().unwrap());
    let record = [&[0x2b, mask[0], 9 ^ mask[1]], &sealed[..]].concat();
    assert_eq!(open(&mut keys, &record), Err(OpenError::ContentType(21)));
}

proptest! {
    #[test]
    fn any_bytes_are_taken(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut keys = keys(CipherSuite::Aes128Gcm, FIRST_EPOCH);
        let with_header = [&[0x2b][..], &bytes].concat();
        for record in [&bytes, &with_header] {
            prop_assert!(open(&mut keys, record).is_err());
        }
    }
}
