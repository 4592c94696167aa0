//! The state of sources of cross-traffic, and the packets of theirs that wait for a link.

use crate::cross::Source;
use crate::ids::{LinkId, RouteId, SourceId};
use crate::queue::{Due, Slot};

#[derive(Debug)]
pub(super) struct SourceState {
    pub(super) source: Source,
    pub(super) way: Way,
}

/// How a source's packets travel.
#[derive(Copy, Clone, Debug)]
pub(super) enum Way {
    /// They end on the only link that they share with others, and wait in its [`Feed`].
    Feed,
    /// They cross more links: on the first they arrive as events of this slot, then they take the
    /// route.
    Route { slot: Slot, first: LinkId, route: RouteId },
}

/// The cross-traffic that ends on a link. It shows only in the link's queue, so it enters when the
/// queue is read: before a packet enters, and before a driver gets to act.
#[derive(Debug, Default)]
pub(super) struct Feed {
    /// When the next packet of each source arrives.
    pub(super) arrivals: Vec<(Due, SourceId)>,
    /// Which of them is the first; 0 if there are none.
    pub(super) first: usize,
}

impl Feed {
    /// The first of the next packets.
    #[inline]
    pub(super) fn first(&self) -> Option<Due> {
        self.arrivals.get(self.first).map(|&(due, _)| due)
    }

    pub(super) fn add(&mut self, due: Due, source: SourceId) {
        self.arrivals.push((due, source));
        self.find_first();
    }

    /// The first has arrived; says when the next of its source will, if it will.
    #[inline]
    pub(super) fn replace_first(&mut self, due: Option<Due>) {
        match due {
            Some(due) => self.arrivals[self.first].0 = due,
            None => drop(self.arrivals.swap_remove(self.first)),
        }
        self.find_first();
    }

    #[inline]
    fn find_first(&mut self) {
        self.first = 0;
        let Some(&(mut least, _)) = self.arrivals.first() else { return };
        for (index, &(due, _)) in self.arrivals.iter().enumerate().skip(1) {
            if due.at() < least.at() || (due.at() == least.at() && due < least) {
                (self.first, least) = (index, due);
            }
        }
    }
}
