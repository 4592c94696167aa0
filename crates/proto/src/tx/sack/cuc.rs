//! The left edges of paths, by which cwnd grows with CMT: CUC and CUCv2 (CMT paper, Figs. 3 and 8).

use manypath_wire::Tsn;

use crate::tx::outstanding::ring::Ring;
use crate::tx::outstanding::virtual_queue::VirtualQueue;
use crate::view::PathId;

/// The pseudo-cumacks of one path.
#[derive(Debug, Default)]
pub(crate) struct PseudoCumacks {
    /// CUCv2: the pseudo-cumacks of chunks sent once and of retransmitted chunks. CUC uses only the
    /// first. `None` means that it must be found again.
    edges: [Option<Tsn>; 2],
}

impl PseudoCumacks {
    /// Lets all pseudo-cumacks be found again.
    pub(crate) fn forget(&mut self) {
        self.edges = [None; 2];
    }

    /// Finds the pseudo-cumack of CUC, if it is unknown: the lowest TSN last sent on the path and
    /// not acknowledged, waiting for retransmission or not. It stays until it is acknowledged on
    /// that path or the cumulative ack reaches the path. A retransmission on another path does not
    /// end it; CUCv2 corrects that.
    pub(super) fn find_one(&mut self, path: PathId, ring: &Ring) {
        if self.edges[0].is_none() {
            self.edges[0] = ring.lowest(|s| s.path == path && s.is_awaited());
        }
    }

    /// Finds the unknown pseudo-cumacks of CUCv2: the first chunk in flight that was sent once, and
    /// the first retransmitted one. Each stays until it is acknowledged, even if the chunk is
    /// retransmitted on the same path, so that the window does not grow past a loss. A TSN
    /// `skipped` to test the peer's acknowledgements cannot be a pseudo-cumack.
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

    /// True if a TSN acknowledged on the path is a pseudo-cumack, which is then found again.
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
