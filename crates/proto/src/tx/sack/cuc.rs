//! The left edges of paths, by which cwnd grows with CMT: CUC and CUCv2 (CMT paper, Figs. 3 and 8).

use manypath_wire::Tsn;

use crate::tx::outstanding::ring::{Ring, TsnState};
use crate::tx::outstanding::virtual_queue::VirtualQueue;
use crate::view::PathId;

/// The pseudo-cumacks of one path.
#[derive(Debug, Default)]
pub(crate) struct PseudoCumacks {
    /// CUCv2: of chunks sent once and of retransmitted ones; `None` if they are to be found. CUC
    /// has the first of them only.
    edges: [Option<Tsn>; 2],
}

impl PseudoCumacks {
    /// They are to be found again.
    pub(crate) fn forget(&mut self) {
        self.edges = [None; 2];
    }

    /// Finds the one of CUC, if it is to be found: the lowest TSN of the path that is not
    /// acknowledged, also if it waits to be sent again. It stays until it is acknowledged on that
    /// path, or the cumulative ack reaches the path. If it is sent again on another one, that is
    /// what CUCv2 mends.
    pub(super) fn find_one(&mut self, path: PathId, ring: &Ring) {
        if self.edges[0].is_none() {
            self.edges[0] = ring.lowest(|s| s.path == path && s.state != TsnState::Acked);
        }
    }

    /// Finds those of CUCv2 that are to be found: the first chunk in flight that was sent once, and
    /// the first retransmitted one. Until one is acknowledged it stays where it is, even if the
    /// chunk is retransmitted on the same path: the window does not grow past a loss.
    /// What was `skipped` to test the peer's acknowledgements is no such chunk.
    pub(crate) fn find(&mut self, queue: &VirtualQueue, ring: &Ring, skipped: Option<Tsn>) {
        if self.edges.iter().all(Option::is_some) {
            return;
        }
        for (tsn, sent) in queue.forwards(ring).filter(|(tsn, _)| Some(*tsn) != skipped) {
            self.edges[usize::from(sent.transmissions > 1)].get_or_insert(tsn);
            if sent.transmissions <= 1 {
                break;
            }
        }
    }

    /// True if a TSN acknowledged on the path is one of them, which must then be found again.
    pub(super) fn passes(&mut self, tsn: Tsn) -> bool {
        let mut passes = false;
        for edge in &mut self.edges {
            if *edge == Some(tsn) {
                *edge = None;
                passes = true;
            }
        }
        passes
    }
}
