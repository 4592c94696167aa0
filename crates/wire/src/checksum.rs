//! CRC32c, the checksum of an SCTP packet (RFC 9260 §6.8 and Appendix A).

use crc_fast::{CrcAlgorithm, Digest, crc32_iscsi};

use crate::header::{CHECKSUM_OFFSET, COMMON_HEADER_LEN};

/// The checksum of a packet whose checksum field holds zero.
pub(crate) fn of_zeroed(packet: &[u8]) -> u32 {
    crc32_iscsi(packet)
}

/// The checksum of a received packet: its own field counts as zero.
pub(crate) fn of_received(header: &[u8; COMMON_HEADER_LEN], rest: &[u8]) -> u32 {
    let mut zeroed = *header;
    zeroed[CHECKSUM_OFFSET..].fill(0);
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    digest.update(&zeroed);
    digest.update(rest);
    // A 32-bit CRC in the library's common 64-bit result.
    digest.finalize() as u32
}

/// Writes the right checksum into a finished packet: for one that was built without. Bytes too few
/// for a common header stay as they are.
pub fn fill_checksum(packet: &mut [u8]) {
    if packet.len() >= COMMON_HEADER_LEN {
        packet[CHECKSUM_OFFSET..COMMON_HEADER_LEN].fill(0);
        let checksum = of_zeroed(packet);
        packet[CHECKSUM_OFFSET..COMMON_HEADER_LEN].copy_from_slice(&checksum.to_le_bytes());
    }
}

/// True if the checksum field of a packet is zero: the right checksum happens to be that, or none
/// was written (RFC 9653).
#[must_use]
#[inline]
pub fn has_zero_checksum(packet: &[u8]) -> bool {
    packet.get(CHECKSUM_OFFSET..COMMON_HEADER_LEN).is_some_and(|field| *field == [0; 4])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zero_checksum_is_seen_in_whole_headers_only() {
        let mut packet = [7; 13];
        assert!(!has_zero_checksum(&packet));
        packet[CHECKSUM_OFFSET..COMMON_HEADER_LEN].fill(0);
        assert!(has_zero_checksum(&packet) && !has_zero_checksum(&packet[..11]));
        packet[11] = 1;
        assert!(!has_zero_checksum(&packet));
    }

    #[test]
    fn known_answers() {
        assert_eq!(of_zeroed(b"123456789"), 0xE306_9283);
        // RFC 7143 Appendix A.4 (the same CRC), there as bytes in the order they are sent.
        assert_eq!(of_zeroed(&[0; 32]).to_le_bytes(), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(of_zeroed(&[0xff; 32]).to_le_bytes(), [0x43, 0xab, 0xa8, 0x62]);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(of_zeroed(&ascending).to_le_bytes(), [0x4e, 0x79, 0xdd, 0x46]);
        let descending: Vec<u8> = (0..32).rev().collect();
        assert_eq!(of_zeroed(&descending).to_le_bytes(), [0x5c, 0xdb, 0x3f, 0x11]);
    }

    #[test]
    fn the_checksum_field_counts_as_zero() {
        for len in [12, 13, 16, 60, 255, 256, 1400] {
            let mut packet: Vec<u8> = (0..len).map(|i| (i * 7 + 3) as u8).collect();
            let (header, rest) = packet.split_first_chunk().expect("a header");
            let received = of_received(header, rest);
            packet[CHECKSUM_OFFSET..COMMON_HEADER_LEN].fill(0);
            assert_eq!(received, of_zeroed(&packet), "length {len}");
        }
    }
}
