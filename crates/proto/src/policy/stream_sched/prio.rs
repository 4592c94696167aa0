//! Strict priorities (RFC 8260 §3.4).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use manypath_wire::StreamId;

use super::{StreamScheduler, Turn};

/// Place in the order: the greatest priority is first; of equal ones, the stream that waits
/// longest.
type Place = (Reverse<u16>, u64);

/// The stream of the greatest priority sends; those of equal priority take turns, a message each,
/// or with message interleaving a fragment each. A stream can keep all below it from sending.
#[derive(Debug, Default)]
pub struct Prio {
    by_place: BTreeMap<Place, StreamId>,
    places: BTreeMap<StreamId, Place>,
    /// Number of entries so far.
    entries: u64,
}

impl Prio {
    fn remove(&mut self, stream: StreamId) -> Option<Place> {
        let place = self.places.remove(&stream)?;
        self.by_place.remove(&place);
        Some(place)
    }
}

impl StreamScheduler for Prio {
    fn enter(&mut self, stream: StreamId, priority: u16) {
        let place = (Reverse(priority), self.entries);
        self.entries += 1;
        self.by_place.insert(place, stream);
        self.places.insert(stream, place);
    }

    fn set_priority(&mut self, stream: StreamId, priority: u16) {
        if self.remove(stream).is_some() {
            self.enter(stream, priority);
        }
    }

    fn next(&self) -> Option<StreamId> {
        self.by_place.first_key_value().map(|(_, stream)| *stream)
    }

    fn sent(&mut self, turn: &Turn) {
        if turn.may_change
            && let Some((Reverse(priority), _)) = self.remove(turn.stream)
            && !turn.is_empty
        {
            self.enter(turn.stream, priority);
        }
    }
}
