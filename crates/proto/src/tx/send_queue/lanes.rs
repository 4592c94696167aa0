//! A queue for each stream, and a scheduler that chooses among them.

use std::collections::{BTreeMap, VecDeque};

use manypath_wire::StreamId;

use super::Queued;
use crate::policy::stream_sched::{DEFAULT_PRIORITY, StreamScheduler, Turn};

/// Messages by stream. Streams with nothing to send cost nothing.
#[derive(Debug)]
pub(super) struct Lanes {
    scheduler: Box<dyn StreamScheduler>,
    /// The queues that hold messages; no queue in the map is empty.
    pub(super) lanes: BTreeMap<StreamId, VecDeque<Queued>>,
    /// Priorities that differ from the default.
    priorities: BTreeMap<StreamId, u16>,
    /// The stream of the next fragment.
    head: Option<StreamId>,
    /// Without interleaving: the stream whose message must be finished first.
    begun: Option<StreamId>,
}

impl Lanes {
    pub(super) fn new(scheduler: Box<dyn StreamScheduler>) -> Lanes {
        let (lanes, priorities) = (BTreeMap::new(), BTreeMap::new());
        Lanes { scheduler, lanes, priorities, head: None, begun: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    /// Messages, in no particular order.
    pub(super) fn messages(&self) -> impl Iterator<Item = &Queued> {
        self.lanes.values().flatten()
    }

    pub(super) fn push(&mut self, queued: Queued) {
        let stream = queued.labels.stream;
        let lane = self.lanes.entry(stream).or_default();
        lane.push_back(queued);
        if lane.len() == 1 {
            let priority = self.priorities.get(&stream).copied().unwrap_or(DEFAULT_PRIORITY);
            self.scheduler.enter(stream, priority);
            self.find_head();
        }
    }

    pub(super) fn set_priority(&mut self, stream: StreamId, priority: u16) {
        match priority {
            DEFAULT_PRIORITY => self.priorities.remove(&stream),
            _ => self.priorities.insert(stream, priority),
        };
        if self.lanes.contains_key(&stream) {
            self.scheduler.set_priority(stream, priority);
            self.find_head();
        }
    }

    /// Takes over the priorities of the streams of another association.
    pub(super) fn take_priorities(&mut self, other: &mut Lanes) {
        for (stream, priority) in std::mem::take(&mut other.priorities) {
            self.set_priority(stream, priority);
        }
    }

    /// The message of the next fragment.
    pub(super) fn front(&self) -> Option<&Queued> {
        self.front_of(self.head?)
    }

    /// The message of the next fragment from a stream.
    pub(super) fn front_of(&self, stream: StreamId) -> Option<&Queued> {
        self.lanes.get(&stream)?.front()
    }

    /// The queue of the next fragment.
    pub(super) fn front_lane(&mut self) -> Option<(StreamId, &mut VecDeque<Queued>)> {
        let stream = self.head?;
        Some((stream, self.lanes.get_mut(&stream)?))
    }

    /// The queue of a stream.
    pub(super) fn lane(&mut self, stream: StreamId) -> Option<&mut VecDeque<Queued>> {
        self.lanes.get_mut(&stream)
    }

    /// True if the current message must be finished before another one begins.
    pub(super) fn must_finish(&self) -> bool {
        self.begun.is_some()
    }

    /// Takes note that a fragment of `bytes` user bytes left a stream. If it `may_change`, another
    /// stream may be next: after the end of a message, or where messages interleave.
    pub(super) fn sent(&mut self, stream: StreamId, bytes: usize, may_change: bool) {
        let is_empty = self.lanes.get(&stream).is_none_or(VecDeque::is_empty);
        if is_empty {
            self.lanes.remove(&stream);
        }
        self.begun = (!may_change).then_some(stream);
        self.scheduler.sent(&Turn { stream, bytes, may_change, is_empty });
        self.find_head();
    }

    /// Takes note that the first message of a stream, or all of them, were removed unsent.
    pub(super) fn dropped(&mut self, stream: StreamId) {
        self.begun.take_if(|begun| *begun == stream);
        if self.lanes.get(&stream).is_none_or(VecDeque::is_empty) {
            self.lanes.remove(&stream);
            self.scheduler.left(stream);
        }
        self.find_head();
    }

    /// True if the current packet takes no more fragments.
    pub(super) fn ends_packet(&self) -> bool {
        self.scheduler.ends_packet()
    }

    pub(super) fn packet_ended(&mut self) {
        if self.begun.is_none() {
            self.scheduler.packet_ended();
            self.find_head();
        }
    }

    fn find_head(&mut self) {
        let chosen = || self.scheduler.next().filter(|stream| self.lanes.contains_key(stream));
        // A program's own scheduler may have forgotten streams: then take the first.
        let first = || self.lanes.keys().next().copied();
        self.head = self.begun.or_else(chosen).or_else(first);
    }
}
