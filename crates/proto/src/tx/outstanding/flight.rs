//! The view that loss recovery has of outstanding data.

use manypath_wire::Tsn;

use super::ring::{Sent, TsnState};
use crate::policy::recovery::{Exit, Flight};
use crate::tx::outstanding::Outstanding;
use crate::view::PathId;

impl Flight for Outstanding {
    fn cum_tsn_ack_point(&self) -> Tsn {
        Outstanding::cum_tsn_ack_point(self)
    }

    fn exit(&self) -> Exit {
        Exit { tsn: self.highest_tsn(), order: self.last_order() }
    }

    fn earliest_order(&self, path: PathId) -> Option<u64> {
        Outstanding::earliest_order(self, path)
    }

    fn lowest_waiting_beyond(&self, after: Option<Tsn>) -> Option<PathId> {
        let after = after.unwrap_or(self.ring.base().prev());
        self.ring.above(after).find(|s| s.state == TsnState::Marked).map(|s| s.path)
    }

    fn highest_sent_on(&self, path: PathId) -> (Option<Tsn>, Option<Tsn>) {
        let highest = |waits: bool| {
            let is_it = |s: &Sent| s.path == path && (s.state == TsnState::Marked) == waits;
            self.ring.highest(is_it)
        };
        (highest(true), highest(false))
    }
}
