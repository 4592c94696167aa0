//! Chunks that a receiver promises to keep (NR-SACK): the sender may drop their payload.

use manypath_wire::Tsn;

use super::digest::SackDigest;
use crate::tx::outstanding::Outstanding;
use crate::tx::outstanding::ring::{Sent, TsnState};

impl Outstanding {
    /// Releases the payload of chunks that an NR-SACK promises to keep.
    #[cold] // mostly never called: its caller must stay small
    pub(super) fn release_kept(&mut self, digest: &mut SackDigest) {
        digest.kept.remove_up_to(self.cum_tsn_ack_point());
        let mut fresh = std::mem::take(&mut digest.fresh);
        digest.kept.difference(&self.kept, &mut fresh);
        for range in &fresh {
            let mut tsn = range.first;
            while tsn.le(range.last) {
                digest.released += self.release(tsn);
                tsn = tsn.next();
            }
        }
        digest.fresh = fresh;
        self.kept.union_with(&digest.kept, &mut digest.scratch);
    }

    /// Releases the payload of a gap-acknowledged chunk that the receiver promised to keep. Returns
    /// its length.
    fn release(&mut self, tsn: Tsn) -> usize {
        let Some(sent) = self.get_mut(tsn).filter(|s| s.state == TsnState::Acked) else { return 0 };
        let len = std::mem::take(&mut sent.payload).len();
        self.user_bytes -= len;
        len
    }

    /// Checks what must always hold of the promised TSNs.
    pub(crate) fn check_kept(&self) {
        let mut kept = self
            .kept
            .iter()
            .flat_map(|r| (0..=r.last.distance_from(r.first)).map(move |i| r.first.add(i)));
        let is_released = |s: &Sent| s.state == TsnState::Acked && s.payload.is_empty();
        assert!(
            kept.all(|t| self.get(t).is_some_and(is_released)),
            "non-renegable TSNs are released"
        );
    }
}
