//! The records of outstanding chunks, by TSN.

use std::collections::VecDeque;

use bytes::Bytes;
use manypath_wire::{DataFlags, Mid, StreamId, Tsn};

use crate::policy::rtx::LossCause;
use crate::sizes::{self, DataKind};
use crate::time::Instant;
use crate::tx::Fragment;
use crate::tx::sack::doubts::Loss;
use crate::view::PathId;

/// Where an outstanding TSN stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum TsnState {
    /// On its way; counts in the flight size of its path.
    InFlight,
    /// Taken for lost; waits to be retransmitted.
    Marked,
    /// Acknowledged by a gap ack block; kept, because the receiver may renege (RFC 9260 §6.2).
    Acked,
    /// Given up: neither in flight nor sent again (RFC 3758).
    Abandoned,
}

/// One outstanding chunk of user data.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) payload: Bytes,
    /// As in [`Fragment`](crate::tx::Fragment).
    pub(crate) ppid_or_fsn: u32,
    pub(crate) mid: Mid,
    pub(crate) stream: StreamId,
    pub(crate) flags: DataFlags,
    pub(crate) kind: DataKind,
    pub(crate) state: TsnState,
    /// The path of the last transmission.
    pub(crate) path: PathId,
    /// Missing reports since the last transmission (RFC 9260 §7.2.4).
    pub(crate) missing_reports: u8,
    /// Fast retransmitted once already; from then on only T3-rtx retransmits it (§7.2.4, point 5).
    pub(crate) fast_retransmitted: bool,
    /// The message may be given up before it is acknowledged.
    pub(crate) is_limited: bool,
    /// The message was given up: the chunk is not sent again, whatever its state.
    pub(crate) is_abandoned: bool,
    /// The last of its transmissions that was taken for lost.
    pub(crate) loss: Option<Loss>,
    /// Why it was last taken for lost.
    pub(crate) lost_by: LossCause,
    /// MFR: the highest TSN sent when missing reports last made it lost (retransmission policies
    /// paper, section 4.3).
    pub(crate) mfr_after: Option<Tsn>,
    /// Another path on which it is in flight, too.
    pub(crate) also_on: Option<PathId>,
    /// How often it was sent.
    pub(crate) transmissions: u16,
    /// With `pmtu_discovery`: bytes of the IP packet that carried it last.
    pub(crate) packet_len: u16,
    /// When it was last sent.
    pub(crate) sent_at: Instant,
    /// Numbers all transmissions of the association in their order.
    pub(crate) order: u64,
    /// With `pipe_accounting`: one bit for each path that lost a transmission of this chunk which
    /// still counts in the path's pipe.
    pub(crate) lost_on: u32,
    /// While it is in flight: the chunks sent before and after it on the same path.
    pub(crate) prev: Option<Tsn>,
    pub(crate) next: Option<Tsn>,
}

impl Sent {
    /// A chunk that is sent for the first time; the caller numbers the transmission.
    #[inline]
    pub(super) fn new(f: Fragment, path: PathId) -> Sent {
        Sent {
            payload: f.payload,
            ppid_or_fsn: f.ppid_or_fsn,
            mid: f.mid,
            stream: f.stream,
            flags: f.flags,
            kind: f.kind,
            state: TsnState::InFlight,
            path,
            missing_reports: 0,
            fast_retransmitted: false,
            is_limited: false,
            is_abandoned: false,
            loss: None,
            lost_by: LossCause::Timeout,
            mfr_after: None,
            also_on: None,
            transmissions: 1,
            packet_len: 0,
            sent_at: Instant::ZERO,
            order: 0,
            lost_on: 0,
            prev: None,
            next: None,
        }
    }

    /// An acknowledgement is awaited: it is in flight, or waits for retransmission.
    pub(crate) fn is_awaited(&self) -> bool {
        matches!(self.state, TsnState::InFlight | TsnState::Marked)
    }

    /// The size that counts against cwnd: the chunk with its header and padding (RFC 9260
    /// §7.2).
    pub(crate) fn size(&self) -> usize {
        sizes::data_chunk(self.kind, self.payload.len())
    }
}

/// The records of all outstanding chunks. TSNs are consecutive, so the place of a record is the
/// distance of its TSN from the first.
#[derive(Debug)]
pub(crate) struct Ring {
    /// `cum_tsn_ack_point + 1`, the TSN of the first record.
    base: Tsn,
    chunks: VecDeque<Sent>,
}

impl Ring {
    pub(crate) fn new(initial_tsn: Tsn) -> Ring {
        Ring { base: initial_tsn, chunks: VecDeque::new() }
    }

    /// `cum_tsn_ack_point + 1`.
    pub(crate) fn base(&self) -> Tsn {
        self.base
    }

    /// The TSN that the next new chunk gets.
    pub(crate) fn next_tsn(&self) -> Tsn {
        self.base.add(self.chunks.len() as u32)
    }

    pub(crate) fn len(&self) -> usize {
        self.chunks.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub(crate) fn get(&self, tsn: Tsn) -> Option<&Sent> {
        self.chunks.get(tsn.distance_from(self.base) as usize)
    }

    pub(crate) fn get_mut(&mut self, tsn: Tsn) -> Option<&mut Sent> {
        self.chunks.get_mut(tsn.distance_from(self.base) as usize)
    }

    /// Adds a new chunk, with [`next_tsn`](Self::next_tsn).
    pub(crate) fn push(&mut self, sent: Sent) {
        self.chunks.push_back(sent);
    }

    /// The chunk with the lowest TSN.
    pub(crate) fn first(&self) -> Option<&Sent> {
        self.chunks.front()
    }

    /// Removes the chunk with the lowest TSN: the cumulative TSN ack point passes it.
    pub(crate) fn pop_first(&mut self) -> Option<Sent> {
        let sent = self.chunks.pop_front()?;
        self.base = self.base.next();
        Some(sent)
    }

    /// The chunks, lowest TSN first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Sent> + '_ {
        self.chunks.iter()
    }

    /// The chunks, lowest TSN first, to change them.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Sent> + '_ {
        self.chunks.iter_mut()
    }

    /// The chunks above a TSN, lowest TSN first.
    pub(crate) fn above(&self, tsn: Tsn) -> impl Iterator<Item = &Sent> + '_ {
        self.chunks.iter().skip(tsn.next().distance_from(self.base) as usize)
    }

    /// The lowest TSN of a chunk that `is_it` accepts.
    pub(crate) fn lowest(&self, is_it: impl Fn(&Sent) -> bool) -> Option<Tsn> {
        Some(self.base.add(self.chunks.iter().position(is_it)? as u32))
    }

    /// The highest TSN of a chunk that `is_it` accepts.
    pub(crate) fn highest(&self, is_it: impl Fn(&Sent) -> bool) -> Option<Tsn> {
        Some(self.base.add(self.chunks.iter().rposition(is_it)? as u32))
    }
}
