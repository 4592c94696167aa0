//! Which retransmissions were spurious: a network that sees everything can tell.

use std::collections::VecDeque;

use manypath_wire::chunk_type;

/// TSNs remembered after they arrived, so that a late second arrival is recognised.
const REMEMBERED: usize = 8192;

/// One side's DATA chunks, by TSN.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// TSN of the first entry; `None` before the first DATA chunk.
    base: Option<u32>,
    entries: VecDeque<Entry>,
    spurious: Vec<u64>,
}

#[derive(Clone, Debug)]
struct Entry {
    /// Times sent beyond the first.
    retransmissions: u16,
    /// Retransmissions found spurious so far.
    spurious: u16,
    /// The path of the last transmission.
    path: u8,
    has_arrived: bool,
}

impl Ledger {
    /// A packet was sent over the path of this number.
    pub(crate) fn sent(&mut self, packet: &[u8], path: usize) {
        for tsn in tsns(packet) {
            let base = *self.base.get_or_insert(tsn);
            let index = tsn.wrapping_sub(base) as usize;
            if let Some(entry) = self.entries.get_mut(index) {
                entry.retransmissions = entry.retransmissions.saturating_add(1);
                entry.path = path as u8;
            } else if index == self.entries.len() {
                let path = path as u8;
                self.entries.push_back(Entry {
                    retransmissions: 0,
                    spurious: 0,
                    path,
                    has_arrived: false,
                });
                self.forget_old();
            }
        }
    }

    /// A packet arrived.
    pub(crate) fn arrived(&mut self, packet: &[u8]) {
        let Some(base) = self.base else { return };
        for tsn in tsns(packet) {
            let Some(entry) = self.entries.get_mut(tsn.wrapping_sub(base) as usize) else {
                continue;
            };
            // A copy made by the network is nobody's retransmission.
            if entry.has_arrived && entry.spurious < entry.retransmissions {
                entry.spurious += 1;
                let path = usize::from(entry.path);
                if path >= self.spurious.len() {
                    self.spurious.resize(path + 1, 0);
                }
                self.spurious[path] += 1;
            }
            entry.has_arrived = true;
        }
    }

    /// Spurious retransmissions: of chunks that also arrived by another transmission, and that were
    /// sent last over the path of this number.
    pub(crate) fn spurious_on(&self, path: usize) -> u64 {
        self.spurious.get(path).copied().unwrap_or(0)
    }

    fn forget_old(&mut self) {
        while self.entries.len() > REMEMBERED && self.entries[0].has_arrived {
            self.entries.pop_front();
            self.base = self.base.map(|base| base.wrapping_add(1));
        }
    }
}

/// The TSNs of the DATA and I-DATA chunks of a packet, by their place alone: common header of 12
/// bytes; chunks of type, flags, length and, for user data, the TSN.
pub(crate) fn tsns(packet: &[u8]) -> impl Iterator<Item = u32> {
    let mut rest = packet.get(12..).unwrap_or_default();
    std::iter::from_fn(move || {
        loop {
            let [ty, _, high, low] = *rest.first_chunk()?;
            let length = usize::from(u16::from_be_bytes([high, low]));
            let chunk = rest.get(..length.max(4))?;
            rest = rest.get(length.max(4).next_multiple_of(4)..).unwrap_or_default();
            if matches!(ty, chunk_type::DATA | chunk_type::I_DATA) {
                return chunk.get(4..8)?.try_into().ok().map(u32::from_be_bytes);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use manypath_wire::{CommonHeader, DataFlags, PacketBuilder, Ssn, StreamId, Tsn};

    fn packet(numbers: &[u32]) -> Vec<u8> {
        let header = CommonHeader { source_port: 1, destination_port: 2, verification_tag: 3 };
        let mut out = Vec::new();
        let mut builder = PacketBuilder::new(&mut out, header, 1400);
        assert!(builder.push_cookie_ack());
        for &tsn in numbers {
            let whole = DataFlags::BEGIN | DataFlags::END;
            assert!(builder.push_data(Tsn(tsn), StreamId(0), Ssn(0), 0, whole, b"hello"));
        }
        builder.finish(false);
        out
    }

    #[test]
    fn only_a_second_arrival_makes_a_retransmission_spurious() {
        let start = u32::MAX - 1;
        let mut ledger = Ledger::default();
        ledger.sent(&packet(&[start, start + 1]), 0);
        ledger.sent(&packet(&[0]), 1);
        ledger.arrived(&packet(&[0]));
        ledger.sent(&packet(&[start]), 1);
        ledger.arrived(&packet(&[start]));
        assert_eq!((ledger.spurious_on(0), ledger.spurious_on(1)), (0, 0), "the first was lost");

        ledger.sent(&packet(&[0]), 1);
        ledger.arrived(&packet(&[0]));
        assert_eq!((ledger.spurious_on(0), ledger.spurious_on(1)), (0, 1));
        ledger.arrived(&packet(&[0]));
        assert_eq!(ledger.spurious_on(1), 1, "a copy made on the way");
    }

    #[test]
    fn old_entries_are_forgotten() {
        let mut ledger = Ledger::default();
        for tsn in 0..50_000 {
            ledger.sent(&packet(&[tsn]), 0);
            ledger.arrived(&packet(&[tsn]));
        }
        assert!(ledger.entries.len() <= REMEMBERED);
        assert_eq!(ledger.spurious_on(0), 0);
    }

    #[test]
    fn cut_packets_end_the_walk() {
        let whole = packet(&[7, 8]);
        for length in 0..whole.len() {
            assert!(tsns(&whole[..length]).count() <= 2);
        }
        assert!(tsns(&[0; 40]).count() < 10, "chunks of length 0");
    }
}
