//! User messages that wait for their first transmission.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use lanes::Lanes;
use manypath_wire::{DataFlags, Mid, StreamId};
use resets::Resets;

use crate::policy::stream_sched::StreamScheduler;
use crate::sizes::DataKind;
use crate::time::Instant;
use crate::tx::outstanding::abandoned::Limits;

mod expiry;
mod lanes;
mod resets;

pub(crate) use expiry::Dropped;

/// How a message is sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SendOptions {
    /// The stream, below the number agreed in the handshake.
    pub stream: StreamId,
    /// Payload protocol identifier, carried for the application.
    pub ppid: u32,
    /// Deliver as soon as it is complete, whatever the order of its stream (RFC 9260 §6.6).
    pub unordered: bool,
    /// The message is given up that long after it was queued. It is then sent no more, and the peer
    /// skips what is missing of it (RFC 3758 §4). A message that waits is dropped sooner, if it
    /// would arrive later than that. To a peer that does not support skipping, a message of which
    /// something was sent is sent to its end. `None`: it is never given up.
    pub lifetime: Option<Duration>,
    /// The message is given up when a part of it is lost that was sent again so often (RFC 7496
    /// §3.1). Without meaning if the peer does not support that. `None`: there is no limit.
    pub max_retransmissions: Option<u16>,
    /// The message may be given up, as long as nothing of it was sent, if the send buffer is full
    /// and a message comes whose number is lower (RFC 7496 §3.2). `None`: it never is.
    pub priority: Option<u32>,
    /// Ask the peer to acknowledge the last chunk of the message without delay (I bit, RFC 9260
    /// §11.1.5). Each such message may cost the peer a SACK of its own.
    pub sack_immediately: bool,
}

impl Default for SendOptions {
    /// An ordered message on stream 0.
    fn default() -> SendOptions {
        SendOptions {
            stream: StreamId(0),
            ppid: 0,
            unordered: false,
            lifetime: None,
            max_retransmissions: None,
            priority: None,
            sack_immediately: false,
        }
    }
}

/// Why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The send buffer is full; wait for [`Event::Writable`](crate::Event::Writable).
    #[error("the send buffer is full")]
    Full,
    /// The message is longer than the send buffer can ever hold.
    #[error("a message may have at most {limit} bytes (send_buffer)")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// SCTP has no empty messages (RFC 9260 §3.3.1).
    #[error("an SCTP message has at least one byte")]
    Empty,
    /// The stream was not agreed in the handshake.
    #[error("stream {stream} does not exist; the association has {streams} outgoing streams")]
    NoSuchStream {
        /// The stream asked for.
        stream: u16,
        /// The number of outgoing streams.
        streams: u16,
    },
    /// The association is over or shutting down.
    #[error("the association is shut down")]
    Closed,
}

/// A piece of a message, as large as a chunk may be.
#[derive(Debug)]
pub(crate) struct Fragment {
    pub(crate) payload: Bytes,
    pub(crate) stream: StreamId,
    pub(crate) flags: DataFlags,
    pub(crate) kind: DataKind,
    /// The message's number in its stream. In a DATA chunk, its lower 16 bits are the SSN.
    pub(crate) mid: Mid,
    /// The PPID; in I-DATA fragments after the first, the FSN.
    pub(crate) ppid_or_fsn: u32,
}

impl Fragment {
    /// The flags of the last fragment of a message.
    pub(crate) fn end_of(unordered: bool) -> DataFlags {
        if unordered { DataFlags::END | DataFlags::UNORDERED } else { DataFlags::END }
    }
}

#[cfg(test)]
impl Fragment {
    /// A whole message on stream 0.
    pub(crate) fn whole(payload: &'static [u8], mid: u32) -> Fragment {
        Fragment {
            payload: Bytes::from_static(payload),
            stream: StreamId(0),
            flags: DataFlags::BEGIN | DataFlags::END,
            kind: DataKind::Data,
            mid: Mid(mid),
            ppid_or_fsn: 0,
        }
    }
}

/// The part of [`SendOptions`] that the chunks of a message carry.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Labels {
    stream: StreamId,
    ppid: u32,
    unordered: bool,
    sack_immediately: bool,
}

/// When a message is given up: see [`SendOptions`].
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
struct QueuedLimits {
    lifetime: Option<Duration>,
    max_retransmissions: Option<u16>,
    priority: Option<u32>,
}

#[derive(Debug)]
struct Queued {
    payload: Bytes,
    labels: Labels,
    /// Elsewhere, as most messages have none, and many may wait.
    limits: Option<Box<QueuedLimits>>,
    queued_at: Instant,
    /// The message's number, known once its first fragment was cut.
    mid: Option<Mid>,
    /// Number of fragments cut so far; it wraps around.
    cut: u32,
    /// True if the message leaves unprotected, because there are no keys yet.
    in_plain: bool,
}

impl Queued {
    fn new(queued_at: Instant, options: SendOptions, payload: Bytes) -> Queued {
        let SendOptions { stream, ppid, unordered, sack_immediately, .. } = options;
        let SendOptions { lifetime, max_retransmissions, priority, .. } = options;
        let labels = Labels { stream, ppid, unordered, sack_immediately };
        let limits = QueuedLimits { lifetime, max_retransmissions, priority };
        let limits = (limits != QueuedLimits::default()).then(|| Box::new(limits));
        Queued { payload, labels, limits, queued_at, mid: None, cut: 0, in_plain: false }
    }
}

/// Messages that wait. All are in one queue in the order they were given, or each stream has a
/// queue and a scheduler chooses among them. Urgent messages leave first.
#[derive(Debug, Default)]
pub(crate) struct SendQueue {
    /// The only queue; unused if there are `lanes`.
    messages: VecDeque<Queued>,
    lanes: Option<Box<Lanes>>,
    /// Messages of the key management, which are not user data.
    urgent: VecDeque<Queued>,
    /// Only urgent messages may leave.
    is_held: bool,
    /// Streams that are being reset, if any are.
    resets: Option<Box<Resets>>,
    bytes: usize,
    numbers: Numbers,
    kind: DataKind,
    /// Some messages may have limits.
    has_limited: bool,
    /// No message expires before.
    expires: Option<Instant>,
}

impl SendQueue {
    /// A queue whose streams `scheduler` chooses.
    pub(crate) fn new(scheduler: Box<dyn StreamScheduler>) -> SendQueue {
        let lanes = (!scheduler.shares_queue()).then(|| Box::new(Lanes::new(scheduler)));
        SendQueue { lanes, ..SendQueue::default() }
    }

    /// The chunks that carry the messages. With I-DATA their fragments may alternate.
    pub(crate) fn set_kind(&mut self, kind: DataKind) {
        self.kind = kind;
    }

    /// The greater the priority, the more important a stream is.
    pub(crate) fn set_priority(&mut self, stream: StreamId, priority: u16) {
        if let Some(lanes) = &mut self.lanes {
            lanes.set_priority(stream, priority);
        }
    }

    /// Takes over the priorities of the streams of another association.
    pub(crate) fn take_priorities(&mut self, other: &mut SendQueue) {
        if let (Some(lanes), Some(other)) = (&mut self.lanes, &mut other.lanes) {
            lanes.take_priorities(other);
        }
    }

    /// User bytes waiting.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
            && self.urgent.is_empty()
            && self.lanes.as_ref().is_none_or(|lanes| lanes.is_empty())
            && self.resets.as_ref().is_none_or(|resets| resets.is_empty())
    }

    pub(crate) fn push(&mut self, queued_at: Instant, options: SendOptions, payload: Bytes) {
        self.bytes += payload.len();
        let queued = Queued::new(queued_at, options, payload);
        match &mut self.resets {
            Some(resets) if resets.holds(options.stream) => resets.park(queued),
            _ => self.enqueue(queued),
        }
    }

    fn enqueue(&mut self, queued: Queued) {
        self.note_limits(&queued);
        match &mut self.lanes {
            None => self.messages.push_back(queued),
            Some(lanes) => lanes.push(queued),
        }
    }

    /// When the application handed over the message that is sent next.
    pub(crate) fn waits_since(&self) -> Option<Instant> {
        self.next_message().map(|m| m.queued_at)
    }

    /// Queues a message that leaves before all others, except one that has begun to leave.
    pub(crate) fn push_urgent(&mut self, options: SendOptions, payload: Bytes, in_plain: bool) {
        let queued_at = Instant::ZERO; // its age is of no interest
        if let Some(resets) = &mut self.resets {
            resets.joined(options.stream);
        }
        self.urgent.push_back(Queued { in_plain, ..Queued::new(queued_at, options, payload) });
    }

    /// The next fragment leaves unprotected.
    #[inline]
    pub(crate) fn is_next_in_plain(&self) -> bool {
        self.front().is_some_and(|m| m.in_plain)
    }

    /// Holds back all but urgent messages, or releases them.
    pub(crate) fn hold(&mut self, is_held: bool) {
        self.is_held = is_held;
    }

    /// The next message that is not urgent.
    #[inline]
    fn next_message(&self) -> Option<&Queued> {
        match &self.lanes {
            None => self.messages.front(),
            Some(lanes) => lanes.front(),
        }
    }

    /// True if the next fragment is of an urgent message.
    #[inline]
    fn is_urgent_next(&self) -> bool {
        self.next_urgent().is_some() && self.unfinished().is_none()
    }

    /// The next urgent message, unless its stream is just being reset.
    #[inline]
    fn next_urgent(&self) -> Option<&Queued> {
        let may_leave =
            |m: &&Queued| self.resets.as_ref().is_none_or(|resets| !resets.bars(m.labels.stream));
        self.urgent.front().filter(may_leave)
    }

    /// The message that must be finished before an urgent one.
    fn unfinished(&self) -> Option<&Queued> {
        let has_begun = |m: &&Queued| m.mid.is_some();
        match &self.lanes {
            None => self.messages.front().filter(has_begun),
            Some(lanes) if lanes.must_finish() => lanes.front(),
            // No two messages of a stream at a time (RFC 8260 §2.2.2).
            Some(lanes) => lanes.front_of(self.next_urgent()?.labels.stream).filter(has_begun),
        }
    }

    /// True if all messages are in one queue and may leave. This is the common case, and cheap.
    #[inline]
    fn is_simple(&self) -> bool {
        self.lanes.is_none() && self.urgent.is_empty() && !self.is_held && self.resets.is_none()
    }

    #[inline]
    fn front(&self) -> Option<&Queued> {
        if self.is_simple() { self.messages.front() } else { self.front_of_several() }
    }

    #[inline(never)]
    fn front_of_several(&self) -> Option<&Queued> {
        if self.is_urgent_next() {
            self.urgent.front()
        } else if self.is_held {
            None
        } else if self.next_urgent().is_none() {
            self.next_message()
        } else {
            self.unfinished()
        }
    }

    /// Every message given so far is on one of the first `streams` streams.
    pub(crate) fn fits_streams(&self, streams: u16) -> bool {
        let in_lanes = self.lanes.iter().flat_map(|lanes| lanes.messages());
        self.messages.iter().chain(in_lanes).all(|m| m.labels.stream.0 < streams)
    }

    /// User bytes that the next fragment of at most `limit` bytes would have.
    #[inline]
    pub(crate) fn next_len(&self, limit: usize) -> Option<usize> {
        self.front().map(|m| m.payload.len().min(limit))
    }

    /// True if the current packet takes no more new data.
    #[inline]
    pub(crate) fn ends_packet(&self) -> bool {
        self.lanes.as_ref().is_some_and(|lanes| lanes.ends_packet())
    }

    /// Tells the scheduler that a packet is complete.
    #[inline]
    pub(crate) fn packet_ended(&mut self) {
        if let Some(lanes) = &mut self.lanes {
            lanes.packet_ended();
        }
    }

    /// Cuts the next fragment, of at most `limit` bytes (RFC 9260 §6.9).
    #[inline]
    pub(crate) fn pop(&mut self, limit: usize) -> Option<Fragment> {
        if !self.is_simple() {
            return self.pop_of_several(limit);
        }
        let fragment = self.numbers.cut(&mut self.messages, limit, self.kind)?;
        self.bytes -= fragment.payload.len();
        Some(fragment)
    }

    #[inline(never)]
    fn pop_of_several(&mut self, limit: usize) -> Option<Fragment> {
        let fragment = self.cut_of_several(limit)?;
        if fragment.flags.end()
            && let Some(resets) = &mut self.resets
        {
            resets.left(fragment.stream);
        }
        Some(fragment)
    }

    fn cut_of_several(&mut self, limit: usize) -> Option<Fragment> {
        self.front()?;
        if self.is_urgent_next() {
            return self.numbers.cut(&mut self.urgent, limit, self.kind);
        }
        let urgent = self.next_urgent().map(|m| m.labels.stream);
        let Some(lanes) = &mut self.lanes else {
            let fragment = self.numbers.cut(&mut self.messages, limit, self.kind)?;
            self.bytes -= fragment.payload.len();
            return Some(fragment);
        };
        let (stream, lane) = match urgent {
            Some(stream) if !lanes.must_finish() => (stream, lanes.lane(stream)?),
            _ => lanes.front_lane()?,
        };
        let fragment = self.numbers.cut(lane, limit, self.kind)?;
        let bytes = fragment.payload.len();
        self.bytes -= bytes;
        let may_change = fragment.flags.end() || self.kind == DataKind::IData;
        lanes.sent(stream, bytes, may_change);
        Some(fragment)
    }
}

/// The next message number of each stream: one for ordered, one for unordered messages.
#[derive(Debug, Default)]
struct Numbers(Vec<[Mid; 2]>);

impl Numbers {
    /// Cuts a fragment off the first message of a queue.
    #[inline(always)] // into its one caller that matters
    fn cut(
        &mut self,
        queue: &mut VecDeque<Queued>,
        limit: usize,
        kind: DataKind,
    ) -> Option<Fragment> {
        let message = queue.front_mut()?;
        let len = message.payload.len().min(limit);
        let (labels, cut) = (message.labels, message.cut);
        let mut flags = DataFlags::default();
        if labels.unordered {
            flags = flags | DataFlags::UNORDERED;
        }
        let mid = match message.mid {
            Some(mid) => mid,
            None => {
                flags = flags | DataFlags::BEGIN;
                *message.mid.insert(self.next(labels, kind))
            }
        };
        let is_first = flags.begin() || kind == DataKind::Data;
        let ppid_or_fsn = if is_first { labels.ppid } else { cut };
        let payload = if len == message.payload.len() {
            flags = flags | DataFlags::END;
            if labels.sack_immediately {
                flags = flags | DataFlags::IMMEDIATE;
            }
            queue.pop_front()?.payload
        } else {
            message.cut = cut.wrapping_add(1);
            message.payload.split_to(len)
        };
        Some(Fragment { payload, stream: labels.stream, flags, kind, mid, ppid_or_fsn })
    }

    /// Lets the numbers of these streams begin again; of all, if there are none in the list.
    fn reset(&mut self, streams: &[StreamId]) {
        if streams.is_empty() {
            self.0.clear();
        }
        for stream in streams {
            if let Some(next) = self.0.get_mut(usize::from(stream.0)) {
                *next = [Mid(0); 2];
            }
        }
    }

    /// True if no message of these streams was numbered yet; of all, if there are none in the list.
    fn are_first(&self, streams: &[StreamId]) -> bool {
        let is_first = |next: &[Mid; 2]| *next == [Mid(0); 2];
        if streams.is_empty() {
            self.0.iter().all(is_first)
        } else {
            streams.iter().all(|s| self.0.get(usize::from(s.0)).is_none_or(is_first))
        }
    }

    /// The number of the next message with these labels.
    #[inline]
    fn next(&mut self, labels: Labels, kind: DataKind) -> Mid {
        if labels.unordered && kind == DataKind::Data {
            return Mid(0); // it needs none
        }
        let stream = usize::from(labels.stream.0);
        if self.0.len() <= stream {
            self.0.resize(stream + 1, [Mid(0); 2]);
        }
        let next = &mut self.0[stream][usize::from(labels.unordered)];
        let mid = *next;
        *next = mid.next();
        mid
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::stream_sched::{Prio, Rr, Turn};

    fn options(stream: u16, unordered: bool) -> SendOptions {
        SendOptions { stream: StreamId(stream), ppid: 7, unordered, ..SendOptions::default() }
    }

    #[test]
    fn a_message_longer_than_the_limit_is_cut_with_begin_and_end_marked() {
        let mut q = SendQueue::default();
        q.push(Instant::ZERO, options(0, false), Bytes::from_static(b"abcdefg"));
        let cut: Vec<_> = std::iter::from_fn(|| q.pop(3)).collect();
        let lens: Vec<_> = cut.iter().map(|f| f.payload.len()).collect();
        assert_eq!(lens, [3, 3, 1]);
        let marks: Vec<_> = cut.iter().map(|f| (f.flags.begin(), f.flags.end())).collect();
        assert_eq!(marks, [(true, false), (false, false), (false, true)]);
        assert!(cut.iter().all(|f| f.mid == Mid(0) && f.ppid_or_fsn == 7));
        assert_eq!((q.bytes(), q.is_empty()), (0, true));
    }

    #[test]
    fn stream_sequence_numbers_count_ordered_messages_of_each_stream() {
        let mut q = SendQueue::default();
        for (stream, unordered) in [(0, false), (5, false), (0, true), (0, false)] {
            q.push(Instant::ZERO, options(stream, unordered), Bytes::from_static(b"x"));
        }
        let sent: Vec<_> = std::iter::from_fn(|| q.pop(9))
            .map(|f| (f.stream.0, f.mid.0, f.flags.unordered()))
            .collect();
        assert_eq!(sent, [(0, 0, false), (5, 0, false), (0, 0, true), (0, 1, false)]);
    }

    #[test]
    fn the_age_of_the_queue_is_that_of_its_first_message() {
        let mut q = SendQueue::default();
        assert_eq!(q.waits_since(), None);
        for ms in [3, 7] {
            q.push(Instant::from_millis(ms), options(0, false), Bytes::from_static(b"abc"));
        }
        for (ms, popped) in [(3, 2), (3, 1), (7, 3)] {
            assert_eq!(q.waits_since(), Some(Instant::from_millis(ms)));
            q.pop(popped);
        }
        assert_eq!(q.waits_since(), None);
    }

    #[test]
    fn urgent_messages_leave_first_but_cut_none_in_two() {
        let mut q = SendQueue::default();
        q.push(Instant::ZERO, options(0, false), Bytes::from_static(b"abcdef"));
        q.push(Instant::ZERO, options(0, false), Bytes::from_static(b"ghi"));
        let mut sent = vec![q.pop(3)];
        q.push_urgent(options(0, false), Bytes::from_static(b"key"), false);
        sent.extend((0..3).map(|_| q.pop(3)));
        let sent: Vec<_> = sent.into_iter().flatten().map(|f| (f.payload, f.mid.0)).collect();
        let expected: [(&[u8], u32); 4] = [(b"abc", 0), (b"def", 0), (b"key", 1), (b"ghi", 2)];
        assert_eq!(sent, expected.map(|(text, ssn)| (Bytes::from_static(text), ssn)));
        assert!(q.is_empty());
    }

    #[test]
    fn a_held_queue_lets_only_urgent_messages_leave() {
        let mut q = SendQueue::default();
        q.hold(true);
        q.push(Instant::ZERO, options(0, false), Bytes::from_static(b"data"));
        assert_eq!((q.next_len(9), q.bytes(), q.is_empty()), (None, 4, false));
        q.push_urgent(options(0, false), Bytes::from_static(b"key"), true);
        assert!(q.is_next_in_plain());
        assert_eq!(q.pop(9).map(|f| f.payload), Some(Bytes::from_static(b"key")));
        assert!(q.pop(9).is_none());
        q.hold(false);
        assert_eq!(q.pop(9).map(|f| (f.payload, f.mid.0)), Some((Bytes::from_static(b"data"), 1)));
    }

    /// A queue with this scheduler, whose chunks are of this kind.
    fn scheduled(scheduler: impl StreamScheduler + 'static, kind: DataKind) -> SendQueue {
        let mut q = SendQueue::new(Box::new(scheduler));
        q.set_kind(kind);
        q
    }

    /// Stream and MID of the next fragments, of three bytes at most.
    fn cut(q: &mut SendQueue, count: usize) -> Vec<(u16, u32)> {
        let fragments = std::iter::from_fn(|| {
            let len = q.next_len(3)?;
            let fragment = q.pop(3)?;
            assert_eq!(fragment.payload.len(), len, "what was foretold");
            Some((fragment.stream.0, fragment.mid.0))
        });
        fragments.take(count).collect()
    }

    #[test]
    fn a_scheduler_is_asked_for_each_fragment_only_with_i_data() {
        let sent = |kind| {
            let mut q = scheduled(Rr::default(), kind);
            for stream in [1, 2, 1] {
                q.push(Instant::ZERO, options(stream, false), Bytes::from_static(b"abcdef"));
            }
            assert_eq!((q.bytes(), q.is_empty()), (18, false));
            let sent = cut(&mut q, 9);
            assert_eq!((q.bytes(), q.is_empty(), q.waits_since()), (0, true, None));
            sent
        };
        let messages = [(1, 0), (1, 0), (2, 0), (2, 0), (1, 1), (1, 1)];
        assert_eq!(sent(DataKind::Data), messages, "RFC 9260 §6.9");
        let fragments = [(1, 0), (2, 0), (1, 0), (2, 0), (1, 1), (1, 1)];
        assert_eq!(sent(DataKind::IData), fragments, "RFC 8260 §2.2.2: a message of each stream");
    }

    #[test]
    fn urgent_messages_wait_only_for_what_must_be_finished() {
        let sent = |kind, stream| {
            let mut q = scheduled(Rr::default(), kind);
            q.push(Instant::ZERO, options(stream, false), Bytes::from_static(b"abcdefg"));
            q.push(Instant::ZERO, options(9, false), Bytes::from_static(b"abc"));
            let mut sent = cut(&mut q, 1);
            q.push_urgent(options(0, false), Bytes::from_static(b"urgent"), false);
            sent.extend(cut(&mut q, 9));
            assert!(q.is_empty());
            sent
        };
        let data = [(4, 0), (4, 0), (4, 0), (0, 0), (0, 0), (9, 0)];
        assert_eq!(sent(DataKind::Data, 4), data);
        let interleaved = [(4, 0), (0, 0), (0, 0), (9, 0), (4, 0), (4, 0)];
        assert_eq!(sent(DataKind::IData, 4), interleaved);
        let same_stream = [(0, 0), (0, 0), (0, 0), (0, 1), (0, 1), (9, 0)];
        assert_eq!(sent(DataKind::IData, 0), same_stream, "RFC 8260 §2.2.2: one at a time");
    }

    #[test]
    fn a_held_queue_of_streams_lets_only_urgent_messages_leave() {
        let mut q = scheduled(Rr::default(), DataKind::IData);
        q.hold(true);
        q.push(Instant::ZERO, options(3, false), Bytes::from_static(b"data"));
        assert_eq!(cut(&mut q, 1), []);
        q.push_urgent(options(0, false), Bytes::from_static(b"key"), true);
        assert!(q.is_next_in_plain());
        assert_eq!(cut(&mut q, 9), [(0, 0)]);
        q.hold(false);
        assert_eq!(cut(&mut q, 9), [(3, 0), (3, 0)]);
    }

    #[test]
    fn priorities_last_while_a_stream_is_idle_and_pass_to_a_successor() {
        let mut old = scheduled(Prio::default(), DataKind::IData);
        old.set_priority(StreamId(2), 300);
        let mut q = scheduled(Prio::default(), DataKind::IData);
        q.take_priorities(&mut old);
        for _ in 0..2 {
            for stream in [1, 2] {
                q.push(Instant::ZERO, options(stream, false), Bytes::from_static(b"abc"));
            }
            let streams: Vec<_> = cut(&mut q, 2).iter().map(|(stream, _)| *stream).collect();
            assert_eq!(streams, [2, 1]);
        }
    }

    /// A scheduler of a program's own that knows nothing.
    #[derive(Debug)]
    struct Forgetful;

    impl StreamScheduler for Forgetful {
        fn enter(&mut self, _stream: StreamId, _priority: u16) {}

        fn next(&self) -> Option<StreamId> {
            Some(StreamId(77))
        }

        fn sent(&mut self, _turn: &Turn) {}
    }

    #[test]
    fn what_a_scheduler_forgets_is_sent_all_the_same() {
        let mut q = scheduled(Forgetful, DataKind::IData);
        for stream in [2, 1] {
            q.push(Instant::ZERO, options(stream, false), Bytes::from_static(b"abc"));
        }
        assert_eq!(cut(&mut q, 9), [(1, 0), (2, 0)]);
    }
}
