//! The room for DATA chunks, within [`Limits`]. The receiver has promised to keep some of them.

use manypath_wire::{DATA_HEADER_LEN, I_DATA_HEADER_LEN, Tsn};

use crate::rx::tsn_tracker::MAX_TSN_AHEAD;

/// Bounds on what the receiver holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Limits {
    /// User data held, in bytes, at least that of one DATA chunk.
    pub(crate) receive_buffer: usize,
    /// DATA chunks held, at least 2: each costs about 150 bytes beyond its user data, and one of
    /// I-DATA about twice as much.
    pub(crate) max_chunks: usize,
    /// User data of one incomplete message, in bytes, from which it is delivered in parts. Less
    /// than `receive_buffer`, or a message longer than that could never be delivered.
    pub(crate) partial_delivery_point: usize,
}

impl Limits {
    /// The limits that suit a receive buffer of `bytes` bytes: partial delivery from half of it, a
    /// chunk for every 64 bytes.
    pub(crate) fn for_receive_buffer(bytes: usize) -> Limits {
        Limits {
            receive_buffer: bytes,
            max_chunks: (bytes / 64).max(64),
            partial_delivery_point: bytes / 2,
        }
    }
}

/// DATA chunks and their user data in bytes.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Amount {
    pub(super) chunks: usize,
    pub(super) bytes: usize,
}

impl Amount {
    pub(super) fn of_chunk(bytes: usize) -> Amount {
        Amount { chunks: 1, bytes }
    }

    pub(super) fn add(&mut self, other: Amount) {
        self.chunks += other.chunks;
        self.bytes += other.bytes;
    }

    pub(super) fn subtract(&mut self, other: Amount) {
        self.chunks -= other.chunks;
        self.bytes -= other.bytes;
    }
}

/// The chunks that the receiver holds, and their limits.
#[derive(Copy, Clone, Debug)]
pub(super) struct Room {
    pub(super) limits: Limits,
    /// Room that a chunk takes beyond its user data, in bytes.
    chunk_overhead: usize,
    /// Chunks held: in reassembly, waiting for their turn, or ready.
    pub(super) held: Amount,
    /// The chunks of `held` that are ready to be popped.
    pub(super) ready: Amount,
    /// The largest user data of a chunk so far, in bytes.
    pub(super) largest: usize,
    /// Up to this TSN no chunk is discarded, as [`keep`](Room::keep) promised.
    kept: Option<Tsn>,
    /// True if the current packet may exceed the limits, by [`admit_next`](Room::admit_next).
    packet_may_exceed: bool,
}

impl Room {
    pub(super) fn new(limits: Limits) -> Room {
        Room {
            limits,
            chunk_overhead: 0,
            held: Amount::default(),
            ready: Amount::default(),
            largest: 0,
            kept: None,
            packet_may_exceed: false,
        }
    }

    /// Lets the header of each DATA chunk take room, too.
    pub(super) fn count_headers(&mut self, counts: bool) {
        self.chunk_overhead = if counts { DATA_HEADER_LEN } else { 0 };
    }

    /// Counts chunks as I-DATA.
    pub(super) fn interleave(&mut self) {
        if self.chunk_overhead > 0 {
            self.chunk_overhead = I_DATA_HEADER_LEN;
        }
    }

    pub(super) fn begin_packet(&mut self) {
        self.packet_may_exceed = false;
    }

    /// User data that may still come in, in bytes.
    pub(super) fn available(&self) -> usize {
        if self.held.chunks < self.limits.max_chunks {
            self.limits.receive_buffer.saturating_sub(self.size(self.held))
        } else {
            0
        }
    }

    /// True if a chunk with `len` bytes of user data fits within the limits.
    pub(super) fn has_room(&self, len: usize) -> bool {
        len + self.chunk_overhead <= self.available() || self.held.chunks == 0
    }

    /// The TSN above which chunks may be discarded for one with this TSN.
    pub(super) fn floor(&self, tsn: Tsn) -> Tsn {
        self.kept.filter(|kept| kept.gt(tsn)).unwrap_or(tsn)
    }

    /// Promises to keep all chunks up to a TSN, and returns that TSN. `begun` is the beginning of a
    /// message that ends at the cumulative TSN.
    ///
    /// Everything up to the TSN fits the limits, with the chunks that are ready and those that are
    /// missing below it. That stays true while more arrives, so no chunk up to it is ever discarded
    /// for another. Chunks larger than any before are the exception: they are refused, and
    /// [`admit_next`](Room::admit_next) lets the transfer go on.
    pub(super) fn keep(&mut self, cum: Tsn, begun: Amount) -> Tsn {
        let mut amount = self.ready;
        amount.add(begun);
        let by_bytes = self.limits.receive_buffer.saturating_sub(self.size(amount))
            / (self.largest + self.chunk_overhead).max(1);
        let slots = by_bytes.min(self.limits.max_chunks.saturating_sub(amount.chunks));
        let upto = cum.add(u32::try_from(slots).unwrap_or(u32::MAX).min(MAX_TSN_AHEAD));
        let kept = self.floor(upto);
        self.kept = Some(kept);
        kept
    }

    /// Admits the next chunk in order beyond the limits, if promises fill the buffers: it releases
    /// some of them. The limits are exceeded by one packet at most.
    pub(super) fn admit_next(&mut self, cum: Tsn) -> bool {
        let promised = self.kept.is_some_and(|kept| kept.gt(cum));
        self.packet_may_exceed = promised && !self.is_exceeded();
        self.packet_may_exceed
    }

    /// True if the current packet began with a chunk that was admitted beyond the limits. Its other
    /// chunks are admitted too, because the peer may send only one packet until its next timeout.
    pub(super) fn packet_may_exceed(&self) -> bool {
        self.packet_may_exceed
    }

    fn is_exceeded(&self) -> bool {
        self.size(self.held) > self.limits.receive_buffer
            || self.held.chunks > self.limits.max_chunks
    }

    /// Room that these chunks take in the receive buffer, in bytes.
    fn size(&self, amount: Amount) -> usize {
        amount.bytes + self.chunk_overhead * amount.chunks
    }
}
