//! Asking for a SACK without delay by the I bit (RFC 9260 §6.1, RFC 7053 §4).

use manypath_wire::{DataFlags, Tsn};

use crate::assoc::Association;
use crate::path::Path;

impl Association {
    /// The I bit for the new chunk with this TSN, or no flag. It is set if only a SACK lets more
    /// data leave: the chunk fills the windows while data waits, or probes a closed window.
    ///
    /// There is one such chunk in flight at a time. Its SACK comes within a round trip and
    /// acknowledges what came before, so more of them would only cost SACKs.
    #[inline]
    pub(super) fn asks_for_sack(&mut self, tsn: Tsn, is_probe: bool) -> DataFlags {
        if self.config.immediate_sacks && (is_probe || self.waits_for_sack()) {
            self.sack_asked = Some(tsn);
            DataFlags::IMMEDIATE
        } else {
            DataFlags::default()
        }
    }

    /// The I bit for a chunk that is sent again, or no flag. It is set if nothing else is in flight
    /// that would draw a SACK.
    pub(super) fn asks_again_for_sack(&self) -> DataFlags {
        let is_alone = || self.paths.ids().all(|id| self.out.chunks_in_flight(id) == 0);
        if self.config.immediate_sacks && is_alone() {
            DataFlags::IMMEDIATE
        } else {
            DataFlags::default()
        }
    }

    /// True if new data waits, nothing but a SACK lets it leave, and none was asked for.
    #[inline(never)]
    fn waits_for_sack(&self) -> bool {
        if self.sack_asked.is_some_and(|asked| self.out.get(asked).is_some()) {
            return false;
        }
        let Some(length) = self.queue.next_len(self.fragmentation_point()) else { return false };
        let is_full = |p: &Path| p.flow.usable_cwnd() <= self.out.counted(p.id);
        length > self.peer_rwnd() || self.paths.iter().filter(|p| p.role.usable).all(is_full)
    }
}
