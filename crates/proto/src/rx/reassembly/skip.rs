//! Messages that the sender has given up (RFC 3758 §3.6).

use manypath_wire::{Data, ForwardTsn, Ssn, StreamId, Tsn};

use super::{Amount, Heading, Inbound, Run, amount_of};
use crate::rx::message::Payload;
use crate::rx::tsn_tracker::{TsnSpan, TsnTracker};

/// True if `ssn` is `from` or comes after it, by serial number arithmetic (RFC 9260 §6.5).
fn is_from(ssn: Ssn, from: Ssn) -> bool {
    ssn.distance_from(from) <= u16::MAX / 2
}

impl Inbound {
    /// Takes all TSNs up to that of the chunk as received. Messages of which something is then
    /// missing are discarded, and those that waited for them are delivered. False if the chunk is
    /// an old one.
    pub(crate) fn skip(&mut self, chunk: &ForwardTsn, tracker: &mut TsnTracker) -> bool {
        let (old, new) = (tracker.cum_tsn(), chunk.new_cum_tsn);
        let here = tracker.received_up_to(new);
        if !tracker.skip_to(new) {
            return false;
        }
        if self.interleaved.is_some() {
            self.skip_interleaved(chunk, tracker);
            return true;
        }
        self.discard_begun(old);
        self.skipped_to = Some(new);
        for span in here {
            self.discard_incomplete(span, new);
        }
        if let Some(last) = self.skipped_to {
            self.discard_after(last);
        }
        self.end_partial();
        for skipped in chunk.skipped() {
            self.skip_message(skipped.stream, Ssn(skipped.mid.0 as u16));
        }
        true
    }

    /// True if a chunk belongs to a message whose beginning was skipped. It is discarded.
    pub(super) fn is_of_skipped(&mut self, data: &Data) -> bool {
        if data.flags.begin() || self.skipped_to != Some(data.tsn.prev()) {
            return false;
        }
        self.skipped_to = None;
        if !data.flags.end() {
            self.discard_after(data.tsn);
        }
        true
    }

    /// True if the SSN is behind because its message was skipped; another fragment of it is late.
    pub(super) fn is_late_fragment(&self, data: &Data) -> bool {
        let stream = self.streams.get(usize::from(data.stream.0));
        let skipped = stream.and_then(|stream| stream.skipped);
        !data.flags.begin() && skipped.is_some_and(|skipped| is_from(skipped, data.ssn))
    }

    /// Discards the message at the old cumulative TSN: what follows there is skipped.
    fn discard_begun(&mut self, old: Tsn) {
        if let Some(run) = self.held.run_at(old)
            && self.complete_message(run).is_none()
        {
            self.discard(run);
        }
    }

    /// Discards the messages among received TSNs of which something was skipped. The last one may
    /// go on behind the new cumulative TSN.
    fn discard_incomplete(&mut self, span: TsnSpan, new: Tsn) {
        let mut tsn = span.first;
        while tsn.le(span.last) {
            let Some(run) = self.held.run_at(tsn) else {
                tsn = tsn.next(); // it was delivered
                continue;
            };
            let begins = self.held.get(run.first).is_some_and(|first| first.flags.begin());
            let goes_on = begins && new.le(run.last);
            if !goes_on && self.complete_message(run).is_none() {
                self.discard(run);
            }
            tsn = run.last.next();
        }
    }

    /// Discards a run. The rest of its message, if that is above the skipped TSNs, follows.
    fn discard(&mut self, run: Run) {
        let is_last = self.skipped_to.is_some_and(|skipped| run.last.gt(skipped));
        if is_last {
            let is_over = self.held.get(run.last).is_some_and(|last| last.flags.end());
            self.skipped_to = (!is_over).then_some(run.last);
        }
        drop(self.held.take_run(run));
        self.room.held.subtract(amount_of(run));
    }

    /// Discards the fragments that follow a skipped one of their message, now or when they arrive.
    fn discard_after(&mut self, tsn: Tsn) {
        self.skipped_to = Some(tsn);
        let Some(run) = self.held.run_at(tsn.next()) else { return };
        if !self.held.get(run.first).is_some_and(|first| first.flags.begin()) {
            self.discard(run);
        }
    }

    /// Tells the application that the message that is being delivered in parts has no end.
    fn end_partial(&mut self) {
        let Some(partial) = self.partial.take() else { return };
        self.cut_off(partial.heading);
        self.after_partial(partial.heading.stream);
    }

    /// Delivers an empty last part.
    pub(super) fn cut_off(&mut self, heading: Heading) {
        let part = Amount { chunks: 0, bytes: 0 };
        self.room.ready.add(part);
        self.make_ready(heading, Payload::default(), true);
        let ready = if self.is_aside(heading) { &mut self.aside } else { &mut self.ready };
        if let Some(message) = ready.back_mut() {
            message.is_cut_off = true;
        }
    }

    /// Delivers what waits for an ordered message that was skipped, and for those before it.
    fn skip_message(&mut self, stream: StreamId, ssn: Ssn) {
        let Some(state) = self.streams.get_mut(usize::from(stream.0)) else { return };
        let (next, waiting) = (state.next_ssn, state.waiting);
        state.skipped = Some(ssn);
        if !is_from(ssn, next) {
            return;
        }
        if waiting > 0 {
            let is_before = |s: Ssn| is_from(s, next) && is_from(ssn, s);
            let here = self.waiting.keys().filter(|(of, s)| *of == stream && is_before(*s));
            let mut here: Vec<Ssn> = here.map(|(_, s)| *s).collect();
            here.sort_by_key(|s| s.distance_from(next));
            for ssn in here {
                self.pass_to(stream, ssn);
            }
        }
        self.pass_to(stream, ssn.next());
    }

    /// Lets the turn of a stream pass to an SSN, unless it has passed that already, and delivers
    /// what waited for it.
    fn pass_to(&mut self, stream: StreamId, ssn: Ssn) {
        let state = &mut self.streams[usize::from(stream.0)];
        if is_from(ssn, state.next_ssn) {
            state.next_ssn = ssn;
            self.deliver_waiting(stream);
        }
    }
}
