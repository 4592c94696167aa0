//! The pipe of a path (mTCP paper, section 3.1.2): the bytes in flight there and, with
//! `pipe_accounting`, the bytes lost there and not acknowledged yet.
//!
//! A lost chunk leaves the pipe when it is acknowledged, whichever path carried the retransmission,
//! or when the path times out. So T3-rtx runs while the pipe holds anything: with nothing in
//! flight, only the timeout makes room.

use manypath_wire::Tsn;

use super::ring::{Sent, TsnState};
use crate::config::{Config, Cuc};
use crate::path::InUse;
use crate::tx::outstanding::Outstanding;
use crate::view::PathId;

/// The bit of a path; `max_paths` is at most 32.
fn bit_of(path: PathId) -> u32 {
    1u32.checked_shl(path.0.into()).unwrap_or(0)
}

impl Outstanding {
    /// Sets the bytes that count against congestion windows, by `pipe_accounting` and
    /// `combined_window`.
    pub(crate) fn counting(mut self, config: &Config) -> Outstanding {
        self.counts_lost = config.pipe_accounting;
        self.combines = config.combined_window;
        self.edges_stay = config.cuc == Cuc::V1;
        self
    }

    /// The outstanding bytes of a path.
    pub(crate) fn in_use(&self, path: PathId) -> InUse {
        let (flight_size, pipe) = (self.flight_size(path), self.pipe(path));
        InUse { flight_size, pipe, counted: self.counted(path) }
    }

    /// Bytes that count against the congestion window of a path: its pipe, or with
    /// `combined_window` the pipes of all paths.
    pub(crate) fn counted(&self, path: PathId) -> usize {
        if self.combines { self.pipe_of_all() } else { self.pipe(path) }
    }

    #[cold] // mostly never called: its callers must stay small
    fn pipe_of_all(&self) -> usize {
        (0..self.queues.len()).map(|i| self.pipe(PathId(i as u8))).sum()
    }

    /// Bytes in flight on a path, and with `pipe_accounting` those lost there that are not
    /// acknowledged yet.
    pub(crate) fn pipe(&self, path: PathId) -> usize {
        let queue = &self.queues[path.index()];
        queue.flight.flight_size() + queue.lost_bytes
    }

    /// Takes note that a path lost a transmission, before the chunk is marked (mTCP paper, section
    /// 3.1.2).
    pub(crate) fn count_lost(&mut self, tsn: Tsn) {
        if !self.counts_lost {
            return;
        }
        let Some(sent) = self.get_mut(tsn) else { return };
        let (bit, path, size) = (bit_of(sent.path), sent.path, sent.size());
        // MFR alone can find a chunk lost twice on one path without a timeout. The chunk counts
        // once.
        if sent.lost_on & bit == 0 {
            sent.lost_on |= bit;
            self.queues[path.index()].lost_bytes += size;
        }
    }

    /// Takes an acknowledged chunk out of the pipes of all paths that lost a transmission of it.
    pub(crate) fn settle_lost(&mut self, tsn: Tsn) {
        let Some(sent) = self.get_mut(tsn) else { return };
        let (paths, size) = (std::mem::take(&mut sent.lost_on), sent.size());
        if paths != 0 {
            for (i, queue) in self.queues.iter_mut().enumerate() {
                queue.lost_bytes -= if paths & bit_of(PathId(i as u8)) != 0 { size } else { 0 };
            }
        }
    }

    /// Empties the lost part of a path's pipe after a timeout.
    pub(crate) fn forget_lost(&mut self, path: PathId) {
        if std::mem::take(&mut self.queues[path.index()].lost_bytes) > 0 {
            self.ring.iter_mut().for_each(|sent| sent.lost_on &= !bit_of(path));
        }
    }

    /// True if T3-rtx of a path has anything to watch: chunks in flight, or lost ones that fill its
    /// pipe.
    pub(crate) fn needs_t3(&self, path: PathId) -> bool {
        self.chunks_in_flight(path) > 0 || self.queues[path.index()].lost_bytes > 0
    }

    /// True if a path has nothing in flight, but a lost chunk that waits for retransmission still
    /// fills its pipe: no acknowledgement will make room for the chunk.
    pub(crate) fn is_pipe_lost(&self, path: PathId) -> bool {
        let waits = |s: &Sent| s.state == TsnState::Marked && s.lost_on & bit_of(path) != 0;
        let is_lost = self.queues[path.index()].lost_bytes > 0 && self.chunks_in_flight(path) == 0;
        is_lost && self.ring.iter().any(waits)
    }

    /// Checks what must always hold of the pipe of a path.
    pub(crate) fn check_pipe(&self, path: PathId) {
        let is_lost = |s: &&Sent| s.lost_on & bit_of(path) != 0;
        let lost: usize = self.ring.iter().filter(is_lost).map(Sent::size).sum();
        assert_eq!(self.queues[path.index()].lost_bytes, lost, "what {path} lost");
    }
}
