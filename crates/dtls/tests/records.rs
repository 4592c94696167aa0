//! Records sealed by one end and opened by the other, as the network may deliver them.

use manypath_dtls::{
    CipherSuite, Epochs, FIRST_EPOCH, HEADER_LEN, KeyMaterial, OpenError, Opened, OpeningKeys,
    RECORD_OVERHEAD, SealingKeys, aws_lc,
};
use proptest::prelude::*;

fn material(suite: CipherSuite) -> KeyMaterial {
    let len = suite.key_len() as u8;
    KeyMaterial {
        key: (0..len).collect(),
        sequence_number_key: (100..100 + len).collect(),
        iv: std::array::from_fn(|i| 200 + i as u8),
    }
}

fn keys(suite: CipherSuite, epoch: u64) -> (SealingKeys, OpeningKeys) {
    let material = material(suite);
    let cipher = || aws_lc::cipher(suite, &material).expect("keys of the right length");
    let sealing = SealingKeys::new(suite, cipher(), material.iv, epoch);
    (sealing, OpeningKeys::new(cipher(), material.iv, epoch))
}

/// A record of these chunks, by itself.
fn seal(keys: &mut SealingKeys, chunks: &[u8]) -> Vec<u8> {
    let mut record = vec![0; HEADER_LEN];
    record.extend_from_slice(chunks);
    keys.seal(&mut record, 0).expect("keys that are not exhausted");
    record
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits = |i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hexadecimal digits");
    (0..hex.len()).step_by(2).map(digits).collect()
}

/// Opens a record, by itself.
fn open(keys: &mut OpeningKeys, record: &[u8]) -> Result<(Opened, Vec<u8>), OpenError> {
    let mut record = record.to_vec();
    keys.open(&mut record).map(|(opened, chunks)| (opened, record[chunks].to_vec()))
}

const COOKIE_ACK: [u8; 4] = [11, 0, 0, 4];

/// Records that a few lines of Python made from RFC 9147 and the `cryptography` package: a COOKIE
/// ACK with number 0 in epoch 3, and with number 70,000 in epoch 4.
///
/// ```text
/// 2b fbdd    flags 0x28 and epoch 3; sequence number 0, exclusive-or the mask
/// 3d2894ba19 COOKIE ACK (4 bytes) and content type 23, encrypted
/// d792…2431  authentication tag
/// ```
#[test]
fn records_are_those_of_another_implementation() {
    let expected = [
        (
            CipherSuite::Aes128Gcm,
            [
                "2bfbdd3d2894ba19d792c1b295bfaeb613671845a2fc2431",
                "288b7ac832b5ef85bda8ef806c592fb65823b1fa62ecb05a",
            ],
        ),
        (
            CipherSuite::Aes256Gcm,
            [
                "2bad6d1a7861df91af1bd1216063d364a4f6c19cfa290668",
                "282c0d9f2f988b7384bfb9deb568017fb5bc798df487f78d",
            ],
        ),
        (
            CipherSuite::ChaCha20Poly1305,
            [
                "2b29321e66938b70d1e761cbae5b86a15a7195907381998c",
                "284dd72af089794cf91c4fafad2dd4e49e2523d2d67ad0ca",
            ],
        ),
    ];
    for (suite, [first, later]) in expected {
        let (mut sealing, _) = keys(suite, FIRST_EPOCH);
        assert_eq!(seal(&mut sealing, &COOKIE_ACK), bytes_of(first), "{suite:?}");
        let (mut sealing, _) = keys(suite, FIRST_EPOCH + 1);
        while sealing.sealed() < 70_000 {
            seal(&mut sealing, &[]);
        }
        assert_eq!(seal(&mut sealing, &COOKIE_ACK), bytes_of(later), "{suite:?}");
    }
}

#[test]
fn a_record_is_opened_once() {
    let (mut sealing, mut opening) = keys(CipherSuite::Aes128Gcm, FIRST_EPOCH);
    let record = seal(&mut sealing, &COOKIE_ACK);
    assert_eq!(record.len(), COOKIE_ACK.len() + RECORD_OVERHEAD);
    let opened = Opened { epoch: FIRST_EPOCH, sequence_number: 0 };
    assert_eq!(open(&mut opening, &record), Ok((opened, COOKIE_ACK.to_vec())));
    assert_eq!(open(&mut opening, &record), Err(OpenError::Replayed));
    assert_eq!((opening.opened(), opening.forged()), (1, 0));
}

#[test]
fn paths_may_differ_by_thirty_thousand_packets() {
    let (mut sealing, mut opening) = keys(CipherSuite::Aes128Gcm, FIRST_EPOCH);
    let slow: Vec<_> = (0..100).map(|_| seal(&mut sealing, &COOKIE_ACK)).collect();
    for _ in 0..30_000 {
        assert!(open(&mut opening, &seal(&mut sealing, &COOKIE_ACK)).is_ok());
    }
    for (number, record) in slow.iter().enumerate() {
        let (opened, _) = open(&mut opening, record).expect("not too late");
        assert_eq!(opened.sequence_number, number as u64);
        assert_eq!(open(&mut opening, record), Err(OpenError::Replayed));
    }
}

#[test]
fn what_is_older_than_the_window_is_refused() {
    let (mut sealing, mut opening) = keys(CipherSuite::Aes128Gcm, FIRST_EPOCH);
    let late = seal(&mut sealing, &COOKIE_ACK);
    for _ in 0..33_000 {
        assert!(open(&mut opening, &seal(&mut sealing, &COOKIE_ACK)).is_ok());
    }
    let refused = open(&mut opening, &late);
    assert!(matches!(refused, Err(OpenError::Replayed | OpenError::Forged)), "{refused:?}");
}

#[test]
fn after_an_outage_of_forty_thousand_packets_the_number_is_found() {
    let (mut sealing, mut opening) = keys(CipherSuite::Aes128Gcm, FIRST_EPOCH);
    for _ in 0..100_000 {
        assert!(open(&mut opening, &seal(&mut sealing, &[])).is_ok());
    }
    // All of these are lost. The next one's 16 bits are closer to a number before them.
    for _ in 0..40_000 {
        seal(&mut sealing, &[]);
    }
    let (opened, _) = open(&mut opening, &seal(&mut sealing, &COOKIE_ACK)).expect("authentic");
    assert_eq!(opened.sequence_number, 140_000);
}

#[test]
fn a_late_record_does_not_set_the_expected_number_back() {
    let (mut sealing, mut opening) = keys(CipherSuite::Aes128Gcm, FIRST_EPOCH);
    let mut slow = Vec::new();
    for number in 0..140_000 {
        let record = seal(&mut sealing, &[]);
        if number == 110_000 {
            slow = record;
        } else {
            assert!(open(&mut opening, &record).is_ok());
        }
    }
    assert!(open(&mut opening, &slow).is_ok());
    // All of these are lost. Next to the late record, the next one's 16 bits stand for another
    // number.
    for _ in 0..30_000 {
        seal(&mut sealing, &[]);
    }
    let (opened, _) = open(&mut opening, &seal(&mut sealing, &COOKIE_ACK)).expect("authentic");
    assert_eq!(opened.sequence_number, 170_000);
}

#[test]
fn a_record_without_room_for_a_content_type_is_not_tried_with_the_key() {
    let (_, mut opening) = keys(CipherSuite::Aes128Gcm, FIRST_EPOCH);
    for len in 0..RECORD_OVERHEAD {
        assert_eq!(open(&mut opening, &vec![0x2b; len]), Err(OpenError::Malformed), "{len} bytes");
    }
    assert_eq!(opening.forged(), 0);
    assert_eq!(open(&mut opening, &[0x2b; RECORD_OVERHEAD]), Err(OpenError::Forged));
}

#[test]
fn no_flipped_bit_goes_unnoticed() {
    for suite in CipherSuite::ALL {
        let (mut sealing, mut opening) = keys(suite, FIRST_EPOCH);
        let record = seal(&mut sealing, &COOKIE_ACK);
        for bit in 0..8 * record.len() {
            let mut changed = record.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(open(&mut opening, &changed).is_err(), "{suite:?}, bit {bit}");
        }
        assert!(open(&mut opening, &record).is_ok(), "the true one still counts");
    }
}

#[test]
fn old_epochs_are_opened_until_they_are_retired() {
    let mut epochs = Epochs::default();
    let mut late = Vec::new();
    for epoch in FIRST_EPOCH..FIRST_EPOCH + 3 {
        let (mut sealing, opening) = keys(CipherSuite::Aes128Gcm, epoch);
        epochs.install(opening);
        late.push(seal(&mut sealing, &COOKIE_ACK));
    }
    assert_eq!(epochs.newest(), Some(FIRST_EPOCH + 2));
    let epoch_of = |record: &Vec<u8>, epochs: &mut Epochs| {
        epochs.open(&mut record.clone()).map(|(opened, _)| opened.epoch)
    };
    for (epoch, record) in (FIRST_EPOCH..).zip(&late[..2]) {
        assert_eq!(epoch_of(record, &mut epochs), Ok(epoch));
    }
    epochs.retire_before(FIRST_EPOCH + 2);
    assert_eq!(epoch_of(&late[0], &mut epochs), Err(OpenError::NoKeys));
    assert_eq!(epoch_of(&late[2], &mut epochs), Ok(FIRST_EPOCH + 2));
}

/// A record tells two bits of its epoch, which are the same for the first and the fifth.
#[test]
fn the_fifth_epoch_takes_the_place_of_the_first() {
    let mut epochs = Epochs::default();
    let mut records = Vec::new();
    for epoch in FIRST_EPOCH..FIRST_EPOCH + 5 {
        let (mut sealing, opening) = keys(CipherSuite::Aes128Gcm, epoch);
        epochs.install(opening);
        records.push(seal(&mut sealing, &COOKIE_ACK));
    }
    assert!(epochs.get(FIRST_EPOCH).is_none());
    for (epoch, mut record) in (FIRST_EPOCH..).zip(records).skip(1) {
        assert_eq!(epochs.open(&mut record).map(|(opened, _)| opened.epoch), Ok(epoch));
    }
}

#[test]
#[should_panic(expected = "epochs are consecutive")]
fn an_epoch_is_installed_once() {
    let mut epochs = Epochs::default();
    for _ in 0..2 {
        epochs.install(keys(CipherSuite::Aes128Gcm, FIRST_EPOCH).1);
    }
}

#[test]
fn other_keys_open_nothing() {
    let (mut sealing, _) = keys(CipherSuite::Aes128Gcm, FIRST_EPOCH);
    let mut other = material(CipherSuite::Aes128Gcm);
    other.key[0] ^= 1;
    let cipher = aws_lc::cipher(CipherSuite::Aes128Gcm, &other).expect("right length");
    let mut opening = OpeningKeys::new(cipher, other.iv, FIRST_EPOCH);
    let refused = open(&mut opening, &seal(&mut sealing, &COOKIE_ACK));
    assert_eq!(refused, Err(OpenError::Forged));
    assert_eq!(opening.forged(), 1);
}

#[test]
fn a_key_of_the_wrong_length_is_refused() {
    let mut short = material(CipherSuite::Aes128Gcm);
    short.key.truncate(15);
    let error = aws_lc::cipher(CipherSuite::Aes128Gcm, &short).expect_err("too short");
    assert_eq!(error.to_string(), "a key of Aes128Gcm has 16 bytes");
}

proptest! {
    #[test]
    fn any_bytes_are_refused_or_were_sealed(
        junk in proptest::collection::vec(any::<u8>(), 0..64),
        chunks in proptest::collection::vec(any::<u8>(), 0..1500),
    ) {
        let (mut sealing, mut opening) = keys(CipherSuite::Aes128Gcm, FIRST_EPOCH);
        prop_assert!(open(&mut opening, &junk).is_err());
        let (_, text) = open(&mut opening, &seal(&mut sealing, &chunks)).expect("authentic");
        prop_assert_eq!(text, chunks);
    }

    /// Records in any order, some lost, some twice: each is opened once.
    #[test]
    fn each_record_counts_once_in_any_order(
        order in proptest::collection::vec(0usize..400, 0..1200),
    ) {
        let (mut sealing, mut opening) = keys(CipherSuite::Aes128Gcm, FIRST_EPOCH);
        let records: Vec<_> = (0..400).map(|_| seal(&mut sealing, &COOKIE_ACK)).collect();
        let mut seen = std::collections::BTreeSet::new();
        for i in order {
            let opened = open(&mut opening, &records[i]);
            prop_assert_eq!(opened.is_ok(), seen.insert(i));
        }
    }
}
