//! Transmissions on a path beside those that the records of chunks speak of.

use std::collections::{BTreeMap, BTreeSet};

use manypath_wire::Tsn;

use crate::time::Instant;

/// The state of a transmission's chunk, until it is settled.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It is not acknowledged.
    Live,
    /// It arrived, by this transmission or the other one.
    Either,
    /// It arrived by the other one.
    Lost,
}

/// A transmission of a chunk that is not the one that the chunk's own record speaks of.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Transmission {
    pub(crate) tsn: Tsn,
    /// In the order of all transmissions of the association.
    pub(crate) order: u64,
    pub(crate) sent_at: Instant,
    /// The size that counts against cwnd.
    pub(crate) size: usize,
    pub(crate) claim: Claim,
    pub(crate) missing_reports: u8,
}

/// The unsettled transmissions of a path. Each is found, added and removed in logarithmic time: a
/// SACK may report thousands of duplicates, whatever was sent.
#[derive(Debug, Default)]
pub(crate) struct SecondTransmissions {
    /// By their order.
    pub(crate) by_order: BTreeMap<u64, Transmission>,
    /// TSN and order of each.
    pub(crate) by_tsn: BTreeSet<(u32, u64)>,
    /// The last transmission of the association when a chunk with two transmissions last measured
    /// the path's RTT: one sent before does not measure it again (RFC 9260 §6.3.1, C4).
    pub(crate) timed_up_to: Option<u64>,
}

impl SecondTransmissions {
    pub(crate) fn len(&self) -> usize {
        self.by_order.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_order.is_empty()
    }

    /// Bytes that count in the path's flight size.
    pub(crate) fn bytes(&self) -> usize {
        self.by_order.values().map(|c| c.size).sum()
    }

    /// Order and time of the earliest.
    pub(crate) fn earliest(&self) -> Option<(u64, Instant)> {
        self.by_order.first_key_value().map(|(order, c)| (*order, c.sent_at))
    }

    /// Order of the latest.
    pub(crate) fn latest(&self) -> Option<u64> {
        self.by_order.last_key_value().map(|(order, _)| *order)
    }

    /// The order of the earliest transmission of a chunk that is accepted.
    pub(crate) fn find(&self, tsn: Tsn, accepts: impl Fn(&Transmission) -> bool) -> Option<u64> {
        let mut orders = self.by_tsn.range((tsn.0, 0)..=(tsn.0, u64::MAX)).map(|(_, order)| *order);
        orders.find(|order| self.by_order.get(order).is_some_and(&accepts))
    }

    /// The order of the transmission of a chunk that is not acknowledged.
    pub(crate) fn find_live(&self, tsn: Tsn) -> Option<u64> {
        self.find(tsn, |c| c.claim == Claim::Live)
    }

    /// That transmission.
    pub(crate) fn live(&self, tsn: Tsn) -> Option<&Transmission> {
        self.by_order.get(&self.find_live(tsn)?)
    }

    pub(crate) fn insert(&mut self, sent: Transmission) {
        self.by_tsn.insert((sent.tsn.0, sent.order));
        self.by_order.insert(sent.order, sent);
    }

    pub(crate) fn remove(&mut self, order: u64) -> Option<Transmission> {
        let sent = self.by_order.remove(&order)?;
        self.by_tsn.remove(&(sent.tsn.0, order));
        Some(sent)
    }
}
