//! Streams that are being reset (RFC 6525 §5.1.2). Messages given before the reset leave with the
//! numbers of the time before. Those given after it wait until the peer has answered, because only
//! then is it known which numbers they get.

use std::collections::VecDeque;

use manypath_wire::StreamId;

use super::{Queued, SendQueue};

/// A reset that waits or was requested.
#[derive(Debug)]
struct Hold {
    /// The streams, ascending; all if there are none.
    streams: Vec<StreamId>,
    /// Messages on them that must leave before the request does.
    earlier: usize,
    /// The request was sent and is not answered.
    is_requested: bool,
}

impl Hold {
    fn covers(&self, stream: StreamId) -> bool {
        self.streams.is_empty() || self.streams.binary_search(&stream).is_ok()
    }
}

/// The resets of an association, and the messages that wait for them.
#[derive(Debug, Default)]
pub(super) struct Resets {
    /// The resets in the order in which they are requested. No two of them have a stream in common.
    holds: VecDeque<Hold>,
    /// Messages given since, in their order.
    parked: VecDeque<Queued>,
}

impl Resets {
    pub(super) fn is_empty(&self) -> bool {
        self.parked.is_empty()
    }

    /// True if new messages of the stream wait.
    pub(super) fn holds(&self, stream: StreamId) -> bool {
        self.holds.iter().any(|hold| hold.covers(stream))
    }

    /// True if nothing of the stream may leave.
    pub(super) fn bars(&self, stream: StreamId) -> bool {
        self.holds.iter().any(|hold| hold.is_requested && hold.covers(stream))
    }

    pub(super) fn park(&mut self, queued: Queued) {
        self.parked.push_back(queued);
    }

    /// The messages that wait for a reset.
    pub(super) fn parked(&self) -> &VecDeque<Queued> {
        &self.parked
    }

    /// The messages that wait for a reset, to remove some.
    pub(super) fn parked_mut(&mut self) -> &mut VecDeque<Queued> {
        &mut self.parked
    }

    /// The reset of the stream that is not requested yet.
    fn waiting(&mut self, stream: StreamId) -> Option<&mut Hold> {
        self.holds.iter_mut().find(|hold| !hold.is_requested && hold.covers(stream))
    }

    /// Notes a message that may leave before the stream is reset.
    pub(super) fn joined(&mut self, stream: StreamId) {
        if let Some(hold) = self.waiting(stream) {
            hold.earlier += 1;
        }
    }

    /// Notes that a message has left the queue.
    pub(super) fn left(&mut self, stream: StreamId) {
        if let Some(hold) = self.waiting(stream) {
            hold.earlier = hold.earlier.saturating_sub(1);
        }
    }
}

impl SendQueue {
    /// Begins to reset these streams, or all if there are none in the list. Resets that wait may
    /// not have a stream in common.
    pub(crate) fn begin_reset(&mut self, streams: &[StreamId]) {
        let mut streams = streams.to_vec();
        streams.sort_unstable();
        streams.dedup();
        let mut hold = Hold { streams, earlier: 0, is_requested: false };
        let in_lanes = self.lanes.iter().flat_map(|lanes| lanes.messages());
        let all = self.messages.iter().chain(in_lanes).chain(&self.urgent);
        hold.earlier = all.filter(|m| hold.covers(m.labels.stream)).count();
        self.resets.get_or_insert_default().holds.push_back(hold);
    }

    /// True if all messages have left that must leave before the next reset is requested.
    pub(crate) fn may_request_reset(&self) -> bool {
        let next = self.resets.as_ref().and_then(|resets| resets.holds.front());
        next.is_some_and(|hold| hold.earlier == 0)
    }

    /// Notes that the next reset is requested: until the answer nothing leaves on its streams.
    pub(crate) fn reset_requested(&mut self) {
        if let Some(hold) = self.resets.as_mut().and_then(|resets| resets.holds.front_mut()) {
            hold.is_requested = true;
        }
    }

    /// Ends the reset that was requested. If it `is_done`, the numbers of its streams begin again.
    pub(crate) fn end_reset(&mut self, is_done: bool) {
        let Some(resets) = &mut self.resets else { return };
        let Some(hold) = resets.holds.pop_front() else { return };
        if is_done {
            self.numbers.reset(&hold.streams);
        }
        self.release();
    }

    /// Gives up all resets that are not requested yet.
    pub(crate) fn cancel_resets(&mut self) {
        if let Some(resets) = &mut self.resets {
            resets.holds.retain(|hold| hold.is_requested);
            self.release();
        }
    }

    /// Lets the messages leave that wait for no reset any more.
    fn release(&mut self) {
        let Some(mut resets) = self.resets.take() else { return };
        for queued in std::mem::take(&mut resets.parked) {
            if resets.holds(queued.labels.stream) {
                resets.park(queued);
            } else {
                self.enqueue(queued);
            }
        }
        if !resets.holds.is_empty() {
            self.resets = Some(resets);
        }
    }

    /// True if one of these streams is being reset; of all, if there are none in the list.
    pub(crate) fn resets_any(&self, streams: &[StreamId]) -> bool {
        let Some(resets) = &self.resets else { return false };
        streams.is_empty() || streams.iter().any(|stream| resets.holds(*stream))
    }

    /// True if each of these streams is being reset; all streams, if there are none in the list.
    pub(crate) fn resets_all(&self, streams: &[StreamId]) -> bool {
        let Some(resets) = &self.resets else { return false };
        if streams.is_empty() {
            resets.holds.iter().any(|hold| hold.streams.is_empty())
        } else {
            streams.iter().all(|stream| resets.holds(*stream))
        }
    }

    /// True if a reset of these streams would change nothing: no message of them was numbered yet.
    pub(crate) fn are_reset(&self, streams: &[StreamId]) -> bool {
        self.numbers.are_first(streams)
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::policy::stream_sched::Rr;
    use crate::sizes::DataKind;
    use crate::time::Instant;
    use crate::tx::SendOptions;

    /// Queues a message of three bytes on each of these streams.
    fn push(q: &mut SendQueue, streams: &[u16]) {
        for &stream in streams {
            let options = SendOptions { stream: StreamId(stream), ..SendOptions::default() };
            q.push(Instant::ZERO, options, Bytes::from_static(b"abc"));
        }
    }

    /// Stream and number of all fragments of two bytes that may leave.
    fn cut(q: &mut SendQueue) -> Vec<(u16, u32)> {
        std::iter::from_fn(|| q.pop(2)).map(|f| (f.stream.0, f.mid.0)).collect()
    }

    fn queues() -> [SendQueue; 3] {
        let mut lanes = SendQueue::new(Box::new(Rr::default()));
        let mut interleaved = SendQueue::new(Box::new(Rr::default()));
        lanes.set_kind(DataKind::Data);
        interleaved.set_kind(DataKind::IData);
        [SendQueue::default(), lanes, interleaved]
    }

    #[test]
    fn messages_of_before_leave_with_old_numbers_and_those_of_after_wait_for_new_ones() {
        for mut q in queues() {
            push(&mut q, &[1, 1, 2]);
            assert_eq!(q.pop(2).map(|f| f.stream), Some(StreamId(1)), "a message has begun");
            q.begin_reset(&[StreamId(1)]);
            push(&mut q, &[1, 2]);
            assert!(!q.may_request_reset());
            let mut left = cut(&mut q);
            left.sort_unstable();
            let expected = [(1, 0), (1, 1), (1, 1), (2, 0), (2, 0), (2, 1), (2, 1)];
            assert_eq!(left, expected);
            assert!(q.may_request_reset() && !q.is_empty() && q.bytes() == 3);
            q.reset_requested();
            push(&mut q, &[2]);
            assert_eq!(cut(&mut q), [(2, 2), (2, 2)], "other streams go on");
            q.end_reset(true);
            assert_eq!(cut(&mut q), [(1, 0), (1, 0)]);
            assert!(q.is_empty() && q.bytes() == 0 && q.resets.is_none());
        }
    }

    #[test]
    fn a_reset_that_was_denied_leaves_the_numbers_as_they_were() {
        for mut q in queues() {
            push(&mut q, &[1]);
            cut(&mut q);
            q.begin_reset(&[]);
            q.reset_requested();
            push(&mut q, &[1]);
            assert_eq!(cut(&mut q), []);
            q.end_reset(false);
            assert_eq!(cut(&mut q), [(1, 1), (1, 1)]);
        }
    }

    #[test]
    fn resets_end_one_by_one() {
        for mut q in queues() {
            push(&mut q, &[1, 2]);
            cut(&mut q);
            q.begin_reset(&[StreamId(1)]);
            q.begin_reset(&[StreamId(2)]);
            push(&mut q, &[2, 1]);
            q.reset_requested();
            q.end_reset(true);
            assert_eq!(cut(&mut q), [(1, 0), (1, 0)]);
            q.cancel_resets();
            assert_eq!(cut(&mut q), [(2, 1), (2, 1)]);
        }
    }

    #[test]
    fn urgent_messages_leave_before_the_request_or_after_its_answer() {
        for mut q in queues() {
            q.begin_reset(&[StreamId(0)]);
            q.push_urgent(SendOptions::default(), Bytes::from_static(b"ke"), false);
            assert!(!q.may_request_reset());
            assert_eq!(cut(&mut q), [(0, 0)]);
            assert!(q.may_request_reset());
            q.reset_requested();
            q.push_urgent(SendOptions::default(), Bytes::from_static(b"ke"), false);
            push(&mut q, &[3]);
            assert_eq!(cut(&mut q), [(3, 0), (3, 0)], "other messages do not wait for it");
            q.end_reset(true);
            assert_eq!(cut(&mut q), [(0, 0)]);
        }
    }
}
