//! The view that loss recovery has of outstanding data.

use manypath_wire::Tsn;

use super::outstanding::{Outstanding, Sent, TsnState};
use crate::path::PathId;
use crate::policy::recovery::{Exit, Flight};

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
        let skip = after.map_or(0, |tsn| tsn.next().distance_from(self.base) as usize);
        let waits = |s: &&Sent| s.state == TsnState::Marked;
        self.ring.iter().skip(skip).find(waits).map(|s| s.path)
    }

    fn highest_sent_on(&self, path: PathId) -> (Option<Tsn>, Option<Tsn>) {
        let highest = |waits: bool| {
            let is_it = |s: &Sent| s.path == path && (s.state == TsnState::Marked) == waits;
            self.ring.iter().rposition(is_it).map(|at| self.base.add(at as u32))
        };
        (highest(true), highest(false))
    }
}
