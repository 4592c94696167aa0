//! Messages that are given up before anything, or before all, of them was sent.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use manypath_wire::{Mid, StreamId};

use super::{Labels, Limits, Queued, SendQueue};
use crate::time::Instant;
use crate::tx::MessageId;

/// A message that left the queue without being sent to its end.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub(crate) stream: StreamId,
    pub(crate) unordered: bool,
    pub(crate) ppid: u32,
    /// The number of the message, if something of it was sent.
    pub(crate) begun: Option<Mid>,
}

impl Queued {
    /// When the message is given up.
    fn expires(&self) -> Option<Instant> {
        self.limits.as_ref()?.lifetime.map(|lifetime| self.queued_at + lifetime)
    }

    /// True if the message would be late, were it sent now.
    fn is_late(&self, now: Instant, takes: impl Fn(Duration) -> Duration) -> bool {
        let Some(lifetime) = self.limits.as_ref().and_then(|limits| limits.lifetime) else {
            return false;
        };
        self.queued_at + lifetime <= now + takes(lifetime)
    }
}

impl SendQueue {
    /// Takes note of the limits of a message that joins the queue.
    pub(super) fn note_limits(&mut self, queued: &Queued) {
        let expires = queued.expires();
        self.has_limited |= queued.limits.is_some();
        if expires.is_some() && self.expires.is_none_or(|first| expires < Some(first)) {
            self.expires = expires;
        }
    }

    /// No message expires before; `None` if none does.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.expires
    }

    /// The limits of the message of the next fragment, if it has any.
    #[inline]
    pub(crate) fn next_limits(&self) -> Option<Limits> {
        if !self.has_limited {
            return None;
        }
        let message = self.front()?;
        let retransmissions = message.limits.as_ref()?.max_retransmissions;
        let limits = Limits { expires: message.expires(), retransmissions };
        (limits != Limits::default()).then_some(limits)
    }

    /// Removes the messages that have expired, and those of which nothing was sent and which would
    /// expire on their way: `takes` says how long that is for a lifetime. `keeps_begun`: messages
    /// that have begun to leave must be sent to their end.
    pub(crate) fn expire(
        &mut self,
        now: Instant,
        takes: impl Fn(Duration) -> Duration,
        keeps_begun: bool,
    ) -> Vec<Dropped> {
        let is_kept = |m: &Queued, _| match m.mid {
            None => !m.is_late(now, &takes),
            Some(_) => keeps_begun || !m.is_late(now, |_| Duration::ZERO),
        };
        let dropped = self.retain(is_kept);
        let later = |m: &Queued| m.expires().filter(|at| *at > now);
        self.expires = self.waiting().filter_map(later).min();
        dropped
    }

    /// Removes the rest of a message that has begun to leave. False if nothing of it was left.
    pub(crate) fn drop_begun(&mut self, id: MessageId) -> bool {
        let is_it = |m: &Queued| {
            let MessageId { stream, unordered, mid } = id;
            m.mid == Some(mid) && m.labels.stream == stream && m.labels.unordered == unordered
        };
        !self.retain(|m, _| !is_it(m)).is_empty()
    }

    /// Removes messages less important than one of this priority, of which nothing was sent: at
    /// least `bytes` of them, or none. The least important go first, of these the latest.
    pub(crate) fn prune(&mut self, priority: u32, bytes: usize) -> Vec<Dropped> {
        let (mut places, mut place) = (Vec::new(), 0);
        for message in self.waiting() {
            let theirs = message.limits.as_ref().and_then(|limits| limits.priority);
            let theirs = theirs.filter(|theirs| *theirs > priority);
            if let (Some(theirs), None) = (theirs, message.mid) {
                places.push((theirs, place, message.payload.len()));
            }
            place += 1;
        }
        places.sort_unstable_by(|a, b| b.cmp(a));
        let (mut victims, mut freed) = (BTreeSet::new(), 0);
        for (_, place, len) in places {
            if freed >= bytes {
                break;
            }
            freed += len;
            victims.insert(place);
        }
        if freed < bytes { Vec::new() } else { self.retain(|_, at| !victims.contains(&at)) }
    }

    /// Messages that are not urgent, in the order of [`retain`](Self::retain).
    fn waiting(&self) -> impl Iterator<Item = &Queued> {
        let in_lanes = self.lanes.iter().flat_map(|lanes| lanes.messages());
        let parked = self.resets.iter().flat_map(|resets| resets.parked());
        self.messages.iter().chain(in_lanes).chain(parked)
    }

    /// Keeps the messages that `is_kept` accepts by themselves and their place, and returns the
    /// others.
    fn retain(&mut self, is_kept: impl Fn(&Queued, usize) -> bool) -> Vec<Dropped> {
        let mut sieve = Sieve { is_kept, place: 0, bytes: 0, dropped: Vec::new() };
        sieve.sift(&mut self.messages);
        if let Some(lanes) = &mut self.lanes {
            lanes.sift(|queue| sieve.sift(queue));
        }
        if let Some(resets) = &mut self.resets {
            sieve.dropped.iter().for_each(|gone| resets.left(gone.stream));
            sieve.sift(resets.parked_mut());
        }
        self.bytes -= sieve.bytes;
        sieve.dropped
    }
}

/// Removes messages from one queue after the other.
struct Sieve<F> {
    is_kept: F,
    /// Messages looked at.
    place: usize,
    /// User bytes removed.
    bytes: usize,
    dropped: Vec<Dropped>,
}

impl<F: Fn(&Queued, usize) -> bool> Sieve<F> {
    fn sift(&mut self, queue: &mut VecDeque<Queued>) {
        queue.retain(|message| {
            self.place += 1;
            let keeps = (self.is_kept)(message, self.place - 1);
            if !keeps {
                self.bytes += message.payload.len();
                let Labels { stream, ppid, unordered, .. } = message.labels;
                self.dropped.push(Dropped { stream, unordered, ppid, begun: message.mid });
            }
            keeps
        });
    }
}

impl super::Lanes {
    /// Lets `sift` remove messages from each queue.
    pub(super) fn sift(&mut self, mut sift: impl FnMut(&mut VecDeque<Queued>)) {
        let mut cut: Vec<StreamId> = Vec::new();
        for (stream, lane) in &mut self.lanes {
            let had_begun = lane.front().is_some_and(|m| m.mid.is_some());
            sift(lane);
            let has_begun = lane.front().is_some_and(|m| m.mid.is_some());
            if lane.is_empty() || (had_begun && !has_begun) {
                cut.push(*stream);
            }
        }
        for stream in cut {
            self.dropped(stream);
        }
    }
}
