//! SACK (RFC 9260 §3.3.4) and NR-SACK (draft-tuexen-tsvwg-sctp-multipath).

use bytes::Bytes;

use super::{RawChunk, chunk_type};
use crate::builder::PacketBuilder;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::types::Tsn;

const FIXED_LEN: usize = 12;
/// Length of the fixed part of an NR-SACK, in bytes.
const NR_FIXED_LEN: usize = 16;
/// Size of a gap ack block, and of a duplicate TSN.
const ITEM_LEN: usize = 4;

/// A SACK chunk: what has arrived.
///
/// ```text
///  0               1               2               3
/// +---------------+---------------+---------------+---------------+
/// |   type = 3    |     flags     |            length             |
/// +---------------+---------------+---------------+---------------+
/// |                      cumulative TSN ack                       |
/// +---------------+---------------+---------------+---------------+
/// |          advertised receiver window credit (a_rwnd)           |
/// +---------------+---------------+---------------+---------------+
/// |   number of gap ack blocks    |   number of duplicate TSNs    |
/// +---------------+---------------+---------------+---------------+
/// |   gap ack block 1: start      |   gap ack block 1: end        |
/// +---------------+---------------+---------------+---------------+
/// | … more gap ack blocks                                         |
/// +---------------+---------------+---------------+---------------+
/// |                        duplicate TSN 1                        |
/// +---------------+---------------+---------------+---------------+
/// | … more duplicate TSNs                                         |
/// +---------------+---------------+---------------+---------------+
/// ```
///
/// An NR-SACK (type 16) tells apart what the receiver may still discard from what it will not: the
/// number of gap ack blocks is followed by that of *non-renegable* ones, and the number of
/// duplicate TSNs by two reserved bytes; the non-renegable blocks stand between the others and the
/// duplicates. A TSN is in a block of one of both kinds, or of both.
///
/// Blocks and duplicates stay in the received bytes and are read when iterated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sack {
    /// The last TSN before the first gap.
    pub cum_tsn_ack: Tsn,
    /// Receive buffer space left, in bytes.
    pub a_rwnd: u32,
    /// Chunk flags: zero in RFC 9260; the delayed ack of CMT counts packets in them.
    pub flags: u8,
    gap_ack_blocks: u16,
    /// 0 in a SACK.
    nr_gap_ack_blocks: u16,
    /// Gap ack blocks, non-renegable ones, duplicate TSNs: always a whole number of each.
    items: Bytes,
}

/// TSNs that arrived beyond the cumulative TSN ack point, as offsets from it, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GapAckBlock {
    /// Offset of the first TSN of the block; at least 2 in a valid SACK.
    pub start: u16,
    /// Offset of the last TSN of the block; not less than `start` in a valid SACK.
    pub end: u16,
}

impl Sack {
    /// A SACK that acknowledges cumulatively only, as SHUTDOWN does (§3.3.8).
    #[must_use]
    pub fn cumulative(cum_tsn_ack: Tsn, a_rwnd: u32) -> Self {
        Self {
            cum_tsn_ack,
            a_rwnd,
            flags: 0,
            gap_ack_blocks: 0,
            nr_gap_ack_blocks: 0,
            items: Bytes::new(),
        }
    }

    #[inline]
    pub(super) fn decode(raw: &RawChunk<'_>) -> Result<Self, DecodeError> {
        let [c0, c1, c2, c3, a0, a1, a2, a3, g0, g1, d0, d1] = *raw.fixed::<FIXED_LEN>()?;
        let gap_ack_blocks = u16::from_be_bytes([g0, g1]);
        let duplicate_tsns = u16::from_be_bytes([d0, d1]);
        let items = raw.value_from(FIXED_LEN);
        if items.len() != (usize::from(gap_ack_blocks) + usize::from(duplicate_tsns)) * ITEM_LEN {
            let length = raw.length;
            return Err(DecodeErrorKind::SackCounts { length, gap_ack_blocks, duplicate_tsns }
                .at(raw.offset));
        }
        Ok(Self {
            cum_tsn_ack: Tsn(u32::from_be_bytes([c0, c1, c2, c3])),
            a_rwnd: u32::from_be_bytes([a0, a1, a2, a3]),
            flags: raw.flags,
            gap_ack_blocks,
            nr_gap_ack_blocks: 0,
            items,
        })
    }

    pub(super) fn decode_nr(raw: &RawChunk<'_>) -> Result<Self, DecodeError> {
        let fixed = raw.fixed::<NR_FIXED_LEN>()?;
        let [c0, c1, c2, c3, a0, a1, a2, a3, g0, g1, n0, n1, d0, d1, _, _] = *fixed;
        let gap_ack_blocks = u16::from_be_bytes([g0, g1]);
        let nr_gap_ack_blocks = u16::from_be_bytes([n0, n1]);
        let duplicate_tsns = u16::from_be_bytes([d0, d1]);
        let items = raw.value_from(NR_FIXED_LEN);
        let counted = [gap_ack_blocks, nr_gap_ack_blocks, duplicate_tsns];
        if items.len() != counted.into_iter().map(usize::from).sum::<usize>() * ITEM_LEN {
            let length = raw.length;
            return Err(DecodeErrorKind::NrSackCounts {
                length,
                gap_ack_blocks,
                nr_gap_ack_blocks,
                duplicate_tsns,
            }
            .at(raw.offset));
        }
        Ok(Self {
            cum_tsn_ack: Tsn(u32::from_be_bytes([c0, c1, c2, c3])),
            a_rwnd: u32::from_be_bytes([a0, a1, a2, a3]),
            flags: raw.flags,
            gap_ack_blocks,
            nr_gap_ack_blocks,
            items,
        })
    }

    /// The gap ack blocks as received, in their order; see
    /// [`gap_ack_blocks_ascend`](Self::gap_ack_blocks_ascend).
    #[must_use]
    #[inline]
    pub fn gap_ack_blocks(&self) -> GapAckBlocks<'_> {
        GapAckBlocks(Items::new(&self.items[..self.gap_ack_blocks_len()]))
    }

    /// The non-renegable gap ack blocks as received, in their order: TSNs that the receiver will
    /// not discard. None in a SACK.
    #[must_use]
    #[inline]
    pub fn nr_gap_ack_blocks(&self) -> GapAckBlocks<'_> {
        GapAckBlocks(Items::new(&self.items[self.gap_ack_blocks_len()..self.blocks_len()]))
    }

    /// The TSNs that arrived again since the last SACK, once for each extra arrival.
    #[must_use]
    #[inline]
    pub fn duplicate_tsns(&self) -> DuplicateTsns<'_> {
        DuplicateTsns(Items::new(&self.items[self.blocks_len()..]))
    }

    /// True if every block is a range (`start` at least 1, `end` not before it) that begins beyond
    /// the end of the block before it. RFC 9260 §3.3.4 wants this of a sender; decoding does not
    /// check it.
    #[must_use]
    pub fn gap_ack_blocks_ascend(&self) -> bool {
        let mut last = 0;
        self.gap_ack_blocks().all(|GapAckBlock { start, end }| {
            let ascends = last < start && start <= end;
            last = end;
            ascends
        })
    }

    fn gap_ack_blocks_len(&self) -> usize {
        usize::from(self.gap_ack_blocks) * ITEM_LEN
    }

    /// Bytes of all blocks.
    fn blocks_len(&self) -> usize {
        self.gap_ack_blocks_len() + usize::from(self.nr_gap_ack_blocks) * ITEM_LEN
    }

    pub(super) fn push_nr(&self, packet: &mut PacketBuilder<'_>) -> bool {
        let counts =
            [self.gap_ack_blocks, self.nr_gap_ack_blocks, self.duplicate_tsns().len() as u16];
        let fixed = nr_fixed(self.cum_tsn_ack, self.a_rwnd, counts);
        packet.push_parts(chunk_type::NR_SACK, self.flags, fixed, &self.items)
    }

    pub(super) fn push(&self, packet: &mut PacketBuilder<'_>) -> bool {
        // Exactly what was decoded: `push_sack` would shorten a SACK that does not fit.
        let duplicate_tsns = self.duplicate_tsns().len() as u16;
        let fixed = fixed(self.cum_tsn_ack, self.a_rwnd, self.gap_ack_blocks, duplicate_tsns);
        packet.push_parts(chunk_type::SACK, self.flags, fixed, &self.items)
    }
}

impl PacketBuilder<'_> {
    /// Appends a SACK chunk with as many of `gaps` (start and end, see [`GapAckBlock`]) as fit,
    /// then as many of `dups`. Returns `false` only if not even a SACK without any fits.
    #[inline]
    pub fn push_sack(
        &mut self,
        cum_tsn_ack: Tsn,
        a_rwnd: u32,
        flags: u8,
        gaps: impl Iterator<Item = (u16, u16)>,
        dups: impl Iterator<Item = Tsn>,
    ) -> bool {
        self.push_with(chunk_type::SACK, flags, |out, max_len| {
            let start = out.len();
            out.extend_from_slice(&fixed(cum_tsn_ack, a_rwnd, 0, 0));
            // Both counts stay far below 65536: `max_len` is less than that, an item has 4 bytes.
            let mut room = max_len.saturating_sub(FIXED_LEN) / ITEM_LEN;
            let mut gap_count = 0u16;
            for (first, last) in gaps.take(room) {
                out.extend_from_slice(&first.to_be_bytes());
                out.extend_from_slice(&last.to_be_bytes());
                gap_count += 1;
            }
            room -= usize::from(gap_count);
            let mut dup_count = 0u16;
            for tsn in dups.take(room) {
                out.extend_from_slice(&tsn.0.to_be_bytes());
                dup_count += 1;
            }
            out[start + 8..start + 10].copy_from_slice(&gap_count.to_be_bytes());
            out[start + 10..start + 12].copy_from_slice(&dup_count.to_be_bytes());
        })
    }
}

impl PacketBuilder<'_> {
    /// Appends an NR-SACK chunk with as many of the non-renegable blocks `nr_gaps` (start and end,
    /// see [`GapAckBlock`]) as fit, then of `gaps`, then of `dups`. Returns `false` only if not
    /// even an NR-SACK without any fits.
    pub fn push_nr_sack(
        &mut self,
        cum_tsn_ack: Tsn,
        a_rwnd: u32,
        flags: u8,
        [gaps, nr_gaps]: [&[(u16, u16)]; 2],
        dups: impl Iterator<Item = Tsn>,
    ) -> bool {
        self.push_with(chunk_type::NR_SACK, flags, |out, max_len| {
            let start = out.len();
            // All counts stay far below 65536: `max_len` is less than that, an item has 4 bytes.
            let mut room = max_len.saturating_sub(NR_FIXED_LEN) / ITEM_LEN;
            let nr_gaps = &nr_gaps[..nr_gaps.len().min(room)];
            room -= nr_gaps.len();
            let gaps = &gaps[..gaps.len().min(room)];
            room -= gaps.len();
            let counts = [gaps.len() as u16, nr_gaps.len() as u16, 0];
            out.extend_from_slice(&nr_fixed(cum_tsn_ack, a_rwnd, counts));
            for (first, last) in gaps.iter().chain(nr_gaps) {
                out.extend_from_slice(&first.to_be_bytes());
                out.extend_from_slice(&last.to_be_bytes());
            }
            let mut dup_count = 0u16;
            for tsn in dups.take(room) {
                out.extend_from_slice(&tsn.0.to_be_bytes());
                dup_count += 1;
            }
            out[start + 12..start + 14].copy_from_slice(&dup_count.to_be_bytes());
        })
    }
}

/// `counts` are of gap ack blocks, non-renegable ones, and duplicate TSNs.
fn nr_fixed(cum_tsn_ack: Tsn, a_rwnd: u32, counts: [u16; 3]) -> [u8; NR_FIXED_LEN] {
    let mut fixed = [0; NR_FIXED_LEN];
    fixed[..4].copy_from_slice(&cum_tsn_ack.0.to_be_bytes());
    fixed[4..8].copy_from_slice(&a_rwnd.to_be_bytes());
    for (at, count) in counts.into_iter().enumerate() {
        fixed[8 + 2 * at..10 + 2 * at].copy_from_slice(&count.to_be_bytes());
    }
    fixed
}

fn fixed(cum_tsn_ack: Tsn, a_rwnd: u32, gaps: u16, dups: u16) -> [u8; FIXED_LEN] {
    let mut fixed = [0; FIXED_LEN];
    fixed[..4].copy_from_slice(&cum_tsn_ack.0.to_be_bytes());
    fixed[4..8].copy_from_slice(&a_rwnd.to_be_bytes());
    fixed[8..10].copy_from_slice(&gaps.to_be_bytes());
    fixed[10..].copy_from_slice(&dups.to_be_bytes());
    fixed
}

/// Four-byte items in a slice.
#[derive(Debug, Clone)]
struct Items<'a>(std::slice::Iter<'a, [u8; ITEM_LEN]>);

impl<'a> Items<'a> {
    #[inline]
    fn new(bytes: &'a [u8]) -> Self {
        Self(bytes.as_chunks().0.iter())
    }
}

/// The gap ack blocks of a [`Sack`].
#[derive(Debug, Clone)]
pub struct GapAckBlocks<'a>(Items<'a>);

impl Iterator for GapAckBlocks<'_> {
    type Item = GapAckBlock;

    #[inline]
    fn next(&mut self) -> Option<GapAckBlock> {
        let &[s0, s1, e0, e1] = self.0.0.next()?;
        Some(GapAckBlock { start: u16::from_be_bytes([s0, s1]), end: u16::from_be_bytes([e0, e1]) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.0.size_hint()
    }
}

impl ExactSizeIterator for GapAckBlocks<'_> {}

/// The duplicate TSNs of a [`Sack`].
#[derive(Debug, Clone)]
pub struct DuplicateTsns<'a>(Items<'a>);

impl Iterator for DuplicateTsns<'_> {
    type Item = Tsn;

    #[inline]
    fn next(&mut self) -> Option<Tsn> {
        Some(Tsn(u32::from_be_bytes(*self.0.0.next()?)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.0.size_hint()
    }
}

impl ExactSizeIterator for DuplicateTsns<'_> {}
