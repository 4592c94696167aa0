//! The header of a record (RFC 9147 §4, in the configuration of the DTLS chunk).

/// Length of a record's header, in bytes.
pub const HEADER_LEN: usize = 3;

/// Fixed bits 001; no connection ID; a 16-bit sequence number; no length.
const FLAGS: u8 = 0b0010_1000;
const FLAGS_MASK: u8 = 0b1111_1100;
const EPOCH_MASK: u8 = 0b0000_0011;

/// The content type of all records here: application data (draft, section "DTLS Chunk Handling").
pub(crate) const APPLICATION_DATA: u8 = 23;

/// The header of a record of an epoch, with its sequence number in plain: the additional data of
/// the cipher.
pub(crate) fn header(epoch: u64, sequence_number: u16) -> [u8; HEADER_LEN] {
    let [high, low] = sequence_number.to_be_bytes();
    [FLAGS | epoch.to_le_bytes()[0] & EPOCH_MASK, high, low]
}

/// The two bits of the epoch in a header of the right form.
pub(crate) fn epoch_bits(header: [u8; HEADER_LEN]) -> Option<u8> {
    (header[0] & FLAGS_MASK == FLAGS).then_some(header[0] & EPOCH_MASK)
}

/// Masks the sequence number of a header, or takes the mask off.
pub(crate) fn mask(header: [u8; HEADER_LEN], mask: [u8; 2]) -> [u8; HEADER_LEN] {
    [header[0], header[1] ^ mask[0], header[2] ^ mask[1]]
}

/// The sequence number of a header without mask.
pub(crate) fn sequence_number(header: [u8; HEADER_LEN]) -> u16 {
    u16::from_be_bytes([header[1], header[2]])
}

/// The nonce of a record (RFC 8446 §5.3): in DTLS 1.3 the epoch is no part of it.
pub(crate) fn nonce(iv: [u8; 12], sequence_number: u64) -> [u8; 12] {
    let mut nonce = iv;
    for (byte, number) in nonce[4..].iter_mut().zip(sequence_number.to_be_bytes()) {
        *byte ^= number;
    }
    nonce
}
