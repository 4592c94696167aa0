//! Changes that are planned.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::ids::{End, LinkId, NatId};
use crate::packet::TooLong;
use crate::queue::Due;
use crate::spec::LinkChange;

/// Something that changes in the network.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// A link.
    Link(LinkId, LinkChange),
    /// The address under which the near end of a path is seen at the far end.
    Rebind(usize, SocketAddr),
    /// The address of a path's end goes.
    TakeAddress(usize, End),
    /// Another one comes, or one that nobody had before.
    GiveAddress(usize, End, Option<SocketAddr>),
    /// A NAT forgets its mappings.
    RebootNat(NatId),
    /// Nothing: a link's message reaches a node.
    Tell(TooLong),
}

/// The planned changes, by time and then in the order they were planned.
#[derive(Debug, Default)]
pub(crate) struct Schedule(BTreeMap<Due, Change>);

impl Schedule {
    pub(crate) fn add(&mut self, due: Due, change: Change) {
        self.0.insert(due, change);
    }

    pub(crate) fn next(&self) -> Option<Due> {
        self.0.first_key_value().map(|(due, _)| *due)
    }

    pub(crate) fn pop(&mut self) -> Option<Change> {
        self.0.pop_first().map(|(_, change)| change)
    }
}
