//! Messages that are given up, and what the peer is told of them (RFC 3758 §3.5, RFC 7496).

use std::time::Duration;

use manypath_wire::{COMMON_HEADER_LEN, StreamId};
use smallvec::SmallVec;

use crate::assoc::recover::timeout::TimeoutCause;
use crate::assoc::send::control::Control;
use crate::assoc::state::State;
use crate::assoc::{AssocTimer, Association, Timer};
use crate::event::Event;
use crate::path::Path;
use crate::time::Instant;
use crate::tx::{Dropped, GivenUp, MessageId};
use crate::view::PathId;

/// The least time between two looks at all messages for those that have expired.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Looks for expired messages, and the latest FORWARD TSN.
#[derive(Debug, Default)]
pub(crate) struct Abandoning {
    /// When to look for expired messages.
    look_at: Option<Instant>,
    /// When and on which path FORWARD TSN was last sent, until it is acknowledged.
    told: Option<Told>,
}

#[derive(Copy, Clone, Debug)]
struct Told {
    at: Instant,
    on: PathId,
}

/// The time that a waiting message must still have: that of delivery on the slowest path on which
/// it would arrive within half of its lifetime. It may be sent on any of these. On slower ones
/// alone there is nothing to be early for.
fn slowest_within(times: &[Duration], lifetime: Duration) -> Duration {
    let is_quick = |time: &&Duration| **time <= lifetime / 2;
    times.iter().filter(is_quick).max().copied().unwrap_or_default()
}

impl Association {
    /// Looks for a message that expires at that time, early enough to find it late.
    pub(crate) fn note_expiry_of(&mut self, at: Instant) {
        let early = self.delivery_times().into_iter().max().unwrap_or_default();
        self.look_for_expired_at(at.saturating_sub(early));
    }

    fn look_for_expired_at(&mut self, at: Instant) {
        if self.abandoning.look_at.is_none_or(|next| at < next) {
            self.abandoning.look_at = Some(at);
            self.timers.set(Timer::Assoc(AssocTimer::Lifetime), at);
        }
    }

    /// Gives up the messages that have expired, if it is time to look for them, and the lost ones
    /// that may not be sent again. Comes before anything is sent.
    #[inline]
    pub(crate) fn give_up_if_due(&mut self, now: Instant) {
        if self.abandoning.look_at.is_some_and(|at| at <= now) {
            self.drop_expired(now);
        }
        if self.out.has_limited() {
            self.give_up_lost(now);
            // The peer is told of messages given up before the association was open once it is.
            if self.abandoning.told.is_none() {
                self.skip_abandoned(now);
            }
            // A timeout, too, may have dropped what was given up.
            if self.out.take_has_freed() {
                self.tell_if_writable();
            }
        }
    }

    #[cold]
    fn drop_expired(&mut self, now: Instant) {
        self.abandoning.look_at = None;
        self.timers.stop(Timer::Assoc(AssocTimer::Lifetime));
        let may_abandon = self.agreed.partial_reliability;
        let slowest = self.delivery_times();
        let dropped =
            self.queue.expire(now, |lifetime| slowest_within(&slowest, lifetime), !may_abandon);
        self.note_dropped(dropped);
        let expired = self.out.give_up_expired(now);
        self.note_given_up(expired);
        let next = [self.queue.next_expiry(), self.out.next_expiry()].into_iter().flatten().min();
        if let Some(at) = next {
            let early = slowest.iter().max().copied().unwrap_or_default();
            self.look_for_expired_at(at.saturating_sub(early).max(now + LOOK_EVERY));
        }
        self.skip_abandoned(now);
        self.tell_if_writable();
        self.continue_shutdown(now);
    }

    /// How long a packet sent now takes to the peer, by usable path: half of the shortest round
    /// trip there, and what queues and jitter add to it.
    fn delivery_times(&self) -> SmallVec<[Duration; 8]> {
        let usable = self.paths.iter().filter(|p| p.role.usable);
        let takes = |p: &Path| {
            let (srtt, shortest) = (p.rto.srtt()?, p.rto.rtt_min()?);
            Some(srtt.saturating_sub(shortest / 2) + p.rto.variation())
        };
        usable.filter_map(takes).collect()
    }

    /// Gives up messages less important than one of this priority, if that makes room for it (RFC
    /// 7496 §3.2). Only those of which nothing was sent free room at once.
    pub(crate) fn make_space(&mut self, bytes: usize, priority: Option<u32>) {
        let missing = bytes.saturating_sub(self.send_space());
        let dropped = priority.map(|priority| self.queue.prune(priority, missing));
        self.note_dropped(dropped.unwrap_or_default());
    }

    fn give_up_lost(&mut self, now: Instant) {
        if !self.out.may_have_marked() {
            return;
        }
        let mut given_up = Vec::new();
        for path in self.paths.ids() {
            while let Some(tsn) = self.out.next_marked(path)
                && self.out.is_over(tsn, now)
                && let Some(message) = self.out.give_up_at(tsn)
            {
                given_up.push(message);
            }
        }
        if !given_up.is_empty() {
            self.note_given_up(given_up);
            self.skip_abandoned(now);
            self.tell_if_writable();
        }
    }

    fn note_dropped(&mut self, dropped: Vec<Dropped>) {
        for Dropped { stream, unordered, ppid, begun } in dropped {
            if let Some(mid) = begun {
                let id = MessageId { stream, unordered, mid };
                self.out.give_up_begun(id);
                self.end_given_up(id);
            }
            self.note_abandoned(stream, ppid, begun.is_some());
        }
    }

    fn note_given_up(&mut self, given_up: Vec<GivenUp>) {
        for GivenUp { id, ppid, is_whole } in given_up {
            if !is_whole && self.queue.drop_begun(id) {
                self.end_given_up(id);
            }
            self.note_abandoned(id.stream, ppid, true);
        }
    }

    fn end_given_up(&mut self, id: MessageId) {
        self.out.end_given_up(id, self.agreed.data_kind, self.control_path());
    }

    fn note_abandoned(&mut self, stream: StreamId, ppid: u32, was_sent: bool) {
        let count = if was_sent {
            &mut self.stats.messages_abandoned
        } else {
            &mut self.stats.messages_dropped
        };
        *count += 1;
        self.events.push(Event::MessageAbandoned { stream, ppid, was_sent });
    }

    /// Tells the peer to skip what was given up, if it waits for that: at once if it was not told
    /// yet, else once for each round trip in which it goes on asking.
    pub(crate) fn skip_abandoned(&mut self, now: Instant) {
        self.out.advance_point();
        if !self.out.must_skip() {
            if self.abandoning.told.take().is_some() {
                self.timers.stop(Timer::Assoc(AssocTimer::Forward));
            }
            return;
        }
        let is_answered_late = |told: Told| {
            let srtt = self.paths.get(told.on).and_then(|p| p.rto.srtt());
            srtt.is_some_and(|srtt| now.saturating_since(told.at) > srtt)
        };
        if self.out.is_news_to_peer() || self.abandoning.told.is_none_or(is_answered_late) {
            self.send_forward_tsn(now, self.control_path());
        }
    }

    /// FORWARD TSN was not acknowledged in time (RFC 3758 §3.5, F1 to F3).
    pub(crate) fn on_forward_timer(&mut self, now: Instant) {
        let Some(told) = self.abandoning.told.take() else { return };
        if !self.out.must_skip() {
            return;
        }
        self.count_timeout(now, told.on, TimeoutCause::Data);
        if matches!(self.state, State::Closed(_)) {
            return;
        }
        self.send_forward_tsn(now, self.control_path_after(told.on));
    }

    /// Sends FORWARD TSN, and watches its acknowledgement (RFC 3758 §3.5, C5).
    fn send_forward_tsn(&mut self, now: Instant, on: PathId) {
        if !self.state.may_send_data() {
            return;
        }
        let room = self.control_room(Some(on)).saturating_sub(COMMON_HEADER_LEN);
        let Some(chunk) = self.out.forward_tsn(self.agreed.data_kind, room) else { return };
        self.control.retain(|waiting| !matches!(waiting, Control::ForwardTsn { .. }));
        self.control.push_back(Control::ForwardTsn { chunk, on });
        self.stats.forward_tsns_sent += 1;
        self.abandoning.told = Some(Told { at: now, on });
        let rto = self.paths.get(on).map_or(self.config.rto_initial, |p| p.rto.rto());
        self.timers.set(Timer::Assoc(AssocTimer::Forward), now + rto);
    }
}
